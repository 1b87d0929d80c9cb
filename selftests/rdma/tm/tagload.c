// SPDX-License-Identifier: GPL-2.0
/*
 * Tag matching by the thousand: a list of the maximum length, and many senders to one
 * queue. See devices.h for the arguments; the senders are on the first device.
 */
#include "devices.h"
#include "senders.h"

#define LIST 100000
#define MESSAGES 48
/* Of the tags that are deleted, one of so many completes. */
#define SIGNALED 1000

static struct senders all;

static void many_senders(const struct devices *on)
{
	double end = deadline(60);

	senders_make(&all, on->name, on->gid_index);
	while (!senders_done(&all, MESSAGES)) {
		CHECK(!senders_step(&all, MESSAGES));
		CHECK(!is_past(end));
	}
	printf("%u matched, of these %u fetched; %u unexpected, %u without a tag\n",
	       all.matched, all.fetched, all.unexpected, all.untagged);
	CHECK(all.matched + all.unexpected + all.untagged == SENDERS * MESSAGES);
	/* Each kind was tried. */
	CHECK(all.fetched && all.unexpected && all.matched > all.fetched);
	senders_free(&all);
}

static uint32_t handle[LIST];

static int post(struct tag_queue *q, struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad;

	return ibv_post_srq_ops(q->srq, wr, &bad);
}

/* Adds LIST tags: I takes messages for I. */
static void add_all(struct tag_queue *q, struct ibv_sge sge, int flags)
{
	struct ibv_ops_wr wr = {
		.opcode = IBV_WR_TAG_ADD, .wr_id = 1,
		.tm.add = { .sg_list = &sge, .num_sge = 1, .mask = UINT64_MAX },
	};
	struct tm_done d;
	uint32_t i;

	for (i = 0; i < LIST; i++) {
		wr.tm.add.recv_wr_id = wr.tm.add.tag = i;
		wr.flags = i == LIST - 1 ? flags : 0;
		CHECK(!post(q, &wr));
		handle[i] = wr.tm.handle;
	}
	if (flags) {
		d = tm_next(q);
		CHECK(d.opcode == IBV_WC_TM_ADD && d.wr_id == 1 && !d.status);
	}
	CHECK(post(q, &wr) == ENOMEM);
}

/* Sends a message for TAG; its completion. */
static struct tm_done message(struct end *a, struct tag_queue *q, uint64_t tag)
{
	struct ibv_wc wc;

	tm_header(a->buf, IBV_TMH_EAGER, tag);
	memcpy(a->buf + TM_HDR, &tag, 8);
	CHECK(!post_send(a, 5, TM_HDR + 8));
	CHECK(next_wc(a->cq, &wc) == 1 && !wc.status);
	return tm_next(q);
}

static void taken(struct tm_done d, const struct end *b, uint64_t tag)
{
	CHECK(!d.status && d.opcode == IBV_WC_TM_RECV && d.wr_id == tag);
	CHECK(d.flags == (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID));
	CHECK(d.tag == tag && !memcmp(b->buf, &tag, 8));
}

static void long_list(const struct devices *on)
{
	struct tag_queue q;
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_DEL };
	struct ibv_sge sge;
	struct tm_done d;
	struct end a, b;
	uint32_t i, gone = 0;

	make_end(&a, on->name[0], on->gid_index[0]);
	make_end(&b, on->name[1], on->gid_index[1]);
	tm_make(&q, &b, (struct tag_queue_size) {
		.tags = LIST, .ops = 8192, .receives = 8, .cqe = 2048 });
	CHECK(!ibv_destroy_qp(b.qp));
	b.qp = tm_qp(&q, &b, 0);
	connect_end(&a, &b);
	connect_end(&b, &a);
	sge = (struct ibv_sge) { (uintptr_t)b.buf, PAIR_SIZE, b.mr->lkey };
	/* The kernel is told by the ring alone, and by a completion. */
	add_all(&q, sge, 0);
	taken(message(&a, &q, LIST - 1), &b, LIST - 1);
	taken(message(&a, &q, 0), &b, 0);
	for (i = 1; i < 1000; i++)
		taken(message(&a, &q, i * 99), &b, i * 99);
	/* Backwards; a delete of a tag that a message took fails, and completes. */
	for (i = LIST; i-- > 0;) {
		int took = !i || i == LIST - 1 || (i % 99 == 0 && i < 99000);

		wr.wr_id = i;
		wr.tm.handle = handle[i];
		wr.flags = i % SIGNALED == 1 ? IBV_OPS_SIGNALED : 0;
		CHECK(!post(&q, &wr));
		gone += took;
		while (tm_poll(&q, &d)) {
			CHECK(d.opcode == IBV_WC_TM_DEL);
			gone -= d.status == IBV_WC_TM_ERR;
			CHECK(d.status == IBV_WC_TM_ERR || d.wr_id % SIGNALED == 1);
		}
	}
	wr.opcode = IBV_WR_TAG_SYNC;
	wr.wr_id = LIST;
	wr.flags = IBV_OPS_SIGNALED;
	CHECK(!post(&q, &wr));
	while ((d = tm_next(&q)).wr_id != LIST)
		gone -= d.status == IBV_WC_TM_ERR;
	CHECK(!d.status && d.opcode == IBV_WC_TM_SYNC && !gone);
	/* Nothing is in the list: the message finds nothing. */
	tm_receive(&q, 77, sge);
	d = message(&a, &q, 500);
	CHECK(!d.status && d.wr_id == 77 && d.flags == 0);
	wr.tm.unexpected_cnt = 1;
	CHECK(!post(&q, &wr) && !tm_next(&q).status);
	/* The whole list once more, and the queue goes with it. */
	add_all(&q, sge, IBV_OPS_SIGNALED);
	taken(message(&a, &q, 54321), &b, 54321);
	CHECK(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp));
	tm_free(&q);
}

static const CASES(const struct devices) cases[] = {
	{ "long-list", long_list },
	{ "senders", many_senders },
	{}
};

int main(int argc, char **argv)
{
	static struct devices on;

	return RUN_CASES(&on, cases, argc, argv);
}
