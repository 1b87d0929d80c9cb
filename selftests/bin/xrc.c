// SPDX-License-Identifier: GPL-2.0
/*
 * XRC between processes: a domain shared through a file, target QPs that
 * outlive their creator, SRQs of several processes behind one connection.
 *
 *   xrc                                               lists the cases
 *   xrc CASE SERVER-DEVICE GID-INDEX CLIENT-DEVICE GID-INDEX
 *
 * The program itself is the client; its children are the servers. A child gets
 * an order and gives an answer over a socket.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "check.h"

#define DEPTH 64
#define SIZE 256

static const char *server_device, *client_device;
static int server_gid, client_gid;
static char domain_file[64] = "/tmp/selftest-xrc-XXXXXX";

enum order {
	MAKE_TARGET,	/* arg: the client's QP; answer: the target's number */
	OPEN_TARGET,	/* arg: its number; answer: its state */
	QUERY_TARGET,	/* answer: its state */
	AWAIT_EVENT,	/* arg: which */
	DESTROY_TARGET,
	MAKE_SRQ,	/* arg: receives to post; answer: its number */
	RECEIVE,	/* arg: how many messages, in order, from tag */
	CLOSE,		/* the SRQ and the domain */
};

struct message {
	uint32_t order, arg, tag;
	union ibv_gid gid;
};

struct child {
	pid_t pid;
	int fd;
};

/* What the sender of message N with TAG writes. */
static void fill(uint8_t *buf, uint32_t tag, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < SIZE; i++)
		buf[i] = tag * 31 + n * 7 + i;
}

/* ---- a server process ---- */

struct server {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	uint8_t *buf;
	uint32_t of_tag[8];
};

static struct ibv_xrcd *open_domain(struct ibv_context *ctx, const char *path)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = open(path, O_RDONLY | O_CREAT, 0600), .oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd;

	CHECK(attr.fd >= 0);
	xrcd = ibv_open_xrcd(ctx, &attr);
	CHECK(xrcd);
	close(attr.fd);
	return xrcd;
}

static void to_rtr(struct ibv_qp *qp, uint32_t dest, const union ibv_gid *gid, int gid_index)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = dest,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = *gid, .sgid_index = gid_index, .hop_limit = 16 } },
	};
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER));
}

static void post_srq(struct server *s, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)s->buf + slot * SIZE, SIZE, s->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	CHECK(!ibv_post_srq_recv(s->srq, &wr, &bad));
}

static void make_srq(struct server *s, uint32_t receives)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC, .xrcd = s->xrcd, .cq = s->cq, .pd = s->pd,
	};
	uint32_t i;

	s->srq = ibv_create_srq_ex(s->ctx, &attr);
	CHECK(s->srq);
	for (i = 0; i < receives; i++)
		post_srq(s, i);
}

static uint32_t target_state(struct server *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

/* Receives COUNT messages; the n-th that bears a tag is the n-th sent with it. */
static void receive(struct server *s, uint32_t count)
{
	uint8_t expected[SIZE];
	struct ibv_wc wc;

	while (count--) {
		uint32_t tag;

		CHECK(next_wc(s->cq, &wc) == 1);
		CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
		CHECK(wc.byte_len == SIZE && (wc.wc_flags & IBV_WC_WITH_IMM));
		if (s->qp)
			CHECK(wc.qp_num == s->qp->qp_num);
		tag = wc.imm_data;
		CHECK(tag < 8);
		fill(expected, tag, s->of_tag[tag]++);
		CHECK(!memcmp(expected, s->buf + wc.wr_id * SIZE, SIZE));
		post_srq(s, wc.wr_id);
	}
}

static uint32_t obey(struct server *s, const struct message *m)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = s->xrcd,
	};
	struct ibv_qp_open_attr open_attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = m->arg, .xrcd = s->xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_async_event ev;
	uint32_t number;

	switch (m->order) {
	case MAKE_TARGET:
		s->qp = ibv_create_qp_ex(s->ctx, &init);
		CHECK(s->qp);
		to_rtr(s->qp, m->arg, &m->gid, server_gid);
		return s->qp->qp_num;
	case OPEN_TARGET:
		s->qp = ibv_open_qp(s->ctx, &open_attr);
		CHECK(s->qp);
		CHECK(s->qp->qp_num == m->arg);
		return target_state(s);
	case QUERY_TARGET:
		return target_state(s);
	case AWAIT_EVENT:
		CHECK(next_event(s->ctx, m->arg, &ev));
		CHECK(ev.element.qp == s->qp);
		return 0;
	case DESTROY_TARGET:
		/* A domain with a target that this process has open stays. */
		CHECK(ibv_close_xrcd(s->xrcd) == EBUSY);
		CHECK(!ibv_destroy_qp(s->qp));
		s->qp = NULL;
		return 0;
	case MAKE_SRQ:
		make_srq(s, m->arg);
		CHECK(!ibv_get_srq_num(s->srq, &number));
		return number;
	case RECEIVE:
		receive(s, m->arg);
		return 0;
	case CLOSE:
		if (s->srq) {
			CHECK(ibv_close_xrcd(s->xrcd) == EBUSY);
			CHECK(!ibv_destroy_srq(s->srq));
		}
		CHECK(!ibv_close_xrcd(s->xrcd));
		return 0;
	}
	CHECK(!"known order");
	return 0;
}

