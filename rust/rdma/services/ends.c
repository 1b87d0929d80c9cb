// SPDX-License-Identifier: GPL-2.0
/*
 * The end of the services: afterwards the kernel calls nothing of this module,
 * whatever safe Rust has leaked of what would have called it.
 */
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/processor.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "services/ends.h"

static DEFINE_SPINLOCK(xrdma_ends_lock);

/* By kind, under the lock. */
static struct list_head xrdma_ends[XRDMA_ENDS] = {
	[XRDMA_END_LINKS] = LIST_HEAD_INIT(xrdma_ends[XRDMA_END_LINKS]),
	[XRDMA_END_NOTIFIERS] = LIST_HEAD_INIT(xrdma_ends[XRDMA_END_NOTIFIERS]),
	[XRDMA_END_VECTORS] = LIST_HEAD_INIT(xrdma_ends[XRDMA_END_VECTORS]),
	[XRDMA_END_CALLS] = LIST_HEAD_INIT(xrdma_ends[XRDMA_END_CALLS]),
};

/* More may come; written under the lock. */
static bool xrdma_open[XRDMA_ENDS];

/* -ENODEV before the services have begun and once this kind has ended. Any context. */
int xrdma_end_add(struct xrdma_end *e, enum xrdma_ends kind,
		  void (*end)(struct xrdma_end *e))
{
	unsigned long flags;
	int ret = -ENODEV;

	e->end = end;
	e->ending = false;
	INIT_LIST_HEAD(&e->list);
	spin_lock_irqsave(&xrdma_ends_lock, flags);
	if (xrdma_open[kind]) {
		list_add_tail(&e->list, &xrdma_ends[kind]);
		ret = 0;
	}
	spin_unlock_irqrestore(&xrdma_ends_lock, flags);
	return ret;
}

/*
 * For the owner: @e has ended when this returns, unless it did before. It is not
 * known here any more. Process context, sleeps.
 */
void xrdma_end_now(struct xrdma_end *e)
{
	unsigned long flags;
	bool left;

	might_sleep();
	spin_lock_irqsave(&xrdma_ends_lock, flags);
	while (e->ending) {
		spin_unlock_irqrestore(&xrdma_ends_lock, flags);
		/* Whoever ends it may be of lower priority, on this CPU. */
		schedule_timeout_uninterruptible(1);
		spin_lock_irqsave(&xrdma_ends_lock, flags);
	}
	left = !list_empty(&e->list);
	list_del_init(&e->list);
	spin_unlock_irqrestore(&xrdma_ends_lock, flags);
	if (left)
		e->end(e);
}

/*
 * Whether things of this kind may still be set going. What is done about it in
 * the same RCU read section is undone when they end.
 */
bool xrdma_ends_open(enum xrdma_ends kind)
{
	return READ_ONCE(xrdma_open[kind]);
}

/* Ends all of a kind that are left, and has no more come. Process context. */
void xrdma_ends_all(enum xrdma_ends kind)
{
	struct xrdma_end *e;

	spin_lock_irq(&xrdma_ends_lock);
	WRITE_ONCE(xrdma_open[kind], false);
	spin_unlock_irq(&xrdma_ends_lock);
	synchronize_rcu();

	spin_lock_irq(&xrdma_ends_lock);
	while ((e = list_first_entry_or_null(&xrdma_ends[kind], struct xrdma_end,
					     list))) {
		list_del_init(&e->list);
		e->ending = true;
		spin_unlock_irq(&xrdma_ends_lock);
		e->end(e);
		spin_lock_irq(&xrdma_ends_lock);
		e->ending = false;
	}
	spin_unlock_irq(&xrdma_ends_lock);
}

/*
 * The text of a module is freed after this. Services that run by then were
 * leaked, so the kernel still calls us: there is no other way than to keep it.
 */
static int xrdma_module_event(struct notifier_block *nb, unsigned long event,
			      void *module)
{
	if (module != THIS_MODULE || event != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	pr_err("%s: its services were not ended, so it stays in memory\n",
	       KBUILD_MODNAME);
	for (;;)
		schedule_timeout_idle(MAX_SCHEDULE_TIMEOUT);
}

static struct notifier_block xrdma_module_notifier = {
	.notifier_call = xrdma_module_event,
};

/* From now on there are services. Process context; one at a time. */
int xrdma_ends_begin(void)
{
	int kind, ret = register_module_notifier(&xrdma_module_notifier);

	if (ret)
		return ret;
	spin_lock_irq(&xrdma_ends_lock);
	for (kind = 0; kind < XRDMA_ENDS; kind++)
		WRITE_ONCE(xrdma_open[kind], true);
	spin_unlock_irq(&xrdma_ends_lock);
	return 0;
}

/* There are none any more: all kinds have ended. */
void xrdma_ends_finish(void)
{
	unregister_module_notifier(&xrdma_module_notifier);
}
