// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent memory: which memory may be registered as such, and FLUSH to persistence.
 * The kernel's calls to write back the caches of this memory are added up.
 *
 *   persistent                                     lists the cases
 *   persistent CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 *
 * $DEVDAX is the character device of such memory. End b, on the second device, has the
 * memory; end a uses it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>

#include "remote.h"

#define SIZE (2 << 20)
#define GLOBAL IBV_ACCESS_FLUSH_GLOBAL
#define PERSISTENT IBV_ACCESS_FLUSH_PERSISTENT
#define TRACING "/sys/kernel/tracing/"
#define PROBE TRACING "events/selftest/write_back/"

/* The memory, with a page of another kind in front of it and one behind. */
static uint8_t *memory;
/* The same memory, seen from elsewhere. */
static const uint8_t *view;
static struct ibv_qp_ex *qp;

static int set(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_TRUNC), ok;

	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok;
}

static void probe_off(void)
{
	set(PROBE "enable", "0");
	set(TRACING "kprobe_events", "-:selftest/write_back\n");
}

static void probe_on(void)
{
	/* A run that was killed may have left it. */
	probe_off();
	CHECK(set(TRACING "kprobe_events", "p:selftest/write_back arch_wb_cache_pmem len=$arg2:u64\n"));
	CHECK(set(PROBE "enable", "1"));
	CHECK(set(TRACING "trace", ""));
}

/* Bytes that were written back since the last time. */
static uint64_t written_back(void)
{
	FILE *f = fopen(TRACING "trace", "r");
	uint64_t sum = 0;
	char line[512];

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		const char *len = strstr(line, "len=");

		if (line[0] != '#' && len)
			sum += strtoull(len + 4, NULL, 10);
	}
	fclose(f);
	CHECK(set(TRACING "trace", ""));
	return sum;
}

/* How often something was written back, ever. Tracing goes on while it is read. */
static unsigned long times_written_back(void)
{
	FILE *f = fopen(TRACING "kprobe_profile", "r");
	unsigned long hits = 0;

	CHECK(f);
	CHECK(fscanf(f, " write_back %lu", &hits) == 1);
	fclose(f);
	return hits;
}

