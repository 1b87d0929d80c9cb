// SPDX-License-Identifier: GPL-2.0
/*
 * Measures completion events; tools/bench/events calls it.
 *
 *   bench-events pingpong DEV1 GID1 DEV2 GID2 SECONDS VECTOR PINNED
 *   bench-events many DEV1 GID1 DEV2 GID2 SECONDS QUEUES
 *   bench-events stream DEV1 GID1 DEV2 GID2 SECONDS COUNT PERIOD
 *
 * pingpong: two threads, each of which sleeps until the other's empty message has come,
 * the first with vector 0 and the second with VECTOR, and on the CPU with that number if
 * PINNED is 1; prints half of the median round trip. many: a thread for each CPU with its
 * share of QUEUES on the completion vector with its number; each queue has one empty RDMA
 * write in progress and is armed for it. stream: one thread posts writes one by one, and
 * another sleeps for their events and takes them; with moderation if COUNT is more than 1.
 * Prints one line of JSON; "cpu" is the CPU time of all CPUs together, in seconds.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "check.h"

#define MAX_THREADS 64
#define MAX_QUEUES 256
#define MAX_SAMPLES (1 << 20)
#define STREAM_DEPTH 64

static struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *sink;
	union ibv_gid gid;
	int gid_index;
} side[2];

static double run_for;

/* What all CPUs have done since boot, in seconds. */
static double busy(void)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq;
	FILE *f = fopen("/proc/stat", "r");

	CHECK(f && fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
			  &idle, &iowait, &irq, &softirq) == 7);
	fclose(f);
	return (double)(user + nice + system + irq + softirq) / sysconf(_SC_CLK_TCK);
}

static void open_side(struct side *s, const char *device, const char *gid_index)
{
	s->ctx = open_device(device);
	s->gid_index = atoi(gid_index);
	s->pd = ibv_alloc_pd(s->ctx);
	s->sink = ibv_create_cq(s->ctx, 1024, NULL, NULL, 0);
	CHECK(s->pd && s->sink && !ibv_query_gid(s->ctx, 1, s->gid_index, &s->gid));
}

static struct ibv_cq *new_cq(struct side *s, int entries, struct ibv_comp_channel *ch, int vector)
{
	struct ibv_cq *cq = ibv_create_cq(s->ctx, entries, NULL, ch,
					  vector % s->ctx->num_comp_vectors);

	CHECK(cq);
	return cq;
}

/* Connected QPs of the two sides; NULL is for a CQ that nobody waits for. */
static void new_pair(struct end e[2], struct ibv_cq *send, struct ibv_cq *recv[2])
{
	int i;

	for (i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC,
			.cap = { PAIR_DEPTH, PAIR_DEPTH, 1, 1, 0 },
			.send_cq = !i && send ? send : side[i].sink,
			.recv_cq = recv && recv[i] ? recv[i] : side[i].sink,
		};

		memset(&e[i], 0, sizeof(e[i]));
		e[i].ctx = side[i].ctx;
		e[i].gid_index = side[i].gid_index;
		e[i].gid = side[i].gid;
		e[i].qp = ibv_create_qp(side[i].pd, &init);
		CHECK(e[i].qp);
	}
	connect_end(&e[0], &e[1]);
	connect_end(&e[1], &e[0]);
}

static void post(struct end *e, enum ibv_wr_opcode opcode, int n)
{
	struct ibv_send_wr wr[PAIR_DEPTH] = { 0 }, *bad;
	int i;

	for (i = 0; i < n; i++) {
		wr[i].opcode = opcode;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	CHECK(!n || !ibv_post_send(e->qp, wr, &bad));
}

/* Takes what is in CQ: how many. */
static int take(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];
	int n, i, all = 0;

	while ((n = ibv_poll_cq(cq, 16, wc)) > 0) {
		for (i = 0; i < n; i++)
			CHECK(wc[i].status == IBV_WC_SUCCESS);
		all += n;
	}
	CHECK(n == 0);
	return all;
}

