// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug=long xroce on=both
/*
 * The extended interfaces: work requests that are built by calls (ibv_wr_*), completion
 * queues that are read by calls, with their time stamps, and when a work request is
 * signalled.
 *
 *   extended                                     lists the cases
 *   extended CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 */
#include "ends.h"

/* Bytes that a work request takes inline. */
#define INLINE_MAX 512

/* Puts a queue pair of TYPE with the operations OPS in the place of E's. */
static struct ibv_qp_ex *replace_by(struct end *e, enum ibv_qp_type type, uint64_t ops, int all)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = type, .pd = e->pd, .sq_sig_all = all,
		.cap = { PAIR_DEPTH, PAIR_DEPTH, 2, 2, INLINE_MAX },
		.comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = ops,
	};

	CHECK(!ibv_destroy_qp(e->qp));
	e->qp = ibv_create_qp_ex(e->ctx, &init);
	CHECK(e->qp);
	return ops ? ibv_qp_to_qp_ex(e->qp) : NULL;
}

/* Takes the unreliable queue pair of E to RTS, towards PEER. */
static void connect_uc(struct end *e, const struct end *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = peer->qp->qp_num;
	attr.ah_attr = (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = peer->gid, .sgid_index = e->gid_index, .hop_limit = 16 },
	};
	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static void begin(struct ibv_qp_ex *qp, uint64_t id)
{
	ibv_wr_start(qp);
	qp->wr_id = id;
	qp->wr_flags = IBV_SEND_SIGNALED;
}

/* The next completion of E is WR ID's and went well. */
static struct ibv_wc done(struct end *e, uint64_t id)
{
	struct ibv_wc wc;

	CHECK(next_wc(e->cq, &wc) == 1);
	if (wc.status != IBV_WC_SUCCESS)
		printf("%s\n", ibv_wc_status_str(wc.status));
	CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id == id);
	return wc;
}

static void fill(struct pair *self, int seed)
{
	int i;

	for (i = 0; i < PAIR_SIZE; i++)
		self->a.buf[i] = i * 7 + seed;
	memset(self->b.buf + PAIR_SIZE, 0, PAIR_SIZE);
}

static int landed(struct pair *self, size_t length)
{
	return !memcmp(self->a.buf, self->b.buf + PAIR_SIZE, length) &&
	       !self->b.buf[PAIR_SIZE + length];
}

/* SEND and WRITE, with and without immediate, of lists and inline. */
static void messages_by(struct pair *self, struct ibv_qp_ex *qp, int wait_for_write)
{
	const uint64_t to = (uintptr_t)self->b.buf + PAIR_SIZE;
	struct ibv_sge list[2] = {
		{ (uintptr_t)self->a.buf, 1500, self->a.mr->lkey },
		{ (uintptr_t)self->a.buf + 1500, 7, self->a.mr->lkey },
	};
	struct ibv_data_buf parts[2] = {
		{ self->a.buf, 500 }, { self->a.buf + 500, INLINE_MAX - 500 },
	};
	struct ibv_wc wc;

	fill(self, 1);
	CHECK(!post_receive(&self->b, 1));
	begin(qp, 2);
	ibv_wr_send(qp);
	ibv_wr_set_sge_list(qp, 2, list);
	CHECK(!ibv_wr_complete(qp));
	wc = done(&self->b, 1);
	CHECK(wc.byte_len == 1507 && landed(self, 1507));
	done(&self->a, 2);

	fill(self, 2);
	CHECK(!post_receive(&self->b, 3));
	begin(qp, 4);
	ibv_wr_send_imm(qp, htobe32(77));
	ibv_wr_set_inline_data(qp, self->a.buf, INLINE_MAX);
	CHECK(!ibv_wr_complete(qp));
	wc = done(&self->b, 3);
	CHECK(wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htobe32(77) &&
	      landed(self, INLINE_MAX));
	done(&self->a, 4);

	fill(self, 3);
	CHECK(!post_receive(&self->b, 5));
	begin(qp, 6);
	ibv_wr_rdma_write_imm(qp, self->b.mr->rkey, to, htobe32(78));
	ibv_wr_set_inline_data_list(qp, 2, parts);
	CHECK(!ibv_wr_complete(qp));
	wc = done(&self->b, 5);
	CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.imm_data == htobe32(78) &&
	      landed(self, INLINE_MAX));
	done(&self->a, 6);

	fill(self, 4);
	begin(qp, 7);
	ibv_wr_rdma_write(qp, self->b.mr->rkey, to);
	ibv_wr_set_sge(qp, self->a.mr->lkey, (uintptr_t)self->a.buf, 3000);
	CHECK(!ibv_wr_complete(qp));
	done(&self->a, 7);
	if (wait_for_write) {
		/* The message behind it comes after it. */
		CHECK(!post_receive(&self->b, 8));
		begin(qp, 9);
		ibv_wr_rdma_write_imm(qp, self->b.mr->rkey, to, 0);
		ibv_wr_set_sge(qp, self->a.mr->lkey, (uintptr_t)self->a.buf, 0);
		CHECK(!ibv_wr_complete(qp));
		done(&self->b, 8);
		done(&self->a, 9);
	}
	CHECK(landed(self, 3000));
}

