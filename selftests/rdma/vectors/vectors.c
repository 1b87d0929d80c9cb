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

static void moderation(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_cq *cq;
	struct end e[2];
	int max_count, max_period;

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

	end_pair(e);
	CHECK(!ibv_destroy_cq(cq));
}

/*
 * N messages one after the other, with an arm before each: the events of CQ. All
 * of its completions are taken at the end, as is what is held back.
 */
static int events_for(struct end e[2], struct ibv_cq *cq, int n)
{
	int i, events = 0;

	for (i = 0; i < n; i++) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		message(e, 0);
		events += fence(0, cq);
	}
	drain(cq, n);
	return events;
}

/* Moderation holds events back at all, and is what makes them rare. */
static void rarer(void)
{
	const int n = 400;
	struct ibv_device_attr_ex attr;
	struct ibv_cq *cq;
	struct end e[2];
	int max_period, got;
	double start;

	setup();
	CHECK(!ibv_query_device_ex(ctx, NULL, &attr));
	max_period = attr.cq_mod_caps.max_cq_period;
	cq = new_cq(1024, channel, 0);
	new_pair(e, cq, cq);
	CHECK(events_for(e, cq, n) == n);
	CHECK(!moderate(cq, 8, max_period));
	start = now();
	got = events_for(e, cq, n);
	printf("%d events for %d completions\n", got, n);
	/* One for eight, or one for each period that passed. */
	CHECK(got <= n / 8 + (now() - start) * 1e6 / max_period + 1);
}

/*
 * What raises the event at the eighth of eight completions, sooner than the longest
 * period is over: none comes before, one comes then. Rounds that the machine is too
 * slow for prove nothing; without what is looked for all of them take a period.
 */
static void at_the_eighth(int entries, int count)
{
	struct ibv_device_attr_ex attr;
	int max_period, round, i, before, quick = 0;
	struct ibv_cq *cq;
	struct end e[2];
	double start, period;

	setup();
	CHECK(!ibv_query_device_ex(ctx, NULL, &attr));
	max_period = attr.cq_mod_caps.max_cq_period;
	period = max_period / 1e6;
	cq = new_cq(entries, channel, 0);
	new_pair(e, cq, cq);
	/* Makes what fences. */
	CHECK(fence(0, cq) == 0);
	for (round = 0; round < 200 && quick < 3; round++) {
		/* Anew, so that nothing of the last round counts. */
		CHECK(!moderate(cq, count ? count : attr.cq_mod_caps.max_cq_count, max_period));
		start = now();
		CHECK(!ibv_req_notify_cq(cq, 0));
		for (i = 0; i < 7; i++)
			message(e, 0);
		before = fence(0, cq);
		if (now() - start < period)
			CHECK(before == 0);
		message(e, 0);
		if (!before)
			CHECK(event_of(channel) == cq);
		quick += now() - start < period;
		CHECK(fence(0, cq) == 0);
		drain(cq, 8);
	}
	printf("%d of %d rounds were quick\n", quick, round);
	CHECK(quick);
}

static void counted(void)
{
	at_the_eighth(1024, 8);
}

static void half_full(void)
{
	at_the_eighth(16, 0);
}

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

	other = open_device(device[0]);
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
	{ "moderation", moderation },
	{ "moderation makes events rarer", rarer },
	{ "moderation by count", counted },
	{ "moderation ends when the queue is half full", half_full },
	{ "what is refused", refused },
	{ NULL, NULL }
};

/* Until the device goes; everything can be closed then. */
static void busy(void)
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
	CHECK(!ibv_destroy_comp_channel(channel));
	CHECK(!ibv_destroy_cq(sink) && !ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(ctx));
	printf("closed\n");
}

static int vector_to_use, events_to_take;

static void send_events(void)
{
	struct ibv_cq *cq;
	struct end e[2];

	setup();
	cq = new_cq(16, channel, vector_to_use);
	new_pair(e, cq, cq);
	events(e, cq, events_to_take);
}

static const struct check_case services[] = {
	{ "busy", busy },
	{ "send", send_events },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "busy"))
		return main_of_cases(services, argc, argv);
	if (argc == 6 && !strcmp(argv[1], "send")) {
		vector_to_use = atoi(argv[4]);
		events_to_take = atoi(argv[5]);
		return main_of_cases(services, 4, argv);
	}
	return main_of_cases(cases, argc, argv);
}
