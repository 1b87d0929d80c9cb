// SPDX-License-Identifier: GPL-2.0
/*
 * A net device nic0 that the kernel takes for hardware: when its namespace ends, it is
 * moved to the initial namespace instead of being deleted like devices that
 * `ip link add` creates. It drops all packets.
 *
 * Writing to the parameter "barrier" returns when namespaces that are ending now have
 * ended.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/net_namespace.h>

static struct net_device *nic;

static netdev_tx_t nic_xmit(struct sk_buff *skb, struct net_device *dev)
{
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops nic_ops = {
	.ndo_start_xmit = nic_xmit,
	.ndo_set_mac_address = eth_mac_addr,
};

static void nic_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &nic_ops;
	eth_hw_addr_random(dev);
}

static int barrier_set(const char *value, const struct kernel_param *param)
{
	net_ns_barrier();
	return 0;
}

static const struct kernel_param_ops barrier_ops = { .set = barrier_set };
module_param_cb(barrier, &barrier_ops, NULL, 0200);

static int __init nic_init(void)
{
	int ret;

	nic = alloc_netdev(0, "nic0", NET_NAME_USER, nic_setup);
	if (!nic)
		return -ENOMEM;
	ret = register_netdev(nic);
	if (ret)
		free_netdev(nic);
	return ret;
}
module_init(nic_init);

static void __exit nic_exit(void)
{
	unregister_netdev(nic);
	free_netdev(nic);
}
module_exit(nic_exit);

MODULE_DESCRIPTION("A net device that outlives its namespace");
MODULE_LICENSE("GPL");
