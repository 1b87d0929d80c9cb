/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages from one end to another over RC, UD or XRC, for the programs in C that
 * do the same with each: sends at end A, receives at end B or in a shared queue
 * there.
 */
#ifndef SELFTEST_FLOW_H
#define SELFTEST_FLOW_H

#include <fcntl.h>

#include "check.h"

#define FLOW_QKEY 0x11223344
/* What stands in front of a datagram. */
#define FLOW_GRH 40

enum flow_kind { FLOW_RC, FLOW_UD, FLOW_XRC };

struct flow {
	enum flow_kind kind;
	struct end a, b;
	/* Made by the flow, not lent by another. */
	int owns_ends;
	/* Where receives come from; NULL: from B's own queue. */
	struct ibv_srq *srq;
	uint32_t srqn;
	struct ibv_xrcd *xrcd;
	struct ibv_ah *ah;
};

/* Makes both queue pairs and connects them. */
void flow_make_qps(struct flow *f);

/* Both queue pairs anew, from whatever state: what was posted is forgotten. */
void flow_reset(struct flow *f);

/* From DEVICE[0] to DEVICE[1]. */
void make_flow(struct flow *f, enum flow_kind kind, int shared,
	       const char *const device[2], const int gid_index[2]);

/* Between the ends of OTHER: same PDs, CQs and memory. */
void make_flow_beside(struct flow *f, enum flow_kind kind, const struct flow *other);

void free_flow(struct flow *f);

/* Where the bytes of a message land. */
uint8_t *flow_landing(const struct flow *f);

/* The post calls return the errno value, as the library does. */
int flow_receive(struct flow *f, uint64_t id);

int flow_send(struct flow *f, uint64_t id, uint32_t length);

#endif /* SELFTEST_FLOW_H */
