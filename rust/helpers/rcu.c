// SPDX-License-Identifier: GPL-2.0
/* RCU and reference counts. */
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>

#include "helpers.h"

/* Inline in C, and the kernel crate's Refcount has no such operation. */
bool xrdma_refcount_inc_not_zero(struct refcount_struct *ref)
{
	return refcount_inc_not_zero(ref);
}

/* INIT_RCU_WORK() is a macro; its lock class belongs to this file. */
void xrdma_rcu_work_init(struct rcu_work *rwork,
			 void (*fn)(struct work_struct *work))
{
	INIT_RCU_WORK(rwork, fn);
}

/* Inline in C. */
struct rcu_work *xrdma_to_rcu_work(struct work_struct *work)
{
	return to_rcu_work(work);
}

/*
 * Whoever destroys an object waits here, and many do so in loops: the expedited
 * form, which takes less time than the grace periods that others wait for.
 */
void xrdma_wait_for_readers(void)
{
	synchronize_rcu_expedited();
}
