// SPDX-License-Identifier: GPL-2.0
/*
 * Completion vectors, channels, arming and moderation.
 *
 *   vectors                     list the cases
 *   vectors CASE DEVICE GID     run one
 *   vectors busy DEVICE GID     take events until the device goes, print how it
 *                               ended; "ready" when it has begun
 *   vectors send DEVICE GID VECTOR EVENTS
 *                               take that many events of one vector
 *
 * Completions come from zero-length RDMA writes and from sends within the
 * process. A vector delivers one event of each of its queues in turn, so that an
 * event that has not come before a later one of another queue of the same vector
 * and channel will not come: see fence().
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "check.h"

#define MAX_CPUS 64

static const char *device;
static int gid_index;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *sink;
static struct ibv_comp_channel *channel;
static struct ibv_cq *fence_cq[MAX_CPUS];
static struct end fence_pair[MAX_CPUS][2];

static void setup(void)
{
	ctx = open_device(device);
	pd = ibv_alloc_pd(ctx);
	sink = ibv_create_cq(ctx, 1024, NULL, NULL, 0);
	channel = ibv_create_comp_channel(ctx);
	CHECK(pd && sink && channel);
}

static struct ibv_cq *new_cq(int entries, struct ibv_comp_channel *ch, int vector)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, entries, NULL, ch, vector);

	CHECK(cq);
	return cq;
}

/* Two connected QPs; completions of SEND and RECV of E[0] go to the CQs given. */
static void new_pair(struct end e[2], struct ibv_cq *send, struct ibv_cq *recv)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC,
			.cap = { PAIR_DEPTH, PAIR_DEPTH, 1, 1, 0 },
			.send_cq = i ? sink : send,
			.recv_cq = i ? sink : recv,
		};

		memset(&e[i], 0, sizeof(e[i]));
		e[i].ctx = ctx;
		e[i].gid_index = gid_index;
		CHECK(!ibv_query_gid(ctx, 1, gid_index, &e[i].gid));
		e[i].qp = ibv_create_qp(pd, &init);
		CHECK(e[i].qp);
	}
	connect_end(&e[0], &e[1]);
	connect_end(&e[1], &e[0]);
}

static void end_pair(struct end e[2])
{
	CHECK(!ibv_destroy_qp(e[0].qp));
	CHECK(!ibv_destroy_qp(e[1].qp));
}

