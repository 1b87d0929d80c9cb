// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=180 debug xroce on=both
/*
 * Edge cases of the verbs, through the library's own calls: what pyverbs hides or does
 * not have.
 *
 *   verbs                                     lists the cases
 *   verbs CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 *
 * The two ends of a connection are on the two devices, or both on the first.
 */
#define _GNU_SOURCE
#include <sys/fsuid.h>

#include "ends.h"

/* Puts another QP, of queues as CAP says, in the place of E's. */
static void replace_qp(struct end *e, enum ibv_qp_type type, struct ibv_cq *send_cq,
		       struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type, .send_cq = send_cq, .recv_cq = e->cq, .cap = *cap,
	};

	CHECK(!ibv_destroy_qp(e->qp));
	e->qp = ibv_create_qp(e->pd, &init);
	CHECK(e->qp);
	*cap = init.cap;
}

static int send_flagged(struct end *e, uint64_t id, uint32_t length, int flags)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, length, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = flags,
	};
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(e->qp, &wr, &bad);

	if (err)
		CHECK(bad == &wr);
	return err;
}

static void set_state(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE));
}

/* The next completion of CQ is WR ID, with STATUS. */
static void expect_wc(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	CHECK(next_wc(cq, &wc) == 1);
	if (wc.wr_id != id || wc.status != status)
		printf("WR %llu: %s\n", (unsigned long long)wc.wr_id,
		       ibv_wc_status_str(wc.status));
	CHECK(wc.wr_id == id);
	CHECK(wc.status == status);
}

/* One checked message from A to B. */
static void message(struct pair *self, uint64_t id, int flags)
{
	memset(self->a.buf, (uint8_t)id, 64);
	memset(self->b.buf + PAIR_SIZE, (uint8_t)~id, 64);
	CHECK(!post_receive(&self->b, id));
	CHECK(!send_flagged(&self->a, id, 64, flags));
	expect_wc(self->b.cq, id, IBV_WC_SUCCESS);
	CHECK(!memcmp(self->b.buf + PAIR_SIZE, self->a.buf, 64));
}

/* Nothing may be posted in RESET; receives may from INIT on. */
static void post_states(struct pair *self)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	make_ends(self);
	CHECK(post_receive(&self->a, 1) == EINVAL);
	CHECK(send_flagged(&self->a, 1, 64, 0) == EINVAL);
	CHECK(!ibv_modify_qp(self->a.qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			     IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	CHECK(!post_receive(&self->a, 1));
	free_pair(self);
}

/* A QP that asked for no inline data has some; it is taken when it is posted. */
static void inline_unasked(struct pair *self)
{
	struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };

	make_ends(self);
	replace_qp(&self->a, IBV_QPT_RC, self->a.cq, &cap);
	CHECK(cap.max_inline_data >= 16);
	join(self);
	strcpy((char *)self->a.buf, "as posted");
	CHECK(!send_flagged(&self->a, 1, 16, IBV_SEND_INLINE | IBV_SEND_SIGNALED));
	strcpy((char *)self->a.buf, "too late!");
	CHECK(!post_receive(&self->b, 2));
	expect_wc(self->b.cq, 2, IBV_WC_SUCCESS);
	expect_wc(self->a.cq, 1, IBV_WC_SUCCESS);
	CHECK(!strcmp((char *)self->b.buf + PAIR_SIZE, "as posted"));
	CHECK(send_flagged(&self->a, 3, cap.max_inline_data + 1, IBV_SEND_INLINE) == EINVAL);
	free_pair(self);
}

/* What a full or wrong post says, and which request it blames. */
static void bad_posts(struct pair *self)
{
	struct ibv_sge many[64] = { 0 };
	struct ibv_recv_wr wrong = { .sg_list = many, .num_sge = 64 };
	struct ibv_recv_wr good = { .next = &wrong };
	struct ibv_recv_wr *bad = NULL;
	struct ibv_send_wr too_long = { .sg_list = many, .num_sge = 64, .opcode = IBV_WR_SEND };
	struct ibv_send_wr unknown = { .opcode = 99 };
	struct ibv_send_wr *bad_send = NULL;
	struct ibv_qp_cap cap = { 4, 4, 1, 1, 0 };
	uint32_t i;
	int err;

	make_ends(self);
	replace_qp(&self->a, IBV_QPT_RC, self->a.cq, &cap);
	join(self);
	for (i = 0; !(err = send_flagged(&self->a, i, 64, 0)); i++)
		CHECK(i < cap.max_send_wr);
	CHECK(err == ENOMEM);
	CHECK(i == cap.max_send_wr);
	for (i = 0; !(err = post_receive(&self->a, i)); i++)
		CHECK(i < cap.max_recv_wr);
	CHECK(err == ENOMEM);
	CHECK(i == cap.max_recv_wr);
	CHECK(ibv_post_recv(self->b.qp, &good, &bad) == EINVAL);
	CHECK(bad == &wrong);
	CHECK(ibv_post_send(self->b.qp, &too_long, &bad_send) == EINVAL);
	CHECK(bad_send == &too_long);
	CHECK(ibv_post_send(self->b.qp, &unknown, &bad_send) != 0);
	CHECK(bad_send == &unknown);
	free_pair(self);
}

