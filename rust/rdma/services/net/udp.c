// SPDX-License-Identifier: GPL-2.0
/*
 * The UDP sockets of RoCEv2: one pair per network namespace that has a device,
 * shared by the devices in it.
 */
#include <linux/ipv6.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <net/inet_sock.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/sock.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>

#include "services/net/arrival.h"
#include "services/net/gro.h"
#include "services/net/gso.h"
#include "services/net/icrc.h"
#include "services/net/skb.h"
#include "services/net/train.h"
#include "services/net/train_pages.h"
#include "services/net/tunnel.h"
#include "services/net/udp.h"

struct xrdma_pernet {
	struct xrdma_tunnel *tunnel;
};

static unsigned int xrdma_pernet_id;

/*
 * Opens, closes and exits of namespaces; protects xrdma_pernet.tunnel and
 * xrdma_hooked.
 */
static DEFINE_MUTEX(xrdma_tunnel_mutex);

/* Namespaces have a struct xrdma_pernet: xrdma_pernet_id is ours. */
static bool xrdma_hooked;

/*
 * Hands one packet on, or drops it. The headers are parsed here in one pass because a
 * call per field from Rust would cost more than the parsing.
 */
static void xrdma_receive(struct xrdma_tunnel *t, struct sk_buff *skb,
			  const struct xrdma_rx_link *link, enum xrdma_rx_way way)
{
	int ret = way == XRDMA_RX_TRAIN ? xrdma_rx_parse_train(skb) : xrdma_rx_parse(skb);
	__u8 dst[16];

	if (unlikely(ret)) {
		if (ret == -EINVAL && xrdma_rx_dst(skb, dst))
			t->receive(t->cookie, NULL, &dst);
		kfree_skb(skb);
		return;
	}
	xrdma_rx_detach(skb, link, way);
	t->receive(t->cookie, skb, NULL);
}

/*
 * Hands the packets of an intact super-packet on, in their order, or of what GRO has put
 * together: their members, and no others, have come through a net device. The list is ours.
 * A train has none, and is handed on as it is.
 */
static void xrdma_receive_super(struct xrdma_tunnel *t, struct sk_buff *skb,
				const struct xrdma_rx_link *link)
{
	enum xrdma_rx_way way = xrdma_icrc_is_put_off(skb) ? XRDMA_RX_HEAD_PUT_OFF :
							     XRDMA_RX_HEAD;
	struct sk_buff *seg, *next;
	bool merged;

	if (xrdma_icrc_is_train(skb) && !skb_has_frag_list(skb)) {
		xrdma_receive(t, skb, link, XRDMA_RX_TRAIN);
		return;
	}
	seg = xrdma_gso_take_apart(skb);
	merged = seg->dev;
	xrdma_receive(t, skb, link, merged ? XRDMA_RX_MERGED : way);
	skb_list_walk_safe(seg, seg, next) {
		skb_mark_not_on_list(seg);
		xrdma_receive(t, seg, link, merged ? XRDMA_RX_ALONE : XRDMA_RX_MEMBER);
	}
}

/*
 * The same for one that has been changed on its way, or that somebody else looks at: the
 * stack cuts it as it does for sockets that take none (udp_queue_rcv_skb()).
 */
static void xrdma_receive_cut(struct xrdma_tunnel *t, struct sock *sk,
			      struct sk_buff *skb, const struct xrdma_rx_link *link)
{
	bool v4 = skb->protocol == htons(ETH_P_IP);
	struct sk_buff *seg, *next;

	__skb_push(skb, -skb_mac_offset(skb));
	/* It frees the packet if it fails. */
	seg = udp_rcv_segment(sk, skb, v4);
	skb_list_walk_safe(seg, seg, next) {
		skb_mark_not_on_list(seg);
		__skb_pull(seg, skb_transport_offset(seg));
		/* The first still stands for the memory of all. */
		skb_orphan(seg);
		seg->truesize = SKB_TRUESIZE(skb_end_offset(seg)) + seg->data_len;
		xrdma_receive(t, seg, link, XRDMA_RX_ALONE);
	}
}

/*
 * True: the packet is received later, on another CPU. It is detached for that, and so
 * is one that is not, which does no harm.
 */
static bool xrdma_steer(struct xrdma_tunnel *t, struct sk_buff *skb,
			const struct xrdma_rx_link *link)
{
	struct xrdma_peek peek;

	/* Those of one packet's length need not be looked at if none waits. */
	if (!skb_is_gso(skb) && !atomic_read_acquire(&xrdma_arrivals))
		return false;
	if (!xrdma_peek(skb, &peek))
		return false;
	xrdma_rx_detach(skb, link, XRDMA_RX_ALONE);
	return t->steer(t->cookie, skb, &peek);
}

/*
 * Receives a packet that t->steer() has taken. So that Rust need not know what a
 * super-packet is. Softirq or process context.
 */
