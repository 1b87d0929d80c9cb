// SPDX-License-Identifier: GPL-2.0
/*
 * Receiving. With a tag-matching queue most messages find their buffer without this
 * program. The handling of the other messages (unexpected messages) is, without such a
 * queue, needed for all messages.
 */
#include "tagged.h"

/* A message that nobody wants yet. */
struct kept {
	TAILQ_ENTRY(kept) entry;
	uint32_t len;
	uint8_t bytes[];
};

static uint64_t tag_of(const uint8_t *m)
{
	struct ibv_tmh h;

	memcpy(&h, m, sizeof(h));
	return be64toh(h.tag);
}

static int fits(struct rank *r, const struct receive *v, uint64_t tag)
{
	r->outcome.compared++;
	return (tag & v->mask) == (v->tag & v->mask);
}

static void finish(struct rank *r, struct receive *v, uint32_t len)
{
	plan_check(r->me, v, len);
	CHECK(!v->is_done);
	v->is_done = 1;
	r->done++;
	atomic_fetch_add(&r->shared->steps, 1);
}

/* The message goes to the receive: copied, or read from its sender, who is told. */
static void deliver(struct rank *r, struct receive *v, const uint8_t *m, uint32_t len)
{
	uint8_t fin[TM_HDR + sizeof(struct ibv_rvh)];
	struct ibv_sge data, notice = { (uintptr_t)fin, sizeof(fin), 0 };
	struct ibv_send_wr wr[2] = {};
	struct ibv_tmh tmh;
	struct ibv_rvh rvh;

	memcpy(&tmh, m, sizeof(tmh));
	v->from = be64toh(tmh.tag) >> 32;
	v->n = be32toh(tmh.app_ctx);
	if (tmh.opcode == IBV_TMH_EAGER) {
		CHECK(len - TM_HDR <= LEN_MAX);
		memcpy(v->buf, m + TM_HDR, len - TM_HDR);
		finish(r, v, len - TM_HDR);
		return;
	}
	CHECK(tmh.opcode == IBV_TMH_RNDV && len == sizeof(fin));
	memcpy(&rvh, m + TM_HDR, sizeof(rvh));
	CHECK(be32toh(rvh.len) <= LEN_MAX);
	data = (struct ibv_sge) {
		(uintptr_t)v->buf, be32toh(rvh.len), r->bufs_mr->lkey
	};
	wr[0].wr_id = (uint64_t)WR_READ << 32 | (v - r->receives);
	wr[0].opcode = IBV_WR_RDMA_READ;
	wr[0].send_flags = IBV_SEND_SIGNALED;
	wr[0].sg_list = &data;
	wr[0].num_sge = 1;
	wr[0].wr.rdma.remote_addr = be64toh(rvh.va);
	wr[0].wr.rdma.rkey = be32toh(rvh.rkey);
	wr[0].next = &wr[1];
	memcpy(fin, m, sizeof(fin));
	fin[0] = IBV_TMH_FIN;
	wr[1].wr_id = (uint64_t)WR_FIN << 32;
	wr[1].opcode = IBV_WR_SEND;
	wr[1].send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_FENCE;
	wr[1].sg_list = &notice;
	wr[1].num_sge = 1;
	rank_post(r, v->from, wr);
}

void match_read_done(struct rank *r, uint32_t receive)
{
	struct receive *v = &r->receives[receive];

	finish(r, v, plan_len(v->from, r->me, v->n));
}

static void operate(struct rank *r, struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad;

	wr->tm.unexpected_cnt = r->reported = r->handled;
	CHECK(!ibv_post_srq_ops(r->srq, wr, &bad));
}

/* Posts a receive: what was kept comes first. */
void match_post(struct rank *r, struct receive *v)
{
	struct ibv_sge sge = { (uintptr_t)v->buf, LEN_MAX, r->bufs_mr->lkey };
	struct ibv_ops_wr wr = {
		.opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_TM_SYNC,
		.tm.add = { .recv_wr_id = v - r->receives, .sg_list = &sge,
			    .num_sge = 1, .tag = v->tag & v->mask, .mask = v->mask },
	};
	struct kept *k;

	TAILQ_FOREACH(k, &r->kept, entry) {
		if (fits(r, v, tag_of(k->bytes))) {
			TAILQ_REMOVE(&r->kept, k, entry);
			deliver(r, v, k->bytes, k->len);
			free(k);
			return;
		}
	}
	TAILQ_INSERT_TAIL(&r->open, v, entry);
	if (options.by_device) {
		operate(r, &wr);
		v->handle = wr.tm.handle;
	}
}

