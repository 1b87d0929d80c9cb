// SPDX-License-Identifier: GPL-2.0
/* Routes, and the packets that are sent along them. */
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/inet_dscp.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/sock.h>

#include "services/net/gso.h"
#include "services/net/icrc.h"
#include "services/net/route.h"
#include "services/net/sender.h"
#include "services/net/train.h"
#include "services/net/train_pages.h"
#include "services/net/tunnel.h"

/*
 * Packets that are handed to the stack with softirqs off; a super-packet may make them
 * more. On a virtual link, the peer receives them when softirqs are on again. With more
 * of them this takes longer than softirqs may, and the rest waits for a thread that has
 * to compete for the CPU.
 */
#define XRDMA_TX_BURST 16

#define XRDMA_HEADERS4 (sizeof(struct iphdr) + sizeof(struct udphdr))
#define XRDMA_HEADERS6 (sizeof(struct ipv6hdr) + sizeof(struct udphdr))

/* What a packet of ours has in its control block until it is sent. */
struct xrdma_tx_cb {
	struct xrdma_dst *hold;
	/* It may share a super-packet with its neighbours in the list. */
	bool may_join;
	/* Its ICRC is not computed yet. */
	bool lacks_icrc;
};

#define XRDMA_TX_CB(skb) ((struct xrdma_tx_cb *)(skb)->cb)

static __be32 xrdma_v4(const __u8 addr[16])
{
	return ((const struct in6_addr *)addr)->s6_addr32[3];
}

/* Packets that are about to be sent may be looking at the old one. */
static void xrdma_dst_set(struct xrdma_dst *d, struct dst_entry *dst, u32 cookie)
{
	struct dst_entry *old = rcu_replace_pointer(d->dst, dst, true);

	d->cookie = cookie;
	dst_release(old);
}

static void xrdma_dst_put(struct xrdma_dst *d)
{
	if (refcount_dec_and_test(&d->ref))
		kfree(d);
}

static int xrdma_route4(struct sock *sk, struct xrdma_route *r)
{
	const struct xrdma_flow *f = &r->flow;
	struct flowi4 fl = {
		.flowi4_oif = f->oif,
		.flowi4_dscp = inet_dsfield_to_dscp(f->tos),
		.flowi4_proto = IPPROTO_UDP,
		.saddr = xrdma_v4(f->src),
		.daddr = xrdma_v4(f->dst),
		.fl4_sport = htons(f->sport),
		.fl4_dport = htons(XRDMA_UDP_PORT),
	};
	struct rtable *rt;

	/*
	 * An address of another interface of this host: the local table has it
	 * under that interface, where a look-up bound to ours does not find it.
	 */
	if (fl.flowi4_oif &&
	    inet_addr_type(sock_net(sk), fl.daddr) == RTN_LOCAL)
		fl.flowi4_oif = 0;
	rt = ip_route_output_flow(sock_net(sk), &fl, sk);
	if (IS_ERR(rt))
		return PTR_ERR(rt);
	xrdma_dst_set(r->hold, &rt->dst, 0);
	r->local = rt->rt_type == RTN_LOCAL;
	r->hop_limit = f->hop_limit ?: ip4_dst_hoplimit(&rt->dst);
	return 0;
}

#if IS_ENABLED(CONFIG_IPV6)
static int xrdma_route6(struct sock *sk, struct xrdma_route *r)
{
	const struct xrdma_flow *f = &r->flow;
	struct flowi6 fl = {
		.flowi6_oif = f->oif,
		.flowi6_proto = IPPROTO_UDP,
		.flowlabel = ip6_make_flowinfo(f->tos, htonl(f->flow_label)),
		.fl6_sport = htons(f->sport),
		.fl6_dport = htons(XRDMA_UDP_PORT),
	};
	struct dst_entry *dst;
	struct rt6_info *rt;

	memcpy(&fl.saddr, f->src, sizeof(fl.saddr));
	memcpy(&fl.daddr, f->dst, sizeof(fl.daddr));
	dst = ip6_dst_lookup_flow(sock_net(sk), sk, &fl, NULL);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	rt = dst_rt6_info(dst);
	xrdma_dst_set(r->hold, dst, rt6_get_cookie(rt));
	r->local = rt->rt6i_flags & RTF_LOCAL;
	r->hop_limit = f->hop_limit ?: ip6_dst_hoplimit(dst);
	return 0;
}
#else
static int xrdma_route6(struct sock *sk, struct xrdma_route *r)
{
	return -EAFNOSUPPORT;
}
#endif