static void map_memory(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	int fd = open(getenv("DEVDAX"), O_RDWR);
	uint8_t *p;

	CHECK(fd >= 0);
	p = mmap(NULL, SIZE + 2 * PAGE, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	memory = p + PAGE;
	CHECK(mmap(memory, SIZE, rw, MAP_SHARED | MAP_FIXED, fd, 0) == memory);
	view = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(view != MAP_FAILED && !close(fd));
	memset(memory, 0, SIZE);
}

static void begin(struct pair *self)
{
	map_memory();
	make_ends(self);
	qp = extended(&self->a);
	join(self);
	allow_flush(self, GLOBAL | PERSISTENT);
	probe_on();
}

static void end(struct pair *self)
{
	probe_off();
	free_pair(self);
	CHECK(!munmap(memory - PAGE, SIZE + 2 * PAGE) && !munmap((void *)view, SIZE));
}

/* After a refusal. */
static void again(struct pair *self)
{
	renew(self);
	allow_flush(self, GLOBAL | PERSISTENT);
}

static struct ibv_mr *region(struct pair *self, uint8_t *addr, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(self->b.pd, addr, length, access);

	CHECK(mr);
	return mr;
}

static int flush(struct pair *self, const void *addr, uint32_t key, size_t length)
{
	return flush_by(self, qp, (uintptr_t)addr, key, length, IBV_FLUSH_PERSISTENT,
			IBV_FLUSH_RANGE);
}

/* All that KEY names, whatever the range. */
static int flush_all(struct pair *self, uint32_t key)
{
	return flush_by(self, qp, 5, key, 1 << 30, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
}

/* A FLUSH that succeeds, and writes back what it is to. */
static void persists(int got, uint64_t bytes)
{
	CHECK(got == IBV_WC_SUCCESS);
	got = written_back() == bytes;
	CHECK(got);
}

/* One that is refused with GOT, and does not. */
static void does_not(struct pair *self, int got, int want)
{
	if (got != want)
		printf("%s\n", ibv_wc_status_str(got));
	CHECK(got == want);
	CHECK(!written_back());
	again(self);
}

static int not_registered(struct pair *self, uint8_t *addr, size_t length, int access)
{
	errno = 0;
	return !ibv_reg_mr(self->b.pd, addr, length, access) && errno == EINVAL;
}

static void registered(struct pair *self)
{
	struct ibv_device_attr_ex attr;

	begin(self);
	CHECK(!ibv_query_device_ex(self->b.ctx, NULL, &attr));
	CHECK(attr.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_PERSISTENT);
	CHECK(!ibv_dereg_mr(region(self, memory, SIZE, ALL | PERSISTENT)));
	CHECK(!ibv_dereg_mr(region(self, memory + 1, SIZE - 1, PERSISTENT | GLOBAL)));
	/* Other memory, alone and with some that is persistent. */
	CHECK(not_registered(self, self->b.buf, PAGE, ALL | PERSISTENT));
	CHECK(not_registered(self, memory - PAGE, PAGE, PERSISTENT));
	CHECK(not_registered(self, memory - 1, SIZE, ALL | PERSISTENT));
	CHECK(not_registered(self, memory, SIZE + 1, ALL | PERSISTENT));
	CHECK(not_registered(self, memory + SIZE - 1, 2, ALL | PERSISTENT));
	CHECK(!ibv_dereg_mr(region(self, memory - PAGE, SIZE + 2 * PAGE, ALL)));
	CHECK(!written_back());
	end(self);
}

static void flushed(struct pair *self)
{
	const size_t length = SIZE - 200, many = (1 << 20) + 17;
	struct ibv_mr *mr, *zero;
	uint8_t *at;

	begin(self);
	at = memory + 100;
	mr = region(self, at, length, ALL | GLOBAL | PERSISTENT);
	memset(self->a.buf, 0x5a, PAGE);
	CHECK(write_by(self, (uintptr_t)at + 4000, mr->rkey, 3000) == IBV_WC_SUCCESS);
	CHECK(!written_back());
	persists(flush(self, at + 4000, mr->rkey, 3000), 3000);
	CHECK(!memcmp(view + 4100, self->a.buf, 3000) && !view[4099] && !view[7100]);
	persists(flush(self, at + 1, mr->rkey, 1), 1);
	persists(flush(self, at + 5000, mr->rkey, many), many);
	persists(flush(self, at, mr->rkey, length), length);
	persists(flush(self, at, mr->rkey, 0), 0);
	persists(flush_all(self, mr->rkey), length);
	/* For others to see it is enough that it is written. */
	persists(flush_by(self, qp, (uintptr_t)at, mr->rkey, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE),
		 0);
	persists(flush_by(self, qp, (uintptr_t)at, mr->rkey, 64,
			  IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE), 64);
	zero = region(self, at, 5000, ALL | PERSISTENT | IBV_ACCESS_ZERO_BASED);
	persists(flush(self, (void *)10, zero->rkey, 4990), 4990);
	persists(flush_all(self, zero->rkey), 5000);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(zero));
	end(self);
}

static void refused(struct pair *self)
{
	struct ibv_mr *mr, *global;

	begin(self);
	mr = region(self, memory, 2 * PAGE, ALL | PERSISTENT);
	global = region(self, memory, 2 * PAGE, ALL | GLOBAL);
	/* The region has not this kind, or only one of two. */
	does_not(self, flush(self, memory, global->rkey, 64), IBV_WC_REM_ACCESS_ERR);
	does_not(self, flush_all(self, global->rkey), IBV_WC_REM_ACCESS_ERR);
	does_not(self, flush_by(self, qp, (uintptr_t)memory, mr->rkey, 64,
				IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE),
		 IBV_WC_REM_ACCESS_ERR);
	does_not(self,
		 flush_by(self, qp, (uintptr_t)memory, mr->rkey, 64, IBV_FLUSH_GLOBAL,
			  IBV_FLUSH_RANGE), IBV_WC_REM_ACCESS_ERR);
	does_not(self, flush(self, memory + PAGE, mr->rkey, PAGE + 1), IBV_WC_REM_ACCESS_ERR);
	does_not(self, flush(self, memory, mr->rkey + 1, 64), IBV_WC_REM_ACCESS_ERR);
	/* The queue pair has not. */
	allow_flush(self, 0);
	does_not(self, flush(self, memory, mr->rkey, 64), IBV_WC_REM_INV_REQ_ERR);
	allow_flush(self, GLOBAL);
	does_not(self, flush(self, memory, mr->rkey, 64), IBV_WC_REM_INV_REQ_ERR);
	allow_flush(self, PERSISTENT);
	persists(flush(self, memory, mr->rkey, 64), 64);
	does_not(self, flush_by(self, qp, (uintptr_t)memory, global->rkey, 64, IBV_FLUSH_GLOBAL,
				IBV_FLUSH_RANGE), IBV_WC_REM_INV_REQ_ERR);
	CHECK(!ibv_dereg_mr(global) && !ibv_dereg_mr(mr));
	does_not(self, flush(self, memory, mr->rkey, 64), IBV_WC_REM_ACCESS_ERR);
	end(self);
}

static void window(struct pair *self)
{
	struct ibv_mr *mr, *plain;
	struct ibv_mw *mw;

	begin(self);
	mr = region(self, memory, 4 * PAGE,
		    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | PERSISTENT);
	plain = region(self, memory, 4 * PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(self->b.pd, IBV_MW_TYPE_1);
	CHECK(mw);
	CHECK(bind1(self, mw, mr, memory + 10, 5000, PERSISTENT) == IBV_WC_SUCCESS);
	persists(flush(self, memory + 10, mw->rkey, 4999), 4999);
	persists(flush_all(self, mw->rkey), 5000);
	does_not(self, flush(self, memory + 9, mw->rkey, 1), IBV_WC_REM_ACCESS_ERR);
	does_not(self, flush(self, memory + 10, mw->rkey, 5001), IBV_WC_REM_ACCESS_ERR);
	CHECK(bind1(self, mw, mr, memory, 5000, GLOBAL) == IBV_WC_SUCCESS);
	does_not(self, flush(self, memory, mw->rkey, 1), IBV_WC_REM_ACCESS_ERR);
	does_not(self, flush_all(self, mw->rkey), IBV_WC_REM_ACCESS_ERR);
	/* Of the region it is not known. */
	CHECK(bind1(self, mw, plain, memory, 5000, PERSISTENT) == IBV_WC_MW_BIND_ERR);
	again(self);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr) && !ibv_dereg_mr(plain));
	end(self);
}

