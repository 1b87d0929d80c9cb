// SPDX-License-Identifier: GPL-2.0
/*
 * Trains: super-packets whose packets are not built. The packets of a long message have the
 * same headers, but for their numbers and for what the first or the last has in addition. So
 * a train has the headers of the first of them, once, and the payload of all in page
 * fragments, as a TCP packet has that is longer than a segment. It may go on with the next
 * message. If nobody cuts it, its packets never exist.
 * Documentation/infiniband/xroce-design.rst describes it.
 *
 * From the UDP header on, a train has its transport headers and the payload. These headers
 * are those of the first packet, but for what rust/roce/wire/train.rs says, which makes them.
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
#define XRDMA_BTH_FLAGS 1
#define XRDMA_BTH_SE 0x80
#define XRDMA_BTH_ACK 8
#define XRDMA_BTH_ACK_REQ 0x80
#define XRDMA_BTH_PSN 9
/* A reserved bit beside AckReq: the train ends with the Last packet of its message. */
#define XRDMA_BTH_ENDS 0x40
/* The extended headers. */
#define XRDMA_XRCETH 4
#define XRDMA_AETH 4
#define XRDMA_RETH 16
/*
 * The seam, where the next message begins: the index of that packet, or 0; the SE bit of the packet
 * before it; two bytes of zeroes. The extended headers of the next message are behind it.
 */
#define XRDMA_SEAM 4
#define XRDMA_SEAM_FLAGS 1
#define XRDMA_SEAM_SE 0x80

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

/* Where in its message a packet is. Operation codes have this order, too. */
enum xrdma_position { XRDMA_FIRST, XRDMA_MIDDLE, XRDMA_LAST };

/*
 * The position of a packet with @opcode. False: it is in no train. The same as Kinds::of() in
 * rust/roce/wire/train.rs.
 */
static bool xrdma_train_position(u8 opcode, enum xrdma_position *position)
{
	switch (opcode & 0x1f) {
	case 0x00: /* SEND First */
	case 0x06: /* RDMA WRITE First */
	case 0x0d: /* RDMA READ response First */
		*position = XRDMA_FIRST;
		return true;
	case 0x01:
	case 0x07:
	case 0x0e:
		*position = XRDMA_MIDDLE;
		return true;
	case 0x02:
	case 0x08:
	case 0x0f:
		*position = XRDMA_LAST;
		return true;
	default:
		return false;
	}
}

/*
 * Bytes of extended headers of a packet at @position, beyond those that all packets of its message
 * have, whose @opcode is one that may be in a train.
 */
static u32 xrdma_train_more(u8 opcode, enum xrdma_position position)
{
	switch (opcode & 0x1f) {
	case 0x06 ... 0x08: /* RDMA WRITE */
		return position == XRDMA_FIRST ? XRDMA_RETH : 0;
	case 0x0d ... 0x0f: /* RDMA READ response */
		return position == XRDMA_MIDDLE ? 0 : XRDMA_AETH;
	default:
		return 0;
	}
}

/*
 * Where the seam is in the headers of a train, whose first packet has @opcode and is at @position,
 * and of which all packets have @middle bytes. If that is a Middle packet, there is room in front
 * of it for what the Last one has.
 */
static u32 xrdma_train_seam_at(u8 opcode, enum xrdma_position position, u32 middle)
{
	return middle +
	       xrdma_train_more(opcode, position == XRDMA_FIRST ? XRDMA_FIRST : XRDMA_LAST);
}

/* Reads the seam behind @before bytes of headers, which are @at bytes from the data. */
static bool xrdma_train_read_seam(const struct sk_buff *skb, unsigned int at, u32 before,
				  struct xrdma_train *train)
{
	u8 copy[XRDMA_SEAM];
	const u8 *seam = skb_header_pointer(skb, at + before, sizeof(copy), copy);

	if (!seam)
		return false;
	train->seam = seam[0];
	return true;
}

/*
 * The geometry of a train that has @len bytes behind the UDP header, which begin @at bytes from
 * the data. False: it is none.
 */
static bool xrdma_train_read(const struct sk_buff *skb, unsigned int at, unsigned int len,
			     struct xrdma_train *train)
{
	unsigned int size = skb_shinfo(skb)->gso_size;
	enum xrdma_position position;
	u8 copy[XRDMA_BTH];
	const u8 *bth = skb_header_pointer(skb, at, sizeof(copy), copy);
	u32 before;

