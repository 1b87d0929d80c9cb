/* SPDX-License-Identifier: GPL-2.0 */
/* Devices and their ports. */
#ifndef XRDMA_VERBS_DEVICE_H
#define XRDMA_VERBS_DEVICE_H

#include <linux/types.h>

struct attribute_group;
struct ib_device;
struct net_device;

/**
 * struct xrdma_ib_link - the net device of a port
 * @mtu: its MTU.
 * @speed: enum ib_port_speed.
 * @width: enum ib_port_width.
 * @active: running, with carrier.
 */
struct xrdma_ib_link {
	u32 mtu;
	u16 speed;
	u8 width;
	bool active;
};

extern const struct attribute_group xrdma_ib_device_group;

void xrdma_ib_setup_device(struct ib_device *dev, struct net_device *netdev,
			   const char *description);
int xrdma_ib_link_read(struct ib_device *dev, u32 port,
		       struct xrdma_ib_link *link);
bool xrdma_ib_port_active(struct ib_device *dev, u32 port);
void xrdma_ib_fw_version(char *text, size_t len, u64 version);
int xrdma_ib_group(struct ib_device *dev, u32 port, u64 cookie, const u8 *gid,
		   bool join);
int xrdma_ib_port_speed(struct ib_device *dev, u32 port, u64 *speed);

#endif /* XRDMA_VERBS_DEVICE_H */