void xrdma_arrival_receive(struct xrdma_tunnel *t, struct sk_buff *skb)
{
	/* The parser has its own ideas of the control block. */
	struct xrdma_rx_link link = xrdma_rx_link(skb);

	local_bh_disable();
	rcu_read_lock();
	if (skb_is_gso(skb))
		xrdma_receive_super(t, skb, &link);
	else
		xrdma_receive(t, skb, &link, XRDMA_RX_ALONE);
	rcu_read_unlock();
	local_bh_enable();
}

/*
 * Softirq, in an RCU read section. The packet is ours in any case: 0 tells UDP so.
 */
static int xrdma_encap_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct xrdma_tunnel *t = rcu_dereference_sk_user_data(sk);
	struct xrdma_rx_link link;
	bool is_super;

	if (unlikely(!t)) {
		kfree_skb(skb);
		return 0;
	}
	xrdma_rx_read_link(skb, &link);
	is_super = skb_is_gso(skb) && xrdma_gso_is_ours(skb);
	if (is_super && !xrdma_gso_is_intact(skb) && !xrdma_gro_is_intact(skb) &&
	    !xrdma_train_is_intact(skb))
		xrdma_receive_cut(t, sk, skb, &link);
	else if (is_super == skb_is_gso(skb) && xrdma_steer(t, skb, &link))
		return 0;
	else if (is_super)
		xrdma_receive_super(t, skb, &link);
	else
		xrdma_receive(t, skb, &link, XRDMA_RX_ALONE);
	return 0;
}

static struct sock *xrdma_socket_open(struct net *net, struct xrdma_tunnel *t,
				      int family)
{
	struct udp_port_cfg port = {
		.family = family,
		.local_udp_port = htons(XRDMA_UDP_PORT),
		.ipv6_v6only = family == AF_INET6,
	};
	struct udp_tunnel_sock_cfg cfg = {
		.sk_user_data = t,
		.encap_type = 1,
		.encap_rcv = xrdma_encap_rcv,
		.gro_receive = xrdma_gro_receive,
		.gro_complete = xrdma_gro_complete,
	};
	struct socket *sock;
	int ret = udp_sock_create(net, &port, &sock);

	if (ret)
		return ERR_PTR(ret);
	setup_udp_tunnel_sock(net, sock->sk, &cfg);
	/*
	 * Nobody here reads skb->csum: GSO packets that are cut for us need not
	 * be summed again.
	 */
	inet_dec_convert_csum(sock->sk);
	/* Super-packets of xroce come whole; all others are still cut before. */
	udp_allow_gso(sock->sk);
	/* Members of a group on this host get what is sent to it. */
	inet_set_bit(MC_LOOP, sock->sk);
	return sock->sk;
}

/*
 * Callers hold xrdma_tunnel_mutex, so that the exit of a namespace waits for a
 * tunnel that is being closed in it. Afterwards no new packet comes in or goes
 * out, and no route leads anywhere; packets under way end with the next
 * synchronize_net().
 */
static void xrdma_sockets_release(struct xrdma_tunnel *t)
{
	struct sock *sk4, *sk6;

	mutex_lock(&t->senders_lock);
	xrdma_senders_close(t);
	sk4 = rcu_replace_pointer(t->sk4, NULL,
				  lockdep_is_held(&xrdma_tunnel_mutex));
	sk6 = rcu_replace_pointer(t->sk6, NULL,
				  lockdep_is_held(&xrdma_tunnel_mutex));
	/*
	 * A sender may be about to charge a packet to the socket: that must not
	 * meet one whose last reference is gone (refcount_t from zero).
	 */
	if (sk4 || sk6)
		synchronize_net();
	xrdma_routes_drop(t);
	xrdma_senders_release(t);
	mutex_unlock(&t->senders_lock);
	if (sk4)
		udp_tunnel_sock_release(sk4);
	if (sk6)
		udp_tunnel_sock_release(sk6);
}

static int xrdma_tunnel_setup(struct net *net, struct xrdma_tunnel *t)
{
	struct sock *sk;

	sk = xrdma_socket_open(net, t, AF_INET);
	if (IS_ERR(sk))
		return PTR_ERR(sk);
	rcu_assign_pointer(t->sk4, sk);
	if (!IS_ENABLED(CONFIG_IPV6) || !ipv6_mod_enabled())
		return 0;
	sk = xrdma_socket_open(net, t, AF_INET6);
	if (IS_ERR(sk))
		return PTR_ERR(sk);
	rcu_assign_pointer(t->sk6, sk);
	return 0;
}

/*
 * Opens the namespace's sockets, or joins those who have them open. Process
 * context, sleeps. -EADDRINUSE: another driver (rxe) or program has the port;
 * -ENODEV: there are no services. Here and not in Rust because it is all inline
 * functions and C structures.
 */
