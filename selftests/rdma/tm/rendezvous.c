// SPDX-License-Identifier: GPL-2.0
/*
 * Tag matching with memory that is read by request or is not present: rendezvous, and
 * on-demand paging.
 *
 *   rendezvous                                lists the cases
 *   rendezvous CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 */
#include <sys/mman.h>

#include "tag_ends.h"

/* Sends a rendezvous request of LEN bytes for SIZE bytes of data at VA. */
static enum ibv_wc_status request_at(struct tag_ends *self, uint64_t tag, uint32_t len, uint64_t va,
				     uint32_t size, uint32_t rkey)
{
	struct ibv_rvh *r = (struct ibv_rvh *)(self->from + 16);

	header(self, IBV_TMH_RNDV, tag);
	*r = (struct ibv_rvh) {
		.va = htobe64(va), .rkey = htobe32(rkey), .len = htobe32(size),
	};
	return send_bytes(self, len);
}

static enum ibv_wc_status request(struct tag_ends *self, uint64_t tag, uint32_t len, uint32_t size,
				  uint32_t rkey)
{
	return request_at(self, tag, len, (uintptr_t)self->from + 65536, size, rkey);
}

static void rendezvous_of(struct tag_ends *self, uint32_t size)
{
	struct ibv_wc wc;
	struct tm_done d;
	uint32_t i;

	for (i = 0; i < size; i++)
		self->from[65536 + i] = 17 + i * 7;
	memset(self->to, 0, 400000);
	memset(self->a.buf, 0, 2 * PAIR_SIZE);
	CHECK(!post_receive(&self->a, 8));
	add(self, 4, 44, ALL, 64, size + 100);
	CHECK(request(self, 44, 48, size, self->from_mr->rkey) == IBV_WC_SUCCESS);
	d = next_done(self);
	CHECK(d.wr_id == 4 && d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV && d.flags == IBV_WC_TM_MATCH);
	CHECK(d.tag == 44 && d.priv == 0xabcd0123);
	d = next_done(self);
	CHECK(d.wr_id == 4 && d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV && d.flags == IBV_WC_TM_DATA_VALID);
	CHECK(d.len == size);
	CHECK(is_data(self, 64, size, 17) && !self->to[64 + size] && !self->to[63]);
	/* The notice: the request's headers with another operation. */
	CHECK(next_wc(self->answers, &wc) == 1);
	CHECK(wc.wr_id == 8 && wc.status == IBV_WC_SUCCESS);
	CHECK(wc.opcode == IBV_WC_RECV && wc.byte_len == 32);
	self->from[0] = IBV_TMH_FIN;
	CHECK(!memcmp(self->a.buf + PAIR_SIZE, self->from, 32));
}

static void rendezvous(struct tag_ends *self)
{
	rendezvous_of(self, 0);
	rendezvous_of(self, 1);
	rendezvous_of(self, 1024);
	rendezvous_of(self, 300001);
}

/*
 * Within a host, the call that sends the request does all that follows: no thread has
 * to find a CPU among processes that poll.
 */
static void rendezvous_at_once(struct tag_ends *self)
{
	struct ibv_wc wc;
	struct tm_done d;
	int i;

	if (self->on.name[0] != self->on.name[1])
		return;
	for (i = 0; i < 100; i++) {
		CHECK(!post_receive(&self->a, 8));
		add(self, 4, 44, ALL, 0, 100000);
		CHECK(request(self, 44, 32, 100000, self->from_mr->rkey) == IBV_WC_SUCCESS);
		CHECK(tm_poll(&self->queue, &d) && !d.status && d.flags == IBV_WC_TM_MATCH);
		CHECK(tm_poll(&self->queue, &d) && !d.status && d.flags == IBV_WC_TM_DATA_VALID);
		CHECK(ibv_poll_cq(self->answers, 1, &wc) == 1 && !wc.status && wc.wr_id == 8);
	}
}

/* The next completion: tag WR_ID took a request of which LEN bytes landed, without its data. */
static void is_incomplete(struct tag_ends *self, uint64_t wr_id, uint32_t len)
{
	struct tm_done d = next_done(self);

	CHECK(d.wr_id == wr_id && d.status == IBV_WC_TM_RNDV_INCOMPLETE);
	CHECK(d.opcode == IBV_WC_TM_RECV && d.flags == IBV_WC_TM_MATCH);
	CHECK(d.tag == 44 && d.priv == 0xabcd0123);
	CHECK(d.len == len && !memcmp(self->to, self->from, len));
}

