// SPDX-License-Identifier: GPL-2.0
/*
 * Tag matching on shared receive queues: ibv_post_srq_ops(3) and rdma-core's
 * tag_matching.md.
 *
 *   tags                                      lists the cases
 *   tags CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 *
 * The sender is on the first device, the queue on the second, or both on the
 * first.
 */
#include <endian.h>
#include <infiniband/tm_types.h>
#include <sys/mman.h>

#include "check.h"

#define TAGS 64
#define OPS 512
#define RECEIVES 32
#define AREA (1 << 20)
#define ALL UINT64_MAX

enum { OPCODE_ERR = 1, SGE_ERR, HANDLE_ERR, MASKS_ERR, COUNT_ERR };

static const char *device[2];
static int gid_index[2];

/* The sender, and the end with the queue. */
static struct end a, b;
static struct ibv_srq *srq;
static struct ibv_cq_ex *cq;
/* Memory of each end. */
static uint8_t *from, *to;
static struct ibv_mr *from_mr, *to_mr;
static uint32_t unexpected;

/* A completion of the queue. */
struct done {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned int flags;
	uint32_t len;
	uint32_t vendor_err;
	uint64_t tag;
	uint32_t priv;
};

static uint8_t *area(struct end *e, struct ibv_mr **mr)
{
	uint8_t *p = aligned_alloc(4096, AREA);

	CHECK(p);
	memset(p, 0, AREA);
	*mr = ibv_reg_mr(e->pd, p, AREA, IBV_ACCESS_LOCAL_WRITE |
			 IBV_ACCESS_REMOTE_READ);
	CHECK(*mr);
	return p;
}

static struct ibv_srq *make_srq(uint32_t tags, uint32_t ops)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = RECEIVES, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = b.pd,
		.cq = ibv_cq_ex_to_cq(cq),
		.tm_cap = { .max_num_tags = tags, .max_ops = ops },
	};

	return ibv_create_srq_ex(b.ctx, &attr);
}

static void make_all(void)
{
	struct ibv_cq_init_attr_ex ex = {
		.cqe = 1024,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO,
	};
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };

	make_end(&a, device[0], gid_index[0]);
	make_end(&b, device[1], gid_index[1]);
	from = area(&a, &from_mr);
	to = area(&b, &to_mr);
	cq = ibv_create_cq_ex(b.ctx, &ex);
	CHECK(cq);
	srq = make_srq(TAGS, OPS);
	CHECK(srq);
	CHECK(!ibv_destroy_qp(b.qp));
	init.send_cq = init.recv_cq = b.cq;
	init.srq = srq;
	b.qp = ibv_create_qp(b.pd, &init);
	CHECK(b.qp);
	connect_end(&a, &b);
	connect_end(&b, &a);
	unexpected = 0;
}

static void free_all(void)
{
	CHECK(!ibv_destroy_qp(a.qp));
	CHECK(!ibv_destroy_qp(b.qp));
	CHECK(!ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	CHECK(!ibv_dereg_mr(from_mr));
	CHECK(!ibv_dereg_mr(to_mr));
	CHECK(!ibv_close_device(a.ctx));
	CHECK(!ibv_close_device(b.ctx));
}

/* The next completion of the queue. */
static struct done next_done(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc_tm_info info;
	double end = deadline(20);
	struct done d;
	int ret;

	while ((ret = ibv_start_poll(cq, &attr)) == ENOENT && !is_past(end))
		usleep(10);
	CHECK(!ret);
	ibv_wc_read_tm_info(cq, &info);
	d = (struct done) {
		.wr_id = cq->wr_id, .status = cq->status,
		.opcode = ibv_wc_read_opcode(cq),
		.flags = ibv_wc_read_wc_flags(cq),
		.len = ibv_wc_read_byte_len(cq),
		.vendor_err = ibv_wc_read_vendor_err(cq),
		.tag = info.tag, .priv = info.priv,
	};
	ibv_end_poll(cq);
	return d;
}

static void nothing_done(void)
{
	struct ibv_poll_cq_attr attr = {};

	CHECK(ibv_start_poll(cq, &attr) == ENOENT);
}

static int post_op(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;
	int ret = ibv_post_srq_ops(srq, wr, &bad);

	CHECK(!ret == !bad);
	return ret;
}

/* Adds a tag for LEN bytes at OFFSET; its handle. */
static uint32_t add_flags(uint64_t id, uint64_t tag, uint64_t mask,
			  uint32_t offset, uint32_t len, int flags)
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
static uint32_t add(uint64_t id, uint64_t tag, uint64_t mask, uint32_t offset,
		    uint32_t len)
{
	return add_flags(id, tag, mask, offset, len, IBV_OPS_TM_SYNC);
}

static int delete(uint32_t handle)
{
	struct ibv_ops_wr wr = {
		.wr_id = 2000, .opcode = IBV_WR_TAG_DEL,
		.flags = IBV_OPS_SIGNALED, .tm = { .handle = handle },
	};

	return post_op(&wr);
}

static struct done sync_count(uint32_t count)
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
static void post_buffer(uint64_t id, uint32_t offset, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)to + offset, len, to_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
}

