// SPDX-License-Identifier: GPL-2.0
/*
 * Completion vectors as interrupts, moderation, and what is refused.
 *
 *   vectors                     lists the cases
 *   vectors CASE DEVICE GID-INDEX
 *   vectors busy DEVICE GID-INDEX
 *                               take events until the device goes away, print how it
 *                               ended; "ready" when it has begun
 *   vectors send DEVICE GID-INDEX VECTOR EVENTS
 *                               take that many events of one vector
 */
#include "vectors.h"

static void events(struct vectors *self, struct end e[2], struct ibv_cq *cq, int n)
{
	while (n--) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		writes(e, 1);
		CHECK(event_of(self->channel) == cq);
		drain(cq, 1);
	}
}

static void count_where_named(struct vectors *self)
{
	unsigned long before[MAX_CPUS][MAX_CPUS], after[MAX_CPUS];
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), v, w, cpu, i, irq;

	setup(self);
	CHECK(cpus <= MAX_CPUS && self->ctx->num_comp_vectors >= 1);
	for (v = 0; v < self->ctx->num_comp_vectors; v++) {
		struct ibv_cq *cq = new_cq(self, 16, self->channel, v);
		struct end e[2];

		new_pair(self, e, cq, cq);
		for (cpu = 0; cpu < cpus; cpu++) {
			CHECK((irq = interrupts(&self->on, v, before[v])) > 0);
			CHECK(set_affinity(irq, cpu));
			for (w = 0; w < self->ctx->num_comp_vectors; w++)
				CHECK(interrupts(&self->on, w, before[w]) > 0);
			events(self, e, cq, 20);
			for (w = 0; w < self->ctx->num_comp_vectors; w++) {
				CHECK(interrupts(&self->on, w, after) > 0);
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

static void moderation(struct vectors *self)
{
	struct ibv_device_attr_ex attr;
	struct ibv_cq *cq;
	struct end e[2];
	int max_count, max_period;

	setup(self);
	CHECK(!ibv_query_device_ex(self->ctx, NULL, &attr));
	max_count = attr.cq_mod_caps.max_cq_count;
	max_period = attr.cq_mod_caps.max_cq_period;
	CHECK(max_count > 1 && max_period > 1);
	cq = new_cq(self, 1024, self->channel, 0);
	new_pair(self, e, cq, cq);

	/* The period ends the wait: nothing is lost. */
	CHECK(!moderate(cq, max_count, 5000));
	CHECK(!ibv_req_notify_cq(cq, 0));
	writes(e, 1);
	CHECK(event_of(self->channel) == cq);
	drain(cq, 1);

	/* The end of moderation does as well. */
	CHECK(!moderate(cq, max_count, max_period));
	CHECK(!ibv_req_notify_cq(cq, 0));
	complete_receive(self, e, 0);
	CHECK(!moderate(cq, 0, 0));
	CHECK(event_of(self->channel) == cq);
	drain(cq, 1);

	/* Neither of the two alone holds anything back. */
	CHECK(!moderate(cq, max_count, 0));
	CHECK(!ibv_req_notify_cq(cq, 0));
	complete_receive(self, e, 0);
	CHECK(fence(self, 0, cq) == 1);
	CHECK(!moderate(cq, 0, max_period));
	CHECK(!ibv_req_notify_cq(cq, 0));
	complete_receive(self, e, 0);
	CHECK(fence(self, 0, cq) == 1);
	drain(cq, 2);

	end_pair(e);
	CHECK(!ibv_destroy_cq(cq));
}

/*
 * N messages one after the other, with an arm before each: the events of CQ. All
 * of its completions are taken at the end, as is what is held back.
 */
static int events_for(struct vectors *self, struct end e[2], struct ibv_cq *cq, int n)
{
	int i, events = 0;

	for (i = 0; i < n; i++) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		complete_receive(self, e, 0);
		events += fence(self, 0, cq);
	}
	drain(cq, n);
	return events;
}

/* Moderation holds events back at all, and is what makes them rare. */
static void rarer(struct vectors *self)
{
	const int n = 400;
	struct ibv_device_attr_ex attr;
	struct ibv_cq *cq;
	struct end e[2];
	int max_period, got;
	double start;

	setup(self);
	CHECK(!ibv_query_device_ex(self->ctx, NULL, &attr));
	max_period = attr.cq_mod_caps.max_cq_period;
	cq = new_cq(self, 1024, self->channel, 0);
	new_pair(self, e, cq, cq);
	CHECK(events_for(self, e, cq, n) == n);
	CHECK(!moderate(cq, 8, max_period));
	start = now();
	got = events_for(self, e, cq, n);
	printf("%d events for %d completions\n", got, n);
	/* One for eight, or one for each period that passed. */
	CHECK(got <= n / 8 + (now() - start) * 1e6 / max_period + 1);
}

/*
 * What raises the event at the eighth of eight completions, sooner than the longest
 * period is over: none comes before, one comes then. Rounds that the machine is too
 * slow for prove nothing; without what is looked for all of them take a period.
 */
static void at_the_eighth(struct vectors *self, int entries, int count)
{
	struct ibv_device_attr_ex attr;
	int max_period, round, i, before, chances = 0, quick = 0;
	struct ibv_cq *cq;
	struct end e[2];
	double start, period;

	setup(self);
	CHECK(!ibv_query_device_ex(self->ctx, NULL, &attr));
	max_period = attr.cq_mod_caps.max_cq_period;
	period = max_period / 1e6;
	cq = new_cq(self, entries, self->channel, 0);
	new_pair(self, e, cq, cq);
	/* Makes what fences. */
	CHECK(fence(self, 0, cq) == 0);
	for (round = 0; round < 200 && quick < 3; round++) {
		/* Anew, so that nothing of the last round counts. */
		CHECK(!moderate(cq, count ? count : attr.cq_mod_caps.max_cq_count, max_period));
		start = now();
		CHECK(!ibv_req_notify_cq(cq, 0));
		for (i = 0; i < 7; i++)
			complete_receive(self, e, 0);
		before = fence(self, 0, cq);
		if (now() - start < period)
			CHECK(before == 0);
		chances += now() - start < period / 2;
		complete_receive(self, e, 0);
		if (!before)
			CHECK(event_of(self->channel) == cq);
		quick += now() - start < period;
		CHECK(fence(self, 0, cq) == 0);
		drain(cq, 8);
	}
	printf("%d of %d rounds were quick, %d had a chance\n", quick, round, chances);
	CHECK(quick || chances < 5);
}

static void counted(struct vectors *self)
{
	at_the_eighth(self, 1024, 8);
}

static void half_full(struct vectors *self)
{
	at_the_eighth(self, 16, 0);
}

static void refused(struct vectors *self)
{
	struct ibv_modify_cq_attr a = { .attr_mask = 0 };
	struct ibv_device_attr_ex attr;
	struct ibv_comp_channel *foreign, closed;
	struct ibv_context *other;
	struct ibv_cq *cq;

	setup(self);
	CHECK(!ibv_query_device_ex(self->ctx, NULL, &attr));
	CHECK(!ibv_create_cq(self->ctx, 8, NULL, self->channel, self->ctx->num_comp_vectors) &&
	      errno == EINVAL);
	CHECK(!ibv_create_cq(self->ctx, 8, NULL, self->channel, -1) && errno == EINVAL);
	CHECK(!ibv_create_cq(self->ctx, attr.orig_attr.max_cqe + 1, NULL, self->channel, 0) &&
	      errno == EINVAL);
	CHECK(!ibv_create_cq(self->ctx, 0, NULL, self->channel, 0) && errno == EINVAL);

	other = open_device(self->on.name[0]);
	foreign = ibv_create_comp_channel(other);
	CHECK(foreign);
	CHECK(!ibv_create_cq(self->ctx, 8, NULL, foreign, 0) &&
	      (errno == EBADF || errno == EINVAL));
	CHECK(!ibv_destroy_comp_channel(foreign));
	CHECK(!ibv_close_device(other));

	closed = *self->channel;
	closed.fd = dup(0);
	close(closed.fd);
	CHECK(!ibv_create_cq(self->ctx, 8, NULL, &closed, 0) &&
	      (errno == EBADF || errno == EINVAL));

	cq = new_cq(self, 8, self->channel, 0);
	CHECK(ibv_destroy_comp_channel(self->channel) == EBUSY);
	CHECK(ibv_modify_cq(cq, &a) == EINVAL);
	a.attr_mask = IBV_CQ_ATTR_RESERVED;
	CHECK(ibv_modify_cq(cq, &a) != 0);
	CHECK(moderate(cq, attr.cq_mod_caps.max_cq_count + 1, 1) == EINVAL);
	CHECK(moderate(cq, 1, attr.cq_mod_caps.max_cq_period + 1) == EINVAL);
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_destroy_comp_channel(self->channel));
	/* Without a channel an arm is accepted and goes nowhere. */
	cq = new_cq(self, 8, NULL, 0);
	CHECK(!ibv_req_notify_cq(cq, 0));
	CHECK(!ibv_destroy_cq(cq));
}

static const CASES(struct vectors) cases[] = {
	{ "interrupts count where the affinity says", count_where_named },
	{ "moderation", moderation },
	{ "moderation makes events rarer", rarer },
	{ "moderation by count", counted },
	{ "moderation ends when the queue is half full", half_full },
	{ "what is refused", refused },
	{ NULL, NULL }
};

/* Until the device goes; everything can be closed then. */
static void busy(struct vectors *self)
{
	struct ibv_cq *cq[8], *got;
	struct end e[8][2];
	struct ibv_wc wc;
	void *context;
	int i, n = 0;

	setup(self);
	for (i = 0; i < 8; i++) {
		cq[i] = new_cq(self, 64, self->channel, i % self->ctx->num_comp_vectors);
		new_pair(self, e[i], cq[i], cq[i]);
		CHECK(!ibv_req_notify_cq(cq[i], 0));
	}
	for (i = 0; i < 8; i++)
		if (post(e[i], IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1))
			break;
	while (!ibv_get_cq_event(self->channel, &got, &context)) {
		ibv_ack_cq_events(got, 1);
		for (i = 0; cq[i] != got; i++)
			;
		if (n++ == 50)
			printf("ready\n");
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
	CHECK(!ibv_destroy_comp_channel(self->channel));
	CHECK(!ibv_destroy_cq(self->sink) && !ibv_dealloc_pd(self->pd));
	CHECK(!ibv_close_device(self->ctx));
	printf("closed\n");
}

static int vector_to_use, events_to_take;

static void send_events(struct vectors *self)
{
	struct ibv_cq *cq;
	struct end e[2];

	setup(self);
	cq = new_cq(self, 16, self->channel, vector_to_use);
	new_pair(self, e, cq, cq);
	events(self, e, cq, events_to_take);
}

static const CASES(struct vectors) services[] = {
	{ "busy", busy },
	{ "send", send_events },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	static struct vectors self;

	if (argc == 4 && !strcmp(argv[1], "busy"))
		return RUN_CASES(&self, services, argc, argv);
	if (argc == 6 && !strcmp(argv[1], "send")) {
		vector_to_use = atoi(argv[4]);
		events_to_take = atoi(argv[5]);
		return RUN_CASES(&self, services, 4, argv);
	}
	return RUN_CASES(&self, cases, argc, argv);
}
