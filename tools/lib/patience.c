// SPDX-License-Identifier: GPL-2.0
#include "patience.h"

int make_hasty(struct ibv_qp *qp)
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
