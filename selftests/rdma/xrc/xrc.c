// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=180 debug xrc on=both
/*
 * XRC between processes: a domain shared through a file, target QPs that
 * outlive their creator, SRQs of several processes behind one connection.
 *
 *   xrc                                               lists the cases
 *   xrc CASE SERVER-DEVICE GID-INDEX CLIENT-DEVICE GID-INDEX
 */
#define _GNU_SOURCE
#include "domains.h"

#define TAGS 8

/* In a child: how many messages with each tag have come. */
static uint32_t of_tag[TAGS];

/* What the sender of message N with TAG writes. */
static void fill(uint8_t *buf, uint32_t tag, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < SIZE; i++)
		buf[i] = tag * 31 + n * 7 + i;
}

/* ---- in a child ---- */

/* Makes a target for the client's QP ARG; its number. */
static uint32_t make_target(struct peer *p, const struct message *m)
{
	uint32_t qpn = make_view(p, m);

	to_rtr(p->view, connected_to(m->arg, &m->client, p->on->gid_index[SERVER]));
	return qpn;
}

static uint32_t target_state(struct peer *p, const struct message *m)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)m;
	CHECK(!ibv_query_qp(p->view, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* Waits for event ARG of the target. */
static uint32_t await_event(struct peer *p, const struct message *m)
{
	struct ibv_async_event ev;

	CHECK(next_event(p->ctx, m->arg, &ev));
	CHECK(ev.element.qp == p->view);
	return 0;
}

static uint32_t destroy_target(struct peer *p, const struct message *m)
{
	/* A domain with a target that this process has open stays. */
	CHECK(ibv_close_xrcd(p->xrcd) == EBUSY);
	CHECK(!destroy_view(p, m));
	return 0;
}

/* Receives ARG messages; the n-th that bears a tag is the n-th sent with it. */
static uint32_t receive(struct peer *p, const struct message *m)
{
	uint32_t left = m->arg;
	uint8_t expected[SIZE];
	struct ibv_wc wc;

	while (left--) {
		uint32_t tag;

		CHECK(next_wc(p->cq, &wc) == 1);
		CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
		CHECK(wc.byte_len == SIZE && (wc.wc_flags & IBV_WC_WITH_IMM));
		if (p->view)
			CHECK(wc.qp_num == p->view->qp_num);
		tag = wc.imm_data;
		CHECK(tag < TAGS);
		fill(expected, tag, of_tag[tag]++);
		CHECK(!memcmp(expected, p->buf + wc.wr_id * SIZE, SIZE));
		post_srq(p, wc.wr_id);
	}
	return 0;
}

/* ---- in the program ---- */

/* Closes the domain and lets the process end by itself. */
static void close_child(struct domains *self, struct child *c)
{
	CHECK(!tell(&self->on, c, close_domain, 0));
	end_child(c);
}

/* Sends message N with TAG to SRQ number SRQN; how it completed. */
static enum ibv_wc_status send_to(struct client *c, uint32_t srqn, uint32_t tag, uint32_t n)
{
	fill(c->buf, tag, n);
	return send_buffer(c, srqn, n, tag);
}

/* ---- the cases ---- */

/* The creator of a target is killed: the domain's others go on with it. */
static void creator_killed(struct domains *self)
{
	struct child creator = start(self), other = start(self), late;
	uint32_t qpn, srqn, late_srqn, n;
	struct client c;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &creator, make_target, c.qp->qp_num);
	connect_client(&self->on, &c, qpn);
	srqn = tell(&self->on, &other, make_srq, 16);
	CHECK(send_to(&c, srqn, 1, 0) == IBV_WC_SUCCESS);
	tell(&self->on, &other, receive, 1);
	kill_child(&creator);
	for (n = 1; n < 20; n++) {
		CHECK(send_to(&c, srqn, 1, n) == IBV_WC_SUCCESS);
		tell(&self->on, &other, receive, 1);
	}
	CHECK(targets() == 1);

	/* One that comes later finds the target by its number. */
	late = start(self);
	CHECK(tell(&self->on, &late, open_view, qpn) == 0);
	CHECK(tell(&self->on, &late, target_state, 0) == IBV_QPS_RTR);
	late_srqn = tell(&self->on, &late, make_srq, 1);
	CHECK(late_srqn != srqn);
	CHECK(send_to(&c, late_srqn, 2, 0) == IBV_WC_SUCCESS);
	tell(&self->on, &late, receive, 1);
	/* Its events are the late one's too. */
	CHECK(send_to(&c, 0xfffff0, 2, 1) == IBV_WC_REM_INV_REQ_ERR);
	tell(&self->on, &late, await_event, IBV_EVENT_QP_ACCESS_ERR);
	CHECK(tell(&self->on, &late, target_state, 0) == IBV_QPS_ERR);
	CHECK(targets() == 1);
	kill_child(&late);
	close_child(self, &other);
	CHECK(targets() == 0);
}

/*
 * A process that only opened a target lets go of it, the maker is killed: the target
 * still belongs to the domain.
 */
static void opener_lets_go(struct domains *self)
{
	struct child maker = start(self), opener = start(self);
	uint32_t qpn, srqn;
	struct client c;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &maker, make_target, c.qp->qp_num);
	connect_client(&self->on, &c, qpn);
	srqn = tell(&self->on, &opener, make_srq, 4);
	CHECK(tell(&self->on, &opener, open_view, qpn) == 0);
	tell(&self->on, &opener, destroy_target, 0);
	CHECK(targets() == 1);
	kill_child(&maker);
	CHECK(targets() == 1);
	CHECK(send_to(&c, srqn, 1, 0) == IBV_WC_SUCCESS);
	tell(&self->on, &opener, receive, 1);
	close_child(self, &opener);
	CHECK(targets() == 0);
}

