// SPDX-License-Identifier: GPL-2.0
/*
 * A queue pair that is reset while the first of its requests waits for its memory. This
 * request is sent when the memory comes. The requests behind it are not sent;
 * ibv_modify_qp() would have to wait for them as well.
 *
 *   reset                                     lists the cases
 *   reset CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "asleep.h"
#include "guard.h"
#include "unreliable.h"

#define PAGES 8

/* A thread that resets a's queue pair. */
static int tid, is_over;

static void *reset(void *none)
{
	__atomic_store_n(&tid, gettid(), __ATOMIC_SEQ_CST);
	CHECK(!set_state(&a, IBV_QPS_RESET, -1));
	__atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
	return none;
}

static void post_pages(uint8_t *p, uint32_t key)
{
	struct ibv_send_wr *bad;
	int i;

	for (i = 0; i < PAGES; i++) {
		struct ibv_sge sge = { (uintptr_t)p + i * GUARD_PAGE, 1000, key };
		struct ibv_send_wr wr = request(&a, i, &sge);

		CHECK(!ibv_post_send(a.qp, &wr, &bad));
	}
}

/* How many of the requests were sent. */
static long sent_before_reset(uint8_t *p, uint32_t key)
{
	unsigned long before;
	pthread_t thread;
	int fd;

	/* The first is not there, and whoever wants it waits; the others are. */
	CHECK(!madvise(p, GUARD_PAGE, MADV_DONTNEED));
	fd = guard(p, 1);
	before = counter(device[0], "sent_pkts");
	post_pages(p, key);
	tid = is_over = 0;
	CHECK(!pthread_create(&thread, NULL, reset, NULL));
	while (!is_asleep(__atomic_load_n(&tid, __ATOMIC_SEQ_CST)) &&
	       !__atomic_load_n(&is_over, __ATOMIC_SEQ_CST))
		;
	give(fd, p, 1);
	CHECK(!pthread_join(thread, NULL));
	CHECK(state_of(a.qp) == IBV_QPS_RESET);
	CHECK(!close(fd));
	return counter(device[0], "sent_pkts") - before;
}

static void reset_meanwhile(enum ibv_qp_type of)
{
	struct ibv_mr *mr;
	long sent = 0;
	uint8_t *p;
	int tries;

	make_unreliable(of);
	fresh_counters(device[0]);
	p = mmap(NULL, PAGES * GUARD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	memset(p, 1, PAGES * GUARD_PAGE);
	mr = ibv_reg_mr(a.pd, p, PAGES * GUARD_PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	CHECK(mr);
	/* The reset may come before the run, and the memory after seconds: then none is sent. */
	for (tries = 0; !sent && tries < 20; tries++) {
		sent = sent_before_reset(p, mr->lkey);
		start_unreliable(&a, &b);
	}
	printf("%ld of %d, in %d tries\n", sent, PAGES, tries);
	CHECK(sent == 1);
	CHECK(!ibv_dereg_mr(mr) && !munmap(p, PAGES * GUARD_PAGE));
	free_unreliable();
}

static void datagrams(void)
{
	reset_meanwhile(IBV_QPT_UD);
}

static void connection(void)
{
	reset_meanwhile(IBV_QPT_UC);
}

static const struct check_case cases[] = {
	{ "reset_datagrams", datagrams },
	{ "reset_connection", connection },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	return main_of_cases(cases, argc, argv);
}