/* The notice that a fetch is over may come before the request's own end: one is
 * a receive, the other a send. */
#define NOTICE 8

static struct ibv_wc early;
static bool is_early;

static void next_notice(struct ibv_wc *wc)
{
	if (is_early)
		*wc = early;
	else
		CHECK(next_wc(a.cq, wc) == 1);
	is_early = false;
}

/* Sends LEN bytes of the sender's memory; how that ended. */
static enum ibv_wc_status send_bytes(uint32_t len)
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
	if (wc.wr_id == NOTICE) {
		CHECK(!is_early);
		early = wc;
		is_early = true;
		CHECK(next_wc(a.cq, &wc) == 1);
	}
	CHECK(wc.wr_id == 7);
	return wc.status;
}

static void header(uint8_t op, uint64_t tag)
{
	struct ibv_tmh *h = (struct ibv_tmh *)from;

	*h = (struct ibv_tmh) {
		.opcode = op, .app_ctx = htobe32(0xabcd0123),
		.tag = htobe64(tag),
	};
}

/* Sends an eager message with LEN bytes of data, which begin with SEED. */
static enum ibv_wc_status eager(uint64_t tag, uint32_t len, uint8_t seed)
{
	uint32_t i;

	header(IBV_TMH_EAGER, tag);
	for (i = 0; i < len; i++)
		from[16 + i] = seed + i * 7;
	return send_bytes(16 + len);
}

static int is_data(uint32_t offset, uint32_t len, uint8_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		if (to[offset + i] != (uint8_t)(seed + i * 7))
			return 0;
	return 1;
}

/* The next completion is of a message that took tag ID. */
static void matched(uint64_t id, uint64_t tag, uint32_t len)
{
	struct done d = next_done();

	CHECK(d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV);
	CHECK(d.wr_id == id);
	CHECK(d.flags == (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID));
	CHECK(d.tag == tag);
	CHECK(d.priv == 0xabcd0123);
	CHECK(d.len == len);
}

/* The next completion is of an unexpected message. */
static void is_unexpected(uint64_t id, uint32_t len, unsigned int flags)
{
	struct done d = next_done();

	CHECK(d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV);
	CHECK(d.wr_id == id);
	CHECK(d.flags == flags);
	CHECK(d.len == len);
	CHECK(d.tag == 0);
	unexpected++;
}

static void caps(void)
{
	struct ibv_device_attr_ex attr;

	CHECK(!ibv_query_device_ex(b.ctx, NULL, &attr));
	CHECK(attr.tm_caps.flags & IBV_TM_CAP_RC);
	CHECK(attr.tm_caps.max_num_tags >= 131072);
	CHECK(attr.tm_caps.max_ops >= 64);
	CHECK(attr.tm_caps.max_sge >= 4);
	CHECK(attr.tm_caps.max_rndv_hdr_size >= 32);
	errno = 0;
	CHECK(!make_srq(attr.tm_caps.max_num_tags + 1, 8) && errno == EINVAL);
	CHECK(!make_srq(8, attr.tm_caps.max_ops + 1) && errno == EINVAL);
	CHECK(!make_srq(0, 8) && errno == EINVAL);
	CHECK(!make_srq(8, 0) && errno == EINVAL);
}

static void eager_messages(void)
{
	uint32_t len[] = { 0, 1, 64, 1008 };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		add(i, 100 + i, ALL, 4096 * i, 1008);
		CHECK(eager(100 + i, len[i], i) == IBV_WC_SUCCESS);
		matched(i, 100 + i, len[i]);
		CHECK(is_data(4096 * i, len[i], i));
		CHECK(!to[4096 * i + len[i]]);
	}
}

