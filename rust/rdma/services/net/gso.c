// SPDX-License-Identifier: GPL-2.0
/*
 * Super-packets: packets of one flow that pass the stack as one sk_buff, a list of
 * packets that are complete but for their headers being pulled (SKB_GSO_FRAGLIST). Those of
 * another kind are in train.c.
 * Documentation/infiniband/xroce-design.rst describes them. All of it is sk_buff's
 * layout and inline functions, which is why it is in C.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "services/net/gso.h"
#include "services/net/icrc.h"

/* What somebody turns off who wants single packets (`ethtool -K`). */
#define XRDMA_GSO_FEATURES (NETIF_F_GSO | NETIF_F_GSO_FRAGLIST)

/*
 * Whether super-packets may go to @dev at this time: nobody has turned them off. The
 * stack cuts them for a net device that does not take them whole. What somebody wants
 * counts, not what @dev has: without scatter-gather the kernel takes NETIF_F_GSO away,
 * and packets that are linear do not need that.
 */
bool xrdma_gso_admits(const struct net_device *dev)
{
	return !(dev->hw_features & ~dev->wanted_features & XRDMA_GSO_FEATURES);
}

/*
 * Whether super-packets may go along @dst: not through encapsulations that are part of the
 * route, nor IPsec, which cuts at once.
 */
bool xrdma_gso_passes(const struct dst_entry *dst)
{
	return !dst->lwtstate && !dst_xfrm(dst);
}

/* Both have their headers where the offsets in the sk_buff say. */
bool xrdma_gso_same_flow(const struct sk_buff *a, const struct sk_buff *b)
{
	if (a->protocol != b->protocol ||
	    skb_network_header_len(a) != skb_network_header_len(b) ||
	    udp_hdr(a)->source != udp_hdr(b)->source ||
	    udp_hdr(a)->dest != udp_hdr(b)->dest)
		return false;
	if (a->protocol == htons(ETH_P_IP))
		return ip_hdr(a)->saddr == ip_hdr(b)->saddr &&
		       ip_hdr(a)->daddr == ip_hdr(b)->daddr;
	return ipv6_addr_equal(&ipv6_hdr(a)->saddr, &ipv6_hdr(b)->saddr) &&
	       ipv6_addr_equal(&ipv6_hdr(a)->daddr, &ipv6_hdr(b)->daddr);
}

/*
 * Whether whoever cuts the super-packet gives @b, the one behind @a, the headers that
 * it has: the ICRC covers them. The identification of IPv4 counts up.
 */
bool xrdma_gso_follows(const struct sk_buff *a, const struct sk_buff *b)
{
	if (!xrdma_gso_same_flow(a, b))
		return false;
	if (a->protocol == htons(ETH_P_IP)) {
		const struct iphdr *x = ip_hdr(a), *y = ip_hdr(b);

		return x->tos == y->tos && x->ttl == y->ttl &&
		       x->frag_off == y->frag_off &&
		       (u16)(ntohs(x->id) + 1) == ntohs(y->id);
	}
	return *(const __be32 *)ipv6_hdr(a) == *(const __be32 *)ipv6_hdr(b) &&
	       ipv6_hdr(a)->hop_limit == ipv6_hdr(b)->hop_limit;
}

/*
 * Begins one with @skb, a linear packet that has not been handed to the stack and goes
 * to @dst. Afterwards xrdma_gso_add() what xrdma_gso_fits(), and xrdma_gso_end().
 * @lacks_icrc: its ICRC is not computed yet; @g says whether it may stay so. False: it is
 * to go alone. Caller is in an RCU read section.
 */
bool xrdma_gso_begin(struct xrdma_gso *g, struct sk_buff *skb,
		     const struct dst_entry *dst, bool lacks_icrc)
{
	const struct net_device *dev = dst_dev_rcu(dst);
	unsigned int headers = skb_network_header_len(skb) + sizeof(struct udphdr);
	unsigned int max_size = min_t(unsigned int, GSO_LEGACY_MAX_SIZE,
				      netif_get_gso_max_size(dev, skb));

	if (!xrdma_gso_admits(dev))
		return false;
	/* What is longer than the path takes is to be refused packet by packet. */
	if (!xrdma_gso_passes(dst) || skb->len > dst_mtu(dst))
		return false;
	g->skb = skb;
	g->last = skb;
	g->size = skb->len - headers;
	g->segs = 1;
	g->max_segs = min_t(unsigned int, XRDMA_GSO_SEGS,
			    READ_ONCE(dev->gso_max_segs));
	g->max_len = max_size > XRDMA_GSO_SLACK ? max_size - XRDMA_GSO_SLACK : 0;
	g->headroom = max_t(unsigned int, XRDMA_GSO_HEADROOM, LL_RESERVED_SPACE(dev));
	g->closed = false;
	g->puts_off = lacks_icrc && xrdma_icrc_may_wait(dev);
	return g->size && skb_headroom(skb) >= g->headroom;
}

/* Whether @seg, built behind all that are in @g, may be added. */
bool xrdma_gso_fits(const struct xrdma_gso *g, const struct sk_buff *seg)
{
	const struct sk_buff *skb = g->skb;
	unsigned int headers = skb_network_header_len(seg) + sizeof(struct udphdr);

	return !g->closed && g->segs < g->max_segs && seg->len > headers &&
	       seg->len - headers <= g->size && skb->len + seg->len <= g->max_len &&
	       seg->sk == skb->sk && seg->destructor == skb->destructor &&
	       seg->priority == skb->priority && skb_headroom(seg) >= g->headroom &&
	       xrdma_gso_follows(g->last, seg);
}

