// SPDX-License-Identifier: GPL-2.0
/* Received packets. */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/ipv6.h>

#include "services/net/skb.h"
#include "services/net/train.h"
#include "services/process.h"

/*
 * The payload of a packet, all of it in one piece, in memory that nobody writes
 * to any more: it is checked first and used afterwards. Linear data is the
 * kernel's own. Fragments may be pages that a process still has mapped
 * (splice(), MSG_ZEROCOPY, a packet socket's ring; not all of them are marked),
 * so they are copied, unless they are of a page pool: a driver's receive
 * buffer, or of a train, which no process has mapped. NULL: no memory.
 */
static const u8 *xrdma_rx_payload(struct sk_buff *skb)
{
	if (skb_is_nonlinear(skb)) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[0];

		if (skb->pp_recycle && skb_frags_readable(skb) &&
		    skb_headlen(skb) == sizeof(struct udphdr) &&
		    skb_shinfo(skb)->nr_frags == 1 && !skb_has_frag_list(skb) &&
		    !skb_has_shared_frag(skb) && !skb_zcopy(skb) &&
		    !PageHighMem(skb_frag_page(frag)))
			return skb_frag_address(frag);
		if (skb_linearize(skb))
			return NULL;
	}
	return (const u8 *)(udp_hdr(skb) + 1);
}

/* The whole control block, since UDP has handed the packet over. */
static struct xrdma_rx_info *xrdma_rx_info(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct xrdma_rx_info) > sizeof(skb->cb));
	return (struct xrdma_rx_info *)skb->cb;
}

/*
 * The IP header of a packet. False: it is not one that RoCEv2 allows; UDP has no others than
 * IPv4 and IPv6.
 */
static bool xrdma_rx_ip(struct sk_buff *skb)
{
	struct xrdma_rx_info *info = xrdma_rx_info(skb);

	if (skb->protocol == htons(ETH_P_IP)) {
		info->ip_len = sizeof(struct iphdr);
		info->tos = ip_hdr(skb)->tos;
	} else if (skb->protocol == htons(ETH_P_IPV6)) {
		info->ip_len = sizeof(struct ipv6hdr);
		info->tos = ipv6_get_dsfield(ipv6_hdr(skb));
	} else {
		return false;
	}
	info->ip = skb_network_header(skb);
	return skb_network_header_len(skb) == info->ip_len;
}

/*
 * Called once, with skb->data at the UDP header, as encap_rcv() gets it; what it
 * finds stays in the control block. All header accessors are inline. -ENOMEM: no
 * memory to put the packet together. -EINVAL: not a packet that RoCEv2 allows. IP
 * options and extension headers are refused: RoCEv2 has none, and the ICRC covers
 * the header as it is laid out without them. So is what is too long for any
 * packet, before it costs more memory: UDP has 64 KiB for who sends it in
 * fragments.
 */
int xrdma_rx_parse(struct sk_buff *skb)
{
	struct xrdma_rx_info *info = xrdma_rx_info(skb);
	const u8 *payload;
	unsigned int len;

	BUILD_BUG_ON(XRDMA_RX_MAX > U16_MAX);
	if (skb->len > XRDMA_RX_MAX)
		return -EINVAL;
	payload = xrdma_rx_payload(skb);
	if (!payload)
		return -ENOMEM;
	len = ntohs(udp_hdr(skb)->len);
	if (!xrdma_rx_ip(skb) || len < sizeof(struct udphdr) || len > skb->len)
		return -EINVAL;
	info->payload = payload;
	info->payload_len = len - sizeof(struct udphdr);
	return 0;
}

/*
 * The same for an intact train: what it finds of the payload are the transport headers.
 * Their lengths are as they were built.
 */
int xrdma_rx_parse_train(struct sk_buff *skb)
{
	struct xrdma_rx_info *info = xrdma_rx_info(skb);

	if (!xrdma_rx_ip(skb))
		return -EINVAL;
	info->payload = (const u8 *)(udp_hdr(skb) + 1);
	info->payload_len = skb_headlen(skb) - sizeof(struct udphdr);
	return 0;
}

/*
 * Where a packet went that is not parsed; IPv4 as ::ffff:a.b.c.d. False: to no
 * IP address. The accessors are inline.
 */
bool xrdma_rx_dst(const struct sk_buff *skb, __u8 dst[16])
{
	if (skb->protocol == htons(ETH_P_IP))
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, (struct in6_addr *)dst);
	else if (skb->protocol == htons(ETH_P_IPV6))
		memcpy(dst, &ipv6_hdr(skb)->daddr, sizeof(struct in6_addr));
	else
		return false;
	return true;
}

/*
 * The link layer that a packet came over, before it is detached from its device. The
 * accessors are inline.
 */
