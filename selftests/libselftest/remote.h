/* SPDX-License-Identifier: GPL-2.0 */
/* Requests of end a on the memory of end b, and the rights that b grants for them. */
#ifndef SELFTEST_REMOTE_H
#define SELFTEST_REMOTE_H

#include "ends.h"

#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define PAGE 4096

/* After a refusal: both queue pairs from the start. */
void renew(struct pair *self);

int status(struct ibv_cq *cq);

/* End a's request on LENGTH bytes at ADDR by KEY; the status. */
int remote(struct pair *self, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t key,
	   uint32_t length);

int write_by(struct pair *self, uint64_t addr, uint32_t key, uint32_t length);

int bind1(struct pair *self, struct ibv_mw *mw, struct ibv_mr *mr, void *addr,
	  uint64_t length, unsigned int access);

/* A request by ibv_wr_*, on a queue pair with all operations. */
struct ibv_qp_ex *extended(struct end *e);

int flush_by(struct pair *self, struct ibv_qp_ex *qp, uint64_t addr, uint32_t key,
	     size_t length, uint8_t type, uint8_t level);

void allow_flush(struct pair *self, int flags);

#endif /* SELFTEST_REMOTE_H */
