/* SPDX-License-Identifier: GPL-2.0 */
/* The tables in which softirq looks objects up. */
#ifndef XRDMA_SERVICES_RCU_TABLE_H
#define XRDMA_SERVICES_RCU_TABLE_H

#include <linux/types.h>

struct xarray;

void xrdma_xa_init(struct xarray *xa);
int xrdma_xa_reserve(struct xarray *xa, __u32 *id, __u32 min, __u32 max,
		     __u32 *next, bool may_sleep);
int xrdma_xa_reserve_at(struct xarray *xa, __u32 id);
void xrdma_xa_publish(struct xarray *xa, __u32 id, void *entry);
void xrdma_xa_release(struct xarray *xa, __u32 id);
void *xrdma_xa_replace(struct xarray *xa, __u32 id, void *entry);
void *xrdma_xa_remove(struct xarray *xa, __u32 id);
void *xrdma_xa_next(struct xarray *xa, unsigned long *id);

#endif /* XRDMA_SERVICES_RCU_TABLE_H */
