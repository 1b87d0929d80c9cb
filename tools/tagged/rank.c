// SPDX-License-Identifier: GPL-2.0
/* One rank: a connection to each other rank, sending, and the main loop. */
#include <sched.h>
#include <sys/resource.h>

#include "tagged.h"

#define DEPTH 64

/* How long a rank waits: until no rank has got anything done for a minute. */
struct patience {
	unsigned int steps;
	double end;
};

static void begin(struct rank *r, struct patience *p)
{
	p->steps = atomic_load(&r->shared->steps);
	p->end = deadline(60);
}

static void be_patient(struct rank *r, struct patience *p)
{
	if (atomic_load(&r->shared->steps) != p->steps)
		begin(r, p);
	CHECK(!is_past(p->end));
}

static void barrier(struct rank *r, int which)
{
	struct patience p;

	begin(r, &p);
	atomic_fetch_add(&r->shared->arrived[which], 1);
	while (atomic_load(&r->shared->arrived[which]) < options.ranks) {
		be_patient(r, &p);
		usleep(1000);
	}
}

static struct ibv_mr *memory(struct rank *r, uint8_t **p, size_t size, int access)
{
	struct ibv_mr *mr;

	size = (size + 4095) & ~(size_t)4095;
	*p = aligned_alloc(4096, size);
	CHECK(*p);
	memset(*p, 0, size);
	mr = ibv_reg_mr(r->end.pd, *p, size, IBV_ACCESS_LOCAL_WRITE | access);
	CHECK(mr);
	return mr;
}

static void make_qps(struct rank *r)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = r->send_cq, .srq = r->srq,
		.recv_cq = r->recv_cq ? r->recv_cq : r->send_cq,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1, .max_inline_data = 64 },
	};
	int i;

	for (i = 0; i < options.ranks; i++) {
		if (i == r->me)
			continue;
		r->qp[i] = ibv_create_qp(r->end.pd, &init);
		CHECK(r->qp[i]);
		r->shared->rank[r->me].qpn[i] = r->qp[i]->qp_num;
	}
	r->shared->rank[r->me].gid = r->end.gid;
}

static void connect_all(struct rank *r)
{
	int i;

	for (i = 0; i < options.ranks; i++) {
		struct ibv_qp far = { .qp_num = r->shared->rank[i].qpn[r->me] };
		struct end peer = { .qp = &far, .gid = r->shared->rank[i].gid };

		r->end.qp = r->qp[i];
		if (i != r->me)
			connect_end_lossy(&r->end, &peer);
	}
}

static void start(struct rank *r)
{
	int on = r->me % 2;
	uint32_t i;

	make_end(&r->end, options.device[on], options.gid_index[on]);
	CHECK(!ibv_destroy_qp(r->end.qp));
	plan_seed(options.seed * MAX_RANKS + r->me);
	r->receives = plan_receives(r->me, &r->count);
	r->out_mr = memory(r, &r->out, (size_t)options.ranks * WINDOW * SLOT,
			   IBV_ACCESS_REMOTE_READ);
	r->in_mr = memory(r, &r->in, (size_t)BUFFERS * BUFFER, 0);
	r->bufs_mr = memory(r, &r->bufs, (size_t)r->count * LEN_MAX, 0);
	for (i = 0; i < r->count; i++)
		r->receives[i].buf = r->bufs + (size_t)i * LEN_MAX;
	r->send_cq = ibv_create_cq(r->end.ctx, options.ranks * DEPTH, NULL, NULL, 0);
	CHECK(r->send_cq);
	match_start(r);
	make_qps(r);
}

static void stop(struct rank *r)
{
	int i;

	for (i = 0; i < options.ranks; i++)
		CHECK(i == r->me || !ibv_destroy_qp(r->qp[i]));
	match_stop(r);
	CHECK(!ibv_destroy_cq(r->send_cq) && !ibv_destroy_cq(r->end.cq));
	CHECK(!ibv_dereg_mr(r->out_mr) && !ibv_dereg_mr(r->in_mr));
	CHECK(!ibv_dereg_mr(r->bufs_mr) && !ibv_dereg_mr(r->end.mr));
	CHECK(!ibv_dealloc_pd(r->end.pd) && !ibv_close_device(r->end.ctx));
}