/* What was begun and called off leaves nothing; what can't be says so at the
 * end, and nothing of the list is posted. */
static void called_off_and_refused(struct pair *self, struct ibv_qp_ex *qp)
{
	struct ibv_wc wc;

	begin(qp, 20);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, self->a.mr->lkey, (uintptr_t)self->a.buf, 8);
	ibv_wr_abort(qp);

	begin(qp, 21);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, self->a.mr->lkey, (uintptr_t)self->a.buf, 8);
	qp->wr_id = 22;
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, self->a.buf, INLINE_MAX + 1);
	CHECK(ibv_wr_complete(qp) == EINVAL);
	CHECK(!ibv_poll_cq(self->a.cq, 1, &wc) && !ibv_poll_cq(self->b.cq, 1, &wc));

	CHECK(!post_receive(&self->b, 23));
	begin(qp, 24);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, self->a.mr->lkey, (uintptr_t)self->a.buf, 8);
	CHECK(!ibv_wr_complete(qp));
	CHECK(done(&self->b, 23).byte_len == 8);
	done(&self->a, 24);
}

static void calls_rc(struct pair *self)
{
	uint64_t *cell, *was, at, result;
	struct ibv_qp_ex *qp;

	make_ends(self);
	qp = replace_by(&self->a, IBV_QPT_RC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, 0);
	join(self);
	messages_by(self, qp, 0);
	called_off_and_refused(self, qp);

	cell = (uint64_t *)(self->b.buf + 64);
	was = (uint64_t *)(self->a.buf + PAIR_SIZE);
	at = (uintptr_t)cell;
	result = (uintptr_t)was;
	*cell = 5;
	begin(qp, 30);
	ibv_wr_atomic_cmp_swp(qp, self->b.mr->rkey, at, 5, 9);
	ibv_wr_set_sge(qp, self->a.mr->lkey, result, 8);
	CHECK(!ibv_wr_complete(qp));
	done(&self->a, 30);
	CHECK(*was == 5 && *cell == 9);
	begin(qp, 31);
	ibv_wr_atomic_fetch_add(qp, self->b.mr->rkey, at, 3);
	ibv_wr_set_sge(qp, self->a.mr->lkey, result, 8);
	CHECK(!ibv_wr_complete(qp));
	done(&self->a, 31);
	CHECK(*was == 9 && *cell == 12);
	begin(qp, 32);
	ibv_wr_rdma_read(qp, self->b.mr->rkey, at);
	ibv_wr_set_sge(qp, self->a.mr->lkey, result, 8);
	CHECK(!ibv_wr_complete(qp));
	done(&self->a, 32);
	CHECK(*was == 12);
	free_pair(self);
}

static void calls_uc(struct pair *self)
{
	struct ibv_qp_ex *qp;

	make_ends(self);
	qp = replace_by(&self->a, IBV_QPT_UC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, 0);
	replace_by(&self->b, IBV_QPT_UC, 0, 0);
	connect_uc(&self->a, &self->b);
	connect_uc(&self->b, &self->a);
	messages_by(self, qp, 1);
	called_off_and_refused(self, qp);
	free_pair(self);
}

/* Operations that the kind of queue pair does not have. */
static void calls_it_lacks(struct pair *self)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t ops;
	} bad[] = {
		{ IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP },
		{ IBV_QPT_UC, IBV_QP_EX_WITH_FLUSH },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE },
		{ IBV_QPT_UD, IBV_QP_EX_WITH_SEND_WITH_INV },
		{ IBV_QPT_RC, IBV_QP_EX_WITH_TSO },
		{ IBV_QPT_RC, 1ull << 40 },
	};
	unsigned int i;

	make_ends(self);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ibv_qp_init_attr_ex init = {
			.send_cq = self->a.cq, .recv_cq = self->a.cq, .qp_type = bad[i].type,
			.pd = self->a.pd,
			.cap = { 4, 4, 1, 1, 0 },
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.send_ops_flags = bad[i].ops,
		};

		struct ibv_qp *qp = ibv_create_qp_ex(self->a.ctx, &init);
		int err = qp ? 0 : errno;

		if (err != EOPNOTSUPP)
			printf("pair %u: errno %d\n", i, err);
		CHECK(err == EOPNOTSUPP);
	}
	free_pair(self);
}

