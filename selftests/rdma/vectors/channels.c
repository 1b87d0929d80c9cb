// SPDX-License-Identifier: GPL-2.0
/*
 * Completion channels: many queues, several threads, and queues that are destroyed
 * while events of them are in the channel.
 *
 *   channels                    lists the cases
 *   channels CASE DEVICE GID-INDEX
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "vectors.h"

#define MANY 24

static void many_of_each(struct vectors *self)
{
	struct ibv_comp_channel *ch[3];
	struct ibv_cq *cq[MANY], *got;
	struct end e[MANY][2];
	int seen[MANY] = { 0 }, ep = epoll_create1(0), i, k, left, err;
	void *context;

	setup(self);
	CHECK(ep >= 0);
	for (k = 0; k < 3; k++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.u32 = k };

		ch[k] = ibv_create_comp_channel(self->ctx);
		CHECK(ch[k]);
		CHECK(!fcntl(ch[k]->fd, F_SETFL, O_NONBLOCK));
		CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, ch[k]->fd, &ev));
		/* Nothing there yet. */
		CHECK(ibv_get_cq_event(ch[k], &got, &context) && errno == EAGAIN);
	}
	for (i = 0; i < MANY; i++) {
		cq[i] = new_cq(self, 8, ch[i % 3], i / 3 % self->ctx->num_comp_vectors);
		cq[i]->cq_context = (void *)(intptr_t)i;
		new_pair(self, e[i], cq[i], cq[i]);
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
					CHECK(i < MANY - 1);
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

#define PILE 32

static struct ibv_comp_channel *busy_channel;
static int stop_busy, busy_events;

/* Fills a queue of vector 0 with events, and takes them. */
static void *keep_busy(void *arg)
{
	struct vectors *self = arg;
	struct ibv_cq *cq = new_cq(self, 128, busy_channel, 0);
	struct end e[2];
	int i;

	new_pair(self, e, cq, cq);
	while (!__atomic_load_n(&stop_busy, __ATOMIC_ACQUIRE)) {
		/* Each arm that was used is an event. */
		for (i = 0; i < PILE; i++) {
			CHECK(!ibv_req_notify_cq(cq, 0));
			writes(e, 1);
			drain(cq, 1);
		}
		for (i = 0; i < PILE; i++)
			CHECK(event_of(busy_channel) == cq);
		__atomic_add_fetch(&busy_events, PILE, __ATOMIC_RELEASE);
	}
	end_pair(e);
	CHECK(!ibv_destroy_cq(cq));
	return NULL;
}

/* A queue gets its events beside one of the same vector that always has some. */
static void busy_neighbour(struct vectors *self)
{
	struct ibv_cq *cq;
	struct end e[2];
	pthread_t t;
	int i;

	setup(self);
	busy_channel = ibv_create_comp_channel(self->ctx);
	CHECK(busy_channel);
	cq = new_cq(self, 16, self->channel, 0);
	new_pair(self, e, cq, cq);
	CHECK(!pthread_create(&t, NULL, keep_busy, self));
	for (i = 0; i < 20 || !__atomic_load_n(&busy_events, __ATOMIC_ACQUIRE); i++) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		writes(e, 1);
		CHECK(event_of(self->channel) == cq);
		drain(cq, 1);
	}
	__atomic_store_n(&stop_busy, 1, __ATOMIC_RELEASE);
	CHECK(!pthread_join(t, NULL));
	printf("%d events beside %d\n", i, busy_events);
	end_pair(e);
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_destroy_comp_channel(busy_channel));
}

static int taken, wanted;

