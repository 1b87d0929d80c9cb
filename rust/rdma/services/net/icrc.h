/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ICRCs that are computed late. Declarations for the C files beside it. bindgen does not read
 * them.
 */
#ifndef XRDMA_SERVICES_NET_ICRC_H
#define XRDMA_SERVICES_NET_ICRC_H

#include <linux/skbuff.h>
#include <linux/types.h>

#include "services/net/udp.h"

struct net_device;

/* Bytes of an ICRC. */
#define XRDMA_ICRC_LEN 4

/*
 * The protocol inside of a super-packet without ICRCs, and of a train: two that are reserved
 * for experiments (RFC 3692), of which the kernel segments nothing. No packet of ours has them
 * on a wire, and packets that have them there are not cut here.
 */
#define XRDMA_ICRC_PROTO 253
#define XRDMA_ICRC_PROTO_TRAIN 254

void xrdma_icrc_init(xrdma_icrc_fn compute);
void xrdma_icrc_exit(void);
bool xrdma_icrc_may_wait(const struct net_device *dev);
void xrdma_icrc_fill(struct sk_buff *skb);
void xrdma_icrc_put_off(struct sk_buff *skb, u8 proto);
bool xrdma_icrc_is_put_off(const struct sk_buff *skb);
bool xrdma_icrc_is_train(const struct sk_buff *skb);
void xrdma_icrc_drop(struct sk_buff *skb, struct sk_buff *segs);

#endif /* XRDMA_SERVICES_NET_ICRC_H */
