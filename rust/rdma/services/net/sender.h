/* SPDX-License-Identifier: GPL-2.0 */
/* The sockets of the processes that send. */
#ifndef XRDMA_SERVICES_NET_SENDER_H
#define XRDMA_SERVICES_NET_SENDER_H

#include <linux/types.h>

struct xrdma_process;
struct xrdma_tunnel;

struct xrdma_sender;

struct xrdma_sender *xrdma_sender_get(struct xrdma_tunnel *t,
				      const struct xrdma_process *p, __u64 group);
void xrdma_sender_put(struct xrdma_tunnel *t, struct xrdma_sender *s);
__u64 xrdma_sender_bytes(const struct xrdma_sender *s);

#endif /* XRDMA_SERVICES_NET_SENDER_H */
