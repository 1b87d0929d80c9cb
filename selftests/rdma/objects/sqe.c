// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug xroce on=wire
/*
 * The state SQE (IBTA 10.3.1): a send of a UC or UD queue pair that fails takes its
 * send queue into error and nothing else, and ibv_modify_qp() takes the queue out of
 * this state again. RC has no such state.
 *
 *   sqe                                     lists the cases
 *   sqe CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 */
#include <pthread.h>
#include <sched.h>

#include "unreliable.h"

/* What makes a request fail. */
enum how { NO_KEY, FOREIGN_KEY, BEYOND, MIDDLE, TOO_LONG, FOREIGN_AH, BIND, HOWS };

static const char *const hows[HOWS] = {
	"no such key", "key of another PD", "beyond the region", "bad second packet",
	"longer than a datagram", "address handle of another PD", "bind of what is no region's",
};

static struct ibv_pd *foreign_pd;
static struct ibv_mr *foreign_mr;
static struct ibv_ah *foreign_ah;
static struct ibv_mw *window;

static void begin(struct unreliable *self, enum ibv_qp_type t)
{
	struct ibv_ah_attr attr;

	make_unreliable(self, t);
	foreign_pd = ibv_alloc_pd(self->pair.a.ctx);
	CHECK(foreign_pd);
	foreign_mr = ibv_reg_mr(foreign_pd, self->pair.a.buf, PAIR_SIZE, IBV_ACCESS_LOCAL_WRITE);
	path(&self->pair.a, &self->pair.b, &attr);
	foreign_ah = ibv_create_ah(foreign_pd, &attr);
	window = ibv_alloc_mw(self->pair.a.pd, IBV_MW_TYPE_2);
	CHECK(foreign_mr && foreign_ah && window);
}

static void end(struct unreliable *self)
{
	CHECK(!ibv_dealloc_mw(window) && !ibv_destroy_ah(foreign_ah));
	CHECK(!ibv_dereg_mr(foreign_mr) && !ibv_dealloc_pd(foreign_pd));
	free_unreliable(self);
}

/* Changes WR, of a's, and its list of two so that it fails; returns the status it fails with, or
 * IBV_WC_SUCCESS if the type has no such failure. */
static enum ibv_wc_status spoil(struct unreliable *self, enum how how, struct ibv_send_wr *wr,
				struct ibv_sge *sge)
{
	int datagrams = self->type == IBV_QPT_UD;

	switch (how) {
	case NO_KEY:
		sge->lkey ^= 0x100;
		return IBV_WC_LOC_PROT_ERR;
	case FOREIGN_KEY:
		sge->lkey = foreign_mr->lkey;
		return IBV_WC_LOC_PROT_ERR;
	case BEYOND:
		sge->addr += 2 * PAIR_SIZE - sge->length + 1;
		return IBV_WC_LOC_PROT_ERR;
	case MIDDLE:
		/* The first packet is on its way when the second is found to have no data. */
		sge[0].length = sge[1].length = 1024;
		sge[1].lkey ^= 0x100;
		wr->num_sge = 2;
		return datagrams ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
	case TOO_LONG:
		sge->length = 1025;
		return datagrams ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
	case FOREIGN_AH:
		wr->wr.ud.ah = foreign_ah;
		return datagrams ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_SUCCESS;
	case BIND:
		wr->opcode = IBV_WR_BIND_MW;
		wr->num_sge = 0;
		wr->bind_mw.mw = window;
		wr->bind_mw.rkey = ibv_inc_rkey(window->rkey);
		wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
			self->pair.a.mr, (uintptr_t)self->pair.a.buf, 4 * PAIR_SIZE,
			IBV_ACCESS_REMOTE_WRITE };
		return datagrams ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
	default:
		return IBV_WC_SUCCESS;
	}
}

