/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks and waiting, for programs in C that consist of named cases. The first check
 * that fails ends the program and prints its place and text.
 */
#ifndef SELFTEST_CHECK_H
#define SELFTEST_CHECK_H

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "pair.h"

#define CHECK(cond)							\
	do {								\
		errno = 0;						\
		if (!(cond))						\
			check_failed(__FILE__, __LINE__, #cond);	\
	} while (0)

static inline void check_failed(const char *file, int line, const char *what)
{
	printf("%s:%d: %s is not so (errno %d, %s)\n", file, line, what, errno,
	       strerror(errno));
	fflush(stdout);
	_exit(1);
}

/* Is this the debug kernel? A busy machine is no reason to do less. */
static inline int on_debug_kernel(void)
{
	const char *debug = getenv("SELFTEST_DEBUG");

	return debug && *debug;
}

/* A point in time, seconds; the debug kernel makes everything slow, and so may the machine. */
static inline double deadline(double seconds)
{
	const char *slow = getenv("SELFTEST_SLOW");

	return now() + seconds * (slow ? atoi(slow) : 1);
}

static inline int is_past(double end)
{
	return now() > end;
}

/* The next completion of CQ; what ibv_poll_cq() returned, 0 after 20 s. */
static inline int next_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	double end = deadline(20);
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc)) && !is_past(end))
		usleep(10);
	return n;
}

/* Is FD readable within SECONDS? */
static inline int readable(int fd, double seconds)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	double end = deadline(seconds);

	while (poll(&p, 1, 100) != 1)
		if (is_past(end))
			return 0;
	return 1;
}

/* Waits for asynchronous event TYPE; skips others. The element is in EV. */
static inline int next_event(struct ibv_context *ctx, int type,
			     struct ibv_async_event *ev)
{
	while (readable(ctx->async_fd, 20)) {
		if (ibv_get_async_event(ctx, ev))
			return 0;
		ibv_ack_async_event(ev);
		if ((int)ev->event_type == type)
			return 1;
	}
	return 0;
}

static inline enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	CHECK(attr.qp_state == attr.cur_qp_state);
	return attr.qp_state;
}

/* QP gets to STATE; an error is told at the end of a run of the device. */
static inline void gets_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	double end = deadline(20);

	while (state_of(qp) != state)
		CHECK(!is_past(end));
}

/* The number that COMMAND prints. */
static inline int count(const char *command)
{
	FILE *f = popen(command, "r");
	int n = -1;

	CHECK(f && fscanf(f, "%d", &n) == 1);
	pclose(f);
	return n;
}

struct check_case {
	const char *name;
	void (*run)(void);
};

/* Lists the cases of CASES, or runs the one called NAME. */
static inline int run_case(const struct check_case *cases, const char *name)
{
	for (; cases->name; cases++) {
		if (!name) {
			printf("%s\n", cases->name);
		} else if (!strcmp(name, cases->name)) {
			cases->run();
			return 0;
		}
	}
	return name ? 2 : 0;
}

/* As run_case(), for a program "[CASE DEVICE GID-INDEX]". */
static inline int run_device_case(const struct check_case *cases, int argc,
				  char **argv, const char **device,
				  int *gid_index)
{
	if (argc < 4)
		return run_case(cases, NULL);
	*device = argv[2];
	*gid_index = atoi(argv[3]);
	return run_case(cases, argv[1]);
}

#endif /* SELFTEST_CHECK_H */
