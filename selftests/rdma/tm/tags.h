/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A sender and a shared receive queue with tag matching, which each case gets anew:
 * operations on the list, messages, and the queue's completions. The sender is on the
 * first device, the queue on the second.
 */
#ifndef SELFTEST_TAGS_H
#define SELFTEST_TAGS_H

#include "devices.h"
#include "tm.h"

#define TAGS 64
#define OPS 512
#define RECEIVES 32
#define AREA (1 << 20)
#define ALL UINT64_MAX

/* The sender, and the end with the queue. */
static struct end a, b;
static struct tag_queue queue;
/* Of what comes to the sender: that may be before its own message is acknowledged. */
static struct ibv_cq *answers;
/* Memory of each end. */
static uint8_t *from, *to;
static struct ibv_mr *from_mr, *to_mr;
static uint32_t unexpected;

static inline uint8_t *area(struct end *e, struct ibv_mr **mr)
{
	uint8_t *p = aligned_alloc(4096, AREA);

	CHECK(p);
	memset(p, 0, AREA);
	*mr = ibv_reg_mr(e->pd, p, AREA, IBV_ACCESS_LOCAL_WRITE |
			 IBV_ACCESS_REMOTE_READ);
	CHECK(*mr);
	return p;
}

static void make_all(void)
{
	struct tag_queue_size size = {
		.tags = TAGS, .ops = OPS, .receives = RECEIVES, .cqe = 1024,
	};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = { PAIR_DEPTH, PAIR_DEPTH, 2, 2, 64 },
	};

	make_end(&a, device[0], gid_index[0]);
	make_end(&b, device[1], gid_index[1]);
	from = area(&a, &from_mr);
	to = area(&b, &to_mr);
	tm_make(&queue, &b, size);
	CHECK(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp));
	answers = ibv_create_cq(a.ctx, PAIR_DEPTH, NULL, NULL, 0);
	CHECK(answers);
	init.send_cq = a.cq;
	init.recv_cq = answers;
	a.qp = ibv_create_qp(a.pd, &init);
	CHECK(a.qp);
	/* The device sends the notices: the receiver needs no send queue. */
	b.qp = tm_qp(&queue, &b, 0);
	connect_end(&a, &b);
	connect_end(&b, &a);
	unexpected = 0;
}

static void free_all(void)
{
	CHECK(!ibv_destroy_qp(a.qp));
	CHECK(!ibv_destroy_qp(b.qp));
	tm_free(&queue);
	CHECK(!ibv_destroy_cq(answers));
	CHECK(!ibv_dereg_mr(from_mr));
	CHECK(!ibv_dereg_mr(to_mr));
	CHECK(!ibv_close_device(a.ctx));
	CHECK(!ibv_close_device(b.ctx));
}

/* The next completion of the queue, which must come. */
static inline struct tm_done next_done(void)
{
	return tm_next(&queue);
}

static inline void nothing_done(void)
{
	struct tm_done d;

	CHECK(!tm_poll(&queue, &d));
}

static inline int post_op(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;
	int ret = ibv_post_srq_ops(queue.srq, wr, &bad);

	CHECK(!ret == !bad);
	return ret;
}

/* Adds a tag for LEN bytes at OFFSET; its handle. */
static inline uint32_t add_flags(uint64_t id, uint64_t tag, uint64_t mask, uint32_t offset,
				 uint32_t len, int flags)
{
	struct ibv_sge sge = { (uintptr_t)to + offset, len, to_mr->lkey };
	struct ibv_ops_wr wr = {
		.wr_id = 1000 + id, .opcode = IBV_WR_TAG_ADD, .flags = flags,
		.tm = { .unexpected_cnt = unexpected, .add = {
			.recv_wr_id = id, .sg_list = &sge, .num_sge = 1,
			.tag = tag, .mask = mask } },
	};

	CHECK(!post_op(&wr));
	return wr.tm.handle;
}

/* Adds a tag, without a completion: the kernel looks before it matches. */
static inline uint32_t add(uint64_t id, uint64_t tag, uint64_t mask, uint32_t offset,
			   uint32_t len)
{
	return add_flags(id, tag, mask, offset, len, IBV_OPS_TM_SYNC);
}

static inline int delete(uint32_t handle)
{
	struct ibv_ops_wr wr = {
		.wr_id = 2000, .opcode = IBV_WR_TAG_DEL,
		.flags = IBV_OPS_SIGNALED, .tm = { .handle = handle },
	};

	return post_op(&wr);
}

static inline struct tm_done sync_count(uint32_t count)
{
	struct ibv_ops_wr wr = {
		.wr_id = 3000, .opcode = IBV_WR_TAG_SYNC,
		.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
		.tm = { .unexpected_cnt = count },
	};

	CHECK(!post_op(&wr));
	return next_done();
}

/* A receive for what no tag takes. */
static inline void post_buffer(uint64_t id, uint32_t offset, uint32_t len)
{
	tm_receive(&queue, id, (struct ibv_sge){ (uintptr_t)to + offset, len, to_mr->lkey });
}

/* Sends LEN bytes of the sender's memory; how that ended. */
static inline enum ibv_wc_status send_bytes(uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)from, len, from_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 7, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	CHECK(!ibv_post_send(a.qp, &wr, &bad));
	CHECK(next_wc(a.cq, &wc) == 1);
	CHECK(wc.wr_id == 7);
	return wc.status;
}

static inline void header(uint8_t op, uint64_t tag)
{
	struct ibv_tmh *h = (struct ibv_tmh *)from;

	*h = (struct ibv_tmh) {
		.opcode = op, .app_ctx = htobe32(0xabcd0123),
		.tag = htobe64(tag),
	};
}

/* Sends an eager message with LEN bytes of data, which begin with SEED. */
static inline enum ibv_wc_status eager(uint64_t tag, uint32_t len, uint8_t seed)
{
	uint32_t i;

	header(IBV_TMH_EAGER, tag);
	for (i = 0; i < len; i++)
		from[16 + i] = seed + i * 7;
	return send_bytes(16 + len);
}

static inline int is_data(uint32_t offset, uint32_t len, uint8_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		if (to[offset + i] != (uint8_t)(seed + i * 7))
			return 0;
	return 1;
}

/* The next completion is of a message that took tag ID. */
static inline void matched(uint64_t id, uint64_t tag, uint32_t len)
{
	struct tm_done d = next_done();

	CHECK(d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV);
	CHECK(d.wr_id == id);
	CHECK(d.flags == (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID));
	CHECK(d.tag == tag);
	CHECK(d.priv == 0xabcd0123);
	CHECK(d.len == len);
}

/* The next completion is of an unexpected message. */
static inline void is_unexpected(uint64_t id, uint32_t len, unsigned int flags)
{
	struct tm_done d = next_done();

	CHECK(d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV);
	CHECK(d.wr_id == id);
	CHECK(d.flags == flags);
	CHECK(d.len == len);
	CHECK(d.tag == 0);
	unexpected++;
}

static inline int main_of_tags(const struct check_case *cases, int argc, char **argv)
{
	return main_around(cases, make_all, free_all, argc, argv);
}

#endif /* SELFTEST_TAGS_H */
