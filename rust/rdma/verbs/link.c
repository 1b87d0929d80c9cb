// SPDX-License-Identifier: GPL-2.0
/* The link type, by which users add devices; and its end. */
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>

#include "services/ends.h"
#include "verbs/link.h"

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
	struct xrdma_link *l = kzalloc_obj(*l, GFP_KERNEL);
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
