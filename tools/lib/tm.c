// SPDX-License-Identifier: GPL-2.0
#include "tm.h"

struct ibv_srq *tm_srq(struct end *e, struct ibv_cq_ex *cq, struct tag_queue_size size)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = size.receives, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = e->pd, .cq = ibv_cq_ex_to_cq(cq),
		.tm_cap = { .max_num_tags = size.tags, .max_ops = size.ops },
	};

	return ibv_create_srq_ex(e->ctx, &attr);
}

void tm_make(struct tag_queue *t, struct end *e, struct tag_queue_size size)
{
	struct ibv_cq_init_attr_ex ex = {
		.cqe = size.cqe,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO,
	};

	t->cq = ibv_create_cq_ex(e->ctx, &ex);
	CHECK(t->cq);
	t->srq = tm_srq(e, t->cq, size);
	CHECK(t->srq);
}

void tm_free(struct tag_queue *t)
{
	CHECK(!ibv_destroy_srq(t->srq));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(t->cq)));
}

struct ibv_qp *tm_qp(struct tag_queue *t, struct end *e, uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = e->cq, .recv_cq = e->cq,
		.srq = t->srq,
		.cap = { .max_send_wr = depth, .max_send_sge = !!depth,
			 .max_inline_data = depth ? 64 : 0 },
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	CHECK(qp);
	return qp;
}

int tm_poll(struct tag_queue *t, struct tm_done *d)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc_tm_info info = {};
	int ret = ibv_start_poll(t->cq, &attr);

	if (ret == ENOENT)
		return 0;
	if (ret) {
		*d = (struct tm_done) { .status = IBV_WC_GENERAL_ERR };
		return 1;
	}
	*d = (struct tm_done) {
		.wr_id = t->cq->wr_id, .status = t->cq->status,
		.vendor_err = ibv_wc_read_vendor_err(t->cq),
		.qpn = ibv_wc_read_qp_num(t->cq),
		.opcode = ibv_wc_read_opcode(t->cq),
	};
	/* The rest says nothing when there was an error. */
	if (!d->status || d->status == IBV_WC_TM_RNDV_INCOMPLETE ||
	    d->status == IBV_WC_TM_ERR) {
		ibv_wc_read_tm_info(t->cq, &info);
		d->flags = ibv_wc_read_wc_flags(t->cq);
		d->len = ibv_wc_read_byte_len(t->cq);
		d->tag = info.tag;
		d->priv = info.priv;
	}
	ibv_end_poll(t->cq);
	return 1;
}

struct tm_done tm_next(struct tag_queue *t)
{
	double end = deadline(30);
	struct tm_done d;

	while (!tm_poll(t, &d)) {
		CHECK(!is_past(end));
		usleep(10);
	}
	return d;
}

void tm_receive(struct tag_queue *t, uint64_t id, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	CHECK(!ibv_post_srq_recv(t->srq, &wr, &bad));
}

void tm_header(void *at, uint8_t op, uint64_t tag)
{
	struct ibv_tmh h = { .opcode = op, .tag = htobe64(tag) };

	memcpy(at, &h, sizeof(h));
}
