/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks and waiting, for programs in C. The first check that fails ends the program and
 * prints its place and text.
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

void check_failed(const char *file, int line, const char *what);

/* Is this the debug kernel? A busy machine is no reason to do less. */
int on_debug_kernel(void);

/* A point in time, seconds; the debug kernel makes everything slow, and so may the machine. */
double deadline(double seconds);

int is_past(double end);

/* The next completion of CQ; what ibv_poll_cq() returned, 0 after 20 s. */
int next_wc(struct ibv_cq *cq, struct ibv_wc *wc);

/* Is FD readable within SECONDS? */
int readable(int fd, double seconds);

/* Waits for asynchronous event TYPE; skips others. The element is in EV. */
int next_event(struct ibv_context *ctx, int type,
	       struct ibv_async_event *ev);

enum ibv_qp_state state_of(struct ibv_qp *qp);

/* QP gets to STATE; an error is told at the end of a run of the device. */
void gets_to(struct ibv_qp *qp, enum ibv_qp_state state);

/* The number that COMMAND prints. */
int count(const char *command);

/*
 * How many lines with WORD COMMAND prints. It takes no other process than COMMAND: on the debug
 * kernel each one takes half a second.
 */
int lines_with(const char *word, const char *command);

#endif /* SELFTEST_CHECK_H */