/* A message that the device has not matched. */
static void incoming(struct rank *r, const uint8_t *m, uint32_t len)
{
	uint64_t tag = tag_of(m);
	struct receive *v;
	struct kept *k;

	TAILQ_FOREACH(v, &r->open, entry) {
		struct ibv_ops_wr wr = {
			.opcode = IBV_WR_TAG_DEL, .flags = IBV_OPS_TM_SYNC,
			.tm.handle = v->handle,
		};

		if (!fits(r, v, tag))
			continue;
		TAILQ_REMOVE(&r->open, v, entry);
		/* The device has not heard of our count: the tag still waits. */
		if (options.by_device)
			operate(r, &wr);
		deliver(r, v, m, len);
		return;
	}
	k = malloc(sizeof(*k) + len);
	CHECK(k);
	k->len = len;
	memcpy(k->bytes, m, len);
	TAILQ_INSERT_TAIL(&r->kept, k, entry);
	r->outcome.kept++;
}

static void post_buffer(struct rank *r, uint32_t i)
{
	struct ibv_sge sge = {
		(uintptr_t)r->in + (size_t)i * BUFFER, BUFFER, r->in_mr->lkey
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(!ibv_post_srq_recv(r->srq, &wr, &bad));
}

/* What lies in buffer I. */
static void received(struct rank *r, uint32_t i, uint32_t len)
{
	uint8_t *m = r->in + (size_t)i * BUFFER;
	struct ibv_rvh rvh;

	CHECK(i < BUFFERS && len >= TM_HDR);
	if (m[0] == IBV_TMH_FIN) {
		memcpy(&rvh, m + TM_HDR, sizeof(rvh));
		rank_send_done(r, (be64toh(rvh.va) - (uintptr_t)r->out) / SLOT);
	} else {
		incoming(r, m, len);
	}
	post_buffer(r, i);
}

/* The device has matched a message, or its data are here. */
static void matched(struct rank *r, const struct tm_done *d)
{
	struct receive *v = &r->receives[d->wr_id];

	if (d->flags & IBV_WC_TM_MATCH) {
		v->from = d->tag >> 32;
		v->n = d->priv;
		TAILQ_REMOVE(&r->open, v, entry);
		r->outcome.by_device++;
	}
	if (d->flags & IBV_WC_TM_DATA_VALID)
		finish(r, v, d->len);
}

void match_poll(struct rank *r)
{
	struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_SYNC };
	struct tm_done d;
	struct ibv_wc wc;
	int n;

	if (!options.by_device) {
		while ((n = ibv_poll_cq(r->recv_cq, 1, &wc))) {
			CHECK(n == 1 && !wc.status);
			received(r, wc.wr_id, wc.byte_len);
		}
		return;
	}
	while (tm_poll(&r->tm, &d)) {
		CHECK(!d.status);
		if (d.flags & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID)) {
			matched(r, &d);
			continue;
		}
		r->handled += d.opcode == IBV_WC_TM_RECV;
		received(r, d.wr_id, d.len);
	}
	if (r->handled != r->reported)
		operate(r, &wr);
}

void match_start(struct rank *r)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = BUFFERS, .max_sge = 1 } };
	uint32_t i;

	TAILQ_INIT(&r->open);
	TAILQ_INIT(&r->kept);
	if (options.by_device) {
		tm_make(&r->tm, &r->end, (struct tag_queue_size) {
			.tags = r->count + 1, .ops = 1024, .receives = BUFFERS,
			.cqe = 2 * r->count + 1024 });
		r->srq = r->tm.srq;
	} else {
		r->recv_cq = ibv_create_cq(r->end.ctx, 2 * BUFFERS, NULL, NULL, 0);
		r->srq = ibv_create_srq(r->end.pd, &init);
		CHECK(r->recv_cq && r->srq);
	}
	for (i = 0; i < BUFFERS; i++)
		post_buffer(r, i);
}

void match_stop(struct rank *r)
{
	CHECK(TAILQ_EMPTY(&r->open) && TAILQ_EMPTY(&r->kept));
	if (options.by_device) {
		tm_free(&r->tm);
		return;
	}
	CHECK(!ibv_destroy_srq(r->srq));
	CHECK(!ibv_destroy_cq(r->recv_cq));
}
