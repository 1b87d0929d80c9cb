// SPDX-License-Identifier: GPL-2.0
/*
 * Tag matching with memory that is read by request or is not present: rendezvous, and
 * on-demand paging.
 *
 *   rendezvous                                lists the cases
 *   rendezvous CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 */
#include <sys/mman.h>

#include "tags.h"

/* Sends a rendezvous request of LEN bytes for SIZE bytes of data at VA. */
static enum ibv_wc_status request_at(uint64_t tag, uint32_t len, uint64_t va,
				     uint32_t size, uint32_t rkey)
{
	struct ibv_rvh *r = (struct ibv_rvh *)(from + 16);

	header(IBV_TMH_RNDV, tag);
	*r = (struct ibv_rvh) {
		.va = htobe64(va), .rkey = htobe32(rkey), .len = htobe32(size),
	};
	return send_bytes(len);
}

static enum ibv_wc_status request(uint64_t tag, uint32_t len, uint32_t size,
				  uint32_t rkey)
{
	return request_at(tag, len, (uintptr_t)from + 65536, size, rkey);
}

static void rendezvous_of(uint32_t size)
{
	struct ibv_wc wc;
	struct tm_done d;
	uint32_t i;

	for (i = 0; i < size; i++)
		from[65536 + i] = 17 + i * 7;
	memset(to, 0, 400000);
	memset(a.buf, 0, 2 * PAIR_SIZE);
	CHECK(!post_receive(&a, 8));
	add(4, 44, ALL, 64, size + 100);
	CHECK(request(44, 48, size, from_mr->rkey) == IBV_WC_SUCCESS);
	d = next_done();
	CHECK(d.wr_id == 4 && d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV && d.flags == IBV_WC_TM_MATCH);
	CHECK(d.tag == 44 && d.priv == 0xabcd0123);
	d = next_done();
	CHECK(d.wr_id == 4 && d.status == IBV_WC_SUCCESS);
	CHECK(d.opcode == IBV_WC_TM_RECV && d.flags == IBV_WC_TM_DATA_VALID);
	CHECK(d.len == size);
	CHECK(is_data(64, size, 17) && !to[64 + size] && !to[63]);
	/* The notice: the request's headers with another operation. */
	CHECK(next_wc(answers, &wc) == 1);
	CHECK(wc.wr_id == 8 && wc.status == IBV_WC_SUCCESS);
	CHECK(wc.opcode == IBV_WC_RECV && wc.byte_len == 32);
	from[0] = IBV_TMH_FIN;
	CHECK(!memcmp(a.buf + PAIR_SIZE, from, 32));
}

static void rendezvous(void)
{
	rendezvous_of(0);
	rendezvous_of(1);
	rendezvous_of(1024);
	rendezvous_of(300001);
}

/*
 * Within a host, the call that sends the request does all that follows: no thread has
 * to find a CPU among processes that poll.
 */
static void rendezvous_at_once(void)
{
	struct ibv_wc wc;
	struct tm_done d;
	int i;

	if (device[0] != device[1])
		return;
	for (i = 0; i < 100; i++) {
		CHECK(!post_receive(&a, 8));
		add(4, 44, ALL, 0, 100000);
		CHECK(request(44, 32, 100000, from_mr->rkey) == IBV_WC_SUCCESS);
		CHECK(tm_poll(&queue, &d) && !d.status && d.flags == IBV_WC_TM_MATCH);
		CHECK(tm_poll(&queue, &d) && !d.status && d.flags == IBV_WC_TM_DATA_VALID);
		CHECK(ibv_poll_cq(answers, 1, &wc) == 1 && !wc.status && wc.wr_id == 8);
	}
}

/* The next completion: tag WR_ID took a request of which LEN bytes landed, without its data. */
static void is_incomplete(uint64_t wr_id, uint32_t len)
{
	struct tm_done d = next_done();

	CHECK(d.wr_id == wr_id && d.status == IBV_WC_TM_RNDV_INCOMPLETE);
	CHECK(d.opcode == IBV_WC_TM_RECV && d.flags == IBV_WC_TM_MATCH);
	CHECK(d.tag == 44 && d.priv == 0xabcd0123);
	CHECK(d.len == len && !memcmp(to, from, len));
}

