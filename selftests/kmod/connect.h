/* SPDX-License-Identifier: GPL-2.0 */
/* Takes an RC queue pair to RTS, for tests that connect two of one device. */
#ifndef SELFTEST_CONNECT_H
#define SELFTEST_CONNECT_H

#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

/*
 * Connects @qp with queue pair @qpn at the same address, entry @gid_index of the GID
 * table. @access: what the peer may do. @timeout: as in ib_modify_qp().
 */
static int connect_rc(struct ib_qp *qp, u32 qpn, int gid_index, int access, u8 timeout)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1, .qp_access_flags = access,
		.path_mtu = IB_MTU_1024, .dest_qp_num = qpn, .min_rnr_timer = 1,
		.max_dest_rd_atomic = 1, .max_rd_atomic = 1, .timeout = timeout,
		.retry_cnt = 7, .rnr_retry = 7,
	};
	union ib_gid gid;
	int ret;

	ret = rdma_query_gid(qp->device, 1, gid_index, &gid);
	ret = ret ?: ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				  IB_QP_ACCESS_FLAGS);
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_grh(&attr.ah_attr, &gid, 0, gid_index, 16, 0);
	attr.qp_state = IB_QPS_RTR;
	ret = ret ?: ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
				  IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
				  IB_QP_MIN_RNR_TIMER);
	attr.qp_state = IB_QPS_RTS;
	return ret ?: ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
				   IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

#endif
