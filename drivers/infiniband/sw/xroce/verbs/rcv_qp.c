// SPDX-License-Identifier: GPL-2.0
/*
 * Receive QPs by number: the driver's own methods of uverbs. Macros build the
 * static tables that describe the methods, and inline functions read their
 * attributes, which are those of xroce's ABI; hence C. The methods call the
 * functions of struct xrdma_rcv_qp_ops, which lead to rcv_qp.rs.
 */
#include <linux/overflow.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_std_types.h>
#include <rdma/xroce-abi.h>

#define UVERBS_MODULE_NAME xroce
#include <rdma/uverbs_named_ioctl.h>

/* Of crate rdma. */
#include "verbs/uverbs.h"

static_assert(XROCE_ID_DRIVER_NS == UVERBS_ID_DRIVER_NS);

/*
 * What uverbs keeps of one open of an XRC domain: struct ib_uxrcd_object of the
 * core's private uverbs.h. The count makes a close fail with EBUSY; the core
 * counts queue pairs and SRQs in it, and registrations belong there as well.
 * The size that the core itself gives is compared before the first use.
 */
struct xroce_uxrcd {
	struct ib_uobject uobject;
	atomic_t refcnt;
};

/* A registration; uobject.object is Rust's. */
struct xroce_rcv_qp {
	struct ib_uobject uobject;
	struct xroce_uxrcd *uxrcd;
};

/* The domain's uobject, as far as we may count in it. */
static struct xroce_uxrcd *uxrcd_of(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(attrs, XROCE_ATTR_RCV_QP_XRCD);

	if (IS_ERR(uobj))
		return ERR_CAST(uobj);
	if (uobj->uapi_object->type_attrs->obj_size != sizeof(struct xroce_uxrcd))
		return ERR_PTR(-EOPNOTSUPP);
	return container_of(uobj, struct xroce_uxrcd, uobject);
}

/*
 * The core's structure from user space's, as far as the mask goes: what it does
 * not name is zero. Ports are indices for the core; the driver looks at
 * everything else. It lives as long as the command.
 */
static struct ib_qp_attr *attr_from_user(struct uverbs_attr_bundle *attrs,
					 struct ib_device *dev, u32 *mask)
{
	struct xroce_rcv_qp_attr user;
	struct ib_qp_attr *attr;
	int ret;

