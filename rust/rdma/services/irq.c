// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts without hardware. Each device has a set of them, in an interrupt
 * domain of its own, and software raises them. The genirq core runs the handler
 * on the CPU that the affinity of the Linux interrupt names (the redirection of
 * demultiplexed interrupts): here, if that is this CPU, or else in an interrupt
 * of the other CPU.
 *
 * Raising is possible in any context. With interrupts on it enters the genirq
 * core at once. If the handler then runs inside the caller, this is the same as
 * an interrupt that arrives at this point: the caller holds no lock that an
 * interrupt could want. With interrupts off the caller may hold such a lock, so
 * a hard irq_work enters the core as soon as interrupts are on.
 */
#include <linux/cpuhotplug.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/irqdesc.h>
#include <linux/irqdomain.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "services/ends.h"
#include "services/irq.h"
#include "services/net/arrival.h"

/**
 * struct xrdma_vector - one interrupt
 * @raise: takes a raise out of code with interrupts off.
 * @later: raises, from softirq; from a thread on a real-time kernel.
 * @set: what it belongs to.
 * @data: argument of the handler.
 * @name: in /proc/interrupts; set once the interrupt is requested.
 * @index: its hardware number in the domain.
 * @cpu: where its handler runs. To be read at any time.
 * @restoring: the hotplug callback sets the affinity.
 * @chosen: somebody else has.
 * @irq: its Linux number; 0 while there is none.
 * @broken: its affinity is not what was asked for, because none of those CPUs
 *	is there.
 * @wanted: what was asked for then; it gets that back with the first of those
 *	CPUs, unless somebody gives it another affinity before.
 */
struct xrdma_vector {
	struct irq_work raise;
	struct work_struct later;
	struct xrdma_vectors *set;
	void *data;
	char *name;
	u32 index;
	u32 cpu;
	unsigned int irq;
	bool restoring;
	bool chosen;
	bool broken;
	cpumask_var_t wanted;
};

/**
 * struct xrdma_vectors - the interrupts of a device
 * @end: their end, once they have started.
 * @started: they have, and @end is what ends them.
 * @node: on the list of the CPU hotplug state.
 * @hotplug: it is on that list.
 * @fwnode: names the domain.
 * @domain: from @xrdma_vector.index to Linux interrupts.
 * @handler: called with @xrdma_vector.data.
 * @count: number of elements of @vector.
 * @vector: the interrupts.
 */
struct xrdma_vectors {
	struct hlist_node node;
	bool hotplug;
	bool started;
	struct xrdma_end end;
	struct fwnode_handle *fwnode;
	struct irq_domain *domain;
	xrdma_vector_fn handler;
	u32 count;
	struct xrdma_vector vector[] __counted_by(count);
};

/* 0 when there is none. */
static enum cpuhp_state xrdma_vector_hotplug;

/* For @xrdma_vector.later on a real-time kernel; else NULL. */
static struct workqueue_struct *xrdma_vector_queue;

/* Sets that come to that state and go from it, and its own end. */
static DEFINE_MUTEX(xrdma_vectors_mutex);

static irqreturn_t xrdma_vector_handle(int irq, void *dev_id)
{
	struct xrdma_vector *v = dev_id;

	v->set->handler(v->data);
	return IRQ_HANDLED;
}

/* Hard interrupt context, on the CPU that raised. */
static void xrdma_vector_demux(struct irq_work *work)
{
	struct xrdma_vector *v = container_of(work, struct xrdma_vector, raise);

	generic_handle_demux_domain_irq(v->set->domain, v->index);
}

static void xrdma_vector_later(struct work_struct *work)
{
	xrdma_vector_raise(container_of(work, struct xrdma_vector, later));
}

/*
 * There is nothing to acknowledge, but handle_edge_irq() calls it. (An edge it
 * is: handle_simple_irq() forgets a raise that meets a running handler.)
 */
static void xrdma_vector_ack(struct irq_data *d)
{
}

/* The core's way to repeat what came while the interrupt was disabled. */
static int xrdma_vector_retrigger(struct irq_data *d)
{
	struct xrdma_vector *v = irq_data_get_irq_chip_data(d);

	irq_work_queue(&v->raise);
	return 1;
}

