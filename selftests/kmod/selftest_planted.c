// SPDX-License-Identifier: GPL-2.0
/*
 * Faults that a debug kernel has to report, one of each kind. They show whether the
 * checks of the guest would see such faults elsewhere. Loading the module fails on
 * purpose.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static DEFINE_SPINLOCK(first);
static DEFINE_SPINLOCK(second);

/* Two locks in both orders: lockdep. */
static void planted_order(void)
{
	spin_lock(&first);
	spin_lock(&second);
	spin_unlock(&second);
	spin_unlock(&first);
	spin_lock(&second);
	spin_lock(&first);
	spin_unlock(&first);
	spin_unlock(&second);
}

/* Reading what was freed: KASAN. */
static void planted_use(void)
{
	u8 *volatile gone = kmalloc(64, GFP_KERNEL);

	if (!gone)
		return;
	kfree(gone);
	(void)READ_ONCE(*gone);
}

/* Sleeping under a lock: DEBUG_ATOMIC_SLEEP. */
static void planted_sleep(void)
{
	spin_lock(&first);
	might_sleep();
	spin_unlock(&first);
}

/* Objects that nothing refers to, so many that no stray word hides them all. */
static void planted_leak(void)
{
	int i;

	for (i = 0; i < 16; i++) {
		void *volatile lost = kmalloc(200, GFP_KERNEL);

		lost = NULL;
		(void)lost;
	}
	/* kmemleak believes in nothing younger than five seconds. */
	msleep(5000);
}

static int __init planted_init(void)
{
	planted_order();
	planted_use();
	planted_sleep();
	planted_leak();
	return -ECANCELED;
}
module_init(planted_init);

MODULE_DESCRIPTION("Faults for the gate of the guest to report");
MODULE_LICENSE("GPL");