/* Caller is in an RCU read section; NULL: the tunnel is closed. */
static struct sock *xrdma_route_sock(struct xrdma_tunnel *t,
				     const struct xrdma_route *r)
{
	return r->v6 ? rcu_dereference(t->sk6) : rcu_dereference(t->sk4);
}

/*
 * The priority of the packets, from which a VLAN interface makes the priority
 * on the wire and a queueing discipline its class. A service level is what that
 * comes to on the wire, so hardware takes it for the priority of the frame. It
 * may stem from the type of service by way of the net device's own table, as
 * the connection manager has it (iboe_tos_to_sl() in cma.c): then the stack
 * comes to the same if it begins there. Else it is the priority itself.
 */
static __u8 xrdma_route_priority(struct net_device *dev,
				 const struct xrdma_flow *f)
{
	u32 prio = rt_tos2priority(f->tos);
	u32 sl = 0;

	if (!f->sl)
		return prio;
	if (is_vlan_dev(dev))
		sl = vlan_dev_get_egress_qos_mask(dev, prio) >> VLAN_PRIO_SHIFT;
	else if (dev->num_tc)
		sl = netdev_get_prio_tc_map(dev, prio);
	return sl == f->sl ? prio : f->sl & 7;
}

/*
 * How long trains to @dst may be. A net device that does not take them whole, as it takes no
 * super-packet without ICRCs (@may_wait), would have them cut, which costs more than packets do
 * that are built. Caller is in an RCU read section.
 */
static void xrdma_route_note_room(struct xrdma_route *r, const struct dst_entry *dst,
				  bool may_wait)
{
	r->train_room = may_wait ? xrdma_train_room(dst) : 0;
}

/* Caller is in the RCU read section in which it got @sk. */
static int xrdma_route_lookup(struct xrdma_tunnel *t, struct sock *sk,
			      struct xrdma_route *r)
{
	struct xrdma_dst *d = r->hold;
	unsigned long flags;
	int ret;

	if (!d) {
		d = kzalloc_obj(*d, GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);
		if (!d)
			return -ENOMEM;
		refcount_set(&d->ref, 1);
		d->cpu = raw_smp_processor_id();
		spin_lock_irqsave(&t->lock, flags);
		list_add(&d->link, &t->dsts);
		spin_unlock_irqrestore(&t->lock, flags);
		r->hold = d;
	}
	/*
	 * Packets that were built for the old destination, by another QP with the
	 * same address handle, take the old or the new one at their flush.
	 */
	ret = r->v6 ? xrdma_route6(sk, r) : xrdma_route4(sk, r);
	if (ret) {
		xrdma_dst_set(d, NULL, 0);
	} else {
		struct net_device *dev = dst_dev_rcu(rcu_dereference(d->dst));

		r->priority = xrdma_route_priority(dev, &r->flow);
		r->burst = xrdma_gso_admits(dev) ? XRDMA_GSO_SEGS : XRDMA_TX_BURST;
		xrdma_route_note_room(r, rcu_dereference(d->dst), xrdma_icrc_may_wait(dev));
	}
	return ret;
}

/*
 * Looks the route of r->flow up; an older one of the same flow is dropped. The
 * look-ups take C structures full of macros. Any context but hard interrupt; the
 * caller has exclusive use of @r, and @t is that of earlier calls.
 */
int xrdma_route_resolve(struct xrdma_tunnel *t, struct xrdma_route *r)
{
	bool src4 = ipv6_addr_v4mapped((const struct in6_addr *)r->flow.src);
	struct sock *sk;
	int ret;

	r->v6 = !ipv6_addr_v4mapped((const struct in6_addr *)r->flow.dst);
	if (src4 == r->v6)
		return -EAFNOSUPPORT;
	r->ip_id = get_random_u16();
	rcu_read_lock();
	sk = xrdma_route_sock(t, r);
	ret = sk ? xrdma_route_lookup(t, sk, r) : -ENETDOWN;
	rcu_read_unlock();
	return ret;
}

/*
 * Gives the route up. dst_release() is under the lock, so that the namespace does
 * not end in the midst of it. Any context; exclusive use of @r.
 */
