// SPDX-License-Identifier: GPL-2.0
/* Network devices: where they are, and their notifier. */
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "services/ends.h"
#include "services/net/netdev.h"

/*
 * dev_net() is inline, and the namespace may change while we look. NULL when it is
 * going away.
 */
struct net *xrdma_netdev_net_get(const struct net_device *dev)
{
	struct net *net;

	rcu_read_lock();
	net = maybe_get_net(dev_net_rcu(dev));
	rcu_read_unlock();
	return net;
}

/*
 * Whether @dev is registered, in the namespace with @cookie. Whoever asks when he
 * can be found by the notifier hears of what changes from then on: RTNL is taken,
 * under which a net device moves or goes. Process context, without RTNL.
 */
bool xrdma_netdev_is_in(struct net_device *dev, __u64 cookie)
{
	bool is_in;

	rtnl_lock();
	is_in = dev->reg_state == NETREG_REGISTERED &&
		dev_net(dev)->net_cookie == cookie;
	rtnl_unlock();
	return is_in;
}

struct xrdma_notifier {
	struct xrdma_end end;
	struct notifier_block nb;
	xrdma_netdev_fn fn;
};

static int xrdma_netdev_event(struct notifier_block *nb, unsigned long event,
			      void *ptr)
{
	struct xrdma_notifier *n = container_of(nb, struct xrdma_notifier, nb);
	enum xrdma_netdev_event what;

	switch (event) {
	case NETDEV_UP:
		what = XRDMA_NETDEV_UP;
		break;
	case NETDEV_DOWN:
		what = XRDMA_NETDEV_DOWN;
		break;
	case NETDEV_CHANGE:
		what = XRDMA_NETDEV_CHANGE;
		break;
	case NETDEV_REGISTER:
		what = XRDMA_NETDEV_REGISTER;
		break;
	case NETDEV_UNREGISTER:
		what = XRDMA_NETDEV_UNREGISTER;
		break;
	case NETDEV_CHANGEMTU:
		what = XRDMA_NETDEV_CHANGEMTU;
		break;
	case NETDEV_CHANGEADDR:
		what = XRDMA_NETDEV_CHANGEADDR;
		break;
	case NETDEV_CHANGENAME:
		what = XRDMA_NETDEV_CHANGENAME;
		break;
	default:
		return NOTIFY_DONE;
	}
	n->fn(what, netdev_notifier_info_to_dev(ptr));
	return NOTIFY_DONE;
}

static void xrdma_notifier_end(struct xrdma_end *e)
{
	unregister_netdevice_notifier(&container_of(e, struct xrdma_notifier, end)->nb);
}

/*
 * The notifier block must not move, and the events are C macros. Called for the
 * devices that are there already, too, with REGISTER and UP. All namespaces.
 * -ENODEV without services.
 */
struct xrdma_notifier *xrdma_notifier_register(xrdma_netdev_fn fn)
{
	struct xrdma_notifier *n = kzalloc_obj(*n, GFP_KERNEL);
	int ret;

	if (!n)
		return ERR_PTR(-ENOMEM);
	n->nb.notifier_call = xrdma_netdev_event;
	n->fn = fn;
	ret = register_netdevice_notifier(&n->nb);
	if (!ret) {
		ret = xrdma_end_add(&n->end, XRDMA_END_NOTIFIERS,
				    xrdma_notifier_end);
		if (ret)
			unregister_netdevice_notifier(&n->nb);
	}
	if (ret) {
		kfree(n);
		return ERR_PTR(ret);
	}
	return n;
}

/*
 * So that Rust need not know the layout. The core calls the notifier once more
 * for every device, with DOWN and UNREGISTER, before this returns.
 */
void xrdma_notifier_unregister(struct xrdma_notifier *n)
{
	xrdma_end_now(&n->end);
	kfree(n);
}
