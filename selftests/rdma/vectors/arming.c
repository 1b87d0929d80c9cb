// SPDX-License-Identifier: GPL-2.0
/*
 * Arming of completion queues: the completions for which it gives an event, and its
 * races. Polling of an empty one.
 *
 *   arming                      lists the cases
 *   arming CASE DEVICE GID-INDEX
 */
#include <pthread.h>
#include <sys/syscall.h>

#include "vectors.h"

static int yields;

/* Replaces sched_yield() of the C library, also for the plug-in. */
int sched_yield(void)
{
	__atomic_fetch_add(&yields, 1, __ATOMIC_RELAXED);
	return syscall(SYS_sched_yield);
}

static void arm_is_for_the_next(struct vectors *self)
{
	struct ibv_cq *cq;
	struct end e[2];

	setup(self);
	cq = new_cq(self, 64, self->channel, 0);
	new_pair(self, e, cq, cq);
	/* Not armed. */
	writes(e, 3);
	drain(cq, 3);
	CHECK(fence(self, 0, cq) == 0);
	/* What is there already raises nothing. */
	complete_receive(self, e, 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	CHECK(fence(self, 0, cq) == 0);
	complete_receive(self, e, 0);
	CHECK(fence(self, 0, cq) == 1);
	/* One event for one arm. */
	complete_receive(self, e, 0);
	CHECK(fence(self, 0, cq) == 0);
	drain(cq, 3);
	/* Several arms are one. */
	CHECK(!ibv_req_notify_cq(cq, 0) && !ibv_req_notify_cq(cq, 0) &&
	      !ibv_req_notify_cq(cq, 1));
	complete_receive(self, e, 0);
	complete_receive(self, e, 0);
	CHECK(fence(self, 0, cq) == 1);
	drain(cq, 2);
	/* Each arm that was used gives one event, though nobody takes them yet. */
	CHECK(!ibv_req_notify_cq(cq, 0));
	complete_receive(self, e, 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	complete_receive(self, e, 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	complete_receive(self, e, 0);
	/* The vector takes its queues in turn, so one fence may overtake some. */
	CHECK(fence(self, 0, cq) + fence(self, 0, cq) + fence(self, 0, cq) == 3);
	drain(cq, 3);
}

static void solicited(struct vectors *self)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct end e[2];
	int v;

	setup(self);
	v = self->ctx->num_comp_vectors - 1;
	cq = new_cq(self, 64, self->channel, v);
	new_pair(self, e, cq, cq);
	CHECK(!ibv_req_notify_cq(cq, 1));
	complete_receive(self, e, 0);
	complete_receive(self, e, 0);
	CHECK(fence(self, v, cq) == 0);
	complete_receive(self, e, 1);
	complete_receive(self, e, 1);
	CHECK(fence(self, v, cq) == 1);
	/* The stronger arm replaces the weaker one. */
	CHECK(!ibv_req_notify_cq(cq, 1) && !ibv_req_notify_cq(cq, 0));
	complete_receive(self, e, 0);
	CHECK(fence(self, v, cq) == 1);
	/* And not the reverse. */
	CHECK(!ibv_req_notify_cq(cq, 0) && !ibv_req_notify_cq(cq, 1));
	complete_receive(self, e, 0);
	CHECK(fence(self, v, cq) == 1);
	drain(cq, 6);
	/* What failed is solicited. */
	CHECK(!ibv_post_recv(e[0].qp, &wr, &bad) && !ibv_post_recv(e[0].qp, &wr, &bad));
	CHECK(!ibv_req_notify_cq(cq, 1));
	CHECK(!ibv_modify_qp(e[0].qp, &err, IBV_QP_STATE));
	CHECK(event_of(self->channel) == cq);
	CHECK(next_wc(cq, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(next_wc(cq, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(fence(self, v, cq) == 0);
}

static void overflow(struct vectors *self)
{
	struct ibv_async_event ev;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct end e[2];
	int i;

	setup(self);
	for (i = 0; i < 2; i++) {
		cq = new_cq(self, 4, self->channel, 0);
		new_pair(self, e, cq, cq);
		writes(e, 4);
		/* The four are there when a fifth completes. */
		if (i)
			CHECK(!ibv_req_notify_cq(cq, 1));
		writes(e, 8);
		CHECK(next_event(self->ctx, IBV_EVENT_CQ_ERR, &ev) && ev.element.cq == cq);
		/* An event only if it was armed, and then one. */
		CHECK(fence(self, 0, cq) == i);
		while (ibv_poll_cq(cq, 1, &wc) > 0)
			;
		end_pair(e);
		CHECK(!ibv_destroy_cq(cq));
	}
}

/* ---- races ---- */

/* After so many events, none must come. */
#define UNARMED 20

struct hammer {
	const struct devices *on;
	struct end e[2];
	struct ibv_cq *cq;
	int total, posted, done, stop;
	/* The poster is to hold, and does. */
	int hold, held;
};

/* While it has to. */
static void hammer_hold(struct hammer *h)
{
	while (__atomic_load_n(&h->hold, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&h->held, 1, __ATOMIC_RELEASE);
		sched_yield();
	}
	__atomic_store_n(&h->held, 0, __ATOMIC_RELEASE);
}

/* Keeps some writes under way, with pauses in which the other side sleeps. */
static void *hammer_post(void *arg)
{
	struct hammer *h = arg;

	while (h->posted < h->total) {
		while (h->posted - __atomic_load_n(&h->done, __ATOMIC_ACQUIRE) >= PAIR_DEPTH / 2 ||
		       (h->posted % 7 == 0 &&
			h->posted != __atomic_load_n(&h->done, __ATOMIC_ACQUIRE)))
			sched_yield();
		hammer_hold(h);
		writes(h->e, 1);
		__atomic_store_n(&h->posted, h->posted + 1, __ATOMIC_RELEASE);
	}
	/* It has nothing to hold. */
	__atomic_store_n(&h->held, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *hammer_move(void *arg)
{
	struct hammer *h = arg;
	unsigned long count[MAX_CPUS];
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), i, irq;

	CHECK((irq = interrupts(h->on, 0, count)) > 0);
	for (i = 0; !__atomic_load_n(&h->stop, __ATOMIC_ACQUIRE); i++) {
		CHECK(set_affinity(irq, i % cpus));
		usleep(1000);
	}
	return NULL;
}

static void *hammer_resize(void *arg)
{
	struct hammer *h = arg;
	int i;

	for (i = 0; !__atomic_load_n(&h->stop, __ATOMIC_ACQUIRE); i++) {
		CHECK(!ibv_resize_cq(h->cq, i % 2 ? 128 : 512));
		usleep(2000);
	}
	return NULL;
}

static void *hammer_moderate(void *arg)
{
	struct hammer *h = arg;
	int i;

	for (i = 0; !__atomic_load_n(&h->stop, __ATOMIC_ACQUIRE); i++) {
		struct ibv_modify_cq_attr a = {
			.attr_mask = IBV_CQ_ATTR_MODERATE,
			.moderate = { i % 3 * 4, 500 },
		};

		CHECK(!ibv_modify_cq(h->cq, &a));
		usleep(2000);
	}
	return NULL;
}

/* Takes what there is. */
static void hammer_take(struct hammer *h)
{
	struct ibv_wc wc[8];
	int n, i;

	while ((n = ibv_poll_cq(h->cq, 8, wc)) > 0) {
		for (i = 0; i < n; i++)
			CHECK(wc[i].status == IBV_WC_SUCCESS);
		__atomic_add_fetch(&h->done, n, __ATOMIC_RELEASE);
	}
	CHECK(n == 0);
}

/* The event of the last arm was taken: without another there is none, whatever the
 * others do and however many completions come. */
static void hammer_unarmed(struct vectors *self, struct hammer *h)
{
	double end = deadline(20);

	__atomic_store_n(&h->hold, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&h->held, __ATOMIC_ACQUIRE) ||
	       h->done != __atomic_load_n(&h->posted, __ATOMIC_ACQUIRE)) {
		CHECK(!is_past(end));
		hammer_take(h);
	}
	writes(h->e, 3);
	drain(h->cq, 3);
	CHECK(fence(self, 0, h->cq) == 0);
	__atomic_store_n(&h->hold, 0, __ATOMIC_RELEASE);
}

/* Arm, look once more, sleep: N times while others do what they can. */
static void hammer_with(struct vectors *self, void *(*other)(void *), int total)
{
	struct hammer h = { .on = &self->on, .total = total };
	pthread_t poster, second;
	int events = 0;

	setup(self);
	h.cq = new_cq(self, 256, self->channel, 0);
	new_pair(self, h.e, h.cq, h.cq);
	CHECK(!pthread_create(&poster, NULL, hammer_post, &h));
	if (other)
		CHECK(!pthread_create(&second, NULL, other, &h));
	for (;;) {
		CHECK(!ibv_req_notify_cq(h.cq, 0));
		hammer_take(&h);
		if (h.done == total)
			break;
		CHECK(event_of(self->channel) == h.cq);
		if (++events % UNARMED == 0)
			hammer_unarmed(self, &h);
	}
	__atomic_store_n(&h.stop, 1, __ATOMIC_RELEASE);
	CHECK(!pthread_join(poster, NULL));
	if (other)
		CHECK(!pthread_join(second, NULL));
	printf("%d events for %d completions\n", events, total);
	CHECK(events >= UNARMED);
	/* One arm is left at most. */
	end_pair(h.e);
	CHECK(fence(self, 0, h.cq) <= 1);
	CHECK(!ibv_destroy_cq(h.cq));
}

static int rounds(void)
{
	return getenv("SELFTEST_DEBUG") && *getenv("SELFTEST_DEBUG") ? 300 : 3000;
}

static void race(struct vectors *self)
{
	hammer_with(self, NULL, rounds());
}

static void race_with_affinity(struct vectors *self)
{
	hammer_with(self, hammer_move, rounds());
}

static void race_with_resize(struct vectors *self)
{
	hammer_with(self, hammer_resize, rounds());
}

static void race_with_moderation(struct vectors *self)
{
	hammer_with(self, hammer_moderate, rounds());
}

static int start_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {};

	return ibv_start_poll(cq, &attr);
}

/* A thread yields after 16 polls in a row that found nothing. */
static void empty_polls(struct vectors *self)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *ex;
	struct ibv_wc wc;
	struct ibv_cq *cq;
	struct end e[2];
	int i;

	setup(self);
	CHECK((ex = ibv_create_cq_ex(self->ctx, &attr)));
	cq = ibv_cq_ex_to_cq(ex);
	new_pair(self, e, cq, cq);
	writes(e, 1);
	drain(cq, 1);
	yields = 0;
	/* The first one is drain()'s. */
	for (i = 2; i <= 160; i++) {
		if (i % 2)
			CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
		else
			CHECK(start_poll(ex) == ENOENT);
		CHECK(yields == i / 16);
	}
	/* A poll that finds a completion begins a new count. */
	for (i = 0; i < 3 * 14; i++) {
		if (i % 14 == 0) {
			writes(e, 1);
			drain(cq, 1);
			yields = 0;
		}
		CHECK(ibv_poll_cq(cq, 1, &wc) == 0 && !yields);
	}
	end_pair(e);
	CHECK(!ibv_destroy_cq(cq));
}

static const CASES(struct vectors) cases[] = {
	{ "an arm is for the next completion", arm_is_for_the_next },
	{ "solicited and failed completions", solicited },
	{ "overflow of an armed queue", overflow },
	{ "arms race with completions", race },
	{ "arms race while the vector moves", race_with_affinity },
	{ "arms race while the queue is resized", race_with_resize },
	{ "arms race while moderation changes", race_with_moderation },
	{ "empty polls yield", empty_polls },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	static struct vectors self;

	return RUN_CASES(&self, cases, argc, argv);
}
