/* SPDX-License-Identifier: GPL-2.0 */
/* What udp.c and route.c share. C only. */
#ifndef XRDMA_TUNNEL_H
#define XRDMA_TUNNEL_H

#include <linux/refcount.h>

#include "services.h"

/* IANA: RoCEv2 (IBTA annex A17). */
#define XRDMA_UDP_PORT 4791

struct sock;
struct xrdma_pernet;

/**
 * struct xrdma_tunnel - the RoCEv2 sockets of one network namespace
 * @sk4: IPv4 socket, NULL when closed.
 * @sk6: IPv6 socket, NULL when closed or without IPv6.
 * @receive: where packets go.
 * @cookie: identifies the namespace.
 * @pernet: back pointer, NULL when closed.
 * @users: open handles.
 * @ref: references to the memory; one per handle.
 *
 * @pernet and @users are under the mutex of udp.c, which also covers writes to
 * the socket pointers; readers of these are in an RCU read section.
 */
struct xrdma_tunnel {
	struct sock __rcu *sk4;
	struct sock __rcu *sk6;
	xrdma_receive_fn receive;
	u64 cookie;
	struct xrdma_pernet *pernet;
	unsigned int users;
	refcount_t ref;
};

#endif /* XRDMA_TUNNEL_H */
