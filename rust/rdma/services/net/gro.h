/* SPDX-License-Identifier: GPL-2.0 */
/* GRO. Declarations for udp.c. bindgen does not read them. */
#ifndef XRDMA_SERVICES_NET_GRO_H
#define XRDMA_SERVICES_NET_GRO_H

#include <linux/types.h>

struct list_head;
struct sk_buff;
struct sock;

struct sk_buff *xrdma_gro_receive(struct sock *sk, struct list_head *held,
				  struct sk_buff *skb);
int xrdma_gro_complete(struct sock *sk, struct sk_buff *skb, int offset);

bool xrdma_gro_is_intact(struct sk_buff *skb);

#endif /* XRDMA_SERVICES_NET_GRO_H */