	if (!bth || size < XRDMA_MTU_MIN + XRDMA_BTH + XRDMA_ICRC_LEN ||
	    !xrdma_train_position(bth[0], &position))
		return false;
	train->mtu = rounddown_pow_of_two(size);
	train->middle = size - train->mtu - XRDMA_ICRC_LEN;
	if (train->middle != XRDMA_BTH && train->middle != XRDMA_BTH + XRDMA_XRCETH)
		return false;
	train->count = skb_shinfo(skb)->gso_segs;
	before = xrdma_train_seam_at(bth[0], position, train->middle);
	if (!xrdma_train_read_seam(skb, at, before, train))
		return false;
	train->first = before + XRDMA_SEAM + xrdma_train_more(bth[0], XRDMA_FIRST);
	before = train->first + (train->count - 1) * train->mtu;
	train->last = len - before;
	return train->mtu <= XRDMA_MTU_MAX && train->count > 1 &&
	       train->count <= XRDMA_GSO_SEGS && train->seam < train->count &&
	       (position == XRDMA_LAST) == (train->seam == 1) && len > before &&
	       (train->last == train->mtu ||
		(train->last < train->mtu && !(train->last % 4) &&
		 bth[XRDMA_BTH_ACK] & XRDMA_BTH_ENDS));
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
	    !xrdma_train_read(skb, sizeof(struct udphdr), skb->len - sizeof(struct udphdr),
			      &train) ||
	    skb_headlen(skb) != sizeof(struct udphdr) + train.first)
		return false;
	for (i = 0; i < info->nr_frags; i++) {
		const skb_frag_t *frag = &info->frags[i];
		u32 size = skb_frag_size(frag);

		if (i == info->nr_frags - 1) {
			if (size < train.last)
				return false;
			size -= train.last;
		}
		if (size % train.mtu || PageHighMem(skb_frag_page(frag)))
			return false;
	}
	return true;
}

/*
 * Bytes of payload of each packet but the last of an intact train, of one that is being built, or
 * of the train that a packet was copied from (xrdma_skb_copy_part()).
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
 * The payload of packet @index of a train, which is not a copy: *@len bytes, or those of them that
 * are in one piece, its own at least; sets *@len. NULL: there is no such packet.
 */
__u8 *xrdma_train_payload(const struct sk_buff *skb, __u32 index, __u32 *len)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	u64 at = (u64)index * xrdma_train_mtu(skb);
	u32 i;

	for (i = 0; i < info->nr_frags; i++) {
		const skb_frag_t *frag = &info->frags[i];

		if (at < skb_frag_size(frag)) {
			*len = min_t(u32, *len, skb_frag_size(frag) - at);
			return (u8 *)skb_frag_address(frag) + at;
		}
		at -= skb_frag_size(frag);
	}
	return NULL;
}

/* Where in its message packet @index of @train is, which begins at @first. */
static enum xrdma_position xrdma_train_at(const struct xrdma_train *train, u32 index,
					  enum xrdma_position first, bool ends)
{
	if (!index)
		return first;
	if (index == train->seam)
		return XRDMA_FIRST;
	if (index + 1 == train->seam || (index + 1 == train->count && ends))
		return XRDMA_LAST;
	return XRDMA_MIDDLE;
}

/* Makes @seg, which has the headers of a train, packet @index of it. */
static bool xrdma_train_seal(struct sk_buff *seg, const struct xrdma_train *train,
			     unsigned int outer, u32 index)
{
	u8 *bth = seg->data;
	bool ends = bth[XRDMA_BTH_ACK] & XRDMA_BTH_ENDS;
	bool last = index + 1 == train->count;
	u32 next = xrdma_train_more(bth[0], XRDMA_FIRST);
	enum xrdma_position first, position;
	u32 seam_at, more, gap;
	bool solicits;

	/* Nobody should have changed what xrdma_train_read() has seen. */
	if (!xrdma_train_position(bth[0], &first))
		return false;
	seam_at = xrdma_train_seam_at(bth[0], first, train->middle);
	if (seam_at + XRDMA_SEAM + next != train->first)
		return false;
	position = xrdma_train_at(train, index, first, ends);
	if (train->seam && index + 1 == train->seam)
		solicits = bth[seam_at + XRDMA_SEAM_FLAGS] & XRDMA_SEAM_SE;
	else
		solicits = last && ends && bth[XRDMA_BTH_FLAGS] & XRDMA_BTH_SE;
	more = xrdma_train_more(bth[0], position);
	/* Those of the second message come last. */
	if (more && train->seam && index >= train->seam)
		memmove(bth + train->middle, bth + train->first - next, more);
	/* The other headers move up to the payload. */
	gap = train->first - train->middle - more;
	memmove(bth - outer + gap, bth - outer, outer + train->middle + more);
	__skb_pull(seg, gap);
	bth = seg->data;
	if (index) {
		u8 *psn = bth + XRDMA_BTH_PSN;

		put_unaligned_be24((get_unaligned_be24(psn) + index) & 0xffffff, psn);
		bth[0] += position - first;
	}
	if (!last)
		bth[XRDMA_BTH_ACK] &= ~XRDMA_BTH_ACK_REQ;
	bth[XRDMA_BTH_ACK] &= ~XRDMA_BTH_ENDS;
	bth[XRDMA_BTH_FLAGS] &= ~XRDMA_BTH_SE;
	if (solicits)
		bth[XRDMA_BTH_FLAGS] |= XRDMA_BTH_SE;
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

	if (!xrdma_train_read(skb, 0, skb->len, &train) || skb_has_frag_list(skb))
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