static int not_changed(struct ibv_mr *mr, int flags, void *addr, size_t length, int access)
{
	errno = 0;
	return ibv_rereg_mr(mr, flags, NULL, addr, length, access) == IBV_REREG_MR_ERR_CMD &&
	       errno == EINVAL;
}

static void reregistered(struct pair *self)
{
	const int access = IBV_REREG_MR_CHANGE_ACCESS, move = IBV_REREG_MR_CHANGE_TRANSLATION;
	struct ibv_mr *mr, *other;

	begin(self);
	other = region(self, memory - PAGE, 2 * PAGE, ALL);
	CHECK(not_changed(other, access, NULL, 0, ALL | PERSISTENT));
	does_not(self, flush(self, memory, other->rkey, 64), IBV_WC_REM_ACCESS_ERR);
	CHECK(write_by(self, (uintptr_t)memory - 8, other->rkey, 16) == IBV_WC_SUCCESS);
	CHECK(!ibv_rereg_mr(other, access | move, NULL, memory, PAGE, ALL | PERSISTENT));
	persists(flush_all(self, other->rkey), PAGE);

	mr = region(self, memory, 2 * PAGE, ALL);
	does_not(self, flush(self, memory, mr->rkey, 64), IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_rereg_mr(mr, access, NULL, NULL, 0, ALL | PERSISTENT));
	persists(flush_all(self, mr->rkey), 2 * PAGE);
	/* Moved to where it cannot be. */
	CHECK(not_changed(mr, move, memory + SIZE - PAGE, 2 * PAGE, 0));
	CHECK(not_changed(mr, move | access, self->b.buf, PAGE, ALL | PERSISTENT));
	persists(flush_all(self, mr->rkey), 2 * PAGE);
	CHECK(!ibv_rereg_mr(mr, move, NULL, memory + PAGE, 3 * PAGE, 0));
	persists(flush_all(self, mr->rkey), 3 * PAGE);
	CHECK(!ibv_rereg_mr(mr, access, NULL, NULL, 0, ALL));
	does_not(self, flush(self, memory + PAGE, mr->rkey, 64), IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(other));
	end(self);
}

static void on_demand(struct pair *self)
{
	const int access = ALL | PERSISTENT | IBV_ACCESS_ON_DEMAND;
	struct ibv_mr *mr, *all;

	begin(self);
	/* What is there is looked at when it is flushed. */
	mr = region(self, memory - PAGE, SIZE + 2 * PAGE, access);
	all = region(self, NULL, SIZE_MAX, access);
	memset(self->a.buf, 0x77, PAGE);
	CHECK(write_by(self, (uintptr_t)memory - 8, mr->rkey, 1000) == IBV_WC_SUCCESS);
	persists(flush(self, memory, mr->rkey, 992), 992);
	CHECK(!memcmp(view, self->a.buf, 992));
	persists(flush(self, memory + 1, mr->rkey, SIZE - 1), SIZE - 1);
	persists(flush(self, memory + 1, all->rkey, PAGE), PAGE);
	does_not(self, flush(self, memory - 1, mr->rkey, 2), IBV_WC_REM_ACCESS_ERR);
	does_not(self, flush(self, self->b.buf, all->rkey, 64), IBV_WC_REM_ACCESS_ERR);
	does_not(self, flush_all(self, all->rkey), IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(all));
	mr = region(self, memory, SIZE, access);
	persists(flush_all(self, mr->rkey), SIZE);
	CHECK(!ibv_dereg_mr(mr));
	end(self);
}

/* The same memory so many times: a FLUSH of it all takes a while. */
#define TIMES 512

