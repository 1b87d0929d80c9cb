// SPDX-License-Identifier: GPL-2.0
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
#define MESSAGES 4

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
				       IBV_ACCESS_ON_DEMAND);

	CHECK(mr);
	return mr;
}

/* ---- another process ---- */

/* Many queue pairs, each of which sends a page that does not come. */
static void occupy(struct shared *s)
{
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_UD };
	struct ibv_send_wr *bad, wr;
	struct ibv_ah_attr attr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct end e;
	uint8_t *p;
	int i, n;

	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	open_end(&e, device[0], gid_index[0]);
	CHECK(!ibv_destroy_cq(e.cq));
	init.send_cq = init.recv_cq = e.cq = ibv_create_cq(e.ctx, QUEUES, NULL, NULL, 0);
	CHECK(e.cq);
	p = map_page();
	guard(p, 1);
	sge = (struct ibv_sge){ (uintptr_t)p, 64, on_demand(&e, p, GUARD_PAGE)->lkey };
	type = IBV_QPT_UD;
	path(&e, &e, &attr);
	to_b = ibv_create_ah(e.pd, &attr);
	CHECK(to_b);
	for (i = 0; i < QUEUES; i++) {
		e.qp = ibv_create_qp(e.pd, &init);
		CHECK(e.qp);
		start_unreliable(&e, &e);
		wr = (struct ibv_send_wr){
			.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = { to_b, e.qp->qp_num, QKEY },
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

static void others_go_on(void)
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
		occupy(s);
	make_unreliable(IBV_QPT_UC);
	/* Its runs need threads as well. */
	pinned = a.mr;
	a.mr = on_demand(&a, a.buf, 2 * PAIR_SIZE);
	while (!s->is_ready)
		CHECK(!waitpid(child, &ret, WNOHANG));
	for (i = 0; i < MESSAGES; i++)
		message(&a, i, 1000);
	ret = s->failed;
	printf("%d of %d requests have failed\n", ret, QUEUES);
	CHECK(ret < FEW);
	CHECK(!kill(child, SIGKILL) && waitpid(child, &ret, 0) == child);
	CHECK(WIFSIGNALED(ret) && WTERMSIG(ret) == SIGKILL);
	CHECK(!ibv_dereg_mr(a.mr));
	a.mr = pinned;
	free_unreliable();
}

/* ---- memory that comes late, or never ---- */

/* Both ends of an RC connection, and memory of b's that is not there. */
static uint8_t *late;
static struct ibv_mr *late_mr;

static void make_late(void)
{
	make_pair();
	type = IBV_QPT_RC;
	late = map_page();
	late_mr = on_demand(&b, late, GUARD_PAGE);
}

static void free_late(void)
{
	CHECK(!ibv_dereg_mr(late_mr) && !munmap(late, GUARD_PAGE));
	free_pair();
}

static void receive_into(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)late, GUARD_PAGE, late_mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	CHECK(!(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad)));
}

/* A receive that has to wait for its memory completes once, and is whole. */
static void once_for_a_receive(void)
{
	int fd, i;

	make_late();
	fd = guard(late, 1);
	receive_into(b.qp, NULL, 1);
	for (i = 0; i < 64; i++)
		a.buf[i] = i + 1;
	CHECK(!post_send(&a, 2, 64));
	await_runs(1);
	give(fd, late, 1);
	expect_wc(&b, 1, IBV_WC_SUCCESS);
	expect_wc(&a, 2, IBV_WC_SUCCESS);
	CHECK(!memcmp(late, a.buf, 64));
	CHECK(!post_receive(&b, 3) && !post_send(&a, 4, 64));
	expect_wc(&b, 3, IBV_WC_SUCCESS);
	expect_wc(&a, 4, IBV_WC_SUCCESS);
	expect_none(&a);
	expect_none(&b);
	CHECK(!close(fd));
	free_late();
}

/*
 * Neither reset nor destruction of the receiver waits for memory. The sender hears nothing,
 * as from any receiver that is gone: were there an answer, it would be a refusal.
 */
static void reset_and_destroy(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = a.cq, .recv_cq = a.cq,
		.cap = { 1, 1, 1, 1, 0 },
	};
	struct ibv_wc wc = {};
	int fd, destroy;

	for (destroy = 0; destroy < 2; destroy++) {
		make_late();
		CHECK(!make_hasty(a.qp));
		fd = guard(late, 1);
		receive_into(b.qp, NULL, 1);
		CHECK(!post_send(&a, 2, 64));
		await_runs(1);
		if (destroy) {
			CHECK(!ibv_destroy_qp(b.qp));
			init.send_cq = init.recv_cq = b.cq;
			CHECK(b.qp = ibv_create_qp(b.pd, &init));
		} else {
			CHECK(!set_state(&b, IBV_QPS_RESET, -1));
			CHECK(state_of(b.qp) == IBV_QPS_RESET);
		}
		/* Had it waited until the memory is given up, there would be an error. */
		expect_none(&b);
		give(fd, late, 1);
		CHECK(next_wc(a.cq, &wc) == 1 && wc.wr_id == 2);
		printf("the sender: %s\n", ibv_wc_status_str(wc.status));
		CHECK(wc.status == IBV_WC_RETRY_EXC_ERR);
		CHECK(!late[0]);
		CHECK(!close(fd));
		free_late();
	}
}

/* The buffers of an XRC SRQ are the user's again when it has been destroyed. */
static void shared_receive(void)
{
	struct xrc_pair p;
	struct ibv_wc wc;
	int fd;

	make_late();
	make_xrc_pair(&p, &a, &b);
	fd = guard(late, 1);
	receive_into(NULL, p.tgt.srq, 1);
	memset(a.buf, 1, 64);
	CHECK(!post_send(&p.ini, 2, 64));
	await_runs(1);
	CHECK(!ibv_destroy_srq(p.tgt.srq));
	give(fd, late, 1);
	CHECK(next_wc(a.cq, &wc) == 1 && wc.wr_id == 2 && wc.status != IBV_WC_SUCCESS);
	CHECK(!late[0]);
	expect_none(&b);
	CHECK(!ibv_destroy_qp(p.ini.qp) && !ibv_destroy_qp(p.tgt.qp) && !ibv_close_xrcd(p.xrcd));
	CHECK(!close(fd));
	free_late();
}

static const struct check_case cases[] = {
	{ "others_go_on", others_go_on },
	{ "once_for_a_receive", once_for_a_receive },
	{ "reset_and_destroy", reset_and_destroy },
	{ "shared_receive", shared_receive },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return main_of_cases(cases, argc, argv);
}