static void serve(int fd, const char *path)
{
	struct server s = { .ctx = open_device(server_device) };
	struct message m;

	s.buf = aligned_alloc(4096, DEPTH * SIZE);
	s.pd = ibv_alloc_pd(s.ctx);
	s.cq = ibv_create_cq(s.ctx, 2 * DEPTH, NULL, NULL, 0);
	CHECK(s.buf && s.pd && s.cq);
	s.mr = ibv_reg_mr(s.pd, s.buf, DEPTH * SIZE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(s.mr);
	s.xrcd = open_domain(s.ctx, path);
	while (read(fd, &m, sizeof(m)) == sizeof(m)) {
		uint32_t answer = obey(&s, &m);

		CHECK(write(fd, &answer, sizeof(answer)) == sizeof(answer));
		if (m.order == CLOSE)
			break;
	}
	_exit(0);
}

static struct child start(const char *path)
{
	struct child c;
	int fds[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	fflush(stdout);
	c.pid = fork();
	CHECK(c.pid >= 0);
	if (!c.pid) {
		close(fds[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fds[1], path);
	}
	close(fds[1]);
	c.fd = fds[0];
	return c;
}

static uint32_t tell(struct child *c, enum order order, uint32_t arg)
{
	struct message m = { .order = order, .arg = arg };
	uint32_t answer;
	struct ibv_context *ctx;

	if (order == MAKE_TARGET) {
		ctx = open_device(client_device);
		CHECK(!ibv_query_gid(ctx, 1, client_gid, &m.gid));
		ibv_close_device(ctx);
	}
	CHECK(write(c->fd, &m, sizeof(m)) == sizeof(m));
	CHECK(read(c->fd, &answer, sizeof(answer)) == sizeof(answer));
	return answer;
}

static void kill_child(struct child *c)
{
	CHECK(!kill(c->pid, SIGKILL));
	CHECK(waitpid(c->pid, NULL, 0) == c->pid);
	close(c->fd);
}

/* Closes the domain and lets the process end by itself. */
static void end_child(struct child *c)
{
	int status;

	tell(c, CLOSE, 0);
	close(c->fd);
	CHECK(waitpid(c->pid, &status, 0) == c->pid && status == 0);
}

/* ---- the client ---- */

struct client {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid server;
	uint8_t *buf;
	uint32_t tag;
	uint8_t rnr_retry;
};

static void make_client(struct client *c, uint32_t tag)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1 },
	};
	struct ibv_context *ctx = open_device(server_device);

	CHECK(!ibv_query_gid(ctx, 1, server_gid, &c->server));
	ibv_close_device(ctx);
	c->tag = tag;
	c->rnr_retry = 7;
	c->ctx = open_device(client_device);
	c->buf = aligned_alloc(4096, 4096);
	c->pd = ibv_alloc_pd(c->ctx);
	c->cq = ibv_create_cq(c->ctx, 2 * DEPTH, NULL, NULL, 0);
	CHECK(c->buf && c->pd && c->cq);
	c->mr = ibv_reg_mr(c->pd, c->buf, 4096, 0);
	init.pd = c->pd;
	init.send_cq = init.recv_cq = c->cq;
	c->qp = ibv_create_qp_ex(c->ctx, &init);
	CHECK(c->mr && c->qp);
}

