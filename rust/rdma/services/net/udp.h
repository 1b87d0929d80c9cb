/* SPDX-License-Identifier: GPL-2.0 */
/* The UDP sockets of RoCEv2. */
#ifndef XRDMA_SERVICES_NET_UDP_H
#define XRDMA_SERVICES_NET_UDP_H

#include <linux/types.h>

struct net;
struct sk_buff;
struct xrdma_peek;

/*
 * Takes a packet that was parsed and detached; or, if @skb is NULL, is told that a
 * packet for the address @refused was refused.
 */
typedef void (*xrdma_receive_fn)(__u64 net_cookie, struct sk_buff *skb,
				 const __u8 (*refused)[16]);

/*
 * Is shown a packet that was detached but that nobody has looked at. True: it has taken
 * the packet, to receive it later (xrdma_arrival_receive()).
 */
typedef bool (*xrdma_steer_fn)(__u64 net_cookie, struct sk_buff *skb,
			       const struct xrdma_peek *peek);
struct xrdma_tunnel;

/*
 * The ICRC of a packet, as a number that the packet has in little-endian order. @headers: IP
 * header and UDP header. @covered: from the base transport header to the last pad byte.
 */
typedef __u32 (*xrdma_icrc_fn)(const __u8 *headers, __u32 headers_len,
			       const __u8 *covered, __u32 len);

int xrdma_udp_init(xrdma_icrc_fn icrc);
void xrdma_udp_exit(void);
struct xrdma_tunnel *xrdma_tunnel_open(struct net *net, xrdma_receive_fn receive,
				       xrdma_steer_fn steer, int *error);
void xrdma_tunnel_close(struct xrdma_tunnel *t);
void xrdma_tunnel_put(struct xrdma_tunnel *t);
__u64 xrdma_tunnel_cookie(const struct xrdma_tunnel *t);

#endif /* XRDMA_SERVICES_NET_UDP_H */
