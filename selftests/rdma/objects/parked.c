// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=180 debug xroce on=both
/*
 * Runs that wait for memory which never comes: a page that userfaultfd guards, whose
 * monitor is silent. Whoever has nothing to do with it goes on.
 *
 *   parked                                     lists the cases
 *   parked CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "asleep.h"
#include "guard.h"
#include "unreliable.h"
#include "xrcpair.h"

/* More than a work queue has threads (WQ_DFL_ACTIVE). */
#define QUEUES 1280
/* So many of them would be done before anybody who comes later has a thread. */
#define FEW (QUEUES - 1024)
/*
 * The debug kernel takes minutes to make so many. Others must be done before all of these have
 * failed, which would be so without the limit of threads of a process: that is tested on the stock
 * kernel, and on the debug kernel with --long.
 */
#define QUEUES_DEBUG FEW
#define MESSAGES 4

static int queues(void)
{
	const char *is_long = getenv("SELFTEST_LONG");

	return on_debug_kernel() && !(is_long && *is_long) ? QUEUES_DEBUG : QUEUES;
}

/* What the processes share. */
struct shared {
	/* All is posted; so many requests have failed. */
	atomic_int is_ready, failed;
};

static uint8_t *map_page(void)
{
	uint8_t *p = mmap(NULL, GUARD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static struct ibv_mr *on_demand(struct end *e, uint8_t *p, size_t length)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, p, length, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ON_DEMAND);

	CHECK(mr);
	return mr;
}

/* Waits until another process has got to N; CHILD, if it is not 0, does not end before. */
static void await_step(atomic_int *step, int n, pid_t child)
{
	while (*step < n) {
		CHECK(!child || !waitpid(child, NULL, WNOHANG));
		usleep(1000);
	}
}

/* ---- another process ---- */

/* Many queue pairs, each of which sends a page that does not come. */
static void occupy(struct unreliable *self, struct shared *s)
{
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_UD };
	struct ibv_send_wr *bad, wr;
	struct ibv_ah_attr attr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct end e;
	uint8_t *p;
	int i, n, all = queues();

	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	open_end(&e, self->pair.on.name[0], self->pair.on.gid_index[0]);
	CHECK(!ibv_destroy_cq(e.cq));
	init.send_cq = init.recv_cq = e.cq = ibv_create_cq(e.ctx, all, NULL, NULL, 0);
	CHECK(e.cq);
	p = map_page();
	guard(p, 1);
	sge = (struct ibv_sge){ (uintptr_t)p, 64, on_demand(&e, p, GUARD_PAGE)->lkey };
	self->type = IBV_QPT_UD;
	path(&e, &e, &attr);
	self->to_b = ibv_create_ah(e.pd, &attr);
	CHECK(self->to_b);
	for (i = 0; i < all; i++) {
		e.qp = ibv_create_qp(e.pd, &init);
		CHECK(e.qp);
		start_unreliable(self, &e, &e);
		wr = (struct ibv_send_wr){
			.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = { self->to_b, e.qp->qp_num, QKEY },
		};
		CHECK(!ibv_post_send(e.qp, &wr, &bad));
	}
	s->is_ready = 1;
	while ((n = ibv_poll_cq(e.cq, 1, &wc)) >= 0) {
		s->failed += n;
		if (!n)
			usleep(1000);
	}
	_exit(1);
}