/* Puts CQ in the place of E's, with a QP for it. */
static void replace_cq(struct end *e, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = { 8, 8, 1, 1, 0 },
	};

	CHECK(cq);
	CHECK(!ibv_destroy_qp(e->qp));
	CHECK(!ibv_destroy_cq(e->cq));
	e->cq = cq;
	e->qp = ibv_create_qp(e->pd, &init);
	CHECK(e->qp);
}

/* Completions that wait when a CQ is resized are still there afterwards. */
static void resize_with_content(struct pair *self)
{
	struct ibv_wc wc;
	int i;

	make_ends(self);
	replace_cq(&self->b, ibv_create_cq(self->b.ctx, 4, NULL, NULL, 0));
	join(self);
	for (i = 0; i < 4; i++)
		CHECK(!post_receive(&self->b, i));
	for (i = 0; i < 4; i++)
		CHECK(!send_flagged(&self->a, 10 + i, 64, IBV_SEND_SIGNALED));
	/* A send that has completed was received: four wait at B. */
	for (i = 0; i < 4; i++)
		expect_wc(self->a.cq, 10 + i, IBV_WC_SUCCESS);
	CHECK(ibv_resize_cq(self->b.cq, 1) == EINVAL);
	expect_wc(self->b.cq, 0, IBV_WC_SUCCESS);
	CHECK(!ibv_resize_cq(self->b.cq, 64));
	CHECK(self->b.cq->cqe >= 64);
	for (i = 1; i < 4; i++)
		expect_wc(self->b.cq, i, IBV_WC_SUCCESS);
	CHECK(ibv_poll_cq(self->b.cq, 1, &wc) == 0);
	message(self, 20, 0);
	CHECK(!ibv_resize_cq(self->b.cq, 2));
	message(self, 21, 0);
	CHECK(ibv_resize_cq(self->b.cq, 0) == EINVAL);
	free_pair(self);
}

/* An armed CQ tells of the first completion, also when it was resized since. */
static void resize_while_armed(struct pair *self)
{
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *from;
	void *context;

	make_ends(self);
	channel = ibv_create_comp_channel(self->b.ctx);
	CHECK(channel);
	cq = ibv_create_cq(self->b.ctx, 8, &self->a, channel, 0);
	replace_cq(&self->b, cq);
	join(self);
	CHECK(!ibv_req_notify_cq(cq, 0));
	CHECK(!ibv_resize_cq(cq, 128));
	message(self, 1, 0);
	CHECK(readable(channel->fd, 20));
	CHECK(!ibv_get_cq_event(channel, &from, &context));
	CHECK(from == cq && context == &self->a);
	ibv_ack_cq_events(cq, 1);

	/* Armed for solicited ones only: an ordinary message is not told. */
	CHECK(!ibv_req_notify_cq(cq, 1));
	message(self, 2, 0);
	CHECK(poll(&(struct pollfd){ .fd = channel->fd, .events = POLLIN }, 1, 100) == 0);
	message(self, 3, IBV_SEND_SOLICITED);
	CHECK(readable(channel->fd, 20));
	CHECK(!ibv_get_cq_event(channel, &from, &context));
	ibv_ack_cq_events(cq, 1);
	/* One arm, one event. */
	message(self, 4, IBV_SEND_SOLICITED);
	CHECK(poll(&(struct pollfd){ .fd = channel->fd, .events = POLLIN }, 1, 100) == 0);
	free_pair(self);
	CHECK(!ibv_destroy_comp_channel(channel));
}