/* Nobody else has the target open any more: whoever destroys it ends it. */
static void destroyed_by_opener(struct domains *self)
{
	struct child creator = start(self), opener = start(self);
	uint32_t qpn, srqn;
	struct client c;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &creator, make_target, c.qp->qp_num);
	connect_client(&self->on, &c, qpn);
	srqn = tell(&self->on, &opener, make_srq, 4);
	CHECK(tell(&self->on, &opener, open_view, qpn) == 0);
	kill_child(&creator);
	CHECK(send_to(&c, srqn, 1, 0) == IBV_WC_SUCCESS);
	tell(&self->on, &opener, receive, 1);
	tell(&self->on, &opener, destroy_target, 0);
	CHECK(targets() == 0);
	unanswered(&c, srqn);
	close_child(self, &opener);
}

/* The domain's last process ends, in its own way or by a signal. */
static void last_one_out(struct domains *self)
{
	struct child one, two;
	struct client c;
	uint32_t srqn;
	int how;

	for (how = 0; how < 2; how++) {
		one = start(self);
		two = start(self);
		make_client(&self->on, &c);
		connect_client(&self->on, &c, tell(&self->on, &one, make_target, c.qp->qp_num));
		srqn = tell(&self->on, &two, make_srq, 4);
		CHECK(send_to(&c, srqn, 1, 0) == IBV_WC_SUCCESS);
		kill_child(&one);
		CHECK(targets() == 1);
		if (how)
			kill_child(&two);
		else
			close_child(self, &two);
		CHECK(targets() == 0);
		unanswered(&c, srqn);
	}
}

/* A connection to a new target of SERVER. */
static void connected(struct domains *self, struct client *c, struct child *server)
{
	make_client(&self->on, c);
	connect_client(&self->on, c, tell(&self->on, server, make_target, c->qp->qp_num));
}

