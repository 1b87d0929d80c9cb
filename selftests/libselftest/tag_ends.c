// SPDX-License-Identifier: GPL-2.0
#include "tag_ends.h"

static uint8_t *area(struct end *e, struct ibv_mr **mr)
{
	uint8_t *p = aligned_alloc(sysconf(_SC_PAGESIZE), AREA);

	CHECK(p);
	memset(p, 0, AREA);
	*mr = ibv_reg_mr(e->pd, p, AREA, IBV_ACCESS_LOCAL_WRITE |
			 IBV_ACCESS_REMOTE_READ);
	CHECK(*mr);
	return p;
}

void make_tag_ends(struct tag_ends *self)
{
	struct tag_queue_size size = {
		.tags = TAGS, .ops = OPS, .receives = RECEIVES, .cqe = 1024,
	};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = { PAIR_DEPTH, PAIR_DEPTH, 2, 2, 64 },
	};

	make_end(&self->a, self->on.name[0], self->on.gid_index[0]);
	make_end(&self->b, self->on.name[1], self->on.gid_index[1]);
	self->from = area(&self->a, &self->from_mr);
	self->to = area(&self->b, &self->to_mr);
	tm_make(&self->queue, &self->b, size);
	CHECK(!ibv_destroy_qp(self->a.qp) && !ibv_destroy_qp(self->b.qp));
	self->answers = ibv_create_cq(self->a.ctx, PAIR_DEPTH, NULL, NULL, 0);
	CHECK(self->answers);
	init.send_cq = self->a.cq;
	init.recv_cq = self->answers;
	self->a.qp = ibv_create_qp(self->a.pd, &init);
	CHECK(self->a.qp);
	/* The device sends the notices: the receiver needs no send queue. */
	self->b.qp = tm_qp(&self->queue, &self->b, 0);
	connect_end(&self->a, &self->b);
	connect_end(&self->b, &self->a);
	self->unexpected = 0;
}

void free_tag_ends(struct tag_ends *self)
{
	CHECK(!ibv_destroy_qp(self->a.qp));
	CHECK(!ibv_destroy_qp(self->b.qp));
	tm_free(&self->queue);
	CHECK(!ibv_destroy_cq(self->answers));
	CHECK(!ibv_dereg_mr(self->from_mr));
	CHECK(!ibv_dereg_mr(self->to_mr));
	CHECK(!ibv_close_device(self->a.ctx));
	CHECK(!ibv_close_device(self->b.ctx));
}

struct tm_done next_done(struct tag_ends *self)
{
	return tm_next(&self->queue);
}

void nothing_done(struct tag_ends *self)
{
	struct tm_done d;

	CHECK(!tm_poll(&self->queue, &d));
}

int post_op(struct tag_ends *self, struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;
	int ret = ibv_post_srq_ops(self->queue.srq, wr, &bad);

	CHECK(!ret == !bad);
	return ret;
}

uint32_t add_flags(struct tag_ends *self, uint64_t id, uint64_t tag, uint64_t mask,
		   uint32_t offset, uint32_t len, int flags)
{
	struct ibv_sge sge = { (uintptr_t)self->to + offset, len, self->to_mr->lkey };
	struct ibv_ops_wr wr = {
		.wr_id = 1000 + id, .opcode = IBV_WR_TAG_ADD, .flags = flags,
		.tm = { .unexpected_cnt = self->unexpected, .add = {
			.recv_wr_id = id, .sg_list = &sge, .num_sge = 1,
			.tag = tag, .mask = mask } },
	};

	CHECK(!post_op(self, &wr));
	return wr.tm.handle;
}

uint32_t add(struct tag_ends *self, uint64_t id, uint64_t tag, uint64_t mask,
	     uint32_t offset, uint32_t len)
{
	return add_flags(self, id, tag, mask, offset, len, IBV_OPS_TM_SYNC);
}

int delete(struct tag_ends *self, uint32_t handle)
{
	struct ibv_ops_wr wr = {
		.wr_id = 2000, .opcode = IBV_WR_TAG_DEL,
		.flags = IBV_OPS_SIGNALED, .tm = { .handle = handle },
	};

	return post_op(self, &wr);
}

struct tm_done sync_count(struct tag_ends *self, uint32_t count)
{
	struct ibv_ops_wr wr = {
		.wr_id = 3000, .opcode = IBV_WR_TAG_SYNC,
		.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
		.tm = { .unexpected_cnt = count },
	};

	CHECK(!post_op(self, &wr));
	return next_done(self);
}

void post_buffer(struct tag_ends *self, uint64_t id, uint32_t offset, uint32_t len)
{
	tm_receive(&self->queue, id,
		   (struct ibv_sge){ (uintptr_t)self->to + offset, len, self->to_mr->lkey });
}

enum ibv_wc_status send_bytes(struct tag_ends *self, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)self->from, len, self->from_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 7, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
	CHECK(next_wc(self->a.cq, &wc) == 1);
	CHECK(wc.wr_id == 7);
	return wc.status;
}

void header(struct tag_ends *self, uint8_t op, uint64_t tag)
{
	struct ibv_tmh *h = (struct ibv_tmh *)self->from;

	*h = (struct ibv_tmh) {
		.opcode = op, .app_ctx = htobe32(0xabcd0123),
		.tag = htobe64(tag),
	};
}

enum ibv_wc_status eager(struct tag_ends *self, uint64_t tag, uint32_t len,
			 uint8_t seed)
{
	uint32_t i;

	header(self, IBV_TMH_EAGER, tag);
	for (i = 0; i < len; i++)
		self->from[16 + i] = seed + i * 7;
	return send_bytes(self, 16 + len);
}

int is_data(struct tag_ends *self, uint32_t offset, uint32_t len, uint8_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		if (self->to[offset + i] != (uint8_t)(seed + i * 7))
			return 0;
	return 1;
}

void matched(struct tag_ends *self, uint64_t id, uint64_t tag, uint32_t len)
{
	struct tm_done d = next_done(self);

	CHECK(d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV);
	CHECK(d.wr_id == id);
	CHECK(d.flags == (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID));
	CHECK(d.tag == tag);
	CHECK(d.priv == 0xabcd0123);
	CHECK(d.len == len);
}

void is_unexpected(struct tag_ends *self, uint64_t id, uint32_t len,
		   unsigned int flags)
{
	struct tm_done d = next_done(self);

	CHECK(d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV);
	CHECK(d.wr_id == id);
	CHECK(d.flags == flags);
	CHECK(d.len == len);
	CHECK(d.tag == 0);
	self->unexpected++;
}
