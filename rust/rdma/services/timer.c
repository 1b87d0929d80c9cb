// SPDX-License-Identifier: GPL-2.0
/*
 * High-resolution timers whose callback runs in softirq with a number as
 * argument.
 */
#include <linux/hrtimer.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "services/ends.h"
#include "services/timer.h"

struct xrdma_timer {
	struct hrtimer timer;
	struct xrdma_end end;
	xrdma_call_fn call;
	void *fn;
	u64 cookie;
};

static enum hrtimer_restart xrdma_timer_fire(struct hrtimer *timer)
{
	struct xrdma_timer *t = container_of(timer, struct xrdma_timer, timer);

	t->call(t->fn, t->cookie);
	return HRTIMER_NORESTART;
}

static void xrdma_timer_end(struct xrdma_end *e)
{
	hrtimer_cancel(&container_of(e, struct xrdma_timer, end)->timer);
}

/*
 * struct hrtimer must not move, and its callback returns a C enum. NULL: no
 * memory, or no services.
 */
struct xrdma_timer *xrdma_timer_alloc(xrdma_call_fn call, void *fn,
				      __u64 cookie)
{
	struct xrdma_timer *t = kzalloc_obj(*t, GFP_KERNEL_ACCOUNT);

	if (!t)
		return NULL;
	hrtimer_setup(&t->timer, xrdma_timer_fire, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
	t->call = call;
	t->fn = fn;
	t->cookie = cookie;
	if (xrdma_end_add(&t->end, XRDMA_END_CALLS, xrdma_timer_end)) {
		kfree(t);
		return NULL;
	}
	return t;
}

/*
 * hrtimer_start() is inline. A timer that will fire sooner anyway is left
 * alone: a retransmission deadline moves forward with every acknowledgement,
 * and to take the timer out of the tree and put it back each time costs more
 * than a spurious callback now and then. The look at the expiry is a race only
 * with a timer that fires at this moment, and then the callback is yet to read
 * the new deadline.
 */
void xrdma_timer_start(struct xrdma_timer *t, __u64 ns)
{
	ktime_t when = ns_to_ktime(min_t(u64, ns, KTIME_MAX));

	if (hrtimer_is_queued(&t->timer) &&
	    hrtimer_get_expires(&t->timer) <= when)
		return;
	rcu_read_lock();
	if (xrdma_ends_open(XRDMA_END_CALLS))
		hrtimer_start(&t->timer, when, HRTIMER_MODE_ABS_SOFT);
	rcu_read_unlock();
}

/* So that Rust need not know the layout. Waits for a running callback. */
void xrdma_timer_cancel(struct xrdma_timer *t)
{
	hrtimer_cancel(&t->timer);
}

/* As above. */
void xrdma_timer_free(struct xrdma_timer *t)
{
	xrdma_end_now(&t->end);
	kfree(t);
}

/* ktime_get_ns() is inline. */
__u64 xrdma_now_ns(void)
{
	return ktime_get_ns();
}

/* ktime_get_raw_ns() is inline. */
__u64 xrdma_now_raw_ns(void)
{
	return ktime_get_raw_ns();
}
