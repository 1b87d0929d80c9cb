// SPDX-License-Identifier: GPL-2.0
/*
 * A user of the object that a key refers to publishes the number of the key on
 * its CPU. A caller that takes the key away looks at all CPUs and waits only
 * for the CPUs that publish this number. An RCU grace period would wait for all
 * readers on all CPUs, or would interrupt these CPUs.
 *
 * Users keep preemption off. Where that is not possible, held_rt.c takes the place of
 * this file.
 */
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/xarray.h>

#include "services/rcu/held.h"

#ifndef CONFIG_PREEMPT_RT

/* Keys that one CPU uses at a time: two ends of a copy, in a softirq on top of another. */
#define XRDMA_HELD_DEPTH 8

/* The number in a slot; the rest of it counts how often it was filled. */
#define XRDMA_HELD_NUMBER (BIT(24) - 1)

struct xrdma_held {
	unsigned long slot[XRDMA_HELD_DEPTH];
	unsigned int depth;
};

static DEFINE_PER_CPU(struct xrdma_held, xrdma_held);

/*
 * The entry @id of @xa, which whoever removes it leaves alone until
 * xrdma_held_leave(); NULL, and nothing to be left, when there is none. Sections
 * nest, and end on the CPU and in the order in which they began: one may interrupt
 * another. Any context; one must not sleep in between. @id is less than 2^24 and
 * not 0. @token is for xrdma_held_leave(), which needs it on real-time kernels. One
 * call, because it happens for each packet.
 */
void *xrdma_held_enter(struct xarray *xa, __u32 id, int *token)
{
	struct xrdma_held *held;
	unsigned int depth;
	unsigned long old;
	void *entry;

	/* This is an RCU read-side critical section, too. */
	preempt_disable();
	held = this_cpu_ptr(&xrdma_held);
	depth = held->depth;
	if (WARN_ON_ONCE(depth >= XRDMA_HELD_DEPTH))
		goto none;
	/* The slot is ours before it is looked at, whoever interrupts. */
	WRITE_ONCE(held->depth, depth + 1);
	barrier();	/* An interrupt must see the new depth before the slot is read. */
	old = held->slot[depth];
	/* Who sees the new count knows that the use before is over. */
	smp_store_release(&held->slot[depth],
			  (old | XRDMA_HELD_NUMBER) + 1 + id);
	/* Either we see that the entry is gone, or who removed it sees us. */
	smp_mb();
	entry = xa_load(xa, id);
	if (likely(entry))
		return entry;
	/* As in xrdma_held_leave(). */
	smp_store_release(&held->slot[depth],
			  held->slot[depth] & ~XRDMA_HELD_NUMBER);
	barrier();	/* The slot is given back last. */
	WRITE_ONCE(held->depth, depth);
none:
	preempt_enable();
	return NULL;
}

/* Ends what xrdma_held_enter() began. */
void xrdma_held_leave(int token)
{
	struct xrdma_held *held = this_cpu_ptr(&xrdma_held);
	unsigned int depth = held->depth - 1;

	/* Whoever sees that the slot is free knows that the use is over. */
	smp_store_release(&held->slot[depth],
			  held->slot[depth] & ~XRDMA_HELD_NUMBER);
	barrier();	/* The slot is given back last. */
	WRITE_ONCE(held->depth, depth);
	preempt_enable();
}

/*
 * Waits for those who use number @id now; the caller has removed it. They do not
 * sleep and cannot be preempted, so they are on other CPUs, running, and soon done.
 * Who begins meanwhile is not waited for, whichever key he uses: he cannot keep us.
 * Process context.
 */
void xrdma_held_wait(__u32 id)
{
	int cpu, i;

	/* See xrdma_held_enter(). */
	smp_mb();
	for_each_possible_cpu(cpu) {
		struct xrdma_held *held = per_cpu_ptr(&xrdma_held, cpu);

		for (i = 0; i < XRDMA_HELD_DEPTH; i++) {
			/* Pairs with xrdma_held_leave(), as the load below. */
			unsigned long seen = smp_load_acquire(&held->slot[i]);

			if ((seen & XRDMA_HELD_NUMBER) != id)
				continue;
			/* Pairs with xrdma_held_leave(). */
			while (smp_load_acquire(&held->slot[i]) == seen) {
				cpu_relax();
				cond_resched();
			}
		}
	}
}

#endif /* !CONFIG_PREEMPT_RT */
