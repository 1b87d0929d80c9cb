/* SPDX-License-Identifier: GPL-2.0 */
/* The keys that each CPU uses. */
#ifndef XRDMA_SERVICES_RCU_HELD_H
#define XRDMA_SERVICES_RCU_HELD_H

#include <linux/types.h>

struct xarray;

void *xrdma_held_enter(struct xarray *xa, __u32 id, int *token);
void xrdma_held_leave(int token);
void xrdma_held_wait(__u32 id);

#endif /* XRDMA_SERVICES_RCU_HELD_H */