void rank_post(struct rank *r, int to, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	CHECK(to < options.ranks && to != r->me);
	CHECK(!ibv_post_send(r->qp[to], wr, &bad));
}

/* One of the things that a place waits for has happened. */
void rank_send_done(struct rank *r, uint32_t slot)
{
	uint8_t *busy;

	CHECK(slot < (uint32_t)options.ranks * WINDOW);
	busy = &r->busy[slot / WINDOW][slot % WINDOW];
	CHECK(*busy);
	(*busy)--;
	atomic_fetch_add(&r->shared->steps, 1);
}

/* Sends the next message to a rank, if there is one and a place for it. */
static void send_to(struct rank *r, int to)
{
	uint32_t n = r->sent[to], slot = to * WINDOW + n % WINDOW;
	uint8_t *m = r->out + (size_t)slot * SLOT, *data = m + TM_HDR;
	uint32_t len = plan_len(r->me, to, n);
	struct ibv_tmh tmh = {
		.opcode = len > EAGER_MAX ? IBV_TMH_RNDV : IBV_TMH_EAGER,
		.app_ctx = htobe32(n),
		.tag = htobe64((uint64_t)r->me << 32 | plan_tag(r->me, to, n)),
	};
	struct ibv_sge sge = { (uintptr_t)m, TM_HDR + len, r->out_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)WR_MESSAGE << 32 | slot, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_rvh rvh;

	if (n == (uint32_t)options.messages || r->busy[to][n % WINDOW])
		return;
	r->busy[to][n % WINDOW] = 1;
	memcpy(m, &tmh, sizeof(tmh));
	if (len > EAGER_MAX) {
		data = m + SLOT_DATA;
		rvh = (struct ibv_rvh) {
			.va = htobe64((uintptr_t)data),
			.rkey = htobe32(r->out_mr->rkey), .len = htobe32(len),
		};
		memcpy(m + TM_HDR, &rvh, sizeof(rvh));
		sge.length = TM_HDR + sizeof(rvh);
		/* And for the notice that the data were read. */
		r->busy[to][n % WINDOW] = 2;
	}
	plan_fill(data, r->me, to, n);
	r->sent[to]++;
	rank_post(r, to, &wr);
}

static void poll_sends(struct rank *r)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(r->send_cq, 1, &wc))) {
		CHECK(n == 1 && !wc.status);
		switch (wc.wr_id >> 32) {
		case WR_MESSAGE: rank_send_done(r, wc.wr_id); break;
		case WR_READ: match_read_done(r, wc.wr_id); break;
		}
	}
}

static int is_done(const struct rank *r)
{
	int i, k;

	if (r->done < r->count)
		return 0;
	for (i = 0; i < options.ranks; i++) {
		if (i != r->me && r->sent[i] < (uint32_t)options.messages)
			return 0;
		for (k = 0; k < WINDOW; k++)
			if (r->busy[i][k])
				return 0;
	}
	return 1;
}

static double cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void rank_run(struct shared *shared, int me)
{
	static struct rank rank;
	struct rank *r = &rank;
	struct patience patience;
	double from, used;
	uint32_t i;

	r->me = me;
	r->shared = shared;
	start(r);
	barrier(r, 0);
	connect_all(r);
	barrier(r, 1);
	from = now();
	used = cpu();
	begin(r, &patience);
	while (!is_done(r)) {
		for (i = plan_random(6); i && r->posted < r->count; i--)
			match_post(r, &r->receives[r->posted++]);
		for (i = plan_random(6); i; i--) {
			int to = plan_random(options.ranks);

			if (to != me)
				send_to(r, to);
		}
		/* Not always: while we are away, messages meet what was just posted. */
		if (plan_random(4) == 0)
			match_poll(r);
		poll_sends(r);
		be_patient(r, &patience);
		/* There are more ranks than CPUs. */
		sched_yield();
	}
	r->outcome.seconds = now() - from;
	r->outcome.cpu = cpu() - used;
	plan_check_order(me, r->receives, r->count);
	shared->rank[me].outcome = r->outcome;
	barrier(r, 2);
	stop(r);
}
