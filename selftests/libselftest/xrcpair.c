// SPDX-License-Identifier: GPL-2.0
#include "xrcpair.h"

void make_xrc_pair(struct xrc_pair *p, const struct end *from, const struct end *to)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = PAIR_DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC, .cq = to->cq, .pd = to->pd,
	};
	struct ibv_qp_init_attr_ex ini = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = from->pd,
		.send_cq = from->cq, .recv_cq = from->cq,
		.cap = { .max_send_wr = PAIR_DEPTH, .max_send_sge = 1 },
	};
	struct ibv_qp_init_attr_ex tgt = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};

	p->ini = *from;
	p->tgt = *to;
	p->xrcd = srq.xrcd = tgt.xrcd = ibv_open_xrcd(to->ctx, &domain);
	if (!p->xrcd)
		die("ibv_open_xrcd");
	p->tgt.srq = ibv_create_srq_ex(to->ctx, &srq);
	if (!p->tgt.srq || ibv_get_srq_num(p->tgt.srq, &p->ini.srqn))
		die("ibv_create_srq_ex");
	p->ini.qp = ibv_create_qp_ex(from->ctx, &ini);
	p->tgt.qp = ibv_create_qp_ex(to->ctx, &tgt);
	if (!p->ini.qp || !p->tgt.qp)
		die("ibv_create_qp_ex");
	ready_end(&p->tgt, &p->ini);
	connect_end(&p->ini, &p->tgt);
}

void free_xrc_pair(struct xrc_pair *p)
{
	if (ibv_destroy_qp(p->ini.qp) || ibv_destroy_qp(p->tgt.qp) ||
	    ibv_destroy_srq(p->tgt.srq) || ibv_close_xrcd(p->xrcd))
		die("end of an XRC connection");
}
