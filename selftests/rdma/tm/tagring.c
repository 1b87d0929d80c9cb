// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=120 debug xroce left
/*
 * What the library would not write to the ring of operations of a tag-matching queue:
 * operations that no list can have, an impossible index, and garbage while the kernel
 * reads. See devices.h for the arguments.
 *
 * Each case has a second queue, which another program could have. This queue has to
 * match as if nothing had happened.
 */
#include <pthread.h>
#include <stddef.h>
#include <sys/wait.h>

#include "devices.h"
#include "rings.h"
#include "tm.h"

#define TAGS 96
#define OPS 32
/* As many as there can be. */
#define MANY_OPS 8192
#define RECEIVES 16
/* From slot to slot of the ring of operations. */
#define STRIDE 128
#define MAGIC 0x7461677320207278ull
#define INDEX(handle) ((handle) & ((1u << XROCE_TM_INDEX_BITS) - 1))

/* A sender and a queue. */
struct line {
	struct end a, b;
	struct tag_queue q;
};

static struct line honest, hostile;

/* The queue's ring of operations, and how many were written to it. */
static struct ring ops;
static uint32_t written;

static void make_line_of(const struct devices *on, struct line *l, uint32_t depth)
{
	struct ibv_sge sge;
	int i;

	make_end(&l->a, on->name[0], on->gid_index[0]);
	make_end(&l->b, on->name[1], on->gid_index[1]);
	tm_make(&l->q, &l->b, (struct tag_queue_size) {
		.tags = TAGS, .ops = depth, .receives = RECEIVES, .cqe = 256 });
	CHECK(!ibv_destroy_qp(l->b.qp));
	l->b.qp = tm_qp(&l->q, &l->b, 0);
	connect_end(&l->a, &l->b);
	connect_end(&l->b, &l->a);
	sge = (struct ibv_sge) {
		(uintptr_t)l->b.buf + PAIR_SIZE, PAIR_SIZE, l->b.mr->lkey
	};
	for (i = 0; i < RECEIVES; i++)
		tm_receive(&l->q, 500 + i, sge);
}

static void make_line(const struct devices *on, struct line *l)
{
	make_line_of(on, l, OPS);
}

static void free_line(struct line *l)
{
	CHECK(!ibv_destroy_qp(l->a.qp) && !ibv_destroy_qp(l->b.qp));
	tm_free(&l->q);
	CHECK(!ibv_dereg_mr(l->a.mr) && !ibv_dereg_mr(l->b.mr));
	CHECK(!ibv_close_device(l->a.ctx) && !ibv_close_device(l->b.ctx));
}

static int is_ops(const struct ring *r)
{
	const struct xroce_tm_op_slot *first = first_slot(r, STRIDE);

	return first && first->wr_id == MAGIC && first->opcode == XROCE_TM_SYNC &&
	       first->flags == XROCE_TM_SIGNALED;
}

/* Finds the ring by an operation that the library writes to it, and has the kernel
 * execute that. From here on only raw operations may be posted. */
static void find_ops(struct tag_queue *q)
{
	struct ibv_ops_wr wr = {
		.wr_id = MAGIC, .opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_SIGNALED,
	}, *bad;
	static struct rings all;
	int i;

	CHECK(!ibv_post_srq_ops(q->srq, &wr, &bad));
	CHECK(tm_next(q).wr_id == MAGIC);
	all.count = 0;
	find_rings(&all, NULL);
	for (i = 0; i < all.count && !is_ops(&all.ring[i]); i++)
		;
	CHECK(i < all.count);
	ops = all.ring[i];
	written = 1;
}

static void write_op(const struct xroce_tm_op_slot *op)
{
	memcpy(ops.at + XROCE_RING_HDR_SIZE + written % OPS * STRIDE, op, sizeof(*op));
	store_index(&ops, ++written);
	CHECK(!srq_doorbell(hostile.q.srq));
}

/* An operation that must fail: its completion says so, asked for or not. */
static void refused(struct xroce_tm_op_slot op, enum ibv_wc_opcode opcode, uint32_t why)
{
	struct tm_done d;

	op.wr_id = 4711 + written;
	write_op(&op);
	d = tm_next(&hostile.q);
	CHECK(d.wr_id == op.wr_id && d.status == IBV_WC_TM_ERR);
	CHECK(d.opcode == opcode && d.vendor_err == why);
}

static struct xroce_tm_op_slot add_op(uint32_t handle, uint64_t tag)
{
	return (struct xroce_tm_op_slot) {
		.opcode = XROCE_TM_ADD, .handle = handle, .recv_wr_id = tag,
		.tag = tag, .mask = UINT64_MAX, .num_sge = 1,
		.sge = { { (uintptr_t)hostile.b.buf, PAIR_SIZE, hostile.b.mr->lkey } },
	};
}

