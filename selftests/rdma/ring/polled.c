// SPDX-License-Identifier: GPL-2.0
/*
 * A send ring that the kernel polls, or that a timer looks at, since a process posts many small
 * messages one by one. Nothing that is posted may wait for a doorbell that nobody rings, and what
 * ends the queue pair, or changes it, ends the polling. $COUNTER counts what is waited for first.
 *
 *   polled                                         lists the cases
 *   polled CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <time.h>

#include "remote.h"

/* One completion for so many messages, and so many groups of them are outstanding. */
#define GROUP 16
#define GROUPS 3

static enum ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
static int outstanding;

static int is_debug(void)
{
	return getenv("SELFTEST_DEBUG") && *getenv("SELFTEST_DEBUG");
}

/* How often what is random is repeated: less on the debug kernel, which is slow. */
static int times(int n)
{
	return is_debug() ? n / 4 : n;
}

/* Groups that keep a ring hot, or make it so: fewer there, where a message takes milliseconds. */
static int groups(int n)
{
	return is_debug() ? n / 5 : n;
}

static void post(struct pair *self, int signaled)
{
	struct ibv_sge sge = { (uintptr_t)self->a.buf, 8, self->a.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = signaled ? IBV_SEND_SIGNALED : 0,
		.wr.rdma = { (uintptr_t)self->b.buf, self->b.mr->rkey },
	};

	CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
	outstanding += signaled;
}

static void take(struct pair *self)
{
	CHECK(status(self->a.cq) == IBV_WC_SUCCESS);
	outstanding--;
}

static void take_all(struct pair *self)
{
	while (outstanding)
		take(self);
}

/* COUNT groups, the last of which are outstanding afterwards. */
static void stream(struct pair *self, int count)
{
	int i;

	while (count--) {
		if (outstanding == GROUPS)
			take(self);
		for (i = 1; i <= GROUP; i++)
			post(self, i == GROUP);
	}
}

static unsigned long polls(struct pair *self)
{
	const char *name = getenv("COUNTER");
	unsigned long n;

	fresh_counters(self->on.name[0]);
	n = counter(self->on.name[0], name ? name : "send_ring_polls");
	/* There, no CPU may be idle for long. */
	if (is_debug())
		n += counter(self->on.name[0], "send_ring_ticks");
	return n;
}

/* The exit status if nothing is hot that is posted as slowly as this machine does. */
#define TOO_SLOW 77

/* Posts until the ring is polled, which takes a CPU that is idle; or timed, if none is. */
static void heat(struct pair *self)
{
	unsigned long before = polls(self);
	double end = deadline(20), start;
	/* Of so many requests in a row, posted at the highest rate so far, how long one took. */
	double each = 1;

	do {
		if (is_past(end)) {
			printf("%.0f us for a request at best\n", each * 1e6);
			/* 16 in 5 ms are a streak, see hot.rs; those that find nothing under way add. */
			CHECK(each > 5e-3 / 24);
			exit(TOO_SLOW);
		}
		start = now();
		stream(self, groups(50));
		start = (now() - start) / (groups(50) * GROUP);
		if (start < each)
			each = start;
	} while (polls(self) == before);
	stream(self, groups(50));
}

/* The CPU is busy for so long: a sleep would take longer. */
static void pause_for(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

/* A poller waits for a millisecond: what comes just before or behind its end. */
static void pauses(struct pair *self)
{
	long us;

	make_pair(self);
	heat(self);
	for (us = 700; us < 1300; us += 600 / times(152)) {
		stream(self, 2);
		pause_for(us);
		post(self, 0);
		pause_for(us);
		post(self, 1);
		take_all(self);
	}
	free_pair(self);
}

/* A turn of a poller takes 20 ms, one of the timer more than 300. */
static void turns(struct pair *self)
{
	double end;

	make_pair(self);
	heat(self);
	for (end = deadline(1); !is_past(end); )
		stream(self, 10);
	take_all(self);
	free_pair(self);
}

/* Small READs are answered before the doorbell of each returns. */
static void reads(struct pair *self)
{
	make_pair(self);
	opcode = IBV_WR_RDMA_READ;
	heat(self);
	take_all(self);
	opcode = IBV_WR_RDMA_WRITE;
	free_pair(self);
}

static void reset(struct pair *self)
{
	int i;

	make_pair(self);
	heat(self);
	for (i = 0; i < times(20); i++) {
		stream(self, groups(20));
		renew(self);
		outstanding = 0;
		CHECK(write_by(self, (uintptr_t)self->b.buf, self->b.mr->rkey, 8) ==
		      IBV_WC_SUCCESS);
	}
	free_pair(self);
}

static void error(struct pair *self)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	int i, s;

	make_pair(self);
	heat(self);
	for (i = 0; i < times(20); i++) {
		stream(self, groups(20));
		CHECK(!ibv_modify_qp(self->a.qp, &err, IBV_QP_STATE));
		/* This one is not sent any more, whoever is at work. */
		post(self, 1);
		do {
			s = status(self->a.cq);
			CHECK(s == IBV_WC_SUCCESS || s == IBV_WC_WR_FLUSH_ERR);
			outstanding -= s == IBV_WC_SUCCESS;
		} while (s == IBV_WC_SUCCESS);
		renew(self);
		outstanding = 0;
	}
	free_pair(self);
}

static void destroy(struct pair *self)
{
	int i;

	for (i = 0; i < times(8); i++) {
		make_pair(self);
		heat(self);
		stream(self, groups(20));
		free_pair(self);
		outstanding = 0;
	}
}

/* From then on the queue pair's runs may sleep. */
static void on_demand(struct pair *self)
{
	struct ibv_mr *mr;
	void *p;

	make_pair(self);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	heat(self);
	stream(self, groups(20));
	mr = ibv_reg_mr(self->a.pd, p, PAGE, ALL | IBV_ACCESS_ON_DEMAND);
	CHECK(mr);
	stream(self, groups(50));
	take_all(self);
	CHECK(!ibv_dereg_mr(mr) && !munmap(p, PAGE));
	stream(self, groups(50));
	take_all(self);
	free_pair(self);
}

static const CASES(struct pair) cases[] = {
	{ "pauses", pauses },
	{ "turns", turns },
	{ "reads", reads },
	{ "reset", reset },
	{ "error", error },
	{ "destroy", destroy },
	{ "on_demand", on_demand },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct pair self;

	return RUN_CASES(&self, cases, argc, argv);
}
