// SPDX-License-Identifier: GPL-2.0
/* The tables in which softirq looks objects up. */
#include <linux/xarray.h>

#include "services/rcu/table.h"

/*
 * xa_init_flags() is inline. The lock is taken with interrupts off everywhere:
 * objects leave the tables from any context. Nodes are charged to whoever makes
 * an object. The lock class is this file's: all tables share it, and no table's
 * lock is ever taken inside another's.
 */
void xrdma_xa_init(struct xarray *xa)
{
	xa_init_flags(xa, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ | XA_FLAGS_ACCOUNT);
}

/*
 * The allocating forms are inline and want to know how to take the lock, which
 * they drop to allocate if they may sleep.
 */
int xrdma_xa_reserve(struct xarray *xa, __u32 *id, __u32 min, __u32 max,
		     __u32 *next, bool may_sleep)
{
	unsigned long flags;
	int ret;

	if (may_sleep) {
		ret = xa_alloc_cyclic_irq(xa, id, NULL, XA_LIMIT(min, max),
					  next, GFP_KERNEL);
	} else {
		xa_lock_irqsave(xa, flags);
		ret = __xa_alloc_cyclic(xa, id, NULL, XA_LIMIT(min, max), next,
					GFP_ATOMIC | __GFP_NOWARN);
		xa_unlock_irqrestore(xa, flags);
	}
	return ret < 0 ? ret : 0;
}

/* As above, for one number. */
int xrdma_xa_reserve_at(struct xarray *xa, __u32 id)
{
	return xa_insert_irq(xa, id, XA_ZERO_ENTRY, GFP_KERNEL);
}

/*
 * xa_lock_irqsave() is a macro. The slot is reserved, and nobody else's, so the
 * store allocates nothing and nothing was there.
 */
void xrdma_xa_publish(struct xarray *xa, __u32 id, void *entry)
{
	unsigned long flags;

	xa_lock_irqsave(xa, flags);
	__xa_store(xa, id, entry, 0);
	xa_unlock_irqrestore(xa, flags);
}

/* The same. A reservation that is not to be filled is given up. */
void xrdma_xa_release(struct xarray *xa, __u32 id)
{
	unsigned long flags;

	xa_lock_irqsave(xa, flags);
	__xa_erase(xa, id);
	xa_unlock_irqrestore(xa, flags);
}

/*
 * The same. Returns what was there, or NULL, and then nothing is stored: a store
 * beside somebody who empties the slot would allocate, and return an error that
 * is no entry.
 */
void *xrdma_xa_replace(struct xarray *xa, __u32 id, void *entry)
{
	unsigned long flags;
	void *old;

	xa_lock_irqsave(xa, flags);
	old = xa_load(xa, id);
	if (old)
		__xa_store(xa, id, entry, 0);
	xa_unlock_irqrestore(xa, flags);
	return old;
}

/*
 * The same. NULL when nothing was there or a reservation, which is left alone: it
 * is somebody else's.
 */
void *xrdma_xa_remove(struct xarray *xa, __u32 id)
{
	unsigned long flags;
	void *old;

	xa_lock_irqsave(xa, flags);
	old = xa_load(xa, id);
	if (old)
		__xa_erase(xa, id);
	xa_unlock_irqrestore(xa, flags);
	return old;
}

/* XA_PRESENT is a macro. Finds the first entry at *id or after. */
void *xrdma_xa_next(struct xarray *xa, unsigned long *id)
{
	return xa_find(xa, id, ULONG_MAX, XA_PRESENT);
}
