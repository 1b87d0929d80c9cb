// SPDX-License-Identifier: GPL-2.0
/* Memory of a process that is looked up page by page when it is used. */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "services.h"

/* mmgrab() is inline. The address space of the calling process, not its memory. */
struct mm_struct *xrdma_mm_grab(void)
{
	if (!current->mm)
		return NULL;
	mmgrab(current->mm);
	return current->mm;
}

/* mmdrop() is inline. */
void xrdma_mm_drop(struct mm_struct *mm)
{
	mmdrop(mm);
}

/*
 * mmget_not_zero() and the lock of an address space are inline. Brings @n pages
 * from the one with @addr on in, for writing if @write, and holds them; -EFAULT
 * unless all are there, and when the process has ended. Sleeps, but does not
 * wait for whoever provides a page or is changing the address space, which may
 * depend on a process that never gets there: -EAGAIN then, and pages of files
 * and swap are on their way. A page that userfaultfd guards is not: its monitor
 * is told of faults that wait only.
 */
int xrdma_mm_hold(struct mm_struct *mm, __u64 addr, size_t n, bool write,
		  struct page **pages)
{
	size_t got = 0;
	long ret = 0;

	if (overflows_type(addr, unsigned long) || !mmget_not_zero(mm))
		return -EFAULT;
	while (got < n) {
		int locked = 1;

		/* Who has it for writing may itself wait for a process (FUSE). */
		if (!mmap_read_trylock(mm)) {
			ret = -EAGAIN;
			break;
		}
		ret = pin_user_pages_remote(mm,
					    (addr & PAGE_MASK) +
						    got * PAGE_SIZE,
					    n - got,
					    FOLL_NOWAIT |
						    (write ? FOLL_WRITE : 0),
					    pages + got, &locked);
		if (locked)
			mmap_read_unlock(mm);
		if (ret <= 0)
			break;
		got += ret;
	}
	/* The last user of the memory takes it down, which is not for us to do. */
	mmput_async(mm);
	if (got == n)
		return 0;
	if (got)
		unpin_user_pages(pages, got);
	return ret == 0 || ret == -EAGAIN || ret == -EBUSY ? -EAGAIN : -EFAULT;
}

/* Kept with the above: how long to wait before it is tried again. */
void xrdma_mm_wait(void)
{
	usleep_range(200, 1000);
}

/* Kept beside its counterpart. */
void xrdma_mm_release(struct page **pages, size_t n, bool dirty)
{
	unpin_user_pages_dirty_lock(pages, n, dirty);
}

/* in_serving_softirq() is a macro. */
bool xrdma_in_softirq(void)
{
	return in_serving_softirq();
}

/* Macros again. RCU read sections count only where they can be preempted. */
bool xrdma_may_sleep(void)
{
	return !preempt_count() && !irqs_disabled() && !rcu_preempt_depth();
}
