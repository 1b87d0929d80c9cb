// SPDX-License-Identifier: GPL-2.0
/* Persistent memory: finding it, and writing CPU caches back to it. */
#include <linux/highmem.h>
#include <linux/ioport.h>
#include <linux/libnvdimm.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sizes.h>

#include "services/mem.h"
#include "services/mem/persistent.h"

/*
 * page_to_phys() is a macro, and each question takes a lock: adjacent pages are
 * asked for at once. Whether all of @m is persistent memory, as the firmware has
 * it. Process context, sleeps.
 */
bool xrdma_mem_is_persistent(const struct xrdma_mem *m)
{
	size_t i = 0, n = PAGE_ALIGN(m->first + m->length) >> PAGE_SHIFT;

	if (!m->pages)
		return false;
	while (i < n) {
		unsigned long pfn = page_to_pfn(m->pages[i]);
		size_t run = 1, most = min_t(size_t, n - i, SZ_1G >> PAGE_SHIFT);

		while (run < most && page_to_pfn(m->pages[i + run]) == pfn + run)
			run++;
		if (region_intersects(PFN_PHYS(pfn), run << PAGE_SHIFT, IORESOURCE_MEM,
				      IORES_DESC_PERSISTENT_MEMORY) != REGION_INTERSECTS)
			return false;
		i += run;
		cond_resched();
	}
	return true;
}

/*
 * kmap_local_page() and, where there is no such cache, arch_wb_cache_pmem() are
 * inline; pmem_wmb() is a macro. When this returns, what was written to these bytes
 * has left the CPU caches. @m has pages. Any context.
 */
void xrdma_mem_write_back(const struct xrdma_mem *m, __u64 off, size_t len)
{
	while (len) {
		u64 pos = m->first + off;
		size_t n = min_t(size_t, len, PAGE_SIZE - offset_in_page(pos));
		void *page = kmap_local_page(m->pages[pos >> PAGE_SHIFT]);

		arch_wb_cache_pmem(page + offset_in_page(pos), n);
		kunmap_local(page);
		off += n;
		len -= n;
	}
	pmem_wmb();
}
