/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a process of a domain does with XRC receive QPs by number, and what the kernel
 * shows of these QPs.
 */
#ifndef SELFTEST_RCVQP_H
#define SELFTEST_RCVQP_H

#include <infiniband/xroce_dv.h>

#include "xrc.h"

/* What a create call must have, and may have. */
#define NEEDED (IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | \
		IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER)
#define USUAL (NEEDED | IBV_QP_MAX_DEST_RD_ATOMIC)

/* Makes a receive QP for the client's QP ARG; its number. */
static inline uint32_t create(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr = connected_to(m->arg, &m->client, gid_index[SERVER]);
	uint32_t qpn = 0;

	CHECK(xroce_dv_is_supported(p->ctx->device));
	CHECK(!xroce_dv_create_xrc_rcv_qp(p->xrcd, &attr, USUAL, &qpn));
	CHECK(qpn > 1 && qpn < 1 << 24);
	return qpn;
}

/* Registers for QP ARG, or no more; 0 or an errno value. */
static inline uint32_t reg(struct peer *p, const struct message *m)
{
	return xroce_dv_reg_xrc_rcv_qp(p->xrcd, m->arg);
}

static inline uint32_t unreg(struct peer *p, const struct message *m)
{
	return xroce_dv_unreg_xrc_rcv_qp(p->xrcd, m->arg);
}

/* The state of QP ARG, or 100 plus the value of errno. */
static inline uint32_t state(struct peer *p, const struct message *m)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err = xroce_dv_query_xrc_rcv_qp(p->xrcd, m->arg, &attr, IBV_QP_STATE, &init);

	if (err)
		return 100 + err;
	CHECK(init.qp_type == IBV_QPT_XRC_RECV);
	CHECK(attr.cur_qp_state == attr.qp_state);
	return attr.qp_state;
}

/* Takes QP ARG to the error state. */
static inline uint32_t to_error(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, IBV_QP_STATE);
}

/* Does `rdma -dd` show target QPN with these users? */
static inline int shown(uint32_t qpn, int views, int registrations)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "rdma -dd res show qp lqpn %u | tr '\\n' ' ' | grep -Ec "
		 "'XRC_TGT.*xrcd [1-9][0-9]* .*views %d .*registrations %d'",
		 qpn, views, registrations);
	return count(command);
}

#endif /* SELFTEST_RCVQP_H */