/* No asynchronous event of the QP is there. The hosts are new: those of a port may be. */
static void no_event(struct end *e)
{
	struct pollfd p = { .fd = e->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (poll(&p, 1, 0)) {
		CHECK(!ibv_get_async_event(e->ctx, &event));
		CHECK(event.event_type == IBV_EVENT_GID_CHANGE || event.event_type == IBV_EVENT_PORT_ACTIVE);
		ibv_ack_async_event(&event);
	}
}

/* Posts two good requests around one that fails, and one more later. */
static void fails(struct unreliable *self, enum how how)
{
	struct ibv_sge good[3], two[2];
	struct ibv_send_wr *bad, wr[4];
	enum ibv_wc_status status;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 3; i++)
		good[i] = bytes_of(&self->pair.a, 8);
	two[0] = two[1] = bytes_of(&self->pair.a, 8);
	wr[0] = request(self, &self->pair.a, 1, &good[0]);
	wr[1] = request(self, &self->pair.a, 2, two);
	wr[2] = request(self, &self->pair.a, 3, &good[1]);
	wr[3] = request(self, &self->pair.a, 4, &good[2]);
	/* A flush completes whether signalled or not. */
	wr[2].send_flags = 0;
	for (i = 0; i < 3; i++)
		wr[i].next = &wr[i + 1];
	status = spoil(self, how, &wr[1], two);
	if (status == IBV_WC_SUCCESS)
		return;
	printf("%s\n", hows[how]);
	for (i = 1; i <= 3; i++)
		CHECK(!post_receive(&self->pair.b, i));
	for (i = 1; i <= 2; i++)
		CHECK(!post_receive(&self->pair.a, 100 + i));
	CHECK(!ibv_post_send(self->pair.a.qp, &wr[0], &bad));
	expect_wc(&self->pair.a, 1, IBV_WC_SUCCESS);
	expect_wc(&self->pair.a, 2, status);
	CHECK(state_of(self->pair.a.qp) == IBV_QPS_SQE);
	expect_wc(&self->pair.a, 3, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&self->pair.a, 4, IBV_WC_WR_FLUSH_ERR);
	wc = expect_wc(&self->pair.b, 1, IBV_WC_SUCCESS);
	CHECK(wc.imm_data == htobe32(1));

	/* What is posted now is flushed; the receive queue goes on. */
	wr[3].wr_id = 5;
	CHECK(!ibv_post_send(self->pair.a.qp, &wr[3], &bad));
	expect_wc(&self->pair.a, 5, IBV_WC_WR_FLUSH_ERR);
	for (i = 1; i <= 2; i++) {
		wr[0] = request(self, &self->pair.b, 50 + i, &good[0]);
		good[0] = bytes_of(&self->pair.b, 8);
		CHECK(!ibv_post_send(self->pair.b.qp, &wr[0], &bad));
		expect_wc(&self->pair.b, 50 + i, IBV_WC_SUCCESS);
		wc = expect_wc(&self->pair.a, 100 + i, IBV_WC_SUCCESS);
		CHECK(wc.imm_data == htobe32(50 + i));
	}
	CHECK(state_of(self->pair.a.qp) == IBV_QPS_SQE && state_of(self->pair.b.qp) == IBV_QPS_RTS);

	/* There is one way out, apart from ERR and RESET. */
	CHECK(set_state(&self->pair.a, IBV_QPS_SQD, -1) == EINVAL);
	CHECK(set_state(&self->pair.a, IBV_QPS_RTR, -1) == EINVAL);
	CHECK(set_state(&self->pair.a, IBV_QPS_SQE, -1) == EINVAL);
	CHECK(set_state(&self->pair.a, IBV_QPS_RTS, IBV_QPS_RTS) == EINVAL);
	CHECK(state_of(self->pair.a.qp) == IBV_QPS_SQE);
	CHECK(!set_state(&self->pair.a, IBV_QPS_RTS, IBV_QPS_SQE));
	CHECK(state_of(self->pair.a.qp) == IBV_QPS_RTS);
	expect_none(&self->pair.a);
	/* Nothing of what was flushed has arrived: the next receive is for the next message. */
	good[0] = bytes_of(&self->pair.a, 8);
	wr[0] = request(self, &self->pair.a, 6, &good[0]);
	CHECK(!ibv_post_send(self->pair.a.qp, &wr[0], &bad));
	expect_wc(&self->pair.a, 6, IBV_WC_SUCCESS);
	wc = expect_wc(&self->pair.b, 2, IBV_WC_SUCCESS);
	CHECK(wc.imm_data == htobe32(6));
	wr[0].wr_id = 7;
	CHECK(!ibv_post_send(self->pair.a.qp, &wr[0], &bad));
	expect_wc(&self->pair.a, 7, IBV_WC_SUCCESS);
	expect_wc(&self->pair.b, 3, IBV_WC_SUCCESS);
	message(self, &self->pair.a, 8, self->type == IBV_QPT_UD ? 1024 : PAIR_SIZE);
	message(self, &self->pair.b, 9, 100);
	expect_none(&self->pair.a);
	expect_none(&self->pair.b);
	no_event(&self->pair.a);
	no_event(&self->pair.b);
}

