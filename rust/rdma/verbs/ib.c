// SPDX-License-Identifier: GPL-2.0
/*
 * ib_core and uverbs: functions that Rust cannot call because they are inline,
 * are macros, or need the internals of a net device.
 */
#include <linux/device.h>
#include <linux/dim.h>
#include <linux/etherdevice.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/irq_poll.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/workqueue.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_netlink.h>
#include <rdma/uverbs_ioctl.h>

#include "services/ends.h"
#include "verbs/ib.h"

/**
 * struct xrdma_link - a registered link type
 * @end: its end, and that of the devices.
 * @ops: what the core and the devices point to.
 * @driver_id: of the devices.
 */
struct xrdma_link {
	struct xrdma_end end;
	struct rdma_link_ops ops;
	enum rdma_driver_id driver_id;
};

/* The one there is. */
static struct xrdma_link *xrdma_link;
static DEFINE_MUTEX(xrdma_link_mutex);

/*
 * Afterwards no device can be added, and all there were have gone, and with them
 * the last pointer to the operations.
 */
static void xrdma_link_end(struct xrdma_end *e)
{
	struct xrdma_link *l = container_of(e, struct xrdma_link, end);

	rdma_link_unregister(&l->ops);
	ib_unregister_driver(l->driver_id);
	mutex_lock(&xrdma_link_mutex);
	WRITE_ONCE(xrdma_link, NULL);
	mutex_unlock(&xrdma_link_mutex);
}

/*
 * Registers a link type, of which there may be one; @type stays. A link type of
 * that name may exist: the core says nothing then but in the log. -EBUSY,
 * -EEXIST, -ENOMEM, -ENODEV without services. Process context.
 */
struct xrdma_link *xrdma_link_register(const char *type, u32 driver_id,
				       xrdma_newlink_fn newlink,
				       xrdma_dellink_fn dellink)
{
	struct xrdma_link *l = kzalloc(sizeof(*l), GFP_KERNEL);
	int ret = -EBUSY;

	if (!l)
		return ERR_PTR(-ENOMEM);
	l->driver_id = driver_id;
	l->ops.type = type;
	l->ops.newlink = newlink;
	l->ops.dellink = dellink;
	mutex_lock(&xrdma_link_mutex);
	if (!xrdma_link) {
		WRITE_ONCE(xrdma_link, l);
		ret = 0;
	}
	mutex_unlock(&xrdma_link_mutex);
	if (ret)
		goto free;
	rdma_link_register(&l->ops);
	if (!l->ops.list.next) {
		WRITE_ONCE(xrdma_link, NULL);
		ret = -EEXIST;
		goto free;
	}
	ret = xrdma_end_add(&l->end, XRDMA_END_LINKS, xrdma_link_end);
	if (!ret)
		return l;
	xrdma_link_end(&l->end);
free:
	kfree(l);
	return ERR_PTR(ret);
}

/* Its counterpart. Waits for calls under way. Process context. */
void xrdma_link_unregister(struct xrdma_link *l)
{
	xrdma_end_now(&l->end);
	kfree(l);
}

/* The operations of the link type; for its calls, while which it is registered. */
const struct rdma_link_ops *xrdma_link_ops(void)
{
	return &READ_ONCE(xrdma_link)->ops;
}

/* ib_alloc_device() is a macro. */
struct ib_device *xrdma_ib_alloc_device(size_t size, struct net *net)
{
	return _ib_alloc_device(size, net);
}

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

/* rdma_get_udp_sport() is inline. */
u16 xrdma_ib_udp_sport(u32 flow_label, u32 local_qpn, u32 remote_qpn)
{
	return rdma_get_udp_sport(flow_label, local_qpn, remote_qpn);
}

/* Formats into a buffer of the core's without a Rust formatter. */
void xrdma_ib_fw_version(char *text, size_t len, u64 version)
{
	snprintf(text, len, "%llu.%llu.%llu", (version >> 32) & 0xffff,
		 (version >> 16) & 0xffff, version & 0xffff);
}