static void tags_in_order(void)
{
	add(1, 5, ALL, 0, 64);
	add(2, 0, 0, 0, 64);
	add(3, 5, ALL, 0, 64);
	add(4, 0x100, 0xf00, 0, 64);
	/* The exact tag is older than the one that takes all. */
	eager(5, 8, 1);
	matched(1, 5, 8);
	eager(0x1ab, 8, 1);
	matched(2, 0x1ab, 8);
	eager(0x1cd, 8, 1);
	matched(4, 0x1cd, 8);
	eager(5, 8, 1);
	matched(3, 5, 8);
}

static void scattered(void)
{
	struct ibv_sge sge[5] = {
		{ (uintptr_t)to, 10, to_mr->lkey },
		{ (uintptr_t)to + 100, 0, to_mr->lkey },
		{ (uintptr_t)to + 200, 990, to_mr->lkey },
		{ (uintptr_t)to + 5000, 5000, to_mr->lkey },
	};
	struct ibv_ops_wr wr = {
		.opcode = IBV_WR_TAG_ADD, .tm.add = { .recv_wr_id = 9,
			.sg_list = sge, .num_sge = 4, .tag = 1, .mask = ALL },
	};
	struct done d;

	CHECK(!post_op(&wr));
	/* Several packets: two completions. */
	CHECK(eager(1, 6000, 3) == IBV_WC_SUCCESS);
	d = next_done();
	CHECK(d.wr_id == 9 && d.flags == IBV_WC_TM_MATCH && d.tag == 1);
	d = next_done();
	CHECK(d.status == IBV_WC_SUCCESS && d.opcode == IBV_WC_TM_RECV);
	CHECK(d.wr_id == 9 && d.flags == IBV_WC_TM_DATA_VALID);
	CHECK(d.len == 6000);
	CHECK(is_data(0, 10, 3));
	CHECK(is_data(200, 990, 3 + 70));
	CHECK(is_data(5000, 5000, (uint8_t)(3 + 7000)));
	wr.tm.add.num_sge = 5;
	CHECK(post_op(&wr) == EINVAL);
	wr.tm.add.num_sge = -1;
	CHECK(post_op(&wr) == EINVAL);
}

static void phases(void)
{
	struct done d;

	post_buffer(50, 8192, 4096);
	post_buffer(51, 16384, 4096);
	add(1, 1, ALL, 0, 64);
	eager(2, 100, 5);
	/* Tag 2 is posted before software has seen the message: it waits. */
	add_flags(2, 2, ALL, 256, 64, IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC);
	is_unexpected(50, 116, 0);
	CHECK(to[8192] == IBV_TMH_EAGER && is_data(8192 + 16, 100, 5));
	d = next_done();
	CHECK(d.opcode == IBV_WC_TM_ADD && d.status == IBV_WC_SUCCESS);
	CHECK(d.wr_id == 1002 && d.flags == IBV_WC_TM_SYNC_REQ);
	/* Older tags go on. */
	eager(1, 4, 6);
	matched(1, 1, 4);
	/* The next message must not overtake the first. */
	eager(2, 101, 7);
	is_unexpected(51, 117, IBV_WC_TM_SYNC_REQ);
	d = sync_count(1);
	CHECK(d.opcode == IBV_WC_TM_SYNC && d.status == IBV_WC_SUCCESS);
	CHECK(d.wr_id == 3000 && d.flags == IBV_WC_TM_SYNC_REQ);
	d = sync_count(2);
	CHECK(d.status == IBV_WC_SUCCESS && d.flags == 0);
	eager(2, 40, 8);
	matched(2, 2, 40);
	CHECK(is_data(256, 40, 8));
	/* More than there were, or fewer. */
	d = sync_count(3);
	CHECK(d.status == IBV_WC_TM_ERR && d.vendor_err == COUNT_ERR);
	CHECK(d.flags == 0);
	d = sync_count(0);
	CHECK(d.status == IBV_WC_SUCCESS && d.flags == IBV_WC_TM_SYNC_REQ);
}

