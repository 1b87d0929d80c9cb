// SPDX-License-Identifier: GPL-2.0
/*
 * Trains: super-packets whose packets are not built. The packets of a long message, all but
 * the last, have the same headers, but for their numbers and for what the first has in
 * addition. So a train has the headers of the first of them, once, and the payload of all in
 * page fragments, as a TCP packet has that is longer than a segment. If nobody cuts it, its
 * packets never exist.
 * Documentation/infiniband/xroce-design.rst describes it.
 *
 * From the UDP header on, a train has the transport headers of its first packet and the
 * payload. The AckReq bit in these headers is that of the last packet; the others do not ask.
 * ICRCs are put off (icrc.c), which is how it gets cut. All of this is sk_buff's layout and
 * inline functions, which is why it is in C.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <linux/unaligned.h>

#include "services/net/gso.h"
#include "services/net/icrc.h"
#include "services/net/train.h"

/* The base transport header, and where its parts are (IBTA 9.2). */
#define XRDMA_BTH 12
#define XRDMA_BTH_ACK_REQ 8
#define XRDMA_BTH_PSN 9
/* XRCETH; RETH, the longest of the extended headers that only a First packet has. */
#define XRDMA_XRCETH 4
#define XRDMA_RETH 16

#define XRDMA_MTU_MIN 256
#define XRDMA_MTU_MAX 4096

/*
 * KiB of payload of a train to @dst, at most; 0: none is to go there at this time. Its net
 * device takes super-packets without ICRCs. Caller is in an RCU read section.
 */
__u8 xrdma_train_room(const struct dst_entry *dst)
{
	const struct net_device *dev = dst_dev_rcu(dst);
	unsigned int max = min3((unsigned int)GSO_LEGACY_MAX_SIZE, READ_ONCE(dev->gso_max_size),
				READ_ONCE(dev->gso_ipv4_max_size));

	if (!xrdma_gso_admits(dev) ||
	    !(dev->features & dev->hw_enc_features & NETIF_F_SG) ||
	    READ_ONCE(dev->gso_max_segs) < XRDMA_GSO_SEGS || !xrdma_gso_passes(dst))
		return 0;
	return max > XRDMA_GSO_SLACK ? (max - XRDMA_GSO_SLACK) / SZ_1K : 0;
}

/*
 * Makes @skb a train. It has IP and UDP headers, then @train->first bytes of transport
 * headers, then the payload in fragments, none of which has a part of a packet's.
 */
void xrdma_train_end(struct sk_buff *skb, const struct xrdma_train *train)
{
	struct skb_shared_info *info = skb_shinfo(skb);

	info->gso_size = train->middle + train->mtu + XRDMA_ICRC_LEN;
	info->gso_segs = train->count;
	info->gso_type = XRDMA_GSO_TYPE;
	/* As in xrdma_gso_end(). */
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	xrdma_icrc_put_off(skb, XRDMA_ICRC_PROTO_TRAIN);
}

/* The geometry of a train with @len bytes behind the UDP header. False: it is none. */
static bool xrdma_train_read(const struct sk_buff *skb, unsigned int len,
			     struct xrdma_train *train)
{
	unsigned int size = skb_shinfo(skb)->gso_size;

	if (size < XRDMA_MTU_MIN + XRDMA_BTH + XRDMA_ICRC_LEN)
		return false;
	train->mtu = rounddown_pow_of_two(size);
	train->middle = size - train->mtu - XRDMA_ICRC_LEN;
	train->count = len / train->mtu;
	train->first = len % train->mtu;
	return (size == train->mtu + XRDMA_BTH + XRDMA_ICRC_LEN ||
		size == train->mtu + XRDMA_BTH + XRDMA_XRCETH + XRDMA_ICRC_LEN) &&
	       train->mtu <= XRDMA_MTU_MAX && train->first >= train->middle &&
	       train->first <= train->middle + XRDMA_RETH && train->count > 1 &&
	       train->count <= XRDMA_GSO_SEGS &&
	       train->count == skb_shinfo(skb)->gso_segs;
}

/*
 * Whether a received packet is a train as xrdma_train_end() left it, but for what the stack
 * writes into its IP and UDP headers, and nobody else has it. Its payload is then in pages that
 * train_pages.c has allocated. A capture may have some of them, too, which only reads. skb->data
 * is at the UDP header.
 */
bool xrdma_train_is_intact(struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	struct xrdma_train train;
	unsigned int i;

	if (!xrdma_icrc_is_train(skb) || info->gso_type != XRDMA_GSO_TYPE ||
	    skb_shared(skb) || skb_cloned(skb) || info->frag_list || skb_zcopy(skb) ||
	    skb_has_shared_frag(skb) || !skb_frags_readable(skb) ||
	    skb->len < sizeof(struct udphdr) ||
	    !xrdma_train_read(skb, skb->len - sizeof(struct udphdr), &train) ||
	    skb_headlen(skb) != sizeof(struct udphdr) + train.first)
		return false;
	for (i = 0; i < info->nr_frags; i++) {
		const skb_frag_t *frag = &info->frags[i];

		if (skb_frag_size(frag) % train.mtu || PageHighMem(skb_frag_page(frag)))
			return false;
	}
	return true;
}