/* Numbers that name no SRQ of the domain; a queue without receives. */
static void wrong_srq(struct domains *self)
{
	struct child server = start(self), other = start_other(self);
	struct ibv_srq_init_attr basic_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	uint32_t srqn, others, number, basic;
	struct ibv_srq *srq;
	struct client c;
	int i;

	srqn = tell(&self->on, &server, make_srq, 0);
	others = tell(&self->on, &other, make_srq, 4);

	connected(self, &c, &server);
	CHECK(send_to(&c, others, 1, 0) == IBV_WC_REM_INV_REQ_ERR);
	tell(&self->on, &server, await_event, IBV_EVENT_QP_ACCESS_ERR);
	CHECK(tell(&self->on, &server, target_state, 0) == IBV_QPS_ERR);
	tell(&self->on, &server, destroy_target, 0);

	/*
	 * A basic SRQ's number is not told: it is one of those next to an XRC
	 * SRQ's. None of them may do.
	 */
	connected(self, &c, &server);
	srq = ibv_create_srq(c.pd, &basic_attr);
	CHECK(srq);
	CHECK(ibv_get_srq_num(srq, &number) != 0);
	for (i = 1, basic = others + 1; i <= 4; i++, basic++) {
		CHECK(send_to(&c, basic, 1, 0) == IBV_WC_REM_INV_REQ_ERR);
		CHECK(tell(&self->on, &server, target_state, 0) == IBV_QPS_ERR);
		tell(&self->on, &server, destroy_target, 0);
		connected(self, &c, &server);
	}

	CHECK(send_to(&c, 0xfffff0, 1, 0) == IBV_WC_REM_INV_REQ_ERR);
	CHECK(tell(&self->on, &server, target_state, 0) == IBV_QPS_ERR);
	tell(&self->on, &server, destroy_target, 0);

	make_client(&self->on, &c);
	c.rnr_retry = 2;
	connect_client(&self->on, &c, tell(&self->on, &server, make_target, c.qp->qp_num));
	CHECK(send_to(&c, srqn, 1, 0) == IBV_WC_RNR_RETRY_EXC_ERR);
	CHECK(tell(&self->on, &server, target_state, 0) == IBV_QPS_RTR);
	tell(&self->on, &server, destroy_target, 0);
	close_child(self, &server);
	close_child(self, &other);
}

static struct ibv_xrcd *try_open(struct ibv_context *ctx, uint32_t mask, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = mask, .fd = fd, .oflags = oflags };

	errno = 0;
	return ibv_open_xrcd(ctx, &attr);
}

/* What opening a domain can say. */
static void open_refused(struct domains *self)
{
	const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct ibv_context *ctx = open_device(self->on.name[SERVER]);
	int fd = open(self->domain_file, O_RDONLY);
	struct ibv_xrcd *first, *second, *private;

	CHECK(fd >= 0);
	CHECK(!try_open(ctx, both, fd, 0) && errno == EAGAIN);
	CHECK(!try_open(ctx, both, fd, O_EXCL) && errno == EAGAIN);
	CHECK(!try_open(ctx, IBV_XRCD_INIT_ATTR_FD, fd, 0) && errno == EINVAL);
	CHECK(!try_open(ctx, IBV_XRCD_INIT_ATTR_OFLAGS, fd, O_CREAT) && errno == EINVAL);
	CHECK(!try_open(ctx, both, 999, O_CREAT) && errno == EBADF);
	first = try_open(ctx, both, fd, O_CREAT | O_EXCL);
	CHECK(first);
	CHECK(!try_open(ctx, both, fd, O_CREAT | O_EXCL) && errno == EINVAL);
	second = try_open(ctx, both, fd, 0);
	CHECK(second);
	private = try_open(ctx, both, -1, 0);
	CHECK(private);
	CHECK(!ibv_close_xrcd(first));
	CHECK(!ibv_close_xrcd(second));
	CHECK(!ibv_close_xrcd(private));
	CHECK(!try_open(ctx, both, fd, 0) && errno == EAGAIN);
	CHECK(!ibv_close_device(ctx));
}

