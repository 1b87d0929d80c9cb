// SPDX-License-Identifier: GPL-2.0
/* Rings shared with user space. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "services/mem.h"
#include "services/ring.h"

/*
 * One page or two that are neighbours, which the kernel has mapped already: the
 * rings of most queue pairs, which then need no mapping of their own. NULL: there
 * are none.
 */
static void *xrdma_ring_alloc_few(size_t npages, struct page **array)
{
	unsigned int order = npages - 1;
	struct page *page = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_ZERO |
					__GFP_NOWARN | __GFP_NORETRY, order);
	size_t i;

	if (!page)
		return NULL;
	if (order)
		split_page(page, order);
	for (i = 0; i < npages; i++)
		array[i] = page + i;
	return page_address(page);
}

/*
 * alloc_page() and PAGE_KERNEL are macros; vmalloc_user() memory would not be
 * charged to its user. Single pages, so that each lives as long as the last
 * mapping of it, with or without this module.
 */
void *xrdma_ring_alloc(size_t npages, struct page ***pages)
{
	struct page **array = xrdma_page_array_alloc(npages);
	size_t i;
	void *va;

	if (!array)
		return NULL;
	if (npages <= 2) {
		va = xrdma_ring_alloc_few(npages, array);
		if (va) {
			*pages = array;
			return va;
		}
	}
	for (i = 0; i < npages; i++) {
		array[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO |
				      __GFP_NOWARN);
		if (!array[i])
			goto free;
	}
	va = vmap(array, npages, VM_MAP, PAGE_KERNEL);
	if (!va)
		goto free;
	*pages = array;
	return va;
free:
	while (i--)
		put_page(array[i]);
	xrdma_page_array_free(array);
	return NULL;
}

/* Process context: vunmap() sleeps. Pages that are mapped by a process stay. */
void xrdma_ring_free(void *va, struct page **pages, size_t npages)
{
	size_t i;

	if (is_vmalloc_addr(va))
		vunmap(va);
	for (i = 0; i < npages; i++)
		put_page(pages[i]);
	xrdma_page_array_free(pages);
}

/*
 * The VMA accessors are inline. Maps the ring, from its first page, into @vma;
 * no vm_ops, so nothing of this module is called when the mapping goes. A
 * private mapping would be a copy that never sees the other side.
 */
int xrdma_ring_map(struct vm_area_struct *vma, struct page **pages,
		   size_t npages)
{
	unsigned long n = vma_pages(vma);

	if (!(vma->vm_flags & VM_SHARED) || (vma->vm_flags & VM_EXEC) ||
	    n > npages)
		return -EINVAL;
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP,
		     VM_MAYEXEC);
	return vm_insert_pages(vma, vma->vm_start, pages, &n);
}
