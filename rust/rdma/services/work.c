// SPDX-License-Identifier: GPL-2.0
/* Work items that carry a number instead of a pointer. */
#include <linux/cpumask.h>
#include <linux/hashtable.h>
#include <linux/interrupt.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "services/ends.h"
#include "services/process.h"
#include "services/work.h"

/**
 * struct xrdma_work - a function that is called in softirq, or in a thread
 * @end: its end.
 * @work: calls it in softirq.
 * @yield: queues @work, behind other softirqs.
 * @run: calls it in a thread.
 * @bh_queue: for @work.
 * @run_queue: for @run.
 * @process: whose it is; its lock is for what follows.
 * @waiting: place in @process->waiting.
 * @counted: one of @process->runs: @run is queued or running.
 * @running: that has begun to run.
 * @again: it is to run once more.
 * @stopped: nothing is started any more.
 * @next_cpu: where @yield queues @work; several CPUs may write it, and the last one decides.
 * @call: calls @fn.
 * @fn: the function.
 * @cookie: its argument.
 */
struct xrdma_work {
	struct xrdma_end end;
	struct work_struct work;
	struct tasklet_struct yield;
	struct work_struct run;
	struct workqueue_struct *bh_queue;
	struct workqueue_struct *run_queue;
	struct xrdma_process *process;
	struct list_head waiting;
	bool counted;
	bool running;
	bool again;
	bool stopped;
	u32 next_cpu;
	xrdma_call_fn call;
	void *fn;
	u64 cookie;
};

/*
 * alloc_workqueue() is a variadic macro. Runs and drops have a queue each: a run
 * may wait for memory for seconds, and nobody's drop waits for that. Both may be
 * needed to free memory (storage over RDMA), hence WQ_MEM_RECLAIM.
 */
