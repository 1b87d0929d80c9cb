// SPDX-License-Identifier: GPL-2.0
/*
 * Packets that are taken up on another CPU than the one on which they came: which they
 * are, and which CPU. udp.c receives them.
 */
#include <linux/cpumask.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/sched/isolation.h>
#include <linux/skbuff.h>
#include <linux/smp.h>
#include <linux/udp.h>
#include <linux/unaligned.h>
#include <net/ipv6.h>

#include "services/net/arrival.h"

atomic_t xrdma_arrivals = ATOMIC_INIT(0);

/*
 * More, or fewer, packets wait to be received on another CPU. Whoever sees that one is no
 * longer there sees what its receipt has done (xrdma_steer()). atomic_t is not for Rust.
 * Any context.
 */
void xrdma_arrivals_add(int count)
{
	atomic_add_return_release(count, &xrdma_arrivals);
}

/* Bytes of the base transport header (IBTA 9.2). */
#define XRDMA_BTH 12

/*
 * What the headers say of where a packet goes, unchecked. False: it is received here
 * and now, as a packet is that is not laid out as RoCEv2 has it. The accessors are
 * inline.
 */
bool xrdma_peek(const struct sk_buff *skb, struct xrdma_peek *peek)
{
	const u8 *bth = skb->data + sizeof(struct udphdr);

	if (skb_headlen(skb) < sizeof(struct udphdr) + XRDMA_BTH)
		return false;
	if (skb->protocol == htons(ETH_P_IP)) {
		const struct iphdr *ip = ip_hdr(skb);

		ipv6_addr_set_v4mapped(ip->saddr, (struct in6_addr *)peek->src);
		ipv6_addr_set_v4mapped(ip->daddr, (struct in6_addr *)peek->dst);
	} else {
		const struct ipv6hdr *ip = ipv6_hdr(skb);

		memcpy(peek->src, &ip->saddr, sizeof(peek->src));
		memcpy(peek->dst, &ip->daddr, sizeof(peek->dst));
	}
	peek->opcode = bth[0];
	peek->qpn = get_unaligned_be24(bth + 5);
	peek->len = skb->len;
	peek->is_super = skb_is_gso(skb);
	return true;
}

/* Frees a packet that is not going to be received. kfree_skb() is inline. */
void xrdma_arrival_drop(struct sk_buff *skb)
{
	kfree_skb(skb);
}

/*
 * The CPU that takes up what comes to this one in bulk for a completion vector of CPU
 * @home; -1: this one. If nobody has chosen the affinity of the vector (@is_default), or
 * there is no vector, it is the next CPU, so that the work spreads as the senders do. CPUs
 * that are kept for others (isolcpus=, nohz_full=) are not taken then. cpumasks are macros.
 * Any context that does not move to another CPU: the answer is good for the CPU that asks.
 */
int xrdma_bulk_cpu(int home, bool is_default)
{
	int here = raw_smp_processor_id(), cpu, found = -1;

	if (!is_default)
		return home >= 0 && home != here && cpu_online(home) ? home : -1;
	rcu_read_lock();
	for_each_cpu_wrap(cpu, housekeeping_cpumask(HK_TYPE_DOMAIN), here + 1) {
		if (cpu != here && cpu_online(cpu) &&
		    housekeeping_test_cpu(cpu, HK_TYPE_KERNEL_NOISE)) {
			found = cpu;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}