void xrdma_route_release(struct xrdma_tunnel *t, struct xrdma_route *r)
{
	struct xrdma_dst *d = r->hold;
	unsigned long flags;

	if (!d)
		return;
	spin_lock_irqsave(&t->lock, flags);
	list_del_init(&d->link);
	xrdma_dst_set(d, NULL, 0);
	spin_unlock_irqrestore(&t->lock, flags);
	r->hold = NULL;
	xrdma_dst_put(d);
}

/*
 * Drops the destinations of all routes. The sockets are out of @t and a grace
 * period has passed since, so nobody sets one any more. Process context, sleeps.
 */
void xrdma_routes_drop(struct xrdma_tunnel *t)
{
	bool more;

	do {
		unsigned int count = 64;

		spin_lock_irq(&t->lock);
		while (count-- && !list_empty(&t->dsts)) {
			struct xrdma_dst *d = list_first_entry(&t->dsts,
							       struct xrdma_dst,
							       link);

			list_del_init(&d->link);
			xrdma_dst_set(d, NULL, 0);
		}
		more = !list_empty(&t->dsts);
		spin_unlock_irq(&t->lock);
		cond_resched();
	} while (more);
}

/*
 * The destination of a route that still holds, else NULL. Caller is in an RCU
 * read section in which it has seen the socket of the tunnel.
 */
static struct dst_entry *xrdma_route_dst(const struct xrdma_route *r)
{
	struct dst_entry *dst = r->hold ? rcu_dereference(r->hold->dst) : NULL;

	return dst && dst_check(dst, r->hold->cookie) ? dst : NULL;
}

/* dst_check() is inline. */
bool xrdma_route_valid(struct xrdma_tunnel *t, const struct xrdma_route *r)
{
	bool valid;

	rcu_read_lock();
	valid = xrdma_route_sock(t, r) && xrdma_route_dst(r);
	rcu_read_unlock();
	return valid;
}

/*
 * The UDP checksum stays zero: RoCEv2 has its own, and IPv6 tunnels may
 * (RFC 6935).
 */
static void xrdma_headers(struct sk_buff *skb, struct xrdma_route *r, u32 len)
{
	const struct xrdma_flow *f = &r->flow;
	struct udphdr *udp = skb_push(skb, sizeof(*udp));

	skb_reset_transport_header(skb);
	udp->source = htons(f->sport);
	udp->dest = htons(XRDMA_UDP_PORT);
	udp->len = htons(sizeof(*udp) + len);
	udp->check = 0;

	if (r->v6) {
		struct ipv6hdr *ip = skb_push(skb, sizeof(*ip));

		skb_reset_network_header(skb);
		ip6_flow_hdr(ip, f->tos, htonl(f->flow_label));
		ip->payload_len = htons(sizeof(*udp) + len);
		ip->nexthdr = IPPROTO_UDP;
		ip->hop_limit = r->hop_limit;
		memcpy(&ip->saddr, f->src, sizeof(ip->saddr));
		memcpy(&ip->daddr, f->dst, sizeof(ip->daddr));
		skb->protocol = htons(ETH_P_IPV6);
	} else {
		struct iphdr *ip = skb_push(skb, sizeof(*ip));

		skb_reset_network_header(skb);
		ip->version = 4;
		ip->ihl = sizeof(*ip) / 4;
		ip->tos = f->tos;
		ip->tot_len = htons(XRDMA_HEADERS4 + len);
		ip->id = htons(r->ip_id++);
		ip->frag_off = htons(IP_DF);
		ip->ttl = r->hop_limit;
		ip->protocol = IPPROTO_UDP;
		ip->check = 0;
		ip->saddr = xrdma_v4(f->src);
		ip->daddr = xrdma_v4(f->dst);
		skb->protocol = htons(ETH_P_IP);
	}
}

/*
 * The destination for a new packet of @s with @len bytes of payload, and who pays for it. NULL:
 * there is none. Caller is in an RCU read section, and has exclusive use of @r.
 */
static struct dst_entry *xrdma_tx_dst(struct xrdma_tunnel *t, struct xrdma_route *r,
				      const struct xrdma_sender *s, u32 len,
				      struct sock **payer)
{
	struct sock *sk = xrdma_route_sock(t, r);
	struct dst_entry *dst;

