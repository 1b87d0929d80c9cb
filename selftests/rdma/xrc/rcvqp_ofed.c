// SPDX-License-Identifier: GPL-2.0
/*
 * A program with the XRC calls of OFED 1.3 and of the proposal of 2007 only
 * (<infiniband/xrc_rcv_compat.h>): a sender, a process that makes the receive QP, and one that
 * has an SRQ.
 *
 *   rcvqp_ofed                                          lists the cases
 *   rcvqp_ofed CASE SERVER-DEVICE GID-INDEX CLIENT-DEVICE GID-INDEX
 *   rcvqp_ofed elsewhere DEVICE                         what a device of another driver says
 */
#define _GNU_SOURCE
#include <fcntl.h>

#include "children.h"
#include "devices.h"

#include <infiniband/xrc_rcv_compat.h>

enum { SERVER, CLIENT };

#define MESSAGES 8
#define SIZE 256
#define NOBODY 0xfffff0

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
		IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)
/* Of the proposal: note 4, and what note 3 has besides. */
#define NEEDED ((TO_INIT | TO_RTR) & ~(IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC))
#define TOLERATED (TO_RTS | IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_QKEY | IBV_QP_CAP | \
		   IBV_QP_PATH_MIG_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY)

struct program {
	struct devices on;
	char file[64], other[64];
	union ibv_gid gid[2];
};

/* A process: what it has, and its end of the socket. */
struct process {
	struct program *self;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrc_domain *domain;
	uint8_t *buf;
	int fd;
};

static void say(int fd, uint32_t word)
{
	CHECK(write(fd, &word, sizeof(word)) == sizeof(word));
}

static uint32_t hear(int fd)
{
	uint32_t word;

	CHECK(read(fd, &word, sizeof(word)) == sizeof(word));
	return word;
}

static int targets(void)
{
	return lines_with("XRC_TGT", "rdma res show qp");
}

static struct ibv_xrc_domain *domain_of(struct ibv_context *ctx, const char *path)
{
	int fd = open(path, O_RDONLY);
	struct ibv_xrc_domain *domain;

	CHECK(fd >= 0);
	domain = ibv_open_xrc_domain(ctx, fd, O_CREAT);
	CHECK(domain);
	close(fd);
	return domain;
}

static void open_process(struct process *p, int side)
{
	p->ctx = open_device(p->self->on.name[side]);
	p->pd = ibv_alloc_pd(p->ctx);
	p->cq = ibv_create_cq(p->ctx, 2 * MESSAGES, NULL, NULL, 0);
	p->buf = aligned_alloc(4096, 4096);
	CHECK(p->pd && p->cq && p->buf);
	p->mr = ibv_reg_mr(p->pd, p->buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(p->mr);
	p->domain = domain_of(p->ctx, p->self->file);
}

static void close_process(struct process *p)
{
	CHECK(!ibv_close_xrc_domain(p->domain));
	CHECK(!ibv_dereg_mr(p->mr));
	CHECK(!ibv_destroy_cq(p->cq));
	CHECK(!ibv_dealloc_pd(p->pd));
	CHECK(!ibv_close_device(p->ctx));
}

/* What a process has to know. */
struct role {
	struct program *self;
	void (*run)(struct process *p);
};

static void play(int fd, void *arg)
{
	const struct role *role = arg;
	struct process p = { .self = role->self, .fd = fd };

	open_process(&p, SERVER);
	role->run(&p);
}

static struct child start(struct program *self, void (*run)(struct process *p))
{
	struct role role = { .self = self, .run = run };

	return start_child(play, &role);
}

/* The way from SIDE to QPN at the other one. */
static struct ibv_qp_attr way(struct program *self, int side, uint32_t qpn)
{
	return (struct ibv_qp_attr){
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .port_num = 1,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = qpn, .rq_psn = 0x123, .sq_psn = 0x123,
		.max_dest_rd_atomic = 1, .max_rd_atomic = 1, .min_rnr_timer = 1,
		.timeout = PATIENT, .retry_cnt = RETRIES, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = self->gid[!side],
				      .sgid_index = self->on.gid_index[side], .hop_limit = 16 } },
	};
}

