/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues with a channel, and operations that complete in them: zero-length
 * RDMA writes, and sends within the process. A vector delivers one event of each of its
 * queues in turn. Therefore an event that has not come before a later event of another
 * queue of the same vector and channel will not come; see fence().
 */
#ifndef SELFTEST_VECTORS_H
#define SELFTEST_VECTORS_H

#include "devices.h"

#define MAX_CPUS 64

struct vectors {
	struct devices on;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *sink;
	struct ibv_comp_channel *channel;
	struct ibv_cq *fence_cq[MAX_CPUS];
	struct end fence_pair[MAX_CPUS][2];
};

void setup(struct vectors *self);

struct ibv_cq *new_cq(struct vectors *self, int entries, struct ibv_comp_channel *ch,
		      int vector);

/* Two connected QPs; completions of SEND and RECV of E[0] go to the CQs given. */
void new_pair(struct vectors *self, struct end e[2], struct ibv_cq *send,
	      struct ibv_cq *recv);

void end_pair(struct end e[2]);

int post(struct end *e, enum ibv_wr_opcode opcode, int flags, int n);

/* N completions in E's send CQ. */
void writes(struct end *e, int n);

/* A receive completion at E[0], solicited or not. */
void complete_receive(struct vectors *self, struct end e[2], int solicited);

/* Takes one event of CH, of any CQ. */
struct ibv_cq *event_of(struct ibv_comp_channel *ch);

void drain(struct ibv_cq *cq, int n);

/*
 * Waits until VECTOR has delivered to the channel an event of every queue that had
 * one; how many of them are CQ's.
 */
int fence(struct vectors *self, int vector, struct ibv_cq *cq);

/* The interrupts of VECTOR on each CPU; its Linux number, or -1. */
int interrupts(const struct devices *on, int vector, unsigned long *count);

int set_affinity(int irq, int cpu);

int moderate(struct ibv_cq *cq, int count, int period);

#endif /* SELFTEST_VECTORS_H */