	*payer = xrdma_sender_sock(s, len);
	if (!sk || !*payer)
		return NULL;
	dst = xrdma_route_dst(r);
	if (dst)
		return dst;
	return xrdma_route_lookup(t, sk, r) ? NULL : rcu_dereference(r->hold->dst);
}

/* Room in front of the IP header of a packet to @dst. Caller is in an RCU read section. */
static u32 xrdma_tx_headroom(const struct dst_entry *dst)
{
	return max_t(u32, LL_RESERVED_SPACE(dst_dev_rcu(dst)), XRDMA_GSO_HEADROOM);
}

/* What a packet has until it is sent. */
static void xrdma_tx_own(struct sk_buff *skb, struct xrdma_route *r, struct sock *payer)
{
	skb->priority = r->priority;
	/* It may have to wait for its payload: the destination is set at the end. */
	refcount_inc(&r->hold->ref);
	XRDMA_TX_CB(skb)->hold = r->hold;
	XRDMA_TX_CB(skb)->may_join = false;
	XRDMA_TX_CB(skb)->lacks_icrc = false;
	/*
	 * The kernel's own destructor: it counts the memory against the socket,
	 * keeps the socket, and does not need this module.
	 */
	skb_set_owner_w(skb, payer);
}

/*
 * Allocates a packet with @len bytes of UDP payload and writes its IP and UDP
 * headers as they will be sent: the ICRC covers them. A route that has gone
 * stale is looked up anew. One call, because the parts are inline functions.
 * Any context but hard interrupt; exclusive use of @r. False: no memory, no
 * route or no socket, or @s has as much under way as it may; the caller treats it as
 * a lost packet.
 */
bool xrdma_tx_alloc(struct xrdma_tunnel *t, struct xrdma_route *r,
		    const struct xrdma_sender *s, __u32 len, struct xrdma_tx *tx)
{
	u32 headers = r->v6 ? XRDMA_HEADERS6 : XRDMA_HEADERS4;
	struct sk_buff *skb = NULL;
	struct dst_entry *dst;
	struct sock *payer;
	u32 headroom;

	if (len > IP_MAX_MTU - XRDMA_HEADERS6)
		return false;
	rcu_read_lock();
	dst = xrdma_tx_dst(t, r, s, len, &payer);
	if (!dst)
		goto out;
	headroom = xrdma_tx_headroom(dst) + headers;
	skb = alloc_skb(headroom + len, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		goto out;
	skb_reserve(skb, headroom);
	tx->payload = skb_put(skb, len);
	xrdma_headers(skb, r, len);
	tx->headers = skb->data;
	tx->headers_len = headers;
	tx->icrc_may_wait = xrdma_icrc_may_wait(dst_dev_rcu(dst));
	xrdma_route_note_room(r, dst, tx->icrc_may_wait);
	tx->skb = skb;
	xrdma_tx_own(skb, r, payer);
out:
	rcu_read_unlock();
	return skb;
}

/*
 * Allocates a train, for as many packets as @train says, and writes nothing but the lengths of
 * its parts. Returns the place for its transport headers; the payload of each packet is at
 * xrdma_train_payload(). xrdma_tx_end_train() does the rest. Context and use of @r as above.
 * NULL: as above, or no train may go there now: the packets are to be built one by one.
 */
__u8 *xrdma_tx_alloc_train(struct xrdma_tunnel *t, struct xrdma_route *r,
			   const struct xrdma_sender *s, const struct xrdma_train *train,
			   struct sk_buff **skbp)
{
	u32 headers = r->v6 ? XRDMA_HEADERS6 : XRDMA_HEADERS4;
	u32 len = train->count * train->mtu, headroom;
	struct dst_entry *dst;
	struct sock *payer;
	struct sk_buff *skb;
	__u8 *first = NULL;

	rcu_read_lock();
	dst = xrdma_tx_dst(t, r, s, len, &payer);
	if (!dst)
		goto out;
	xrdma_route_note_room(r, dst, xrdma_icrc_may_wait(dst_dev_rcu(dst)));
	if (len > r->train_room * SZ_1K ||
	    headers + train->longest + train->mtu + XRDMA_ICRC_LEN > dst_mtu(dst))
		goto out;
	headroom = xrdma_tx_headroom(dst) + headers;
	skb = xrdma_train_alloc(headroom, train->first, len);
	if (!skb)
		goto out;
	first = skb->data;
	/* From it follows where the payload of a packet is. */
	skb_shinfo(skb)->gso_size = train->mtu;
	xrdma_tx_own(skb, r, payer);
	*skbp = skb;
out:
	rcu_read_unlock();
	return first;
}

/* Takes what is beyond @len bytes from @skb, which is nobody else's; the payer gets it back. */
static void xrdma_tx_shorten(struct sk_buff *skb, u32 len)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	u32 truesize = SKB_TRUESIZE(skb_end_offset(skb)), i;

	/* It does not fail, since nothing is moved. */
	pskb_trim(skb, len);
	for (i = 0; i < info->nr_frags; i++)
		truesize += page_size(skb_frag_page(&info->frags[i]));
	if (truesize >= skb->truesize)
		return;
	WARN_ON_ONCE(refcount_sub_and_test(skb->truesize - truesize, &skb->sk->sk_wmem_alloc));
	skb->truesize = truesize;
}