/* ---- the sender ---- */

struct sender {
	struct process p;
	struct ibv_qp *qp;
};

static void make_sender(struct program *self, struct sender *s)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_XRC,
		.cap = { .max_send_wr = MESSAGES, .max_send_sge = 1 },
	}, found;
	struct ibv_qp_attr attr;

	memset(s, 0, sizeof(*s));
	memset(&found, 0xff, sizeof(found));
	s->p.self = self;
	open_process(&s->p, CLIENT);
	init.send_cq = init.recv_cq = s->p.cq;
	init.xrc_domain = s->p.domain;
	s->qp = ibv_create_qp(s->p.pd, &init);
	CHECK(s->qp && init.cap.max_send_wr >= MESSAGES);
	CHECK(!ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &found));
	CHECK(attr.qp_state == IBV_QPS_RESET && found.qp_type == IBV_QPT_XRC);
	CHECK(found.send_cq == s->p.cq && !found.xrc_domain);
}

static void connect_sender(struct sender *s, uint32_t qpn)
{
	struct ibv_qp_attr attr = way(s->p.self, CLIENT, qpn);

	attr.qp_state = IBV_QPS_INIT;
	CHECK(!ibv_modify_qp(s->qp, &attr, TO_INIT));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(s->qp, &attr, TO_RTR));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(s->qp, &attr, TO_RTS));
}

static enum ibv_wc_status send_to(struct sender *s, uint32_t srqn, uint32_t word)
{
	struct ibv_sge sge = { (uintptr_t)s->p.buf, SIZE, s->p.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = word, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = word, .xrc_remote_srq_num = srqn,
	};
	struct ibv_wc wc;

	memset(s->p.buf, word, SIZE);
	CHECK(!ibv_post_send(s->qp, &wr, &bad));
	CHECK(next_wc(s->p.cq, &wc) == 1 && wc.wr_id == word);
	return wc.status;
}

/* ---- processes ---- */

/* Makes a receive QP for the sender's number that it hears, as in OFED 1.3, and keeps it. */
static void maker(struct process *p)
{
	struct ibv_qp_attr attr = way(p->self, SERVER, hear(p->fd)), found;
	struct ibv_qp_init_attr init;
	uint32_t qpn = 0;

	memset(&init, 0xff, sizeof(init));
	init.xrc_domain = p->domain;
	CHECK(!ibv_create_xrc_rcv_qp(&init, &qpn));
	CHECK(!ibv_query_xrc_rcv_qp(p->domain, qpn, &found, IBV_QP_STATE, &init));
	CHECK(found.qp_state == IBV_QPS_RESET);
	CHECK(found.cap.max_send_wr == 1 && found.cap.max_send_sge == 1);
	CHECK(init.cap.max_send_wr == 1 && init.cap.max_send_sge == 1);
	CHECK(!init.cap.max_recv_wr && !init.cap.max_recv_sge && !init.cap.max_inline_data);
	CHECK(init.qp_type == IBV_QPT_XRC && init.xrc_domain == p->domain);
	CHECK(!init.send_cq && !init.recv_cq && !init.srq && !init.qp_context);
	attr.qp_state = IBV_QPS_INIT;
	CHECK(!ibv_modify_xrc_rcv_qp(p->domain, qpn, &attr, TO_INIT));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_xrc_rcv_qp(p->domain, qpn, &attr, TO_RTR));
	/* Not needed, but some did it. */
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_xrc_rcv_qp(p->domain, qpn, &attr, TO_RTS));
	CHECK(!ibv_query_xrc_rcv_qp(p->domain, qpn, &found, IBV_QP_STATE, NULL));
	CHECK(found.qp_state == IBV_QPS_RTS && found.dest_qp_num == attr.dest_qp_num);
	say(p->fd, qpn);
	pause();
}

