/* SPDX-License-Identifier: GPL-2.0 */
/* Super-packets. Declarations for udp.c. bindgen does not read them. */
#ifndef XRDMA_SERVICES_NET_GSO_H
#define XRDMA_SERVICES_NET_GSO_H

#include <linux/types.h>

struct sk_buff;

/* Packets in a super-packet, at most; those in core UDP GRO are no more either. */
#define XRDMA_GSO_SEGS 64

bool xrdma_gso_is_ours(const struct sk_buff *skb);
bool xrdma_gso_is_intact(struct sk_buff *skb);
struct sk_buff *xrdma_gso_take_apart(struct sk_buff *skb);

#endif /* XRDMA_SERVICES_NET_GSO_H */
