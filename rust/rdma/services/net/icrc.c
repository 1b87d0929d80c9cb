// SPDX-License-Identifier: GPL-2.0
/*
 * ICRCs that are computed late: a super-packet to a virtual net device has none until
 * somebody cuts it, as a TCP packet has no checksum until hardware sends it
 * (CHECKSUM_PARTIAL). If nobody does, it has been in the memory of this kernel all the
 * way, and none is needed. Documentation/infiniband/xroce-design.rst describes it.
 *
 * The stack has no hook for that, but cuts what is encapsulated in UDP by the protocol
 * inside (skb_udp_tunnel_segment()). So such a super-packet claims to contain a protocol
 * that is ours. This is sk_buff's layout and calls from C, which is why it is in C.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include <net/gso.h>
#include <net/protocol.h>

#include "services/net/gso.h"
#include "services/net/icrc.h"
#include "services/net/train.h"

/* Bytes of the base transport header and of the ICRC (IBTA 9.2): no packet has fewer. */
#define XRDMA_ICRC_PACKET (12 + XRDMA_ICRC_LEN)

#define XRDMA_ICRC_HEADERS4 (sizeof(struct iphdr) + sizeof(struct udphdr))
#define XRDMA_ICRC_HEADERS6 (sizeof(struct ipv6hdr) + sizeof(struct udphdr))

/* Set before anything is sent. */
static xrdma_icrc_fn xrdma_icrc_compute;

/*
 * The protocols are ours in both families. Set before anything is sent; whatever safe Rust
 * has leaked may still be sending when it is taken back.
 */
static bool xrdma_icrc_hooked;

/* Writes the ICRC of @len bytes of UDP payload, which @headers bytes of headers precede. */
static void xrdma_icrc_write(u8 *payload, u32 len, u32 headers)
{
	u32 covered = len - XRDMA_ICRC_LEN;

	put_unaligned_le32(xrdma_icrc_compute(payload - headers, headers, payload, covered),
			   payload + covered);
}

/*
 * Writes the ICRC of @skb, a linear packet of ours, or the head of a super-packet that is
 * not finished, which has not been handed to the stack. Any context but hard interrupt.
 */
void xrdma_icrc_fill(struct sk_buff *skb)
{
	u8 *payload = skb_transport_header(skb) + sizeof(struct udphdr);

	xrdma_icrc_write(payload, skb_tail_pointer(skb) - payload,
			 payload - skb_network_header(skb));
}

/*
 * Whether the ICRCs of super-packets to @dev may wait: it takes them whole, so that it is
 * not to be expected that they are cut. For others it is best to compute an ICRC when the
 * packet is built, and has just been in the cache. A hint.
 */
bool xrdma_icrc_may_wait(const struct net_device *dev)
{
	netdev_features_t features = dev->features & dev->hw_enc_features;

	return READ_ONCE(xrdma_icrc_hooked) && (features & NETIF_F_FRAGLIST) &&
	       net_gso_ok(features, XRDMA_GSO_TYPE);
}

/*
 * Says of @skb, a super-packet that has its lengths, that its packets have no ICRC:
 * whoever cuts it calls xrdma_icrc_segment(), which computes them, and takes for granted
 * that it has a net device. @proto says which kind it is. skb->data is at the IP header.
 */
void xrdma_icrc_put_off(struct sk_buff *skb, u8 proto)
{
	int payload = skb_transport_offset(skb) + sizeof(struct udphdr);

	skb_set_inner_mac_header(skb, payload);
	skb_set_inner_network_header(skb, payload);
	skb_set_inner_transport_header(skb, payload);
	skb_set_inner_ipproto(skb, proto);
	skb->encapsulation = 1;
}

/* Whether xrdma_icrc_put_off() was called for @skb, which has the type of super-packets. */
bool xrdma_icrc_is_put_off(const struct sk_buff *skb)
{
	return skb->encapsulation && skb->inner_protocol_type == ENCAP_TYPE_IPPROTO &&
	       (skb->inner_ipproto == XRDMA_ICRC_PROTO ||
		skb->inner_ipproto == XRDMA_ICRC_PROTO_TRAIN);
}

/* Whether @skb, which has the type of super-packets, is a train. */
bool xrdma_icrc_is_train(const struct sk_buff *skb)
{
	return xrdma_icrc_is_put_off(skb) && skb->inner_ipproto == XRDMA_ICRC_PROTO_TRAIN;
}

/*
 * Whether the packets have the same addresses and ports; their data are the UDP payload.
 * Not xrdma_gso_same_flow(): skb->protocol may be that of a VLAN tag here.
 */
