/* SPDX-License-Identifier: GPL-2.0 */
/* Routes, and packets that are sent along them. */
#ifndef XRDMA_SERVICES_NET_ROUTE_H
#define XRDMA_SERVICES_NET_ROUTE_H

#include <linux/types.h>

struct sk_buff;
struct xrdma_dst;
struct xrdma_sender;
struct xrdma_train;
struct xrdma_tunnel;

/**
 * struct xrdma_flow - what decides the route of a packet
 * @src: source address; IPv4 as ::ffff:a.b.c.d.
 * @dst: destination address, of the same family.
 * @oif: index of the interface that packets leave by; 0: any.
 * @flow_label: IPv6 flow label, 20 bits.
 * @sport: UDP source port, host order.
 * @tos: IPv4 type of service or IPv6 traffic class.
 * @sl: service level of the verbs; 0: none.
 * @hop_limit: IPv4 time to live or IPv6 hop limit; 0: the route's default.
 */
struct xrdma_flow {
	__u8 src[16];
	__u8 dst[16];
	__u32 oif;
	__u32 flow_label;
	__u16 sport;
	__u8 tos;
	__u8 sl;
	__u8 hop_limit;
};

/**
 * struct xrdma_route - a flow, and the route that it takes at this time
 * @flow: the flow.
 * @hold: where its destination is, or NULL.
 * @ip_id: identification of the next IPv4 packet.
 * @v6: the flow is IPv6.
 * @local: it leads to this host.
 * @hop_limit: the value in force.
 * @priority: that of the packets.
 * @burst: packets that are best handed over at a time, as far as is known.
 * @train_room: KiB of payload that a train may have, as far as is known; 0: none may.
 */
struct xrdma_route {
	struct xrdma_flow flow;
	struct xrdma_dst *hold;
	__u16 ip_id;
	bool v6;
	bool local;
	__u8 hop_limit;
	__u8 priority;
	__u8 burst;
	__u8 train_room;
};

/**
 * struct xrdma_tx - one packet being built
 * @skb: the packet.
 * @headers: IP header and UDP header, final.
 * @payload: UDP payload, to be filled.
 * @headers_len: 28 or 48.
 * @icrc_may_wait: if the packet is handed over as one that lacks its ICRC, that may never
 *	have to be computed. If false, it would be computed then.
 */
struct xrdma_tx {
	struct sk_buff *skb;
	const __u8 *headers;
	__u8 *payload;
	__u32 headers_len;
	bool icrc_may_wait;
};

/**
 * struct xrdma_tx_list - packets ready to go
 * @head: first packet, chained through sk_buff.next.
 * @tail: last packet.
 * @count: number of packets, those of trains included.
 */
struct xrdma_tx_list {
	struct sk_buff *head;
	struct sk_buff *tail;
	__u32 count;
};

/**
 * struct xrdma_tx_done - what became of packets that were handed over; added up
 * @supers: super-packets that were made of them.
 * @dropped: packets that were dropped on the spot, those in super-packets included.
 */
struct xrdma_tx_done {
	__u32 supers;
	__u32 dropped;
};

int xrdma_route_resolve(struct xrdma_tunnel *t, struct xrdma_route *r);
void xrdma_route_release(struct xrdma_tunnel *t, struct xrdma_route *r);
bool xrdma_route_valid(struct xrdma_tunnel *t, const struct xrdma_route *r);
bool xrdma_tx_alloc(struct xrdma_tunnel *t, struct xrdma_route *r,
		    const struct xrdma_sender *s, __u32 len, struct xrdma_tx *tx);
__u8 *xrdma_tx_alloc_train(struct xrdma_tunnel *t, struct xrdma_route *r,
			   const struct xrdma_sender *s, const struct xrdma_train *train,
			   struct sk_buff **skbp);
void xrdma_tx_end_train(struct xrdma_route *r, struct sk_buff *skb,
			const struct xrdma_train *train);
void xrdma_tx_push(struct xrdma_tx_list *list, struct sk_buff *skb, bool may_join,
		   bool lacks_icrc);
void xrdma_tx_flush(struct xrdma_tx_list *list, struct xrdma_tx_done *done);
void xrdma_tx_drop(struct sk_buff *skb);
void xrdma_tx_purge(struct xrdma_tx_list *list);

#endif /* XRDMA_SERVICES_NET_ROUTE_H */
