/* SPDX-License-Identifier: GPL-2.0 */
/* Memory that makes every task wait that touches it, userfaultfd(2). */
#ifndef SELFTEST_GUARD_H
#define SELFTEST_GUARD_H

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "check.h"

#define GUARD_PAGE 4096

/* Has accesses to N pages at P wait. */
static inline int guard(uint8_t *p, size_t n)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)p, n * GUARD_PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	CHECK(fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &range));
	return fd;
}

/* Waits until somebody waits at FD, what guard() returned. */
static inline void await_touch(int fd)
{
	struct uffd_msg msg;

	CHECK(readable(fd, 20));
	CHECK(read(fd, &msg, sizeof(msg)) == sizeof(msg) && msg.event == UFFD_EVENT_PAGEFAULT);
}

/* N pages at P, empty ones, for those who wait. */
static inline void give(int fd, uint8_t *p, size_t n)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)p, n * GUARD_PAGE } };

	CHECK(!ioctl(fd, UFFDIO_ZEROPAGE, &zero));
}

#endif /* SELFTEST_GUARD_H */
