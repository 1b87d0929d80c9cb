// SPDX-License-Identifier: GPL-2.0
/*
 * Generic receive offload: packets that a net device has received one by one pass IP and
 * UDP as one sk_buff, which is laid out like a super-packet (gso.c). The kernel's own GRO
 * of UDP refuses packets without a checksum, which those of RoCEv2 are. All of it is
 * sk_buff's layout and inline functions, which is why it is in C.
 */
#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/addrconf.h>
#include <net/gro.h>

#include "services/net/gro.h"
#include "services/net/gso.h"

/*
 * Whether a packet may be one of several, as far as it alone says: no IP options and no
 * extension headers, since the head gets its lengths back without; no UDP checksum, which
 * RoCEv2 does not need, since that of the head would be lost. Its headers are in one piece
 * then, in memory of its own, and where the offsets in the sk_buff say.
 */
static bool xrdma_gro_may(struct sk_buff *skb)
{
	unsigned int headers = skb_gro_offset(skb), ip_len;
	const struct udphdr *uh;

	if (skb->protocol == htons(ETH_P_IP))
		ip_len = sizeof(struct iphdr);
	else if (skb->protocol == htons(ETH_P_IPV6))
		ip_len = sizeof(struct ipv6hdr);
	else
		return false;
	if (NAPI_GRO_CB(skb)->flush || skb_is_gso(skb) || skb_cloned(skb) ||
	    !pskb_may_pull(skb, headers))
		return false;
	skb_set_network_header(skb, NAPI_GRO_CB(skb)->network_offset);
	uh = udp_hdr(skb);
	return skb_network_header_len(skb) == ip_len &&
	       skb_transport_offset(skb) + sizeof(*uh) == headers && !uh->check &&
	       skb_gro_len(skb) && ntohs(uh->len) == sizeof(*uh) + skb_gro_len(skb);
}

/*
 * Whether a packet that may be one of several is for this namespace. Those that are
 * forwarded are left alone: what forwarding does to an IP header it would do to that of the
 * head only. With a VRF, UDP does not find the socket again (udp_gro_complete()). Caller is
 * in an RCU read section.
 */
static bool xrdma_gro_is_local(const struct sk_buff *skb)
{
	struct net *net = dev_net_rcu(skb->dev);

	if (skb->pkt_type != PACKET_HOST || netif_is_l3_slave(skb->dev))
		return false;
	if (skb->protocol == htons(ETH_P_IP))
		return __ip_dev_find(net, ip_hdr(skb)->daddr, false);
	return IS_ENABLED(CONFIG_IPV6) &&
	       ipv6_chk_addr(net, &ipv6_hdr(skb)->daddr, NULL, 0);
}

/* Where the number of the queue pair is, from the UDP payload on, and its bytes (IBTA 9.2.5). */
#define XRDMA_BTH_QPN 5
#define XRDMA_QPN_LEN 3

/*
 * Whether both are for the same queue pair: what is put together may be steered to another
 * CPU, and the packets of another queue pair would be overtaken there. @p has the same
 * headers in front of its payload as @skb.
 */
static bool xrdma_gro_same_qp(const struct sk_buff *p, const struct sk_buff *skb)
{
	int offset = skb_gro_offset(skb) + XRDMA_BTH_QPN;
	u8 x[XRDMA_QPN_LEN], y[XRDMA_QPN_LEN];
	const u8 *a = skb_header_pointer(p, offset, sizeof(x), x);
	const u8 *b = skb_header_pointer(skb, offset, sizeof(y), y);

	return a && b && !memcmp(a, b, sizeof(x));
}

/* Adds @skb, which may be one of several, to those of @p. */
static void xrdma_gro_add(struct sk_buff *p, struct sk_buff *skb)
{
	skb_mark_not_on_list(skb);
	/* Its headers stay in front of it. */
	__skb_pull(skb, skb_gro_offset(skb));
	if (NAPI_GRO_CB(p)->last == p)
		skb_shinfo(p)->frag_list = skb;
	else
		NAPI_GRO_CB(p)->last->next = skb;
	NAPI_GRO_CB(p)->last = skb;
	NAPI_GRO_CB(p)->count++;
	/* The head stands for the memory of all. */
	skb->destructor = NULL;
	skb->sk = NULL;
	p->truesize += skb->truesize;
	p->data_len += skb->len;
	p->len += skb->len;
	skb_shinfo(p)->flags |= skb_shinfo(skb)->flags & SKBFL_SHARED_FRAG;
	NAPI_GRO_CB(skb)->same_flow = 1;
}

