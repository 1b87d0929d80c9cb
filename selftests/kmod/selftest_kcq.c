// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel users of completion vectors. For each vector of DEVICE and each way of
 * polling, receives are flushed. Each completion has to come once, in the right context
 * and, where the context is bound to a CPU, on the vector's CPU. Nobody polls a queue
 * any more when ib_free_cq() returns. With adaptive moderation, a load that grows has
 * to change a queue's moderation. If there are more events at once than an interrupt
 * delivers, all of them have to come, by another interrupt. The module loads if all
 * went well and logs what did not.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/irq.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#define RECEIVES 32
/* Events after which the kernel looks whether the moderation suits (DIM_NEVENTS). */
#define PERIOD 64

static char *device = "x1";
module_param(device, charp, 0444);
static int first_irq;
module_param(first_irq, int, 0444);
MODULE_PARM_DESC(first_irq, "Linux interrupt of vector 0; the others follow");

static int failed;
static bool seen;

#define FAIL(fmt, ...)							\
	do {								\
		pr_info("selftest_kcq: " fmt "\n", ##__VA_ARGS__);	\
		failed = 1;						\
	} while (0)

struct receive {
	struct ib_cqe cqe;
	struct try *try;
	int done;
};

struct try {
	enum ib_poll_context ctx;
	int vector;
	int cpu;
	atomic_t left;
	struct completion all;
	struct receive receive[RECEIVES];
};

/*
 * ib_poll_handler() goes on with its queue after it has called
 * irq_poll_complete(), from when on irq_poll_disable() does not wait for it. It is
 * counted, and that part of it takes long.
 */
static atomic_t polling;

static int poll_begins(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_inc(&polling);
	return 0;
}

static int poll_ends(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_dec(&polling);
	return 0;
}

static int poll_completes(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	mdelay(3);
	return 0;
}

static struct kretprobe poll_probe = {
	.kp.symbol_name = "ib_poll_handler",
	.entry_handler = poll_begins,
	.handler = poll_ends,
	.maxactive = 64,
};

static struct kretprobe complete_probe = {
	.kp.symbol_name = "irq_poll_complete",
	.handler = poll_completes,
	.maxactive = 64,
};

static struct kretprobe *probes[] = { &poll_probe, &complete_probe };

static void free_cq(struct ib_cq *cq, int vector)
{
	ib_free_cq(cq);
	if (atomic_read(&polling))
		FAIL("vector %d: polled after ib_free_cq()", vector);
}

static void done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct receive *r = container_of(wc->wr_cqe, struct receive, cqe);
	struct try *t = r->try;
	enum ib_poll_context ctx = t->ctx;

	/* There xroce has ib_core poll in a workqueue, see xrdma_ib_choose_polling(). */
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && ctx == IB_POLL_SOFTIRQ)
		ctx = IB_POLL_WORKQUEUE;
	if (wc->status != IB_WC_WR_FLUSH_ERR)
		FAIL("vector %d: status %d", t->vector, wc->status);
	if (r->done++)
		FAIL("vector %d: a completion came twice", t->vector);
	if (ctx == IB_POLL_SOFTIRQ && !in_serving_softirq())
		FAIL("vector %d: not in softirq", t->vector);
	if ((ctx == IB_POLL_WORKQUEUE || ctx == IB_POLL_UNBOUND_WORKQUEUE) && !in_task())
		FAIL("vector %d: not in a task", t->vector);
	if (t->cpu >= 0 && (ctx == IB_POLL_SOFTIRQ || ctx == IB_POLL_WORKQUEUE) &&
	    raw_smp_processor_id() != t->cpu)
		FAIL("vector %d: on CPU %d instead of %d", t->vector, raw_smp_processor_id(), t->cpu);
	if (atomic_dec_and_test(&t->left))
		complete(&t->all);
}

/* The CPU of an interrupt's affinity. */
static int cpu_of(int irq)
{
	const struct cpumask *mask = irq ? irq_get_effective_affinity_mask(irq) : NULL;

	return mask ? cpumask_first(mask) : -1;
}

