/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a process of a domain does with XRC receive QPs by number, and what the kernel
 * shows of these QPs.
 */
#ifndef SELFTEST_RCVQP_H
#define SELFTEST_RCVQP_H

#include <infiniband/xroce_dv.h>

#include "domains.h"

/* What a create call must have, and may have. */
#define NEEDED (IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | \
		IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER)
#define USUAL (NEEDED | IBV_QP_MAX_DEST_RD_ATOMIC)

/* Makes a receive QP for the client's QP ARG; its number. */
uint32_t create(struct peer *p, const struct message *m);

/* Registers for QP ARG, or no more; 0 or an errno value. */
uint32_t reg(struct peer *p, const struct message *m);

uint32_t unreg(struct peer *p, const struct message *m);

/* The state of QP ARG, or 100 plus the value of errno. */
uint32_t state(struct peer *p, const struct message *m);

/* Takes QP ARG to the error state. */
uint32_t to_error(struct peer *p, const struct message *m);

/* Does `rdma -dd` show target QPN with these users? */
int shown(uint32_t qpn, int views, int registrations);

#endif /* SELFTEST_RCVQP_H */