/*
 * Adds @seg, which fits and is in no list. The head now stands for its memory: what it
 * is charged to gets it back when the head is freed or received.
 */
void xrdma_gso_add(struct xrdma_gso *g, struct sk_buff *seg)
{
	struct sk_buff *skb = g->skb;

	seg->destructor = NULL;
	seg->sk = NULL;
	skb->truesize += seg->truesize;
	/* Its headers stay in front of it. */
	__skb_pull(seg, skb_network_header_len(seg) + sizeof(struct udphdr));
	if (g->last == skb)
		skb_shinfo(skb)->frag_list = seg;
	else
		g->last->next = seg;
	g->last = seg;
	g->segs++;
	g->closed = seg->len < g->size;
	skb->data_len += seg->len;
	skb->len += seg->len;
}

/*
 * The head, which has members, is ready for ip_local_out(), which writes the length into
 * the IP header.
 */
void xrdma_gso_end(struct xrdma_gso *g)
{
	struct sk_buff *skb = g->skb;

	skb_shinfo(skb)->gso_size = g->size;
	skb_shinfo(skb)->gso_segs = g->segs;
	skb_shinfo(skb)->gso_type = XRDMA_GSO_TYPE;
	/* Else a net device that could take it whole would not. */
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	/* UDP cuts off what is beyond this. */
	udp_hdr(skb)->len = htons(skb->len - skb_network_header_len(skb));
	if (g->puts_off)
		xrdma_icrc_put_off(skb, XRDMA_ICRC_PROTO);
}

/* Whether a packet has the type of super-packets, whoever has made it. */
bool xrdma_gso_is_type(const struct sk_buff *skb)
{
	return (skb_shinfo(skb)->gso_type & ~SKB_GSO_DODGY) == XRDMA_GSO_TYPE;
}

/*
 * Whether a received packet is of this kind: a super-packet, or what xrdma_gro_complete()
 * has made. Nobody else makes packets of this type: other GRO sets encapsulation with the
 * tunnel bit, and a process (tun, packet sockets) cannot ask for a list. The stack may
 * add SKB_GSO_DODGY if it has moved bytes of the members into the head.
 */
bool xrdma_gso_is_ours(const struct sk_buff *skb)
{
	return xrdma_gso_is_type(skb) &&
	       (!skb->encapsulation || xrdma_icrc_is_put_off(skb));
}

/*
 * Whether it is as xrdma_gso_end() left it, but for what the stack writes into the
 * headers of the head, and nobody else has it or a part of it: a capture may have
 * another head of the same list. Its members have come through no net device: they are
 * as they were built. skb->data is at the UDP header. If not, the stack's own
 * segmentation can take it apart, whatever has become of it.
 */
bool xrdma_gso_is_intact(struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	unsigned int size = info->gso_size, rest = skb->data_len, segs = 1;
	const struct sk_buff *seg;

	if (info->gso_type != XRDMA_GSO_TYPE || skb_shared(skb) || skb_cloned(skb) ||
	    info->nr_frags || skb_zcopy(skb) ||
	    skb_headlen(skb) != sizeof(struct udphdr) + size)
		return false;
	for (seg = info->frag_list; seg; seg = seg->next) {
		if (++segs > XRDMA_GSO_SEGS || skb_shared(seg) || skb_cloned(seg) ||
		    skb_is_nonlinear(seg) || seg->sk || seg->destructor ||
		    skb_is_gso(seg) || seg->dev || skb_mac_header_was_set(seg))
			return false;
		if (!seg->len || seg->len > size || seg->len > rest ||
		    (seg->next && seg->len != size))
			return false;
		if (!skb_transport_header_was_set(seg) ||
		    skb_transport_header(seg) + sizeof(struct udphdr) != seg->data ||
		    !xrdma_gso_same_flow(skb, seg))
			return false;
		rest -= seg->len;
	}
	return !rest && segs > 1;
}

/*
 * Takes an intact one apart, which may be one of gro.c: @skb becomes its first packet, with
 * the headers that were built for it. Returns the others, chained through sk_buff.next,
 * with skb->data at the UDP header like @skb. They have the headers that they were built
 * with; the head alone has been through the stack.
 */
struct sk_buff *xrdma_gso_take_apart(struct sk_buff *skb)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	unsigned int len = sizeof(struct udphdr) + info->gso_size;
	struct sk_buff *list = info->frag_list, *seg;

	/* Before its truesize changes, which is what is given back. */
	skb_orphan(skb);
	for (seg = list; seg; seg = seg->next) {
		skb->len -= seg->len;
		skb->data_len -= seg->len;
		__skb_push(seg, sizeof(struct udphdr));
	}
	info->frag_list = NULL;
	/* Not by subtraction: a copy of the head may stand for less than that of all. */
	skb->truesize = SKB_TRUESIZE(skb_end_offset(skb)) + skb->data_len;
	skb_gso_reset(skb);
	skb->encapsulation = 0;
	udp_hdr(skb)->len = htons(len);
	if (skb->protocol == htons(ETH_P_IP)) {
		ip_hdr(skb)->tot_len = htons(sizeof(struct iphdr) + len);
		ip_send_check(ip_hdr(skb));
	} else {
		ipv6_hdr(skb)->payload_len = htons(len);
	}
	return list;
}
