/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes allocations fail when a test wants it, with the kernel's fault injection
 * through /proc/PID/fail-nth (Documentation/fault-injection/fault-injection.rst). The
 * n-th allocation fails that this task requests from the kernel while certain functions
 * are among the callers.
 */
#ifndef SELFTEST_FAULT_H
#define SELFTEST_FAULT_H

#include "check.h"

/* Kernel code; the end is not part of it. */
struct text {
	unsigned long start, end;
};

/* Symbols whose code is looked for, or, in brackets, modules. */
enum { UVERBS, IOCTL, DRIVER, INIT_UCONTEXT, IRQ_PROC, REGISTER, TEXTS };
extern struct text texts[TEXTS];

/* Only allocations with REQUIRED among their callers fail, and none with REJECTED. */
void fault_among(struct text required, struct text rejected);

/* Whether copies from and to the process fail as well. */
void fault_copies(int on);

/* From the first function of A to the last of B, or the other way round. */
struct text fault_both(struct text a, struct text b);

/* Nothing fails yet, and nothing else does in this kernel: no probability is set. */
void fault_setup(void);

/* The N-th allocation fails; none if N is 0. */
void fault_at(unsigned int n);

/* Ends it; how many allocations were left until the fault, 0: it has happened. */
unsigned int fault_end(void);

#endif /* SELFTEST_FAULT_H */