struct workqueue_struct *xrdma_workqueue_create(enum xrdma_queue queue)
{
	switch (queue) {
	case XRDMA_QUEUE_BH:
		return alloc_workqueue("xroce_bh", WQ_BH | WQ_PERCPU, 0);
	case XRDMA_QUEUE_FREE:
		return alloc_workqueue("xroce_free",
				       WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	default:
		return alloc_workqueue("xroce_run",
				       WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	}
}

/* Kept beside its counterpart. Waits for all work. */
void xrdma_workqueue_destroy(struct workqueue_struct *wq)
{
	destroy_workqueue(wq);
}

/* flush_workqueue() is a macro. */
void xrdma_workqueue_flush(struct workqueue_struct *wq)
{
	flush_workqueue(wq);
}

static void xrdma_work_bh(struct work_struct *work)
{
	struct xrdma_work *w = container_of(work, struct xrdma_work, work);

	w->call(w->fn, w->cookie);
}

/*
 * Runs it on CPU @cpu if that is there. A CPU goes when no other has
 * preemption off, and leaves its work to one that stays. Any context.
 */
bool xrdma_work_schedule_on(struct xrdma_work *w, __u32 cpu)
{
	bool queued;

	preempt_disable();
	if (cpu >= nr_cpu_ids || !cpu_online(cpu))
		cpu = smp_processor_id();
	queued = queue_work_on(cpu, w->bh_queue, &w->work);
	preempt_enable();
	return queued;
}

static void xrdma_work_yielded(struct tasklet_struct *t)
{
	struct xrdma_work *w = container_of(t, struct xrdma_work, yield);

	/* The item does not run, unless somebody else has queued it: it may change CPUs. */
	xrdma_work_schedule_on(w, READ_ONCE(w->next_cpu));
}

/* A run of @w, which is counted already. Under the lock of its process. */
static void xrdma_work_start(struct xrdma_work *w)
{
	w->counted = true;
	/* It is not queued, and is disabled only when it has been stopped. */
	WARN_ON_ONCE(!queue_work(w->run_queue, &w->run));
}

/* One of the runs of @p is over: the next begins. Under the lock. */
static void xrdma_process_next(struct xrdma_process *p)
{
	struct xrdma_work *w = list_first_entry_or_null(&p->waiting,
							struct xrdma_work,
							waiting);

	if (!w) {
		p->runs--;
		return;
	}
	list_del_init(&w->waiting);
	xrdma_work_start(w);
}

static void xrdma_work_run(struct work_struct *work)
{
	struct xrdma_work *w = container_of(work, struct xrdma_work, run);
	struct xrdma_process *p = w->process;

	spin_lock_irq(&p->lock);
	w->running = true;
	spin_unlock_irq(&p->lock);
	w->call(w->fn, w->cookie);
	spin_lock_irq(&p->lock);
	w->running = false;
	w->counted = false;
	/* Behind those that wait already. */
	if (w->again && !w->stopped)
		list_add_tail(&w->waiting, &p->waiting);
	WRITE_ONCE(w->again, false);
	xrdma_process_next(p);
	spin_unlock_irq(&p->lock);
}

/*
 * Nothing is started any more, and nothing runs when this returns. What waits in
 * the list of its process leaves it, and what was about to run gives its place to
 * the next. Again and again, if one likes. Process context, sleeps.
 */
void xrdma_work_stop(struct xrdma_work *w)
{
	struct xrdma_process *p = w->process;

	spin_lock_irq(&p->lock);
	w->stopped = true;
	list_del_init(&w->waiting);
	spin_unlock_irq(&p->lock);

	disable_work_sync(&w->work);
	disable_work_sync(&w->run);
	/* It queues nothing any more. */
	tasklet_kill(&w->yield);

	spin_lock_irq(&p->lock);
	/* Its run was taken back before it began. */
	if (w->counted) {
		w->counted = false;
		xrdma_process_next(p);
	}
	spin_unlock_irq(&p->lock);
}

/* What is disabled cannot be queued any more, and does not look at the queue. */
static void xrdma_work_end(struct xrdma_end *e)
{
	xrdma_work_stop(container_of(e, struct xrdma_work, end));
}

/*
 * INIT_WORK() is a macro; and the item must not move. There are two of them,
 * because each makes a lock class: one runs in softirq, the other with softirq
 * on. @p outlives the item. NULL: no memory, or no services.
 */
struct xrdma_work *xrdma_work_alloc(struct workqueue_struct *bh,
				    struct workqueue_struct *run,
				    struct xrdma_process *p, xrdma_call_fn call,
				    void *fn, __u64 cookie)
{
	struct xrdma_work *w = kzalloc_obj(*w, GFP_KERNEL_ACCOUNT);

	if (!w)
		return NULL;
	INIT_WORK(&w->work, xrdma_work_bh);
	tasklet_setup(&w->yield, xrdma_work_yielded);
	INIT_WORK(&w->run, xrdma_work_run);
	INIT_LIST_HEAD(&w->waiting);
	w->bh_queue = bh;
	w->run_queue = run;
	w->process = p;
	w->call = call;
	w->fn = fn;
	w->cookie = cookie;
	if (xrdma_end_add(&w->end, XRDMA_END_CALLS, xrdma_work_end)) {
		kfree(w);
		return NULL;
	}
	return w;
}

/* queue_work() is inline. Any context. */
bool xrdma_work_schedule(struct xrdma_work *w)
{
	return queue_work(w->bh_queue, &w->work);
}

/*
 * As xrdma_work_schedule_on(), when other softirqs of this CPU have had their turn. A work
 * item that queues itself is called again at once, up to ten times, and on the same CPU:
 * what it has sent over a virtual link would wait all the time. Tasklets run behind the work
 * items of a softirq, and those that they queue in the next round. Softirq.
 */
void xrdma_work_yield(struct xrdma_work *w, u32 cpu)
{
	struct xrdma_process *p = w->process;
	unsigned long flags;

	WRITE_ONCE(w->next_cpu, cpu);
	spin_lock_irqsave(&p->lock, flags);
	if (!w->stopped)
		tasklet_schedule(&w->yield);
	spin_unlock_irqrestore(&p->lock, flags);
}

/*
 * As xrdma_work_schedule(), in a thread; it may run in both contexts at once. Few runs of one
 * process have a thread at a time: the others wait, so that no other process
 * has to. Any context.
 */
bool xrdma_work_schedule_thread(struct xrdma_work *w)
{
	struct xrdma_process *p = w->process;
	unsigned long flags;
	bool wanted = false;

	spin_lock_irqsave(&p->lock, flags);
	if (w->stopped || !list_empty(&w->waiting))
		goto out;
	if (w->counted) {
		/* Queued, it is going to start. */
		wanted = w->running && !w->again;
		WRITE_ONCE(w->again, w->running);
		goto out;
	}
	wanted = true;
	if (p->runs < p->max_runs) {
		p->runs++;
		xrdma_work_start(w);
	} else {
		list_add_tail(&w->waiting, &p->waiting);
	}
out:
	spin_unlock_irqrestore(&p->lock, flags);
	return wanted;
}

/*
 * Whether work items of the process wait for a thread. A hint, since it takes no lock. Any
 * context.
 */
bool xrdma_work_is_awaited(const struct xrdma_work *w)
{
	return !list_empty(&w->process->waiting);
}

/*
 * Whether the run in a thread that is under way is followed by another one, unless the item is
 * stopped. From that run, which is the only one to end this.
 */
bool xrdma_work_runs_again(const struct xrdma_work *w)
{
	return READ_ONCE(w->again);
}

/* So that Rust need not know the layout. */
void xrdma_work_free(struct xrdma_work *w)
{
	xrdma_end_now(&w->end);
	kfree(w);
}

/* Steps that are under way, by task. */
static DEFINE_HASHTABLE(xrdma_steps, 6);
static DEFINE_SPINLOCK(xrdma_steps_lock);

/* The innermost step of the present task, which alone begins and ends them. Process context. */
struct xrdma_step *xrdma_step_current(void)
{
	struct xrdma_step *s;

	spin_lock(&xrdma_steps_lock);
	hash_for_each_possible(xrdma_steps, s, node, (unsigned long)current)
		if (s->task == current)
			break;
	spin_unlock(&xrdma_steps_lock);
	return s;
}

/*
 * Macros, as all of hashtable.h. By task, because what waits for memory is far from
 * what began the step, and neither knows which work item the other belongs to.
 * Process context.
 */
void xrdma_step_begin(struct xrdma_step *s)
{
	s->task = current;
	s->outer = xrdma_step_current();
	spin_lock(&xrdma_steps_lock);
	hash_add(xrdma_steps, &s->node, (unsigned long)current);
	spin_unlock(&xrdma_steps_lock);
}

/* Its counterpart, of the innermost one. */
void xrdma_step_end(struct xrdma_step *s)
{
	spin_lock(&xrdma_steps_lock);
	hash_del(&s->node);
	spin_unlock(&xrdma_steps_lock);
}

/* signal_pending() is inline. Process context. */
bool xrdma_signal_pending(void)
{
	return signal_pending(current);
}

/* A macro. A hint where preemption is on. */
__u32 xrdma_this_cpu(void)
{
	return raw_smp_processor_id();
}

/*
 * need_resched() is inline. Preemption is off. On a real-time kernel it is not, as
 * the caller takes spinlocks: nobody knows how long a CPU will be free.
 */
bool xrdma_cpu_is_free(void)
{
	return !IS_ENABLED(CONFIG_PREEMPT_RT) && single_task_running() &&
	       !need_resched();
}

/* A macro over an exported variable. Any context. */
__u32 xrdma_online_cpus(void)
{
	return num_online_cpus();
}

/* cond_resched() is a macro. Process context. */
void xrdma_cond_resched(void)
{
	cond_resched();
}
