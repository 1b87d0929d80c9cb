/* SPDX-License-Identifier: GPL-2.0 */
/* Trains: super-packets whose packets are not built. */
#ifndef XRDMA_SERVICES_NET_TRAIN_H
#define XRDMA_SERVICES_NET_TRAIN_H

#include <linux/types.h>

struct dst_entry;
struct sk_buff;

/**
 * struct xrdma_train - the geometry of a train
 * @first: bytes of its transport headers: of those of its first packet, and what follows them.
 * @middle: bytes of those that all packets have: the first of these.
 * @longest: bytes of the longest transport headers that a packet may have, when it is allocated.
 * @mtu: bytes of payload of each packet but the last, a power of two.
 * @count: packets.
 * @last: bytes of payload of the last packet, @mtu at most.
 * @seam: the packet with which the next message begins, when it is cut; 0: none does.
 */
struct xrdma_train {
	__u32 first;
	__u32 middle;
	__u32 longest;
	__u32 mtu;
	__u32 count;
	__u32 last;
	__u32 seam;
};

__u8 xrdma_train_room(const struct dst_entry *dst);
void xrdma_train_end(struct sk_buff *skb, const struct xrdma_train *train);
bool xrdma_train_is_intact(struct sk_buff *skb);
struct sk_buff *xrdma_train_cut(struct sk_buff *skb, unsigned int outer);
__u32 xrdma_train_count(const struct sk_buff *skb);
__u32 xrdma_train_mtu(const struct sk_buff *skb);
__u8 *xrdma_train_payload(const struct sk_buff *skb, __u32 index, __u32 *len);

#endif /* XRDMA_SERVICES_NET_TRAIN_H */