static bool xrdma_icrc_same_flow(const struct sk_buff *a, const struct sk_buff *b,
				 unsigned int headers)
{
	/* The ports are behind the addresses. */
	unsigned int addresses = headers == XRDMA_ICRC_HEADERS4 ? 2 * sizeof(struct in_addr) :
								  2 * sizeof(struct in6_addr);
	unsigned int at = sizeof(struct udphdr) + addresses;

	return !memcmp(a->data - at, b->data - at, addresses + 2 * sizeof(__be16));
}

/*
 * Makes @seg, whose data are the UDP payload of one packet, complete: with what IP and UDP
 * will write into its headers, which the ICRC covers, and the ICRC. False: no memory, or
 * no packet.
 */
static bool xrdma_icrc_seal(struct sk_buff *seg, u32 headers, u16 id)
{
	struct udphdr *udp;
	u8 *ip;

	if (seg->len < XRDMA_ICRC_PACKET || skb_ensure_writable(seg, seg->len))
		return false;
	udp = (struct udphdr *)(seg->data - sizeof(*udp));
	udp->len = htons(sizeof(*udp) + seg->len);
	ip = seg->data - headers;
	if (headers == XRDMA_ICRC_HEADERS4) {
		((struct iphdr *)ip)->id = htons(id);
		((struct iphdr *)ip)->tot_len = htons(headers + seg->len);
	} else {
		((struct ipv6hdr *)ip)->payload_len = udp->len;
	}
	xrdma_icrc_write(seg->data, seg->len, headers);
	return true;
}

/* Frees what @skb was cut into, which may be a list that it heads. It is the caller's. */
void xrdma_icrc_drop(struct sk_buff *skb, struct sk_buff *segs)
{
	kfree_skb_list(segs);
	skb->next = NULL;
	skb->prev = NULL;
}

/*
 * Cuts @skb, whose geometry nobody has changed, as __udp_gso_segment() does. The members
 * keep the headers that they were built with, and get what precedes the IP header of the
 * head. If its addresses were translated, these are not theirs: none goes on then, and no
 * ICRC would be right. @outer: bytes in front of the data.
 */
static struct sk_buff *xrdma_icrc_cut_list(struct sk_buff *skb, netdev_features_t features,
					   unsigned int headers, unsigned int outer)
{
	struct sk_buff *segs, *seg;

	/* As if there were no tunnel. */
	skb->mac_header -= outer;
	skb_set_network_header(skb, -(int)headers);
	skb_set_transport_header(skb, -(int)sizeof(struct udphdr));
	segs = skb_segment_list(skb, features, outer - headers);
	if (IS_ERR(segs)) {
		__skb_pull(skb, outer);
		skb->mac_header += outer;
		return segs;
	}
	for (seg = segs; seg; seg = seg->next)
		__skb_pull(seg, outer);
	/* The caller, which puts all headers in their places, measures this. */
	skb->mac_header += outer;
	for (seg = segs->next; seg; seg = seg->next) {
		if (!xrdma_icrc_same_flow(segs, seg, headers)) {
			xrdma_icrc_drop(skb, segs);
			return ERR_PTR(-EINVAL);
		}
	}
	return segs;
}

/*
 * Cuts @skb by length: a train, or packets of which somebody has moved or copied bytes.
 * @outer: bytes in front of the data.
 */
static struct sk_buff *xrdma_icrc_cut_bytes(struct sk_buff *skb, unsigned int headers,
					    unsigned int outer)
{
	/*
	 * With a VLAN tag in the packet, skb_segment() would look for the protocol in the
	 * payload. The caller sets that of all packets afterwards.
	 */
	skb->protocol = headers == XRDMA_ICRC_HEADERS4 ? htons(ETH_P_IP) :
							 htons(ETH_P_IPV6);
	/* As in __udp_gso_segment(): who changes bytes says that a checksum is due. */
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	if (skb->inner_ipproto == XRDMA_ICRC_PROTO_TRAIN)
		return xrdma_train_cut(skb, outer);
	if (skb_linearize(skb))
		return ERR_PTR(-ENOMEM);
	/* Each is to be linear, and has no checksum. */
	return skb_segment(skb, NETIF_F_HW_CSUM);
}

/*
 * Whether @headers bytes of IP and UDP header are in front of the data. If somebody has
 * inserted options or extension headers, which RoCEv2 does not have, they are not.
 */