static void each_error(struct unreliable *self, enum ibv_qp_type t)
{
	int how;

	begin(self, t);
	for (how = 0; how < HOWS; how++)
		fails(self, how);
	end(self);
}

static void uc_errors(struct unreliable *self) { each_error(self, IBV_QPT_UC); }
static void ud_errors(struct unreliable *self) { each_error(self, IBV_QPT_UD); }

/* Posts a full queue of which request WHICH fails, and sees it end; those before it arrive. */
static void full_queue(struct unreliable *self, int which)
{
	struct ibv_send_wr *bad, wr[PAIR_DEPTH];
	struct ibv_sge sge[PAIR_DEPTH];
	int i;

	for (i = 0; i < PAIR_DEPTH; i++) {
		sge[i] = bytes_of(&self->pair.a, 8);
		wr[i] = request(self, &self->pair.a, i, &sge[i]);
		wr[i].next = i + 1 < PAIR_DEPTH ? &wr[i + 1] : NULL;
		if (i < which)
			CHECK(!post_receive(&self->pair.b, i));
		if (i == which)
			CHECK(spoil(self, NO_KEY, &wr[i], &sge[i]) == IBV_WC_LOC_PROT_ERR);
	}
	CHECK(!ibv_post_send(self->pair.a.qp, wr, &bad));
	for (i = 0; i < PAIR_DEPTH; i++)
		expect_wc(&self->pair.a, i, i < which ? IBV_WC_SUCCESS :
			  i == which ? IBV_WC_LOC_PROT_ERR : IBV_WC_WR_FLUSH_ERR);
	for (i = 0; i < which; i++)
		expect_wc(&self->pair.b, i, IBV_WC_SUCCESS);
	CHECK(state_of(self->pair.a.qp) == IBV_QPS_SQE);
}

/* Order, and that each request ends once, wherever the one is that fails. */
static void order(struct unreliable *self)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD };
	int t, which;

	for (t = 0; t < 2; t++) {
		begin(self, types[t]);
		for (which = 0; which < PAIR_DEPTH; which += 21) {
			full_queue(self, which);
			CHECK(!set_state(&self->pair.a, IBV_QPS_RTS, -1));
			expect_none(&self->pair.a);
			message(self, &self->pair.a, 1, 64);
		}
		end(self);
	}
}

/* Both anew: b would take the first numbers of a new connection for copies of the old one's. */
static void restart(struct unreliable *self)
{
	CHECK(!set_state(&self->pair.a, IBV_QPS_RESET, -1));
	CHECK(state_of(self->pair.a.qp) == IBV_QPS_RESET);
	CHECK(!set_state(&self->pair.b, IBV_QPS_RESET, -1));
	start_unreliable(self, &self->pair.a, &self->pair.b);
	start_unreliable(self, &self->pair.b, &self->pair.a);
}

