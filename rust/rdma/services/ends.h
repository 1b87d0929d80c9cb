/* SPDX-License-Identifier: GPL-2.0 */
/* What ends with the services. C only. */
#ifndef XRDMA_ENDS_H
#define XRDMA_ENDS_H

#include <linux/list.h>

#include "services.h"

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

#endif /* XRDMA_ENDS_H */