static void rendezvous_incomplete(void)
{

	/* The buffer holds less than the data; it gets the headers. */
	add(4, 44, ALL, 0, 100);
	CHECK(request(44, 48, 101, from_mr->rkey) == IBV_WC_SUCCESS);
	is_incomplete(4, 48);
	/* A request that is longer than it may be. */
	add(5, 44, ALL, 0, 100);
	CHECK(request(44, 65, 50, from_mr->rkey) == IBV_WC_SUCCESS);
	is_incomplete(5, 65);
	/* Of many packets; the buffer holds its start. */
	add(6, 44, ALL, 0, 100);
	memset(to, 0, 200);
	CHECK(request(44, 5000, 50, from_mr->rkey) == IBV_WC_SUCCESS);
	is_incomplete(6, 100);
	CHECK(!to[100]);
	/* The connection lives; an unexpected request goes to software. */
	post_buffer(71, 8192, 4096);
	CHECK(request(45, 32, 50, from_mr->rkey) == IBV_WC_SUCCESS);
	is_unexpected(71, 32, 0);
	CHECK(!memcmp(to + 8192, from, 32));
}

static void rendezvous_bad_key(void)
{
	struct tm_done d;

	add(4, 44, ALL, 0, 100);
	CHECK(request(44, 32, 100, from_mr->rkey ^ 0x5500) == IBV_WC_SUCCESS);
	CHECK(next_done().flags == IBV_WC_TM_MATCH);
	d = next_done();
	CHECK(d.opcode == IBV_WC_TM_RECV && d.wr_id == 4);
	CHECK(d.status == IBV_WC_REM_ACCESS_ERR);
}

/* More than any message has, for a tag that says that it has the room. */
static void rendezvous_huge(void)
{
	uint32_t size[] = { UINT32_MAX, UINT32_MAX - 1, (1u << 31) + 1 };
	struct tm_done d;
	unsigned int i;

	for (i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		add(i, 44, ALL, 0, i ? 4096 : UINT32_MAX);
		CHECK(request(44, 48, size[i], from_mr->rkey) == IBV_WC_SUCCESS);
		d = next_done();
		printf("%u bytes: status %d\n", size[i], d.status);
		CHECK(d.wr_id == i && d.status == IBV_WC_TM_RNDV_INCOMPLETE);
		CHECK(d.len == 48 && !memcmp(to, from, 48));
	}
	/* The connection lives. */
	rendezvous_of(1024);
}

/* Data that begin before the end of all addresses and end behind their start. */
static void rendezvous_wraps(void)
{
	struct tm_done d;

	memset(to, 0x5a, AREA);
	add(4, 44, ALL, 0, 100);
	CHECK(request_at(44, 32, UINT64_MAX - 10, 100, from_mr->rkey) == IBV_WC_SUCCESS);
	CHECK(next_done().flags == IBV_WC_TM_MATCH);
	d = next_done();
	CHECK(d.opcode == IBV_WC_TM_RECV && d.wr_id == 4);
	CHECK(d.status == IBV_WC_REM_ACCESS_ERR);
	CHECK(to[0] == 0x5a && !memcmp(to, to + 1, AREA - 1));
}

/* As many requests as this come before the receiver may send. */
#define MANY 40
/* Messages that wait in a queue pair to be fetched. */
#define WAITING 32

/*
 * A receiver in RTR takes as many requests as can wait and tells the others to come
 * again. In RTS it fetches all.
 */
