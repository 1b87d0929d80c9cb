// SPDX-License-Identifier: GPL-2.0
/* ib_core and uverbs: functions that are inline or macros there. */
#include <linux/workqueue.h>
#include <net/netlink.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>
#include <rdma/uverbs_ioctl.h>

#include "ib.h"

/* ib_alloc_device() is a macro. */
struct ib_device *xrdma_ib_alloc_device(size_t size, struct net *net)
{
	return _ib_alloc_device(size, net);
}

/* rdma_get_udp_sport() is inline. */
u16 xrdma_ib_udp_sport(u32 flow_label, u32 local_qpn, u32 remote_qpn)
{
	return rdma_get_udp_sport(flow_label, local_qpn, remote_qpn);
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

/* The accessors of attributes are inline. */
u32 xrdma_ib_dm_handle(struct uverbs_attr_bundle *attrs)
{
	return uverbs_attr_get_uobject(attrs, UVERBS_ATTR_ALLOC_DM_HANDLE)->id;
}

/* flush_work() is exported; this keeps its struct out of the Rust bindings. */
void xrdma_ib_flush_work(struct work_struct *work)
{
	flush_work(work);
}

/* `rdma dev set ... adaptive-moderation`: for new queues. A bit field. */
bool xrdma_ib_is_adaptive(const struct ib_device *dev)
{
	return dev->use_cq_dim;
}

/* nla_nest_start() and nla_nest_end() are inline. NULL: no room. */
struct nlattr *xrdma_ib_res_begin(struct sk_buff *msg)
{
	return nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
}

/* As above. */
void xrdma_ib_res_end(struct sk_buff *msg, struct nlattr *table)
{
	nla_nest_end(msg, table);
}
