/* SPDX-License-Identifier: GPL-2.0 */
/* Packets that are taken up on another CPU than the one on which they came. */
#ifndef XRDMA_SERVICES_NET_ARRIVAL_H
#define XRDMA_SERVICES_NET_ARRIVAL_H

#include <linux/atomic.h>
#include <linux/types.h>

struct sk_buff;
struct xrdma_tunnel;

/**
 * struct xrdma_peek - what the headers of a packet say that nobody has checked
 * @src: source address; IPv4 as ::ffff:a.b.c.d.
 * @dst: destination address.
 * @qpn: number of the queue pair that it is for.
 * @len: its bytes, from the UDP header on; all packets of a super-packet together.
 * @opcode: the first byte of the BTH.
 * @is_super: it is a super-packet.
 */
struct xrdma_peek {
	__u8 src[16];
	__u8 dst[16];
	__u32 qpn;
	__u32 len;
	__u8 opcode;
	bool is_super;
};

/* Packets of all queues that have not been received. */
extern atomic_t xrdma_arrivals;

void xrdma_arrivals_add(int count);
bool xrdma_peek(const struct sk_buff *skb, struct xrdma_peek *peek);
void xrdma_arrival_receive(struct xrdma_tunnel *t, struct sk_buff *skb);
void xrdma_arrival_drop(struct sk_buff *skb);
int xrdma_bulk_cpu(int home, bool is_default);

#endif /* XRDMA_SERVICES_NET_ARRIVAL_H */