static void *take_events(void *arg)
{
	struct vectors *self = arg;

	while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < wanted) {
		struct pollfd p = { .fd = self->channel->fd, .events = POLLIN };
		struct ibv_cq *cq;
		void *context;

		if (poll(&p, 1, 10) != 1)
			continue;
		if (ibv_get_cq_event(self->channel, &cq, &context)) {
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
static void shared_channel(struct vectors *self)
{
	struct ibv_cq *cq[4];
	struct end e[4][2];
	pthread_t t[3];
	int i, k;

	setup(self);
	CHECK(!fcntl(self->channel->fd, F_SETFL, O_NONBLOCK));
	wanted = 4 * 25;
	for (i = 0; i < 4; i++) {
		cq[i] = new_cq(self, 64, self->channel, i % self->ctx->num_comp_vectors);
		new_pair(self, e[i], cq[i], cq[i]);
	}
	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&t[i], NULL, take_events, self));
	for (k = 0; k < 25; k++)
		for (i = 0; i < 4; i++) {
			CHECK(!ibv_req_notify_cq(cq[i], 0));
			complete_receive(self, e[i], 0);
		}
	for (i = 0; i < 3; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(taken == wanted);
	for (i = 0; i < self->ctx->num_comp_vectors; i++)
		CHECK(fence(self, i, NULL) == 0);
}

static int destroyed;

static void *destroy_it(void *cq)
{
	CHECK(!ibv_destroy_cq(cq));
	__atomic_store_n(&destroyed, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A CQ with an event that was taken waits until that is acknowledged. */
static void destroy_waits(struct vectors *self)
{
	struct ibv_cq *cq, *got;
	struct end e[2];
	pthread_t t;
	void *context;

	setup(self);
	cq = new_cq(self, 16, self->channel, 0);
	new_pair(self, e, cq, cq);
	CHECK(!ibv_req_notify_cq(cq, 0));
	writes(e, 1);
	CHECK(readable(self->channel->fd, 20));
	CHECK(!ibv_get_cq_event(self->channel, &got, &context) && got == cq);
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
static void destroy_with_events(struct vectors *self)
{
	struct ibv_cq *cq;
	struct end e[2];
	int i;

	setup(self);
	for (i = 0; i < 50; i++) {
		cq = new_cq(self, 16, self->channel, i % self->ctx->num_comp_vectors);
		new_pair(self, e, cq, cq);
		CHECK(!ibv_req_notify_cq(cq, 0));
		writes(e, 3);
		end_pair(e);
		CHECK(!ibv_destroy_cq(cq));
	}
	for (i = 0; i < self->ctx->num_comp_vectors; i++)
		CHECK(fence(self, i, NULL) == 0);
}

/* A child is killed while events of its are queued and under way. */
static void killed(struct vectors *self)
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

			setup(self);
			for (k = 0; k < 8; k++) {
				cq[k] = new_cq(self, 4096, self->channel,
					       k % self->ctx->num_comp_vectors);
				new_pair(self, e[k], cq[k], cq[k]);
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

static void interrupt(int signal)
{
	(void)signal;
}

struct wait {
	struct vectors *self;
	int is_over;
};

/* Waits for an event until a signal comes. */
static void *wait_for_completion(void *arg)
{
	struct wait *wait = arg;
	struct ibv_cq *got;
	void *context;

	CHECK(ibv_get_cq_event(wait->self->channel, &got, &context) && errno == EINTR);
	__atomic_store_n(&wait->is_over, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *wait_for_async(void *arg)
{
	struct wait *wait = arg;
	struct ibv_async_event ev;
	int err;

	/* Of the port there may be some. */
	while (!ibv_get_async_event(wait->self->ctx, &ev))
		ibv_ack_async_event(&ev);
	err = errno;
	CHECK(err == EINTR);
	__atomic_store_n(&wait->is_over, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* A signal ends the wait with EINTR, as read(2) has it, and the next event is not lost. */
static void interrupted(struct vectors *self)
{
	void *(*const waits[])(void *) = { wait_for_completion, wait_for_async };
	struct sigaction catch = { .sa_handler = interrupt };
	double end_of_wait = deadline(20);
	struct ibv_cq *cq;
	struct end e[2];
	struct wait wait = { .self = self };
	pthread_t thread;
	int i;

	setup(self);
	CHECK(!sigaction(SIGUSR1, &catch, NULL));
	cq = new_cq(self, 8, self->channel, 0);
	new_pair(self, e, cq, cq);
	for (i = 0; i < 2; i++) {
		wait.is_over = 0;
		CHECK(!pthread_create(&thread, NULL, waits[i], &wait));
		/* A signal that comes before the wait does nothing. */
		while (!__atomic_load_n(&wait.is_over, __ATOMIC_SEQ_CST)) {
			CHECK(!is_past(end_of_wait));
			CHECK(!pthread_kill(thread, SIGUSR1));
			usleep(1000);
		}
		CHECK(!pthread_join(thread, NULL));
	}
	CHECK(!ibv_req_notify_cq(cq, 0));
	writes(e, 1);
	CHECK(event_of(self->channel) == cq);
	drain(cq, 1);
	end_pair(e);
	CHECK(!ibv_destroy_cq(cq));
}

static const CASES(struct vectors) cases[] = {
	{ "many queues, vectors and channels", many_of_each },
	{ "a busy neighbour", busy_neighbour },
	{ "threads share a channel", shared_channel },
	{ "destroy waits for acknowledgements", destroy_waits },
	{ "destroy with events queued", destroy_with_events },
	{ "kill with events queued", killed },
	{ "interrupted waits", interrupted },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	static struct vectors self;

	return RUN_CASES(&self, cases, argc, argv);
}