/*
 * Bytes of payload of each packet of an intact train, of one that is being built, or of the train
 * that a packet was copied from (xrdma_skb_copy_part()).
 */
__u32 xrdma_train_mtu(const struct sk_buff *skb)
{
	return rounddown_pow_of_two(skb_shinfo(skb)->gso_size);
}

/* Packets of an intact train, or of the one that a packet was copied from. */
__u32 xrdma_train_count(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->gso_segs;
}

/*
 * The payload of packet @index of a train, which is not a copy, and of those behind it, up to
 * *@count of them, that follow it in memory; sets *@count. NULL: there is no such packet.
 */
__u8 *xrdma_train_payload(const struct sk_buff *skb, __u32 index, __u32 *count)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	u32 mtu = xrdma_train_mtu(skb), i;
	u64 at = (u64)index * mtu;

	for (i = 0; i < info->nr_frags; i++) {
		const skb_frag_t *frag = &info->frags[i];

		if (at + mtu <= skb_frag_size(frag)) {
			*count = min_t(u32, *count, (skb_frag_size(frag) - at) / mtu);
			return (u8 *)skb_frag_address(frag) + at;
		}
		if (at < skb_frag_size(frag))
			break;
		at -= skb_frag_size(frag);
	}
	return NULL;
}

/*
 * The operation code of what follows a packet with @opcode: First and Middle are neighbours. The
 * same as middle() in rust/roce/wire/train.rs, which knows what may be in a train.
 */
static u8 xrdma_train_middle(u8 opcode)
{
	switch (opcode & 0x1f) {
	case 0x00: /* SEND First */
	case 0x06: /* RDMA WRITE First */
	case 0x0d: /* RDMA READ response First */
		return opcode + 1;
	default:
		return opcode;
	}
}

/* Makes @seg, which has the headers of the first packet of a train, packet @index of it. */
static bool xrdma_train_seal(struct sk_buff *seg, const struct xrdma_train *train,
			     unsigned int outer, u32 index)
{
	u32 more = train->first - train->middle;
	u8 *bth;

	if (index && more) {
		memmove(seg->data - outer + more, seg->data - outer, outer + train->middle);
		__skb_pull(seg, more);
	}
	bth = seg->data;
	if (index) {
		u8 *psn = bth + XRDMA_BTH_PSN;

		put_unaligned_be24((get_unaligned_be24(psn) + index) & 0xffffff, psn);
		bth[0] = xrdma_train_middle(bth[0]);
	}
	if (index + 1 != train->count)
		bth[XRDMA_BTH_ACK_REQ] &= 0x7f;
	if (skb_tailroom(seg) < XRDMA_ICRC_LEN &&
	    pskb_expand_head(seg, 0, XRDMA_ICRC_LEN, GFP_ATOMIC))
		return false;
	skb_put(seg, XRDMA_ICRC_LEN);
	return true;
}

/*
 * Cuts a train into its packets, which lack nothing but what icrc.c writes. skb->data is behind
 * the UDP header, which is taken for the MAC header (skb_udp_tunnel_segment()), and @outer bytes
 * of headers are in front of it, which each packet gets. Any context but hard interrupt, in an RCU
 * read section.
 */
struct sk_buff *xrdma_train_cut(struct sk_buff *skb, unsigned int outer)
{
	struct skb_shared_info *info;
	struct sk_buff *segs, *seg;
	struct xrdma_train train;
	u32 index = 0;
	u16 size;

	if (!xrdma_train_read(skb, skb->len, &train) || skb_has_frag_list(skb))
		return ERR_PTR(-EINVAL);
	/* A capture may have a clone, whose geometry is not to change. */
	if (!pskb_may_pull(skb, train.first) || skb_unclone(skb, GFP_ATOMIC))
		return ERR_PTR(-ENOMEM);
	info = skb_shinfo(skb);
	size = info->gso_size;
	info->gso_size = train.mtu;
	__skb_pull(skb, train.first);
	/* Each is to be linear, and has no checksum. It pushes what was pulled. */
	segs = skb_segment(skb, NETIF_F_HW_CSUM);
	info->gso_size = size;
	if (IS_ERR(segs))
		return segs;
	for (seg = segs; seg; seg = seg->next, index++) {
		if (!xrdma_train_seal(seg, &train, outer, index)) {
			xrdma_icrc_drop(skb, segs);
			return ERR_PTR(-ENOMEM);
		}
	}
	return segs;
}