static void rendezvous_waits(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_rvh r = { .rkey = htobe32(from_mr->rkey), .len = htobe32(100) };
	struct ibv_sge sge = { 0, 32, from_mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	unsigned long before = come_again(device[1]);
	int i, fetched;
	double end = deadline(20);
	struct ibv_wc wc;
	struct tm_done d;

	CHECK(!ibv_modify_qp(b.qp, &attr, IBV_QP_STATE));
	ready_end(&b, &a);
	for (i = 0; i < MANY; i++) {
		CHECK(!post_receive(&a, i));
		add(i, 100 + i, ALL, 100 * i, 100);
		memset(from + 65536 + 100 * i, i + 1, 100);
		tm_header(from + 64 * i, IBV_TMH_RNDV, 100 + i);
		r.va = htobe64((uintptr_t)from + 65536 + 100 * i);
		memcpy(from + 64 * i + 16, &r, sizeof(r));
		sge.addr = (uintptr_t)from + 64 * i;
		wr.wr_id = i;
		CHECK(!ibv_post_send(a.qp, &wr, &bad));
	}
	for (i = 0; i < WAITING; i++) {
		d = next_done();
		CHECK(d.wr_id == (uint64_t)i && !d.status && d.flags == IBV_WC_TM_MATCH);
		CHECK(next_wc(a.cq, &wc) == 1 && wc.wr_id == (uint64_t)i && !wc.status);
	}
	/* The next has come more than once. */
	while (come_again(device[1]) < before + 3)
		CHECK(!is_past(end));
	nothing_done();
	CHECK(ibv_poll_cq(a.cq, 1, &wc) == 0 && ibv_poll_cq(answers, 1, &wc) == 0);

	start_end(&b, PATIENT);
	for (fetched = 0; fetched < MANY;) {
		d = next_done();
		CHECK(!d.status && d.opcode == IBV_WC_TM_RECV);
		if (d.flags == IBV_WC_TM_MATCH) {
			CHECK(d.wr_id == (uint64_t)i++);
			continue;
		}
		CHECK(d.flags == IBV_WC_TM_DATA_VALID && d.len == 100);
		CHECK(d.wr_id == (uint64_t)fetched++);
	}
	CHECK(i == MANY && !memcmp(to, from + 65536, 100 * MANY));
	for (i = WAITING; i < MANY; i++)
		CHECK(next_wc(a.cq, &wc) == 1 && wc.wr_id == (uint64_t)i && !wc.status);
	for (i = 0; i < MANY; i++)
		CHECK(next_wc(answers, &wc) == 1 && wc.wr_id == (uint64_t)i && !wc.status);
	nothing_done();
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
static void clear(int is_pinned)
{
	if (is_pinned)
		memset(to, 0, AREA);
	else
		CHECK(!madvise(to, AREA, MADV_DONTNEED));
}

/* Every kind of message. */
static void messages_on_demand(int is_pinned)
{
	uint32_t len[] = { 0, 1, 64, 1008, 5000 };
	struct tm_done d;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		clear(is_pinned);
		add(i, 100 + i, ALL, 4096 * i + 4000, 5000);
		CHECK(eager(100 + i, len[i], i) == IBV_WC_SUCCESS);
		d = next_done();
		CHECK(d.wr_id == i && d.status == IBV_WC_SUCCESS);
		CHECK(d.opcode == IBV_WC_TM_RECV && d.tag == 100 + i);
		CHECK(d.flags & IBV_WC_TM_MATCH && d.priv == 0xabcd0123);
		/* It may be told in two parts. */
		if (!(d.flags & IBV_WC_TM_DATA_VALID))
			d = next_done();
		CHECK(d.wr_id == i && d.status == IBV_WC_SUCCESS);
		CHECK(d.flags & IBV_WC_TM_DATA_VALID && d.len == len[i]);
		CHECK(is_data(4096 * i + 4000, len[i], i));
		CHECK(!to[4096 * i + 4000 + len[i]]);
		nothing_done();
	}
	clear(is_pinned);
	post_buffer(72, 8192, 4096);
	CHECK(eager(99, 100, 5) == IBV_WC_SUCCESS);
	is_unexpected(72, 116, 0);
	CHECK(is_data(8192 + 16, 100, 5));
	rendezvous();
	rendezvous_incomplete();
	d = sync_count(unexpected);
	CHECK(d.status == IBV_WC_SUCCESS && d.flags == 0);
}

static void on_demand(void)
{
	unpin(&a, from, &from_mr);
	messages_on_demand(1);
	unpin(&b, to, &to_mr);
	messages_on_demand(0);
}

/* What the sender promised is not there: the tag's receive ends with the connection. */
static void vanished(void)
{
	uint8_t *base = from;
	struct tm_done d;

	unpin(&a, from, &from_mr);
	from += 4096 - 512;
	header(IBV_TMH_EAGER, 1);
	CHECK(!munmap(base + 4096, 4096));
	add(1, 1, ALL, 0, 1024);
	CHECK(send_bytes(616) == IBV_WC_LOC_PROT_ERR);
	from = base;
	/* On the wire, nothing was sent. */
	if (device[0] != device[1])
		return;
	CHECK(next_done().flags == IBV_WC_TM_MATCH);
	d = next_done();
	CHECK(d.wr_id == 1 && d.status == IBV_WC_WR_FLUSH_ERR);
}

static const struct check_case cases[] = {
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
	return main_of_tags(cases, argc, argv);
}