#ifdef CONFIG_SMP
/*
 * Of the CPUs allowed, one gets the interrupt, as with message signalled
 * interrupts: the present one if it may, else one that depends on the number,
 * so that many vectors with one mask spread. The caller holds the descriptor's
 * lock; on a CPU that is going away it has taken that CPU out of @dest and, if
 * nothing was left, broken the affinity.
 */
static int xrdma_vector_set_affinity(struct irq_data *d,
				     const struct cpumask *dest, bool force)
{
	struct xrdma_vector *v = irq_data_get_irq_chip_data(d);
	const struct cpumask *now = irq_data_get_effective_affinity_mask(d);
	const struct cpumask *asked = irq_data_get_affinity_mask(d);
	unsigned int cpu = cpumask_first_and(now, dest);

	if (cpu_online(smp_processor_id())) {
		WRITE_ONCE(v->broken, false);
		/* The interrupt has no number yet when the core sets its first affinity. */
		if (v->irq && !READ_ONCE(v->restoring))
			WRITE_ONCE(v->chosen, true);
	} else if (!v->broken && !cpumask_intersects(asked, dest)) {
		cpumask_copy(v->wanted, asked);
		WRITE_ONCE(v->broken, true);
	}
	if (cpu >= nr_cpu_ids)
		cpu = cpumask_nth(v->index % max(cpumask_weight(dest), 1U),
				  dest);
	if (cpu >= nr_cpu_ids)
		return -EINVAL;
	WRITE_ONCE(v->cpu, cpu);
	return irq_chip_redirect_set_affinity(d, cpumask_of(cpu), force);
}
#endif

static struct irq_chip xrdma_vector_chip = {
	.name			= "xroce",
	.irq_ack		= xrdma_vector_ack,
	.irq_retrigger		= xrdma_vector_retrigger,
#ifdef CONFIG_SMP
	.irq_set_affinity	= xrdma_vector_set_affinity,
#endif
	.flags			= IRQCHIP_SKIP_SET_WAKE,
};

static int xrdma_vector_map(struct irq_domain *domain, unsigned int irq,
			    irq_hw_number_t hwirq)
{
	struct xrdma_vectors *set = domain->host_data;

	irq_set_chip_data(irq, &set->vector[hwirq]);
	irq_set_chip_and_handler_name(irq, &xrdma_vector_chip, handle_edge_irq,
				      "edge");
	/*
	 * Has a handler on a new CPU wait for the one on the old CPU, instead
	 * of making that one run again and again.
	 */
	irqd_set_single_target(irq_get_irq_data(irq));
	irq_set_noprobe(irq);
	return 0;
}

static void xrdma_vector_unmap(struct irq_domain *domain, unsigned int irq)
{
	irq_set_chip_and_handler(irq, NULL, NULL);
	irq_set_chip_data(irq, NULL);
}

static const struct irq_domain_ops xrdma_vector_domain_ops = {
	.map	= xrdma_vector_map,
	.unmap	= xrdma_vector_unmap,
};

/*
 * A CPU has come. Runs on it, in its hotplug thread: no CPU goes meanwhile, so
 * that nobody writes the masks that are wanted.
 */
static int xrdma_vector_cpu_online(unsigned int cpu, struct hlist_node *node)
{
	struct xrdma_vectors *set = container_of(node, struct xrdma_vectors,
						 node);
	u32 i;

	for (i = 0; i < set->count; i++) {
		struct xrdma_vector *v = &set->vector[i];

		if (!READ_ONCE(v->broken) || !cpumask_test_cpu(cpu, v->wanted))
			continue;
		WRITE_ONCE(v->restoring, true);
		irq_set_affinity(v->irq, v->wanted);
		WRITE_ONCE(v->restoring, false);
	}
	return 0;
}

/*
 * The hotplug callbacks of all sets; once, when the module is loaded. That a
 * CPU goes, the core handles. Events may be needed to free memory (storage over
 * RDMA), hence WQ_MEM_RECLAIM.
 */