/* Sends a message for TAG; how the sending ended. */
static enum ibv_wc_status send_to(struct line *l, uint64_t tag)
{
	struct ibv_wc wc;

	tm_header(l->a.buf, IBV_TMH_EAGER, tag);
	memcpy(l->a.buf + TM_HDR, &tag, 8);
	CHECK(!post_send(&l->a, 5, TM_HDR + 8));
	CHECK(next_wc(l->a.cq, &wc) == 1);
	return wc.status;
}

/* The tag is in the list, once. */
static void matches(struct line *l, uint64_t tag)
{
	struct tm_done d;

	memset(l->b.buf, 0, 8);
	CHECK(send_to(l, tag) == IBV_WC_SUCCESS);
	d = tm_next(&l->q);
	CHECK(!d.status && d.opcode == IBV_WC_TM_RECV && d.wr_id == tag);
	CHECK(d.flags == (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID));
	CHECK(d.tag == tag && !memcmp(l->b.buf, &tag, 8));
}

/* The other queue goes on. */
static void goes_on(uint64_t tag)
{
	struct ibv_sge sge = { (uintptr_t)honest.b.buf, PAIR_SIZE, honest.b.mr->lkey };
	struct ibv_ops_wr wr = {
		.opcode = IBV_WR_TAG_ADD, .tm.add = { .recv_wr_id = tag,
			.sg_list = &sge, .num_sge = 1, .tag = tag,
			.mask = UINT64_MAX } }, *bad;

	CHECK(!ibv_post_srq_ops(honest.q.srq, &wr, &bad));
	matches(&honest, tag);
}

static void start(const struct devices *on)
{
	struct xroce_tm_op_slot op;

	make_line(on, &honest);
	make_line(on, &hostile);
	find_ops(&hostile.q);
	op = add_op(3, 33);
	write_op(&op);
}

static void stop(void)
{
	struct tm_done d;

	goes_on(2);
	CHECK(!tm_poll(&hostile.q, &d));
	free_line(&hostile);
	free_line(&honest);
}

static void unknown_operations(const struct devices *on)
{
	struct xroce_tm_op_slot op;
	uint8_t bad[] = { 3, 4, 0x7f, 0x80, 0xff };
	unsigned int i;

	start(on);
	for (i = 0; i < sizeof(bad); i++) {
		op = add_op(4, 44);
		op.opcode = bad[i];
		refused(op, IBV_WC_TM_SYNC, XROCE_TM_ERR_OPCODE);
		op = add_op(4, 44);
		op.flags = bad[i] == 3 ? 4 : bad[i] & ~3;
		refused(op, IBV_WC_TM_SYNC, XROCE_TM_ERR_OPCODE);
	}
	matches(&hostile, 33);
	stop();
}

static void too_many_elements(const struct devices *on)
{
	struct xroce_tm_op_slot op;
	uint16_t bad[] = { 5, 6, 255, 256, 65535 };
	unsigned int i;

	start(on);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		op = add_op(4, 44);
		op.num_sge = bad[i];
		refused(op, IBV_WC_TM_ADD, XROCE_TM_ERR_SGE);
	}
	/* The handle is free: nothing of it was in the list. */
	op = add_op(4, 44);
	write_op(&op);
	matches(&hostile, 44);
	matches(&hostile, 33);
	stop();
}

/* The library does not post more masks than there may be. */
static void too_many_masks(const struct devices *on)
{
	struct xroce_tm_op_slot op;
	int i;

	start(on);
	/* One is that of the tag that is there; nothing matches these. */
	for (i = 1; i < 64; i++) {
		op = add_op(4 + i, UINT64_MAX);
		op.mask = 1ull << i;
		write_op(&op);
	}
	op = add_op(4, 44);
	op.mask = 0xff;
	refused(op, IBV_WC_TM_ADD, XROCE_TM_ERR_MASKS);
	matches(&hostile, 33);
	write_op(&op);
	matches(&hostile, 44);
	stop();
}

static void handles_of_others(const struct devices *on)
{
	uint32_t next = 1u << XROCE_TM_INDEX_BITS;
	struct xroce_tm_op_slot op, del = { .opcode = XROCE_TM_DEL };
	uint32_t bad[] = { TAGS, TAGS + 1, next - 1, UINT32_MAX, next | TAGS };
	unsigned int i;

	start(on);
	/* The other queue's tag has the same name, and stays. */
	op = add_op(5, 55);
	write_op(&op);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		refused(add_op(bad[i], 66), IBV_WC_TM_ADD, XROCE_TM_ERR_HANDLE);
		del.handle = bad[i];
		refused(del, IBV_WC_TM_DEL, XROCE_TM_ERR_HANDLE);
	}
	/* An entry that is in use, under its own name or another. */
	refused(add_op(5, 66), IBV_WC_TM_ADD, XROCE_TM_ERR_HANDLE);
	refused(add_op(5 + next, 66), IBV_WC_TM_ADD, XROCE_TM_ERR_HANDLE);
	/* Names of before and after. */
	del.handle = 5 + next;
	refused(del, IBV_WC_TM_DEL, XROCE_TM_ERR_HANDLE);
	matches(&hostile, 55);
	del.handle = 5;
	refused(del, IBV_WC_TM_DEL, XROCE_TM_ERR_HANDLE);
	op = add_op(5 + next, 77);
	write_op(&op);
	refused(del, IBV_WC_TM_DEL, XROCE_TM_ERR_HANDLE);
	del.handle = 5 + 2 * next;
	refused(del, IBV_WC_TM_DEL, XROCE_TM_ERR_HANDLE);
	matches(&hostile, 77);
	matches(&hostile, 33);
	stop();
}

