// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug xroce on=both
/*
 * A queue pair that is reset while the first of its requests waits for its memory: the
 * reset does not wait for that, nothing is sent, and nothing completes. Another queue pair,
 * which waited before, tells: it still waits.
 *
 *   reset                                     lists the cases
 *   reset CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "asleep.h"
#include "guard.h"
#include "unreliable.h"

#define PAGES 8

static void post_page(struct unreliable *self, struct end *e, uint32_t id, uint8_t *p,
		      struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)p, 1000, mr->lkey };
	struct ibv_send_wr *bad, wr = request(self, e, id, &sge);

	CHECK(!ibv_post_send(e->qp, &wr, &bad));
}

/* Memory of E the first page of which is not there, and does not come; the others are. */
static struct ibv_mr *make_late(struct end *e, uint8_t **p, int *fd)
{
	struct ibv_mr *mr;

	*p = mmap(NULL, PAGES * GUARD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		  -1, 0);
	CHECK(*p != MAP_FAILED);
	memset(*p, 1, PAGES * GUARD_PAGE);
	mr = ibv_reg_mr(e->pd, *p, PAGES * GUARD_PAGE, IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_ON_DEMAND);
	CHECK(mr && !madvise(*p, GUARD_PAGE, MADV_DONTNEED));
	*fd = guard(*p, 1);
	return mr;
}

static void free_late(uint8_t *p, struct ibv_mr *mr, int fd)
{
	CHECK(!close(fd) && !ibv_dereg_mr(mr) && !munmap(p, PAGES * GUARD_PAGE));
}

/* Resets a while both wait, b for longer; whether b waited for longer than the reset took. */
static int resets_at_once(struct unreliable *self)
{
	struct ibv_mr *mr_a, *mr_b;
	uint8_t *late_a, *late_b;
	unsigned long before;
	int fd_a, fd_b, i, waits;
	struct ibv_wc wc = {};

	mr_a = make_late(&self->pair.a, &late_a, &fd_a);
	mr_b = make_late(&self->pair.b, &late_b, &fd_b);
	before = counter(self->pair.on.name[0], "sent_pkts");
	post_page(self, &self->pair.b, 100, late_b, mr_b);
	await_runs(1);
	for (i = 0; i < PAGES; i++)
		post_page(self, &self->pair.a, i, late_a + i * GUARD_PAGE, mr_a);
	await_runs(2);
	CHECK(!set_state(&self->pair.a, IBV_QPS_RESET, -1));
	waits = !ibv_poll_cq(self->pair.b.cq, 1, &wc);
	expect_none(&self->pair.a);
	give(fd_a, late_a, 1);
	CHECK(state_of(self->pair.a.qp) == IBV_QPS_RESET);
	CHECK(counter(self->pair.on.name[0], "sent_pkts") == before);
	/* What b sends is for nobody: a has no receive. */
	give(fd_b, late_b, 1);
	CHECK(!waits || next_wc(self->pair.b.cq, &wc) == 1);
	CHECK(wc.wr_id == 100);
	CHECK(!set_state(&self->pair.b, IBV_QPS_RESET, -1));
	/* They are as good as new. */
	start_unreliable(self, &self->pair.a, &self->pair.b);
	start_unreliable(self, &self->pair.b, &self->pair.a);
	message(self, &self->pair.a, 1, 1000);
	expect_none(&self->pair.a);
	free_late(late_a, mr_a, fd_a);
	free_late(late_b, mr_b, fd_b);
	return waits;
}

static void reset_meanwhile(struct unreliable *self, enum ibv_qp_type of)
{
	int tries;

	make_unreliable(self, of);
	fresh_counters(self->pair.on.name[0]);
	/* On a busy machine the wait may end by itself before the reset begins. */
	for (tries = 0; !resets_at_once(self); tries++)
		CHECK(tries < 3);
	free_unreliable(self);
}

static void datagrams(struct unreliable *self)
{
	reset_meanwhile(self, IBV_QPT_UD);
}

static void connection(struct unreliable *self)
{
	reset_meanwhile(self, IBV_QPT_UC);
}

static const CASES(struct unreliable) cases[] = {
	{ "reset_datagrams", datagrams },
	{ "reset_connection", connection },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct unreliable self;

	return RUN_CASES(&self, cases, argc, argv);
}