/* rdma_udata_to_uverbs_attr_bundle() is an inline container_of(). */
struct ib_ucontext *xrdma_ib_udata_context(const struct ib_udata *udata)
{
	return container_of(udata, struct uverbs_attr_bundle,
			    driver_udata)->context;
}

/* A member of an anonymous group, whose name bindgen makes up. */
struct ib_udata *xrdma_ib_attrs_udata(struct uverbs_attr_bundle *attrs)
{
	return attrs ? &attrs->driver_udata : NULL;
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

/* The accessors of attributes are inline. */
u32 xrdma_ib_dm_handle(struct uverbs_attr_bundle *attrs)
{
	return uverbs_attr_get_uobject(attrs, UVERBS_ATTR_ALLOC_DM_HANDLE)->id;
}

/* The attributes of a port are too large for the stack. In units of 100 Mb/s. */
int xrdma_ib_port_speed(struct ib_device *dev, u32 port, u64 *speed)
{
	struct ib_port_speed_info info;
	struct ib_port_attr *attr;
	int ret;

	attr = kzalloc(sizeof(*attr), GFP_KERNEL);
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
 * The core sets the event handler, its context and the list of openers of an
 * XRC target after the driver has created it, and enters the first opener under
 * this lock: before that an event would find the setting half done.
 */
bool xrdma_ib_target_opened(struct ib_qp *qp)
{
	unsigned long flags;
	bool opened;

	spin_lock_irqsave(&qp->device->qp_open_list_lock, flags);
	opened = qp->open_list.next && !list_empty(&qp->open_list);
	spin_unlock_irqrestore(&qp->device->qp_open_list_lock, flags);
	return opened;
}

/*
 * Exported, but declared in a private header of the core (restrack.h). The name
 * in the list is the module's, as for other kernel-owned objects.
 */
void rdma_restrack_new(struct rdma_restrack_entry *res,
		       enum rdma_restrack_type type);
void rdma_restrack_set_name(struct rdma_restrack_entry *res,
			    const char *caller);
void rdma_restrack_add(struct rdma_restrack_entry *res);
void rdma_restrack_del(struct rdma_restrack_entry *res);

/* Needs the declarations above. */
void xrdma_ib_track_qp(struct ib_qp *qp)
{
	rdma_restrack_new(&qp->res, RDMA_RESTRACK_QP);
	rdma_restrack_set_name(&qp->res, KBUILD_MODNAME);
	rdma_restrack_add(&qp->res);
}

/* As above. Waits for those that hold a reference on the entry. */
void xrdma_ib_untrack_qp(struct ib_qp *qp)
{
	rdma_restrack_del(&qp->res);
}

/* flush_work() is exported; this keeps its struct out of the Rust bindings. */
void xrdma_ib_flush_work(struct work_struct *work)
{
	flush_work(work);
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

/*
 * Waits until nobody polls a kernel user's queue, which events have ceased to
 * start. ib_free_cq() does that too, but irq_poll_disable() returns when the
 * handler has called irq_poll_complete(); after that ib_poll_handler() still
 * arms the queue and feeds @cq->dim, and ib_free_cq() frees both. Softirqs are
 * readers of RCU. The polling is enabled again for ib_free_cq() to disable it.
 * Process context.
 */
void xrdma_ib_end_polling(struct ib_cq *cq)
{
	if (cq->poll_ctx != IB_POLL_SOFTIRQ)
		return;
	irq_poll_disable(&cq->iop);
	synchronize_rcu_expedited();
	irq_poll_enable(&cq->iop);
}

/* `rdma dev set ... adaptive-moderation`: for new queues. A bit field. */
bool xrdma_ib_is_adaptive(const struct ib_device *dev)
{
	return dev->use_cq_dim;
}

/*
 * Lets `rdma res show cq` say of a process's queue whether its moderation is
 * adaptive. The core looks at nothing but whether there is a pointer: what it
 * feeds and frees itself are the queues of kernel users.
 */
void xrdma_ib_show_adaptive(struct ib_cq *cq, bool on)
{
	static struct dim shown;

	WRITE_ONCE(cq->dim, on ? &shown : NULL);
}