static void wrong_counts(const struct devices *on)
{
	struct xroce_tm_op_slot op;
	uint32_t bad[] = { 1, 2, 0x7fffffff, 0x80000000 };
	unsigned int i;

	start(on);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		op = (struct xroce_tm_op_slot) {
			.opcode = XROCE_TM_SYNC, .unexpected_cnt = bad[i] };
		refused(op, IBV_WC_TM_SYNC, XROCE_TM_ERR_COUNT);
		op = add_op(6, 66);
		op.flags = XROCE_TM_COUNT;
		op.unexpected_cnt = bad[i];
		refused(op, IBV_WC_TM_ADD, XROCE_TM_ERR_COUNT);
		op = (struct xroce_tm_op_slot) {
			.opcode = XROCE_TM_DEL, .handle = 3, .flags = XROCE_TM_COUNT,
			.unexpected_cnt = bad[i] };
		refused(op, IBV_WC_TM_DEL, XROCE_TM_ERR_COUNT);
	}
	op = add_op(6, 66);
	write_op(&op);
	matches(&hostile, 66);
	matches(&hostile, 33);
	stop();
}

/* An index that the ring cannot have ends the queue: the doorbell says so, and a
 * message finds that out, too. */
static void index_out_of_range(const struct devices *on)
{
	uint32_t bad[] = { OPS + 1, 1000, 0x80000000, UINT32_MAX };
	enum ibv_wc_status status;
	struct ibv_async_event ev;
	struct tm_done d;
	unsigned int i;

	make_line(on, &honest);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		make_line(on, &hostile);
		find_ops(&hostile.q);
		store_index(&ops, written + bad[i]);
		if (i % 2) {
			CHECK(srq_doorbell(hostile.q.srq) == EIO);
			CHECK(srq_doorbell(hostile.q.srq) == EIO);
			/* Mended too late. */
			store_index(&ops, written);
			CHECK(srq_doorbell(hostile.q.srq) == EIO);
		}
		status = send_to(&hostile, 1);
		printf("index %u on: the sender sees %s\n", bad[i], ibv_wc_status_str(status));
		CHECK(status != IBV_WC_SUCCESS);
		CHECK(next_event(hostile.b.ctx, IBV_EVENT_SRQ_ERR, &ev));
		CHECK(ev.element.srq == hostile.q.srq);
		goes_on(i);
		while (tm_poll(&hostile.q, &d))
			CHECK(d.status);
		free_line(&hostile);
	}
	free_line(&honest);
}

static atomic_int stopped;

/* Every slot of the ring has an operation; it is always full. */
static void *keep_full(void *arg)
{
	(void)arg;
	while (!atomic_load(&stopped))
		store_index(&ops, atomic_load((_Atomic uint32_t *)&ring_hdr(&ops)->kernel_index) + MANY_OPS);
	return NULL;
}

/* Message I was delivered to the hostile queue as D says, and its receive is posted again. */
static void was_delivered(int i, const struct tm_done *d)
{
	struct ibv_sge sge = {
		(uintptr_t)hostile.b.buf + PAIR_SIZE, PAIR_SIZE, hostile.b.mr->lkey
	};
	unsigned int slot = i % RECEIVES;
	struct ibv_wc wc;

	CHECK(!d->status && d->opcode == IBV_WC_TM_NO_TAG);
	CHECK(d->wr_id == 500u + slot && d->len == TM_HDR + slot);
	CHECK(next_wc(hostile.a.cq, &wc) == 1 && !wc.status && wc.wr_id == slot);
	tm_receive(&hostile.q, 500 + slot, sge);
}

/*
 * Operations without pause: the kernel executes so many for each message and no
 * more, and a message that has to wait for that comes again. When there is an end
 * to them, it is delivered.
 */
