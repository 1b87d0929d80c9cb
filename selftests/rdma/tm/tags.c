// SPDX-License-Identifier: GPL-2.0
/*
 * Tag matching on shared receive queues: ibv_post_srq_ops(3) and rdma-core's
 * tag_matching.md.
 *
 *   tags                                      lists the cases
 *   tags CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 */
#include <infiniband/xroce_dv.h>
#include <pthread.h>

#include "tag_ends.h"

enum { HANDLE_ERR = 3, COUNT_ERR = 5 };

/* A queue of that size, or NULL. */
static struct ibv_srq *sized(struct tag_ends *self, uint32_t tags, uint32_t ops)
{
	return tm_srq(&self->b, self->queue.cq, (struct tag_queue_size){
			.tags = tags, .ops = ops, .receives = RECEIVES });
}

static void caps(struct tag_ends *self)
{
	struct ibv_device_attr_ex attr;

	CHECK(!ibv_query_device_ex(self->b.ctx, NULL, &attr));
	CHECK(attr.tm_caps.flags & IBV_TM_CAP_RC);
	CHECK(attr.tm_caps.max_num_tags >= 131072);
	CHECK(attr.tm_caps.max_ops >= 64);
	CHECK(attr.tm_caps.max_sge >= 4);
	CHECK(attr.tm_caps.max_rndv_hdr_size >= 32);
	errno = 0;
	CHECK(!sized(self, attr.tm_caps.max_num_tags + 1, 8) && errno == EINVAL);
	CHECK(!sized(self, 8, attr.tm_caps.max_ops + 1) && errno == EINVAL);
	CHECK(!sized(self, 0, 8) && errno == EINVAL);
	CHECK(!sized(self, 8, 0) && errno == EINVAL);
}

/* Reliable connections only: who else would fetch, and for whom? */
static void other_types(struct tag_ends *self)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD };
	unsigned int i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = types[i], .send_cq = self->b.cq, .recv_cq = self->b.cq,
			.srq = self->queue.srq, .cap = { 1, 0, 1, 0, 0 },
		};

		CHECK(!ibv_create_qp(self->b.pd, &init) && errno == EINVAL);
		init.srq = NULL;
		init.cap.max_recv_wr = init.cap.max_recv_sge = 1;
		CHECK(!ibv_destroy_qp(ibv_create_qp(self->b.pd, &init)));
	}
	/* The queue is not the worse for it. */
	add(self, 1, 1, ALL, 0, 64);
	CHECK(eager(self, 1, 8, 1) == IBV_WC_SUCCESS);
	matched(self, 1, 1, 8);
}

static void eager_messages(struct tag_ends *self)
{
	uint32_t len[] = { 0, 1, 64, 1008 };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		add(self, i, 100 + i, ALL, 4096 * i, 1008);
		CHECK(eager(self, 100 + i, len[i], i) == IBV_WC_SUCCESS);
		matched(self, i, 100 + i, len[i]);
		CHECK(is_data(self, 4096 * i, len[i], i));
		CHECK(!self->to[4096 * i + len[i]]);
	}
}

static void tags_in_order(struct tag_ends *self)
{
	add(self, 1, 5, ALL, 0, 64);
	add(self, 2, 0, 0, 0, 64);
	add(self, 3, 5, ALL, 0, 64);
	add(self, 4, 0x100, 0xf00, 0, 64);
	/* The exact tag is older than the one that takes all. */
	eager(self, 5, 8, 1);
	matched(self, 1, 5, 8);
	eager(self, 0x1ab, 8, 1);
	matched(self, 2, 0x1ab, 8);
	eager(self, 0x1cd, 8, 1);
	matched(self, 4, 0x1cd, 8);
	eager(self, 5, 8, 1);
	matched(self, 3, 5, 8);
}

