/* SPDX-License-Identifier: GPL-2.0 */
/* Detects, without another process, that threads wait in the kernel. */
#ifndef SELFTEST_ASLEEP_H
#define SELFTEST_ASLEEP_H

#include <dirent.h>

#include "check.h"

/* Thread TID, 0 if it is not known yet, sleeps as only the kernel makes it, and for long. */
int is_asleep(int tid);

/* Waits until N of them do; nobody else may use such memory meanwhile. */
void await_runs(int n);

#endif /* SELFTEST_ASLEEP_H */
