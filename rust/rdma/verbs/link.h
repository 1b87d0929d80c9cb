/* SPDX-License-Identifier: GPL-2.0 */
/* The link type, by which users add devices. */
#ifndef XRDMA_VERBS_LINK_H
#define XRDMA_VERBS_LINK_H

#include <linux/types.h>

struct ib_device;
struct net_device;
struct rdma_link_ops;
struct xrdma_link;

/* As in struct rdma_link_ops. */
typedef int (*xrdma_newlink_fn)(const char *name, struct net_device *netdev);
typedef int (*xrdma_dellink_fn)(struct ib_device *dev);

struct xrdma_link *xrdma_link_register(const char *type, const char *also,
				       const char *not_with, u32 driver_id,
				       xrdma_newlink_fn newlink,
				       xrdma_dellink_fn dellink);
void xrdma_link_unregister(struct xrdma_link *l);
const struct rdma_link_ops *xrdma_link_ops(void);

#endif /* XRDMA_VERBS_LINK_H */
