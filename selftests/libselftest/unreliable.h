/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two ends, a and b, of queue pairs of one type: UC and RC are connected, UD has an
 * address handle for the other end. Each end sends from the first half of its memory
 * and receives into the second.
 */
#ifndef SELFTEST_UNRELIABLE_H
#define SELFTEST_UNRELIABLE_H

#include "ends.h"

#define QKEY 0x11223344
/* What stands before a datagram in a receive. */
#define GRH 40

struct unreliable {
	struct pair pair;
	enum ibv_qp_type type;
	struct ibv_ah *to_a, *to_b;
};

/* ibv_modify_qp() to STATE, with IBV_QP_CUR_STATE if CURRENT is a state. */
int set_state(struct end *e, enum ibv_qp_state state, int current);

void path(const struct end *e, const struct end *peer, struct ibv_ah_attr *attr);

/* From RESET to RTS. */
void start_unreliable(struct unreliable *self, struct end *e, const struct end *peer);

void make_unreliable(struct unreliable *self, enum ibv_qp_type t);

void free_unreliable(struct unreliable *self);

/* A signalled SEND of E with immediate data ID and list SGE. */
struct ibv_send_wr request(struct unreliable *self, struct end *e, uint32_t id,
			   struct ibv_sge *sge);

struct ibv_sge bytes_of(struct end *e, uint32_t length);

/* The next completion of E is WR ID, with STATUS. */
struct ibv_wc expect_wc(struct end *e, uint64_t id, enum ibv_wc_status status);

/* Nothing has completed at E. */
void expect_none(struct end *e);

/* A message of LENGTH bytes from FROM, whole and right, to its peer; ID is its immediate data. */
void message(struct unreliable *self, struct end *from, uint32_t id, uint32_t length);

#endif /* SELFTEST_UNRELIABLE_H */