/* Makes one as in the proposal, and ends. */
static void allocator(struct process *p)
{
	struct ibv_qp_attr attr = way(p->self, SERVER, hear(p->fd)), found;
	uint32_t qpn = 0;

	attr.qkey = 1;
	CHECK(!ibv_alloc_xrc_rcv_qp(p->pd, p->domain, &attr, NEEDED | TOLERATED, &qpn));
	CHECK(!ibv_query_xrc_rcv_qp(p->domain, qpn, &found, IBV_QP_STATE, NULL));
	CHECK(found.qp_state == IBV_QPS_RTR && found.max_dest_rd_atomic == 0);
	say(p->fd, qpn);
	CHECK(!hear(p->fd));
	close_process(p);
}

static struct ibv_srq *srq_of(struct process *p)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = MESSAGES, .max_sge = 1 } };
	struct ibv_sge sge = { (uintptr_t)p->buf, SIZE, p->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_srq *srq = ibv_create_xrc_srq(p->pd, p->domain, p->cq, &init);
	struct ibv_srq_attr attr;
	int i;

	CHECK(srq && init.attr.max_wr >= MESSAGES);
	CHECK(srq->xrc_srq_num && srq->xrc_domain == p->domain && srq->xrc_cq == p->cq);
	CHECK(srq->context == p->ctx && srq->pd == p->pd);
	CHECK(!ibv_query_srq(srq, &attr) && attr.max_wr == init.attr.max_wr);
	for (i = 0; i < MESSAGES; i++)
		CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
	return srq;
}

/*
 * Has an SRQ. Hears the number of a receive QP, and whether to register for it; hears how many
 * messages to receive, until there are none. The answer is what the last call on the QP returned.
 */
static void receiver(struct process *p)
{
	struct ibv_srq *srq = srq_of(p);
	uint32_t qpn, registers, messages, i;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	say(p->fd, srq->xrc_srq_num);
	qpn = hear(p->fd);
	registers = hear(p->fd);
	say(p->fd, registers ? ibv_reg_xrc_rcv_qp(p->domain, qpn) : 0);
	while ((messages = hear(p->fd))) {
		for (i = 0; i < messages; i++) {
			CHECK(next_wc(p->cq, &wc) == 1);
			CHECK(wc.status == IBV_WC_SUCCESS && wc.qp_num == qpn);
			CHECK(wc.byte_len == SIZE && wc.imm_data == i);
		}
		say(p->fd, messages);
	}
	if (registers)
		CHECK(!ibv_unreg_xrc_rcv_qp(p->domain, qpn));
	say(p->fd, ibv_query_xrc_rcv_qp(p->domain, qpn, &attr, IBV_QP_STATE, NULL));
	CHECK(ibv_close_xrc_domain(p->domain) == EBUSY);
	CHECK(!ibv_destroy_srq(srq));
	close_process(p);
}

/* ---- the cases ---- */

/*
 * Has MADE make a receive QP, to which the sender is connected then, and OTHER receive from it,
 * registered or not. The number of OTHER's SRQ.
 */
static uint32_t connect_all(struct program *self, struct sender *s, struct child *made,
			    struct child *other, uint32_t registers)
{
	uint32_t qpn, srqn = hear(other->fd);

	make_sender(self, s);
	say(made->fd, s->qp->qp_num);
	qpn = hear(made->fd);
	connect_sender(s, qpn);
	say(other->fd, qpn);
	say(other->fd, registers);
	CHECK(!hear(other->fd));
	return srqn;
}

/* OTHER receives MESSAGES messages of the sender. */
static void send_all(struct sender *s, uint32_t srqn, struct child *other)
{
	uint32_t i;

	for (i = 0; i < MESSAGES; i++)
		CHECK(send_to(s, srqn, i) == IBV_WC_SUCCESS);
	say(other->fd, MESSAGES);
	CHECK(hear(other->fd) == MESSAGES);
}

