/* SPDX-License-Identifier: GPL-2.0 */
/* Child processes of a test, each with a socket between it and the test. */
#ifndef SELFTEST_CHILDREN_H
#define SELFTEST_CHILDREN_H

#include <sys/types.h>

struct child {
	pid_t pid;
	/* The test's end of the socket, which keeps messages apart. */
	int fd;
};

/*
 * Starts a process that calls RUN with its end of the socket and ARG, and ends with status 0
 * when that returns. It is killed when the test ends.
 */
struct child start_child(void (*run)(int fd, void *arg), void *arg);

void kill_child(struct child *c);

/* Lets the process end by itself: it finds the end of its input. Its status must be 0. */
void end_child(struct child *c);

#endif /* SELFTEST_CHILDREN_H */