static void rendezvous_incomplete(struct tag_ends *self)
{

	/* The buffer holds less than the data; it gets the headers. */
	add(self, 4, 44, ALL, 0, 100);
	CHECK(request(self, 44, 48, 101, self->from_mr->rkey) == IBV_WC_SUCCESS);
	is_incomplete(self, 4, 48);
	/* A request that is longer than it may be. */
	add(self, 5, 44, ALL, 0, 100);
	CHECK(request(self, 44, 65, 50, self->from_mr->rkey) == IBV_WC_SUCCESS);
	is_incomplete(self, 5, 65);
	/* Of many packets; the buffer holds its start. */
	add(self, 6, 44, ALL, 0, 100);
	memset(self->to, 0, 200);
	CHECK(request(self, 44, 5000, 50, self->from_mr->rkey) == IBV_WC_SUCCESS);
	is_incomplete(self, 6, 100);
	CHECK(!self->to[100]);
	/* The connection lives; an unexpected request goes to software. */
	post_buffer(self, 71, 8192, 4096);
	CHECK(request(self, 45, 32, 50, self->from_mr->rkey) == IBV_WC_SUCCESS);
	is_unexpected(self, 71, 32, 0);
	CHECK(!memcmp(self->to + 8192, self->from, 32));
}

static void rendezvous_bad_key(struct tag_ends *self)
{
	struct tm_done d;

	add(self, 4, 44, ALL, 0, 100);
	CHECK(request(self, 44, 32, 100, self->from_mr->rkey ^ 0x5500) == IBV_WC_SUCCESS);
	CHECK(next_done(self).flags == IBV_WC_TM_MATCH);
	d = next_done(self);
	CHECK(d.opcode == IBV_WC_TM_RECV && d.wr_id == 4);
	CHECK(d.status == IBV_WC_REM_ACCESS_ERR);
}

/* More than any message has, for a tag that says that it has the room. */
static void rendezvous_huge(struct tag_ends *self)
{
	uint32_t size[] = { UINT32_MAX, UINT32_MAX - 1, (1u << 31) + 1 };
	struct tm_done d;
	unsigned int i;

	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		add(self, i, 44, ALL, 0, i ? 4096 : UINT32_MAX);
		CHECK(request(self, 44, 48, size[i], self->from_mr->rkey) == IBV_WC_SUCCESS);
		d = next_done(self);
		printf("%u bytes: status %d\n", size[i], d.status);
		CHECK(d.wr_id == i && d.status == IBV_WC_TM_RNDV_INCOMPLETE);
		CHECK(d.len == 48 && !memcmp(self->to, self->from, 48));
	}
	/* The connection lives. */
	rendezvous_of(self, 1024);
}

/* Data that begin before the end of all addresses and end behind their start. */
static void rendezvous_wraps(struct tag_ends *self)
{
	struct tm_done d;

	memset(self->to, 0x5a, AREA);
	add(self, 4, 44, ALL, 0, 100);
	CHECK(request_at(self, 44, 32, UINT64_MAX - 10, 100,
			 self->from_mr->rkey) == IBV_WC_SUCCESS);
	CHECK(next_done(self).flags == IBV_WC_TM_MATCH);
	d = next_done(self);
	CHECK(d.opcode == IBV_WC_TM_RECV && d.wr_id == 4);
	CHECK(d.status == IBV_WC_REM_ACCESS_ERR);
	CHECK(self->to[0] == 0x5a && !memcmp(self->to, self->to + 1, AREA - 1));
}

/* As many requests as this come before the receiver may send. */
#define MANY 40
/* Messages that wait in a queue pair to be fetched. */
#define WAITING 32

/*
 * A receiver in RTR takes as many requests as can wait and tells the others to come
 * again. In RTS it fetches all.
 */
static void rendezvous_waits(struct tag_ends *self)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_rvh r = { .rkey = htobe32(self->from_mr->rkey), .len = htobe32(100) };
	struct ibv_sge sge = { 0, 32, self->from_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	unsigned long before = come_again(self->on.name[1]);
	int i, fetched;
	double end = deadline(20);
	struct ibv_wc wc;
	struct tm_done d;

	CHECK(!ibv_modify_qp(self->b.qp, &attr, IBV_QP_STATE));
	ready_end(&self->b, &self->a);
	for (i = 0; i < MANY; i++) {
		CHECK(!post_receive(&self->a, i));
		add(self, i, 100 + i, ALL, 100 * i, 100);
		memset(self->from + 65536 + 100 * i, i + 1, 100);
		tm_header(self->from + 64 * i, IBV_TMH_RNDV, 100 + i);
		r.va = htobe64((uintptr_t)self->from + 65536 + 100 * i);
		memcpy(self->from + 64 * i + 16, &r, sizeof(r));
		sge.addr = (uintptr_t)self->from + 64 * i;
		wr.wr_id = i;
		CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
	}
	for (i = 0; i < WAITING; i++) {
		d = next_done(self);
		CHECK(d.wr_id == (uint64_t)i && !d.status && d.flags == IBV_WC_TM_MATCH);
		CHECK(next_wc(self->a.cq, &wc) == 1 && wc.wr_id == (uint64_t)i && !wc.status);
	}
	/* The next has come more than once. */
	while (come_again(self->on.name[1]) < before + 3)
		CHECK(!is_past(end));
	nothing_done(self);
	CHECK(ibv_poll_cq(self->a.cq, 1, &wc) == 0 && ibv_poll_cq(self->answers, 1, &wc) == 0);

	start_end(&self->b, PATIENT);
	for (fetched = 0; fetched < MANY;) {
		d = next_done(self);
		CHECK(!d.status && d.opcode == IBV_WC_TM_RECV);
		if (d.flags == IBV_WC_TM_MATCH) {
			CHECK(d.wr_id == (uint64_t)i++);
			continue;
		}
		CHECK(d.flags == IBV_WC_TM_DATA_VALID && d.len == 100);
		CHECK(d.wr_id == (uint64_t)fetched++);
	}
	CHECK(i == MANY && !memcmp(self->to, self->from + 65536, 100 * MANY));
	for (i = WAITING; i < MANY; i++)
		CHECK(next_wc(self->a.cq, &wc) == 1 && wc.wr_id == (uint64_t)i && !wc.status);
	for (i = 0; i < MANY; i++)
		CHECK(next_wc(self->answers, &wc) == 1 && wc.wr_id == (uint64_t)i && !wc.status);
	nothing_done(self);
}

