// SPDX-License-Identifier: GPL-2.0
/*
 * A network namespace with a net device late0 does not end until told to: nobody can get
 * it any more, but everything in it is there. "held" says how many are held so;
 * writing to "release" lets them go, and holds none from then on.
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/wait.h>
#include <net/net_namespace.h>

static atomic_t held = ATOMIC_INIT(0);
static bool released;
static DECLARE_WAIT_QUEUE_HEAD(queue);

/* Called before anything else of the kind, since it was registered last. */
static void hold_pre_exit(struct net *net)
{
	struct net_device *dev = dev_get_by_name(net, "late0");

	if (!dev)
		return;
	dev_put(dev);
	atomic_inc(&held);
	wait_event_idle(queue, READ_ONCE(released));
	atomic_dec(&held);
}

static struct pernet_operations hold_ops = { .pre_exit = hold_pre_exit };

static void release(void)
{
	WRITE_ONCE(released, true);
	wake_up_all(&queue);
}

static int held_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&held));
}

static int release_set(const char *value, const struct kernel_param *param)
{
	release();
	return 0;
}

static const struct kernel_param_ops held_ops = { .get = held_get };
module_param_cb(held, &held_ops, NULL, 0444);
static const struct kernel_param_ops release_ops = { .set = release_set };
module_param_cb(release, &release_ops, NULL, 0200);

static int __init hold_init(void)
{
	return register_pernet_device(&hold_ops);
}
module_init(hold_init);

static void __exit hold_exit(void)
{
	release();
	unregister_pernet_device(&hold_ops);
}
module_exit(hold_exit);

MODULE_DESCRIPTION("Holds a network namespace that ends");
MODULE_LICENSE("GPL");
