/* SPDX-License-Identifier: GPL-2.0 */
/* GIDs. */
#ifndef XRDMA_VERBS_GID_H
#define XRDMA_VERBS_GID_H

#include <linux/types.h>

struct ib_gid_attr;

/**
 * struct xrdma_ib_gid_info - a GID attribute without pointers
 * @gid: the GID.
 * @mac: hardware address of its interface.
 * @index: in the table of the port.
 * @vlan: VLAN of the interface, 0xffff if none.
 * @port: port number.
 * @kind: enum ib_gid_type.
 * @ifindex: of the interface, 0 if gone.
 */
struct xrdma_ib_gid_info {
	u8 gid[16];
	u8 mac[6];
	u16 index;
	u16 vlan;
	u32 port;
	u32 kind;
	int ifindex;
};

void xrdma_ib_gid_read(const struct ib_gid_attr *attr,
		       struct xrdma_ib_gid_info *info);

#endif /* XRDMA_VERBS_GID_H */