	ret = uverbs_copy_from_or_zero(&user, attrs, XROCE_ATTR_RCV_QP_ATTR);
	if (ret)
		return ERR_PTR(ret);
	attr = uverbs_zalloc(attrs, sizeof(*attr));
	if (IS_ERR(attr))
		return attr;
	*mask = user.attr_mask;
	if (user.reserved[0] || user.reserved[1] || user.dest.reserved)
		return ERR_PTR(-EINVAL);
	if (*mask & ~IB_QP_ATTR_STANDARD_BITS)
		return ERR_PTR(-EINVAL);
	if (*mask & IB_QP_STATE) {
		if (user.qp_state > IB_QPS_ERR)
			return ERR_PTR(-EINVAL);
		attr->qp_state = user.qp_state;
	}
	if (*mask & IB_QP_CUR_STATE) {
		if (user.cur_qp_state > IB_QPS_ERR)
			return ERR_PTR(-EINVAL);
		attr->cur_qp_state = user.cur_qp_state;
	}
	if (*mask & IB_QP_PORT) {
		if (!rdma_is_port_valid(dev, user.port_num))
			return ERR_PTR(-EINVAL);
		attr->port_num = user.port_num;
	}
	if (*mask & IB_QP_AV) {
		struct rdma_ah_attr *ah = &attr->ah_attr;

		if (!rdma_is_port_valid(dev, user.dest.port_num))
			return ERR_PTR(-EINVAL);
		ah->type = rdma_ah_find_type(dev, user.dest.port_num);
		if (user.dest.is_global) {
			rdma_ah_set_grh(ah, NULL, user.dest.flow_label,
					user.dest.sgid_index, user.dest.hop_limit,
					user.dest.traffic_class);
			rdma_ah_set_dgid_raw(ah, user.dest.dgid);
		}
		rdma_ah_set_sl(ah, user.dest.sl);
		rdma_ah_set_static_rate(ah, user.dest.static_rate);
		rdma_ah_set_port_num(ah, user.dest.port_num);
	}
	if (*mask & IB_QP_DEST_QPN)
		attr->dest_qp_num = user.dest_qp_num;
	if (*mask & IB_QP_RQ_PSN)
		attr->rq_psn = user.rq_psn;
	if (*mask & IB_QP_SQ_PSN)
		attr->sq_psn = user.sq_psn;
	/* A target has none, and who may set one is checked in the core's command only. */
	if (*mask & IB_QP_QKEY)
		return ERR_PTR(-EINVAL);
	if (*mask & IB_QP_ACCESS_FLAGS)
		attr->qp_access_flags = user.qp_access_flags;
	if (*mask & IB_QP_PKEY_INDEX)
		attr->pkey_index = user.pkey_index;
	if (*mask & IB_QP_PATH_MTU)
		attr->path_mtu = user.path_mtu;
	if (*mask & IB_QP_PATH_MIG_STATE)
		attr->path_mig_state = user.path_mig_state;
	if (*mask & IB_QP_MAX_DEST_RD_ATOMIC)
		attr->max_dest_rd_atomic = user.max_dest_rd_atomic;
	if (*mask & IB_QP_MIN_RNR_TIMER)
		attr->min_rnr_timer = user.min_rnr_timer;
	if (*mask & IB_QP_TIMEOUT)
		attr->timeout = user.timeout;
	if (*mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		attr->en_sqd_async_notify = !!user.en_sqd_async_notify;
	return attr;
}

/* The way back, for a query. */
static void attr_to_user(struct xroce_rcv_qp_attr *user, const struct ib_qp_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(&attr->ah_attr);

	*user = (struct xroce_rcv_qp_attr){
		.attr_mask = IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS |
			     IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_AV |
			     IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			     IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER |
			     IB_QP_PATH_MIG_STATE | IB_QP_TIMEOUT,
		.dest_qp_num = attr->dest_qp_num,
		.rq_psn = attr->rq_psn,
		.sq_psn = attr->sq_psn,
		.qkey = attr->qkey,
		.qp_access_flags = attr->qp_access_flags,
		.pkey_index = attr->pkey_index,
		.qp_state = attr->qp_state,
		.cur_qp_state = attr->cur_qp_state,
		.path_mtu = attr->path_mtu,
		.path_mig_state = attr->path_mig_state,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
		.min_rnr_timer = attr->min_rnr_timer,
		.timeout = attr->timeout,
		.port_num = attr->port_num,
		.dest = {
			.flow_label = grh->flow_label,
			.sgid_index = grh->sgid_index,
			.hop_limit = grh->hop_limit,
			.traffic_class = grh->traffic_class,
			.sl = rdma_ah_get_sl(&attr->ah_attr),
			.is_global = 1,
			.static_rate = rdma_ah_get_static_rate(&attr->ah_attr),
			.port_num = rdma_ah_get_port_num(&attr->ah_attr),
		},
	};
	memcpy(user->dest.dgid, grh->dgid.raw, sizeof(user->dest.dgid));
}

/* A new registration is complete: it counts in its open of the domain. */
static void registered(struct uverbs_attr_bundle *attrs, struct xroce_uxrcd *uxrcd)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(attrs, XROCE_ATTR_RCV_QP_HANDLE);
	struct xroce_rcv_qp *rcv_qp = container_of(uobj, struct xroce_rcv_qp, uobject);

	rcv_qp->uxrcd = uxrcd;
	atomic_inc(&uxrcd->refcnt);
	uverbs_finalize_uobj_create(attrs, XROCE_ATTR_RCV_QP_HANDLE);
}

/* Called for each end of a registration: destroyed, aborted, file or device gone. */
static int rcv_qp_free(struct ib_uobject *uobj, enum rdma_remove_reason why,
		       struct uverbs_attr_bundle *attrs)
{
	struct xroce_rcv_qp *rcv_qp = container_of(uobj, struct xroce_rcv_qp, uobject);

	xrdma_rcv_qp_ops(uobj->context->device)->unreg(uobj->object);
	atomic_dec(&rcv_qp->uxrcd->refcnt);
	return 0;
}

