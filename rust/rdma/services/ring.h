/* SPDX-License-Identifier: GPL-2.0 */
/* Rings shared with user space. */
#ifndef XRDMA_SERVICES_RING_H
#define XRDMA_SERVICES_RING_H

#include <linux/types.h>

struct page;
struct vm_area_struct;

void *xrdma_ring_alloc(size_t npages, struct page ***pages);
void xrdma_ring_free(void *va, struct page **pages, size_t npages);
int xrdma_ring_map(struct vm_area_struct *vma, struct page **pages,
		   size_t npages);

#endif /* XRDMA_SERVICES_RING_H */
