// SPDX-License-Identifier: GPL-2.0
/*
 * Adaptive moderation of a process's completion queues: `rdma dev set` turns it on, and
 * `rdma -dd res show cq` shows it.
 *
 *   adaptive                    lists the cases
 *   adaptive CASE DEVICE GID-INDEX
 */
#include <sys/wait.h>

#include "vectors.h"

/* Events that the kernel compares with as many before them. */
#define PERIOD 64
/* Slots of the queue that is looked at; no other has as many. */
#define ENTRIES 256
/* Completions of a crowd. */
#define CROWD 32

static void set_adaptive(struct vectors *self, const char *how)
{
	char command[128];

	snprintf(command, sizeof(command), "rdma dev set %s adaptive-moderation %s",
		 self->on.name[0], how);
	CHECK(!system(command));
}

/* What is shown of the queue of ENTRIES: the number after NAME, -1 if there is none. */
static int shown(struct vectors *self, const char *name)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "rdma -dd res show cq dev %s | grep -A1 ' cqe %d .* pid %d ' |"
		 " sed -n 's/.* drv_%s \\([0-9]*\\) .*/\\1/p' | grep . || echo -1",
		 self->on.name[0], ENTRIES, getpid(), name);
	return count(command);
}

static int shown_as(struct vectors *self, const char *how)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "rdma res show cq dev %s | grep ' cqe %d .* pid %d ' |"
		 " grep -c 'adaptive-moderation %s '", self->on.name[0], ENTRIES, getpid(), how);
	return count(command) == 1;
}

/* N events, of that many completions each. */
static void load(struct vectors *self, struct ibv_cq *cq, struct end e[2], int n, int completions)
{
	while (n--) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		writes(e, completions);
		CHECK(event_of(self->channel) == cq);
		drain(cq, completions);
	}
}

static struct ibv_cq *begin(struct vectors *self, struct end e[2])
{
	struct ibv_cq *cq = new_cq(self, ENTRIES, self->channel, 0);

	CHECK(cq->cqe == ENTRIES);
	new_pair(self, e, cq, cq);
	return cq;
}

static void end(struct ibv_cq *cq, struct end e[2])
{
	end_pair(e);
	CHECK(!ibv_destroy_cq(cq));
}

/*
 * One completion for an event at first, then a crowd, until that shows or can be seen
 * not to. A level lasts for PERIOD events at least: on a busy machine it goes up and
 * down, and each of them has to be seen.
 */
static int grow(struct vectors *self, struct ibv_cq *cq, struct end e[2])
{
	int i, level = 0;

	load(self, cq, e, 2 * PERIOD + 2, 1);
	for (i = 0; i < 40 && !level; i++) {
		load(self, cq, e, i ? PERIOD / 2 : 2 * PERIOD, CROWD);
		level = shown(self, "level");
	}
	return level;
}

static void follows_load(struct vectors *self)
{
	struct ibv_cq *cq;
	struct end e[2];

	setup(self);
	set_adaptive(self, "on");
	cq = begin(self, e);
	CHECK(shown(self, "level") == 0 && shown(self, "cq_count") == 0 && shown_as(self, "on"));
	CHECK(grow(self, cq, e) > 0);
	CHECK(shown(self, "cq_count") >= 4 && shown(self, "cq_period") >= 1);
	/* An event for each arm, whatever the level. */
	load(self, cq, e, PERIOD, 1);
	end(cq, e);
}

/* A queue keeps what it was made with. */
static void off(struct vectors *self)
{
	struct ibv_cq *cq;
	struct end e[2];

	setup(self);
	set_adaptive(self, "off");
	cq = begin(self, e);
	CHECK(shown_as(self, "off"));
	set_adaptive(self, "on");
	CHECK(grow(self, cq, e) == -1);
	CHECK(shown(self, "cq_count") == 0 && shown_as(self, "off"));
	end(cq, e);
	cq = begin(self, e);
	set_adaptive(self, "off");
	CHECK(grow(self, cq, e) > 0 && shown_as(self, "on"));
	end(cq, e);
}

static void ended(struct vectors *self)
{
	struct ibv_cq *cq;
	struct end e[2];

	setup(self);
	set_adaptive(self, "on");
	cq = begin(self, e);
	/* What is refused ends nothing. */
	CHECK(moderate(cq, 65535, 1) == EINVAL);
	CHECK(shown_as(self, "on") && grow(self, cq, e) > 0);
	CHECK(!moderate(cq, 5, 77));
	CHECK(shown(self, "level") == -1 && shown_as(self, "off"));
	CHECK(grow(self, cq, e) == -1);
	CHECK(shown(self, "cq_count") == 5 && shown(self, "cq_period") == 77);
	/* It is no way to begin, either. */
	CHECK(!moderate(cq, 0, 0));
	CHECK(grow(self, cq, e) == -1 && shown(self, "cq_count") == 0);
	end(cq, e);
}

/* Also right after the load has changed, when another level is asked for. */
static void destroyed(struct vectors *self)
{
	struct ibv_cq *cq;
	struct end e[2];
	int i;

	setup(self);
	set_adaptive(self, "on");
	for (i = 0; i < 20; i++) {
		cq = begin(self, e);
		load(self, cq, e, 2 * PERIOD + 1, 1);
		load(self, cq, e, PERIOD - 2 + i % 4, CROWD);
		CHECK(i % 2 || !moderate(cq, 0, 0));
		end(cq, e);
	}
}

/* As above, with the process that has the queues. */
static void killed(struct vectors *self)
{
	int i, status;

	for (i = 0; i < 10; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			struct end e[2];
			struct ibv_cq *cq;

			setup(self);
			set_adaptive(self, "on");
			cq = begin(self, e);
			load(self, cq, e, 2 * PERIOD + 1, 1);
			load(self, cq, e, PERIOD - 2 + i % 4, CROWD);
			CHECK(!ibv_req_notify_cq(cq, 0));
			writes(e, CROWD);
			raise(SIGKILL);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

static const CASES(struct vectors) cases[] = {
	{ "adaptive moderation follows the load", follows_load },
	{ "adaptive moderation is off", off },
	{ "adaptive moderation ends with values of one's own", ended },
	{ "adaptive queues are destroyed", destroyed },
	{ "adaptive queues go with their process", killed },
	{ NULL, NULL }
};

static void back(struct vectors *self)
{
	set_adaptive(self, "off");
}

int main(int argc, char **argv)
{
	static struct vectors self;

	return RUN_CASES_AROUND(&self, cases, (void), back, argc, argv);
}
