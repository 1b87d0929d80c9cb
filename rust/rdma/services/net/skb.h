/* SPDX-License-Identifier: GPL-2.0 */
/* Received packets. */
#ifndef XRDMA_SERVICES_NET_SKB_H
#define XRDMA_SERVICES_NET_SKB_H

#include <linux/types.h>

struct sk_buff;
struct sk_buff_head;
struct xrdma_process;

/**
 * enum xrdma_rx_way - how a packet came
 * @XRDMA_RX_ALONE: by itself, or cut from something larger.
 * @XRDMA_RX_HEAD: as the head of a super-packet that was whole and intact.
 * @XRDMA_RX_HEAD_PUT_OFF: the same, whose ICRC was never computed (icrc.c).
 * @XRDMA_RX_MEMBER: as another packet of one.
 * @XRDMA_RX_MERGED: as the first of packets that GRO has put together. The others came
 *	alone.
 * @XRDMA_RX_TRAIN: it is a train (train.c), which stands for all its packets.
 * @XRDMA_RX_TRAIN_PART: it is a copy of one packet of a train.
 */
enum xrdma_rx_way {
	XRDMA_RX_ALONE,
	XRDMA_RX_HEAD,
	XRDMA_RX_HEAD_PUT_OFF,
	XRDMA_RX_MEMBER,
	XRDMA_RX_MERGED,
	XRDMA_RX_TRAIN,
	XRDMA_RX_TRAIN_PART,
};

/**
 * struct xrdma_rx_link - what completions of datagrams want to know of the link layer
 * @smac: source MAC address; zero when the packet has none.
 * @vlan: VLAN identifier, 0xffff when there is none.
 */
struct xrdma_rx_link {
	__u8 smac[6];
	__u16 vlan;
};

/**
 * struct xrdma_rx_info - what the receive side wants to know of one packet
 * @link: the link layer that it came over.
 * @payload_len: bytes of UDP payload; of a train, or a packet of one, only those of the
 *	transport headers of the train.
 * @ip_len: 20 or 40.
 * @tos: IPv4 type of service or IPv6 traffic class.
 * @way: how it came (enum xrdma_rx_way).
 * @part: which packet of a train it is, if it is one (XRDMA_RX_TRAIN_PART).
 * @order: its place in a queue that is kept in order (xrdma_skb_queue_insert()).
 * @ip: first byte of the IP header; the UDP header follows it directly.
 * @payload: first byte of the UDP payload; linear.
 * @note: for the present holder of the packet (RxSkb::note()).
 *
 * This is kept in the control block of the packet, all of which it takes.
 */
struct xrdma_rx_info {
	struct xrdma_rx_link link;
	__u16 payload_len;
	__u8 ip_len;
	__u8 tos;
	__u8 way;
	__u8 part;
	__u16 order;
	const __u8 *ip;
	const __u8 *payload;
	__u64 note[2];
};

/*
 * The longest packet, from the UDP header on: BTH, XRCETH, RETH, immediate data, a
 * payload of the largest MTU and the ICRC (IBTA 9.2, 9.3).
 */
#define XRDMA_RX_MAX (8 + 12 + 4 + 16 + 4 + 4096 + 4)

int xrdma_rx_parse(struct sk_buff *skb);
int xrdma_rx_parse_train(struct sk_buff *skb);
bool xrdma_rx_dst(const struct sk_buff *skb, __u8 dst[16]);
void xrdma_rx_read_link(const struct sk_buff *skb, struct xrdma_rx_link *link);
void xrdma_rx_detach(struct sk_buff *skb, const struct xrdma_rx_link *link,
		     enum xrdma_rx_way way);
struct xrdma_rx_link xrdma_rx_link(struct sk_buff *skb);
void xrdma_skb_consume(struct sk_buff *skb);
struct sk_buff *xrdma_skb_share(struct sk_buff *skb);
struct sk_buff *xrdma_skb_copy_part(const struct sk_buff *skb, __u8 part);
const __u8 *xrdma_skb_train_payload(const struct sk_buff *skb, __u32 index, __u32 *len);
bool xrdma_skb_queue_insert(struct sk_buff_head *q, __u32 *bytes,
			    struct sk_buff *skb, __u16 order, __u32 limit,
			    __u32 max_bytes, struct xrdma_process *p);
struct sk_buff *xrdma_skb_queue_pop_until(struct sk_buff_head *q, __u32 *bytes,
					  __u16 order, struct xrdma_process *p);
void xrdma_skb_queue_init(struct sk_buff_head *q);
bool xrdma_skb_queue_push(struct sk_buff_head *q, __u32 *bytes,
			  struct sk_buff *skb, __u32 limit, __u32 max_bytes,
			  struct xrdma_process *p);
struct sk_buff *xrdma_skb_queue_pop(struct sk_buff_head *q, __u32 *bytes,
				    struct xrdma_process *p);
__u32 xrdma_skb_queue_len(const struct sk_buff_head *q);
bool xrdma_skb_queue_is_half_full(const struct sk_buff_head *q, const __u32 *bytes,
				  __u32 limit, __u32 max_bytes,
				  const struct xrdma_process *p);
void xrdma_skb_queue_purge(struct sk_buff_head *q, __u32 *bytes,
			   struct xrdma_process *p);

#endif /* XRDMA_SERVICES_NET_SKB_H */
