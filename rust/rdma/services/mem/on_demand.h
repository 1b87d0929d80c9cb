/* SPDX-License-Identifier: GPL-2.0 */
/* On-demand paging. */
#ifndef XRDMA_SERVICES_MEM_ON_DEMAND_H
#define XRDMA_SERVICES_MEM_ON_DEMAND_H

#include <linux/types.h>

struct mm_struct;
struct page;

struct mm_struct *xrdma_mm_grab(void);
void xrdma_mm_drop(struct mm_struct *mm);
int xrdma_mm_hold(struct mm_struct *mm, __u64 addr, size_t n, bool write,
		  struct page **pages);
void xrdma_mm_wait(__u32 tries);
void xrdma_mm_release(struct page **pages, size_t n, bool dirty);

#endif /* XRDMA_SERVICES_MEM_ON_DEMAND_H */
