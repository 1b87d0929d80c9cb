// SPDX-License-Identifier: GPL-2.0
#include "flow.h"

static struct ibv_qp *flow_qp(const struct flow *f, struct end *e)
{
	struct ibv_qp_init_attr_ex init = {
		.cap = { PAIR_DEPTH, PAIR_DEPTH, 2, 2, 64 },
		.send_cq = e->cq, .recv_cq = e->cq, .pd = e->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};

	switch (f->kind) {
	case FLOW_RC:
	case FLOW_UD:
		init.qp_type = f->kind == FLOW_RC ? IBV_QPT_RC : IBV_QPT_UD;
		if (e == &f->b)
			init.srq = f->srq;
		break;
	case FLOW_XRC:
		if (e == &f->a) {
			init.qp_type = IBV_QPT_XRC_SEND;
			break;
		}
		init = (struct ibv_qp_init_attr_ex) {
			.qp_type = IBV_QPT_XRC_RECV, .xrcd = f->xrcd,
			.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		};
	}
	return ibv_create_qp_ex(e->ctx, &init);
}

static void flow_make_srq(struct flow *f)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = PAIR_DEPTH, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC, .pd = f->b.pd,
	};
	/* A domain of nobody else. */
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	if (f->kind == FLOW_XRC) {
		f->xrcd = ibv_open_xrcd(f->b.ctx, &domain);
		CHECK(f->xrcd);
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		attr.srq_type = IBV_SRQT_XRC;
		attr.xrcd = f->xrcd;
		attr.cq = f->b.cq;
	}
	f->srq = ibv_create_srq_ex(f->b.ctx, &attr);
	CHECK(f->srq);
	if (f->kind == FLOW_XRC)
		CHECK(!ibv_get_srq_num(f->srq, &f->srqn));
}

/* Takes the queue pair of a datagram end to RTS. */
static void flow_ready(struct end *e)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = FLOW_QKEY,
	};

	CHECK(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_QKEY));
	a.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

/* Takes both queue pairs from RESET to RTS. */
static void flow_connect(struct flow *f)
{
	if (f->kind == FLOW_UD) {
		flow_ready(&f->a);
		flow_ready(&f->b);
		return;
	}
	connect_end(&f->a, &f->b);
	connect_end(&f->b, &f->a);
}

void flow_make_qps(struct flow *f)
{
	f->a.qp = flow_qp(f, &f->a);
	f->b.qp = flow_qp(f, &f->b);
	CHECK(f->a.qp && f->b.qp);
	flow_connect(f);
}

void flow_reset(struct flow *f)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	CHECK(!ibv_modify_qp(f->a.qp, &reset, IBV_QP_STATE));
	CHECK(!ibv_modify_qp(f->b.qp, &reset, IBV_QP_STATE));
	flow_connect(f);
}

static void flow_make_ah(struct flow *f)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = f->b.gid, .sgid_index = f->a.gid_index, .hop_limit = 16 },
	};

	f->ah = ibv_create_ah(f->a.pd, &attr);
	CHECK(f->ah);
}

/* Makes F between the ends that it has; SHARED: receives come from a shared queue,
 * as they always do with XRC. */
static void flow_between(struct flow *f, int shared)
{
	if (shared || f->kind == FLOW_XRC)
		flow_make_srq(f);
	if (f->kind == FLOW_UD)
		flow_make_ah(f);
	flow_make_qps(f);
}

void make_flow(struct flow *f, enum flow_kind kind, int shared,
	       const char *const device[2], const int gid_index[2])
{
	*f = (struct flow) { .kind = kind, .owns_ends = 1 };
	open_end(&f->a, device[0], gid_index[0]);
	open_end(&f->b, device[1], gid_index[1]);
	flow_between(f, shared);
}

void make_flow_beside(struct flow *f, enum flow_kind kind, const struct flow *other)
{
	*f = (struct flow) { .kind = kind, .a = other->a, .b = other->b };
	flow_between(f, 0);
}

static void flow_free_end(struct end *e)
{
	CHECK(!ibv_dereg_mr(e->mr) && !ibv_destroy_cq(e->cq) && !ibv_dealloc_pd(e->pd));
	CHECK(!ibv_close_device(e->ctx));
	free(e->buf);
}

void free_flow(struct flow *f)
{
	CHECK(!ibv_destroy_qp(f->a.qp) && !ibv_destroy_qp(f->b.qp));
	CHECK(!f->ah || !ibv_destroy_ah(f->ah));
	CHECK(!f->srq || !ibv_destroy_srq(f->srq));
	CHECK(!f->xrcd || !ibv_close_xrcd(f->xrcd));
	if (f->owns_ends) {
		flow_free_end(&f->a);
		flow_free_end(&f->b);
	}
}

uint8_t *flow_landing(const struct flow *f)
{
	return f->b.buf + PAIR_SIZE + (f->kind == FLOW_UD ? FLOW_GRH : 0);
}

int flow_receive(struct flow *f, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)f->b.buf + PAIR_SIZE, PAIR_SIZE, f->b.mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	return f->srq ? ibv_post_srq_recv(f->srq, &wr, &bad) : ibv_post_recv(f->b.qp, &wr, &bad);
}

int flow_send(struct flow *f, uint64_t id, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)f->a.buf, length, f->a.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};

	if (f->kind == FLOW_UD) {
		wr.wr.ud.ah = f->ah;
		wr.wr.ud.remote_qpn = f->b.qp->qp_num;
		wr.wr.ud.remote_qkey = FLOW_QKEY;
	} else if (f->kind == FLOW_XRC) {
		wr.qp_type.xrc.remote_srqn = f->srqn;
	}
	return ibv_post_send(f->a.qp, &wr, &bad);
}
