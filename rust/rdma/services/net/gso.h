/* SPDX-License-Identifier: GPL-2.0 */
/* Super-packets. Declarations for the C files beside it. bindgen does not read them. */
#ifndef XRDMA_SERVICES_NET_GSO_H
#define XRDMA_SERVICES_NET_GSO_H

#include <linux/skbuff.h>
#include <linux/types.h>

struct dst_entry;
struct net_device;

/*
 * SKB_GSO_UDP_TUNNEL with skb->encapsulation 0 is no packet of a tunnel: UDP hands it
 * to encap_rcv() whole, cuts it as one without that bit where it has to be cut, and
 * gives it to no socket of a program whole. Net devices that would put it into a tunnel
 * of their own do not have the feature of this name, or only for packets of which
 * hardware cuts a part (NETIF_F_GSO_PARTIAL), so it is cut before them. One with
 * skb->encapsulation 1 is handed over whole, too, and has no ICRCs yet (icrc.c).
 */
#define XRDMA_GSO_TYPE (SKB_GSO_FRAGLIST | SKB_GSO_UDP_L4 | SKB_GSO_UDP_TUNNEL)

/*
 * Room in front of the IP header of a packet, at least: net devices push headers in
 * front of the members of a super-packet when they cut it, and take for granted that
 * there is room. VLAN tags, twice, take 22 bytes; VXLAN over IPv6 takes 84.
 */
#define XRDMA_GSO_HEADROOM 192

/*
 * What is left free below the net device's bound of bytes, which counts the headers of
 * the link layer as well. A super-packet must not come near 64 KiB for another reason:
 * where MPLS has taken the place of the protocol inside (icrc.c), the stack would else
 * find 65508 bytes of headers in it instead of refusing it.
 */
#define XRDMA_GSO_SLACK 256

/* Packets in a super-packet, at most; those in core UDP GRO are no more either. */
#define XRDMA_GSO_SEGS 64

/**
 * struct xrdma_gso - a super-packet being made
 * @skb: its head, a packet like the others so far.
 * @last: the packet that was added last, or @skb.
 * @size: bytes of UDP payload of each packet but the last.
 * @segs: packets.
 * @max_segs: the most of them.
 * @max_len: the most bytes of all, from the IP header of the head on.
 * @headroom: bytes in front of the IP header that each packet must have.
 * @closed: the packet that was added last is shorter than @size.
 * @puts_off: its packets need no ICRC before it is cut.
 */
struct xrdma_gso {
	struct sk_buff *skb;
	struct sk_buff *last;
	unsigned int size;
	unsigned int segs;
	unsigned int max_segs;
	unsigned int max_len;
	unsigned int headroom;
	bool closed;
	bool puts_off;
};

bool xrdma_gso_admits(const struct net_device *dev);
bool xrdma_gso_passes(const struct dst_entry *dst);
bool xrdma_gso_begin(struct xrdma_gso *g, struct sk_buff *skb,
		     const struct dst_entry *dst, bool lacks_icrc);
bool xrdma_gso_fits(const struct xrdma_gso *g, const struct sk_buff *seg);
void xrdma_gso_add(struct xrdma_gso *g, struct sk_buff *seg);
void xrdma_gso_end(struct xrdma_gso *g);

bool xrdma_gso_same_flow(const struct sk_buff *a, const struct sk_buff *b);
bool xrdma_gso_follows(const struct sk_buff *a, const struct sk_buff *b);
bool xrdma_gso_is_type(const struct sk_buff *skb);
bool xrdma_gso_is_ours(const struct sk_buff *skb);
bool xrdma_gso_is_intact(struct sk_buff *skb);
struct sk_buff *xrdma_gso_take_apart(struct sk_buff *skb);

#endif /* XRDMA_SERVICES_NET_GSO_H */