static void connect_client(struct client *c, uint32_t target)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 3, .rnr_retry = c->rnr_retry,
		.max_rd_atomic = 1,
	};

	/* Time to answer: about 0.3 s a try on the debug kernel, 4 ms else. */
	if (getenv("SELFTEST_SLOW") && atoi(getenv("SELFTEST_SLOW")) > 1)
		a.timeout = 16;
	to_rtr(c->qp, target, &c->server, client_gid);
	CHECK(!ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* Sends message N to SRQ number SRQN; how it completed. */
static enum ibv_wc_status send_to(struct client *c, uint32_t srqn, uint32_t n)
{
	struct ibv_sge sge = { (uintptr_t)c->buf, SIZE, c->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = c->tag,
		.qp_type.xrc.remote_srqn = srqn,
	};
	struct ibv_wc wc;

	fill(c->buf, c->tag, n);
	CHECK(!ibv_post_send(c->qp, &wr, &bad));
	CHECK(next_wc(c->cq, &wc) == 1);
	CHECK(wc.wr_id == n);
	if (wc.status != IBV_WC_SUCCESS)
		printf("# %s\n", ibv_wc_status_str(wc.status));
	return wc.status;
}

static int targets(void)
{
	FILE *f = popen("rdma res show qp | grep -c XRC_TGT", "r");
	int n = -1;

	CHECK(f && fscanf(f, "%d", &n) == 1);
	pclose(f);
	return n;
}

/* ---- the cases ---- */

/* The creator of a target is killed: the domain's others go on with it. */
static void creator_killed(void)
{
	struct child creator = start(domain_file), other = start(domain_file), late;
	uint32_t qpn, srqn, late_srqn, n, state;
	struct client c;

	make_client(&c, 1);
	qpn = tell(&creator, MAKE_TARGET, c.qp->qp_num);
	connect_client(&c, qpn);
	srqn = tell(&other, MAKE_SRQ, 16);
	CHECK(send_to(&c, srqn, 0) == IBV_WC_SUCCESS);
	tell(&other, RECEIVE, 1);
	kill_child(&creator);
	for (n = 1; n < 20; n++) {
		CHECK(send_to(&c, srqn, n) == IBV_WC_SUCCESS);
		tell(&other, RECEIVE, 1);
	}
	CHECK(targets() == 1);

	/* One that comes later finds the target by its number. */
	late = start(domain_file);
	state = tell(&late, OPEN_TARGET, qpn);
	CHECK(state == IBV_QPS_RTR);
	late_srqn = tell(&late, MAKE_SRQ, 1);
	CHECK(late_srqn != srqn);
	c.tag = 2;
	CHECK(send_to(&c, late_srqn, 0) == IBV_WC_SUCCESS);
	tell(&late, RECEIVE, 1);
	/* Its events are the late one's too. */
	CHECK(send_to(&c, 0xfffff0, 1) == IBV_WC_REM_INV_REQ_ERR);
	tell(&late, AWAIT_EVENT, IBV_EVENT_QP_ACCESS_ERR);
	CHECK(tell(&late, QUERY_TARGET, 0) == IBV_QPS_ERR);
	CHECK(targets() == 1);
	kill_child(&late);
	end_child(&other);
	CHECK(targets() == 0);
}

/* Destroyed by name, a target is gone, whoever made it. */
static void destroyed_by_opener(void)
{
	struct child creator = start(domain_file), opener = start(domain_file);
	uint32_t qpn, srqn;
	struct client c;

	make_client(&c, 1);
	qpn = tell(&creator, MAKE_TARGET, c.qp->qp_num);
	connect_client(&c, qpn);
	srqn = tell(&opener, MAKE_SRQ, 4);
	tell(&opener, OPEN_TARGET, qpn);
	kill_child(&creator);
	CHECK(send_to(&c, srqn, 0) == IBV_WC_SUCCESS);
	tell(&opener, RECEIVE, 1);
	tell(&opener, DESTROY_TARGET, 0);
	CHECK(targets() == 0);
	CHECK(send_to(&c, srqn, 1) == IBV_WC_RETRY_EXC_ERR);
	end_child(&opener);
}

/* The domain's last process ends, in its own way or by a signal. */
static void last_one_out(void)
{
	struct child one, two;
	struct client c;
	uint32_t srqn;
	int how;

	for (how = 0; how < 2; how++) {
		one = start(domain_file);
		two = start(domain_file);
		make_client(&c, 1);
		connect_client(&c, tell(&one, MAKE_TARGET, c.qp->qp_num));
		srqn = tell(&two, MAKE_SRQ, 4);
		CHECK(send_to(&c, srqn, 0) == IBV_WC_SUCCESS);
		kill_child(&one);
		CHECK(targets() == 1);
		if (how)
			kill_child(&two);
		else
			end_child(&two);
		CHECK(targets() == 0);
		CHECK(send_to(&c, srqn, 1) == IBV_WC_RETRY_EXC_ERR);
	}
}

/* A connection to a new target of SERVER. */
static void connected(struct client *c, struct child *server)
{
	make_client(c, 1);
	connect_client(c, tell(server, MAKE_TARGET, c->qp->qp_num));
}

/* Numbers that name no SRQ of the domain; a queue without receives. */
static void wrong_srq(void)
{
	char other_file[] = "/tmp/selftest-xrc-XXXXXX";
	struct child server = start(domain_file), other;
	struct ibv_srq_init_attr basic_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	uint32_t srqn, others, number, basic;
	struct ibv_srq *srq;
	struct client c;
	int fd = mkstemp(other_file), i;

	CHECK(fd >= 0);
	other = start(other_file);
	srqn = tell(&server, MAKE_SRQ, 0);
	others = tell(&other, MAKE_SRQ, 4);

	connected(&c, &server);
	CHECK(send_to(&c, others, 0) == IBV_WC_REM_INV_REQ_ERR);
	tell(&server, AWAIT_EVENT, IBV_EVENT_QP_ACCESS_ERR);
	CHECK(tell(&server, QUERY_TARGET, 0) == IBV_QPS_ERR);
	tell(&server, DESTROY_TARGET, 0);

	/*
	 * A basic SRQ's number is not told: it is one of those next to an XRC
	 * SRQ's. None of them may do.
	 */
	connected(&c, &server);
	srq = ibv_create_srq(c.pd, &basic_attr);
	CHECK(srq);
	CHECK(ibv_get_srq_num(srq, &number) != 0);
	for (i = 1, basic = others + 1; i <= 4; i++, basic++) {
		CHECK(send_to(&c, basic, 0) == IBV_WC_REM_INV_REQ_ERR);
		CHECK(tell(&server, QUERY_TARGET, 0) == IBV_QPS_ERR);
		tell(&server, DESTROY_TARGET, 0);
		connected(&c, &server);
	}

	CHECK(send_to(&c, 0xfffff0, 0) == IBV_WC_REM_INV_REQ_ERR);
	CHECK(tell(&server, QUERY_TARGET, 0) == IBV_QPS_ERR);
	tell(&server, DESTROY_TARGET, 0);

	make_client(&c, 1);
	c.rnr_retry = 2;
	connect_client(&c, tell(&server, MAKE_TARGET, c.qp->qp_num));
	CHECK(send_to(&c, srqn, 0) == IBV_WC_RNR_RETRY_EXC_ERR);
	CHECK(tell(&server, QUERY_TARGET, 0) == IBV_QPS_RTR);
	tell(&server, DESTROY_TARGET, 0);
	end_child(&server);
	end_child(&other);
	close(fd);
	unlink(other_file);
}

static struct ibv_xrcd *try_open(struct ibv_context *ctx, uint32_t mask, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = mask, .fd = fd, .oflags = oflags };

	errno = 0;
	return ibv_open_xrcd(ctx, &attr);
}