/* A queue pair made to signal all its sends needs no flag; any other does. */
static void signalled(struct pair *self)
{
	struct ibv_wc wc;
	int all, i;

	for (all = 0; all < 2; all++) {
		make_ends(self);
		replace_by(&self->a, IBV_QPT_RC, 0, all);
		join(self);
		for (i = 0; i < 4; i++) {
			struct ibv_sge sge = { (uintptr_t)self->a.buf, 8, self->a.mr->lkey };
			struct ibv_send_wr *bad, wr = {
				.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
			};

			CHECK(!post_receive(&self->b, i));
			CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
		}
		for (i = 0; i < 4; i++) {
			done(&self->b, i);
			if (all)
				done(&self->a, i);
		}
		/* What comes after them all, and is signalled, is the next. */
		CHECK(!post_receive(&self->b, 9) && !post_send(&self->a, 9, 8));
		done(&self->b, 9);
		done(&self->a, 9);
		CHECK(!ibv_poll_cq(self->a.cq, 1, &wc));
		free_pair(self);
	}
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* The next completion of an extended queue: 0, or an errno value after 20 s. */
static int start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {};
	double end = deadline(20);
	int err;

	while ((err = ibv_start_poll(cq, &attr)) == ENOENT && !is_past(end))
		usleep(10);
	return err;
}

/* Stamps lie between the post and the poll, on both clocks, and rise. */
static void stamps(struct pair *self)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_poll_cq_attr wrong = { .comp_mask = 1 }, none = {};
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_qp_init_attr qp = { .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 } };
	struct ibv_device_attr_ex attr;
	uint64_t raw, wall, last = 0;
	struct ibv_cq_ex *cq;
	int i;

	make_ends(self);
	CHECK(!ibv_query_device_ex(self->a.ctx, NULL, &attr));
	CHECK(attr.hca_core_clock == 1000000 && attr.completion_timestamp_mask == UINT64_MAX);
	cq = ibv_create_cq_ex(self->a.ctx, &init);
	CHECK(cq);
	CHECK(!ibv_destroy_qp(self->a.qp));
	qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(cq);
	self->a.qp = ibv_create_qp(self->a.pd, &qp);
	CHECK(self->a.qp);
	join(self);
	CHECK(ibv_start_poll(cq, &wrong) == EINVAL);
	CHECK(ibv_start_poll(cq, &none) == ENOENT);
	for (i = 0; i < 3; i++) {
		raw = clock_ns(CLOCK_MONOTONIC_RAW);
		wall = clock_ns(CLOCK_REALTIME);
		CHECK(!post_receive(&self->b, i) && !post_send(&self->a, i, 8));
		CHECK(!start(cq));
		CHECK(cq->wr_id == (uint64_t)i && cq->status == IBV_WC_SUCCESS);
		CHECK(ibv_wc_read_completion_ts(cq) >= raw &&
		      ibv_wc_read_completion_ts(cq) <= clock_ns(CLOCK_MONOTONIC_RAW));
		CHECK(ibv_wc_read_completion_ts(cq) > last);
		/* The two clocks drift: a millisecond is allowed. */
		CHECK(ibv_wc_read_completion_wallclock_ns(cq) + 1000000 >= wall &&
		      ibv_wc_read_completion_wallclock_ns(cq) <=
		      clock_ns(CLOCK_REALTIME) + 1000000);
		last = ibv_wc_read_completion_ts(cq);
		CHECK(ibv_next_poll(cq) == ENOENT);
		ibv_end_poll(cq);
	}
	raw = clock_ns(CLOCK_MONOTONIC_RAW);
	CHECK(!ibv_query_rt_values_ex(self->a.ctx, &values));
	CHECK(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
	values.comp_mask = 1 << 20;
	CHECK(ibv_query_rt_values_ex(self->a.ctx, &values));
	CHECK(!ibv_destroy_qp(self->a.qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	qp.send_cq = qp.recv_cq = self->a.cq;
	self->a.qp = ibv_create_qp(self->a.pd, &qp);
	CHECK(self->a.qp);
	free_pair(self);
}

/* Extended completion queues that cannot be. */
static void queues_refused(struct pair *self)
{
	static const struct {
		struct ibv_cq_init_attr_ex init;
		int err;
	} bad[] = {
		{ { .cqe = 4, .comp_mask = 1 << 20 }, EOPNOTSUPP },
		{ { .cqe = 4, .wc_flags = IBV_WC_EX_WITH_CVLAN }, EOPNOTSUPP },
		{ { .cqe = 4, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG }, EOPNOTSUPP },
		{ { .cqe = 4, .wc_flags = 1ull << 40 }, EOPNOTSUPP },
		{ { .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1 << 20 }, EOPNOTSUPP },
		{ { .cqe = 0 }, EINVAL },
		{ { .cqe = 4, .comp_vector = 1 << 20 }, EINVAL },
	};
	unsigned int i;

	make_ends(self);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ibv_cq_init_attr_ex init = bad[i].init;
		struct ibv_cq_ex *cq = ibv_create_cq_ex(self->a.ctx, &init);
		int err = cq ? 0 : errno;

		if (err != bad[i].err)
			printf("queue %u: errno %d\n", i, err);
		CHECK(err == bad[i].err);
	}
	free_pair(self);
}

static const CASES(struct pair) cases[] = {
	{ "calls_rc", calls_rc },
	{ "calls_uc", calls_uc },
	{ "calls_it_lacks", calls_it_lacks },
	{ "signalled", signalled },
	{ "stamps", stamps },
	{ "queues_refused", queues_refused },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct pair self;

	return RUN_CASES(&self, cases, argc, argv);
}
