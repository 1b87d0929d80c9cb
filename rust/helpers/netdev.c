// SPDX-License-Identifier: GPL-2.0
/* Network devices and network namespaces. */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <net/net_namespace.h>

#include "helpers.h"

/* dev_hold() is inline. */
void xrdma_netdev_hold(struct net_device *dev)
{
	dev_hold(dev);
}

/* dev_put() is inline. */
void xrdma_netdev_put(struct net_device *dev)
{
	dev_put(dev);
}

/* bindgen knows struct net_device only as an opaque stub: hence the getters. */
__u32 xrdma_netdev_mtu(const struct net_device *dev)
{
	return READ_ONCE(dev->mtu);
}

/* As above. */
__u32 xrdma_netdev_ifindex(const struct net_device *dev)
{
	return READ_ONCE(dev->ifindex);
}

/* As above. */
bool xrdma_netdev_is_up(const struct net_device *dev)
{
	return netif_running(dev);
}

/* As above. */
bool xrdma_netdev_has_carrier(const struct net_device *dev)
{
	return netif_carrier_ok(dev);
}

/* As above. Devices without an Ethernet address give zeroes. */
void xrdma_netdev_mac(const struct net_device *dev, __u8 mac[6])
{
	if (dev->addr_len == ETH_ALEN && dev->dev_addr)
		ether_addr_copy(mac, dev->dev_addr);
	else
		eth_zero_addr(mac);
}

/* bindgen knows struct net only as an opaque stub. */
__u64 xrdma_net_cookie(const struct net *net)
{
	return net->net_cookie;
}

/* maybe_get_net() is inline. */
struct net *xrdma_net_get(struct net *net)
{
	return maybe_get_net(net);
}

/* put_net() is inline. */
void xrdma_net_put(struct net *net)
{
	put_net(net);
}