/* Sleeps until CH has an event; its queue, armed again. */
static struct ibv_cq *next_armed(struct ibv_comp_channel *ch)
{
	struct ibv_cq *cq;
	void *context;

	CHECK(!ibv_get_cq_event(ch, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	CHECK(!ibv_req_notify_cq(cq, 0));
	return cq;
}

/* The thread that calls it runs on CPU from now on. */
static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK(!pthread_setaffinity_np(pthread_self(), sizeof(set), &set));
}

/* --- pingpong -------------------------------------------------------------- */

static struct player {
	struct end *end;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *sink;
	int cpu; /* -1: any */
} player[2];
static int last;

/* Sleeps until the other's message has come. */
static void receive(struct player *p)
{
	struct ibv_recv_wr wr = { 0 }, *bad;

	while (!take(next_armed(p->channel)))
		;
	CHECK(!ibv_post_recv(p->end->qp, &wr, &bad));
}

static void hit(struct player *p)
{
	take(p->sink);
	post(p->end, IBV_WR_SEND, 1);
}

static void *answer(void *arg)
{
	if (player[1].cpu >= 0)
		pin(player[1].cpu);
	for (;;) {
		receive(arg);
		if (__atomic_load_n(&last, __ATOMIC_ACQUIRE))
			return NULL;
		hit(arg);
	}
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void pingpong(int vector, int pinned)
{
	static double sample[MAX_SAMPLES];
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_cq *recv[2];
	struct end e[2];
	pthread_t other;
	double end, start, cpu;
	int i, k, n = 0;

	for (i = 0; i < 2; i++) {
		player[i].end = &e[i];
		player[i].sink = side[i].sink;
		player[i].cpu = !pinned ? -1 : i ? vector : 0;
		player[i].channel = ibv_create_comp_channel(side[i].ctx);
		CHECK(player[i].channel);
		recv[i] = player[i].cq = new_cq(&side[i], 256, player[i].channel,
						  i ? vector : 0);
	}
	new_pair(e, NULL, recv);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 4; k++)
			CHECK(!ibv_post_recv(e[i].qp, &wr, &bad));
		CHECK(!ibv_req_notify_cq(recv[i], 0));
	}
	CHECK(!pthread_create(&other, NULL, answer, &player[1]));
	if (pinned)
		pin(player[0].cpu);
	cpu = busy();
	end = now() + run_for;
	/* Once at least: a thread may wait longer than that for its CPU. */
	do {
		start = now();
		hit(&player[0]);
		receive(&player[0]);
		sample[n++] = now() - start;
	} while (now() < end && n < MAX_SAMPLES);
	cpu = busy() - cpu;
	__atomic_store_n(&last, 1, __ATOMIC_RELEASE);
	hit(&player[0]);
	CHECK(!pthread_join(other, NULL));
	qsort(sample, n, sizeof(sample[0]), by_value);
	printf("{\"events\": %d, \"latency_us\": %.2f, \"p99_us\": %.2f, \"cpu\": %.3f}\n", 2 * n,
	       sample[n / 2] / 2 * 1e6, sample[n - 1 - n / 100] / 2 * 1e6, cpu);
}

/* --- many ------------------------------------------------------------------ */

static struct worker {
	pthread_t thread;
	int index, queues;
	unsigned long events;
	double took;
} worker[MAX_THREADS];
static pthread_barrier_t together;

static void *work(void *arg)
{
	struct worker *w = arg;
	struct ibv_comp_channel *ch = ibv_create_comp_channel(side[0].ctx);
	struct ibv_cq *cq[MAX_QUEUES];
	struct end e[MAX_QUEUES][2];
	double start, end;
	int i;

	CHECK(ch);
	pin(w->index);
	for (i = 0; i < w->queues; i++) {
		cq[i] = new_cq(&side[0], 16, ch, w->index);
		cq[i]->cq_context = (void *)(intptr_t)i;
		new_pair(e[i], cq[i], NULL);
		CHECK(!ibv_req_notify_cq(cq[i], 0));
	}
	pthread_barrier_wait(&together);
	start = now();
	end = start + run_for;
	for (i = 0; i < w->queues; i++)
		post(e[i], IBV_WR_RDMA_WRITE, 1);
	do {
		struct ibv_cq *got = next_armed(ch);

		w->events++;
		post(e[(intptr_t)got->cq_context], IBV_WR_RDMA_WRITE, take(got));
	} while (now() < end);
	w->took = now() - start;
	pthread_barrier_wait(&together);
	return NULL;
}