/*
 * The train has as many packets as @train says, which may be fewer than it was allocated for,
 * and everything but IP and UDP headers. Context and use of @r as above.
 */
void xrdma_tx_end_train(struct xrdma_route *r, struct sk_buff *skb,
			const struct xrdma_train *train)
{
	u32 len = train->first + (train->count - 1) * train->mtu + train->last;

	if (len < skb->len)
		xrdma_tx_shorten(skb, len);
	xrdma_headers(skb, r, len);
	/* Whoever cuts it numbers the packets. */
	r->ip_id += train->count - 1;
	xrdma_train_end(skb, train);
}

/*
 * struct sk_buff's layout is not for Rust. @may_join: it may share a super-packet with
 * packets before and behind it of which this is said, too. @lacks_icrc: its ICRC is still
 * to be computed; the four bytes are there.
 */
void xrdma_tx_push(struct xrdma_tx_list *list, struct sk_buff *skb, bool may_join,
		   bool lacks_icrc)
{
	XRDMA_TX_CB(skb)->lacks_icrc = lacks_icrc;
	XRDMA_TX_CB(skb)->may_join = may_join;
	skb->next = NULL;
	if (list->tail)
		list->tail->next = skb;
	else
		list->head = skb;
	list->tail = skb;
	list->count += skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
}

/* What was built and is not sent. */
void xrdma_tx_drop(struct sk_buff *skb)
{
	xrdma_dst_put(XRDMA_TX_CB(skb)->hold);
	kfree_skb(skb);
}

/* The IP layer expects zeroes. */
static void xrdma_tx_forget(struct sk_buff *skb)
{
	XRDMA_TX_CB(skb)->hold = NULL;
	XRDMA_TX_CB(skb)->may_join = false;
	XRDMA_TX_CB(skb)->lacks_icrc = false;
}

/* It may not leave without. */
static void xrdma_tx_icrc(struct sk_buff *skb)
{
	if (XRDMA_TX_CB(skb)->lacks_icrc)
		xrdma_icrc_fill(skb);
}

/*
 * Packets of a queue pair are sent on the CPU of a doorbell, of an answer, or of a
 * timer. The stack would choose the transmit queue by that (XPS), and they would
 * overtake each other.
 */
static void xrdma_tx_keep_queue(struct sk_buff *skb, const struct xrdma_dst *d)
{
#ifdef CONFIG_XPS
	skb->sender_cpu = d->cpu + 1;
#endif
}

/* Whether @seg may be in one super-packet with @skb, as far as the list knows. */
static bool xrdma_tx_may_join(const struct sk_buff *skb, const struct sk_buff *seg)
{
	return seg && XRDMA_TX_CB(skb)->may_join && XRDMA_TX_CB(seg)->may_join &&
	       XRDMA_TX_CB(skb)->hold == XRDMA_TX_CB(seg)->hold;
}

/*
 * Makes @skb, which goes to @dst, the head of a super-packet @g of as many packets of the
 * list behind it as fit, which may be none. Returns the first that does not. Caller is in
 * an RCU read section.
 */