/* The process that made the QP is killed; a registered one receives on, until it is not. */
static void maker_killed(struct program *self)
{
	struct child made = start(self, maker), other = start(self, receiver);
	struct sender s;
	uint32_t srqn = connect_all(self, &s, &made, &other, 1);

	kill_child(&made);
	send_all(&s, srqn, &other);
	CHECK(targets() == 1);
	say(other.fd, 0);
	CHECK(hear(other.fd) == EINVAL && targets() == 0);
	end_child(&other);
}

/* As the proposal has it: the process that made the QP is gone, the others have SRQs only. */
static void allocated(struct program *self)
{
	struct child made = start(self, allocator), other = start(self, receiver);
	struct sender s;
	uint32_t srqn = connect_all(self, &s, &made, &other, 0);

	say(made.fd, 0);
	end_child(&made);
	send_all(&s, srqn, &other);
	say(other.fd, 0);
	CHECK(hear(other.fd) == 0);
	end_child(&other);
	CHECK(!ibv_destroy_qp(s.qp));
	close_process(&s.p);
	CHECK(targets() == 0);
}

/* A QP of this process, in the state in which the sender is connected to it. */
static uint32_t receive_qp(struct process *p, struct sender *s)
{
	struct ibv_qp_attr attr = way(p->self, SERVER, s->qp->qp_num);
	struct ibv_qp_init_attr init = { .xrc_domain = p->domain };
	uint32_t qpn;

	CHECK(!ibv_create_xrc_rcv_qp(&init, &qpn));
	attr.qp_state = IBV_QPS_INIT;
	CHECK(!ibv_modify_xrc_rcv_qp(p->domain, qpn, &attr, TO_INIT));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_xrc_rcv_qp(p->domain, qpn, &attr, TO_RTR));
	connect_sender(s, qpn);
	return qpn;
}

/* Events have a flag and the number. */
static void events(struct program *self)
{
	struct process p = { .self = self };
	struct ibv_async_event event;
	struct sender s;
	uint32_t qpn;
	int type;

	open_process(&p, SERVER);
	make_sender(self, &s);
	qpn = receive_qp(&p, &s);
	CHECK(send_to(&s, NOBODY, 1) == IBV_WC_REM_INV_REQ_ERR);
	do {
		CHECK(readable(p.ctx->async_fd, 20));
		CHECK(!ibv_get_async_event(p.ctx, &event));
		type = event.event_type & ~IBV_XRC_QP_EVENT_FLAG;
		if (event.event_type & IBV_XRC_QP_EVENT_FLAG)
			CHECK(event.element.xrc_qp_num == qpn);
		ibv_ack_async_event(&event);
	} while (type != IBV_EVENT_QP_ACCESS_ERR || !(event.event_type & IBV_XRC_QP_EVENT_FLAG));
	CHECK(!ibv_unreg_xrc_rcv_qp(p.domain, qpn));
	close_process(&p);
}