static void many(int queues)
{
	int threads = sysconf(_SC_NPROCESSORS_ONLN), i;
	unsigned long events = 0;
	double rate = 0, cpu;

	if (threads > MAX_THREADS)
		threads = MAX_THREADS;
	CHECK(queues >= threads && queues / threads <= MAX_QUEUES);
	CHECK(!pthread_barrier_init(&together, NULL, threads + 1));
	for (i = 0; i < threads; i++) {
		worker[i].index = i;
		worker[i].queues = queues / threads;
		CHECK(!pthread_create(&worker[i].thread, NULL, work, &worker[i]));
	}
	pthread_barrier_wait(&together);
	cpu = busy();
	pthread_barrier_wait(&together);
	cpu = busy() - cpu;
	for (i = 0; i < threads; i++) {
		CHECK(!pthread_join(worker[i].thread, NULL));
		events += worker[i].events;
		rate += worker[i].events / worker[i].took;
	}
	printf("{\"events\": %lu, \"rate\": %.1f, \"cpu\": %.3f}\n", events, rate, cpu);
}

/* --- stream ---------------------------------------------------------------- */

static struct end flow[2];
static sem_t room;
static int full;

static void *feed(void *arg)
{
	(void)arg;
	for (;;) {
		CHECK(!sem_wait(&room));
		if (__atomic_load_n(&full, __ATOMIC_ACQUIRE))
			return NULL;
		post(&flow[0], IBV_WR_RDMA_WRITE, 1);
	}
}

static void stream(int count, int period)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(side[0].ctx);
	struct ibv_modify_cq_attr a = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { count, period },
	};
	unsigned long events = 0, completions = 0;
	double start, end, took, cpu;
	struct ibv_cq *cq;
	pthread_t feeder;
	int n;

	CHECK(ch && !sem_init(&room, 0, STREAM_DEPTH));
	cq = new_cq(&side[0], 1024, ch, 0);
	CHECK(count < 2 || !ibv_modify_cq(cq, &a));
	new_pair(flow, cq, NULL);
	CHECK(!ibv_req_notify_cq(cq, 0));
	cpu = busy();
	start = now();
	end = start + run_for;
	CHECK(!pthread_create(&feeder, NULL, feed, NULL));
	do {
		CHECK(next_armed(ch) == cq);
		events++;
		for (n = take(cq); n; n--, completions++)
			CHECK(!sem_post(&room));
	} while (now() < end || !completions);
	took = now() - start;
	cpu = busy() - cpu;
	__atomic_store_n(&full, 1, __ATOMIC_RELEASE);
	CHECK(!sem_post(&room));
	CHECK(!pthread_join(feeder, NULL));
	printf("{\"events\": %lu, \"completions\": %lu, \"rate\": %.1f, \"cpu\": %.3f}\n", events,
	       completions, completions / took, cpu);
}

int main(int argc, char **argv)
{
	if (argc < 7)
		return 2;
	open_side(&side[0], argv[2], argv[3]);
	open_side(&side[1], argv[4], argv[5]);
	run_for = atof(argv[6]);
	if (!strcmp(argv[1], "pingpong") && argc == 9)
		pingpong(atoi(argv[7]), atoi(argv[8]));
	else if (!strcmp(argv[1], "many") && argc == 8)
		many(atoi(argv[7]));
	else if (!strcmp(argv[1], "stream") && argc == 9)
		stream(atoi(argv[7]), atoi(argv[8]));
	else
		return 2;
	return 0;
}
