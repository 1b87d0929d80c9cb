/* SPDX-License-Identifier: GPL-2.0 */
/* Work items, work queues, and steps that wait for memory. */
#ifndef XRDMA_SERVICES_WORK_H
#define XRDMA_SERVICES_WORK_H

#include <linux/types.h>

#include "services/call.h"

struct workqueue_struct;
struct xrdma_process;
struct xrdma_work;

/**
 * enum xrdma_queue - the work queues of the module
 * @XRDMA_QUEUE_BH: in softirq.
 * @XRDMA_QUEUE_RUN: in threads; runs, which may wait for memory.
 * @XRDMA_QUEUE_FREE: in threads; drops of objects.
 */
enum xrdma_queue {
	XRDMA_QUEUE_BH,
	XRDMA_QUEUE_RUN,
	XRDMA_QUEUE_FREE,
};

struct workqueue_struct *xrdma_workqueue_create(enum xrdma_queue queue);
void xrdma_workqueue_destroy(struct workqueue_struct *wq);
void xrdma_workqueue_flush(struct workqueue_struct *wq);
struct xrdma_work *xrdma_work_alloc(struct workqueue_struct *bh,
				    struct workqueue_struct *run,
				    struct xrdma_process *p, xrdma_call_fn call,
				    void *fn, __u64 cookie);
bool xrdma_work_schedule(struct xrdma_work *w);
void xrdma_work_yield(struct xrdma_work *w, __u32 cpu);
bool xrdma_work_schedule_on(struct xrdma_work *w, __u32 cpu);
bool xrdma_work_schedule_thread(struct xrdma_work *w);
bool xrdma_work_is_awaited(const struct xrdma_work *w);
bool xrdma_work_runs_again(const struct xrdma_work *w);
void xrdma_work_stop(struct xrdma_work *w);
void xrdma_work_free(struct xrdma_work *w);

/**
 * struct xrdma_step - what the present task does that may wait for memory; part of a Rust structure
 * @node: place in the table of work.c.
 * @task: whose it is.
 * @outer: what it is part of, or NULL.
 */
struct xrdma_step {
	struct hlist_node node;
	const void *task;
	struct xrdma_step *outer;
};

void xrdma_step_begin(struct xrdma_step *s);
void xrdma_step_end(struct xrdma_step *s);
struct xrdma_step *xrdma_step_current(void);
bool xrdma_signal_pending(void);
__u32 xrdma_this_cpu(void);
bool xrdma_cpu_is_free(void);
__u32 xrdma_online_cpus(void);
void xrdma_cond_resched(void);

#endif /* XRDMA_SERVICES_WORK_H */