/* What each call says when it fails. */
static void errors(struct program *self)
{
	struct process p = { .self = self };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .xrc_domain = NULL };
	struct ibv_xrc_domain *other, *nobodys;
	struct ibv_qp_attr attr, bad;
	struct ibv_srq *srq;
	uint32_t qpn = 77, srq_num;
	struct sender s;
	int fd;

	open_process(&p, SERVER);
	make_sender(self, &s);
	attr = way(self, SERVER, s.qp->qp_num);

	/* Domains. */
	CHECK(!ibv_open_xrc_domain(p.ctx, 1000, O_CREAT) && errno == EBADF);
	fd = open(self->file, O_RDONLY);
	CHECK(!ibv_open_xrc_domain(p.ctx, fd, O_CREAT | O_EXCL) && errno == EINVAL);
	close(fd);
	fd = open(self->other, O_RDONLY);
	CHECK(!ibv_open_xrc_domain(p.ctx, fd, 0) && errno == EAGAIN);
	close(fd);
	nobodys = ibv_open_xrc_domain(p.ctx, -1, O_CREAT);
	CHECK(nobodys);
	CHECK(!ibv_close_xrc_domain(nobodys));
	other = domain_of(p.ctx, self->other);

	/* SRQs. */
	srq_init.attr.max_wr = 1u << 31;
	CHECK(!ibv_create_xrc_srq(p.pd, p.domain, p.cq, &srq_init) && errno == EINVAL);
	srq_init.attr.max_wr = 1;
	CHECK(!ibv_create_xrc_srq(p.pd, NULL, p.cq, &srq_init) && errno == EINVAL);
	CHECK(!ibv_create_xrc_srq(p.pd, p.domain, NULL, &srq_init) && errno == EINVAL);
	srq = ibv_create_xrc_srq(p.pd, other, p.cq, &srq_init);
	CHECK(srq);
	srq_num = srq->xrc_srq_num;
	CHECK(ibv_close_xrc_domain(other) == EBUSY);
	CHECK(!ibv_destroy_srq(srq));
	/* A basic one, by the calls that it shares. */
	srq = ibv_create_srq(p.pd, &srq_init);
	CHECK(srq);
	CHECK(!ibv_modify_srq(srq, &srq_init.attr, IBV_SRQ_LIMIT));
	CHECK(!ibv_destroy_srq(srq));

	/* Receive QPs as in OFED 1.3. */
	CHECK(ibv_create_xrc_rcv_qp(NULL, &qpn) == EINVAL);
	CHECK(ibv_create_xrc_rcv_qp(&init, &qpn) == EINVAL);
	init.xrc_domain = p.domain;
	CHECK(ibv_create_xrc_rcv_qp(&init, NULL) == EINVAL);
	CHECK(qpn == 77 && targets() == 0);
	CHECK(!ibv_create_xrc_rcv_qp(&init, &qpn));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_xrc_rcv_qp(p.domain, qpn, &attr, TO_RTR) == EINVAL);
	CHECK(ibv_modify_xrc_rcv_qp(p.domain, qpn, NULL, TO_INIT) == EINVAL);
	attr.qp_state = IBV_QPS_INIT;
	CHECK(ibv_modify_xrc_rcv_qp(p.domain, qpn, &attr, TO_INIT & ~IBV_QP_PORT) == EINVAL);
	CHECK(ibv_modify_xrc_rcv_qp(NULL, qpn, &attr, TO_INIT) == EINVAL);
	CHECK(ibv_modify_xrc_rcv_qp(other, qpn, &attr, TO_INIT) == EINVAL);
	CHECK(ibv_modify_xrc_rcv_qp(p.domain, srq_num, &attr, TO_INIT) == EINVAL);
	CHECK(ibv_query_xrc_rcv_qp(NULL, qpn, &bad, IBV_QP_STATE, &init) == EINVAL);
	CHECK(ibv_query_xrc_rcv_qp(other, qpn, &bad, IBV_QP_STATE, &init) == EINVAL);
	CHECK(ibv_reg_xrc_rcv_qp(NULL, qpn) == EINVAL);
	CHECK(ibv_reg_xrc_rcv_qp(other, qpn) == EINVAL);
	CHECK(ibv_reg_xrc_rcv_qp(p.domain, s.qp->qp_num) == EINVAL);
	CHECK(!ibv_reg_xrc_rcv_qp(p.domain, qpn));
	CHECK(ibv_close_xrc_domain(p.domain) == EBUSY);
	CHECK(ibv_unreg_xrc_rcv_qp(NULL, qpn) == EINVAL);
	CHECK(ibv_unreg_xrc_rcv_qp(other, qpn) == EINVAL);
	CHECK(!ibv_query_xrc_rcv_qp(p.domain, qpn, &bad, IBV_QP_STATE, &init));
	CHECK(bad.qp_state == IBV_QPS_RESET);
	CHECK(!ibv_unreg_xrc_rcv_qp(p.domain, qpn));
	CHECK(ibv_unreg_xrc_rcv_qp(p.domain, qpn) == EINVAL);
	CHECK(targets() == 0);

	/* As in the proposal: negative. */
	qpn = 77;
	CHECK(ibv_alloc_xrc_rcv_qp(NULL, p.domain, &attr, NEEDED, &qpn) == -EINVAL);
	CHECK(ibv_alloc_xrc_rcv_qp(p.pd, NULL, &attr, NEEDED, &qpn) == -EINVAL);
	CHECK(ibv_alloc_xrc_rcv_qp(p.pd, p.domain, NULL, NEEDED, &qpn) == -EINVAL);
	CHECK(ibv_alloc_xrc_rcv_qp(p.pd, p.domain, &attr, NEEDED, NULL) == -EINVAL);
	CHECK(ibv_alloc_xrc_rcv_qp(p.pd, p.domain, &attr, 0, &qpn) == -EINVAL);
	CHECK(ibv_alloc_xrc_rcv_qp(p.pd, p.domain, &attr, NEEDED & ~IBV_QP_AV, &qpn) == -EINVAL);
	CHECK(ibv_alloc_xrc_rcv_qp(p.pd, p.domain, &attr, NEEDED | IBV_QP_ALT_PATH, &qpn) ==
	      -EINVAL);
	bad = attr;
	bad.ah_attr.grh.sgid_index = 255;
	CHECK(ibv_alloc_xrc_rcv_qp(p.pd, p.domain, &bad, NEEDED, &qpn) == -ENODATA);
	CHECK(qpn == 77 && targets() == 0);
	/* Note 3: its RNR timer is 0 by default. */
	CHECK(!ibv_alloc_xrc_rcv_qp(p.pd, p.domain, &attr, NEEDED & ~IBV_QP_MIN_RNR_TIMER, &qpn));
	CHECK(!ibv_query_xrc_rcv_qp(p.domain, qpn, &bad, IBV_QP_STATE, NULL));
	CHECK(bad.min_rnr_timer == 0 && bad.qp_state == IBV_QPS_RTR);
	CHECK(ibv_unreg_xrc_rcv_qp(p.domain, qpn) == EINVAL);
	CHECK(targets() == 1);

	/* The sender shares the domain if there is one device. */
	CHECK(!ibv_destroy_qp(s.qp));
	close_process(&s.p);
	CHECK(!ibv_close_xrc_domain(other));
	close_process(&p);
	CHECK(targets() == 0);
}