static void others_go_on(struct unreliable *self)
{
	struct shared *s = mmap(NULL, GUARD_PAGE, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *pinned;
	pid_t child;
	int i, ret;

	CHECK(s != MAP_FAILED);
	child = fork();
	CHECK(child >= 0);
	if (!child)
		occupy(self, s);
	make_unreliable(self, IBV_QPT_UC);
	/* Its runs need threads as well. */
	pinned = self->pair.a.mr;
	self->pair.a.mr = on_demand(&self->pair.a, self->pair.a.buf, 2 * PAIR_SIZE);
	while (!s->is_ready)
		CHECK(!waitpid(child, &ret, WNOHANG));
	for (i = 0; i < MESSAGES; i++)
		message(self, &self->pair.a, i, 1000);
	ret = s->failed;
	printf("%d of %d requests have failed\n", ret, queues());
	CHECK(ret < FEW);
	CHECK(!kill(child, SIGKILL) && waitpid(child, &ret, 0) == child);
	CHECK(WIFSIGNALED(ret) && WTERMSIG(ret) == SIGKILL);
	CHECK(!ibv_dereg_mr(self->pair.a.mr));
	self->pair.a.mr = pinned;
	free_unreliable(self);
}

/* ---- another process, at the other end ---- */

/* So many that most wait for a thread, if the others keep theirs until they have failed. */
#define PEERS 64
/* Of each, a page that is there, the end of which is used, and one that is not, the begin. */
#define HERE 512
#define LENGTH (HERE + 64)
#define START (GUARD_PAGE - HERE)
/* What stands in the first byte since it was copied. */
#define LATER 0xee

static const enum ibv_wr_opcode requests[] = {
	IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
};

struct peers {
	/* How far the process is that sends, and the one whose memory does not come. */
	atomic_int sender, owner;
	union ibv_gid gid[2];
	uint32_t qpn[2][PEERS], rkey;
	uint64_t addr;
};

/* Queue pairs of E, whose numbers the other process gets. */
static void make_peers(struct end *e, struct ibv_qp **qps, union ibv_gid *gid, uint32_t *qpn)
{
	struct ibv_qp_init_attr init = {
		.cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .send_cq = e->cq, .recv_cq = e->cq,
	};
	int i;

	*gid = e->gid;
	for (i = 0; i < PEERS; i++) {
		CHECK(qps[i] = ibv_create_qp(e->pd, &init));
		qpn[i] = qps[i]->qp_num;
	}
}

static void connect_peers(struct end *e, struct ibv_qp **qps, const union ibv_gid *gid,
			  const uint32_t *qpn)
{
	struct ibv_qp other;
	struct end peer = { .qp = &other, .gid = *gid };
	int i;

	for (i = 0; i < PEERS; i++) {
		other.qp_num = qpn[i];
		e->qp = qps[i];
		connect_end(e, &peer);
	}
}

/* The byte of message I at OFFSET. */
static uint8_t byte_of(int i, int offset)
{
	return i + offset * 7;
}

/* Did message I arrive at P, but for its first byte, which has changed since? */
static int is_whole(int i, const uint8_t *p, int length)
{
	int j;

	for (j = 1; j < length; j++)
		if (p[j] != byte_of(i, j))
			return 0;
	return p[0] == LATER;
}

/* Has the memory that does not come until the other process says so. */
static void own_late_memory(struct unreliable *self, struct peers *s)
{
	size_t size = 2 * PEERS * GUARD_PAGE;
	struct ibv_qp *qps[PEERS];
	struct ibv_recv_wr *bad;
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct end e;
	uint8_t *p;
	int fd, i, j;

	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	open_end(&e, self->pair.on.name[1], self->pair.on.gid_index[1]);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	for (i = 0; i < PEERS; i++)
		for (j = 0; j < HERE; j++)
			p[2 * i * GUARD_PAGE + START + j] = byte_of(i, j);
	fd = guard(p, 2 * PEERS);
	mr = on_demand(&e, p, size);
	s->addr = (uintptr_t)p;
	s->rkey = mr->rkey;
	make_peers(&e, qps, &s->gid[1], s->qpn[1]);
	await_step(&s->sender, 1, 0);
	connect_peers(&e, qps, &s->gid[0], s->qpn[0]);
	for (i = 0; i < PEERS; i++) {
		sge = (struct ibv_sge){ (uintptr_t)p + 2 * i * GUARD_PAGE + START, LENGTH, mr->lkey };
		CHECK(!ibv_post_recv(qps[i], &(struct ibv_recv_wr){
			.wr_id = i, .sg_list = &sge, .num_sge = 1,
		}, &bad));
	}
	s->owner = 1;
	await_step(&s->sender, 2, 0);
	for (i = 0; i < PEERS; i++) {
		if (i % 4 != 2)
			p[2 * i * GUARD_PAGE + START] = LATER;
		give(fd, p + (2 * i + 1) * GUARD_PAGE, 1);
	}
	await_step(&s->sender, 3, 0);
	for (i = 0; i < PEERS; i++) {
		uint8_t *at = p + 2 * i * GUARD_PAGE + START;

		if (i % 4 < 2)
			CHECK(is_whole(i, at, LENGTH));
		if (i % 4 == 3)
			CHECK(*(uint64_t *)(at + HERE) == (uint64_t)i);
		if (i % 4)
			continue;
		CHECK(next_wc(e.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
		CHECK(wc.wr_id % 4 == 0 && wc.byte_len == LENGTH);
	}
	expect_none(&e);
	_exit(0);
}

/*
 * Many connections within the host wait for memory of the peer. Another one of the same
 * process goes on meanwhile. What waited is done once, from where it stopped.
 */
static void peers_go_on(struct unreliable *self)
{
	struct peers *s = mmap(NULL, GUARD_PAGE, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ibv_send_wr *bad, wr;
	struct ibv_qp *qps[PEERS];
	int i, j, status, is_done[PEERS] = {};
	struct ibv_mr *pinned, *mr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct end e;
	uint8_t *p;
	pid_t child;

	/* There each process waits for its own memory. */
	if (strcmp(self->pair.on.name[0], self->pair.on.name[1]))
		return;
	CHECK(s != MAP_FAILED);
	child = fork();
	CHECK(child >= 0);
	if (!child)
		own_late_memory(self, s);
	make_pair(&self->pair);
	self->type = IBV_QPT_RC;
	/* Its runs need threads as well. */
	pinned = self->pair.a.mr;
	self->pair.a.mr = on_demand(&self->pair.a, self->pair.a.buf, 2 * PAIR_SIZE);
	open_end(&e, self->pair.on.name[0], self->pair.on.gid_index[0]);
	p = aligned_alloc(GUARD_PAGE, PEERS * GUARD_PAGE);
	CHECK(p && (mr = ibv_reg_mr(e.pd, p, PEERS * GUARD_PAGE, IBV_ACCESS_LOCAL_WRITE)));
	make_peers(&e, qps, &s->gid[0], s->qpn[0]);
	s->sender = 1;
	await_step(&s->owner, 1, child);
	connect_peers(&e, qps, &s->gid[1], s->qpn[1]);
	for (i = 0; i < PEERS; i++) {
		for (j = 0; j < LENGTH; j++)
			p[i * GUARD_PAGE + j] = i % 4 < 2 ? byte_of(i, j) : 0;
		sge = (struct ibv_sge){ (uintptr_t)p + i * GUARD_PAGE, LENGTH, mr->lkey };
		wr = (struct ibv_send_wr){
			.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = requests[i % 4],
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { s->addr + 2 * i * GUARD_PAGE + START, s->rkey },
		};
		if (i % 4 == 3) {
			sge.length = 8;
			wr.wr.atomic.remote_addr = s->addr + (2 * i + 1) * GUARD_PAGE;
			wr.wr.atomic.compare_add = i;
			wr.wr.atomic.rkey = s->rkey;
		}
		CHECK(!ibv_post_send(qps[i], &wr, &bad));
	}
	/* The requests take turns, so each is made a few more tries for each message, of many. */
	for (i = 0; i < MESSAGES; i++)
		message(self, &self->pair.a, i, 1000);
	expect_none(&e);
	for (i = 2; i < PEERS; i += 4)
		p[i * GUARD_PAGE] = LATER;
	s->sender = 2;
	for (i = 0; i < PEERS; i++) {
		CHECK(next_wc(e.cq, &wc) == 1);
		if (wc.status != IBV_WC_SUCCESS)
			printf("WR %d: %s\n", (int)wc.wr_id, ibv_wc_status_str(wc.status));
		CHECK(wc.status == IBV_WC_SUCCESS && wc.wr_id < PEERS && !is_done[wc.wr_id]++);
	}
	expect_none(&e);
	for (i = 2; i < PEERS; i += 4) {
		CHECK(is_whole(i, p + i * GUARD_PAGE, HERE));
		CHECK(!p[i * GUARD_PAGE + HERE] && !p[i * GUARD_PAGE + LENGTH - 1]);
		/* The next is an atomic: what was there before. */
		CHECK(!*(uint64_t *)(p + (i + 1) * GUARD_PAGE));
	}
	s->sender = 3;
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	for (i = 0; i < PEERS; i++)
		CHECK(!ibv_destroy_qp(qps[i]));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(self->pair.a.mr));
	self->pair.a.mr = pinned;
	free_pair(&self->pair);
}

/* ---- memory that comes late, or never ---- */

/* Both ends of an RC connection, and memory of b's that is not there. */
static uint8_t *late;
static struct ibv_mr *late_mr;

static void make_late(struct unreliable *self)
{
	make_ends(&self->pair);
	ready_end(&self->pair.a, &self->pair.b);
	ready_end(&self->pair.b, &self->pair.a);
	/* The sender is to hear what becomes of its request, not to run out of retries before. */
	start_end(&self->pair.a, ENDURING);
	start_end(&self->pair.b, ENDURING);
	self->type = IBV_QPT_RC;
	late = map_page();
	late_mr = on_demand(&self->pair.b, late, GUARD_PAGE);
}

static void free_late(struct unreliable *self)
{
	CHECK(!ibv_dereg_mr(late_mr) && !munmap(late, GUARD_PAGE));
	free_pair(&self->pair);
}

static void receive_into(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)late, GUARD_PAGE, late_mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	CHECK(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)));
}