static void try_one(struct ib_device *dev, struct ib_pd *pd, struct ib_cq *cq, struct try *t)
{
	struct ib_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = 4, .max_recv_wr = RECEIVES + 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	struct ib_qp *qp = ib_create_qp(pd, &init);
	int i;

	if (IS_ERR(qp)) {
		FAIL("vector %d: no queue pair: %ld", t->vector, PTR_ERR(qp));
		return;
	}
	if (ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS))
		FAIL("vector %d: no INIT", t->vector);
	init_completion(&t->all);
	atomic_set(&t->left, RECEIVES);
	for (i = 0; i < RECEIVES; i++) {
		struct ib_recv_wr wr = { .wr_cqe = &t->receive[i].cqe };

		t->receive[i].cqe.done = done;
		t->receive[i].try = t;
		if (ib_post_recv(qp, &wr, NULL))
			FAIL("vector %d: no receive", t->vector);
	}
	/* Flushes them and waits for one more. */
	ib_drain_rq(qp);
	if (!wait_for_completion_timeout(&t->all, 20 * HZ))
		FAIL("vector %d, context %d: %d completions are missing", t->vector, t->ctx,
		     atomic_read(&t->left));
	ib_destroy_qp(qp);
}

/* A queue pair in error: receives complete as they are posted. NULL: none. */
static struct ib_qp *broken_qp(struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = 1, .max_recv_wr = RECEIVES,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	struct ib_qp *qp = ib_create_qp(pd, &init);

	if (IS_ERR(qp))
		return NULL;
	if (!ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			  IB_QP_ACCESS_FLAGS)) {
		attr.qp_state = IB_QPS_ERR;
		if (!ib_modify_qp(qp, &attr, IB_QP_STATE))
			return qp;
	}
	ib_destroy_qp(qp);
	return NULL;
}

/* More queues than an interrupt delivers events (BATCH of rust/rdma/verbs/vector.rs). */
#define CROWD 100

static struct kprobe later_probe = { .symbol_name = "xrdma_vector_raise_later" };
static atomic_t made_way;

static int makes_way(struct kprobe *p, struct pt_regs *regs)
{
	atomic_inc(&made_way);
	return 0;
}

/* A CPU that takes no interrupts until all is posted, and a little longer. */
static struct {
	struct work_struct work;
	int is_held, is_posted, ms;
} hold;

static void hold_interrupts(struct work_struct *work)
{
	local_irq_disable();
	smp_store_release(&hold.is_held, 1);
	while (!smp_load_acquire(&hold.is_posted))
		cpu_relax();
	mdelay(hold.ms);
	local_irq_enable();
}

struct member {
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct try t;
};

static bool join(struct member *m, struct ib_device *dev, struct ib_pd *pd, int vector)
{
	m->cq = ib_alloc_cq(dev, NULL, 2 * RECEIVES, vector, IB_POLL_SOFTIRQ);
	if (IS_ERR(m->cq))
		return false;
	m->qp = broken_qp(pd, m->cq);
	if (!m->qp)
		return false;
	m->t.ctx = IB_POLL_SOFTIRQ;
	m->t.vector = vector;
	m->t.cpu = -1;
	m->t.receive[0].cqe.done = done;
	m->t.receive[0].try = &m->t;
	init_completion(&m->t.all);
	return true;
}

/* A receive of each completes while the vector's CPU takes no interrupts. */
static void complete_crowd(struct member *m, int cpu)
{
	int i;

	hold.is_held = 0;
	hold.is_posted = 0;
	schedule_work_on(cpu, &hold.work);
	while (!smp_load_acquire(&hold.is_held))
		cond_resched();
	/* Softirqs run when they may again: all are flushed then. */
	local_bh_disable();
	for (i = 0; i < CROWD; i++) {
		struct ib_recv_wr wr = { .wr_cqe = &m[i].t.receive[0].cqe };

		m[i].t.receive[0].done = 0;
		reinit_completion(&m[i].t.all);
		atomic_set(&m[i].t.left, 1);
		if (ib_post_recv(m[i].qp, &wr, NULL))
			FAIL("no receive in a crowd");
	}
	local_bh_enable();
	smp_store_release(&hold.is_posted, 1);
	flush_work(&hold.work);
	for (i = 0; i < CROWD; i++)
		if (!wait_for_completion_timeout(&m[i].t.all, 20 * HZ))
			FAIL("completion %d of a crowd is missing", i);
}