static void scattered(struct tag_ends *self)
{
	struct ibv_sge sge[5] = {
		{ (uintptr_t)self->to, 10, self->to_mr->lkey },
		{ (uintptr_t)self->to + 100, 0, self->to_mr->lkey },
		{ (uintptr_t)self->to + 200, 990, self->to_mr->lkey },
		{ (uintptr_t)self->to + 5000, 5000, self->to_mr->lkey },
	};
	struct ibv_ops_wr wr = {
		.opcode = IBV_WR_TAG_ADD, .tm.add = { .recv_wr_id = 9,
			.sg_list = sge, .num_sge = 4, .tag = 1, .mask = ALL },
	};
	struct tm_done d;

	CHECK(!post_op(self, &wr));
	/* Several packets: two completions. */
	CHECK(eager(self, 1, 6000, 3) == IBV_WC_SUCCESS);
	d = next_done(self);
	CHECK(d.wr_id == 9 && d.flags == IBV_WC_TM_MATCH && d.tag == 1);
	d = next_done(self);
	CHECK(d.status == IBV_WC_SUCCESS && d.opcode == IBV_WC_TM_RECV);
	CHECK(d.wr_id == 9 && d.flags == IBV_WC_TM_DATA_VALID);
	CHECK(d.len == 6000);
	CHECK(is_data(self, 0, 10, 3));
	CHECK(is_data(self, 200, 990, 3 + 70));
	CHECK(is_data(self, 5000, 5000, (uint8_t)(3 + 7000)));
	wr.tm.add.num_sge = 5;
	CHECK(post_op(self, &wr) == EINVAL);
	wr.tm.add.num_sge = -1;
	CHECK(post_op(self, &wr) == EINVAL);
}

static void phases(struct tag_ends *self)
{
	struct tm_done d;

	post_buffer(self, 50, 8192, 4096);
	post_buffer(self, 51, 16384, 4096);
	add(self, 1, 1, ALL, 0, 64);
	eager(self, 2, 100, 5);
	/* Tag 2 is posted before software has seen the message: it waits. */
	add_flags(self, 2, 2, ALL, 256, 64, IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC);
	is_unexpected(self, 50, 116, 0);
	CHECK(self->to[8192] == IBV_TMH_EAGER && is_data(self, 8192 + 16, 100, 5));
	d = next_done(self);
	CHECK(d.opcode == IBV_WC_TM_ADD && d.status == IBV_WC_SUCCESS);
	CHECK(d.wr_id == 1002 && d.flags == IBV_WC_TM_SYNC_REQ);
	/* Older tags go on. */
	eager(self, 1, 4, 6);
	matched(self, 1, 1, 4);
	/* The next message must not overtake the first. */
	eager(self, 2, 101, 7);
	is_unexpected(self, 51, 117, IBV_WC_TM_SYNC_REQ);
	d = sync_count(self, 1);
	CHECK(d.opcode == IBV_WC_TM_SYNC && d.status == IBV_WC_SUCCESS);
	CHECK(d.wr_id == 3000 && d.flags == IBV_WC_TM_SYNC_REQ);
	d = sync_count(self, 2);
	CHECK(d.status == IBV_WC_SUCCESS && d.flags == 0);
	eager(self, 2, 40, 8);
	matched(self, 2, 2, 40);
	CHECK(is_data(self, 256, 40, 8));
	/* More than there were, or fewer. */
	d = sync_count(self, 3);
	CHECK(d.status == IBV_WC_TM_ERR && d.vendor_err == COUNT_ERR);
	CHECK(d.flags == 0);
	d = sync_count(self, 0);
	CHECK(d.status == IBV_WC_SUCCESS && d.flags == IBV_WC_TM_SYNC_REQ);
}

static void deleted(struct tag_ends *self)
{
	uint32_t old = add(self, 1, 1, ALL, 0, 64), other = add(self, 2, 2, ALL, 0, 64);
	struct tm_done d;

	CHECK(old != other);
	CHECK(!delete(self, old));
	d = next_done(self);
	CHECK(d.opcode == IBV_WC_TM_DEL && d.status == IBV_WC_SUCCESS);
	CHECK(d.wr_id == 2000);
	/* Deleted, consumed, foreign. */
	CHECK(!delete(self, old));
	d = next_done(self);
	CHECK(d.opcode == IBV_WC_TM_DEL && d.status == IBV_WC_TM_ERR);
	CHECK(d.vendor_err == HANDLE_ERR);
	eager(self, 2, 4, 0);
	matched(self, 2, 2, 4);
	CHECK(!delete(self, other));
	d = next_done(self);
	CHECK(d.status == IBV_WC_TM_ERR && d.vendor_err == HANDLE_ERR);
	CHECK(delete(self, TAGS) == EINVAL);
	/* Entries are used again, under other names. */
	while (add(self, 3, 3, ALL, 0, 64) % (1 << 20) != old)
		;
	CHECK(!delete(self, old));
	d = next_done(self);
	CHECK(d.status == IBV_WC_TM_ERR);
}