static void deleted(void)
{
	uint32_t old = add(1, 1, ALL, 0, 64), other = add(2, 2, ALL, 0, 64);
	struct done d;

	CHECK(old != other);
	CHECK(!delete(old));
	d = next_done();
	CHECK(d.opcode == IBV_WC_TM_DEL && d.status == IBV_WC_SUCCESS);
	CHECK(d.wr_id == 2000);
	/* Deleted, consumed, foreign. */
	CHECK(!delete(old));
	d = next_done();
	CHECK(d.opcode == IBV_WC_TM_DEL && d.status == IBV_WC_TM_ERR);
	CHECK(d.vendor_err == HANDLE_ERR);
	eager(2, 4, 0);
	matched(2, 2, 4);
	CHECK(!delete(other));
	d = next_done();
	CHECK(d.status == IBV_WC_TM_ERR && d.vendor_err == HANDLE_ERR);
	CHECK(delete(TAGS) == EINVAL);
	/* Entries are used again, under other names. */
	while (add(3, 3, ALL, 0, 64) % (1 << 20) != old)
		;
	CHECK(!delete(old));
	d = next_done();
	CHECK(d.status == IBV_WC_TM_ERR);
}

static void full_list(void)
{
	struct ibv_ops_wr wr[2] = {
		{ .opcode = IBV_WR_TAG_ADD, .next = &wr[1],
		  .tm.add = { .tag = 1, .mask = ALL } },
		{ .opcode = IBV_WR_TAG_ADD,
		  .tm.add = { .tag = 2, .mask = ALL } },
	};
	struct ibv_ops_wr *bad = NULL;
	uint32_t handle = 0;
	int i;

	for (i = 0; i < TAGS - 1; i++)
		handle = add(i, 10 + i, ALL, 0, 64);
	CHECK(ibv_post_srq_ops(srq, wr, &bad) == ENOMEM);
	CHECK(bad == &wr[1]);
	/* A message or a delete makes room. */
	eager(10, 4, 0);
	matched(0, 10, 4);
	add(100, 5, ALL, 0, 64);
	CHECK(!delete(handle));
	CHECK(next_done().status == IBV_WC_SUCCESS);
	add(101, 6, ALL, 0, 64);
	CHECK(post_op(&wr[1]) == ENOMEM);
}

static void masks(void)
{
	struct done d;
	int i;

	for (i = 0; i < 16; i++)
		add(i, 0, 1ull << i, 0, 64);
	/* A failure completes, asked for or not. */
	add_flags(16, 0, 1 << 16, 0, 64, IBV_OPS_SIGNALED);
	d = next_done();
	CHECK(d.opcode == IBV_WC_TM_ADD && d.status == IBV_WC_TM_ERR);
	CHECK(d.wr_id == 1016 && d.vendor_err == MASKS_ERR);
	eager(~1ull, 4, 0);
	matched(0, ~1ull, 4);
	add(16, 0x10000, 1 << 16, 0, 64);
	eager(0x1ffff, 4, 0);
	matched(16, 0x1ffff, 4);
}

static void bad_ops(void)
{
	struct ibv_ops_wr wr = { .opcode = 3 };
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *basic = ibv_create_srq(b.pd, &attr);
	struct ibv_ops_wr *bad = NULL;

	CHECK(post_op(&wr) == EINVAL);
	wr.opcode = IBV_WR_TAG_SYNC;
	wr.flags = 4;
	CHECK(post_op(&wr) == EINVAL);
	wr.flags = 0;
	CHECK(basic);
	CHECK(ibv_post_srq_ops(basic, &wr, &bad) == EINVAL && bad == &wr);
	CHECK(!ibv_destroy_srq(basic));
	nothing_done();
}

/* What no device understands goes to software whole, and does not count. */
static void raw_messages(void)
{
	struct { uint8_t op; uint32_t len; } m[] = {
		{ IBV_TMH_NO_TAG, 100 }, { IBV_TMH_NO_TAG, 1 }, { 0, 0 },
		{ IBV_TMH_FIN, 32 }, { 4, 100 }, { 255, 16 },
		{ IBV_TMH_EAGER, 15 }, { IBV_TMH_RNDV, 31 },
		{ IBV_TMH_NO_TAG, 5000 },
	};
	unsigned int i;
	struct done d;

	/* It would take anything. */
	add(1, 0, 0, 0, 64);
	for (i = 0; i < sizeof(m) / sizeof(m[0]); i++) {
		memset(to + 8192, 0, 8192);
		post_buffer(60 + i, 8192, 8192);
		memset(from, 0x5a, 8192);
		header(m[i].op, 1);
		CHECK(send_bytes(m[i].len) == IBV_WC_SUCCESS);
		d = next_done();
		CHECK(d.opcode == IBV_WC_TM_NO_TAG && d.wr_id == 60 + i);
		CHECK(d.status == IBV_WC_SUCCESS && d.flags == 0);
		CHECK(d.len == m[i].len && d.tag == 0);
		CHECK(!memcmp(to + 8192, from, m[i].len));
		CHECK(!to[8192 + m[i].len]);
	}
	eager(99, 4, 0);
	matched(1, 99, 4);
}

