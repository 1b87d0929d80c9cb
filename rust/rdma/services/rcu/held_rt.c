// SPDX-License-Identifier: GPL-2.0
/*
 * held.c for real-time kernels. Users of an object take spinlocks, which sleep there,
 * so that they change places on their CPU. They are counted instead, by a hash of the
 * number of the key. A caller that takes a key away waits until all have left who had
 * come before.
 *
 * Others come meanwhile, whom it need not wait for. So there are two counts, as SRCU
 * has them: those who come are counted in one of them, and the other one runs dry.
 * SRCU itself would do, but takes some 15 ms for that on a real-time kernel, where
 * nothing expedites its grace periods.
 */
#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/hash.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>

#include "services/rcu/held.h"

#ifdef CONFIG_PREEMPT_RT

#define XRDMA_HELD_BITS 8

/**
 * struct xrdma_held - the users of the keys with one hash
 * @users: how many there are, in two counts.
 * @now: in which of these they are counted who come.
 * @mutex: one waits at a time, and writes @now.
 */
struct xrdma_held {
	atomic_t users[2];
	unsigned int now;
	struct mutex mutex;
} ____cacheline_aligned_in_smp;

#define XRDMA_HELD_LAST ((1 << XRDMA_HELD_BITS) - 1)

/* A mutex that sleeps on a real-time kernel has no pointers to itself. */
static struct xrdma_held xrdma_held[] = {
	[0 ... XRDMA_HELD_LAST] = {
		.mutex = __MUTEX_INITIALIZER(xrdma_held[0].mutex),
	},
};

/* The count that @token names. */
static atomic_t *xrdma_held_users(int token)
{
	return &xrdma_held[token >> 1].users[token & 1];
}

static void xrdma_held_put(atomic_t *users)
{
	/* What the user has done comes before it: whoever waits may free the object. */
	if (atomic_dec_and_test(users))
		wake_up_var(users);
}

/*
 * The entry @id of @xa, which whoever removes it leaves alone until
 * xrdma_held_leave(); NULL, and nothing to be left, when there is none. Sections nest.
 * A task or its softirq; one must not sleep in between but for a spinlock. @token is
 * for xrdma_held_leave().
 */
void *xrdma_held_enter(struct xarray *xa, __u32 id, int *token)
{
	u32 hash = hash_32(id, XRDMA_HELD_BITS);
	int of = hash << 1 | READ_ONCE(xrdma_held[hash].now);
	void *entry;

	atomic_inc(xrdma_held_users(of));
	/* Either we see that the entry is gone, or who removed it sees us. */
	smp_mb__after_atomic();
	rcu_read_lock();
	entry = xa_load(xa, id);
	if (likely(entry)) {
		*token = of;
		return entry;
	}
	rcu_read_unlock();
	xrdma_held_put(xrdma_held_users(of));
	return NULL;
}

/* Ends what xrdma_held_enter() began. */
void xrdma_held_leave(int token)
{
	rcu_read_unlock();
	xrdma_held_put(xrdma_held_users(token));
}

/* Waits until nobody is counted in @users, which those who come are not counted in. */
static void xrdma_held_drain(atomic_t *users)
{
	wait_var_event(users, !atomic_read_acquire(users));
}

/*
 * Waits for those who use number @id now, or one with the same hash; the caller has
 * removed it. Who begins meanwhile is waited for only if he has read @now before it
 * changed. Process context, sleeps.
 */
void xrdma_held_wait(__u32 id)
{
	struct xrdma_held *held = &xrdma_held[hash_32(id, XRDMA_HELD_BITS)];
	unsigned int now;

	mutex_lock(&held->mutex);
	/* See xrdma_held_enter(). */
	smp_mb();
	now = held->now;
	/* Those who read @now before the last change, and were late. */
	xrdma_held_drain(&held->users[!now]);
	WRITE_ONCE(held->now, !now);
	/* Who is counted here after this look has seen that the entry is gone. */
	xrdma_held_drain(&held->users[now]);
	mutex_unlock(&held->mutex);
}

#endif /* CONFIG_PREEMPT_RT */