static struct sk_buff *xrdma_tx_join(struct sk_buff *skb, struct sk_buff *next,
				     const struct dst_entry *dst, struct xrdma_gso *g)
{
	g->segs = 1;
	if (!xrdma_tx_may_join(skb, next) || next->len > skb->len)
		return next;
	/*
	 * The first of a message may be longer than those behind it, which are of one
	 * length. It goes alone: only the last may be shorter than the head.
	 */
	if (next->len < skb->len && xrdma_tx_may_join(next, next->next) &&
	    next->next->len == next->len)
		return next;
	if (!xrdma_gso_begin(g, skb, dst, XRDMA_TX_CB(skb)->lacks_icrc))
		return next;
	while (xrdma_tx_may_join(skb, next) && xrdma_gso_fits(g, next)) {
		struct sk_buff *seg = next;

		next = seg->next;
		skb_mark_not_on_list(seg);
		/* The head has one, too. */
		xrdma_dst_put(XRDMA_TX_CB(seg)->hold);
		if (!g->puts_off)
			xrdma_tx_icrc(seg);
		xrdma_tx_forget(seg);
		xrdma_gso_add(g, seg);
	}
	return next;
}

/*
 * Sends @skb, and what goes in one super-packet with it of the list behind it, which
 * begins with @next. Returns the rest of the list; adds the packets to @sent, and what
 * became of them to @done. Caller is in an RCU read section.
 */
static struct sk_buff *xrdma_tx_one(struct sk_buff *skb, struct sk_buff *next,
				    u32 *sent, struct xrdma_tx_done *done)
{
	struct xrdma_dst *d = XRDMA_TX_CB(skb)->hold;
	struct dst_entry *dst = rcu_dereference(d->dst);
	bool is_train = skb_is_gso(skb);
	struct sock *sk = skb->sk;
	struct xrdma_gso g;
	int ret;

	/*
	 * The namespace lives as long as its routes have destinations: whoever
	 * drops them waits for RCU before it lets the namespace go. For the same
	 * reason the packet need not have a reference.
	 */
	if (unlikely(!dst || (is_train && !xrdma_gso_passes(dst)))) {
		u32 count = is_train ? skb_shinfo(skb)->gso_segs : 1;

		xrdma_tx_drop(skb);
		*sent += count;
		done->dropped += count;
		return next;
	}
	if (is_train) {
		g.segs = skb_shinfo(skb)->gso_segs;
		g.puts_off = true;
	} else {
		next = xrdma_tx_join(skb, next, dst, &g);
		if (g.segs == 1 || !g.puts_off)
			xrdma_tx_icrc(skb);
		if (g.segs > 1)
			xrdma_gso_end(&g);
	}
	*sent += g.segs;
	if (g.segs > 1) {
		/*
		 * Who cuts it asks its net device, even in the OUTPUT chain, where packets
		 * have none yet. POSTROUTING sees it as the one that it came from.
		 */
		if (g.puts_off)
			skb->dev = dst_dev_rcu(dst);
		done->supers++;
	}
	xrdma_tx_forget(skb);
	xrdma_tx_keep_queue(skb, d);
	xrdma_dst_put(d);
	skb_dst_set_noref(skb, dst);
	if (IS_ENABLED(CONFIG_IPV6) && skb->protocol == htons(ETH_P_IPV6))
		ret = ip6_local_out(sock_net(sk), sk, skb);
	else
		ret = ip_local_out(sock_net(sk), sk, skb);
	/* net_xmit_eval() evaluates its argument twice. */
	if (net_xmit_eval(ret))
		done->dropped += g.segs;
	return next;
}

/*
 * Hands all packets of the list to the IP stack; netfilter, routing and qdisc see them
 * as any local UDP traffic. No locks held by the caller, any context but hard
 * interrupt.
 */
void xrdma_tx_flush(struct xrdma_tx_list *list, struct xrdma_tx_done *done)
{
	struct sk_buff *skb = list->head;

	list->head = NULL;
	list->tail = NULL;
	list->count = 0;
	while (skb) {
		u32 sent = 0;

		local_bh_disable();
		rcu_read_lock();
		while (skb && sent < XRDMA_TX_BURST) {
			struct sk_buff *next = skb->next;

			skb_mark_not_on_list(skb);
			skb = xrdma_tx_one(skb, next, &sent, done);
		}
		rcu_read_unlock();
		local_bh_enable();
	}
}

/* Frees packets that will not be sent. */
void xrdma_tx_purge(struct xrdma_tx_list *list)
{
	struct sk_buff *skb = list->head;

	while (skb) {
		struct sk_buff *next = skb->next;

		skb_mark_not_on_list(skb);
		xrdma_tx_drop(skb);
		skb = next;
	}
	list->head = NULL;
	list->tail = NULL;
	list->count = 0;
}
