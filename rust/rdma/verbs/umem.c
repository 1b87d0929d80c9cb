// SPDX-License-Identifier: GPL-2.0
/* Pinned user memory: a page array over ib_umem, so that any offset is O(1). */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "services/mem.h"
#include "verbs/umem.h"

/*
 * ib_umem_get_va() and the scatterlist iterators are inline. Pins
 * [@addr, @addr + @length) of the current process within RLIMIT_MEMLOCK and
 * fills @mem. Process context, sleeps.
 */
struct ib_umem *xrdma_umem_pin(struct ib_device *dev, __u64 addr, __u64 length,
			       int access, struct xrdma_mem *mem)
{
	struct sg_page_iter iter;
	struct ib_umem *umem;
	size_t n, i = 0;

	/* The core takes it for granted that there is an address space. */
	if (!current->mm)
		return ERR_PTR(-EINVAL);
	if (overflows_type(addr, unsigned long) || overflows_type(length, size_t))
		return ERR_PTR(-EINVAL);
	umem = ib_umem_get_va(dev, addr, length, access);
	if (IS_ERR(umem))
		return umem;
	n = ib_umem_num_pages(umem);
	mem->pages = xrdma_page_array_alloc(n);
	if (!mem->pages) {
		ib_umem_release(umem);
		return ERR_PTR(-ENOMEM);
	}
	for_each_sgtable_page(&umem->sgt_append.sgt, &iter, 0) {
		if (i == n)
			break;
		mem->pages[i++] = sg_page_iter_page(&iter);
	}
	if (WARN_ON_ONCE(i != n)) {
		xrdma_page_array_free(mem->pages);
		ib_umem_release(umem);
		return ERR_PTR(-EINVAL);
	}
	/* ib_umem_release() looks at the device, which may be gone by then. */
	get_device(&dev->dev);
	mem->va = NULL;
	mem->first = ib_umem_offset(umem);
	mem->length = length;
	return umem;
}

/* Undoes the above; pages that the device could write are marked dirty. */
void xrdma_umem_unpin(struct ib_umem *umem, struct xrdma_mem *mem)
{
	struct ib_device *dev = umem->ibdev;

	xrdma_page_array_free(mem->pages);
	ib_umem_release(umem);
	put_device(&dev->dev);
}

/* bindgen sees bit fields, which Rust had better not take apart. */
bool xrdma_umem_writable(const struct ib_umem *umem)
{
	return umem->writable;
}