/* From SQE to ERR, where the receive queue ends as well, and to RESET. */
static void other_ways_out(struct unreliable *self)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;
	int t;

	for (t = 0; t < 2; t++) {
		begin(self, types[t]);
		full_queue(self, 3);
		CHECK(!post_receive(&self->pair.a, 77));
		CHECK(!set_state(&self->pair.a, IBV_QPS_ERR, -1));
		CHECK(state_of(self->pair.a.qp) == IBV_QPS_ERR);
		expect_wc(&self->pair.a, 77, IBV_WC_WR_FLUSH_ERR);
		CHECK(!post_receive(&self->pair.a, 78));
		expect_wc(&self->pair.a, 78, IBV_WC_WR_FLUSH_ERR);
		sge = bytes_of(&self->pair.a, 8);
		wr = request(self, &self->pair.a, 79, &sge);
		CHECK(!ibv_post_send(self->pair.a.qp, &wr, &bad));
		expect_wc(&self->pair.a, 79, IBV_WC_WR_FLUSH_ERR);
		CHECK(set_state(&self->pair.a, IBV_QPS_RTS, -1) == EINVAL);
		restart(self);
		message(self, &self->pair.a, 1, 64);

		full_queue(self, 3);
		restart(self);
		message(self, &self->pair.a, 2, 64);
		message(self, &self->pair.b, 3, 64);
		no_event(&self->pair.a);
		/* And it may go in SQE. */
		full_queue(self, 3);
		end(self);
	}
}

/* A request that waits in SQD fails when its turn comes. */
static void draining(struct unreliable *self)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD };
	int t;

	for (t = 0; t < 2; t++) {
		struct ibv_send_wr *bad, wr;
		struct ibv_sge sge;

		begin(self, types[t]);
		CHECK(!set_state(&self->pair.a, IBV_QPS_SQD, -1));
		sge = bytes_of(&self->pair.a, 8);
		wr = request(self, &self->pair.a, 1, &sge);
		spoil(self, NO_KEY, &wr, &sge);
		CHECK(!ibv_post_send(self->pair.a.qp, &wr, &bad));
		CHECK(state_of(self->pair.a.qp) == IBV_QPS_SQD);
		expect_none(&self->pair.a);
		CHECK(!set_state(&self->pair.a, IBV_QPS_RTS, -1));
		expect_wc(&self->pair.a, 1, IBV_WC_LOC_PROT_ERR);
		CHECK(state_of(self->pair.a.qp) == IBV_QPS_SQE);
		CHECK(!set_state(&self->pair.a, IBV_QPS_RTS, -1));
		/* It does not go on draining. */
		message(self, &self->pair.a, 2, 64);
		end(self);
	}
}

/* The same error ends a reliable connection. */
static void reliable(struct unreliable *self)
{
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;

	make_pair(&self->pair);
	sge = bytes_of(&self->pair.a, 8);
	self->type = IBV_QPT_RC;
	wr = request(self, &self->pair.a, 1, &sge);
	sge.lkey ^= 0x100;
	CHECK(!post_receive(&self->pair.a, 2));
	CHECK(!ibv_post_send(self->pair.a.qp, &wr, &bad));
	expect_wc(&self->pair.a, 1, IBV_WC_LOC_PROT_ERR);
	CHECK(state_of(self->pair.a.qp) == IBV_QPS_ERR);
	expect_wc(&self->pair.a, 2, IBV_WC_WR_FLUSH_ERR);
	CHECK(set_state(&self->pair.a, IBV_QPS_RTS, -1) == EINVAL);
	free_pair(&self->pair);
}

#define NONE UINT64_MAX

static int over;
/* How many have completed. */
static uint64_t next;

