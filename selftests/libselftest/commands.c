// SPDX-License-Identifier: GPL-2.0
#include "commands.h"

static void fill_region(struct owned *self, void *request)
{
	struct ib_uverbs_reg_mr *r = request;

	r->start = r->hca_va = (uintptr_t)self->ours.buf;
	r->length = sizeof(self->ours.buf);
}

static void fill_change(struct owned *self, void *request)
{
	struct ib_uverbs_rereg_mr *r = request;

	r->flags = IBV_REREG_MR_CHANGE_PD;
}

static void fill_window(struct owned *self, void *request)
{
	((struct ib_uverbs_alloc_mw *)request)->mw_type = IBV_MW_TYPE_2;
}

void fill_address(struct owned *self, void *request)
{
	struct ib_uverbs_create_ah *r = request;

	r->attr.is_global = r->attr.port_num = 1;
	r->attr.grh.sgid_index = self->on.gid_index[0];
	memcpy(r->attr.grh.dgid, &self->ours.gid, 16);
}

void fill_pair(struct owned *self, void *request)
{
	struct ib_uverbs_create_qp *r = request;

	r->qp_type = IBV_QPT_RC;
	r->is_srq = 1;
	r->max_send_wr = r->max_send_sge = 1;
}

static void fill_target(struct owned *self, void *request)
{
	((struct ib_uverbs_create_qp *)request)->qp_type = IBV_QPT_XRC_RECV;
}

static void fill_open(struct owned *self, void *request)
{
	((struct ib_uverbs_open_qp *)request)->qp_type = IBV_QPT_XRC_RECV;
}

void fill_queue(struct owned *self, void *request)
{
	struct ib_uverbs_create_srq *r = request;

	r->max_wr = r->max_sge = 1;
}

void fill_xrc_queue(struct owned *self, void *request)
{
	struct ib_uverbs_create_xsrq *r = request;

	r->srq_type = IBV_SRQT_XRC;
	r->max_wr = r->max_sge = 1;
}

void fill_resize(struct owned *self, void *request)
{
	((struct ib_uverbs_resize_cq *)request)->cqe = 16;
}

static void fill_limit(struct owned *self, void *request)
{
	((struct ib_uverbs_modify_srq *)request)->attr_mask = IBV_SRQ_LIMIT;
}

/* Without requests it is the doorbell. */
static void fill_doorbell(struct owned *self, void *request)
{
	((struct ib_uverbs_post_send *)request)->wqe_size = sizeof(struct ib_uverbs_send_wr);
}

static void fill_send(struct owned *self, void *request)
{
	struct ib_uverbs_post_send *r = request;

	fill_doorbell(self, request);
	r->wr_count = 1;
	r->send_wr[0].opcode = IBV_WR_SEND;
}

