// SPDX-License-Identifier: GPL-2.0
/*
 * A process that goes from CPU 0 to CPU 1 and uses one connection on both, for the tests
 * of where work is done.
 *
 *   wander CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 *
 * after-reads  READs in bulk on CPU 0, then SMALL small WRITEs on CPU 1
 * small        SMALL small WRITEs on CPU 0, then as many on CPU 1
 *
 * The trace in the directory $TRACE is on only during what is done on CPU 1.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "remote.h"

#define BULK (256 << 10)
#define READS 32
#define SMALL 400

static void go_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK(!sched_setaffinity(0, sizeof(set), &set));
}

static void trace(const char *on)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/tracing_on", getenv("TRACE"));
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0 && write(fd, on, 1) == 1);
	close(fd);
}

static void writes(struct pair *self)
{
	int i;

	for (i = 0; i < SMALL; i++)
		CHECK(write_by(self, (uintptr_t)self->b.buf, self->b.mr->rkey, 8) == IBV_WC_SUCCESS);
}

static void on_cpu_1(struct pair *self)
{
	go_to(1);
	trace("1");
	writes(self);
	trace("0");
}

static void after_reads(struct pair *self)
{
	uint8_t *to = aligned_alloc(4096, BULK), *from = aligned_alloc(4096, BULK);
	struct ibv_mr *ours, *theirs;
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
					.send_flags = IBV_SEND_SIGNALED };
	int i;

	go_to(0);
	make_pair(self);
	ours = ibv_reg_mr(self->a.pd, to, BULK, ALL);
	theirs = ibv_reg_mr(self->b.pd, from, BULK, ALL);
	CHECK(ours && theirs);
	sge = (struct ibv_sge) { (uintptr_t)to, BULK, ours->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)from;
	wr.wr.rdma.rkey = theirs->rkey;
	for (i = 0; i < READS; i++) {
		CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
		CHECK(status(self->a.cq) == IBV_WC_SUCCESS);
	}
	on_cpu_1(self);
	CHECK(!ibv_dereg_mr(ours) && !ibv_dereg_mr(theirs));
	free_pair(self);
}

static void small(struct pair *self)
{
	go_to(0);
	make_pair(self);
	writes(self);
	on_cpu_1(self);
	free_pair(self);
}

static const CASES(struct pair) cases[] = {
	{ "after-reads", after_reads },
	{ "small", small },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct pair self;

	return RUN_CASES(&self, cases, argc, argv);
}
