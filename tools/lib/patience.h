/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long a sender waits for a response, for the programs in C. The time is 4.096 us
 * << timeout, and the sender tries retry_cnt times more.
 */
#ifndef SELFTEST_PATIENCE_H
#define SELFTEST_PATIENCE_H

#include <infiniband/verbs.h>

enum {
	/* 1 s, eight times: who gets an answer gets it, however busy the machine is. */
	PATIENT = 18,
	/* 67 ms, eight times: what a bad wire loses is soon sent again. */
	LOSSY = 14,
	RETRIES = 7,
	/* 4 ms, three times: for who gets none. */
	HASTY = 10,
	HASTY_RETRIES = 2,
};

/*
 * Has a sender that waits for nothing at the moment give up soon from now on, by way
 * of SQD. An errno value.
 */
static inline int make_hasty(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_SQD, .timeout = HASTY, .retry_cnt = HASTY_RETRIES,
	};
	int ret;

	ret = ibv_modify_qp(qp, &a, IBV_QP_STATE);
	if (!ret)
		ret = ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT);
	a.qp_state = IBV_QPS_RTS;
	return ret ? ret : ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

#endif /* SELFTEST_PATIENCE_H */
