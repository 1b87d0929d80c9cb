/* SPDX-License-Identifier: GPL-2.0 */
/* Memory that makes every task wait that touches it, userfaultfd(2). */
#ifndef SELFTEST_GUARD_H
#define SELFTEST_GUARD_H

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

/* Bytes of a page; arm64 kernels have pages of 4, 16 or 64 KiB. */
#define GUARD_PAGE ((size_t)sysconf(_SC_PAGESIZE))

/* Has accesses to N pages at P wait. */
int guard(uint8_t *p, size_t n);

/* Waits until somebody waits at FD, what guard() returned. */
void await_touch(int fd);

/* N pages at P, empty ones, for those who wait. */
void give(int fd, uint8_t *p, size_t n);

#endif /* SELFTEST_GUARD_H */