/* A receive that has to wait for its memory completes once, and is whole. */
static void once_for_a_receive(struct unreliable *self)
{
	int fd, i;

	make_late(self);
	fd = guard(late, 1);
	receive_into(self->pair.b.qp, NULL, 1);
	for (i = 0; i < 64; i++)
		self->pair.a.buf[i] = i + 1;
	CHECK(!post_send(&self->pair.a, 2, 64));
	await_runs(1);
	give(fd, late, 1);
	expect_wc(&self->pair.b, 1, IBV_WC_SUCCESS);
	expect_wc(&self->pair.a, 2, IBV_WC_SUCCESS);
	CHECK(!memcmp(late, self->pair.a.buf, 64));
	CHECK(!post_receive(&self->pair.b, 3) && !post_send(&self->pair.a, 4, 64));
	expect_wc(&self->pair.b, 3, IBV_WC_SUCCESS);
	expect_wc(&self->pair.a, 4, IBV_WC_SUCCESS);
	expect_none(&self->pair.a);
	expect_none(&self->pair.b);
	CHECK(!close(fd));
	free_late(self);
}

/* Memory that never comes is given up: the owner is told, and the peer. */
static void given_up(struct unreliable *self)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr;
	int fd;

	make_late(self);
	fd = guard(late, 1);
	receive_into(self->pair.b.qp, NULL, 1);
	CHECK(!post_send(&self->pair.a, 2, 64));
	expect_wc(&self->pair.b, 1, IBV_WC_LOC_PROT_ERR);
	expect_wc(&self->pair.a, 2, IBV_WC_REM_OP_ERR);
	CHECK(!close(fd));
	free_late(self);
	make_late(self);
	fd = guard(late, 1);
	sge = bytes_of(&self->pair.a, 8);
	wr = (struct ibv_send_wr){
		.wr_id = 3, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wr.atomic = { (uintptr_t)late, 1, 0, late_mr->rkey },
	};
	CHECK(!ibv_post_send(self->pair.a.qp, &wr, &bad));
	expect_wc(&self->pair.a, 3, IBV_WC_REM_ACCESS_ERR);
	CHECK(!close(fd));
	free_late(self);
}