static void crowd(struct ib_device *dev, struct ib_pd *pd)
{
	int cpu = first_irq ? cpu_of(first_irq) : -1, other, i;
	struct member *m;

	other = cpumask_any_but(cpu_online_mask, cpu);
	if (cpu < 0 || other >= nr_cpu_ids)
		return;
	m = kvzalloc(CROWD * sizeof(*m), GFP_KERNEL);
	if (!m || set_cpus_allowed_ptr(current, cpumask_of(other))) {
		FAIL("no crowd");
		kvfree(m);
		return;
	}
	for (i = 0; i < CROWD; i++)
		if (!join(&m[i], dev, pd, 0))
			FAIL("member %d of a crowd cannot be made", i);
	INIT_WORK(&hold.work, hold_interrupts);
	atomic_set(&made_way, 0);
	/* The other CPU may be slow. */
	for (hold.ms = 2; !failed && hold.ms < 1000 && !atomic_read(&made_way); hold.ms *= 2)
		complete_crowd(m, cpu);
	if (!atomic_read(&made_way))
		FAIL("%d events at once, and no second interrupt", CROWD);
	for (i = 0; i < CROWD; i++) {
		if (m[i].qp)
			ib_destroy_qp(m[i].qp);
		if (!IS_ERR_OR_NULL(m[i].cq))
			free_cq(m[i].cq, 0);
	}
	kvfree(m);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

/* Calls of the device's modify_cq, and how many failed. */
static int (*modify_cq)(struct ib_cq *cq, u16 count, u16 period);
static atomic_t modified, unmodified;

static int modify_and_count(struct ib_cq *cq, u16 count, u16 period)
{
	int ret = modify_cq(cq, count, period);

	atomic_inc(ret ? &unmodified : &modified);
	return ret;
}

/* Flushes N receives of a QP in error and waits for them. */
static bool flush(struct ib_qp *qp, struct try *t, int n)
{
	int i;

	reinit_completion(&t->all);
	atomic_set(&t->left, n);
	for (i = 0; i < n; i++) {
		struct ib_recv_wr wr = { .wr_cqe = &t->receive[i].cqe };

		t->receive[i].done = 0;
		if (ib_post_recv(qp, &wr, NULL)) {
			FAIL("vector %d: no receive", t->vector);
			return false;
		}
	}
	if (wait_for_completion_timeout(&t->all, 20 * HZ))
		return true;
	FAIL("vector %d, context %d: %d moderated completions are missing", t->vector, t->ctx,
	     atomic_read(&t->left));
	return false;
}

/*
 * Few completions at first, one at a time, then many: the kernel compares one
 * period with the next, and then asks for fewer events. Each completion comes all
 * the same.
 */
static void adapt(struct ib_device *dev, struct ib_pd *pd, enum ib_poll_context ctx, int vector)
{
	struct try *t = kzalloc(sizeof(*t), GFP_KERNEL);
	struct ib_cq *cq = ib_alloc_cq(dev, NULL, 2 * RECEIVES, vector, ctx);
	struct ib_qp *qp;
	int i;

	if (!t || IS_ERR(cq)) {
		FAIL("vector %d: no queue", vector);
		kfree(t);
		return;
	}
	qp = broken_qp(pd, cq);
	if (!qp) {
		FAIL("vector %d: no queue pair", vector);
		goto out;
	}
	if (!cq->dim)
		FAIL("vector %d: no adaptive moderation", vector);
	t->vector = vector;
	t->ctx = ctx;
	t->cpu = -1;
	init_completion(&t->all);
	for (i = 0; i < RECEIVES; i++) {
		t->receive[i].cqe.done = done;
		t->receive[i].try = t;
	}
	atomic_set(&modified, 0);
	/* The first period has none before it to be compared with. */
	for (i = 0; i <= PERIOD; i++) {
		usleep_range(1000, 1500);
		if (!flush(qp, t, 1))
			goto out;
	}
	for (; i <= 5 * PERIOD && !atomic_read(&modified); i++)
		if (!flush(qp, t, RECEIVES))
			goto out;
	/* What was asked for holds: rounds of fewer than an event is for, and more. */
	for (i = 1; i < RECEIVES; i++)
		if (!flush(qp, t, i))
			goto out;
	if (!atomic_read(&modified))
		FAIL("vector %d, context %d: a growing load changes no moderation", vector, ctx);
	if (atomic_read(&unmodified))
		FAIL("vector %d: moderation was refused", vector);
out:
	if (qp)
		ib_destroy_qp(qp);
	free_cq(cq, vector);
	kfree(t);
}

static void adapt_all(struct ib_device *dev, struct ib_pd *pd)
{
	int last = dev->num_comp_vectors - 1;

	/* Nobody else has a queue here that would be moderated. */
	modify_cq = dev->ops.modify_cq;
	if (!modify_cq) {
		FAIL("no moderation");
		return;
	}
	dev->ops.modify_cq = modify_and_count;
	adapt(dev, pd, IB_POLL_SOFTIRQ, 0);
	adapt(dev, pd, IB_POLL_WORKQUEUE, last);
	dev->ops.modify_cq = modify_cq;
}

static void try_all(struct ib_device *dev, struct ib_pd *pd)
{
	static const enum ib_poll_context contexts[] = {
		IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE, IB_POLL_UNBOUND_WORKQUEUE, IB_POLL_DIRECT,
	};
	int v, c, round;

	for (v = 0; v < dev->num_comp_vectors; v++) {
		for (c = 0; c < ARRAY_SIZE(contexts); c++) {
			for (round = 0; round < 10; round++) {
				struct try *t = kzalloc(sizeof(*t), GFP_KERNEL);
				struct ib_cq *cq = ib_alloc_cq(dev, NULL, 2 * RECEIVES, v, contexts[c]);

				if (!t || IS_ERR(cq)) {
					FAIL("vector %d: no queue", v);
					kfree(t);
					return;
				}
				t->vector = v;
				t->ctx = contexts[c];
				t->cpu = first_irq ? cpu_of(first_irq + v) : -1;
				try_one(dev, pd, cq, t);
				free_cq(cq, v);
				kfree(t);
			}
		}
	}
	/* The pool's hint names the vector. */
	for (v = 0; v < 2 * dev->num_comp_vectors; v++) {
		struct ib_cq *cq = ib_cq_pool_get(dev, 2 * RECEIVES, v, IB_POLL_SOFTIRQ);
		struct try *t = kzalloc(sizeof(*t), GFP_KERNEL);

		if (!t || IS_ERR(cq)) {
			FAIL("hint %d: no queue", v);
			kfree(t);
			return;
		}
		t->ctx = IB_POLL_SOFTIRQ;
		t->vector = v % dev->num_comp_vectors;
		t->cpu = first_irq ? cpu_of(first_irq + t->vector) : -1;
		if (cq->comp_vector != t->vector)
			FAIL("hint %d: vector %u", v, cq->comp_vector);
		try_one(dev, pd, cq, t);
		ib_cq_pool_put(cq, 2 * RECEIVES);
		kfree(t);
	}
	if (!IS_ERR(ib_alloc_cq(dev, NULL, 8, dev->num_comp_vectors, IB_POLL_SOFTIRQ)))
		FAIL("a vector too many");
}

static int add(struct ib_device *dev)
{
	struct ib_pd *pd;

	if (strcmp(dev_name(&dev->dev), device))
		return -EOPNOTSUPP;
	seen = true;
	pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(pd)) {
		FAIL("no protection domain");
		return -EOPNOTSUPP;
	}
	try_all(dev, pd);
	crowd(dev, pd);
	if (dev->use_cq_dim)
		adapt_all(dev, pd);
	ib_dealloc_pd(pd);
	return -EOPNOTSUPP;
}

static struct ib_client client = { .name = "selftest_kcq", .add = add };

static int __init start(void)
{
	int ret = register_kretprobes(probes, ARRAY_SIZE(probes));

	if (ret)
		return ret;
	later_probe.pre_handler = makes_way;
	ret = register_kprobe(&later_probe);
	if (!ret) {
		ret = ib_register_client(&client);
		if (!ret)
			ib_unregister_client(&client);
		unregister_kprobe(&later_probe);
	}
	unregister_kretprobes(probes, ARRAY_SIZE(probes));
	if (ret)
		return ret;
	if (poll_probe.nmissed || complete_probe.nmissed)
		FAIL("probes were missed");
	if (!seen)
		FAIL("no device %s", device);
	return failed ? -EINVAL : 0;
}
module_init(start);

static void __exit end(void)
{
}
module_exit(end);

MODULE_DESCRIPTION("Tests kernel users of completion vectors");
MODULE_LICENSE("GPL");