/* The tag completes in error, and the connection ends. */
static void broken(enum ibv_wc_status mine, enum ibv_wc_status theirs,
		   uint32_t len)
{
	struct done d;

	CHECK(eager(1, len, 0) == theirs);
	do {
		d = next_done();
	} while (d.flags == IBV_WC_TM_MATCH);
	CHECK(d.opcode == IBV_WC_TM_RECV || d.status != IBV_WC_SUCCESS);
	CHECK(d.wr_id == 1 && d.status == mine);
}

static void too_long(void)
{
	add(1, 1, ALL, 0, 64);
	broken(IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR, 65);
}

static void much_too_long(void)
{
	add(1, 1, ALL, 0, 2000);
	broken(IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR, 9000);
}

static void bad_key(void)
{
	struct ibv_sge sge = { (uintptr_t)to, 64, to_mr->lkey ^ 0x5500 };
	struct ibv_ops_wr wr = {
		.opcode = IBV_WR_TAG_ADD, .tm.add = { .recv_wr_id = 1,
			.sg_list = &sge, .num_sge = 1, .tag = 1, .mask = ALL },
	};

	CHECK(!post_op(&wr));
	broken(IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR, 32);
}

/* A connection that breaks in an unexpected message leaves the phase alone. */
static void breaks_off(void)
{
	struct done d;

	post_buffer(70, 8192, 2000);
	CHECK(eager(1, 5000, 0) == IBV_WC_REM_INV_REQ_ERR);
	d = next_done();
	CHECK(d.wr_id == 70 && d.status == IBV_WC_LOC_LEN_ERR);
	add_flags(1, 1, ALL, 0, 64, IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC);
	d = next_done();
	CHECK(d.opcode == IBV_WC_TM_ADD && d.flags == 0);
}

/* What takes no receive of the queue may fail without harm to its end. */
static void bad_write(void)
{
	struct ibv_sge sge = { (uintptr_t)from, 64, from_mr->lkey ^ 0x5500 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)b.buf, b.mr->rkey },
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	CHECK(!ibv_post_send(a.qp, &wr, &bad));
	CHECK(next_wc(a.cq, &wc) == 1 && wc.status == IBV_WC_LOC_PROT_ERR);
	CHECK(!ibv_query_qp(b.qp, &attr, IBV_QP_STATE, &init));
	CHECK(attr.qp_state == IBV_QPS_RTS);
}

/* All that was posted is executed before the message is matched. */
static void many_ops(void)
{
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC };
	int i;

	for (i = 0; i < 200; i++)
		CHECK(!post_op(&wr));
	add(1, 1, ALL, 0, 64);
	CHECK(eager(1, 8, 1) == IBV_WC_SUCCESS);
	matched(1, 1, 8);
}

/* Sends a rendezvous request of LEN bytes for SIZE bytes of data. */
static enum ibv_wc_status request(uint64_t tag, uint32_t len, uint32_t size,
				  uint32_t rkey)
{
	struct ibv_rvh *r = (struct ibv_rvh *)(from + 16);

	header(IBV_TMH_RNDV, tag);
	*r = (struct ibv_rvh) {
		.va = htobe64((uintptr_t)from + 65536),
		.rkey = htobe32(rkey), .len = htobe32(size),
	};
	return send_bytes(len);
}

static void rendezvous_of(uint32_t size)
{
	struct ibv_wc wc;
	struct done d;
	uint32_t i;

	for (i = 0; i < size; i++)
		from[65536 + i] = 17 + i * 7;
	memset(to, 0, 400000);
	memset(a.buf, 0, 2 * PAIR_SIZE);
	CHECK(!post_receive(&a, NOTICE));
	add(4, 44, ALL, 64, size + 100);
	CHECK(request(44, 48, size, from_mr->rkey) == IBV_WC_SUCCESS);
	d = next_done();
	CHECK(d.wr_id == 4 && d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV && d.flags == IBV_WC_TM_MATCH);
	CHECK(d.tag == 44 && d.priv == 0xabcd0123);
	d = next_done();
	CHECK(d.wr_id == 4 && d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV && d.flags == IBV_WC_TM_DATA_VALID);
	CHECK(d.len == size);
	CHECK(is_data(64, size, 17) && !to[64 + size] && !to[63]);
	/* The notice: the request's headers with another operation. */
	next_notice(&wc);
	CHECK(wc.wr_id == NOTICE && wc.status == IBV_WC_SUCCESS);
	CHECK(wc.opcode == IBV_WC_RECV && wc.byte_len == 32);
	from[0] = IBV_TMH_FIN;
	CHECK(!memcmp(a.buf + PAIR_SIZE, from, 32));
}

