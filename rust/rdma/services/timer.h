/* SPDX-License-Identifier: GPL-2.0 */
/* High-resolution timers. */
#ifndef XRDMA_SERVICES_TIMER_H
#define XRDMA_SERVICES_TIMER_H

#include <linux/types.h>

#include "services/call.h"

struct xrdma_timer;

struct xrdma_timer *xrdma_timer_alloc(xrdma_call_fn call, void *fn,
				      __u64 cookie);
void xrdma_timer_start(struct xrdma_timer *t, __u64 ns);
void xrdma_timer_cancel(struct xrdma_timer *t);
void xrdma_timer_free(struct xrdma_timer *t);
__u64 xrdma_now_ns(void);
__u64 xrdma_now_raw_ns(void);

#endif /* XRDMA_SERVICES_TIMER_H */