void xrdma_rx_read_link(const struct sk_buff *skb, struct xrdma_rx_link *link)
{
	const struct net_device *dev = skb->dev;

	if (skb_mac_header_was_set(skb) && dev->type == ARPHRD_ETHER &&
	    skb_mac_header(skb) + ETH_HLEN <= skb_network_header(skb))
		ether_addr_copy(link->smac, eth_hdr(skb)->h_source);
	else
		eth_zero_addr(link->smac);
	if (is_vlan_dev(dev))
		link->vlan = vlan_dev_vlan_id(dev);
	else if (skb_vlan_tag_present(skb))
		link->vlan = skb_vlan_tag_get_id(skb);
	else
		link->vlan = 0xffff;
}

/*
 * Takes from a packet all that dies with the RCU read section it came in: afterwards it
 * may be kept. If it was parsed, that fills in the rest of the control block; if not, only
 * its link is kept there (xrdma_rx_link()). The accessors are inline.
 */
void xrdma_rx_detach(struct sk_buff *skb, const struct xrdma_rx_link *link,
		     enum xrdma_rx_way way)
{
	struct xrdma_rx_info *info = xrdma_rx_info(skb);

	info->link = *link;
	info->way = way;
	skb->dev = NULL;
	skb_dst_drop(skb);
	/* IPsec states and what a bridge knows of a packet, its device included. */
	skb_ext_reset(skb);
	skb_orphan(skb);
}

/* The link layer that a detached packet came over. The control block is a cast. */
struct xrdma_rx_link xrdma_rx_link(struct sk_buff *skb)
{
	return xrdma_rx_info(skb)->link;
}

/* Inline in some configurations. The packet did its work. */
void xrdma_skb_consume(struct sk_buff *skb)
{
	consume_skb(skb);
}

/* Inline in C, with a lock class of this file. */
void xrdma_skb_queue_init(struct sk_buff_head *q)
{
	skb_queue_head_init(q);
}

/* Others may come in between: one packet of each CPU is too much then. */
static bool fits_in(const struct sk_buff_head *q, const u32 *bytes, u32 limit,
		    u32 max_bytes, struct xrdma_process *p)
{
	return skb_queue_len(q) < limit && *bytes < max_bytes &&
	       *bytes < xrdma_backlog_room(p);
}

/* @skb joins a queue, or leaves it: under the lock of the queue. */
static void charge(u32 *bytes, const struct sk_buff *skb, struct xrdma_process *p)
{
	WRITE_ONCE(*bytes, *bytes + skb->truesize);
	atomic64_add(skb->truesize, &p->backlog);
	atomic64_add(skb->truesize, &xrdma_backlog_all);
}

static void uncharge(u32 *bytes, const struct sk_buff *skb, struct xrdma_process *p)
{
	WRITE_ONCE(*bytes, *bytes - skb->truesize);
	atomic64_sub(skb->truesize, &p->backlog);
	atomic64_sub(skb->truesize, &xrdma_backlog_all);
}

/*
 * skb_queue_tail() has no limit. @bytes is what the packets in @q take in memory,
 * under the lock of @q; it counts for @p and for all as well. False: full, the
 * packet is still the caller's. Any context.
 */
bool xrdma_skb_queue_push(struct sk_buff_head *q, __u32 *bytes,
			  struct sk_buff *skb, __u32 limit, __u32 max_bytes,
			  struct xrdma_process *p)
{
	unsigned long flags;
	bool fits;

	spin_lock_irqsave(&q->lock, flags);
	fits = fits_in(q, bytes, limit, max_bytes, p);
	if (fits) {
		charge(bytes, skb, p);
		__skb_queue_tail(q, skb);
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return fits;
}

/* Whether packet @a comes before place @order. The places in a queue are close. */
static bool is_before(struct sk_buff *a, u16 order)
{
	return (s16)(xrdma_rx_info(a)->order - order) < 0;
}

/*
 * Where a packet with place @order comes behind: a packet of @q, or its head. The walk
 * begins at the end that is nearer by number, so it takes no step if packets come in
 * order or in reverse order.
 */
static struct sk_buff *predecessor(struct sk_buff_head *q, u16 order)
{
	struct sk_buff *first = skb_peek(q), *last = skb_peek_tail(q), *at;

