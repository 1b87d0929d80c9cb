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

static void set_adaptive(const char *how)
{
	char command[128];

	snprintf(command, sizeof(command), "rdma dev set %s adaptive-moderation %s", device[0], how);
	CHECK(!system(command));
}

/* What is shown of the queue of ENTRIES: the number after NAME, -1 if there is none. */
static int shown(const char *name)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "rdma -dd res show cq dev %s | grep -A1 ' cqe %d .* pid %d ' |"
		 " sed -n 's/.* drv_%s \\([0-9]*\\) .*/\\1/p' | grep . || echo -1",
		 device[0], ENTRIES, getpid(), name);
	return count(command);
}

static int shown_as(const char *how)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "rdma res show cq dev %s | grep ' cqe %d .* pid %d ' |"
		 " grep -c 'adaptive-moderation %s '", device[0], ENTRIES, getpid(), how);
	return count(command) == 1;
}

/* N events, of that many completions each. */
static void load(struct ibv_cq *cq, struct end e[2], int n, int completions)
{
	while (n--) {
		CHECK(!ibv_req_notify_cq(cq, 0));
		writes(e, completions);
		CHECK(event_of(channel) == cq);
		drain(cq, completions);
	}
}

static struct ibv_cq *begin(struct end e[2])
{
	struct ibv_cq *cq = new_cq(ENTRIES, channel, 0);

	CHECK(cq->cqe == ENTRIES);
	new_pair(e, cq, cq);
	return cq;
}

static void end(struct ibv_cq *cq, struct end e[2])
{
	end_pair(e);
	CHECK(!ibv_destroy_cq(cq));
}

/*
 * One completion for an event at first, then a crowd, until that shows or can be seen
 * not to.
 */
static int grow(struct ibv_cq *cq, struct end e[2])
{
	int i, level = 0;

	load(cq, e, 2 * PERIOD + 2, 1);
	for (i = 0; i < 10 && !level; i++) {
		load(cq, e, 2 * PERIOD, CROWD);
		level = shown("level");
	}
	return level;
}

static void follows_load(void)
{
	struct ibv_cq *cq;
	struct end e[2];

	setup();
	set_adaptive("on");
	cq = begin(e);
	CHECK(shown("level") == 0 && shown("cq_count") == 0 && shown_as("on"));
	CHECK(grow(cq, e) > 0);
	CHECK(shown("cq_count") >= 4 && shown("cq_period") >= 1);
	/* An event for each arm, whatever the level. */
	load(cq, e, PERIOD, 1);
	end(cq, e);
}

/* A queue keeps what it was made with. */
static void off(void)
{
	struct ibv_cq *cq;
	struct end e[2];

	setup();
	set_adaptive("off");
	cq = begin(e);
	CHECK(shown_as("off"));
	set_adaptive("on");
	CHECK(grow(cq, e) == -1);
	CHECK(shown("cq_count") == 0 && shown_as("off"));
	end(cq, e);
	cq = begin(e);
	set_adaptive("off");
	CHECK(grow(cq, e) > 0 && shown_as("on"));
	end(cq, e);
}

static void ended(void)
{
	struct ibv_cq *cq;
	struct end e[2];

	setup();
	set_adaptive("on");
	cq = begin(e);
	/* What is refused ends nothing. */
	CHECK(moderate(cq, 65535, 1) == EINVAL);
	CHECK(shown_as("on") && grow(cq, e) > 0);
	CHECK(!moderate(cq, 5, 77));
	CHECK(shown("level") == -1 && shown_as("off"));
	CHECK(grow(cq, e) == -1);
	CHECK(shown("cq_count") == 5 && shown("cq_period") == 77);
	/* It is no way to begin, either. */
	CHECK(!moderate(cq, 0, 0));
	CHECK(grow(cq, e) == -1 && shown("cq_count") == 0);
	end(cq, e);
}

/* Also right after the load has changed, when another level is asked for. */
static void destroyed(void)
{
	struct ibv_cq *cq;
	struct end e[2];
	int i;

	setup();
	set_adaptive("on");
	for (i = 0; i < 20; i++) {
		cq = begin(e);
		load(cq, e, 2 * PERIOD + 1, 1);
		load(cq, e, PERIOD - 2 + i % 4, CROWD);
		CHECK(i % 2 || !moderate(cq, 0, 0));
		end(cq, e);
	}
}

/* As above, with the process that has the queues. */
static void killed(void)
{
	int i, status;

	for (i = 0; i < 10; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			struct end e[2];
			struct ibv_cq *cq;

			setup();
			set_adaptive("on");
			cq = begin(e);
			load(cq, e, 2 * PERIOD + 1, 1);
			load(cq, e, PERIOD - 2 + i % 4, CROWD);
			CHECK(!ibv_req_notify_cq(cq, 0));
			writes(e, CROWD);
			raise(SIGKILL);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
}

static const struct check_case cases[] = {
	{ "adaptive moderation follows the load", follows_load },
	{ "adaptive moderation is off", off },
	{ "adaptive moderation ends with values of one's own", ended },
	{ "adaptive queues are destroyed", destroyed },
	{ "adaptive queues go with their process", killed },
	{ NULL, NULL }
};

static void back(void)
{
	set_adaptive("off");
}

int main(int argc, char **argv)
{
	return main_around(cases, NULL, back, argc, argv);
}