/* The same memory, registered for on-demand paging. */
static void unpin(struct end *e, uint8_t *p, struct ibv_mr **mr)
{
	CHECK(!ibv_dereg_mr(*mr));
	*mr = ibv_reg_mr(e->pd, p, AREA, IBV_ACCESS_LOCAL_WRITE |
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	CHECK(*mr);
}

/* Clears the memory of the queue's end: its pages are not there any more. */
static void clear(struct tag_ends *self, int is_pinned)
{
	if (is_pinned)
		memset(self->to, 0, AREA);
	else
		CHECK(!madvise(self->to, AREA, MADV_DONTNEED));
}

/* Every kind of message. */
static void messages_on_demand(struct tag_ends *self, int is_pinned)
{
	uint32_t len[] = { 0, 1, 64, 1008, 5000 };
	struct tm_done d;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		clear(self, is_pinned);
		add(self, i, 100 + i, ALL, 4096 * i + 4000, 5000);
		CHECK(eager(self, 100 + i, len[i], i) == IBV_WC_SUCCESS);
		d = next_done(self);
		CHECK(d.wr_id == i && d.status == IBV_WC_SUCCESS);
		CHECK(d.opcode == IBV_WC_TM_RECV && d.tag == 100 + i);
		CHECK(d.flags & IBV_WC_TM_MATCH && d.priv == 0xabcd0123);
		/* It may be told in two parts. */
		if (!(d.flags & IBV_WC_TM_DATA_VALID))
			d = next_done(self);
		CHECK(d.wr_id == i && d.status == IBV_WC_SUCCESS);
		CHECK(d.flags & IBV_WC_TM_DATA_VALID && d.len == len[i]);
		CHECK(is_data(self, 4096 * i + 4000, len[i], i));
		CHECK(!self->to[4096 * i + 4000 + len[i]]);
		nothing_done(self);
	}
	clear(self, is_pinned);
	post_buffer(self, 72, 8192, 4096);
	CHECK(eager(self, 99, 100, 5) == IBV_WC_SUCCESS);
	is_unexpected(self, 72, 116, 0);
	CHECK(is_data(self, 8192 + 16, 100, 5));
	rendezvous(self);
	rendezvous_incomplete(self);
	d = sync_count(self, self->unexpected);
	CHECK(d.status == IBV_WC_SUCCESS && d.flags == 0);
}

static void on_demand(struct tag_ends *self)
{
	unpin(&self->a, self->from, &self->from_mr);
	messages_on_demand(self, 1);
	unpin(&self->b, self->to, &self->to_mr);
	messages_on_demand(self, 0);
}

/* What the sender promised is not there: the tag's receive ends with the connection. */
static void vanished(struct tag_ends *self)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *base = self->from;
	struct tm_done d;

	unpin(&self->a, self->from, &self->from_mr);
	self->from += page - 512;
	header(self, IBV_TMH_EAGER, 1);
	CHECK(!munmap(base + page, page));
	add(self, 1, 1, ALL, 0, 1024);
	CHECK(send_bytes(self, 616) == IBV_WC_LOC_PROT_ERR);
	self->from = base;
	/* On the wire, nothing was sent. */
	if (self->on.name[0] != self->on.name[1])
		return;
	CHECK(next_done(self).flags == IBV_WC_TM_MATCH);
	d = next_done(self);
	CHECK(d.wr_id == 1 && d.status == IBV_WC_WR_FLUSH_ERR);
}

static const CASES(struct tag_ends) cases[] = {
	{ "rendezvous", rendezvous },
	{ "rendezvous-at-once", rendezvous_at_once },
	{ "rendezvous-incomplete", rendezvous_incomplete },
	{ "rendezvous-bad-key", rendezvous_bad_key },
	{ "rendezvous-huge", rendezvous_huge },
	{ "rendezvous-wraps", rendezvous_wraps },
	{ "rendezvous-waits", rendezvous_waits },
	{ "on-demand", on_demand },
	{ "vanished", vanished },
	{}
};

int main(int argc, char **argv)
{
	static struct tag_ends self;

	return RUN_CASES_AROUND(&self, cases, make_tag_ends, free_tag_ends, argc, argv);
}