struct xrdma_tunnel *xrdma_tunnel_open(struct net *net, xrdma_receive_fn receive,
				       xrdma_steer_fn steer, int *error)
{
	struct xrdma_pernet *pernet;
	struct xrdma_tunnel *t;
	int ret = -ENODEV;

	mutex_lock(&xrdma_tunnel_mutex);
	if (!xrdma_hooked)
		goto fail;
	pernet = net_generic(net, xrdma_pernet_id);
	t = pernet->tunnel;
	if (t) {
		ret = t->receive == receive ? 0 : -EBUSY;
		if (ret)
			goto fail;
		t->users++;
		refcount_inc(&t->ref);
		goto out;
	}
	ret = -ENOMEM;
	t = kzalloc_obj(*t, GFP_KERNEL_ACCOUNT);
	if (!t)
		goto fail;
	t->receive = receive;
	t->steer = steer;
	t->cookie = net->net_cookie;
	t->users = 1;
	refcount_set(&t->ref, 1);
	spin_lock_init(&t->lock);
	INIT_LIST_HEAD(&t->dsts);
	mutex_init(&t->senders_lock);
	INIT_LIST_HEAD(&t->senders);
	ret = xrdma_tunnel_setup(net, t);
	if (ret) {
		xrdma_sockets_release(t);
		mutex_unlock(&xrdma_tunnel_mutex);
		/* A packet may have come in between the two sockets. */
		synchronize_net();
		kfree(t);
		*error = ret;
		return NULL;
	}
	t->pernet = pernet;
	pernet->tunnel = t;
out:
	mutex_unlock(&xrdma_tunnel_mutex);
	return t;
fail:
	mutex_unlock(&xrdma_tunnel_mutex);
	*error = ret;
	return NULL;
}

/*
 * Takes one user away; the last closes the sockets, and when it returns none of them
 * hands packets on any more. Those that wait for another CPU are the queue pairs'
 * (xrdma_arrival_receive()). Process context, sleeps.
 */
void xrdma_tunnel_close(struct xrdma_tunnel *t)
{
	bool last;

	mutex_lock(&xrdma_tunnel_mutex);
	last = !--t->users;
	if (last) {
		if (t->pernet)
			t->pernet->tunnel = NULL;
		t->pernet = NULL;
		xrdma_sockets_release(t);
	}
	mutex_unlock(&xrdma_tunnel_mutex);
	if (last)
		synchronize_net();
}

/*
 * Drops the memory; the sockets are closed by then, and a grace period has
 * passed since. Any context.
 */
void xrdma_tunnel_put(struct xrdma_tunnel *t)
{
	if (refcount_dec_and_test(&t->ref))
		kfree(t);
}

/* So that Rust need not know the layout. */
__u64 xrdma_tunnel_cookie(const struct xrdma_tunnel *t)
{
	return t->cookie;
}

/*
 * The namespace dies with its devices still ours: their network devices are
 * gone already, which unregisters them, but that may take longer than the
 * namespace lives: that on hardware, which is moved to the first namespace, is
 * not waited for. Kernel sockets do not hold it, so they must go now, and so must the
 * destinations of routes: queue pairs and address handles are still there.
 */
static void __net_exit xrdma_net_exit(struct net *net)
{
	struct xrdma_pernet *pernet = net_generic(net, xrdma_pernet_id);
	struct xrdma_tunnel *t;

	mutex_lock(&xrdma_tunnel_mutex);
	t = pernet->tunnel;
	if (t) {
		pernet->tunnel = NULL;
		t->pernet = NULL;
		xrdma_sockets_release(t);
	}
	mutex_unlock(&xrdma_tunnel_mutex);
	if (!t)
		return;
	/* Senders look at the sockets in an RCU read section. */
	synchronize_net();
	/*
	 * The destination of an IPsec bundle releases the one below it in its RCU
	 * callback, which counts in this namespace.
	 */
	rcu_barrier();
}

static struct pernet_operations xrdma_net_ops = {
	.exit = xrdma_net_exit,
	.id = &xrdma_pernet_id,
	.size = sizeof(struct xrdma_pernet),
};

/* Under the mutex, which exits of namespaces want: not while the hook comes or goes. */
static void xrdma_set_hooked(bool hooked)
{
	mutex_lock(&xrdma_tunnel_mutex);
	xrdma_hooked = hooked;
	mutex_unlock(&xrdma_tunnel_mutex);
}

/* The pernet structure is C data with a C callback. @icrc computes an ICRC. */
int xrdma_udp_init(xrdma_icrc_fn icrc)
{
	int ret = register_pernet_subsys(&xrdma_net_ops);

	if (ret)
		return ret;
	xrdma_train_pages_init();
	xrdma_icrc_init(icrc);
	xrdma_set_hooked(true);
	return 0;
}

/* As above. No tunnel is opened any more, and those that are open are closed. */
void xrdma_udp_exit(void)
{
	xrdma_set_hooked(false);
	xrdma_icrc_exit();
	xrdma_train_pages_exit();
	unregister_pernet_subsys(&xrdma_net_ops);
}
