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
#include "everyverb.h"
#include "fault.h"

/* More allocations than any verb has but those of links. */
#define MOST 2000
/* And more than these. */
#define NEVER (1u << 30)

/* Callers among which a verb's allocations fail. */
enum where { ANYWHERE, IN_DRIVER, OPENING, LINKS, CORE_LINKS };

struct verb {
	const char *name;
	enum where where;
	/* What it needs, and its end. */
	int (*before)(void), (*after)(void);
	/* 0 or the value of errno. */
	int (*make)(void);
	/* The reverse. */
	int (*undo)(void);
	/* After a failure, checks that all is as it was. */
	void (*kept)(void);
	/* The reverse is more than one call: it has no faults. */
	int undo_apart;
	/* Its answer comes when it is too late to fail: copies do not. */
	int copies_last;
	/* It must succeed all the same: whoever posts is not to post again what is in the ring. */
	int never_fails;
	/* Not each fault, but one of so many; and no more than some. */
	unsigned int step, most;
};

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

#define VERB(text, make_it, undo_it, ...)					\
	{ .name = text, .make = make_it, .undo = undo_it, ##__VA_ARGS__ }

static const struct verb verbs[] = {
	VERB("open_device by write", write_context, undo_file, .undo_apart = 1),
	VERB("open_device", make_context, undo_context, .where = OPENING),
	VERB("alloc_pd", make_pd, undo_pd),
	VERB("reg_mr", make_mr, undo_mr),
	VERB("reg_mr on demand", make_odp, undo_mr),
	VERB("rereg_mr", rereg, NULL, .before = make_half, .after = undo_mr, .kept = region_kept,
	     .copies_last = 1),
	VERB("alloc_dm", make_dm, undo_dm),
	VERB("reg_dm_mr", make_dm_mr, undo_mr, .before = make_dm, .after = undo_dm),
	VERB("alloc_mw type 1", make_mw1, undo_mw),
	VERB("alloc_mw type 2", make_mw2, undo_mw),
	VERB("create_comp_channel", make_channel, undo_channel, .undo_apart = 1),
	VERB("create_cq", make_cq, undo_cq),
	VERB("resize_cq", resize, NULL, .before = make_cq_to_resize, .after = undo_cq,
	     .kept = cq_kept, .copies_last = 1),
	VERB("create_srq", make_srq, undo_srq),
	VERB("create_srq XRC", make_xrc_srq, undo_srq),
	VERB("create_srq TM", make_tagged_srq, undo_srq),
	VERB("modify_srq", modify_srq, NULL, .kept = srq_kept),
	VERB("open_xrcd", make_shared, undo_xrcd),
	VERB("open_xrcd again", make_again, undo_xrcd),
	VERB("open_xrcd private", make_private, undo_xrcd),
	VERB("create_qp RC", make_rc, undo_qp),
	VERB("create_qp RC for tags", make_tagged_rc, undo_qp),
	VERB("create_qp UC", make_uc, undo_qp),
	VERB("create_qp UD", make_ud, undo_qp),
	VERB("create_qp XRC_SEND", make_xrc_send, undo_qp),
	VERB("create_qp XRC_RECV", make_target, undo_qp, .where = IN_DRIVER),
	VERB("open_qp", open_target, undo_opened, .where = IN_DRIVER, .undo_apart = 1),
	VERB("modify_qp to INIT", to_init, to_reset, .before = make_rc, .after = undo_qp,
	     .kept = reset_kept),
	VERB("modify_qp to RTR", to_rtr, back_to_init, .before = make_rc_in_init,
	     .after = undo_qp, .kept = init_kept, .undo_apart = 1),
	VERB("modify_qp to RTS", to_rts, back_to_rtr, .before = make_rc_in_rtr,
	     .after = undo_qp, .kept = rtr_kept, .undo_apart = 1),
	VERB("create_xrc_rcv_qp", make_rcv_qp, undo_rcv_qp),
	VERB("modify_xrc_rcv_qp", modify_rcv_qp, NULL, .before = make_rcv_qp,
	     .after = undo_rcv_qp),
	VERB("query_xrc_rcv_qp", query_rcv_qp, NULL, .before = make_rcv_qp,
	     .after = undo_rcv_qp),
	VERB("reg_xrc_rcv_qp", register_rcv_qp, unregister_rcv_qp, .before = open_other,
	     .after = close_other),
	VERB("create_ah", make_ah, undo_ah),
	VERB("attach_mcast", attach, detach),
	VERB("post_send RC", send_rc, received, .before = expect_one, .after = last_one,
	     .undo_apart = 1, .copies_last = 1, .never_fails = 1),
	VERB("post_send UD", send_ud, NULL, .before = make_ah, .after = undo_ah, .copies_last = 1,
	     .never_fails = 1),
	VERB("link add", make_link_twice, NULL, .where = LINKS),
	VERB("link add in ib_core", make_link, undo_link, .where = CORE_LINKS, .undo_apart = 1,
	     .step = 1300, .most = 6000),
};

int main(int argc, char **argv)
{
	size_t i, n = sizeof(verbs) / sizeof(verbs[0]);
	unsigned int wrong = 0;

	for (i = 0; argc == 1 && i < n; i++)
		puts(verbs[i].name);
	if (argc == 1)
		return 0;
	if (argc < 6)
		return 2;
	device[0] = argv[1];
	gid_index[0] = atoi(argv[2]);
	device[1] = argv[3];
	gid_index[1] = atoi(argv[4]);
	netdev = argv[5];
	setvbuf(stdout, NULL, _IOLBF, 0);
	fault_setup();
	prepare();
	for (i = 0; i < n; i++)
		if (argc == 6 || strstr(verbs[i].name, argv[6]))
			wrong += faults_of(&verbs[i]);
	return wrong != 0;
}