/* In the middle of a list, an operation fails: those around it do not. */
static void list_of_ops(struct tag_ends *self)
{
	struct ibv_sge sge = { (uintptr_t)self->to, 64, self->to_mr->lkey };
	struct ibv_ops_wr wr[3] = {
		{ .wr_id = 1, .opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_SIGNALED,
		  .next = &wr[1], .tm.add = { .recv_wr_id = 9, .sg_list = &sge,
			  .num_sge = 1, .tag = 1, .mask = ALL } },
		/* Of a tag that never was: it completes unasked. */
		{ .wr_id = 2, .opcode = IBV_WR_TAG_DEL, .next = &wr[2],
		  .tm.handle = TAGS - 1 },
		{ .wr_id = 3, .opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_SIGNALED },
	};
	struct tm_done d;

	CHECK(!post_op(self, wr));
	d = next_done(self);
	CHECK(d.wr_id == 1 && d.opcode == IBV_WC_TM_ADD && d.status == IBV_WC_SUCCESS);
	d = next_done(self);
	CHECK(d.wr_id == 2 && d.opcode == IBV_WC_TM_DEL && d.status == IBV_WC_TM_ERR);
	CHECK(d.vendor_err == HANDLE_ERR);
	d = next_done(self);
	CHECK(d.wr_id == 3 && d.opcode == IBV_WC_TM_SYNC && d.status == IBV_WC_SUCCESS);
	nothing_done(self);
	CHECK(eager(self, 1, 8, 1) == IBV_WC_SUCCESS);
	matched(self, 9, 1, 8);
}

/* The handle that the other thread deletes, once for each number. */
static uint32_t doomed, doom, deletes;

struct deleter {
	struct tag_ends *self;
	uint32_t last;
};

static void *delete_doomed(void *arg)
{
	const struct deleter *d = arg;
	uint32_t n, i;

	for (n = 1; n <= d->last; n++) {
		while (__atomic_load_n(&doom, __ATOMIC_ACQUIRE) != n)
			sched_yield();
		/* Earlier or later than the message. */
		for (i = 0; i < n % 64 * 500; i++)
			__atomic_load_n(&doom, __ATOMIC_RELAXED);
		CHECK(!delete(d->self, doomed));
		__atomic_store_n(&deletes, n, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* A tag is deleted while its message comes: one of the two has it. */
static void delete_races(struct tag_ends *self)
{
	uint32_t last = getenv("SELFTEST_DEBUG") && *getenv("SELFTEST_DEBUG") ? 64 : 512;
	struct deleter deleter = { self, last };
	uint32_t n, i, matches = 0;
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, delete_doomed, &deleter));
	post_buffer(self, 50, 8192, 4096);
	for (n = 1; n <= last; n++) {
		int is_deleted = -1, is_matched = -1;

		doomed = add(self, n, n, ALL, 0, 64);
		__atomic_store_n(&doom, n, __ATOMIC_RELEASE);
		CHECK(eager(self, n, 8, n) == IBV_WC_SUCCESS);
		for (i = 0; i < 2; i++) {
			struct tm_done d = next_done(self);

			if (d.opcode == IBV_WC_TM_DEL) {
				CHECK(is_deleted < 0 && d.wr_id == 2000);
				is_deleted = d.status == IBV_WC_SUCCESS;
				CHECK(is_deleted || d.status == IBV_WC_TM_ERR);
				CHECK(is_deleted || d.vendor_err == HANDLE_ERR);
				continue;
			}
			CHECK(is_matched < 0 && d.opcode == IBV_WC_TM_RECV);
			CHECK(d.status == IBV_WC_SUCCESS);
			is_matched = !!(d.flags & IBV_WC_TM_MATCH);
			CHECK(d.wr_id == (is_matched ? n : 50));
		}
		CHECK(is_deleted >= 0 && is_matched >= 0 && is_deleted != is_matched);
		CHECK(is_data(self, is_matched ? 0 : 8192 + 16, 8, n));
		matches += is_matched;
		while (__atomic_load_n(&deletes, __ATOMIC_ACQUIRE) != n)
			sched_yield();
		if (!is_matched) {
			self->unexpected++;
			post_buffer(self, 50, 8192, 4096);
		}
	}
	CHECK(!pthread_join(t, NULL));
	nothing_done(self);
	printf("%u of %u messages came before the delete\n", matches, last);
}

static void full_list(struct tag_ends *self)
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
		handle = add(self, i, 10 + i, ALL, 0, 64);
	CHECK(ibv_post_srq_ops(self->queue.srq, wr, &bad) == ENOMEM);
	CHECK(bad == &wr[1]);
	/* A message or a delete makes room. */
	eager(self, 10, 4, 0);
	matched(self, 0, 10, 4);
	add(self, 100, 5, ALL, 0, 64);
	CHECK(!delete(self, handle));
	CHECK(next_done(self).status == IBV_WC_SUCCESS);
	add(self, 101, 6, ALL, 0, 64);
	CHECK(post_op(self, &wr[1]) == ENOMEM);
}