/* What a target, an initiator and a wrong number refuse. */
static void posts_and_opens_refused(struct domains *self)
{
	struct peer p = { .ctx = open_device(self->on.name[SERVER]) };
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 1 };
	struct ibv_send_wr *bad_send, send = { .opcode = IBV_WR_SEND };
	struct client c;

	make_client(&self->on, &c);
	attr.xrcd = p.xrcd = open_domain(p.ctx, self->domain_file);
	make_view(&p, NULL);
	to_rtr(p.view, connected_to(c.qp->qp_num, &c.server, self->on.gid_index[SERVER]));
	connect_client(&self->on, &c, p.view->qp_num);
	CHECK(ibv_post_recv(p.view, &recv, &bad_recv) == EINVAL);
	CHECK(ibv_post_send(p.view, &send, &bad_send) == EINVAL);
	CHECK(ibv_post_recv(c.qp, &recv, &bad_recv) == EINVAL);
	send.qp_type.xrc.remote_srqn = 1 << 24;
	CHECK(ibv_post_send(c.qp, &send, &bad_send) == EINVAL);
	attr.qp_num = 0x7fffff;
	CHECK(!ibv_open_qp(p.ctx, &attr) && errno == EINVAL);
	attr.qp_num = c.qp->qp_num;
	CHECK(!ibv_open_qp(p.ctx, &attr) && errno == EINVAL);
	attr.qp_num = p.view->qp_num;
	attr.qp_type = IBV_QPT_RC;
	CHECK(!ibv_open_qp(p.ctx, &attr) && errno == EINVAL);
	CHECK(!ibv_destroy_qp(p.view));
	CHECK(!ibv_close_xrcd(p.xrcd));
}

#define CLIENTS 3
#define SERVERS 3
#define ROUNDS 30

/* What a client process has to know. */
struct sending {
	const struct devices *on;
	const uint32_t *srqn;
	uint32_t number;
};

static void send_rounds(int fd, void *arg)
{
	const struct sending *what = arg;
	struct client c;
	uint32_t qpn;
	int n, j;

	make_client(what->on, &c);
	CHECK(write(fd, &c.qp->qp_num, 4) == 4);
	CHECK(read(fd, &qpn, 4) == 4);
	connect_client(what->on, &c, qpn);
	for (n = 0; n < ROUNDS; n++)
		for (j = 0; j < SERVERS; j++)
			CHECK(send_to(&c, what->srqn[j], what->number, n) == IBV_WC_SUCCESS);
}

/* Each client process sends to each server process, over one connection. */
static void mesh(struct domains *self)
{
	struct child servers[SERVERS], makers[CLIENTS], clients[CLIENTS];
	uint32_t srqn[SERVERS], qpn;
	int i, n;

	for (i = 0; i < SERVERS; i++) {
		servers[i] = start(self);
		srqn[i] = tell(&self->on, &servers[i], make_srq, DEPTH);
	}
	for (i = 0; i < CLIENTS; i++) {
		struct sending what = { .on = &self->on, .srqn = srqn, .number = i };

		makers[i] = start(self);
		clients[i] = start_child(send_rounds, &what);
		CHECK(read(clients[i].fd, &qpn, 4) == 4);
		qpn = tell(&self->on, &makers[i], make_target, qpn);
		CHECK(write(clients[i].fd, &qpn, 4) == 4);
	}
	CHECK(targets() == CLIENTS);
	for (n = 0; n < ROUNDS; n++)
		for (i = 0; i < SERVERS; i++)
			tell(&self->on, &servers[i], receive, CLIENTS);
	for (i = 0; i < CLIENTS; i++) {
		end_child(&clients[i]);
		kill_child(&makers[i]);
	}
	for (i = 0; i < SERVERS; i++)
		close_child(self, &servers[i]);
	CHECK(targets() == 0);
}

static const CASES(struct domains) cases[] = {
	{ "open_refused", open_refused },
	{ "posts_and_opens_refused", posts_and_opens_refused },
	{ "creator_killed", creator_killed },
	{ "opener_lets_go", opener_lets_go },
	{ "destroyed_by_opener", destroyed_by_opener },
	{ "last_one_out", last_one_out },
	{ "wrong_srq", wrong_srq },
	{ "mesh", mesh },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct domains self;

	return RUN_CASES_AROUND(&self, cases, make_files, remove_files, argc, argv);
}
