/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A tag-matching queue and the requests that are posted to it, for the programs in C
 * that need more than one of them, or more than a few tags.
 */
#ifndef SELFTEST_TM_H
#define SELFTEST_TM_H

#include <endian.h>
#include <infiniband/tm_types.h>

#include "check.h"

/* Bytes of the header of a message with a tag. */
#define TM_HDR 16

struct tag_queue {
	struct ibv_srq *srq;
	struct ibv_cq_ex *cq;
};

/* A completion of the queue. */
struct tm_done {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned int flags;
	uint32_t len;
	uint32_t vendor_err;
	uint32_t qpn;
	uint64_t tag;
	uint32_t priv;
};

struct tag_queue_size {
	uint32_t tags, ops, receives, cqe;
};

/* A queue in E's domain whose completions go to CQ, or NULL. */
struct ibv_srq *tm_srq(struct end *e, struct ibv_cq_ex *cq, struct tag_queue_size size);

/* A queue in E's domain, with a completion queue of its own. */
void tm_make(struct tag_queue *t, struct end *e, struct tag_queue_size size);

void tm_free(struct tag_queue *t);

/* A queue pair of E that receives through the queue, and sends DEPTH at most. */
struct ibv_qp *tm_qp(struct tag_queue *t, struct end *e, uint32_t depth);

/* The next completion of the queue, if there is one. */
int tm_poll(struct tag_queue *t, struct tm_done *d);

/* The next completion, which must come. */
struct tm_done tm_next(struct tag_queue *t);

/* A receive for what no tag takes. */
void tm_receive(struct tag_queue *t, uint64_t id, struct ibv_sge sge);

void tm_header(void *at, uint8_t op, uint64_t tag);

#endif /* SELFTEST_TM_H */
