/* SPDX-License-Identifier: GPL-2.0 */
/* Adaptive moderation of completion queues. */
#ifndef XRDMA_SERVICES_DIM_H
#define XRDMA_SERVICES_DIM_H

#include <linux/types.h>

#include "services/call.h"

struct xrdma_dim;

struct xrdma_dim *xrdma_dim_alloc(xrdma_call_fn call, void *fn, __u64 cookie);
void xrdma_dim_event(struct xrdma_dim *d, __u64 completions);
__u8 xrdma_dim_level(struct xrdma_dim *d);
void xrdma_dim_free(struct xrdma_dim *d);

#endif /* XRDMA_SERVICES_DIM_H */
