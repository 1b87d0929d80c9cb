// SPDX-License-Identifier: GPL-2.0
/* Locks, waits and contexts that the kernel crate does not know. */
#include <linux/bottom_half.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait_bit.h>

#include "helpers.h"

/* Inline in C; the kernel crate knows the plain spin_lock() only. */
void xrdma_spin_lock_bh(struct spinlock *lock)
{
	spin_lock_bh(lock);
}

/* As above. */
void xrdma_spin_unlock_bh(struct spinlock *lock)
{
	spin_unlock_bh(lock);
}

/* As above. */
bool xrdma_spin_trylock_bh(struct spinlock *lock)
{
	return spin_trylock_bh(lock);
}

/* A macro in C, which writes its second argument. */
unsigned long xrdma_spin_lock_irqsave(struct spinlock *lock)
{
	unsigned long flags;

	spin_lock_irqsave(lock, flags);
	return flags;
}

/* Inline in C. */
void xrdma_spin_unlock_irqrestore(struct spinlock *lock, unsigned long flags)
{
	spin_unlock_irqrestore(lock, flags);
}

/* A macro in C, which writes its second argument. */
bool xrdma_spin_trylock_irqsave(struct spinlock *lock, unsigned long *flags)
{
	unsigned long saved;

	if (!spin_trylock_irqsave(lock, saved))
		return false;
	*flags = saved;
	return true;
}

/*
 * wait_var_event() is a macro. Sleeps until no bit of @mask is set in *@word;
 * the kernel's hashed wait queues serve, so the word needs no queue of its own.
 */
void xrdma_wait_bits_clear(__u32 *word, __u32 mask)
{
	wait_var_event(word, !(READ_ONCE(*word) & mask));
}

/* wake_up_var() wants a full barrier before it, and Rust has no name for this one. */
void xrdma_wake_waiters(__u32 *word)
{
	/* Orders the change of the word before the look at the wait queue. */
	smp_mb();
	wake_up_var(word);
}

/* Macros, for gates on real-time kernels (gated/sleeping.rs). */
void xrdma_gate_lock_init(struct rwlock *lock)
{
	rwlock_init(lock);
}

/* As above. Softirq is off. */
bool xrdma_gate_read_trylock(struct rwlock *lock)
{
	return read_trylock(lock);
}

/* As above. */
void xrdma_gate_read_unlock(struct rwlock *lock)
{
	read_unlock(lock);
}

/* As above. Softirq is off. */
void xrdma_gate_write_lock(struct rwlock *lock)
{
	write_lock(lock);
}

/* As above. */
void xrdma_gate_write_unlock(struct rwlock *lock)
{
	write_unlock(lock);
}

/* local_bh_disable() is inline. Nests; the same CPU enables. */
void xrdma_bh_disable(void)
{
	local_bh_disable();
}

/* As above; interrupts must be on. */
void xrdma_bh_enable(void)
{
	local_bh_enable();
}

/*
 * A macro. Nests; any context. Spinlocks are taken in between, which sleep on a
 * real-time kernel: there the task stays on this CPU, but others may run on it, and
 * the context is a task's.
 */
void xrdma_preempt_disable(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		migrate_disable();
	else
		preempt_disable();
}

/* As above; on the same CPU. */
void xrdma_preempt_enable(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		migrate_enable();
	else
		preempt_enable();
}

/* in_serving_softirq() is a macro. */
bool xrdma_in_softirq(void)
{
	return in_serving_softirq();
}

/* Elsewhere nothing says that a spinlock is held or an RCU read section open. */
#ifndef CONFIG_PREEMPT_COUNT
#error xroce needs CONFIG_PREEMPT_COUNT
#endif

/* Macros again. RCU read sections count only where they can be preempted. */
bool xrdma_may_sleep(void)
{
	return !preempt_count() && !irqs_disabled() && !rcu_preempt_depth();
}