/* As many masks as the queue says; one more is refused until a tag is gone. */
static void masks(struct tag_ends *self)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *basic = ibv_create_srq(self->b.pd, &attr);
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_ADD, .tm.add = { .mask = 3 } };
	uint32_t max, i, handle;

	CHECK(!xroce_dv_query_tm_masks(self->queue.srq, &max) && max == 64);
	CHECK(xroce_dv_query_tm_masks(self->queue.srq, NULL) == EINVAL);
	CHECK(xroce_dv_query_tm_masks(NULL, &max) == EINVAL);
	CHECK(basic && xroce_dv_query_tm_masks(basic, &max) == EINVAL);
	CHECK(!ibv_destroy_srq(basic));
	for (i = 0; i < max; i++)
		add(self, i, 0, 1ull << i, 0, 64);
	CHECK(post_op(self, &wr) == ENOMEM);
	/* One that is in use. */
	add(self, 100, 0, 1, 0, 64);
	/* The last one's tag is found as the first one's. */
	eager(self, ~(1ull << 63), 4, 0);
	matched(self, 63, ~(1ull << 63), 4);
	add(self, 101, 0, 3, 0, 64);
	CHECK(post_op(self, &(struct ibv_ops_wr){ .opcode = IBV_WR_TAG_ADD,
						  .tm.add = { .mask = 5 } }) == ENOMEM);
	eager(self, ~1ull, 4, 0);
	matched(self, 0, ~1ull, 4);
	eager(self, ~1ull, 4, 0);
	matched(self, 100, ~1ull, 4);
	/* Both tags with that mask are gone. A delete makes room as well. */
	handle = add(self, 102, 0, 5, 0, 64);
	CHECK(post_op(self, &(struct ibv_ops_wr){ .opcode = IBV_WR_TAG_ADD,
						  .tm.add = { .mask = 6 } }) == ENOMEM);
	CHECK(!delete(self, handle) && next_done(self).status == IBV_WC_SUCCESS);
	add(self, 103, 0, 6, 0, 64);
	eager(self, ~6ull, 4, 0);
	matched(self, 1, ~6ull, 4);
}

static void bad_ops(struct tag_ends *self)
{
	struct ibv_ops_wr wr = { .opcode = 3 };
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *basic = ibv_create_srq(self->b.pd, &attr);
	struct ibv_ops_wr *bad = NULL;

	CHECK(post_op(self, &wr) == EINVAL);
	wr.opcode = IBV_WR_TAG_SYNC;
	wr.flags = 4;
	CHECK(post_op(self, &wr) == EINVAL);
	wr.flags = 0;
	CHECK(basic);
	CHECK(ibv_post_srq_ops(basic, &wr, &bad) == EINVAL && bad == &wr);
	CHECK(!ibv_destroy_srq(basic));
	nothing_done(self);
}

/* What no device understands goes to software whole, and does not count. */
static void raw_messages(struct tag_ends *self)
{
	struct { uint8_t op; uint32_t len; } m[] = {
		{ IBV_TMH_NO_TAG, 100 }, { IBV_TMH_NO_TAG, 1 }, { 0, 0 },
		{ IBV_TMH_FIN, 32 }, { 4, 100 }, { 255, 16 },
		{ IBV_TMH_EAGER, 15 }, { IBV_TMH_RNDV, 31 },
		{ IBV_TMH_NO_TAG, 5000 },
	};
	unsigned int i;
	struct tm_done d;

	/* It would take anything. */
	add(self, 1, 0, 0, 0, 64);
	for (i = 0; i < sizeof(m) / sizeof(m[0]); i++) {
		memset(self->to + 8192, 0, 8192);
		post_buffer(self, 60 + i, 8192, 8192);
		memset(self->from, 0x5a, 8192);
		header(self, m[i].op, 1);
		CHECK(send_bytes(self, m[i].len) == IBV_WC_SUCCESS);
		d = next_done(self);
		CHECK(d.opcode == IBV_WC_TM_NO_TAG && d.wr_id == 60 + i);
		CHECK(d.status == IBV_WC_SUCCESS && d.flags == 0);
		CHECK(d.len == m[i].len && d.tag == 0);
		CHECK(!memcmp(self->to + 8192, self->from, m[i].len));
		CHECK(!self->to[8192 + m[i].len]);
	}
	eager(self, 99, 4, 0);
	matched(self, 1, 99, 4);
}