static bool xrdma_icrc_has_headers(const struct sk_buff *skb, unsigned int headers)
{
	const u8 *at = skb->data - headers;

	if (headers == XRDMA_ICRC_HEADERS4) {
		const struct iphdr *ip = (const struct iphdr *)at;

		return ip->version == 4 && ip->ihl * 4 == sizeof(*ip) &&
		       ip->protocol == IPPROTO_UDP &&
		       ntohs(ip->tot_len) == headers + skb->len;
	} else {
		const struct ipv6hdr *ip = (const struct ipv6hdr *)at;

		return ip->version == 6 && ip->nexthdr == IPPROTO_UDP &&
		       sizeof(*ip) + ntohs(ip->payload_len) == headers + skb->len;
	}
}

/*
 * The protocol's gso_segment(): cuts a super-packet and computes the ICRC of each packet.
 * skb->data is behind the UDP header. The caller (skb_udp_tunnel_segment()) writes lengths
 * into the UDP headers, and IP writes lengths and identifications. Any context but hard
 * interrupt, in an RCU read section.
 */
static struct sk_buff *xrdma_icrc_segment(struct sk_buff *skb, netdev_features_t features,
					  unsigned int headers)
{
	unsigned int outer = skb_tnl_header_len(skb);
	struct sk_buff *segs, *seg;
	u16 id = 0;

	/* Nobody else's packet, and none that has come to be longer in front. */
	if (!xrdma_gso_is_type(skb) || outer < headers || skb_headroom(skb) < outer ||
	    !xrdma_icrc_has_headers(skb, headers))
		return ERR_PTR(-EINVAL);
	if (headers == XRDMA_ICRC_HEADERS4)
		id = ntohs(((const struct iphdr *)(skb->data - headers))->id);
	if (skb->inner_ipproto == XRDMA_ICRC_PROTO && skb_has_frag_list(skb) &&
	    !(skb_shinfo(skb)->gso_type & SKB_GSO_DODGY) &&
	    skb_pagelen(skb) == skb_shinfo(skb)->gso_size)
		segs = xrdma_icrc_cut_list(skb, features, headers, outer);
	else
		segs = xrdma_icrc_cut_bytes(skb, headers, outer);
	if (IS_ERR(segs))
		return segs;
	for (seg = segs; seg; seg = seg->next) {
		if (!xrdma_icrc_seal(seg, headers, id++)) {
			xrdma_icrc_drop(skb, segs);
			return ERR_PTR(-ENOMEM);
		}
	}
	return segs;
}

static struct sk_buff *xrdma_icrc_segment4(struct sk_buff *skb, netdev_features_t features)
{
	return xrdma_icrc_segment(skb, features, XRDMA_ICRC_HEADERS4);
}

static struct sk_buff *xrdma_icrc_segment6(struct sk_buff *skb, netdev_features_t features)
{
	return xrdma_icrc_segment(skb, features, XRDMA_ICRC_HEADERS6);
}

static const struct net_offload xrdma_icrc_offload4 = {
	.callbacks = {
		.gso_segment = xrdma_icrc_segment4,
	},
};

static const struct net_offload xrdma_icrc_offload6 = {
	.callbacks = {
		.gso_segment = xrdma_icrc_segment6,
	},
};

static void xrdma_icrc_unhook(u8 proto)
{
	inet6_del_offload(&xrdma_icrc_offload6, proto);
	inet_del_offload(&xrdma_icrc_offload4, proto);
}

/* False: somebody else has the protocol. */
static bool xrdma_icrc_hook(u8 proto)
{
	if (inet_add_offload(&xrdma_icrc_offload4, proto))
		return false;
	if (!inet6_add_offload(&xrdma_icrc_offload6, proto))
		return true;
	inet_del_offload(&xrdma_icrc_offload4, proto);
	return false;
}

/*
 * Takes the protocols. If somebody else has one of them, ICRCs do not wait. @compute: what
 * computes one. Process context, before anything is sent.
 */
void xrdma_icrc_init(xrdma_icrc_fn compute)
{
	xrdma_icrc_compute = compute;
	if (!xrdma_icrc_hook(XRDMA_ICRC_PROTO))
		return;
	if (!xrdma_icrc_hook(XRDMA_ICRC_PROTO_TRAIN)) {
		xrdma_icrc_unhook(XRDMA_ICRC_PROTO);
		return;
	}
	WRITE_ONCE(xrdma_icrc_hooked, true);
}

/*
 * Gives them back, and waits for those who are cutting. Super-packets that are still in
 * queues are dropped if somebody cuts them later. Process context, sleeps; nothing is
 * being sent.
 */
void xrdma_icrc_exit(void)
{
	if (!xrdma_icrc_hooked)
		return;
	WRITE_ONCE(xrdma_icrc_hooked, false);
	xrdma_icrc_unhook(XRDMA_ICRC_PROTO_TRAIN);
	xrdma_icrc_unhook(XRDMA_ICRC_PROTO);
}
