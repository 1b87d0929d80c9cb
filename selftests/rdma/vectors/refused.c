// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=120 debug=long xroce left
/*
 * What completion queues and channels refuse: the errno, and that a queue that is armed
 * at that time loses no event.
 *
 *   refused                     list the cases
 *   refused CASE DEVICE GID     run one
 */
#include <fcntl.h>

#include "armed.h"
#include "devices.h"

static struct armed a;

static void setup(const struct devices *on)
{
	make_armed(&a, on->name[0], on->gid_index[0], 64, 0);
}

/* One event, two completions. */
static void fire(void)
{
	complete(&a, 2);
	take_event(&a, 2);
}

static int no_cq(int entries, struct ibv_comp_channel *ch, int vector, int err)
{
	struct ibv_cq_init_attr_ex ex = {
		.cqe = entries, .channel = ch, .comp_vector = vector,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};

	errno = 0;
	if (ibv_create_cq(a.ctx, entries, NULL, ch, vector) || errno != err)
		return 0;
	errno = 0;
	return !ibv_create_cq_ex(a.ctx, &ex) && errno == err;
}

static void vectors(const struct devices *on)
{
	setup(on);
	arm(&a);
	CHECK(no_cq(8, a.channel, a.ctx->num_comp_vectors, EINVAL));
	CHECK(no_cq(8, a.channel, -1, EINVAL));
	CHECK(no_cq(8, NULL, a.ctx->num_comp_vectors, EINVAL));
	fire();
	end_armed(&a);
}

static void sizes(const struct devices *on)
{
	struct ibv_device_attr attr;

	setup(on);
	CHECK(!ibv_query_device(a.ctx, &attr));
	arm(&a);
	CHECK(no_cq(0, a.channel, 0, EINVAL));
	CHECK(no_cq(-1, a.channel, 0, EINVAL));
	CHECK(no_cq(attr.max_cqe + 1, a.channel, 0, EINVAL));
	fire();
	end_armed(&a);
}

/* A resize that is refused leaves the arm and the completions. */
static void resizes(const struct devices *on)
{
	struct ibv_device_attr attr;

	setup(on);
	CHECK(!ibv_query_device(a.ctx, &attr));
	complete(&a, 8);
	arm(&a);
	CHECK(ibv_resize_cq(a.cq, 0) == EINVAL);
	CHECK(ibv_resize_cq(a.cq, -1) == EINVAL);
	CHECK(ibv_resize_cq(a.cq, attr.max_cqe + 1) == EINVAL);
	/* What waits would not fit. */
	CHECK(ibv_resize_cq(a.cq, 4) == EINVAL);
	complete(&a, 1);
	take_event(&a, 9);
	end_armed(&a);
}

/*
 * What is refused changes nothing: the event that is held back meanwhile comes with the
 * eighth completion, neither before nor when the period is over. Rounds that take a
 * period prove nothing.
 */
static void moderation(const struct devices *on)
{
	struct ibv_modify_cq_attr m = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct ibv_device_attr_ex attr;
	int max_count, max_period, round, chances = 0, quick = 0;
	double start;

	setup(on);
	CHECK(!ibv_query_device_ex(a.ctx, NULL, &attr));
	max_count = attr.cq_mod_caps.max_cq_count;
	max_period = attr.cq_mod_caps.max_cq_period;
	for (round = 0; round < 200 && quick < 3; round++) {
		struct pollfd p = { .fd = a.channel->fd, .events = POLLIN };
		int early;

		m.attr_mask = IBV_CQ_ATTR_MODERATE;
		m.moderate.cq_count = 8;
		m.moderate.cq_period = max_period;
		CHECK(!ibv_modify_cq(a.cq, &m));
		start = now();
		arm(&a);
		complete(&a, 2);
		m.moderate.cq_count = max_count + 1;
		CHECK(ibv_modify_cq(a.cq, &m) == EINVAL);
		m.moderate.cq_count = 0;
		m.moderate.cq_period = max_period + 1;
		CHECK(ibv_modify_cq(a.cq, &m) == EINVAL);
		m.attr_mask = 0;
		m.moderate.cq_period = 0;
		CHECK(ibv_modify_cq(a.cq, &m) == EINVAL);
		m.attr_mask = IBV_CQ_ATTR_RESERVED;
		CHECK(ibv_modify_cq(a.cq, &m) == EINVAL);
		complete(&a, 5);
		early = poll(&p, 1, 0);
		if (now() - start < max_period / 1e6)
			CHECK(!early);
		chances += now() - start < max_period / 2e6;
		complete(&a, 1);
		take_event(&a, 8);
		quick += now() - start < max_period / 1e6;
	}
	printf("%d of %d rounds were quick, %d had a chance\n", quick, round, chances);
	CHECK(quick || chances < 5);
	end_armed(&a);
}

/* Channels of others, closed ones, and files that are none. */
static void channels(const struct devices *on)
{
	struct ibv_context *other;
	struct ibv_comp_channel *foreign, odd;
	int fd[2];

	setup(on);
	arm(&a);
	other = open_device(on->name[0]);
	foreign = ibv_create_comp_channel(other);
	CHECK(foreign);
	CHECK(no_cq(8, foreign, 0, EBADF));
	CHECK(!ibv_destroy_comp_channel(foreign) && !ibv_close_device(other));
	odd = *a.channel;
	CHECK(!pipe(fd));
	odd.fd = fd[0];
	CHECK(no_cq(8, &odd, 0, EBADF));
	odd.fd = a.ctx->cmd_fd;
	CHECK(no_cq(8, &odd, 0, EBADF));
	odd.fd = a.ctx->async_fd;
	CHECK(no_cq(8, &odd, 0, EBADF));
	close(fd[0]);
	close(fd[1]);
	odd.fd = fd[0];
	CHECK(no_cq(8, &odd, 0, EBADF));
	fire();
	end_armed(&a);
}

/* What is in use stays, and works on. */
static void busy(const struct devices *on)
{
	setup(on);
	arm(&a);
	CHECK(ibv_destroy_cq(a.cq) == EBUSY);
	CHECK(ibv_destroy_comp_channel(a.channel) == EBUSY);
	fire();
	end_armed(&a);
}

/* A channel's file is closed under its queue: events go nowhere, the rest works. */
static void closed(const struct devices *on)
{
	struct ibv_cq *cq;
	void *context;
	int null, i;

	setup(on);
	arm(&a);
	complete(&a, 1);
	CHECK(readable(a.channel->fd, 20));
	null = open("/dev/null", O_RDONLY);
	CHECK(null >= 0 && dup2(null, a.channel->fd) == a.channel->fd);
	CHECK(ibv_get_cq_event(a.channel, &cq, &context) == -1);
	CHECK(no_cq(8, a.channel, 0, EBADF));
	drain_armed(&a, 1);
	for (i = 0; i < 20; i++) {
		arm(&a);
		complete(&a, 1);
		drain_armed(&a, 1);
	}
	destroy_armed(&a);
}

static const CASES(const struct devices) cases[] = {
	{ "vectors out of range", vectors },
	{ "sizes out of range", sizes },
	{ "sizes out of range, to resize to", resizes },
	{ "moderation out of range", moderation },
	{ "channels of others, closed ones, none", channels },
	{ "what is in use", busy },
	{ "a channel is closed under its queue", closed },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	static struct devices on;

	return RUN_CASES(&on, cases, argc, argv);
}
