// SPDX-License-Identifier: GPL-2.0
/* Per-CPU counters: alloc_percpu(), this_cpu_add() and the iterators are macros. */
#include <linux/cpumask.h>
#include <linux/overflow.h>
#include <linux/percpu.h>

#include "services/percpu.h"

/* bindgen has no notion of the per-CPU address space, so Rust gets a number. */
static u64 __percpu *xrdma_percpu(unsigned long counters)
{
	return (u64 __percpu *)counters;
}

/* Zeroed, charged to the caller; 0: no memory. Process context. */
unsigned long xrdma_percpu_alloc(size_t words)
{
	return (unsigned long)__alloc_percpu_gfp(array_size(words, sizeof(u64)),
						 sizeof(u64),
						 GFP_KERNEL_ACCOUNT);
}

/* Here because of the address space. */
void xrdma_percpu_free(unsigned long counters)
{
	free_percpu(xrdma_percpu(counters));
}

/* Any context: this_cpu_add() is safe against interrupts. */
void xrdma_percpu_add(unsigned long counters, size_t word, __u64 n)
{
	this_cpu_add(*(xrdma_percpu(counters) + word), n);
}

/* A snapshot; adds that happen meanwhile may or may not be in it. */
__u64 xrdma_percpu_sum(unsigned long counters, size_t word)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*(per_cpu_ptr(xrdma_percpu(counters), cpu) +
				   word));
	return sum;
}

/* num_possible_cpus() is a macro. */
__u32 xrdma_possible_cpus(void)
{
	return num_possible_cpus();
}
