// SPDX-License-Identifier: GPL-2.0
/*
 * Pages for the payload of trains. The kernel fills pages with zeroes when it allocates them
 * (init_on_alloc), which is wasted on pages that are filled with payload next. So pages that
 * are freed with a train are kept for the next one, in a page pool, as those of drivers are
 * that receive packets. What is left in them never leaves the kernel: a train has no byte that
 * was not written for it.
 *
 * There is a pool for each CPU, because only one may take pages from a pool at a time. It keeps
 * up to XRDMA_TRAIN_KEPT pieces that were given back, and up to PP_ALLOC_CACHE_REFILL that its
 * CPU has taken over for its next trains: 3 MiB with pages of 4 KiB.
 */
#include <linux/bottom_half.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <net/page_pool/helpers.h>

#include "services/net/train_pages.h"

/* What is allocated in one piece, if there is such a piece. */
#define XRDMA_TRAIN_ORDER get_order(SZ_32K)

/* Pieces that a pool keeps when they are given back. What comes then is freed. */
#define XRDMA_TRAIN_KEPT 32

/* On a real-time kernel, disabling bottom halves does not keep others from a pool. */
#define XRDMA_TRAIN_POOLS (IS_ENABLED(CONFIG_PAGE_POOL) && !IS_ENABLED(CONFIG_PREEMPT_RT))

/* NULL: there is none. Who uses it has disabled bottom halves. */
static DEFINE_PER_CPU(struct page_pool *, xrdma_train_pools);

/*
 * Gives @skb, which has no fragments yet, @len bytes of payload in pieces of @pool. False: there
 * are too few. Bottom halves are disabled.
 */
static bool xrdma_train_take_pages(struct page_pool *pool, struct sk_buff *skb, u32 len)
{
	const u32 piece = PAGE_SIZE << XRDMA_TRAIN_ORDER;

	while (skb->data_len < len) {
		u32 size = min(piece, len - skb->data_len);
		struct page *page;

		page = page_pool_alloc_pages(pool, GFP_NOWAIT | __GFP_NOWARN);
		if (!page)
			return false;
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, size, piece);
	}
	return true;
}

/* The same packet as below, with pages of this CPU's pool. NULL: there is none, or no memory. */
static struct sk_buff *xrdma_train_alloc_pooled(u32 headroom, u32 head, u32 len)
{
	struct sk_buff *skb = NULL;
	struct page_pool *pool;

	local_bh_disable();
	pool = __this_cpu_read(xrdma_train_pools);
	if (pool)
		skb = alloc_skb(headroom + head, GFP_NOWAIT | __GFP_NOWARN);
	if (skb) {
		skb_reserve(skb, headroom);
		skb_put(skb, head);
		skb_mark_for_recycle(skb);
		if (!xrdma_train_take_pages(pool, skb, len)) {
			consume_skb(skb);
			skb = NULL;
		}
	}
	local_bh_enable();
	return skb;
}

/*
 * A packet with @head bytes behind @headroom bytes of room, and @len bytes of payload in fragments
 * behind that. Any context but hard interrupt, interrupts enabled. It takes no reserves: what was
 * to be a train can be built as packets.
 */
struct sk_buff *xrdma_train_alloc(u32 headroom, u32 head, u32 len)
{
	struct sk_buff *skb;
	int error;

	/* A small train would take a piece that is far too large. */
	if (XRDMA_TRAIN_POOLS && len > SZ_16K) {
		skb = xrdma_train_alloc_pooled(headroom, head, len);
		if (skb)
			return skb;
	}
	skb = alloc_skb_with_frags(headroom + head, len, XRDMA_TRAIN_ORDER, &error,
				   GFP_NOWAIT | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, headroom);
	skb_put(skb, head);
	skb->data_len = len;
	skb->len += len;
	return skb;
}

/* Without memory there are no pools, which is no error. Process context. */
void xrdma_train_pages_init(void)
{
	int cpu;

	if (!XRDMA_TRAIN_POOLS)
		return;
	for_each_possible_cpu(cpu) {
		const struct page_pool_params params = {
			.order = XRDMA_TRAIN_ORDER,
			.pool_size = XRDMA_TRAIN_KEPT,
			.nid = NUMA_NO_NODE,
		};
		struct page_pool *pool = page_pool_create(&params);

		if (!IS_ERR(pool))
			per_cpu(xrdma_train_pools, cpu) = pool;
	}
}

/*
 * No train is allocated any more. A pool whose pages are still in packets goes when these do, which
 * needs nothing of this module. Process context.
 */
void xrdma_train_pages_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		page_pool_destroy(per_cpu(xrdma_train_pools, cpu));
		per_cpu(xrdma_train_pools, cpu) = NULL;
	}
}
