// SPDX-License-Identifier: GPL-2.0
#include "remote.h"

void renew(struct pair *self)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc;

	CHECK(!ibv_modify_qp(self->a.qp, &reset, IBV_QP_STATE));
	CHECK(!ibv_modify_qp(self->b.qp, &reset, IBV_QP_STATE));
	/* Nothing of their old life is left. */
	CHECK(!ibv_poll_cq(self->a.cq, 1, &wc));
	CHECK(!ibv_poll_cq(self->b.cq, 1, &wc));
	join(self);
}

int status(struct ibv_cq *cq)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	CHECK(next_wc(cq, &wc) == 1);
	return wc.status;
}

int remote(struct pair *self, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t key,
	   uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)self->a.buf, length, self->a.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = addr, .rkey = key },
	};
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 0;
		wr.wr.atomic.rkey = key;
	}
	CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
	return status(self->a.cq);
}

int write_by(struct pair *self, uint64_t addr, uint32_t key, uint32_t length)
{
	return remote(self, IBV_WR_RDMA_WRITE, addr, key, length);
}

int bind1(struct pair *self, struct ibv_mw *mw, struct ibv_mr *mr, void *addr,
	  uint64_t length, unsigned int access)
{
	struct ibv_mw_bind bind = {
		.wr_id = 2, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, (uintptr_t)addr, length, access },
	};

	CHECK(!ibv_bind_mw(self->b.qp, mw, &bind));
	return status(self->b.cq);
}

struct ibv_qp_ex *extended(struct end *e)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC, .pd = e->pd,
		.cap = { PAIR_DEPTH, PAIR_DEPTH, 2, 2, 64 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE |
				  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ,
	};

	CHECK(!ibv_destroy_qp(e->qp));
	e->qp = ibv_create_qp_ex(e->ctx, &init);
	CHECK(e->qp);
	return ibv_qp_to_qp_ex(e->qp);
}

int flush_by(struct pair *self, struct ibv_qp_ex *qp, uint64_t addr, uint32_t key,
	     size_t length, uint8_t type, uint8_t level)
{
	ibv_wr_start(qp);
	qp->wr_id = 7;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, key, addr, length, type, level);
	CHECK(!ibv_wr_complete(qp));
	return status(self->a.cq);
}

void allow_flush(struct pair *self, int flags)
{
	struct ibv_qp_attr attr = {
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | flags,
	};

	CHECK(!ibv_modify_qp(self->b.qp, &attr, IBV_QP_ACCESS_FLAGS));
}
