// SPDX-License-Identifier: GPL-2.0
/*
 * Copies and atomic operations on registered memory. kmap_local_page() and the
 * atomics are inline, and a call per page from Rust would be slow. Callers have
 * checked offsets and lengths against xrdma_mem.length.
 */
#include <linux/atomic.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "services/mem.h"

/* Bytes from @off on that lie in one piece, at most @len; *@at is where. */
static size_t xrdma_mem_map(const struct xrdma_mem *m, u64 off, size_t len,
			    u8 **at)
{
	u64 pos;

	if (!m->pages) {
		*at = m->va + off;
		return len;
	}
	pos = m->first + off;
	*at = (u8 *)kmap_local_page(m->pages[pos >> PAGE_SHIFT]) +
	      offset_in_page(pos);
	return min_t(size_t, len, PAGE_SIZE - offset_in_page(pos));
}

static void xrdma_mem_unmap(const struct xrdma_mem *m, u8 *at)
{
	if (m->pages)
		kunmap_local(at);
}

/* Any context. The memory may change under the copy: it is user space's. */
void xrdma_mem_read(const struct xrdma_mem *m, __u64 off, void *to, size_t len)
{
	while (len) {
		u8 *at;
		size_t n = xrdma_mem_map(m, off, len, &at);

		memcpy(to, at, n);
		xrdma_mem_unmap(m, at);
		to += n;
		off += n;
		len -= n;
	}
}

/* Any context. */
void xrdma_mem_write(const struct xrdma_mem *m, __u64 off, const void *from,
		     size_t len)
{
	/*
	 * Whoever sees some of it sees what was written before: programs look for what
	 * the later of two requests has written, without a completion.
	 */
	smp_wmb();
	while (len) {
		u8 *at;
		size_t n = xrdma_mem_map(m, off, len, &at);

		memcpy(at, from, n);
		xrdma_mem_unmap(m, at);
		from += n;
		off += n;
		len -= n;
	}
}

/* Any context; memmove() because both ends may name the same bytes. */
void xrdma_mem_copy(const struct xrdma_mem *from, __u64 from_off,
		    const struct xrdma_mem *to, __u64 to_off, size_t len)
{
	/* As in xrdma_mem_write(). */
	smp_wmb();
	while (len) {
		u8 *src, *dst;
		size_t n = xrdma_mem_map(from, from_off, len, &src);

		n = xrdma_mem_map(to, to_off, n, &dst);
		memmove(dst, src, n);
		xrdma_mem_unmap(to, dst);
		xrdma_mem_unmap(from, src);
		from_off += n;
		to_off += n;
		len -= n;
	}
}

/* Atomic towards all CPUs, user space included. -EINVAL: not aligned. */
int xrdma_mem_cmpxchg64(const struct xrdma_mem *m, __u64 off, __u64 compare,
			__u64 swap, __u64 *original)
{
	int ret = -EINVAL;
	u8 *at;

	xrdma_mem_map(m, off, sizeof(u64), &at);
	if (IS_ALIGNED((unsigned long)at, sizeof(u64))) {
		*original = cmpxchg64((u64 *)at, compare, swap);
		ret = 0;
	}
	xrdma_mem_unmap(m, at);
	return ret;
}

/* As above. */
int xrdma_mem_fetch_add64(const struct xrdma_mem *m, __u64 off, __u64 add,
			  __u64 *original)
{
	int ret = -EINVAL;
	u8 *at;

	xrdma_mem_map(m, off, sizeof(u64), &at);
	if (IS_ALIGNED((unsigned long)at, sizeof(u64))) {
		*original = atomic64_fetch_add(add, (atomic64_t *)at);
		ret = 0;
	}
	xrdma_mem_unmap(m, at);
	return ret;
}

/* One store that nobody sees half of, after all earlier writes. */
int xrdma_mem_store64(const struct xrdma_mem *m, __u64 off, __u64 value)
{
	int ret = -EINVAL;
	u8 *at;

	xrdma_mem_map(m, off, sizeof(u64), &at);
	if (IS_ALIGNED((unsigned long)at, sizeof(u64))) {
		/* Orders all earlier writes before this one. */
		smp_store_release((u64 *)at, value);
		ret = 0;
	}
	xrdma_mem_unmap(m, at);
	return ret;
}

/* kvmalloc_array() is a macro, which warns of sizes that a user may ask for. */
struct page **xrdma_page_array_alloc(size_t n)
{
	return kvmalloc_array(n, sizeof(struct page *),
			      GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
}

/* Kept beside its counterpart. */
void xrdma_page_array_free(struct page **pages)
{
	kvfree(pages);
}

/*
 * virt_to_page() is a macro. @addr is a kernel address as kernel users of a
 * virtual-DMA device give it; NULL when no page is behind it.
 */
struct page *xrdma_kernel_page(__u64 addr)
{
	void *va = (void *)(uintptr_t)addr;

	if (is_vmalloc_addr(va))
		return vmalloc_to_page(va);
	return virt_addr_valid(va) ? virt_to_page(va) : NULL;
}