int xrdma_vectors_init(void)
{
	int state;

	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		xrdma_vector_queue = alloc_workqueue("xroce_vectors",
						     WQ_PERCPU | WQ_MEM_RECLAIM, 0);
		if (!xrdma_vector_queue)
			return -ENOMEM;
	}
	state = cpuhp_setup_state_multi(CPUHP_AP_ONLINE_DYN, "rdma/xroce:online",
					xrdma_vector_cpu_online, NULL);
	if (state < 0) {
		if (xrdma_vector_queue)
			destroy_workqueue(xrdma_vector_queue);
		return state;
	}
	xrdma_vector_hotplug = state;
	return 0;
}

/* Its counterpart; all sets have ended, and no more can start. */
void xrdma_vectors_exit(void)
{
	mutex_lock(&xrdma_vectors_mutex);
	cpuhp_remove_multi_state(xrdma_vector_hotplug);
	xrdma_vector_hotplug = 0;
	mutex_unlock(&xrdma_vectors_mutex);
	if (xrdma_vector_queue)
		destroy_workqueue(xrdma_vector_queue);
}

/* The possible CPU that vector @index is for at first. */
static unsigned int xrdma_vector_home(u32 index)
{
	return cpumask_nth(index % num_possible_cpus(), cpu_possible_mask);
}

/*
 * Here because irq_work and the domain want C initialisers. Nothing can be
 * raised before xrdma_vectors_start(). NULL: no memory.
 */
struct xrdma_vectors *xrdma_vectors_alloc(__u32 count, xrdma_vector_fn handler)
{
	struct xrdma_vectors *set;
	u32 i;

	set = kvzalloc(struct_size(set, vector, count), GFP_KERNEL);
	if (!set)
		return NULL;
	set->count = count;
	set->handler = handler;
	for (i = 0; i < count; i++) {
		set->vector[i].raise = IRQ_WORK_INIT_HARD(xrdma_vector_demux);
		INIT_WORK(&set->vector[i].later, xrdma_vector_later);
		set->vector[i].set = set;
		set->vector[i].index = i;
		set->vector[i].cpu = xrdma_vector_home(i);
	}
	return set;
}

/* One interrupt: its descriptor, its name, its handler. */
static int xrdma_vector_start(struct xrdma_vector *v, const char *prefix,
			      void *data)
{
	unsigned int irq;
	int ret;

	/* A directory of /proc/irq/N gets this name. */
	v->name = kasprintf(GFP_KERNEL, "%s-comp%u", prefix, v->index);
	if (!v->name || !zalloc_cpumask_var(&v->wanted, GFP_KERNEL))
		return -ENOMEM;
	strreplace(v->name, '/', '!');
	v->data = data;
	irq = irq_create_mapping(v->set->domain, v->index);
	if (!irq)
		return -ENOMEM;
	ret = request_irq(irq, xrdma_vector_handle, 0, v->name, v);
	if (ret) {
		irq_dispose_mapping(irq);
		return ret;
	}
	v->irq = irq;
	return 0;
}

/*
 * Ends everything: no handler runs or will run when it returns. Nobody but
 * handlers may raise any more. Process context.
 */
static void xrdma_vectors_end(struct xrdma_end *e)
{
	struct xrdma_vectors *set = container_of(e, struct xrdma_vectors, end);
	u32 i;

	mutex_lock(&xrdma_vectors_mutex);
	if (set->hotplug)
		cpuhp_state_remove_instance_nocalls(xrdma_vector_hotplug,
						    &set->node);
	mutex_unlock(&xrdma_vectors_mutex);
	for (i = 0; i < set->count; i++) {
		struct xrdma_vector *v = &set->vector[i];

		if (v->irq) {
			irq_work_sync(&v->raise);
			irq_update_affinity_hint(v->irq, NULL);
			free_irq(v->irq, v);
			/* The last handler may have asked for one more. */
			cancel_work_sync(&v->later);
			/* A raise with lockdep on may have used the irq_work. */
			irq_work_sync(&v->raise);
			irq_dispose_mapping(v->irq);
		}
		free_cpumask_var(v->wanted);
		kfree(v->name);
	}
	if (set->domain)
		irq_domain_remove(set->domain);
	if (set->fwnode)
		irq_domain_free_fwnode(set->fwnode);
}

/*
 * Makes the interrupts; names are "PREFIX-compN". @data has an element for each.
 * -ENODEV without services. On failure some may have started:
 * xrdma_vectors_free() ends them.
 */