/*
 * The socket's gro_receive() (udp_gro_receive()): GRO has compared the addresses and ports
 * with those of the packets that it holds. Returns the one of @held that is complete and
 * is to go on, if any: one that @skb may not be added to is not to be overtaken by it.
 * Nothing is concluded for one packet from another: each is checked by itself when they
 * are taken apart. They are of one length, and their headers are such that whoever cuts
 * them again restores them, since the ICRC covers these. Softirq, in an RCU read section.
 */
struct sk_buff *xrdma_gro_receive(struct sock *sk, struct list_head *held,
				  struct sk_buff *skb)
{
	unsigned int len = skb_gro_len(skb);
	struct sk_buff *p;

	if (!xrdma_gro_may(skb))
		NAPI_GRO_CB(skb)->flush = 1;
	list_for_each_entry(p, held, list) {
		if (!NAPI_GRO_CB(p)->same_flow)
			continue;
		if (NAPI_GRO_CB(skb)->flush || len > skb_shinfo(p)->gso_size ||
		    p->len + len >= GSO_LEGACY_MAX_SIZE ||
		    !xrdma_gso_follows(NAPI_GRO_CB(p)->last, skb) ||
		    !xrdma_gro_same_qp(p, skb))
			return p;
		xrdma_gro_add(p, skb);
		/* Only the last may be shorter. */
		if (len < skb_shinfo(p)->gso_size ||
		    NAPI_GRO_CB(p)->count >= XRDMA_GSO_SEGS)
			return p;
		return NULL;
	}
	/* The first: the others have the same destination. */
	if (!NAPI_GRO_CB(skb)->flush && !xrdma_gro_is_local(skb))
		NAPI_GRO_CB(skb)->flush = 1;
	return NULL;
}

/*
 * The socket's gro_complete(): several packets go on as @skb. UDP has written the length of
 * all into the UDP header, and takes them for packets of a tunnel. @offset is behind that
 * header. Softirq, in an RCU read section.
 */
int xrdma_gro_complete(struct sock *sk, struct sk_buff *skb, int offset)
{
	skb->encapsulation = 0;
	skb_shinfo(skb)->gso_type = XRDMA_GSO_TYPE;
	skb_shinfo(skb)->gso_segs = NAPI_GRO_CB(skb)->count;
	/* Those who cut it would sum it up. */
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	return 0;
}

/*
 * Whether a received packet, of which xrdma_gso_is_ours() is true, is as GRO left it, but
 * for what the stack writes into the headers of the head, and nobody else has it or a part
 * of it. skb->data is at the UDP header.
 */
bool xrdma_gro_is_intact(struct sk_buff *skb)
{
	unsigned int size = skb_shinfo(skb)->gso_size, rest = skb->len, segs = 0;
	const struct sk_buff *seg;

	if (skb_shinfo(skb)->gso_type != XRDMA_GSO_TYPE || skb_shared(skb) ||
	    skb_cloned(skb))
		return false;
	skb_walk_frags(skb, seg) {
		/* A member of a super-packet has come through no net device. */
		if (!seg->dev || ++segs >= XRDMA_GSO_SEGS || skb_shared(seg) ||
		    skb_cloned(seg) || skb_has_frag_list(seg) || skb_is_gso(seg))
			return false;
		if (!seg->len || seg->len > size || seg->len > rest ||
		    !skb_transport_header_was_set(seg) ||
		    skb_transport_header(seg) + sizeof(struct udphdr) != seg->data ||
		    !xrdma_gso_same_flow(skb, seg))
			return false;
		rest -= seg->len;
	}
	return segs && rest == sizeof(struct udphdr) + size;
}
