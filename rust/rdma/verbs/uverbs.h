/* SPDX-License-Identifier: GPL-2.0 */
/*
 * uverbs: the driver's own ioctl methods, and events for a file.
 */
#ifndef XRDMA_VERBS_UVERBS_H
#define XRDMA_VERBS_UVERBS_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_types.h>

/**
 * struct xrdma_rcv_qp_ops - what the methods of receive QPs by number call
 * @create: makes a target in @xrcd, brings it to RTR and registers @uobj for
 *	it: sets @uobj->object. @persistent: the target ends with its domain, not
 *	with its last registration.
 * @reg: registers @uobj for a target: sets @uobj->object.
 * @unreg: ends the registration that @object is.
 * @modify: changes a target.
 * @query: reads the attributes of a target.
 * @find: finds the registration of @ufile for a target.
 *
 * In process context, in a command of the file; the objects given are locked by
 * it. Those that return an int return 0 or a negative errno value.
 */
struct xrdma_rcv_qp_ops {
	int (*create)(struct ib_xrcd *xrcd, struct ib_uobject *uobj,
		      struct ib_qp_attr *attr, u32 mask, bool persistent,
		      struct ib_udata *udata, u32 *qpn);
	int (*reg)(struct ib_xrcd *xrcd, struct ib_uobject *uobj, u32 qpn);
	void (*unreg)(void *object);
	int (*modify)(struct ib_xrcd *xrcd, u32 qpn, struct ib_qp_attr *attr,
		      u32 mask, struct ib_udata *udata);
	int (*query)(struct ib_xrcd *xrcd, u32 qpn, struct ib_qp_attr *attr);
	int (*find)(struct ib_xrcd *xrcd, struct ib_uverbs_file *ufile, u32 qpn,
		    u32 *handle);
};

/**
 * struct xrdma_uverbs - the driver's own methods of a device
 * @defs: what ib_device.driver_def points to; first, so that the methods find
 *	the rest.
 * @rcv_qp: their implementation.
 */
struct xrdma_uverbs {
	struct uapi_definition defs[2];
	const struct xrdma_rcv_qp_ops *rcv_qp;
};

/*
 * The methods and their attributes, which belong to the driver's ABI. A driver
 * that has receive QPs by number defines this in C; safe Rust cannot hand in a
 * static of C. An empty entry ends it.
 */
extern const struct uapi_definition xrdma_driver_methods[];

void xrdma_uverbs_init(struct xrdma_uverbs *uverbs,
		       const struct uapi_definition *methods,
		       const struct xrdma_rcv_qp_ops *rcv_qp);
const struct xrdma_rcv_qp_ops *xrdma_rcv_qp_ops(const struct ib_device *dev);
void xrdma_uverbs_notify(struct ib_uverbs_file *ufile, struct ib_device *dev,
			 u32 type, u32 element);

#endif /* XRDMA_VERBS_UVERBS_H */