static void without_pause(const struct devices *on)
{
	struct xroce_tm_op_slot sync = { .opcode = XROCE_TM_SYNC };
	unsigned long before = come_again(on->name[1]);
	int i, slot, sent = 0, delivered = 0;
	double end = deadline(60);
	pthread_t writer;
	struct tm_done d;

	make_line(on, &honest);
	make_line_of(on, &hostile, MANY_OPS);
	find_ops(&hostile.q);
	for (i = 0; i < MANY_OPS; i++)
		memcpy(ops.at + XROCE_RING_HDR_SIZE + i * STRIDE, &sync, sizeof(sync));
	CHECK(!pthread_create(&writer, NULL, keep_full, NULL));
	tm_header(hostile.a.buf, IBV_TMH_NO_TAG, 0);
	while (atomic_load((_Atomic uint32_t *)&ring_hdr(&ops)->user_index) == written)
		CHECK(!is_past(end));
	for (i = 0; come_again(on->name[1]) < before + 3; i++) {
		CHECK(!is_past(end));
		/* If the writer has no CPU meanwhile, none of them has to come again. */
		for (slot = 0; delivered == sent && slot < RECEIVES; slot++)
			CHECK(!post_send(&hostile.a, slot, TM_HDR + slot));
		sent = delivered == sent ? sent + RECEIVES : sent;
		while (tm_poll(&hostile.q, &d))
			was_delivered(delivered++, &d);
		goes_on(i);
	}
	atomic_store(&stopped, 1);
	CHECK(!pthread_join(writer, NULL));
	while (delivered < sent) {
		d = tm_next(&hostile.q);
		was_delivered(delivered++, &d);
	}
	goes_on(1000);
	free_line(&hostile);
	free_line(&honest);
}

/* The rings of the child, and those that it has from its parent. */
static struct rings rings, inherited;
static uint64_t state;

static uint32_t rnd(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 32) % below;
}

/* Rewrites a queue's rings as fast as it can. */
static void *rewrite(void *arg)
{
	static const uint32_t odd[] = { 0, 1, 4, 5, 31, 0x7fffffff, 0x80000000, UINT32_MAX };

	(void)arg;
	while (!atomic_load(&stopped)) {
		const struct ring *r = &rings.ring[rnd(rings.count)];
		volatile uint32_t *w = (uint32_t *)r->at;
		uint32_t at = rnd(r->size / 4), near = rnd(8);

		/* Mostly what makes sense of an index: the kernel then reads slots. */
		if (near > 1) {
			w = (uint32_t *)ops.at;
			at = XROCE_RING_HDR_SIZE / 4 + rnd(OPS * STRIDE / 4);
			w[at] = near == 2 ? rnd(UINT32_MAX) : odd[rnd(8)];
			if (near == 7)
				store_index(&ops, ring_hdr(&ops)->kernel_index + rnd(OPS));
		} else if (rnd(64) == 0) {
			w[at] = rnd(UINT32_MAX);
		}
	}
	return NULL;
}

/* A child: garbage in a queue of its own, and messages to it. */
static void garbage(const struct devices *on)
{
	pthread_t writer;
	int i;

	/* The library may stay in a ring that makes no sense. */
	alarm(30);
	find_rings(&inherited, NULL);
	make_line(on, &hostile);
	find_ops(&hostile.q);
	CHECK(find_rings(&rings, &inherited));
	CHECK(!pthread_create(&writer, NULL, rewrite, NULL));
	for (i = 0; i < 200; i++) {
		struct ibv_wc wc;

		srq_doorbell(hostile.q.srq);
		tm_header(hostile.a.buf, IBV_TMH_EAGER, rnd(3));
		post_send(&hostile.a, i, TM_HDR + rnd(2000));
		ibv_poll_cq(hostile.a.cq, 1, &wc);
	}
	atomic_store(&stopped, 1);
	pthread_join(writer, NULL);
	/* The kernel takes down the rest, in whatever state. */
	_exit(0);
}

static void rewritten(const struct devices *on)
{
	int rounds = on_debug_kernel() ? 5 : 20;
	int i, status;
	pid_t pid;

	make_line(on, &honest);
	for (i = 0; i < rounds; i++) {
		state = i + 1;
		fflush(stdout);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			garbage(on);
		do {
			goes_on(i);
		} while (!waitpid(pid, &status, WNOHANG));
		CHECK(!WIFEXITED(status) || !WEXITSTATUS(status));
	}
	goes_on(rounds);
	free_line(&honest);
}

static const CASES(const struct devices) cases[] = {
	{ "unknown-operations", unknown_operations },
	{ "too-many-elements", too_many_elements },
	{ "too-many-masks", too_many_masks },
	{ "foreign-handles", handles_of_others },
	{ "wrong-counts", wrong_counts },
	{ "index-out-of-range", index_out_of_range },
	{ "without-pause", without_pause },
	{ "rewritten", rewritten },
	{}
};

int main(int argc, char **argv)
{
	static struct devices on;

	return RUN_CASES(&on, cases, argc, argv);
}
