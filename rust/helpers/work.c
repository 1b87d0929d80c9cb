// SPDX-License-Identifier: GPL-2.0
/* Work items that carry a number instead of a pointer. */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "ends.h"
#include "services.h"

struct xrdma_work {
	struct xrdma_end end;
	struct work_struct work;
	/* For another queue than its own: one runs in softirq, one may sleep. */
	struct work_struct elsewhere;
	struct workqueue_struct *wq;
	xrdma_call_fn call;
	void *fn;
	u64 cookie;
};

/*
 * alloc_workqueue() is a variadic macro. The process queue may be needed to
 * free memory (storage over RDMA), hence WQ_MEM_RECLAIM.
 */
struct workqueue_struct *xrdma_workqueue_create(bool bh)
{
	if (bh)
		return alloc_workqueue("xroce_bh", WQ_BH | WQ_PERCPU, 0);
	return alloc_workqueue("xroce", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
}

/* Kept beside its counterpart. Waits for all work. */
void xrdma_workqueue_destroy(struct workqueue_struct *wq)
{
	destroy_workqueue(wq);
}

/* flush_workqueue() is a macro. */
void xrdma_workqueue_flush(struct workqueue_struct *wq)
{
	flush_workqueue(wq);
}

static void xrdma_work_run(struct work_struct *work)
{
	struct xrdma_work *w = container_of(work, struct xrdma_work, work);

	w->call(w->fn, w->cookie);
}

static void xrdma_work_run_elsewhere(struct work_struct *work)
{
	struct xrdma_work *w = container_of(work, struct xrdma_work, elsewhere);

	w->call(w->fn, w->cookie);
}

/* What is disabled cannot be queued any more, and does not look at the queue. */
static void xrdma_work_end(struct xrdma_end *e)
{
	struct xrdma_work *w = container_of(e, struct xrdma_work, end);

	disable_work_sync(&w->work);
	disable_work_sync(&w->elsewhere);
}

/*
 * INIT_WORK() is a macro; and the item must not move. There are two of them,
 * because each makes a lock class: one kind runs in softirq, the other with
 * softirq on. NULL: no memory, or no services.
 */
struct xrdma_work *xrdma_work_alloc(struct workqueue_struct *wq, bool bh,
				    xrdma_call_fn call, void *fn, __u64 cookie)
{
	struct xrdma_work *w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);

	if (!w)
		return NULL;
	if (bh)
		INIT_WORK(&w->work, xrdma_work_run);
	else
		INIT_WORK(&w->work, xrdma_work_run);
	INIT_WORK(&w->elsewhere, xrdma_work_run_elsewhere);
	w->wq = wq;
	w->call = call;
	w->fn = fn;
	w->cookie = cookie;
	if (xrdma_end_add(&w->end, XRDMA_END_CALLS, xrdma_work_end)) {
		kfree(w);
		return NULL;
	}
	return w;
}

/* queue_work() is inline. Any context. */
bool xrdma_work_schedule(struct xrdma_work *w)
{
	return queue_work(w->wq, &w->work);
}

/*
 * As above, on another queue than its own this time. It may run in both at
 * once.
 */
bool xrdma_work_schedule_on(struct xrdma_work *w, struct workqueue_struct *wq)
{
	return queue_work(wq, &w->elsewhere);
}

/* Kept beside its counterpart, so that Rust need not know the layout. */
bool xrdma_work_cancel(struct xrdma_work *w)
{
	bool here = cancel_work_sync(&w->work);

	return cancel_work_sync(&w->elsewhere) || here;
}

/* As above. */
void xrdma_work_free(struct xrdma_work *w)
{
	xrdma_end_now(&w->end);
	kfree(w);
}

/* signal_pending() is inline. Process context. */
bool xrdma_signal_pending(void)
{
	return signal_pending(current);
}

/* cond_resched() is a macro. Process context. */
void xrdma_cond_resched(void)
{
	cond_resched();
}
