/* SPDX-License-Identifier: GPL-2.0 */
/* Per-CPU counters. */
#ifndef XRDMA_SERVICES_PERCPU_H
#define XRDMA_SERVICES_PERCPU_H

#include <linux/types.h>

unsigned long xrdma_percpu_alloc(size_t words);
void xrdma_percpu_free(unsigned long counters);
void xrdma_percpu_add(unsigned long counters, size_t word, __u64 n);
__u64 xrdma_percpu_sum(unsigned long counters, size_t word);
__u32 xrdma_possible_cpus(void);

#endif /* XRDMA_SERVICES_PERCPU_H */
