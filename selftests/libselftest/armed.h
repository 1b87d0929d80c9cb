/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A completion queue with a channel, and a queue pair within the process that
 * fills it.
 */
#ifndef SELFTEST_ARMED_H
#define SELFTEST_ARMED_H

#include "check.h"

struct armed {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *sink;
	struct end e[2];
};

/* A queue of ENTRIES at VECTOR. */
void make_armed(struct armed *a, const char *device, int gid_index, int entries,
		int vector);

void arm(struct armed *a);

/* Puts N completions into A's queue: they are there when it returns. */
void complete(struct armed *a, int n);

/* Takes the N completions of A's queue, which are all. */
void drain_armed(struct armed *a, int n);

/* Takes A's event and then N completions. */
void take_event(struct armed *a, int n);

/* Everything goes. */
void destroy_armed(struct armed *a);

/* The same, and no event is left over. */
void end_armed(struct armed *a);

#endif /* SELFTEST_ARMED_H */
