/* SPDX-License-Identifier: GPL-2.0 */
/* Network devices, their notifier and network namespaces. */
#ifndef XRDMA_SERVICES_NET_NETDEV_H
#define XRDMA_SERVICES_NET_NETDEV_H

#include <linux/types.h>

struct net;
struct net_device;

enum xrdma_netdev_event {
	XRDMA_NETDEV_OTHER,
	XRDMA_NETDEV_UP,
	XRDMA_NETDEV_DOWN,
	XRDMA_NETDEV_CHANGE,
	XRDMA_NETDEV_REGISTER,
	XRDMA_NETDEV_UNREGISTER,
	XRDMA_NETDEV_CHANGEMTU,
	XRDMA_NETDEV_CHANGEADDR,
	XRDMA_NETDEV_CHANGENAME,
};

typedef void (*xrdma_netdev_fn)(enum xrdma_netdev_event event,
				struct net_device *dev);
struct xrdma_notifier;

struct net *xrdma_netdev_net_get(const struct net_device *dev);
bool xrdma_netdev_is_in(struct net_device *dev, __u64 cookie);
struct xrdma_notifier *xrdma_notifier_register(xrdma_netdev_fn fn);
void xrdma_notifier_unregister(struct xrdma_notifier *n);

#endif /* XRDMA_SERVICES_NET_NETDEV_H */