static int UVERBS_HANDLER(XROCE_METHOD_RCV_QP_CREATE)(struct uverbs_attr_bundle *attrs)
{
	struct ib_xrcd *xrcd = uverbs_attr_get_obj(attrs, XROCE_ATTR_RCV_QP_XRCD);
	struct ib_uobject *uobj = uverbs_attr_get_uobject(attrs, XROCE_ATTR_RCV_QP_HANDLE);
	struct xroce_uxrcd *uxrcd = uxrcd_of(attrs);
	struct ib_qp_attr *attr;
	u32 mask, qpn, flags;
	int ret;

	if (IS_ERR(uxrcd))
		return PTR_ERR(uxrcd);
	ret = uverbs_get_flags32(&flags, attrs, XROCE_ATTR_RCV_QP_FLAGS,
				 XROCE_RCV_QP_PERSISTENT);
	if (ret)
		return ret;
	attr = attr_from_user(attrs, xrcd->device, &mask);
	if (IS_ERR(attr))
		return PTR_ERR(attr);
	ret = xrdma_rcv_qp_ops(xrcd->device)->create(xrcd, uobj, attr, mask,
						     flags & XROCE_RCV_QP_PERSISTENT,
						     &attrs->driver_udata, &qpn);
	if (ret)
		return ret;
	registered(attrs, uxrcd);
	return uverbs_copy_to(attrs, XROCE_ATTR_RCV_QP_QPN, &qpn, sizeof(qpn));
}

static int UVERBS_HANDLER(XROCE_METHOD_RCV_QP_REG)(struct uverbs_attr_bundle *attrs)
{
	struct ib_xrcd *xrcd = uverbs_attr_get_obj(attrs, XROCE_ATTR_RCV_QP_XRCD);
	struct ib_uobject *uobj = uverbs_attr_get_uobject(attrs, XROCE_ATTR_RCV_QP_HANDLE);
	struct xroce_uxrcd *uxrcd = uxrcd_of(attrs);
	u32 qpn;
	int ret;

	if (IS_ERR(uxrcd))
		return PTR_ERR(uxrcd);
	ret = uverbs_copy_from(&qpn, attrs, XROCE_ATTR_RCV_QP_QPN);
	if (ret)
		return ret;
	ret = xrdma_rcv_qp_ops(xrcd->device)->reg(xrcd, uobj, qpn);
	if (ret)
		return ret;
	registered(attrs, uxrcd);
	return 0;
}

static int UVERBS_HANDLER(XROCE_METHOD_RCV_QP_MODIFY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_xrcd *xrcd = uverbs_attr_get_obj(attrs, XROCE_ATTR_RCV_QP_XRCD);
	struct ib_qp_attr *attr;
	u32 mask, qpn;
	int ret;

	ret = uverbs_copy_from(&qpn, attrs, XROCE_ATTR_RCV_QP_QPN);
	if (ret)
		return ret;
	attr = attr_from_user(attrs, xrcd->device, &mask);
	if (IS_ERR(attr))
		return PTR_ERR(attr);
	return xrdma_rcv_qp_ops(xrcd->device)->modify(xrcd, qpn, attr, mask,
						      &attrs->driver_udata);
}

static int UVERBS_HANDLER(XROCE_METHOD_RCV_QP_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_xrcd *xrcd = uverbs_attr_get_obj(attrs, XROCE_ATTR_RCV_QP_XRCD);
	const struct xrdma_rcv_qp_ops *ops = xrdma_rcv_qp_ops(xrcd->device);
	struct xroce_rcv_qp_attr user;
	struct ib_qp_attr *attr;
	u32 qpn, handle;
	int ret;

	attr = uverbs_zalloc(attrs, sizeof(*attr));
	if (IS_ERR(attr))
		return PTR_ERR(attr);
	ret = uverbs_copy_from(&qpn, attrs, XROCE_ATTR_RCV_QP_QPN);
	if (ret)
		return ret;
	ret = ops->query(xrcd, qpn, attr);
	if (ret)
		return ret;
	if (uverbs_attr_is_valid(attrs, XROCE_ATTR_RCV_QP_ATTR)) {
		attr_to_user(&user, attr);
		ret = uverbs_copy_to_struct_or_zero(attrs, XROCE_ATTR_RCV_QP_ATTR,
						    &user, sizeof(user));
		if (ret)
			return ret;
	}
	if (uverbs_attr_is_valid(attrs, XROCE_ATTR_RCV_QP_HANDLE)) {
		ret = ops->find(xrcd, attrs->ufile, qpn, &handle);
		if (ret)
			return ret;
		ret = uverbs_copy_to(attrs, XROCE_ATTR_RCV_QP_HANDLE, &handle,
				     sizeof(handle));
	}
	return ret;
}