static const CASES(struct program) cases[] = {
	{ "ofed_maker_killed", maker_killed },
	{ "ofed_allocated", allocated },
	{ "ofed_events", events },
	{ "ofed_errors", errors },
	{ NULL, NULL },
};

/* The files and GIDs; the devices are closed again, so that children share nothing. */
static void prepare(struct program *self)
{
	struct ibv_context *ctx;
	int side;

	strcpy(self->file, "/tmp/selftest-ofed-XXXXXX");
	strcpy(self->other, "/tmp/selftest-ofed-XXXXXX");
	close(mkstemp(self->file));
	close(mkstemp(self->other));
	for (side = SERVER; side <= CLIENT; side++) {
		ctx = open_device(self->on.name[side]);
		CHECK(!ibv_query_gid(ctx, 1, self->on.gid_index[side], &self->gid[side]));
		ibv_close_device(ctx);
	}
}

static void tidy(struct program *self)
{
	unlink(self->file);
	unlink(self->other);
}

static int elsewhere(const char *name)
{
	struct ibv_context *ctx = open_device(name);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_srq *srq;
	uint32_t max = 7;

	CHECK(pd);
	CHECK(!xroce_dv_is_supported(ctx->device));
	CHECK(!ibv_open_xrc_domain(ctx, -1, O_CREAT) && errno == ENOSYS);
	srq = ibv_create_srq(pd, &init);
	CHECK(srq);
	/* Its type has another name here. */
	CHECK(xroce_dv_query_tm_masks((void *)srq, &max) == EOPNOTSUPP && max == 7);
	CHECK(!ibv_destroy_srq(srq) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	return 0;
}

int main(int argc, char **argv)
{
	static struct program self;

	if (argc == 3 && !strcmp(argv[1], "elsewhere"))
		return elsewhere(argv[2]);
	return RUN_CASES_AROUND(&self, cases, prepare, tidy, argc, argv);
}
