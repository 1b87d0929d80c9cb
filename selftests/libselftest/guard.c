// SPDX-License-Identifier: GPL-2.0
#include "guard.h"

int guard(uint8_t *p, size_t n)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)p, n * GUARD_PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	CHECK(fd >= 0 && !ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &range));
	return fd;
}

void await_touch(int fd)
{
	struct uffd_msg msg;

	CHECK(readable(fd, 20));
	CHECK(read(fd, &msg, sizeof(msg)) == sizeof(msg) && msg.event == UFFD_EVENT_PAGEFAULT);
}

void give(int fd, uint8_t *p, size_t n)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)p, n * GUARD_PAGE } };

	CHECK(!ioctl(fd, UFFDIO_ZEROPAGE, &zero));
}
