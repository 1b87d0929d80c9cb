// SPDX-License-Identifier: GPL-2.0
/* Devices and their ports: what needs the internals of a net device, or text. */
#include <linux/device.h>
#include <linux/etherdevice.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "verbs/device.h"

/*
 * Fields that hold fixed-size text, GUIDs made by an inline function, and a
 * 64-bit mask built from shifted enumerators.
 */
void xrdma_ib_setup_device(struct ib_device *dev, struct net_device *netdev,
			   const char *description)
{
	u8 mac[ETH_ALEN] = {};

	strscpy(dev->node_desc, description, sizeof(dev->node_desc));
	/* The connection manager wants a GUID even of a device without MAC. */
	if (netdev->addr_len)
		memcpy(mac, netdev->dev_addr,
		       min_t(size_t, netdev->addr_len, ETH_ALEN));
	else
		eth_random_addr(mac);
	addrconf_addr_eui48((u8 *)&dev->node_guid, mac);
	/* Doorbell, and arming a CQ by system call: off by default. */
	dev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				BIT_ULL(IB_USER_VERBS_CMD_POST_SRQ_RECV) |
				BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
}

/* netif_running() and netif_carrier_ok() are inline. */
static bool netdev_active(const struct net_device *netdev)
{
	return netif_running(netdev) && netif_carrier_ok(netdev);
}

/* Net device look-up, flags and the reference in one call. */
bool xrdma_ib_port_active(struct ib_device *dev, u32 port)
{
	struct net_device *netdev = ib_device_get_netdev(dev, port);
	bool active;

	if (!netdev)
		return false;
	active = netdev_active(netdev);
	dev_put(netdev);
	return active;
}

/*
 * As above, with the speed, which takes the RTNL. Between the end of the net
 * device and that of the RDMA device the port is down: the core still asks, and
 * would log a failure.
 */
int xrdma_ib_link_read(struct ib_device *dev, u32 port,
		       struct xrdma_ib_link *link)
{
	struct net_device *netdev = ib_device_get_netdev(dev, port);
	int ret;

	if (!netdev) {
		link->active = false;
		link->mtu = 0;
		link->speed = IB_SPEED_SDR;
		link->width = IB_WIDTH_1X;
		return 0;
	}
	link->active = netdev_active(netdev);
	link->mtu = READ_ONCE(netdev->mtu);
	ret = ib_get_eth_speed(dev, port, &link->speed, &link->width);
	dev_put(netdev);
	return ret;
}

/* Formats into a buffer of the core's without a Rust formatter. */
void xrdma_ib_fw_version(char *text, size_t len, u64 version)
{
	snprintf(text, len, "%llu.%llu.%llu", (version >> 32) & 0xffff,
		 (version >> 16) & 0xffff, version & 0xffff);
}

/*
 * Makes the net device of a port a member of an IP multicast group, or ends one
 * membership; both count. Takes the RTNL, without which the lists of groups
 * must not be touched. A net device that has lost its IP side has no groups, nor
 * has one that left the namespace of @cookie: those that it has now are others'.
 */
int xrdma_ib_group(struct ib_device *dev, u32 port, u64 cookie, const u8 *gid,
		   bool join)
{
	const struct in6_addr *addr = (const struct in6_addr *)gid;
	struct net_device *netdev = ib_device_get_netdev(dev, port);
	struct in_device *in;
	int ret = 0;

	if (!netdev)
		return -ENODEV;
	rtnl_lock();
	if (dev_net(netdev)->net_cookie != cookie) {
		ret = -ENODEV;
	} else if (ipv6_addr_v4mapped(addr)) {
		in = __in_dev_get_rtnl(netdev);
		if (in && join)
			ip_mc_inc_group(in, addr->s6_addr32[3]);
		else if (in)
			ip_mc_dec_group(in, addr->s6_addr32[3]);
		else
			ret = -ENODEV;
	} else {
#if IS_ENABLED(CONFIG_IPV6)
		ret = join ? ipv6_dev_mc_inc(netdev, addr) :
			     ipv6_dev_mc_dec(netdev, addr);
#else
		ret = -EAFNOSUPPORT;
#endif
	}
	rtnl_unlock();
	dev_put(netdev);
	return ret;
}

/* The attributes of a port are too large for the stack. In units of 100 Mb/s. */
int xrdma_ib_port_speed(struct ib_device *dev, u32 port, u64 *speed)
{
	struct ib_port_speed_info info;
	struct ib_port_attr *attr;
	int ret;

	attr = kzalloc_obj(*attr, GFP_KERNEL);
	if (!attr)
		return -ENOMEM;
	ret = ib_query_port(dev, port, attr);
	if (!ret)
		ret = ib_port_attr_to_speed_info(attr, &info);
	if (!ret)
		*speed = info.rate;
	kfree(attr);
	return ret;
}

/*
 * The name of the net device, as rxe has it: udev's rules look at this
 * attribute of software RoCE devices. Attributes are made by macros. The core
 * may hand in one of its per-namespace shadows of the device.
 */
static ssize_t parent_show(struct device *device,
			   struct device_attribute *attr, char *buf)
{
	struct ib_device *dev = rdma_device_to_ibdev(device);
	struct net_device *netdev = ib_device_get_netdev(dev, 1);
	ssize_t len;

	if (!netdev)
		return -ENODEV;
	len = sysfs_emit(buf, "%s\n", netdev_name(netdev));
	dev_put(netdev);
	return len;
}

static DEVICE_ATTR_RO(parent);

static struct attribute *xrdma_ib_device_attrs[] = {
	&dev_attr_parent.attr,
	NULL
};

const struct attribute_group xrdma_ib_device_group = {
	.attrs = xrdma_ib_device_attrs,
};