const struct command commands[] = {
	{ CMD(REG_MR), fill_region, IN(reg_mr), OUT(reg_mr), 0, 0,
	  { HANDLE(reg_mr, pd_handle, PD) }, MR, 0 },
	{ CMD(REREG_MR), fill_change, IN(rereg_mr), OUT(rereg_mr), 0, 0,
	  { HANDLE(rereg_mr, mr_handle, MR), HANDLE(rereg_mr, pd_handle, PD) }, NONE, 0 },
	{ CMD(ALLOC_MW), fill_window, IN(alloc_mw), OUT(alloc_mw), 0, 0,
	  { HANDLE(alloc_mw, pd_handle, PD) }, MW, 0 },
	{ CMD(CREATE_AH), fill_address, IN(create_ah), OUT(create_ah), 0, 8,
	  { HANDLE(create_ah, pd_handle, PD) }, AH, 0 },
	{ CMD(CREATE_QP), fill_pair, IN(create_qp), OUT(create_qp), 8, 56,
	  { HANDLE(create_qp, pd_handle, PD), HANDLE(create_qp, send_cq_handle, CQ),
	    HANDLE(create_qp, recv_cq_handle, CQ), HANDLE(create_qp, srq_handle, SRQ) }, QP, 0 },
	{ CMD(CREATE_QP), fill_target, IN(create_qp), OUT(create_qp), 0, 0,
	  { DOMAIN(create_qp, pd_handle) }, QP, 0 },
	{ CMD(OPEN_QP), fill_open, IN(open_qp), OUT(create_qp), 0, 0,
	  { DOMAIN(open_qp, pd_handle) }, NONE, EINVAL },
	{ CMD(QUERY_QP), NULL, IN(query_qp), OUT(query_qp), 0, 0,
	  { HANDLE(query_qp, qp_handle, QP) }, NONE, 0 },
	{ CMD(MODIFY_QP), NULL, IN(modify_qp), 0, 0, 0, { HANDLE(modify_qp, qp_handle, QP) }, NONE, 0 },
	{ CMD(POST_SEND), fill_doorbell, IN(post_send), OUT(post_send), 0, 0,
	  { HANDLE(post_send, qp_handle, QP) }, NONE, 0 },
	/* A process has rings to post to. */
	{ CMD(POST_SEND), fill_send, IN(post_send) + IN(send_wr), OUT(post_send), 0, 0,
	  { HANDLE(post_send, qp_handle, QP), HANDLE(post_send, send_wr[0].wr.ud.ah, AH) },
	  NONE, EINVAL },
	{ CMD(ATTACH_MCAST), NULL, IN(attach_mcast), 0, 0, 0,
	  { HANDLE(attach_mcast, qp_handle, QP) }, NONE, EINVAL },
	{ CMD(DETACH_MCAST), NULL, IN(detach_mcast), 0, 0, 0,
	  { HANDLE(detach_mcast, qp_handle, QP) }, NONE, EINVAL },
	{ CMD(CREATE_SRQ), fill_queue, IN(create_srq), OUT(create_srq), 0, 32,
	  { HANDLE(create_srq, pd_handle, PD) }, SRQ, 0 },
	{ CMD(CREATE_XSRQ), fill_xrc_queue, IN(create_xsrq), OUT(create_srq), 0, 32,
	  { HANDLE(create_xsrq, pd_handle, PD), HANDLE(create_xsrq, cq_handle, CQ),
	    DOMAIN(create_xsrq, xrcd_handle) }, SRQ, 0 },
	{ CMD(MODIFY_SRQ), fill_limit, IN(modify_srq), 0, 8, 0,
	  { HANDLE(modify_srq, srq_handle, SRQ) }, NONE, 0 },
	{ CMD(QUERY_SRQ), NULL, IN(query_srq), OUT(query_srq), 0, 0,
	  { HANDLE(query_srq, srq_handle, SRQ) }, NONE, 0 },
	{ CMD(RESIZE_CQ), fill_resize, IN(resize_cq), OUT(resize_cq), 0, 24,
	  { HANDLE(resize_cq, cq_handle, CQ) }, NONE, 0 },
	{ CMD(REQ_NOTIFY_CQ), NULL, IN(req_notify_cq), 0, 0, 0,
	  { HANDLE(req_notify_cq, cq_handle, CQ) }, NONE, 0 },
	{ CMD(DEALLOC_PD), NULL, IN(dealloc_pd), 0, 0, 0,
	  { HANDLE(dealloc_pd, pd_handle, PD) }, NONE, EBUSY },
	{ CMD(DEREG_MR), NULL, IN(dereg_mr), 0, 0, 0, { HANDLE(dereg_mr, mr_handle, MR) }, MR, 0 },
	{ CMD(DEALLOC_MW), NULL, IN(dealloc_mw), 0, 0, 0, { HANDLE(dealloc_mw, mw_handle, MW) }, MW, 0 },
	{ CMD(DESTROY_AH), NULL, IN(destroy_ah), 0, 0, 0, { HANDLE(destroy_ah, ah_handle, AH) }, AH, 0 },
	{ CMD(DESTROY_QP), NULL, IN(destroy_qp), OUT(destroy_qp), 0, 0,
	  { HANDLE(destroy_qp, qp_handle, QP) }, QP, 0 },
	{ CMD(DESTROY_SRQ), NULL, IN(destroy_srq), OUT(destroy_srq), 0, 0,
	  { HANDLE(destroy_srq, srq_handle, SRQ) }, SRQ, 0 },
	{ CMD(DESTROY_CQ), NULL, IN(destroy_cq), OUT(destroy_cq), 0, 0,
	  { HANDLE(destroy_cq, cq_handle, CQ) }, NONE, EBUSY },
	{ CMD(CLOSE_XRCD), NULL, IN(close_xrcd), 0, 0, 0,
	  { HANDLE(close_xrcd, xrcd_handle, XRCD) }, XRCD, 0 },
};

const size_t command_count = sizeof(commands) / sizeof(commands[0]);

void set_handle(struct request *r, const struct place *place, uint32_t handle)
{
	memcpy(r->body + place->at, &handle, 4);
}

void begin_request(struct owned *self, const struct command *c, struct request *r)
{
	const struct place *place;

	memset(r, 0, sizeof(*r));
	if (c->fill)
		c->fill(self, r->body);
	for (place = c->place; place == c->place || place->at; place++)
		set_handle(r, place, self->ours.handle[place->kind]);
}

int by_write(struct owned *self, const struct command *c, struct request *r)
{
	uint64_t response = (uintptr_t)r->answer;
	size_t len = sizeof(r->hdr) + c->in + c->driver_in;

	if (c->out)
		memcpy(r->body, &response, 8);
	r->hdr.command = c->number;
	r->hdr.in_words = len / 4;
	r->hdr.out_words = (c->out + c->driver_out) / 4;
	return write(self->ours.ctx->cmd_fd, r, len) == (ssize_t)len ? 0 : errno;
}

int by_ioctl(struct owned *self, const struct command *c, struct request *r)
{
	uint64_t number = c->number;
	struct raw raw;

	raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	raw_in(&raw, UVERBS_ATTR_WRITE_CMD, &number, 8);
	raw_in(&raw, UVERBS_ATTR_CORE_IN, r->body, c->in);
	if (c->out)
		raw_attr(&raw, UVERBS_ATTR_CORE_OUT, c->out, (uintptr_t)r->answer);
	if (c->driver_in)
		raw_in(&raw, UVERBS_ATTR_UHW_IN, r->body + c->in, c->driver_in);
	if (c->driver_out)
		raw_attr(&raw, UVERBS_ATTR_UHW_OUT, c->driver_out, (uintptr_t)r->answer + c->out);
	return raw_call(self->ours.ctx, &raw);
}

int (*const ways[2])(struct owned *self, const struct command *c, struct request *r) = {
	by_write, by_ioctl,
};
