// SPDX-License-Identifier: GPL-2.0
/* Routes, and the packets that are sent along them. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <net/inet_dscp.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/sock.h>

#include "services.h"
#include "tunnel.h"

#define XRDMA_HEADERS4 (sizeof(struct iphdr) + sizeof(struct udphdr))
#define XRDMA_HEADERS6 (sizeof(struct ipv6hdr) + sizeof(struct udphdr))

static __be32 xrdma_v4(const __u8 addr[16])
{
	return ((const struct in6_addr *)addr)->s6_addr32[3];
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
	r->dst = &rt->dst;
	r->cookie = 0;
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
	r->dst = dst;
	r->cookie = rt6_get_cookie(rt);
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

static int xrdma_route_lookup(struct sock *sk, struct xrdma_route *r)
{
	dst_release(r->dst);
	r->dst = NULL;
	return r->v6 ? xrdma_route6(sk, r) : xrdma_route4(sk, r);
}

/*
 * Looks the route of r->flow up; r->dst is NULL or an older one of the same
 * flow. The look-ups take C structures full of macros. Any context but hard
 * interrupt; the caller has exclusive use of @r.
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
	ret = sk ? xrdma_route_lookup(sk, r) : -ENETDOWN;
	rcu_read_unlock();
	return ret;
}

/* dst_release() in the form that Rust has the pointer in. Any context. */
void xrdma_route_release(struct xrdma_route *r)
{
	dst_release(r->dst);
	r->dst = NULL;
}

/* dst_check() is inline. */
bool xrdma_route_valid(const struct xrdma_route *r)
{
	bool valid;

	rcu_read_lock();
	valid = r->dst && dst_check(r->dst, r->cookie);
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
 * Allocates a packet with @len bytes of UDP payload and writes its IP and UDP
 * headers as they will be sent: the ICRC covers them. A route that has gone
 * stale is looked up anew. One call, because the parts are inline functions.
 * Any context but hard interrupt; exclusive use of @r. False: no memory, no
 * route or no socket; the caller treats it as a lost packet.
 */
bool xrdma_tx_alloc(struct xrdma_tunnel *t, struct xrdma_route *r, __u32 len,
		    struct xrdma_tx *tx)
{
	u32 headers = r->v6 ? XRDMA_HEADERS6 : XRDMA_HEADERS4;
	struct sk_buff *skb = NULL;
	struct sock *sk;
	u32 headroom;

	if (len > IP_MAX_MTU - XRDMA_HEADERS6)
		return false;
	rcu_read_lock();
	sk = xrdma_route_sock(t, r);
	if (!sk)
		goto out;
	if (!r->dst || !dst_check(r->dst, r->cookie)) {
		if (xrdma_route_lookup(sk, r))
			goto out;
	}
	headroom = LL_RESERVED_SPACE(dst_dev_rcu(r->dst)) + headers;
	skb = alloc_skb(headroom + len, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		goto out;
	skb_reserve(skb, headroom);
	tx->payload = skb_put(skb, len);
	xrdma_headers(skb, r, len);
	tx->headers = skb->data;
	tx->headers_len = headers;
	tx->skb = skb;
	skb->priority = rt_tos2priority(r->flow.tos);
	skb_dst_set(skb, dst_clone(r->dst));
	/*
	 * The kernel's own destructor: it counts the memory against the socket,
	 * keeps the socket, and does not need this module.
	 */
	skb_set_owner_w(skb, sk);
out:
	rcu_read_unlock();
	return skb;
}

/* struct sk_buff's layout is not for Rust. */
void xrdma_tx_push(struct xrdma_tx_list *list, struct sk_buff *skb)
{
	skb->next = NULL;
	if (list->tail)
		list->tail->next = skb;
	else
		list->head = skb;
	list->tail = skb;
	list->count++;
}

static int xrdma_tx_one(struct sk_buff *skb)
{
	struct sock *sk = skb->sk;

	/*
	 * The namespace lives as long as its sockets are open, and whoever
	 * closes them waits for RCU before it lets the namespace go.
	 */
	if (unlikely(sock_flag(sk, SOCK_DEAD))) {
		kfree_skb(skb);
		return -ENETDOWN;
	}
#if IS_ENABLED(CONFIG_IPV6)
	if (skb->protocol == htons(ETH_P_IPV6))
		return ip6_local_out(sock_net(sk), sk, skb);
#endif
	return ip_local_out(sock_net(sk), sk, skb);
}

/*
 * Hands all packets of the list to the IP stack in one go; netfilter, routing
 * and qdisc see them as any local UDP traffic. Returns how many were dropped on
 * the spot. No locks held by the caller, any context but hard interrupt.
 */
__u32 xrdma_tx_flush(struct xrdma_tx_list *list)
{
	struct sk_buff *skb = list->head;
	u32 dropped = 0;

	list->head = NULL;
	list->tail = NULL;
	list->count = 0;
	if (!skb)
		return 0;
	local_bh_disable();
	rcu_read_lock();
	while (skb) {
		struct sk_buff *next = skb->next;
		int ret;

		skb_mark_not_on_list(skb);
		/* net_xmit_eval() evaluates its argument twice. */
		ret = xrdma_tx_one(skb);
		if (net_xmit_eval(ret))
			dropped++;
		skb = next;
	}
	rcu_read_unlock();
	local_bh_enable();
	return dropped;
}

/* Frees packets that will not be sent. */
void xrdma_tx_purge(struct xrdma_tx_list *list)
{
	kfree_skb_list(list->head);
	list->head = NULL;
	list->tail = NULL;
	list->count = 0;
}
