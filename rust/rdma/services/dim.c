// SPDX-License-Identifier: GPL-2.0
/*
 * Adaptive moderation of completion queues: the kernel's library (lib/dim), and
 * the work item through which it requests another level.
 */
#include <linux/dim.h>
#include <linux/slab.h>

#include "services/dim.h"
#include "services/ends.h"

struct xrdma_dim {
	struct xrdma_end end;
	struct dim dim;
	xrdma_call_fn call;
	void *fn;
	u64 cookie;
};

static void xrdma_dim_work(struct work_struct *work)
{
	struct xrdma_dim *d = container_of(work, struct xrdma_dim, dim.work);

	d->call(d->fn, d->cookie);
}

/* What is disabled cannot be queued any more. */
static void xrdma_dim_end(struct xrdma_end *e)
{
	disable_work_sync(&container_of(e, struct xrdma_dim, end)->dim.work);
}

/*
 * INIT_WORK() is a macro; and the item must not move. NULL: no memory, or no
 * services.
 */
struct xrdma_dim *xrdma_dim_alloc(xrdma_call_fn call, void *fn, __u64 cookie)
{
	struct xrdma_dim *d = kzalloc_obj(*d, GFP_KERNEL_ACCOUNT);

	if (!d)
		return NULL;
	d->dim.state = DIM_START_MEASURE;
	d->dim.tune_state = DIM_GOING_RIGHT;
	d->dim.profile_ix = RDMA_DIM_START_PROFILE;
	INIT_WORK(&d->dim.work, xrdma_dim_work);
	d->call = call;
	d->fn = fn;
	d->cookie = cookie;
	if (xrdma_end_add(&d->end, XRDMA_END_CALLS, xrdma_dim_end)) {
		kfree(d);
		return NULL;
	}
	return d;
}

/* One at a time, and not with xrdma_dim_level(). Any context but NMI. */
void xrdma_dim_event(struct xrdma_dim *d, __u64 completions)
{
	rdma_dim(&d->dim, completions);
}

/* The level that is asked for; from now on its effect is measured. */
__u8 xrdma_dim_level(struct xrdma_dim *d)
{
	d->dim.state = DIM_START_MEASURE;
	return d->dim.profile_ix;
}

/* Waits for the call if it runs. There are no more events. Process context. */
void xrdma_dim_free(struct xrdma_dim *d)
{
	xrdma_end_now(&d->end);
	kfree(d);
}