/* What opening a domain can say. */
static void open_refused(void)
{
	const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct ibv_context *ctx = open_device(server_device);
	int fd = open(domain_file, O_RDONLY);
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
static void posts_and_opens_refused(void)
{
	struct server s = { .ctx = open_device(server_device) };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 1 };
	struct ibv_send_wr *bad_send, send = { .opcode = IBV_WR_SEND };
	struct client c;

	make_client(&c, 1);
	attr.xrcd = init.xrcd = open_domain(s.ctx, domain_file);
	s.qp = ibv_create_qp_ex(s.ctx, &init);
	CHECK(s.qp);
	to_rtr(s.qp, c.qp->qp_num, &c.server, server_gid);
	connect_client(&c, s.qp->qp_num);
	CHECK(ibv_post_recv(s.qp, &recv, &bad_recv) == EINVAL);
	CHECK(ibv_post_send(s.qp, &send, &bad_send) == EINVAL);
	CHECK(ibv_post_recv(c.qp, &recv, &bad_recv) == EINVAL);
	send.qp_type.xrc.remote_srqn = 1 << 24;
	CHECK(ibv_post_send(c.qp, &send, &bad_send) == EINVAL);
	attr.qp_num = 0x7fffff;
	CHECK(!ibv_open_qp(s.ctx, &attr) && errno == EINVAL);
	attr.qp_num = c.qp->qp_num;
	CHECK(!ibv_open_qp(s.ctx, &attr) && errno == EINVAL);
	attr.qp_num = s.qp->qp_num;
	attr.qp_type = IBV_QPT_RC;
	CHECK(!ibv_open_qp(s.ctx, &attr) && errno == EINVAL);
	CHECK(!ibv_destroy_qp(s.qp));
	CHECK(!ibv_close_xrcd(init.xrcd));
}