	if (first && (s16)(order - xrdma_rx_info(first)->order) <
		     (s16)(xrdma_rx_info(last)->order - order)) {
		skb_queue_walk(q, at)
			if (!is_before(at, order))
				break;
		return at->prev;
	}
	skb_queue_reverse_walk(q, at)
		if (is_before(at, order))
			break;
	return at;
}

/*
 * As xrdma_skb_queue_push(), but in its place by @order. @limit bounds the walk to that
 * place. The places in @q differ by less than 2^15.
 */
bool xrdma_skb_queue_insert(struct sk_buff_head *q, __u32 *bytes,
			    struct sk_buff *skb, __u16 order, __u32 limit,
			    __u32 max_bytes, struct xrdma_process *p)
{
	unsigned long flags;
	bool fits;

	xrdma_rx_info(skb)->order = order;
	spin_lock_irqsave(&q->lock, flags);
	fits = fits_in(q, bytes, limit, max_bytes, p);
	if (fits) {
		charge(bytes, skb, p);
		__skb_queue_after(q, predecessor(q, order), skb);
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return fits;
}

/* The empty case, which is the common one, takes no lock. */
struct sk_buff *xrdma_skb_queue_pop(struct sk_buff_head *q, __u32 *bytes,
				    struct xrdma_process *p)
{
	struct sk_buff *skb;
	unsigned long flags;

	if (skb_queue_empty_lockless(q))
		return NULL;
	spin_lock_irqsave(&q->lock, flags);
	skb = __skb_dequeue(q);
	if (skb)
		uncharge(bytes, skb, p);
	spin_unlock_irqrestore(&q->lock, flags);
	return skb;
}

/* As xrdma_skb_queue_pop(), unless the first packet comes behind place @order. */
struct sk_buff *xrdma_skb_queue_pop_until(struct sk_buff_head *q, __u32 *bytes,
					  __u16 order, struct xrdma_process *p)
{
	struct sk_buff *skb;
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	skb = skb_peek(q);
	if (skb && is_before(skb, order + 1)) {
		__skb_unlink(skb, q);
		uncharge(bytes, skb, p);
	} else {
		skb = NULL;
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return skb;
}

/* Inline in C. */
__u32 xrdma_skb_queue_len(const struct sk_buff_head *q)
{
	return skb_queue_len_lockless(q);
}

/*
 * Whether more than half is taken of what fits_in() lets in now. Without the lock,
 * for which READ_ONCE() is needed. A hint. Any context.
 */
bool xrdma_skb_queue_is_half_full(const struct sk_buff_head *q, const __u32 *bytes,
				  __u32 limit, __u32 max_bytes,
				  const struct xrdma_process *p)
{
	u32 count = skb_queue_len_lockless(q);

	/* The common case, and one packet is no queue. */
	if (count <= 1)
		return false;
	return count > limit / 2 ||
	       READ_ONCE(*bytes) > min_t(u64, max_bytes, xrdma_backlog_room(p)) / 2;
}

/* skb_queue_purge() does not count. */
void xrdma_skb_queue_purge(struct sk_buff_head *q, __u32 *bytes,
			   struct xrdma_process *p)
{
	struct sk_buff *skb;

	while ((skb = xrdma_skb_queue_pop(q, bytes, p)))
		kfree_skb(skb);
}

/*
 * Kept with the rest. Each packet has a control block of its own. Both have the
 * same bytes, which nobody writes to and which stay where they are: skb_clone()
 * moves those of zero-copy packets only, and no such packet gets past
 * __netif_receive_skb_core().
 */
struct sk_buff *xrdma_skb_share(struct sk_buff *skb)
{
	return skb_clone(skb, GFP_ATOMIC | __GFP_NOWARN);
}

/*
 * A copy of packet @part of a train that was parsed, to be kept: behind IP and UDP header it has
 * the transport headers of the train, and then its own payload. So the memory of the train does
 * not have to stay for the sake of one of its packets. NULL: no memory, or no such packet. Any
 * context.
 */
struct sk_buff *xrdma_skb_copy_part(const struct sk_buff *skb, __u8 part)
{
	const struct xrdma_rx_info *info = (const struct xrdma_rx_info *)skb->cb;
	u32 before = info->payload - info->ip, len = xrdma_train_mtu(skb);
	const u8 *payload = xrdma_train_payload(skb, part, &len);
	struct xrdma_rx_info *copied;
	struct sk_buff *one;

	if (!payload)
		return NULL;
	one = alloc_skb(before + info->payload_len + len, GFP_ATOMIC | __GFP_NOWARN);
	if (!one)
		return NULL;
	skb_put_data(one, info->ip, before + info->payload_len);
	skb_put_data(one, payload, len);
	/* What the headers do not say of the train. */
	skb_shinfo(one)->gso_size = skb_shinfo(skb)->gso_size;
	skb_shinfo(one)->gso_segs = skb_shinfo(skb)->gso_segs;
	copied = xrdma_rx_info(one);
	*copied = *info;
	copied->ip = one->data;
	copied->payload = one->data + before;
	copied->way = XRDMA_RX_TRAIN_PART;
	copied->part = part;
	return one;
}

/*
 * The payload of a packet that was parsed, and is a train or was copied from one: as
 * xrdma_train_payload(), but of what was copied its own, whatever @index is.
 */
const __u8 *xrdma_skb_train_payload(const struct sk_buff *skb, __u32 index, __u32 *len)
{
	const struct xrdma_rx_info *info = (const struct xrdma_rx_info *)skb->cb;
	const u8 *payload = info->payload + info->payload_len;

	if (info->way == XRDMA_RX_TRAIN)
		return xrdma_train_payload(skb, index, len);
	*len = min_t(u32, *len, skb_tail_pointer(skb) - payload);
	return payload;
}
