/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ICRCs that are computed late. Declarations for route.c, gso.c and udp.c. bindgen does not
 * read them.
 */
#ifndef XRDMA_SERVICES_NET_ICRC_H
#define XRDMA_SERVICES_NET_ICRC_H

#include <linux/skbuff.h>
#include <linux/types.h>

#include "services/net/udp.h"

struct net_device;

void xrdma_icrc_init(xrdma_icrc_fn compute);
void xrdma_icrc_exit(void);
bool xrdma_icrc_may_wait(const struct net_device *dev);
void xrdma_icrc_fill(struct sk_buff *skb);
void xrdma_icrc_put_off(struct sk_buff *skb);
bool xrdma_icrc_is_put_off(const struct sk_buff *skb);

#endif /* XRDMA_SERVICES_NET_ICRC_H */