/* The tag completes in error, and the connection ends. */
static void broken(struct tag_ends *self, enum ibv_wc_status mine, enum ibv_wc_status theirs,
		   uint32_t len)
{
	struct tm_done d;

	CHECK(eager(self, 1, len, 0) == theirs);
	do {
		d = next_done(self);
	} while (d.flags == IBV_WC_TM_MATCH);
	CHECK(d.wr_id == 1 && d.status == mine);
	gets_to(self->b.qp, IBV_QPS_ERR);
	gets_to(self->a.qp, IBV_QPS_ERR);
}

static void too_long(struct tag_ends *self)
{
	add(self, 1, 1, ALL, 0, 64);
	broken(self, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR, 65);
}

static void much_too_long(struct tag_ends *self)
{
	add(self, 1, 1, ALL, 0, 2000);
	broken(self, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR, 9000);
}

static void bad_key(struct tag_ends *self)
{
	struct ibv_sge sge = { (uintptr_t)self->to, 64, self->to_mr->lkey ^ 0x5500 };
	struct ibv_ops_wr wr = {
		.opcode = IBV_WR_TAG_ADD, .tm.add = { .recv_wr_id = 1,
			.sg_list = &sge, .num_sge = 1, .tag = 1, .mask = ALL },
	};

	CHECK(!post_op(self, &wr));
	broken(self, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR, 32);
}

/* A connection that breaks in an unexpected message leaves the phase alone. */
static void breaks_off(struct tag_ends *self)
{
	struct tm_done d;

	post_buffer(self, 70, 8192, 2000);
	CHECK(eager(self, 1, 5000, 0) == IBV_WC_REM_INV_REQ_ERR);
	d = next_done(self);
	CHECK(d.wr_id == 70 && d.status == IBV_WC_LOC_LEN_ERR);
	add_flags(self, 1, 1, ALL, 0, 64, IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC);
	d = next_done(self);
	CHECK(d.opcode == IBV_WC_TM_ADD && d.flags == 0);
}

/* What takes no receive of the queue may fail without harm to its end. */
static void bad_write(struct tag_ends *self)
{
	struct ibv_sge sge = { (uintptr_t)self->from, 64, self->from_mr->lkey ^ 0x5500 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)self->b.buf, self->b.mr->rkey },
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
	CHECK(next_wc(self->a.cq, &wc) == 1 && wc.status == IBV_WC_LOC_PROT_ERR);
	CHECK(!ibv_query_qp(self->b.qp, &attr, IBV_QP_STATE, &init));
	CHECK(attr.qp_state == IBV_QPS_RTS);
}

/* All that was posted is executed before the message is matched. */
static void many_ops(struct tag_ends *self)
{
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC };
	int i;

	for (i = 0; i < 200; i++)
		CHECK(!post_op(self, &wr));
	add(self, 1, 1, ALL, 0, 64);
	post_buffer(self, 60, 8192, 64);
	CHECK(eager(self, 1, 8, 1) == IBV_WC_SUCCESS);
	matched(self, 1, 1, 8);
}