/* What has completed and nobody has polled is more than the CQ holds. */
static void overrun(struct pair *self)
{
	struct ibv_async_event ev;
	struct ibv_cq *small;
	struct ibv_wc wc;
	int i, n;

	make_ends(self);
	small = ibv_create_cq(self->a.ctx, 2, NULL, NULL, 0);
	CHECK(small);
	replace_qp(&self->a, IBV_QPT_RC, small, &(struct ibv_qp_cap){ 16, 16, 1, 1, 0 });
	join(self);
	for (i = 0; i < 8; i++)
		CHECK(!post_receive(&self->b, i));
	for (i = 0; i < 8; i++)
		CHECK(!send_flagged(&self->a, i, 64, IBV_SEND_SIGNALED));
	CHECK(next_event(self->a.ctx, IBV_EVENT_CQ_ERR, &ev));
	CHECK(ev.element.cq == small);
	for (i = 0; (n = ibv_poll_cq(small, 1, &wc)) == 1; i++)
		CHECK(i < 8);
	CHECK(n < 0 && i == small->cqe);
	/* The device goes on: another pair. */
	make_pair(self);
	message(self, 1, IBV_SEND_SIGNALED);
	free_pair(self);
}

static void create_cq_refused(struct pair *self)
{
	struct ibv_device_attr attr;
	struct ibv_context *ctx = open_device(self->on.name[0]);

	CHECK(!ibv_query_device(ctx, &attr));
	CHECK(!ibv_create_cq(ctx, 0, NULL, NULL, 0) && errno == EINVAL);
	CHECK(!ibv_create_cq(ctx, attr.max_cqe + 1, NULL, NULL, 0) && errno == EINVAL);
	CHECK(!ibv_create_cq(ctx, 1, NULL, NULL, 1000) && errno == EINVAL);
	CHECK(!ibv_close_device(ctx));
}

/* In the error state whatever is posted comes back flushed. */
static void flush_in_error(struct pair *self)
{
	make_pair(self);
	CHECK(!post_receive(&self->b, 1));
	set_state(&self->b, IBV_QPS_ERR);
	expect_wc(self->b.cq, 1, IBV_WC_WR_FLUSH_ERR);
	CHECK(!post_receive(&self->b, 2));
	expect_wc(self->b.cq, 2, IBV_WC_WR_FLUSH_ERR);
	CHECK(!send_flagged(&self->b, 3, 64, IBV_SEND_SIGNALED));
	expect_wc(self->b.cq, 3, IBV_WC_WR_FLUSH_ERR);
	/* Flushed is completed, signaled or not. */
	CHECK(!send_flagged(&self->b, 4, 64, 0));
	expect_wc(self->b.cq, 4, IBV_WC_WR_FLUSH_ERR);
	free_pair(self);
}

/* RESET forgets everything; the QP can be connected again. */
static void reconnect(struct pair *self)
{
	struct ibv_wc wc;
	int i;

	make_pair(self);
	for (i = 0; i < 3; i++) {
		message(self, 10 * i, IBV_SEND_SIGNALED);
		expect_wc(self->a.cq, 10 * i, IBV_WC_SUCCESS);
		CHECK(!post_receive(&self->b, 10 * i + 1));
		set_state(&self->a, IBV_QPS_RESET);
		set_state(&self->b, IBV_QPS_RESET);
		CHECK(post_receive(&self->b, 1) == EINVAL);
		join(self);
		/* Posted before the reset: neither used nor flushed. */
		CHECK(ibv_poll_cq(self->b.cq, 1, &wc) == 0);
	}
	free_pair(self);
}

/* A process that changed its credentials still gets its requests done. */
static void other_credentials(struct pair *self)
{
	make_pair(self);
	setfsuid(1000);
	message(self, 1, IBV_SEND_SIGNALED);
	expect_wc(self->a.cq, 1, IBV_WC_SUCCESS);
	setfsuid(0);
	free_pair(self);
}

static const CASES(struct pair) cases[] = {
	{ "post_states", post_states },
	{ "inline_unasked", inline_unasked },
	{ "bad_posts", bad_posts },
	{ "resize_with_content", resize_with_content },
	{ "resize_while_armed", resize_while_armed },
	{ "overrun", overrun },
	{ "create_cq_refused", create_cq_refused },
	{ "flush_in_error", flush_in_error },
	{ "reconnect", reconnect },
	{ "other_credentials", other_credentials },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct pair self;

	return RUN_CASES(&self, cases, argc, argv);
}
