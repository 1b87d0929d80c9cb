/* SPDX-License-Identifier: GPL-2.0 */
/* The processes that have queue pairs. */
#ifndef XRDMA_SERVICES_PROCESS_H
#define XRDMA_SERVICES_PROCESS_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct mm_struct;

struct xrdma_process;

struct xrdma_process *xrdma_process_get(bool kernel);
void xrdma_process_put(struct xrdma_process *p);

#ifndef __BINDGEN__

/**
 * struct xrdma_process - what the objects of one process take together
 * @node: place in the table of process.c.
 * @mm: its address space, whose memory may be gone; NULL: the kernel's users.
 * @users: handles, under the lock of that table.
 * @backlog: memory of packets that wait for its queue pairs, bytes.
 * @lock: for what follows; taken from any context, with interrupts off.
 * @runs: work items of its queue pairs that threads have or are about to have.
 * @max_runs: how many that may be.
 * @waiting: those that wait for one of these to end, first come, first served.
 */
struct xrdma_process {
	struct hlist_node node;
	struct mm_struct *mm;
	unsigned int users;
	atomic64_t backlog;
	spinlock_t lock;
	unsigned int runs;
	unsigned int max_runs;
	struct list_head waiting;
};

/* All that backlogs hold, and what they may, bytes. */
extern atomic64_t xrdma_backlog_all;
u64 xrdma_backlog_room(const struct xrdma_process *p);

#endif /* __BINDGEN__ */

#endif /* XRDMA_SERVICES_PROCESS_H */
