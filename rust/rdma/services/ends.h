/* SPDX-License-Identifier: GPL-2.0 */
/* What ends with the services. */
#ifndef XRDMA_SERVICES_ENDS_H
#define XRDMA_SERVICES_ENDS_H

#include <linux/list.h>
#include <linux/types.h>

/**
 * enum xrdma_ends - by what the kernel calls this module, in the order in which it ends
 * @XRDMA_END_LINKS: `rdma link`, and the devices.
 * @XRDMA_END_NOTIFIERS: notifiers of net devices.
 * @XRDMA_END_VECTORS: interrupts.
 * @XRDMA_END_CALLS: timers and work items.
 * @XRDMA_ENDS: how many kinds.
 */
enum xrdma_ends {
	XRDMA_END_LINKS,
	XRDMA_END_NOTIFIERS,
	XRDMA_END_VECTORS,
	XRDMA_END_CALLS,
	XRDMA_ENDS,
};

int xrdma_ends_begin(void);
void xrdma_ends_all(enum xrdma_ends kind);
void xrdma_ends_finish(void);

#ifndef __BINDGEN__

/**
 * struct xrdma_end - the end of something by which the kernel calls this module
 * @list: with the others of its kind that have not ended.
 * @end: has no call begin any more and waits for those under way. Process
 *	context, sleeps; without locks. The memory stays.
 * @ending: the services are ending it.
 *
 * Whoever owns the thing ends it, or the services do when they end: safe Rust may
 * leak an owner (mem::forget), and the text of the module goes all the same.
 */
struct xrdma_end {
	struct list_head list;
	void (*end)(struct xrdma_end *e);
	bool ending;
};

int xrdma_end_add(struct xrdma_end *e, enum xrdma_ends kind,
		  void (*end)(struct xrdma_end *e));
void xrdma_end_now(struct xrdma_end *e);
bool xrdma_ends_open(enum xrdma_ends kind);

#endif /* __BINDGEN__ */

#endif /* XRDMA_SERVICES_ENDS_H */
