// SPDX-License-Identifier: GPL-2.0
/*
 * Memory runs out in each verb: at its first allocation, at its second, and so on until
 * no allocation is left to fail. A verb that fails returns ENOMEM (EFAULT where a copy
 * from or to the process fails) and leaves nothing behind, and it succeeds when there
 * is memory.
 *
 *   faults                                        lists the verbs
 *   faults DEVICE GID-INDEX DEVICE GID-INDEX NETDEV [VERB]
 *                                 runs the verbs whose name contains VERB; prints a
 *                                 line "done NAME: HOW OFTEN" for each
 *
 * Linux 7.2 itself does not handle all of these errors. Therefore these points are left
 * out:
 *  - targets in ib_core after the driver created them (drivers/infiniband/core/verbs.c:
 *    create_xrc_qp_user() counts in the domain and does not undo that);
 *  - GET_CONTEXT by ioctl in ib_init_ucontext() (.../uverbs_std_types_device.c: the
 *    caller frees the context without rdma_restrack_put()); by write() it is here;
 *  - kernel/irq/proc.c:register_irq_proc(), which continues if it cannot create some
 *    files of /proc/irq/N: unregister_irq_proc() warns of these.
 * Responses of REREG_MR and RESIZE_CQ are copied after the change has been made: these
 * copies do not fail here.
 */
#define _GNU_SOURCE
#include "census.h"
#include "everyverb.h"
#include "fault.h"

/* More allocations than any verb has but those of links. */
#define MOST 2000
/* And more than these. */
#define NEVER (1u << 30)

static void set_where(enum where where)
{
	struct text both = fault_both(texts[UVERBS], texts[DRIVER]), none = { 0, 0 };

	switch (where) {
	case ANYWHERE:
		fault_among(both, none);
		break;
	case IN_DRIVER:
		fault_among(texts[DRIVER], none);
		break;
	case OPENING:
		/* When open() fails libibverbs waits for the file to appear. */
		fault_among(texts[IOCTL], texts[INIT_UCONTEXT]);
		break;
	case LINKS:
		fault_among(texts[DRIVER], texts[IRQ_PROC]);
		break;
	case CORE_LINKS:
		fault_among(texts[REGISTER], none);
		break;
	}
}

/* Runs CALL with its N-th allocation failing; LEFT is 0 if it had so many. */
static int attempt(int (*call)(void), unsigned int n, unsigned int *left)
{
	int ret;

	fault_at(n);
	ret = call();
	*left = fault_end();
	return ret;
}

/* What came of a verb. */
struct tally {
	unsigned int refused, survived, reversed, wrong;
};

static void is_refusal(const struct verb *v, struct tally *t, const char *what, unsigned int n,
		       int ret, unsigned int left, int copies)
{
	/* A socket that cannot be had is ENOBUFS: net/ipv4/af_inet.c:inet_create(). */
	if (!left && !v->never_fails &&
	    (ret == ENOMEM || (copies && ret == EFAULT) || (v->where == LINKS && ret == ENOBUFS)))
		return;
	printf("%s: %s %u: %s%s\n", v->name, what, n, strerror(ret),
	       left ? " without a fault" : "");
	t->wrong++;
}

/* The reverse of V, with faults; V is made again if it succeeded in spite of one. */
static void undo_with_faults(const struct verb *v, struct tally *t)
{
	unsigned int n, left;

	/* The answer to a call that destroys comes when it is too late to fail. */
	fault_copies(0);
	for (n = 1; n < MOST; n++) {
		int ret = attempt(v->undo, n, &left);

		if (ret) {
			is_refusal(v, t, "reverse, fault", n, ret, left, 0);
			t->reversed++;
		} else if (left) {
			return;
		} else {
			CHECK(!v->make());
		}
	}
	CHECK(!"an end");
}

/* How often something was wrong. */
static unsigned int faults_of(const struct verb *v)
{
	unsigned int step = v->step ? v->step : 1, most = v->most ? v->most : MOST;
	unsigned int n, left = 0;
	struct census before;
	struct tally t = { 0 };
	double start = now();

	if (v->before)
		CHECK(!v->before());
	set_where(v->where);
	take_census(&before);
	for (n = 1; n <= most && !left; n += step) {
		int ret;

		/* Without a fault, in the end. */
		if (v->most && n + step > most)
			n = NEVER;
		fault_copies(v->copies_last == 0);
		ret = attempt(v->make, n, &left);
		if (ret) {
			is_refusal(v, &t, "fault", n, ret, left, 1);
			t.refused++;
			if (v->kept)
				v->kept();
		} else {
			t.survived += !left;
			if (left && v->undo && !v->undo_apart)
				undo_with_faults(v, &t);
			else if (v->undo)
				CHECK(!v->undo());
		}
		if (!is_census(&before)) {
			printf("%s: fault %u%s\n", v->name, n, ret ? "" : ", survived");
			t.wrong++;
			take_census(&before);
		}
	}
	CHECK(left);
	if (v->after)
		CHECK(!v->after());
	printf("%s %s: %u refused, %u survived, %u of the reverse, %.1f s\n",
	       t.wrong ? "wrong" : "done", v->name, t.refused, t.survived, t.reversed,
	       now() - start);
	return t.wrong;
}

int main(int argc, char **argv)
{
	unsigned int wrong = 0;
	struct devices on;
	size_t i;

	for (i = 0; argc == 1 && i < verb_count; i++)
		puts(verbs[i].name);
	if (argc == 1)
		return 0;
	if (argc < 6)
		return 2;
	on.name[0] = argv[1];
	on.gid_index[0] = atoi(argv[2]);
	on.name[1] = argv[3];
	on.gid_index[1] = atoi(argv[4]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	fault_setup();
	prepare(&on, argv[5]);
	for (i = 0; i < verb_count; i++)
		if (argc == 6 || strstr(verbs[i].name, argv[6]))
			wrong += faults_of(&verbs[i]);
	return wrong != 0;
}
