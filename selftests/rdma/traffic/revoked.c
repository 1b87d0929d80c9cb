// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug xroce on=both
/*
 * Memory that is revoked while requests on it are executed, one after the other. The
 * requests before the revocation succeed, one fails with the error of its kind, and the
 * rest is flushed. Once the call that revokes the memory has returned, the memory is
 * not touched any more.
 *
 *   revoked                                   lists the cases
 *   revoked CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 *
 * The two ends of a connection are on the two devices, or both on the first.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "remote.h"

#define WINDOW 8
#define LENGTH ((size_t)1 << 18)
enum { BEFORE = 0x5a, AFTER = 0xa5 };

/* What is requested, by a, and of which memory. */
struct traffic {
	enum ibv_wr_opcode opcode;
	/* The memory that is taken away is a's own. */
	int own;
	/* Access of b's memory besides ALL; only by a window of this type, if there is one. */
	int access;
	enum ibv_mw_type window;
	/* What a is told of the first request that fails. */
	enum ibv_wc_status error;
	void (*take)(struct pair *self);
};

static const struct traffic *traffic;
static uint8_t *from, *to;
static struct ibv_mr *source, *target;
static struct ibv_mw *mw;
/* Of the source and the target, for requests that are posted when they have gone. */
static uint32_t own_key, local_key, rkey;
static long done;

static size_t length(void)
{
	return traffic->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : LENGTH;
}

/* Where the bytes of a's request ID come from or go to. */
static uint8_t *place(uint64_t id)
{
	return traffic->opcode == IBV_WR_RDMA_READ ? from + id % WINDOW * LENGTH : from;
}

static void request(struct pair *self, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)place(id), length(), own_key };
	struct ibv_send_wr *bad, wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1,
		.opcode = traffic->opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)to, rkey },
	};

	if (traffic->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)to;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = rkey;
	}
	if (traffic->opcode == IBV_WR_SEND) {
		struct ibv_sge into = { (uintptr_t)to, LENGTH, local_key };
		struct ibv_recv_wr *bad_recv, recv = {
			.wr_id = id, .sg_list = &into, .num_sge = 1,
		};

		CHECK(!ibv_post_recv(self->b.qp, &recv, &bad_recv));
	}
	CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
}

static int all_are(const uint8_t *p, uint8_t value, size_t n)
{
	return p[0] == value && !memcmp(p, p + 1, n - 1);
}

/* The receive of request ID, which had STATUS. */
static void received(struct pair *self, uint64_t id, enum ibv_wc_status status)
{
	enum ibv_wc_status want = IBV_WC_WR_FLUSH_ERR;
	struct ibv_wc wc;

	if (status == IBV_WC_SUCCESS)
		want = IBV_WC_SUCCESS;
	else if (status == traffic->error)
		want = IBV_WC_LOC_PROT_ERR;
	CHECK(next_wc(self->b.cq, &wc) == 1);
	CHECK(wc.wr_id == id && wc.status == want);
}

/* Requests, WINDOW at a time, until one fails. */
static void *go_on(void *arg)
{
	struct pair *self = arg;
	uint64_t posted = 0, completed = 0;
	int has_failed = 0;
	struct ibv_wc wc;

	while (!has_failed || completed < posted) {
		if (!has_failed && posted - completed < WINDOW) {
			request(self, posted++);
			continue;
		}
		CHECK(next_wc(self->a.cq, &wc) == 1);
		CHECK(wc.wr_id == completed);
		if (wc.status == IBV_WC_SUCCESS) {
			CHECK(!has_failed);
			if (traffic->opcode == IBV_WR_RDMA_READ && !traffic->own)
				CHECK(all_are(place(completed), BEFORE, LENGTH));
			__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
		} else {
			CHECK(wc.status == (has_failed ? IBV_WC_WR_FLUSH_ERR : traffic->error));
			has_failed = 1;
		}
		if (traffic->opcode == IBV_WR_SEND)
			received(self, completed, wc.status);
		completed++;
	}
	return arg;
}

static void prepare(struct pair *self)
{
	memset(from, BEFORE, WINDOW * LENGTH);
	memset(to, BEFORE, LENGTH);
	make_pair(self);
	CHECK((source = ibv_reg_mr(self->a.pd, from, WINDOW * LENGTH, IBV_ACCESS_LOCAL_WRITE)));
	CHECK((target = ibv_reg_mr(self->b.pd, to, LENGTH, ALL | traffic->access)));
	own_key = source->lkey;
	local_key = target->lkey;
	rkey = target->rkey;
	if (!traffic->window)
		return;
	CHECK((mw = ibv_alloc_mw(self->b.pd, traffic->window)));
	if (traffic->window == IBV_MW_TYPE_1) {
		CHECK(bind1(self, mw, target, to, LENGTH,
			    IBV_ACCESS_REMOTE_WRITE) == IBV_WC_SUCCESS);
	} else {
		struct ibv_send_wr *bad, wr = {
			.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
			.bind_mw = { mw, ibv_inc_rkey(mw->rkey),
				     { target, (uintptr_t)to, LENGTH, IBV_ACCESS_REMOTE_WRITE } },
		};

		CHECK(!ibv_post_send(self->b.qp, &wr, &bad));
		CHECK(status(self->b.cq) == IBV_WC_SUCCESS);
		mw->rkey = wr.bind_mw.rkey;
	}
	rkey = mw->rkey;
}

static void clean_up(struct pair *self)
{
	if (mw)
		CHECK(!ibv_dealloc_mw(mw));
	CHECK(!source || !ibv_dereg_mr(source));
	CHECK(!target || !ibv_dereg_mr(target));
	source = target = NULL;
	mw = NULL;
	free_pair(self);
}

