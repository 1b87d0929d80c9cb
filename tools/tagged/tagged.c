// SPDX-License-Identifier: GPL-2.0
/*
 * Ranks, each of which is a process, send each other tagged messages in random order
 * and receive them in another order, as in MPI: by sender and tag, from any sender, or
 * with any tag of a group; short messages eagerly, long ones by rendezvous. First the
 * device matches (a tag-matching shared receive queue in each rank), then software does
 * (a plain shared receive queue, and lists). The messages that arrive are checked:
 * complete, once, and in the order that MPI guarantees.
 *
 *   xroce-tagged [-r RANKS] [-m MESSAGES] [-s SEED] [-n ROUNDS]
 *                DEVICE GID-INDEX [DEVICE GID-INDEX]
 *
 * Each rank sends MESSAGES to each other rank. With two devices, every other rank is on
 * the second. Device and software match in turn, ROUNDS times each. For each of them
 * the round of median length is printed, because a short round, or the first one, says
 * little.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tagged.h"

#define MAX_ROUNDS 99

struct options options = { .ranks = 8, .messages = 100, .seed = 1, .rounds = 1 };

/* The ranks, from start to end. Not 0 if one failed. */
static int run(struct shared *shared)
{
	pid_t pid[MAX_RANKS];
	int i, status, bad = 0;

	memset(shared, 0, sizeof(*shared));
	fflush(stdout);
	for (i = 0; i < options.ranks; i++) {
		pid[i] = fork();
		if (pid[i] < 0)
			die("fork");
		if (!pid[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			rank_run(shared, i);
			_exit(0);
		}
	}
	for (i = 0; i < options.ranks; i++) {
		pid_t ended = wait(&status);
		int k;

		if (ended < 0)
			die("wait");
		for (k = 0; k < options.ranks; k++) {
			if (pid[k] == ended)
				pid[k] = 0;
			/* The others would wait for it. */
			else if (status && !bad && pid[k])
				kill(pid[k], SIGKILL);
		}
		if (status && !bad)
			printf("a rank failed (status %x)\n", status);
		bad |= status;
	}
	return bad;
}

/* What all ranks together have to say. */
static struct outcome sum(const struct shared *shared)
{
	struct outcome all = {};
	int i;

	for (i = 0; i < options.ranks; i++) {
		const struct outcome *o = &shared->rank[i].outcome;

		all.by_device += o->by_device;
		all.kept += o->kept;
		all.compared += o->compared;
		all.cpu += o->cpu;
		if (o->seconds > all.seconds)
			all.seconds = o->seconds;
	}
	return all;
}

static int by_seconds(const void *a, const void *b)
{
	double d = ((const struct outcome *)a)->seconds - ((const struct outcome *)b)->seconds;

	return (d > 0) - (d < 0);
}

static void show(const char *name, struct outcome *rounds)
{
	int total = options.ranks * (options.ranks - 1) * options.messages;
	const struct outcome *o = &rounds[options.rounds / 2];

	qsort(rounds, options.rounds, sizeof(*rounds), by_seconds);
	printf("%-12s%10d%10u%10u%12llu%10.2f%10.2f%10.0f\n", name, total, o->by_device,
	       o->kept, (unsigned long long)o->compared, o->seconds, o->cpu,
	       total / o->seconds);
}

int main(int argc, char **argv)
{
	static struct outcome outcomes[2][MAX_ROUNDS];
	struct shared *shared;
	int c, left, i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt(argc, argv, "r:m:s:n:")) != -1) {
		switch (c) {
		case 'r': options.ranks = atoi(optarg); break;
		case 'm': options.messages = atoi(optarg); break;
		case 's': options.seed = atoi(optarg); break;
		case 'n': options.rounds = atoi(optarg); break;
		default: return 2;
		}
	}
	left = argc - optind;
	if ((left != 2 && left != 4) || options.ranks < 2 || options.ranks > MAX_RANKS ||
	    options.messages < 1 || options.messages > 2000 || options.rounds < 1 ||
	    options.rounds > MAX_ROUNDS)
		return 2;
	options.device[0] = argv[optind];
	options.gid_index[0] = atoi(argv[optind + 1]);
	options.device[1] = argv[argc - 2];
	options.gid_index[1] = atoi(argv[argc - 1]);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	printf("%d ranks, %d messages from each to each, seed %u\n", options.ranks,
	       options.messages, options.seed);
	printf("%-12s%10s%10s%10s%12s%10s%10s%10s\n", "matched by", "messages",
	       "by device", "kept", "compared", "seconds", "CPU s", "1/s");
	for (i = 0; i < options.rounds; i++) {
		for (options.by_device = 1; options.by_device >= 0; options.by_device--) {
			if (run(shared))
				return 1;
			outcomes[options.by_device][i] = sum(shared);
		}
	}
	show("the device", outcomes[1]);
	show("software", outcomes[0]);
	printf("all messages came once, whole and in order\n");
	return 0;
}