/*
 * Neither reset nor destruction of the receiver waits for memory. The sender hears nothing,
 * as from any receiver that is gone: were there an answer, it would be a refusal.
 */
static void reset_and_destroy(struct unreliable *self)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = self->pair.a.cq, .recv_cq = self->pair.a.cq,
		.cap = { 1, 1, 1, 1, 0 },
	};
	struct ibv_wc wc = {};
	int fd, destroy;

	for (destroy = 0; destroy < 2; destroy++) {
		make_late(self);
		CHECK(!make_hasty(self->pair.a.qp));
		fd = guard(late, 1);
		receive_into(self->pair.b.qp, NULL, 1);
		CHECK(!post_send(&self->pair.a, 2, 64));
		await_runs(1);
		if (destroy) {
			CHECK(!ibv_destroy_qp(self->pair.b.qp));
			init.send_cq = init.recv_cq = self->pair.b.cq;
			CHECK(self->pair.b.qp = ibv_create_qp(self->pair.b.pd, &init));
		} else {
			CHECK(!set_state(&self->pair.b, IBV_QPS_RESET, -1));
			CHECK(state_of(self->pair.b.qp) == IBV_QPS_RESET);
		}
		/* Had it waited until the memory is given up, there would be an error. */
		expect_none(&self->pair.b);
		give(fd, late, 1);
		CHECK(next_wc(self->pair.a.cq, &wc) == 1 && wc.wr_id == 2);
		printf("the sender: %s\n", ibv_wc_status_str(wc.status));
		CHECK(wc.status == IBV_WC_RETRY_EXC_ERR);
		CHECK(!late[0]);
		CHECK(!close(fd));
		free_late(self);
	}
}

/* The buffers of an XRC SRQ are the user's again when it has been destroyed. */
static void shared_receive(struct unreliable *self)
{
	struct xrc_pair p;
	struct ibv_wc wc;
	int fd;

	make_late(self);
	make_xrc_pair(&p, &self->pair.a, &self->pair.b);
	fd = guard(late, 1);
	receive_into(NULL, p.tgt.srq, 1);
	memset(self->pair.a.buf, 1, 64);
	CHECK(!post_send(&p.ini, 2, 64));
	await_runs(1);
	CHECK(!ibv_destroy_srq(p.tgt.srq));
	give(fd, late, 1);
	CHECK(next_wc(self->pair.a.cq, &wc) == 1 && wc.wr_id == 2 && wc.status != IBV_WC_SUCCESS);
	CHECK(!late[0]);
	expect_none(&self->pair.b);
	CHECK(!ibv_destroy_qp(p.ini.qp) && !ibv_destroy_qp(p.tgt.qp) && !ibv_close_xrcd(p.xrcd));
	CHECK(!close(fd));
	free_late(self);
}

static const CASES(struct unreliable) cases[] = {
	{ "others_go_on", others_go_on },
	{ "once_for_a_receive", once_for_a_receive },
	{ "reset_and_destroy", reset_and_destroy },
	{ "shared_receive", shared_receive },
	{ "peers_go_on", peers_go_on },
	{ "given_up", given_up },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct unreliable self;

	return RUN_CASES(&self, cases, argc, argv);
}