static void take_target(struct pair *self)
{
	CHECK(!ibv_dereg_mr(target));
	target = NULL;
}

static void take_source(struct pair *self)
{
	CHECK(!ibv_dereg_mr(source));
	source = NULL;
}

static void take_window(struct pair *self)
{
	CHECK(!ibv_dealloc_mw(mw));
	mw = NULL;
}

static void invalidate_window(struct pair *self)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = mw->rkey,
	};

	CHECK(!ibv_post_send(self->b.qp, &wr, &bad));
	CHECK(status(self->b.cq) == IBV_WC_SUCCESS);
}

static void withdraw(struct pair *self)
{
	CHECK(!ibv_rereg_mr(target, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
}

static void protect(struct pair *self)
{
	CHECK(!mprotect(to, LENGTH, PROT_READ));
}

/* The memory is taken away after ever more requests. */
static void under(struct pair *self, const struct traffic *of)
{
	const int overwrites = of->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD && of->take != protect;
	const size_t size = of->own ? WINDOW * LENGTH : LENGTH;
	const int rounds = on_debug_kernel() ? 2 : 6;
	uint8_t *memory, *last;
	struct ibv_async_event ev;
	pthread_t thread;
	uint64_t sum;
	int round;

	traffic = of;
	from = aligned_alloc(PAGE, WINDOW * LENGTH);
	to = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	last = malloc(LENGTH);
	CHECK(from && to != MAP_FAILED && last);
	memory = of->own ? from : to;
	for (round = 0; round < rounds; round++) {
		prepare(self);
		memcpy(&sum, to, 8);
		done = 0;
		CHECK(!pthread_create(&thread, NULL, go_on, self));
		while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < 3 * round)
			usleep(10);
		of->take(self);
		/* Nothing is written to it any more, and nothing new is read. */
		if (overwrites) {
			memset(memory, AFTER, size);
		} else {
			memcpy(last, memory, size);
			memset(from, AFTER, WINDOW * LENGTH);
		}
		CHECK(!pthread_join(thread, NULL));
		CHECK(overwrites ? all_are(memory, AFTER, size) : !memcmp(last, memory, size));
		if (of->opcode == IBV_WR_RDMA_READ && !of->own)
			CHECK(all_are(from, BEFORE, WINDOW * LENGTH));
		if (of->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			/* Each that was executed was answered. */
			sum += done;
			CHECK(!memcmp(&sum, to, 8));
		}
		if (of->own) {
			/* Whatever b got, it was not new; and b is none the worse. */
			CHECK(state_of(self->b.qp) == IBV_QPS_RTS);
			CHECK(of->opcode == IBV_WR_RDMA_READ || all_are(to, BEFORE, LENGTH));
		} else {
			gets_to(self->b.qp, IBV_QPS_ERR);
			if (of->opcode != IBV_WR_SEND) {
				CHECK(next_event(self->b.ctx, IBV_EVENT_QP_ACCESS_ERR, &ev));
				CHECK(ev.element.qp == self->b.qp);
			}
		}
		if (of->take == protect)
			CHECK(!mprotect(to, LENGTH, PROT_READ | PROT_WRITE));
		clean_up(self);
	}
	free(from);
	CHECK(!munmap(to, LENGTH));
	free(last);
}

#define UNDER(name, ...)							\
	static void name(struct pair *self)					\
	{									\
		static const struct traffic t = { __VA_ARGS__ };		\
										\
		under(self, &t);						\
	}

#define REMOTE_ACCESS .error = IBV_WC_REM_ACCESS_ERR
#define OWN .own = 1, .error = IBV_WC_LOC_PROT_ERR, .take = take_source

UNDER(writes, .opcode = IBV_WR_RDMA_WRITE, REMOTE_ACCESS, .take = take_target)
UNDER(reads, .opcode = IBV_WR_RDMA_READ, REMOTE_ACCESS, .take = take_target)
UNDER(atomics, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, REMOTE_ACCESS, .take = take_target)
UNDER(receives, .opcode = IBV_WR_SEND, .error = IBV_WC_REM_OP_ERR, .take = take_target)
UNDER(own_writes, .opcode = IBV_WR_RDMA_WRITE, OWN)
UNDER(own_reads, .opcode = IBV_WR_RDMA_READ, OWN)
UNDER(withdrawn, .opcode = IBV_WR_RDMA_WRITE, REMOTE_ACCESS, .take = withdraw)
UNDER(protected, .opcode = IBV_WR_RDMA_WRITE, REMOTE_ACCESS, .access = IBV_ACCESS_ON_DEMAND,
      .take = protect)
UNDER(window1, .opcode = IBV_WR_RDMA_WRITE, REMOTE_ACCESS, .access = IBV_ACCESS_MW_BIND,
      .window = IBV_MW_TYPE_1, .take = take_window)
UNDER(window2, .opcode = IBV_WR_RDMA_WRITE, REMOTE_ACCESS, .access = IBV_ACCESS_MW_BIND,
      .window = IBV_MW_TYPE_2, .take = invalidate_window)

static const CASES(struct pair) cases[] = {
	{ "writes", writes },
	{ "reads", reads },
	{ "atomics", atomics },
	{ "receives", receives },
	{ "own_writes", own_writes },
	{ "own_reads", own_reads },
	{ "withdrawn", withdrawn },
	{ "protected", protected },
	{ "window1", window1 },
	{ "window2", window2 },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct pair self;

	return RUN_CASES(&self, cases, argc, argv);
}
