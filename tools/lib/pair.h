/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connected pair of RC queue pairs in one process, for the programs in C.
 * Everything ends the program with a message when it fails.
 */
#ifndef SELFTEST_PAIR_H
#define SELFTEST_PAIR_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

#define PAIR_DEPTH 64
#define PAIR_SIZE 4096

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	/* XRC: where it receives, or the number of where it sends to. */
	struct ibv_srq *srq;
	uint32_t srqn;
	union ibv_gid gid;
	int gid_index;
	uint8_t *buf;
};

void die(const char *what);

struct ibv_context *open_device(const char *name);

/* Opens DEVICE and makes all that a connection needs but the queue pair. */
void open_end(struct end *e, const char *device, int gid_index);

/* Opens DEVICE and makes what a connection needs. */
void make_end(struct end *e, const char *device, int gid_index);

/* Takes E's queue pair from RESET to RTR, towards PEER. */
void ready_end(struct end *e, const struct end *peer);

/* And on to RTS, if it sends, with the time that it waits for an answer. */
void start_end(struct end *e, uint8_t timeout);

void connect_end(struct end *e, const struct end *peer);

/* For a wire that may lose packets. */
void connect_end_lossy(struct end *e, const struct end *peer);

/* The post calls return the errno value, as the library does. */
int post_receive(struct end *e, uint64_t id);

int post_send(struct end *e, uint64_t id, uint32_t length);

#endif /* SELFTEST_PAIR_H */
