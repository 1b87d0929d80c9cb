// SPDX-License-Identifier: GPL-2.0
/* Completion queues of ib_core: the end of polling, and what is shown of them. */
#include <linux/dim.h>
#include <linux/irq_poll.h>
#include <linux/rcupdate.h>
#include <rdma/ib_verbs.h>

#include "verbs/cq.h"

/*
 * Waits until nobody polls a kernel user's queue, which events have ceased to
 * start. ib_free_cq() does that too, but irq_poll_disable() returns when the
 * handler has called irq_poll_complete(); after that ib_poll_handler() still
 * arms the queue and feeds @cq->dim, and ib_free_cq() frees both. Softirqs are
 * readers of RCU. The polling is enabled again for ib_free_cq() to disable it.
 * Process context.
 */
void xrdma_ib_end_polling(struct ib_cq *cq)
{
	if (cq->poll_ctx != IB_POLL_SOFTIRQ)
		return;
	irq_poll_disable(&cq->iop);
	synchronize_rcu_expedited();
	irq_poll_enable(&cq->iop);
}

/*
 * ib_core polls queues in softirq with lib/irq_poll.c, which assumes that a CPU runs
 * one softirq at a time. On a real-time kernel several tasks may run the softirqs of a
 * CPU, and then a queue is removed from its list twice. There the queue is polled in a
 * workqueue: ib_core reads @cq->poll_ctx after the driver's create_cq(), from which
 * this is called for the queue of a kernel user. Process context.
 */
void xrdma_ib_choose_polling(struct ib_cq *cq)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) &&
	    !IS_ENABLED(CONFIG_PREEMPT_RT_NEEDS_BH_LOCK) &&
	    cq->poll_ctx == IB_POLL_SOFTIRQ)
		cq->poll_ctx = IB_POLL_WORKQUEUE;
}

/*
 * Lets `rdma res show cq` say of a process's queue whether its moderation is
 * adaptive. The core looks at nothing but whether there is a pointer: what it
 * feeds and frees itself are the queues of kernel users.
 */
void xrdma_ib_show_adaptive(struct ib_cq *cq, bool on)
{
	static struct dim shown;

	WRITE_ONCE(cq->dim, on ? &shown : NULL);
}