/* Events of E's queue pair. */
static int qp_events(struct end *e)
{
	struct pollfd p = { .fd = e->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;
	int n = 0;

	while (poll(&p, 1, 0) == 1) {
		CHECK(!ibv_get_async_event(e->ctx, &ev));
		ibv_ack_async_event(&ev);
		n += ev.event_type == IBV_EVENT_QP_ACCESS_ERR ||
		     ev.event_type == IBV_EVENT_QP_REQ_ERR;
	}
	return n;
}

/* A's READ, and a FLUSH of all that MR has; returns when that has begun. */
static void read_and_flush(struct pair *self, struct ibv_mr *mr)
{
	unsigned long before = times_written_back();
	double limit = deadline(20);

	ibv_wr_start(qp);
	qp->wr_id = 6;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_read(qp, self->b.mr->rkey, (uintptr_t)self->b.buf);
	ibv_wr_set_sge(qp, self->a.mr->lkey, (uintptr_t)self->a.buf, 2 * PAIR_SIZE);
	qp->wr_id = 7;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, mr->rkey, 5, 64, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	CHECK(!ibv_wr_complete(qp));
	while (times_written_back() == before)
		CHECK(!is_past(limit));
}

/* The next request of a's was done, or flushed; was it flushed? */
static int is_flushed(struct pair *self)
{
	int got = status(self->a.cq);

	CHECK(got == IBV_WC_SUCCESS || got == IBV_WC_WR_FLUSH_ERR);
	return got == IBV_WC_WR_FLUSH_ERR;
}

/*
 * ONE takes its queue pair to STATE while a FLUSH of all is executed. That is no fault of
 * the other, which goes on, nor of its own; and the FLUSH is flushed, or it was done.
 */
static void cut_off(struct pair *self, struct end *one, enum ibv_qp_state state)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR }, to = { .qp_state = state };
	int fd = open(getenv("DEVDAX"), O_RDWR), early = 0, i;
	unsigned long before;
	struct ibv_mr *mr;
	uint64_t bytes;
	uint8_t *all;

	CHECK(fd >= 0);
	all = mmap(NULL, (size_t)SIZE * TIMES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(all != MAP_FAILED);
	for (i = 0; i < TIMES; i++)
		CHECK(mmap(all + (size_t)SIZE * i, SIZE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED, fd, 0) == all + (size_t)SIZE * i);
	CHECK(!close(fd));
	begin(self);
	mr = region(self, all, (size_t)SIZE * TIMES, ALL | PERSISTENT);
	for (i = 0; i < 20 && !early; i++) {
		before = times_written_back();
		if (one == &self->b)
			CHECK(!post_receive(&self->b, 8));
		read_and_flush(self, mr);
		CHECK(!ibv_modify_qp(one->qp, &to, IBV_QP_STATE));
		if (one == &self->b) {
			/* Its receive is flushed when the FLUSH is over; RESET waits for that. */
			if (state == IBV_QPS_ERR)
				CHECK(status(self->b.cq) == IBV_WC_WR_FLUSH_ERR);
			bytes = (times_written_back() - before) * PAGE;
			CHECK(state_of(self->a.qp) == IBV_QPS_RTS);
			/* It would go on trying for long. */
			CHECK(!ibv_modify_qp(self->a.qp, &error, IBV_QP_STATE));
			is_flushed(self);
			early = is_flushed(self) && bytes < (uint64_t)SIZE * TIMES;
		} else {
			is_flushed(self);
			early = is_flushed(self);
			/* On the wire the receiver finishes what the sender does not wait for. */
			bytes = (times_written_back() - before) * PAGE;
			if (self->on.name[0] == self->on.name[1])
				early = early && bytes < (uint64_t)SIZE * TIMES;
			CHECK(state_of(self->b.qp) == IBV_QPS_RTS);
		}
		again(self);
		CHECK(!qp_events(&self->a) && !qp_events(&self->b));
	}
	CHECK(early);
	CHECK(!ibv_dereg_mr(mr));
	end(self);
	CHECK(!munmap(all, (size_t)SIZE * TIMES));
}

static void sender_fails(struct pair *self)
{
	cut_off(self, &self->a, IBV_QPS_ERR);
}

static void receiver_fails(struct pair *self)
{
	cut_off(self, &self->b, IBV_QPS_ERR);
}

static void receiver_is_reset(struct pair *self)
{
	cut_off(self, &self->b, IBV_QPS_RESET);
}

static const CASES(struct pair) cases[] = {
	{ "registered", registered },
	{ "flushed", flushed },
	{ "refused", refused },
	{ "window", window },
	{ "reregistered", reregistered },
	{ "on_demand", on_demand },
	{ "sender_fails", sender_fails },
	{ "receiver_fails", receiver_fails },
	{ "receiver_is_reset", receiver_is_reset },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct pair self;

	return RUN_CASES(&self, cases, argc, argv);
}