static int post(struct end *e, enum ibv_wr_opcode opcode, int flags, int n)
{
	struct ibv_send_wr wr[PAIR_DEPTH] = { 0 }, *bad;
	int i;

	for (i = 0; i < n; i++) {
		wr[i].opcode = opcode;
		wr[i].send_flags = flags;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	return ibv_post_send(e->qp, wr, &bad);
}

/* N completions in E's send CQ. */
static void writes(struct end *e, int n)
{
	CHECK(!post(e, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, n));
}

/* A receive completion at E[0], solicited or not. */
static void message(struct end e[2], int solicited)
{
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_wc wc;

	CHECK(!ibv_post_recv(e[0].qp, &wr, &bad));
	CHECK(!post(&e[1], IBV_WR_SEND, IBV_SEND_SIGNALED |
		    (solicited ? IBV_SEND_SOLICITED : 0), 1));
	/* Acknowledged, so the receiver's completion is in its CQ. */
	CHECK(next_wc(sink, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

/* Takes one event of CH, of any CQ. */
static struct ibv_cq *event_of(struct ibv_comp_channel *ch)
{
	struct ibv_cq *cq;
	void *context;

	CHECK(readable(ch->fd, 20));
	CHECK(!ibv_get_cq_event(ch, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	return cq;
}

static void drain(struct ibv_cq *cq, int n)
{
	struct ibv_wc wc;

	while (n--)
		CHECK(next_wc(cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
}

/*
 * Waits until VECTOR has delivered to the channel an event of every queue that had
 * one; how many of them are CQ's.
 */
static int fence(int vector, struct ibv_cq *cq)
{
	struct ibv_cq *got;
	int n = 0;

	if (!fence_cq[vector]) {
		fence_cq[vector] = new_cq(16, channel, vector);
		new_pair(fence_pair[vector], fence_cq[vector], fence_cq[vector]);
	}
	CHECK(!ibv_req_notify_cq(fence_cq[vector], 0));
	writes(fence_pair[vector], 1);
	while ((got = event_of(channel)) != fence_cq[vector]) {
		CHECK(got == cq);
		n++;
	}
	drain(fence_cq[vector], 1);
	return n;
}

/* --- counts ---------------------------------------------------------------- */

/* The interrupts of VECTOR on each CPU; its Linux number, or -1. */
static int interrupts(int vector, unsigned long *count)
{
	char name[64], *line = NULL, *p;
	int cpus[MAX_CPUS], n = 0, i, irq = -1;
	size_t size = 0;
	FILE *f = fopen("/proc/interrupts", "r");

	memset(count, 0, MAX_CPUS * sizeof(*count));
	snprintf(name, sizeof(name), " %s-comp%d\n", device, vector);
	CHECK(f && getline(&line, &size, f) > 0);
	for (p = strstr(line, "CPU"); p && n < MAX_CPUS; p = strstr(p + 3, "CPU"))
		cpus[n++] = atoi(p + 3);
	while (irq < 0 && getline(&line, &size, f) > 0) {
		if (!strstr(line, name))
			continue;
		irq = strtol(line, &p, 10);
		for (i = 0, p++; i < n; i++)
			count[cpus[i]] = strtoul(p, &p, 10);
	}
	fclose(f);
	free(line);
	return irq;
}

static int set_affinity(int irq, int cpu)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/irq/%d/smp_affinity_list", irq);
	f = fopen(path, "w");
	if (!f)
		return 0;
	fprintf(f, "%d\n", cpu);
	return !fclose(f);
}

static void events(struct end e[2], struct ibv_cq *cq, int n)
{
	while (n--) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		writes(e, 1);
		CHECK(event_of(channel) == cq);
		drain(cq, 1);
	}
}

static void count_where_named(void)
{
	unsigned long before[MAX_CPUS][MAX_CPUS], after[MAX_CPUS];
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), v, w, cpu, i, irq;

	setup();
	CHECK(cpus <= MAX_CPUS && ctx->num_comp_vectors >= 1);
	for (v = 0; v < ctx->num_comp_vectors; v++) {
		struct ibv_cq *cq = new_cq(16, channel, v);
		struct end e[2];

		new_pair(e, cq, cq);
		for (cpu = 0; cpu < cpus; cpu++) {
			CHECK((irq = interrupts(v, before[v])) > 0);
			CHECK(set_affinity(irq, cpu));
			for (w = 0; w < ctx->num_comp_vectors; w++)
				CHECK(interrupts(w, before[w]) > 0);
			events(e, cq, 20);
			for (w = 0; w < ctx->num_comp_vectors; w++) {
				CHECK(interrupts(w, after) > 0);
				for (i = 0; i < cpus; i++) {
					if (w == v && i == cpu)
						CHECK(after[i] > before[w][i] &&
						      after[i] <= before[w][i] + 20);
					else
						CHECK(after[i] == before[w][i]);
				}
			}
		}
		end_pair(e);
		CHECK(!ibv_destroy_cq(cq));
	}
}

/* --- arming ---------------------------------------------------------------- */

static void arm_is_for_the_next(void)
{
	struct ibv_cq *cq;
	struct end e[2];

	setup();
	cq = new_cq(64, channel, 0);
	new_pair(e, cq, cq);
	/* Not armed. */
	writes(e, 3);
	drain(cq, 3);
	CHECK(fence(0, cq) == 0);
	/* What is there already raises nothing. */
	message(e, 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	CHECK(fence(0, cq) == 0);
	message(e, 0);
	CHECK(fence(0, cq) == 1);
	/* One event for one arm. */
	message(e, 0);
	CHECK(fence(0, cq) == 0);
	drain(cq, 3);
	/* Several arms are one. */
	CHECK(!ibv_req_notify_cq(cq, 0) && !ibv_req_notify_cq(cq, 0) &&
	      !ibv_req_notify_cq(cq, 1));
	message(e, 0);
	message(e, 0);
	CHECK(fence(0, cq) == 1);
	drain(cq, 2);
	/* Each arm that was used gives one event, though nobody takes them yet. */
	CHECK(!ibv_req_notify_cq(cq, 0));
	message(e, 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	message(e, 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	message(e, 0);
	/* The vector takes its queues in turn, so one fence may overtake some. */
	CHECK(fence(0, cq) + fence(0, cq) + fence(0, cq) == 3);
	drain(cq, 3);
}

static void solicited(void)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct end e[2];
	int v;

	setup();
	v = ctx->num_comp_vectors - 1;
	cq = new_cq(64, channel, v);
	new_pair(e, cq, cq);
	CHECK(!ibv_req_notify_cq(cq, 1));
	message(e, 0);
	message(e, 0);
	CHECK(fence(v, cq) == 0);
	message(e, 1);
	message(e, 1);
	CHECK(fence(v, cq) == 1);
	/* The stronger arm replaces the weaker one. */
	CHECK(!ibv_req_notify_cq(cq, 1) && !ibv_req_notify_cq(cq, 0));
	message(e, 0);
	CHECK(fence(v, cq) == 1);
	/* And not the reverse. */
	CHECK(!ibv_req_notify_cq(cq, 0) && !ibv_req_notify_cq(cq, 1));
	message(e, 0);
	CHECK(fence(v, cq) == 1);
	drain(cq, 6);
	/* What failed is solicited. */
	CHECK(!ibv_post_recv(e[0].qp, &wr, &bad) && !ibv_post_recv(e[0].qp, &wr, &bad));
	CHECK(!ibv_req_notify_cq(cq, 1));
	CHECK(!ibv_modify_qp(e[0].qp, &err, IBV_QP_STATE));
	CHECK(event_of(channel) == cq);
	CHECK(next_wc(cq, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(next_wc(cq, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(fence(v, cq) == 0);
}

static void overflow(void)
{
	struct ibv_async_event ev;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct end e[2];
	int i;

	setup();
	for (i = 0; i < 2; i++) {
		cq = new_cq(4, channel, 0);
		new_pair(e, cq, cq);
		writes(e, 4);
		/* The four are there when a fifth completes. */
		if (i)
			CHECK(!ibv_req_notify_cq(cq, 1));
		writes(e, 8);
		CHECK(next_event(ctx, IBV_EVENT_CQ_ERR, &ev) && ev.element.cq == cq);
		/* An event only if it was armed, and then one. */
		CHECK(fence(0, cq) == i);
		while (ibv_poll_cq(cq, 1, &wc) > 0)
			;
		end_pair(e);
		CHECK(!ibv_destroy_cq(cq));
	}
}

/* --- races ----------------------------------------------------------------- */

struct hammer {
	struct end e[2];
	struct ibv_cq *cq;
	int total, posted, done, stop;
};

/* Keeps some writes under way, with pauses in which the other side sleeps. */
static void *hammer_post(void *arg)
{
	struct hammer *h = arg;

	while (h->posted < h->total) {
		while (h->posted - __atomic_load_n(&h->done, __ATOMIC_ACQUIRE) >= PAIR_DEPTH / 2 ||
		       (h->posted % 7 == 0 &&
			h->posted != __atomic_load_n(&h->done, __ATOMIC_ACQUIRE)))
			sched_yield();
		writes(h->e, 1);
		h->posted++;
	}
	return NULL;
}

static void *hammer_move(void *arg)
{
	struct hammer *h = arg;
	unsigned long count[MAX_CPUS];
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), i, irq;

	CHECK((irq = interrupts(0, count)) > 0);
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

/* Arm, look once more, sleep: N times while others do what they can. */
static void hammer_with(void *(*other)(void *), int total)
{
	struct hammer h = { .total = total };
	pthread_t poster, second;
	struct ibv_wc wc[8];
	int n, i, events = 0;

	setup();
	h.cq = new_cq(256, channel, 0);
	new_pair(h.e, h.cq, h.cq);
	CHECK(!pthread_create(&poster, NULL, hammer_post, &h));
	if (other)
		CHECK(!pthread_create(&second, NULL, other, &h));
	while (h.done < total) {
		CHECK(!ibv_req_notify_cq(h.cq, 0));
		while ((n = ibv_poll_cq(h.cq, 8, wc)) > 0) {
			for (i = 0; i < n; i++)
				CHECK(wc[i].status == IBV_WC_SUCCESS);
			__atomic_add_fetch(&h.done, n, __ATOMIC_RELEASE);
		}
		CHECK(n == 0);
		if (h.done == total)
			break;
		CHECK(event_of(channel) == h.cq);
		events++;
	}
	__atomic_store_n(&h.stop, 1, __ATOMIC_RELEASE);
	CHECK(!pthread_join(poster, NULL));
	if (other)
		CHECK(!pthread_join(second, NULL));
	/* One arm is left at most. */
	CHECK(events <= total);
	end_pair(h.e);
	n = fence(0, h.cq);
	CHECK(n <= 1);
	CHECK(!ibv_destroy_cq(h.cq));
}

static int rounds(void)
{
	return getenv("SELFTEST_DEBUG") && *getenv("SELFTEST_DEBUG") ? 300 : 3000;
}

static void race(void)
{
	hammer_with(NULL, rounds());
}

static void race_with_affinity(void)
{
	hammer_with(hammer_move, rounds());
}

static void race_with_resize(void)
{
	hammer_with(hammer_resize, rounds());
}

static void race_with_moderation(void)
{
	hammer_with(hammer_moderate, rounds());
}

/* --- channels -------------------------------------------------------------- */

#define MANY 24

static void many_of_each(void)
{
	struct ibv_comp_channel *ch[3];
	struct ibv_cq *cq[MANY], *got;
	struct end e[MANY][2];
	int seen[MANY] = { 0 }, ep = epoll_create1(0), i, k, left, err;
	void *context;

	setup();
	CHECK(ep >= 0);
	for (k = 0; k < 3; k++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.u32 = k };

		ch[k] = ibv_create_comp_channel(ctx);
		CHECK(ch[k]);
		CHECK(!fcntl(ch[k]->fd, F_SETFL, O_NONBLOCK));
		CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, ch[k]->fd, &ev));
		/* Nothing there yet. */
		CHECK(ibv_get_cq_event(ch[k], &got, &context) && errno == EAGAIN);
	}
	for (i = 0; i < MANY; i++) {
		cq[i] = new_cq(8, ch[i % 3], i / 3 % ctx->num_comp_vectors);
		cq[i]->cq_context = (void *)(intptr_t)i;
		new_pair(e[i], cq[i], cq[i]);
		CHECK(!ibv_req_notify_cq(cq[i], 0));
	}
	for (i = 0; i < MANY; i++)
		writes(e[i], 2);
	for (left = MANY; left;) {
		struct epoll_event ev[3];
		int n = epoll_wait(ep, ev, 3, 20000);

		CHECK(n > 0);
		while (n--) {
			k = ev[n].data.u32;
			while (!ibv_get_cq_event(ch[k], &got, &context)) {
				for (i = 0; cq[i] != got; i++)
					CHECK(i < MANY);
				CHECK(i % 3 == k && !seen[i]++);
				ibv_ack_cq_events(got, 1);
				left--;
			}
			err = errno;
			CHECK(err == EAGAIN);
		}
	}
	for (i = 0; i < MANY; i++) {
		drain(cq[i], 2);
		end_pair(e[i]);
		CHECK(!ibv_destroy_cq(cq[i]));
	}
	for (k = 0; k < 3; k++)
		CHECK(!ibv_destroy_comp_channel(ch[k]));
}

static int taken, wanted;

static void *take_events(void *arg)
{
	(void)arg;
	while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < wanted) {
		struct pollfd p = { .fd = channel->fd, .events = POLLIN };
		struct ibv_cq *cq;
		void *context;

		if (poll(&p, 1, 10) != 1)
			continue;
		if (ibv_get_cq_event(channel, &cq, &context)) {
			int err = errno;

			CHECK(err == EAGAIN);
			continue;
		}
		ibv_ack_cq_events(cq, 1);
		__atomic_add_fetch(&taken, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Threads share a channel: each event goes to one of them. */
static void shared_channel(void)
{
	struct ibv_cq *cq[4];
	struct end e[4][2];
	pthread_t t[3];
	int i, k;

	setup();
	CHECK(!fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	wanted = 4 * 25;
	for (i = 0; i < 4; i++) {
		cq[i] = new_cq(64, channel, i % ctx->num_comp_vectors);
		new_pair(e[i], cq[i], cq[i]);
	}
	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&t[i], NULL, take_events, NULL));
	for (k = 0; k < 25; k++)
		for (i = 0; i < 4; i++) {
			CHECK(!ibv_req_notify_cq(cq[i], 0));
			message(e[i], 0);
		}
	for (i = 0; i < 3; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(taken == wanted);
	for (i = 0; i < ctx->num_comp_vectors; i++)
		CHECK(fence(i, NULL) == 0);
}

static int destroyed;

static void *destroy_it(void *cq)
{
	CHECK(!ibv_destroy_cq(cq));
	__atomic_store_n(&destroyed, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A CQ with an event that was taken waits until that is acknowledged. */
static void destroy_waits(void)
{
	struct ibv_cq *cq, *got;
	struct end e[2];
	pthread_t t;
	void *context;

	setup();
	cq = new_cq(16, channel, 0);
	new_pair(e, cq, cq);
	CHECK(!ibv_req_notify_cq(cq, 0));
	writes(e, 1);
	CHECK(readable(channel->fd, 20));
	CHECK(!ibv_get_cq_event(channel, &got, &context) && got == cq);
	drain(cq, 1);
	end_pair(e);
	CHECK(!pthread_create(&t, NULL, destroy_it, cq));
	/* The thread gets every chance to go too far. */
	usleep(200000);
	CHECK(!__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE));
	ibv_ack_cq_events(cq, 1);
	CHECK(!pthread_join(t, NULL) && destroyed);
}

/* A CQ goes whose events nobody has taken: they go with it. */
static void destroy_with_events(void)
{
	struct ibv_cq *cq;
	struct end e[2];
	int i;

	setup();
	for (i = 0; i < 50; i++) {
		cq = new_cq(16, channel, i % ctx->num_comp_vectors);
		new_pair(e, cq, cq);
		CHECK(!ibv_req_notify_cq(cq, 0));
		writes(e, 3);
		end_pair(e);
		CHECK(!ibv_destroy_cq(cq));
	}
	for (i = 0; i < ctx->num_comp_vectors; i++)
		CHECK(fence(i, NULL) == 0);
}

/* A child is killed while events of its are queued and under way. */
static void killed(void)
{
	int i, status;

	for (i = 0; i < 5; i++) {
		int ready[2];
		char c;
		pid_t pid;

		CHECK(!pipe(ready));
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			struct ibv_cq *cq[8];
			struct end e[8][2];
			int k;

			setup();
			for (k = 0; k < 8; k++) {
				cq[k] = new_cq(4096, channel, k % ctx->num_comp_vectors);
				new_pair(e[k], cq[k], cq[k]);
			}
			for (;;) {
				for (k = 0; k < 8; k++) {
					CHECK(!ibv_req_notify_cq(cq[k], 0));
					writes(e[k], 1);
					drain(cq[k], 1);
				}
				if (write(ready[1], "x", 1) != 1)
					_exit(1);
			}
		}
		CHECK(read(ready[0], &c, 1) == 1);
		close(ready[0]);
		/* It may have died of the closed pipe first. */
		kill(pid, SIGKILL);
		CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
		close(ready[1]);
	}
}

/* --- moderation ------------------------------------------------------------ */

static int moderate(struct ibv_cq *cq, int count, int period)
{
	struct ibv_modify_cq_attr a = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { count, period },
	};

	return ibv_modify_cq(cq, &a);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void moderation(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_cq *cq;
	struct end e[2];
	int i, n, left, max_count, max_period;
	struct ibv_wc wc;
	double start;

	setup();
	CHECK(!ibv_query_device_ex(ctx, NULL, &attr));
	max_count = attr.cq_mod_caps.max_cq_count;
	max_period = attr.cq_mod_caps.max_cq_period;
	CHECK(max_count > 1 && max_period > 1);
	cq = new_cq(1024, channel, 0);
	new_pair(e, cq, cq);

	/* The period ends the wait: nothing is lost. */
	CHECK(!moderate(cq, max_count, 5000));
	CHECK(!ibv_req_notify_cq(cq, 0));
	writes(e, 1);
	CHECK(event_of(channel) == cq);
	drain(cq, 1);

	/* The end of moderation does as well. */
	CHECK(!moderate(cq, max_count, max_period));
	CHECK(!ibv_req_notify_cq(cq, 0));
	message(e, 0);
	CHECK(!moderate(cq, 0, 0));
	CHECK(event_of(channel) == cq);
	drain(cq, 1);

	/* Neither of the two alone holds anything back. */
	CHECK(!moderate(cq, max_count, 0));
	CHECK(!ibv_req_notify_cq(cq, 0));
	message(e, 0);
	CHECK(fence(0, cq) == 1);
	CHECK(!moderate(cq, 0, max_period));
	CHECK(!ibv_req_notify_cq(cq, 0));
	message(e, 0);
	CHECK(fence(0, cq) == 1);
	drain(cq, 2);

	/* An event for eight completions, or one for each period that passed. */
	CHECK(!moderate(cq, 8, max_period));
	start = now();
	for (i = n = 0; i < 50; i++) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		writes(e, 8);
		for (left = 8; left;) {
			CHECK(event_of(channel) == cq);
			n++;
			CHECK(!ibv_req_notify_cq(cq, 0));
			while (ibv_poll_cq(cq, 1, &wc) == 1)
				left--;
		}
	}
	printf("%d events for 400 completions\n", n);
	CHECK(n <= 50 + (now() - start) * 1e6 / max_period + 1);

	/* The queue is half full before the period is over. */
	CHECK(!ibv_resize_cq(cq, 16));
	CHECK(!moderate(cq, max_count, max_period));
	CHECK(!ibv_req_notify_cq(cq, 0));
	writes(e, 8);
	CHECK(event_of(channel) == cq);
	drain(cq, 8);
}

/* --- errors ---------------------------------------------------------------- */

static void refused(void)
{
	struct ibv_modify_cq_attr a = { .attr_mask = 0 };
	struct ibv_device_attr_ex attr;
	struct ibv_comp_channel *foreign, closed;
	struct ibv_context *other;
	struct ibv_cq *cq;

	setup();
	CHECK(!ibv_query_device_ex(ctx, NULL, &attr));
	CHECK(!ibv_create_cq(ctx, 8, NULL, channel, ctx->num_comp_vectors) && errno == EINVAL);
	CHECK(!ibv_create_cq(ctx, 8, NULL, channel, -1) && errno == EINVAL);
	CHECK(!ibv_create_cq(ctx, attr.orig_attr.max_cqe + 1, NULL, channel, 0) && errno == EINVAL);
	CHECK(!ibv_create_cq(ctx, 0, NULL, channel, 0) && errno == EINVAL);

	other = open_device(device);
	foreign = ibv_create_comp_channel(other);
	CHECK(foreign);
	CHECK(!ibv_create_cq(ctx, 8, NULL, foreign, 0) && (errno == EBADF || errno == EINVAL));
	CHECK(!ibv_destroy_comp_channel(foreign));
	CHECK(!ibv_close_device(other));

	closed = *channel;
	closed.fd = dup(0);
	close(closed.fd);
	CHECK(!ibv_create_cq(ctx, 8, NULL, &closed, 0) && (errno == EBADF || errno == EINVAL));

	cq = new_cq(8, channel, 0);
	CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
	CHECK(ibv_modify_cq(cq, &a) == EINVAL);
	a.attr_mask = IBV_CQ_ATTR_RESERVED;
	CHECK(ibv_modify_cq(cq, &a) != 0);
	CHECK(moderate(cq, attr.cq_mod_caps.max_cq_count + 1, 1) == EINVAL);
	CHECK(moderate(cq, 1, attr.cq_mod_caps.max_cq_period + 1) == EINVAL);
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_destroy_comp_channel(channel));
	/* Without a channel an arm is accepted and goes nowhere. */
	cq = new_cq(8, NULL, 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	CHECK(!ibv_destroy_cq(cq));
}

static const struct check_case cases[] = {
	{ "interrupts count where the affinity says", count_where_named },
	{ "an arm is for the next completion", arm_is_for_the_next },
	{ "solicited and failed completions", solicited },
	{ "overflow of an armed queue", overflow },
	{ "arms race with completions", race },
	{ "arms race while the vector moves", race_with_affinity },
	{ "arms race while the queue is resized", race_with_resize },
	{ "arms race while moderation changes", race_with_moderation },
	{ "many queues, vectors and channels", many_of_each },
	{ "threads share a channel", shared_channel },
	{ "destroy waits for acknowledgements", destroy_waits },
	{ "destroy with events queued", destroy_with_events },
	{ "kill with events queued", killed },
	{ "moderation", moderation },
	{ "what is refused", refused },
	{ NULL, NULL }
};

/* Until the device goes; 0 if everything could be closed then. */
static int busy(void)
{
	struct ibv_cq *cq[8], *got;
	struct end e[8][2];
	struct ibv_wc wc;
	void *context;
	int i, n = 0;

	setup();
	for (i = 0; i < 8; i++) {
		cq[i] = new_cq(64, channel, i % ctx->num_comp_vectors);
		new_pair(e[i], cq[i], cq[i]);
		CHECK(!ibv_req_notify_cq(cq[i], 0));
	}
	for (i = 0; i < 8; i++)
		if (post(e[i], IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1))
			break;
	while (!ibv_get_cq_event(channel, &got, &context)) {
		ibv_ack_cq_events(got, 1);
		for (i = 0; cq[i] != got; i++)
			;
		if (n++ == 50) {
			printf("ready\n");
			fflush(stdout);
		}
		ibv_req_notify_cq(got, 0);
		while (ibv_poll_cq(got, 1, &wc) > 0)
			;
		if (post(e[i], IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1))
			break;
	}
	for (i = 0; i < 8; i++) {
		end_pair(e[i]);
		CHECK(!ibv_destroy_cq(cq[i]));
	}
	CHECK(!ibv_destroy_comp_channel(channel));
	CHECK(!ibv_destroy_cq(sink) && !ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(ctx));
	printf("closed\n");
	return 0;
}

static int send_events(int vector, int n)
{
	struct ibv_cq *cq;
	struct end e[2];

	setup();
	cq = new_cq(16, channel, vector);
	new_pair(e, cq, cq);
	events(e, cq, n);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 3) {
		device = argv[2];
		gid_index = atoi(argv[3]);
		if (!strcmp(argv[1], "busy"))
			return busy();
		if (!strcmp(argv[1], "send") && argc == 6)
			return send_events(atoi(argv[4]), atoi(argv[5]));
	}
	return run_case(cases, argc > 3 ? argv[1] : NULL);
}
