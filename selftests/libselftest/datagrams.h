/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Datagram queue pairs, for the programs in C.
 */
#ifndef SELFTEST_DATAGRAMS_H
#define SELFTEST_DATAGRAMS_H

#include "check.h"

#define QKEY 0x11111111
/* Bytes in front of what a datagram brings. */
#define GRH 40
#define DATAGRAMS 16

/* One that is ready to send, with DATAGRAMS sends and receives of one element. */
struct ibv_qp *datagram_qp(struct ibv_pd *pd, struct ibv_cq *cq);

#endif /* SELFTEST_DATAGRAMS_H */