/* Posts until it is over, from id 0 on; every seventh request fails. Returns how many. */
static void *poster(void *arg)
{
	struct unreliable *self = arg;
	uint64_t id = 0;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		struct ibv_sge sge = bytes_of(&self->pair.a, 8);
		struct ibv_send_wr *bad, wr = request(self, &self->pair.a, id, &sge);
		int err;

		/* A slot is free before its completion is polled: the CQ must have room. */
		if (id - __atomic_load_n(&next, __ATOMIC_RELAXED) >= 2 * PAIR_DEPTH) {
			sched_yield();
			continue;
		}
		if (id % 7 == 6)
			sge.lkey ^= 0x100;
		err = ibv_post_send(self->pair.a.qp, &wr, &bad);
		CHECK(!err || err == ENOMEM);
		id += !err;
	}
	return (void *)(uintptr_t)id;
}

/*
 * Whoever sees the completion of the error may bring the queue back that moment,
 * while others post. Every request ends once, in order; what arrives was sent
 * with success and keeps the order.
 */
static void back_at_once_with(struct unreliable *self, enum ibv_qp_type t)
{
	const int enough = on_debug_kernel() ? 50 : 200;
	uint64_t received = NONE, posted = NONE;
	int returns = 0, sent = 0, flushed = 0, i;
	struct ibv_wc wc;
	pthread_t thread;
	void *result;
	double late;

	begin(self, t);
	for (i = 0; i < PAIR_DEPTH; i++)
		CHECK(!post_receive(&self->pair.b, i));
	over = 0;
	next = 0;
	CHECK(!pthread_create(&thread, NULL, poster, self));
	late = deadline(60);
	while (next != posted) {
		CHECK(!is_past(late));
		if (posted == NONE && returns >= enough) {
			__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
			CHECK(!pthread_join(thread, &result));
			posted = (uintptr_t)result;
			continue;
		}
		while (ibv_poll_cq(self->pair.b.cq, 1, &wc) == 1) {
			uint64_t id = be32toh(wc.imm_data);

			CHECK(wc.status == IBV_WC_SUCCESS);
			CHECK(id % 7 != 6 && (received == NONE || id > received));
			received = id;
			CHECK(!post_receive(&self->pair.b, 1));
		}
		if (ibv_poll_cq(self->pair.a.cq, 1, &wc) != 1)
			continue;
		CHECK(wc.wr_id == next);
		__atomic_store_n(&next, next + 1, __ATOMIC_RELAXED);
		if (wc.status == IBV_WC_WR_FLUSH_ERR) {
			flushed++;
		} else if (wc.wr_id % 7 != 6) {
			CHECK(wc.status == IBV_WC_SUCCESS);
			sent++;
		} else {
			CHECK(wc.status == IBV_WC_LOC_PROT_ERR);
			CHECK(!set_state(&self->pair.a, IBV_QPS_RTS, IBV_QPS_SQE));
			returns++;
		}
	}
	printf("%d sent, %d flushed, %d returns\n", sent, flushed, returns);
	CHECK(received != NONE);
	CHECK(state_of(self->pair.a.qp) == IBV_QPS_RTS);
	no_event(&self->pair.a);
	no_event(&self->pair.b);
	end(self);
}

static void uc_back_at_once(struct unreliable *self) { back_at_once_with(self, IBV_QPT_UC); }
static void ud_back_at_once(struct unreliable *self) { back_at_once_with(self, IBV_QPT_UD); }

static const CASES(struct unreliable) cases[] = {
	{ "uc_errors", uc_errors },
	{ "ud_errors", ud_errors },
	{ "order", order },
	{ "other_ways_out", other_ways_out },
	{ "draining", draining },
	{ "reliable", reliable },
	{ "uc_back_at_once", uc_back_at_once },
	{ "ud_back_at_once", ud_back_at_once },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct unreliable self;

	return RUN_CASES(&self, cases, argc, argv);
}
