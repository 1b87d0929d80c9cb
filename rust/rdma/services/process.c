// SPDX-License-Identifier: GPL-2.0
/* The processes that have queue pairs, each with what these take together. */
#include <linux/hashtable.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "services/process.h"

/*
 * Runs of a process that have a thread at a time: each may wait for memory for
 * seconds, and a work queue has about a thousand. The kernel's users are many,
 * and their runs wait for memory of their peers only.
 */
#define XRDMA_RUNS 16
#define XRDMA_KERNEL_RUNS 256

static DEFINE_HASHTABLE(xrdma_processes, 8);
static DEFINE_SPINLOCK(xrdma_processes_lock);

atomic64_t xrdma_backlog_all = ATOMIC64_INIT(0);

/* The caller has the lock. */
static struct xrdma_process *xrdma_process_find(struct mm_struct *mm)
{
	struct xrdma_process *p;

	hash_for_each_possible(xrdma_processes, p, node, (unsigned long)mm)
		if (p->mm == mm) {
			p->users++;
			return p;
		}
	return NULL;
}

/*
 * The process that calls, or with @kernel the one that stands for the kernel's own
 * users. Address spaces are compared, so it is one process however many contexts
 * it has. Process context. Here because of the lists. NULL: no memory.
 */
struct xrdma_process *xrdma_process_get(bool kernel)
{
	struct mm_struct *mm = kernel ? NULL : current->mm;
	struct xrdma_process *p, *new;
	unsigned long flags;

	spin_lock_irqsave(&xrdma_processes_lock, flags);
	p = xrdma_process_find(mm);
	spin_unlock_irqrestore(&xrdma_processes_lock, flags);
	if (p)
		return p;
	new = kzalloc_obj(*new, GFP_KERNEL_ACCOUNT);
	if (!new)
		return NULL;
	new->mm = mm;
	new->users = 1;
	atomic64_set(&new->backlog, 0);
	spin_lock_init(&new->lock);
	new->max_runs = mm ? XRDMA_RUNS : XRDMA_KERNEL_RUNS;
	INIT_LIST_HEAD(&new->waiting);
	spin_lock_irqsave(&xrdma_processes_lock, flags);
	p = xrdma_process_find(mm);
	if (!p) {
		if (mm)
			mmgrab(mm);
		hash_add(xrdma_processes, &new->node, (unsigned long)mm);
	}
	spin_unlock_irqrestore(&xrdma_processes_lock, flags);
	if (!p)
		return new;
	kfree(new);
	return p;
}

/* Gives a handle back. Process context: mmdrop() may take pgd_lock. */
void xrdma_process_put(struct xrdma_process *p)
{
	unsigned long flags;
	bool last;

	spin_lock_irqsave(&xrdma_processes_lock, flags);
	last = !--p->users;
	if (last)
		hash_del(&p->node);
	spin_unlock_irqrestore(&xrdma_processes_lock, flags);
	if (!last)
		return;
	if (p->mm)
		mmdrop(p->mm);
	kfree(p);
}

/*
 * How much a backlog of @p may hold now. All of them together hold no more than a
 * sixty-fourth of the machine's memory. A process gets no more than what it leaves
 * to the others: half of it alone, a third where two want all they can get; and so
 * does each queue of what the process may have. So whoever comes later finds room,
 * and nothing has to be set aside. Any context.
 */
u64 xrdma_backlog_room(const struct xrdma_process *p)
{
	u64 limit = clamp_t(u64, (u64)totalram_pages() << (PAGE_SHIFT - 6),
			    SZ_16M, SZ_1G);
	u64 taken = atomic64_read(&xrdma_backlog_all) +
		    atomic64_read(&p->backlog);

	return taken < limit ? limit - taken : 0;
}
