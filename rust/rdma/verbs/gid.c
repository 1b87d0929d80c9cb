// SPDX-License-Identifier: GPL-2.0
/* GIDs: what lies behind pointers of a GID attribute. */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_verbs.h>

#include "verbs/gid.h"

/* The net device of a GID is an RCU pointer that may be reset at any time. */
void xrdma_ib_gid_read(const struct ib_gid_attr *attr,
		       struct xrdma_ib_gid_info *info)
{
	struct net_device *netdev;

	memcpy(info->gid, attr->gid.raw, sizeof(info->gid));
	info->index = attr->index;
	info->port = attr->port_num;
	info->kind = attr->gid_type;
	info->vlan = 0xffff;
	info->ifindex = 0;
	memset(info->mac, 0, sizeof(info->mac));

	rcu_read_lock();
	netdev = rcu_dereference(attr->ndev);
	if (netdev) {
		info->ifindex = READ_ONCE(netdev->ifindex);
		info->vlan = rdma_vlan_dev_vlan_id(netdev);
		if (netdev->addr_len == ETH_ALEN)
			ether_addr_copy(info->mac, netdev->dev_addr);
	}
	rcu_read_unlock();
}
