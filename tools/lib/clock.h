/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SELFTEST_CLOCK_H
#define SELFTEST_CLOCK_H

#include <time.h>

/* The monotonic clock, in seconds. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

#endif /* SELFTEST_CLOCK_H */
