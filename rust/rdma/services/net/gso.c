// SPDX-License-Identifier: GPL-2.0
/*
 * Super-packets: packets of one flow that pass the stack as one sk_buff, a list of
 * packets that are complete but for their headers being pulled (SKB_GSO_FRAGLIST).
 * Documentation/infiniband/xroce-design.rst describes them. All of it is sk_buff's
 * layout and inline functions, which is why it is in C.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "services/net/gso.h"

/*
 * SKB_GSO_UDP_TUNNEL with skb->encapsulation 0 is no packet of a tunnel: UDP hands it
 * to encap_rcv() whole, cuts it as one without that bit where it has to be cut, and
 * gives it to no other socket whole. Net devices that would put it into a tunnel of
 * their own do not have the feature of this name, so it is cut before them.
 */
#define XRDMA_GSO_TYPE (SKB_GSO_FRAGLIST | SKB_GSO_UDP_L4 | SKB_GSO_UDP_TUNNEL)

/* Both have their headers where the offsets in the sk_buff say. */
static bool xrdma_gso_same_flow(const struct sk_buff *a, const struct sk_buff *b)
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
 * Whether a received packet is a super-packet of this kind. Nobody else makes packets
 * of this type: GRO sets no tunnel bit on a list, and a process (tun, packet sockets)
 * cannot ask for a list.
 */
bool xrdma_gso_is_ours(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->gso_type == XRDMA_GSO_TYPE && !skb->encapsulation;
}

/*
 * Whether it is as it was sent, but for what the stack writes into the
 * headers of the head, and nobody else has it or a part of it: a capture may have
 * another head of the same list. skb->data is at the UDP header. If not, the stack's
 * own segmentation can take it apart, whatever has become of it.
 */
bool xrdma_gso_is_intact(struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	unsigned int size = info->gso_size, rest = skb->data_len, segs = 1;
	const struct sk_buff *seg;

	if (skb_shared(skb) || skb_cloned(skb) || info->nr_frags || skb_zcopy(skb) ||
	    skb_headlen(skb) != sizeof(struct udphdr) + size)
		return false;
	for (seg = info->frag_list; seg; seg = seg->next) {
		if (++segs > XRDMA_GSO_SEGS || skb_shared(seg) || skb_cloned(seg) ||
		    skb_is_nonlinear(seg) || seg->sk || seg->destructor ||
		    skb_is_gso(seg))
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
 * Takes an intact one apart: @skb becomes its first packet, with the headers that were
 * built for it. Returns the others, chained through sk_buff.next, with skb->data at the
 * UDP header like @skb, but without a net device. They have the headers that they were
 * built with; the head alone has been through the stack.
 */
struct sk_buff *xrdma_gso_take_apart(struct sk_buff *skb)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	unsigned int len = sizeof(struct udphdr) + info->gso_size;
	struct sk_buff *list = info->frag_list, *seg;

	/* Before its truesize changes, which is what is given back. */
	skb_orphan(skb);
	info->frag_list = NULL;
	skb->len -= skb->data_len;
	skb->data_len = 0;
	skb->truesize = SKB_TRUESIZE(skb_end_offset(skb));
	skb_gso_reset(skb);
	udp_hdr(skb)->len = htons(len);
	if (skb->protocol == htons(ETH_P_IP)) {
		ip_hdr(skb)->tot_len = htons(sizeof(struct iphdr) + len);
		ip_send_check(ip_hdr(skb));
	} else {
		ipv6_hdr(skb)->payload_len = htons(len);
	}
	for (seg = list; seg; seg = seg->next)
		__skb_push(seg, sizeof(struct udphdr));
	return list;
}