#define CLIENTS 3
#define SERVERS 3
#define ROUNDS 30

/* Each client process sends to each server process, over one connection. */
static void mesh(void)
{
	struct child servers[SERVERS], makers[CLIENTS];
	uint32_t srqn[SERVERS], qpn;
	int i, j, n, status, fds[CLIENTS][2];
	pid_t pids[CLIENTS];

	for (i = 0; i < SERVERS; i++) {
		servers[i] = start(domain_file);
		srqn[i] = tell(&servers[i], MAKE_SRQ, DEPTH);
	}
	for (i = 0; i < CLIENTS; i++) {
		makers[i] = start(domain_file);
		CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds[i]));
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (!pids[i]) {
			struct client c;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			make_client(&c, i);
			CHECK(write(fds[i][1], &c.qp->qp_num, 4) == 4);
			CHECK(read(fds[i][1], &qpn, 4) == 4);
			connect_client(&c, qpn);
			for (n = 0; n < ROUNDS; n++)
				for (j = 0; j < SERVERS; j++)
					CHECK(send_to(&c, srqn[j], n) == IBV_WC_SUCCESS);
			_exit(0);
		}
		CHECK(read(fds[i][0], &qpn, 4) == 4);
		qpn = tell(&makers[i], MAKE_TARGET, qpn);
		CHECK(write(fds[i][0], &qpn, 4) == 4);
	}
	CHECK(targets() == CLIENTS);
	for (n = 0; n < ROUNDS; n++)
		for (i = 0; i < SERVERS; i++)
			tell(&servers[i], RECEIVE, CLIENTS);
	for (i = 0; i < CLIENTS; i++) {
		CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
		kill_child(&makers[i]);
	}
	for (i = 0; i < SERVERS; i++)
		end_child(&servers[i]);
	CHECK(targets() == 0);
}

static const struct check_case cases[] = {
	{ "open_refused", open_refused },
	{ "posts_and_opens_refused", posts_and_opens_refused },
	{ "creator_killed", creator_killed },
	{ "destroyed_by_opener", destroyed_by_opener },
	{ "last_one_out", last_one_out },
	{ "wrong_srq", wrong_srq },
	{ "mesh", mesh },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	int fd, ret;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 1)
		return run_case(cases, NULL);
	if (argc != 6)
		return 2;
	server_device = argv[2];
	server_gid = atoi(argv[3]);
	client_device = argv[4];
	client_gid = atoi(argv[5]);
	fd = mkstemp(domain_file);
	if (fd < 0)
		die(domain_file);
	close(fd);
	ret = run_case(cases, argv[1]);
	unlink(domain_file);
	return ret;
}
