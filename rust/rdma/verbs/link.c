// SPDX-License-Identifier: GPL-2.0
/* The link type, by which users add devices; and its end. */
#include <linux/err.h>
#include <linux/kobject.h>
#include <linux/module.h>
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
 * @also: the same under a second name, if it has one.
 * @driver_id: of the devices.
 */
struct xrdma_link {
	struct xrdma_end end;
	struct rdma_link_ops ops;
	struct rdma_link_ops also;
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

	if (l->also.list.next)
		rdma_link_unregister(&l->also);
	rdma_link_unregister(&l->ops);
	ib_unregister_driver(l->driver_id);
	mutex_lock(&xrdma_link_mutex);
	WRITE_ONCE(xrdma_link, NULL);
	mutex_unlock(&xrdma_link_mutex);
}

/*
 * Is there a module of that name, or one that is being loaded? It has a kobject beside
 * ours. find_module() is not exported.
 */
static bool xrdma_module_there(const char *name)
{
	struct kset *modules = THIS_MODULE->mkobj.kobj.kset;
	struct kobject *found = modules ? kset_find_obj(modules, name) : NULL;

	kobject_put(found);
	return found;
}

/*
 * Registers a link type, of which there may be one; @type stays. A link type of
 * that name may exist: the core says nothing then but in the log. With @also, which stays
 * as well, devices can be added by that name too; it is the link type of module @not_with,
 * which must not be there: the core would warn. -EBUSY, -EEXIST, -ENOMEM, -ENODEV without
 * services. Process context.
 */
struct xrdma_link *xrdma_link_register(const char *type, const char *also,
				       const char *not_with, u32 driver_id,
				       xrdma_newlink_fn newlink,
				       xrdma_dellink_fn dellink)
{
	struct xrdma_link *l;
	int ret = -EBUSY;

	if (also && xrdma_module_there(not_with))
		return ERR_PTR(-EBUSY);
	l = kzalloc_obj(*l, GFP_KERNEL);
	if (!l)
		return ERR_PTR(-ENOMEM);
	l->driver_id = driver_id;
	l->ops.type = type;
	l->ops.newlink = newlink;
	l->ops.dellink = dellink;
	l->also = l->ops;
	l->also.type = also;
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
	if (also) {
		rdma_link_register(&l->also);
		if (!l->also.list.next)
			ret = -EBUSY;
	}
	if (!ret)
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