/* Few receives: the message comes again when there is one. */
static void not_ready(struct tag_ends *self)
{
	struct ibv_sge sge = { (uintptr_t)self->from, 50, self->from_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 7, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	header(self, IBV_TMH_EAGER, 3);
	CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
	usleep(2000);
	nothing_done(self);
	add(self, 1, 3, ALL, 0, 64);
	matched(self, 1, 3, 34);
	CHECK(next_wc(self->a.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

/* The receives that wait move to another ring, and the list stays. */
static void resized(struct tag_ends *self)
{
	struct ibv_srq_attr attr = { .max_wr = 4 * RECEIVES };
	struct tm_done d;
	int i;

	post_buffer(self, 50, 8192, 4096);
	post_buffer(self, 51, 16384, 4096);
	add(self, 1, 1, ALL, 0, 64);
	CHECK(eager(self, 2, 100, 5) == IBV_WC_SUCCESS);
	is_unexpected(self, 50, 116, 0);
	CHECK(!ibv_modify_srq(self->queue.srq, &attr, IBV_SRQ_MAX_WR));
	for (i = 0; i < 3 * RECEIVES; i++)
		post_buffer(self, 100 + i, 262144 + 4096 * i, 4096);
	CHECK(eager(self, 3, 101, 6) == IBV_WC_SUCCESS);
	is_unexpected(self, 51, 117, 0);
	CHECK(is_data(self, 16384 + 16, 101, 6));
	CHECK(eager(self, 1, 4, 7) == IBV_WC_SUCCESS);
	matched(self, 1, 1, 4);
	for (i = 0; i < 3 * RECEIVES; i++) {
		CHECK(eager(self, 4, 102, 8 + i) == IBV_WC_SUCCESS);
		is_unexpected(self, 100 + i, 118, 0);
		CHECK(is_data(self, 262144 + 4096 * i + 16, 102, 8 + i));
	}
	d = sync_count(self, self->unexpected);
	CHECK(d.status == IBV_WC_SUCCESS && d.flags == 0);
}

/*
 * As an MPI library does: receives and messages in random order, unexpected
 * messages kept by software. Messages of one tag are received in order.
 */
#define KINDS 6
#define ROUNDS 2000

static void random_order(struct tag_ends *self)
{
	uint32_t sent[KINDS] = {}, got[KINDS] = {}, wanted[KINDS] = {};
	uint32_t kept[KINDS] = {}, handled = 0, reported = 0;
	struct { uint32_t handle; int kind; int busy; } posted[16] = {};
	uint32_t seed = 1, rounds = 0, i, n;
	struct tm_done d;

	for (i = 0; i < RECEIVES; i++)
		post_buffer(self, 500 + i, 262144 + 64 * i, 64);
	for (;;) {
		int kind, all = rounds >= ROUNDS, left = 0;

		/* What has come. */
		while (tm_poll(&self->queue, &d)) {
			CHECK(d.status == IBV_WC_SUCCESS);
			CHECK(d.opcode == IBV_WC_TM_RECV);
			if (d.flags & IBV_WC_TM_MATCH) {
				i = d.wr_id;
				CHECK(posted[i].busy);
				posted[i].busy = 0;
				kind = posted[i].kind;
				memcpy(&n, self->to + 64 * i, 4);
			} else {
				uint8_t *p = self->to + 262144 + 64 * (d.wr_id - 500);

				kind = p[15];
				memcpy(&n, p + 16, 4);
				handled++;
				for (i = 0; i < 16; i++)
					if (posted[i].busy && posted[i].kind == kind)
						break;
				post_buffer(self, d.wr_id, 262144 + 64 * (d.wr_id - 500), 64);
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
				CHECK(!post_op(self, &wr));
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

			CHECK(!post_op(self, &wr));
			reported = handled;
		}
		seed = seed * 1103515245 + 12345;
		kind = (seed >> 16) % KINDS;
		if (!all && (seed >> 24) % 2) {
			header(self, IBV_TMH_EAGER, kind);
			memcpy(self->from + 16, &sent[kind], 4);
			sent[kind]++;
			CHECK(send_bytes(self, 20) == IBV_WC_SUCCESS);
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
		self->unexpected = handled;
		posted[i].handle = add(self, i, kind, ALL, 64 * i, 64);
		wanted[kind]++;
	}
}

static const CASES(struct tag_ends) cases[] = {
	{ "caps", caps },
	{ "other-types", other_types },
	{ "eager", eager_messages },
	{ "order", tags_in_order },
	{ "scatter", scattered },
	{ "phases", phases },
	{ "delete", deleted },
	{ "delete-races", delete_races },
	{ "list", list_of_ops },
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
	{ "not-ready", not_ready },
	{ "resize", resized },
	{ "random", random_order },
	{}
};

int main(int argc, char **argv)
{
	static struct tag_ends self;

	return RUN_CASES_AROUND(&self, cases, make_tag_ends, free_tag_ends, argc, argv);
}
