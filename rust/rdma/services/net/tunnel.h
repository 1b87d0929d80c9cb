/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations that udp.c, route.c and sender.c share. bindgen does not read them. */
#ifndef XRDMA_TUNNEL_H
#define XRDMA_TUNNEL_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>

#include "services/net/udp.h"

/* IANA: RoCEv2 (IBTA annex A17). */
#define XRDMA_UDP_PORT 4791

struct dst_entry;
struct sock;
struct xrdma_pernet;
struct xrdma_sender;

/**
 * struct xrdma_dst - the destination of a route, for as long as its tunnel is open
 * @dst: the destination, with a reference, or NULL.
 * @cookie: validity cookie of an IPv6 @dst.
 * @cpu: its packets go to the transmit queue that this CPU uses, whichever sends them.
 * @ref: the route, and packets that are to be sent along it.
 * @link: in &xrdma_tunnel.dsts until the route is released.
 *
 * A destination refers to its namespace without holding it: the operations of
 * IPv6 and IPsec are in struct net. It is set by the one user of the route, in an
 * RCU read section in which it has seen the tunnel's socket; who closes the
 * tunnel waits for those and then drops all that are left. So nobody has to be
 * waited for who keeps a route.
 */
struct xrdma_dst {
	struct dst_entry __rcu *dst;
	u32 cookie;
	u32 cpu;
	refcount_t ref;
	struct list_head link;
};

/**
 * struct xrdma_tunnel - the RoCEv2 sockets of one network namespace
 * @sk4: IPv4 socket, NULL when closed.
 * @sk6: IPv6 socket, NULL when closed or without IPv6.
 * @receive: where packets go.
 * @steer: decides which packets are received on another CPU.
 * @cookie: identifies the namespace.
 * @pernet: back pointer, NULL when closed.
 * @users: open handles.
 * @ref: references to the memory; one per handle.
 * @lock: protects @dsts, and the end of their destinations; any context.
 * @dsts: &struct xrdma_dst of the routes.
 * @senders_lock: protects @senders; nests inside the mutex of udp.c, and sleeps.
 * @senders: &struct xrdma_sender of the processes that send here.
 *
 * @pernet and @users are under the mutex of udp.c. Writes to the socket pointers are
 * under that and, except when the tunnel is new, under @senders_lock; readers are in
 * an RCU read section or have one of the two.
 */
struct xrdma_tunnel {
	struct sock __rcu *sk4;
	struct sock __rcu *sk6;
	xrdma_receive_fn receive;
	xrdma_steer_fn steer;
	u64 cookie;
	struct xrdma_pernet *pernet;
	unsigned int users;
	refcount_t ref;
	spinlock_t lock;
	struct list_head dsts;
	struct mutex senders_lock;
	struct list_head senders;
};

/* route.c */
void xrdma_routes_drop(struct xrdma_tunnel *t);

/* sender.c */
struct sock *xrdma_sender_sock(const struct xrdma_sender *s, u32 len);
void xrdma_senders_close(struct xrdma_tunnel *t);
void xrdma_senders_release(struct xrdma_tunnel *t);

#endif /* XRDMA_TUNNEL_H */