static void rendezvous(void)
{
	rendezvous_of(0);
	rendezvous_of(1);
	rendezvous_of(1024);
	rendezvous_of(300001);
}

static void rendezvous_incomplete(void)
{
	struct done d;

	/* The buffer holds less than the data; it gets the headers. */
	add(4, 44, ALL, 0, 100);
	CHECK(request(44, 48, 101, from_mr->rkey) == IBV_WC_SUCCESS);
	d = next_done();
	CHECK(d.status == IBV_WC_TM_RNDV_INCOMPLETE);
	CHECK(d.wr_id == 4 && d.len == 48 && !memcmp(to, from, 48));
	/* A request that is longer than it may be. */
	add(5, 44, ALL, 0, 100);
	CHECK(request(44, 65, 50, from_mr->rkey) == IBV_WC_SUCCESS);
	d = next_done();
	CHECK(d.status == IBV_WC_TM_RNDV_INCOMPLETE);
	CHECK(d.wr_id == 5 && d.len == 65 && !memcmp(to, from, 65));
	/* Of many packets; the buffer holds its start. */
	add(6, 44, ALL, 0, 100);
	memset(to, 0, 200);
	CHECK(request(44, 5000, 50, from_mr->rkey) == IBV_WC_SUCCESS);
	d = next_done();
	CHECK(d.status == IBV_WC_TM_RNDV_INCOMPLETE);
	CHECK(d.wr_id == 6 && d.len == 100 && !memcmp(to, from, 100));
	CHECK(!to[100]);
	/* The connection lives; an unexpected request goes to software. */
	post_buffer(71, 8192, 4096);
	CHECK(request(45, 32, 50, from_mr->rkey) == IBV_WC_SUCCESS);
	is_unexpected(71, 32, 0);
	CHECK(!memcmp(to + 8192, from, 32));
}

static void rendezvous_bad_key(void)
{
	struct done d;

	add(4, 44, ALL, 0, 100);
	CHECK(request(44, 32, 100, from_mr->rkey ^ 0x5500) == IBV_WC_SUCCESS);
	CHECK(next_done().flags == IBV_WC_TM_MATCH);
	d = next_done();
	CHECK(d.opcode == IBV_WC_TM_RECV && d.wr_id == 4);
	CHECK(d.status == IBV_WC_REM_ACCESS_ERR);
}