int xrdma_vectors_start(struct xrdma_vectors *set, const char *prefix,
			void *const *data)
{
	u32 i;
	int ret;

	set->fwnode = irq_domain_alloc_named_fwnode(prefix);
	if (!set->fwnode)
		return -ENOMEM;
	set->domain = irq_domain_create_linear(set->fwnode, set->count,
					       &xrdma_vector_domain_ops, set);
	if (!set->domain)
		return -ENOMEM;
	for (i = 0; i < set->count; i++) {
		struct xrdma_vector *v = &set->vector[i];

		ret = xrdma_vector_start(v, prefix, data[i]);
		if (ret)
			return ret;
		cpumask_set_cpu(xrdma_vector_home(i), v->wanted);
		irq_update_affinity_hint(v->irq,
					 cpumask_of(xrdma_vector_home(i)));
		v->broken = true;
	}
	mutex_lock(&xrdma_vectors_mutex);
	ret = xrdma_end_add(&set->end, XRDMA_END_VECTORS, xrdma_vectors_end);
	if (!ret) {
		set->started = true;
		/* Calls the callback for every CPU that is there: the first spread. */
		ret = cpuhp_state_add_instance(xrdma_vector_hotplug, &set->node);
		set->hotplug = !ret;
	}
	mutex_unlock(&xrdma_vectors_mutex);
	return ret;
}

/* The interrupt with number @index, to raise it. */
struct xrdma_vector *xrdma_vectors_at(struct xrdma_vectors *set, __u32 index)
{
	return index < set->count ? &set->vector[index] : NULL;
}

/*
 * The CPU that bulk work for @v belongs on, if it comes to the present CPU; -1: the
 * present one. Softirq.
 */
int xrdma_vector_bulk_cpu(const struct xrdma_vector *v)
{
	return xrdma_bulk_cpu(READ_ONCE(v->cpu), !READ_ONCE(v->chosen));
}

/* As xrdma_vectors_end(), unless that has happened; and frees the memory. */
void xrdma_vectors_free(struct xrdma_vectors *set)
{
	if (set->started)
		xrdma_end_now(&set->end);
	else
		xrdma_vectors_end(&set->end);
	kvfree(set);
}

/*
 * Has the handler run at least once from now on, on the CPU of the interrupt's
 * affinity. Any context but NMI; nothing runs in the caller while interrupts
 * are off.
 *
 * With softirqs off, in_interrupt() is true for the handler, as in a hard
 * interrupt: raise_softirq() leaves ksoftirqd alone, and read locks are taken as
 * interrupts take them. local_bh_enable() then runs the softirqs that the
 * handler has raised, as irq_exit() does. Interrupts are off in the core because
 * a CPU goes offline only when all CPUs have had them on once, and the core
 * counts on the CPU to which it redirects.
 *
 * Lockdep sees that a handler takes its locks in an interrupt only if there is
 * an interrupt. Therefore, with lockdep, about half of the raises cause one.
 *
 * On a real-time kernel the handler has a thread, which is woken here. Softirqs
 * stay on: the caller may hold a lock that softirqs sleep for.
 */
void xrdma_vector_raise(struct xrdma_vector *v)
{
	bool interrupt = IS_ENABLED(CONFIG_PROVE_LOCKING) && (jiffies & 1);

	if (irqs_disabled() || interrupt) {
		irq_work_queue(&v->raise);
		return;
	}
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		local_bh_disable();
	local_irq_disable();
	generic_handle_demux_domain_irq(v->set->domain, v->index);
	local_irq_enable();
	if (!IS_ENABLED(CONFIG_PREEMPT_RT))
		local_bh_enable();
}

/*
 * As xrdma_vector_raise(), but when the softirqs of this CPU, or ksoftirqd, have
 * come to it. For the handler, on the CPU of the interrupt. On a real-time kernel
 * the softirq would be the handler's thread, before other tasks of the CPU; so it is
 * a thread that takes its turn among them.
 */
void xrdma_vector_raise_later(struct xrdma_vector *v)
{
	queue_work(xrdma_vector_queue ?: system_bh_wq, &v->later);
}