/* Attributes that several methods have. */
#define ATTR_DOMAIN \
	UVERBS_ATTR_IDR(XROCE_ATTR_RCV_QP_XRCD, UVERBS_OBJECT_XRCD, \
			UVERBS_ACCESS_READ, UA_MANDATORY)
#define ATTR_NEW_HANDLE \
	UVERBS_ATTR_IDR(XROCE_ATTR_RCV_QP_HANDLE, XROCE_OBJECT_RCV_QP, \
			UVERBS_ACCESS_NEW, UA_MANDATORY)
#define ATTR_QPN \
	UVERBS_ATTR_PTR_IN(XROCE_ATTR_RCV_QP_QPN, UVERBS_ATTR_TYPE(u32), \
			   UA_MANDATORY)
#define ATTR_ATTR \
	UVERBS_ATTR_PTR_IN(XROCE_ATTR_RCV_QP_ATTR, \
			   UVERBS_ATTR_STRUCT(struct xroce_rcv_qp_attr, dest), \
			   UA_MANDATORY)

DECLARE_UVERBS_NAMED_METHOD(XROCE_METHOD_RCV_QP_CREATE,
	ATTR_DOMAIN,
	ATTR_NEW_HANDLE,
	UVERBS_ATTR_PTR_OUT(XROCE_ATTR_RCV_QP_QPN, UVERBS_ATTR_TYPE(u32),
			    UA_MANDATORY),
	ATTR_ATTR,
	UVERBS_ATTR_FLAGS_IN(XROCE_ATTR_RCV_QP_FLAGS, enum xroce_rcv_qp_flags,
			     UA_OPTIONAL));

DECLARE_UVERBS_NAMED_METHOD(XROCE_METHOD_RCV_QP_REG,
	ATTR_DOMAIN,
	ATTR_NEW_HANDLE,
	ATTR_QPN);

DECLARE_UVERBS_NAMED_METHOD_DESTROY(XROCE_METHOD_RCV_QP_UNREG,
	UVERBS_ATTR_IDR(XROCE_ATTR_RCV_QP_HANDLE, XROCE_OBJECT_RCV_QP,
			UVERBS_ACCESS_DESTROY, UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(XROCE_METHOD_RCV_QP_MODIFY,
	ATTR_DOMAIN,
	ATTR_QPN,
	ATTR_ATTR);

DECLARE_UVERBS_NAMED_METHOD(XROCE_METHOD_RCV_QP_QUERY,
	ATTR_DOMAIN,
	ATTR_QPN,
	UVERBS_ATTR_PTR_OUT(XROCE_ATTR_RCV_QP_ATTR,
			    UVERBS_ATTR_STRUCT(struct xroce_rcv_qp_attr, dest),
			    UA_OPTIONAL),
	UVERBS_ATTR_PTR_OUT(XROCE_ATTR_RCV_QP_HANDLE, UVERBS_ATTR_TYPE(u32),
			    UA_OPTIONAL));

ADD_UVERBS_METHODS(xrcd_methods, UVERBS_OBJECT_XRCD,
	&UVERBS_METHOD(XROCE_METHOD_RCV_QP_CREATE),
	&UVERBS_METHOD(XROCE_METHOD_RCV_QP_REG),
	&UVERBS_METHOD(XROCE_METHOD_RCV_QP_UNREG),
	&UVERBS_METHOD(XROCE_METHOD_RCV_QP_MODIFY),
	&UVERBS_METHOD(XROCE_METHOD_RCV_QP_QUERY));

/* A type without methods of its own, so not by the macro, whose list would be empty. */
static const struct uverbs_object_def rcv_qp_object = {
	.id = XROCE_OBJECT_RCV_QP,
	.type_attrs = &UVERBS_TYPE_ALLOC_IDR_SZ(sizeof(struct xroce_rcv_qp),
						rcv_qp_free),
};

const struct uapi_definition xrdma_driver_methods[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_XRCD, &xrcd_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(XROCE_OBJECT_RCV_QP, &rcv_qp_object),
	{},
};
