// SPDX-License-Identifier: GPL-2.0
/* Events of queue pairs: whether they have a recipient. */
#include <linux/list.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "verbs/events.h"

/*
 * The core sets the event handler, its context and the list of openers of an
 * XRC target after the driver has created it, and enters the first opener under
 * this lock: before that an event would find the setting half done.
 */
bool xrdma_ib_target_opened(struct ib_qp *qp)
{
	unsigned long flags;
	bool opened;

	spin_lock_irqsave(&qp->device->qp_open_list_lock, flags);
	opened = qp->open_list.next && !list_empty(&qp->open_list);
	spin_unlock_irqrestore(&qp->device->qp_open_list_lock, flags);
	return opened;
}
