// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel users of completion vectors: for each vector of DEVICE and each way of
 * polling, receives are flushed, and each completion has to come once, in the
 * right context and, where the context is bound to a CPU, on the vector's CPU;
 * and nobody polls a queue any more when ib_free_cq() returns.
 * The module loads if all went well and says what did not.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/irq.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#define RECEIVES 32

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

	if (wc->status != IB_WC_WR_FLUSH_ERR)
		FAIL("vector %d: status %d", t->vector, wc->status);
	if (r->done++)
		FAIL("vector %d: a completion came twice", t->vector);
	if (t->ctx == IB_POLL_SOFTIRQ && !in_serving_softirq())
		FAIL("vector %d: not in softirq", t->vector);
	if ((t->ctx == IB_POLL_WORKQUEUE || t->ctx == IB_POLL_UNBOUND_WORKQUEUE) && !in_task())
		FAIL("vector %d: not in a task", t->vector);
	if (t->cpu >= 0 && (t->ctx == IB_POLL_SOFTIRQ || t->ctx == IB_POLL_WORKQUEUE) &&
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
	ib_dealloc_pd(pd);
	return -EOPNOTSUPP;
}

static struct ib_client client = { .name = "selftest_kcq", .add = add };

static int __init start(void)
{
	int ret = register_kretprobes(probes, ARRAY_SIZE(probes));

	if (ret)
		return ret;
	ret = ib_register_client(&client);
	if (!ret)
		ib_unregister_client(&client);
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
