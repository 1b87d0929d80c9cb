/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SELFTEST_CLOCK_H
#define SELFTEST_CLOCK_H

#include <time.h>

/* The monotonic clock, in seconds. */
double now(void);

#endif /* SELFTEST_CLOCK_H */