/* Few receives: the message comes again when there is one. */
static void not_ready(void)
{
	struct ibv_sge sge = { (uintptr_t)from, 50, from_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 7, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	header(IBV_TMH_EAGER, 3);
	CHECK(!ibv_post_send(a.qp, &wr, &bad));
	usleep(2000);
	nothing_done();
	add(1, 3, ALL, 0, 64);
	matched(1, 3, 34);
	CHECK(next_wc(a.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

/* The receives that wait move to another ring, and the list stays. */
static void resized(void)
{
	struct ibv_srq_attr attr = { .max_wr = 4 * RECEIVES };
	struct done d;
	int i;

	post_buffer(50, 8192, 4096);
	post_buffer(51, 16384, 4096);
	add(1, 1, ALL, 0, 64);
	CHECK(eager(2, 100, 5) == IBV_WC_SUCCESS);
	is_unexpected(50, 116, 0);
	CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	for (i = 0; i < 3 * RECEIVES; i++)
		post_buffer(100 + i, 262144 + 4096 * i, 4096);
	CHECK(eager(3, 101, 6) == IBV_WC_SUCCESS);
	is_unexpected(51, 117, 0);
	CHECK(is_data(16384 + 16, 101, 6));
	CHECK(eager(1, 4, 7) == IBV_WC_SUCCESS);
	matched(1, 1, 4);
	for (i = 0; i < 3 * RECEIVES; i++) {
		CHECK(eager(4, 102, 8 + i) == IBV_WC_SUCCESS);
		is_unexpected(100 + i, 118, 0);
		CHECK(is_data(262144 + 4096 * i + 16, 102, 8 + i));
	}
	d = sync_count(unexpected);
	CHECK(d.status == IBV_WC_SUCCESS && d.flags == 0);
}

/* The same memory, not pinned. */
static void unpin(struct end *e, uint8_t *p, struct ibv_mr **mr)
{
	CHECK(!ibv_dereg_mr(*mr));
	*mr = ibv_reg_mr(e->pd, p, AREA, IBV_ACCESS_LOCAL_WRITE |
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	CHECK(*mr);
}

/* Clears the memory of the queue's end: its pages are not there any more. */
static void clear(int is_pinned)
{
	if (is_pinned)
		memset(to, 0, AREA);
	else
		CHECK(!madvise(to, AREA, MADV_DONTNEED));
}

/* Every kind of message. */
static void messages_on_demand(int is_pinned)
{
	uint32_t len[] = { 0, 1, 64, 1008, 5000 };
	struct done d;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		clear(is_pinned);
		add(i, 100 + i, ALL, 4096 * i + 4000, 5000);
		CHECK(eager(100 + i, len[i], i) == IBV_WC_SUCCESS);
		d = next_done();
		CHECK(d.wr_id == i && d.status == IBV_WC_SUCCESS);
		CHECK(d.opcode == IBV_WC_TM_RECV && d.tag == 100 + i);
		CHECK(d.flags & IBV_WC_TM_MATCH && d.priv == 0xabcd0123);
		/* It may be told in two parts. */
		if (!(d.flags & IBV_WC_TM_DATA_VALID))
			d = next_done();
		CHECK(d.wr_id == i && d.status == IBV_WC_SUCCESS);
		CHECK(d.flags & IBV_WC_TM_DATA_VALID && d.len == len[i]);
		CHECK(is_data(4096 * i + 4000, len[i], i));
		CHECK(!to[4096 * i + 4000 + len[i]]);
		nothing_done();
	}
	clear(is_pinned);
	post_buffer(72, 8192, 4096);
	CHECK(eager(99, 100, 5) == IBV_WC_SUCCESS);
	is_unexpected(72, 116, 0);
	CHECK(is_data(8192 + 16, 100, 5));
	rendezvous();
	rendezvous_incomplete();
	d = sync_count(unexpected);
	CHECK(d.status == IBV_WC_SUCCESS && d.flags == 0);
}

static void on_demand(void)
{
	unpin(&a, from, &from_mr);
	messages_on_demand(1);
	unpin(&b, to, &to_mr);
	messages_on_demand(0);
}

/* What the sender promised is not there: the tag's receive ends with the connection. */
static void vanished(void)
{
	uint8_t *base = from;
	struct done d;

	unpin(&a, from, &from_mr);
	from += 4096 - 512;
	header(IBV_TMH_EAGER, 1);
	CHECK(!munmap(base + 4096, 4096));
	add(1, 1, ALL, 0, 1024);
	CHECK(send_bytes(616) == IBV_WC_LOC_PROT_ERR);
	from = base;
	/* On the wire, nothing was sent. */
	if (device[0] != device[1])
		return;
	CHECK(next_done().flags == IBV_WC_TM_MATCH);
	d = next_done();
	CHECK(d.wr_id == 1 && d.status == IBV_WC_WR_FLUSH_ERR);
}

/*
 * As an MPI library does: receives and messages in random order, unexpected
 * messages kept by software. Messages of one tag are received in order.
 */
#define KINDS 6
#define ROUNDS 2000

static void random_order(void)
{
	uint32_t sent[KINDS] = {}, got[KINDS] = {}, wanted[KINDS] = {};
	uint32_t kept[KINDS] = {}, handled = 0, reported = 0;
	struct { uint32_t handle; int kind; int busy; } posted[16] = {};
	uint32_t seed = 1, rounds = 0, i, n;
	struct ibv_poll_cq_attr attr = {};
	struct done d;

	for (i = 0; i < RECEIVES; i++)
		post_buffer(500 + i, 262144 + 64 * i, 64);
	for (;;) {
		int kind, all = rounds >= ROUNDS, left = 0;

		/* What has come. */
		while (!ibv_start_poll(cq, &attr)) {
			struct ibv_wc_tm_info info;

			ibv_wc_read_tm_info(cq, &info);
			d.wr_id = cq->wr_id;
			d.status = cq->status;
			d.flags = ibv_wc_read_wc_flags(cq);
			d.opcode = ibv_wc_read_opcode(cq);
			ibv_end_poll(cq);
			CHECK(d.status == IBV_WC_SUCCESS);
			CHECK(d.opcode == IBV_WC_TM_RECV);
			if (d.flags & IBV_WC_TM_MATCH) {
				i = d.wr_id;
				CHECK(posted[i].busy);
				posted[i].busy = 0;
				kind = posted[i].kind;
				memcpy(&n, to + 64 * i, 4);
			} else {
				uint8_t *p = to + 262144 + 64 * (d.wr_id - 500);

				kind = p[15];
				memcpy(&n, p + 16, 4);
				handled++;
				for (i = 0; i < 16; i++)
					if (posted[i].busy && posted[i].kind == kind)
						break;
				post_buffer(d.wr_id, 262144 + 64 * (d.wr_id - 500), 64);
				if (i == 16) {
					kept[kind]++;
					continue;
				}
				/* The oldest of its kind: they are posted one at a time. */
				posted[i].busy = 0;
				struct ibv_ops_wr wr = {
					.opcode = IBV_WR_TAG_DEL,
					.flags = IBV_OPS_TM_SYNC,
					.tm = { handled, posted[i].handle },
				};
				CHECK(!post_op(&wr));
				reported = handled;
			}
			CHECK(n == got[kind]);
			got[kind]++;
		}
		if (handled != reported) {
			struct ibv_ops_wr wr = {
				.opcode = IBV_WR_TAG_SYNC,
				.tm = { .unexpected_cnt = handled },
			};

			CHECK(!post_op(&wr));
			reported = handled;
		}
		seed = seed * 1103515245 + 12345;
		kind = (seed >> 16) % KINDS;
		if (!all && (seed >> 24) % 2) {
			header(IBV_TMH_EAGER, kind);
			memcpy(from + 16, &sent[kind], 4);
			sent[kind]++;
			CHECK(send_bytes(20) == IBV_WC_SUCCESS);
			rounds++;
		}
		for (i = 0; i < KINDS; i++)
			left += sent[i] - got[i];
		if (all && !left)
			break;
		if (all)
			kind = rounds++ % KINDS;
		/* One receive of a kind at a time. */
		for (i = 0; i < 16; i++)
			if (posted[i].busy && posted[i].kind == kind)
				break;
		if (i < 16 || wanted[kind] >= sent[kind] + !all)
			continue;
		if (kept[kind]) {
			kept[kind]--;
			got[kind]++;
			wanted[kind]++;
			continue;
		}
		for (i = 0; posted[i].busy; i++)
			;
		posted[i].busy = 1;
		posted[i].kind = kind;
		unexpected = handled;
		posted[i].handle = add(i, kind, ALL, 64 * i, 64);
		wanted[kind]++;
	}
}

static const struct check_case cases[] = {
	{ "caps", caps },
	{ "eager", eager_messages },
	{ "order", tags_in_order },
	{ "scatter", scattered },
	{ "phases", phases },
	{ "delete", deleted },
	{ "full", full_list },
	{ "masks", masks },
	{ "bad-ops", bad_ops },
	{ "raw", raw_messages },
	{ "too-long", too_long },
	{ "much-too-long", much_too_long },
	{ "bad-key", bad_key },
	{ "breaks-off", breaks_off },
	{ "bad-write", bad_write },
	{ "many-ops", many_ops },
	{ "rendezvous", rendezvous },
	{ "rendezvous-incomplete", rendezvous_incomplete },
	{ "rendezvous-bad-key", rendezvous_bad_key },
	{ "not-ready", not_ready },
	{ "resize", resized },
	{ "on-demand", on_demand },
	{ "vanished", vanished },
	{ "random", random_order },
	{}
};

int main(int argc, char **argv)
{
	int ret;

	if (argc < 2)
		return run_case(cases, NULL);
	if (argc < 4)
		return 2;
	device[0] = device[1] = argv[2];
	gid_index[0] = gid_index[1] = atoi(argv[3]);
	if (argc > 5) {
		device[1] = argv[4];
		gid_index[1] = atoi(argv[5]);
	}
	make_all();
	ret = run_case(cases, argv[1]);
	free_all();
	return ret;
}
