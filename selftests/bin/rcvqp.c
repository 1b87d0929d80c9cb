// SPDX-License-Identifier: GPL-2.0
/*
 * XRC receive QPs by number (<infiniband/xroce_dv.h>): targets that processes
 * register for and no process has an object of.
 *
 *   rcvqp                                               lists the cases
 *   rcvqp CASE SERVER-DEVICE GID-INDEX CLIENT-DEVICE GID-INDEX
 *
 * The program itself is the client, which sends. Its children are the
 * processes of the domain; each does what it is told: a function of this file
 * with an argument, whose result comes back over a socket.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <infiniband/xroce_dv.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/xroce-abi.h>

#include "check.h"

#define DEPTH 32
#define SIZE 128
/* What a create call must have, and may have. */
#define NEEDED (IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | \
		IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER)
#define USUAL (NEEDED | IBV_QP_MAX_DEST_RD_ATOMIC)
#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

static const char *server_device, *client_device;
static int server_gid, client_gid;
static char domain_file[] = "/tmp/selftest-rcvqp-XXXXXX";
static char other_file[] = "/tmp/selftest-rcvqp-other-XXXXXX";

struct peer {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_qp *view;
	uint8_t *buf;
	uint32_t made;
};

struct message {
	uint32_t (*run)(struct peer *p, const struct message *m);
	uint32_t arg;
	int mask;
	union ibv_gid client;
};

struct child {
	pid_t pid;
	int fd;
};

/* ---- in a child ---- */

static struct ibv_xrcd *open_domain(struct ibv_context *ctx, const char *path)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = open(path, O_RDONLY), .oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd;

	CHECK(attr.fd >= 0);
	xrcd = ibv_open_xrcd(ctx, &attr);
	CHECK(xrcd);
	close(attr.fd);
	return xrcd;
}

static struct ibv_qp_attr connected_to(uint32_t qpn, const union ibv_gid *gid, int gid_index)
{
	return (struct ibv_qp_attr){
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .port_num = 1,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = qpn, .rq_psn = 0x123,
		.max_dest_rd_atomic = 3, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = *gid, .sgid_index = gid_index, .hop_limit = 16 } },
	};
}

/* Makes a receive QP for the client's QP ARG; its number. */
static uint32_t create(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr = connected_to(m->arg, &m->client, server_gid);
	uint32_t qpn = 0;

	CHECK(!xroce_dv_create_xrc_rcv_qp(p->xrcd, &attr, USUAL, &qpn));
	CHECK(qpn > 1 && qpn < 1 << 24);
	p->made = qpn;
	return qpn;
}

static uint32_t reg(struct peer *p, const struct message *m)
{
	return xroce_dv_reg_xrc_rcv_qp(p->xrcd, m->arg);
}

static uint32_t unreg(struct peer *p, const struct message *m)
{
	return xroce_dv_unreg_xrc_rcv_qp(p->xrcd, m->arg);
}

/* The state of QP ARG, or 100 plus the value of errno. */
static uint32_t state(struct peer *p, const struct message *m)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err = xroce_dv_query_xrc_rcv_qp(p->xrcd, m->arg, &attr, IBV_QP_STATE, &init);

	if (err)
		return 100 + err;
	CHECK(init.qp_type == IBV_QPT_XRC_RECV);
	CHECK(attr.cur_qp_state == attr.qp_state);
	return attr.qp_state;
}

/* Are all attributes of QP ARG as create() set them? */
static uint32_t as_made(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr, made = connected_to(0, &m->client, server_gid);

	memset(&attr, 0xff, sizeof(attr));
	CHECK(!xroce_dv_query_xrc_rcv_qp(p->xrcd, m->arg, &attr, USUAL, NULL));
	CHECK(attr.qp_state == IBV_QPS_RTR);
	CHECK(attr.qp_access_flags == made.qp_access_flags);
	CHECK(attr.port_num == 1 && attr.pkey_index == 0);
	CHECK(attr.path_mtu == made.path_mtu && attr.rq_psn == made.rq_psn);
	CHECK(attr.max_dest_rd_atomic == 3 && attr.min_rnr_timer == 1);
	CHECK(attr.max_rd_atomic == 0 && attr.retry_cnt == 0);
	CHECK(attr.ah_attr.is_global && attr.ah_attr.port_num == 1);
	/* The hop limit is the one that ib_core found. */
	CHECK(attr.ah_attr.grh.sgid_index == server_gid && attr.ah_attr.grh.hop_limit);
	CHECK(!memcmp(&attr.ah_attr.grh.dgid, &m->client, 16));
	return attr.dest_qp_num;
}

/* Takes QP ARG to the error state. */
static uint32_t to_error(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, IBV_QP_STATE);
}

/* Brings QP ARG from the error state back to where create() left it. */
static uint32_t revive(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr = connected_to(m->mask, &m->client, server_gid);

	attr.qp_state = IBV_QPS_RTR;
	CHECK(xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, TO_RTR) == EINVAL);
	attr.qp_state = IBV_QPS_RESET;
	CHECK(!xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_INIT;
	CHECK(!xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, TO_INIT));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, TO_RTR & ~IBV_QP_AV) == EINVAL);
	CHECK(!xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, TO_RTR));
	return 0;
}

static uint32_t make_srq(struct peer *p, const struct message *m)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC, .xrcd = p->xrcd, .cq = p->cq, .pd = p->pd,
	};
	struct ibv_sge sge = { (uintptr_t)p->buf, SIZE, p->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	uint32_t i, number;

	p->srq = ibv_create_srq_ex(p->ctx, &attr);
	CHECK(p->srq);
	for (i = 0; i < m->arg; i++)
		CHECK(!ibv_post_srq_recv(p->srq, &wr, &bad));
	CHECK(!ibv_get_srq_num(p->srq, &number));
	return number;
}

/* Receives a message through QP ARG; the number that it bears. */
static uint32_t receive(struct peer *p, const struct message *m)
{
	struct ibv_wc wc;

	CHECK(next_wc(p->cq, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
	CHECK(wc.byte_len == SIZE && wc.qp_num == m->arg && (wc.wc_flags & IBV_WC_WITH_IMM));
	CHECK(p->buf[0] == (uint8_t)wc.imm_data && p->buf[SIZE - 1] == (uint8_t)wc.imm_data);
	return wc.imm_data;
}

/* Waits for an event of QP ARG; its type. */
static uint32_t await_event(struct peer *p, const struct message *m)
{
	struct ibv_async_event ev;
	enum ibv_event_type type;
	uint32_t qpn;

	while (readable(p->ctx->async_fd, 20)) {
		CHECK(!ibv_get_async_event(p->ctx, &ev));
		ibv_ack_async_event(&ev);
		if (!xroce_dv_is_xrc_rcv_qp_event(&ev, &type, &qpn))
			continue;
		CHECK(qpn == m->arg);
		return type;
	}
	CHECK(!"an event");
	return 0;
}

/* Is there an event? All that were to come have come elsewhere. */
static uint32_t has_event(struct peer *p, const struct message *m)
{
	struct pollfd fd = { .fd = p->ctx->async_fd, .events = POLLIN };

	(void)m;
	return poll(&fd, 1, 0) == 1;
}

static uint32_t open_view(struct peer *p, const struct message *m)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = m->arg, .xrcd = p->xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};

	p->view = ibv_open_qp(p->ctx, &attr);
	return p->view ? 0 : errno;
}

/* A target with an object. */
static uint32_t make_view(struct peer *p, const struct message *m)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = p->xrcd,
	};

	(void)m;
	p->view = ibv_create_qp_ex(p->ctx, &init);
	CHECK(p->view);
	return p->view->qp_num;
}

static uint32_t destroy_view(struct peer *p, const struct message *m)
{
	(void)m;
	return ibv_destroy_qp(p->view);
}

static uint32_t close_domain(struct peer *p, const struct message *m)
{
	(void)m;
	if (p->srq)
		CHECK(!ibv_destroy_srq(p->srq));
	p->srq = NULL;
	return ibv_close_xrcd(p->xrcd);
}

static void serve(int fd, const char *path)
{
	struct peer p = { .ctx = open_device(server_device) };
	struct message m;

	CHECK(xroce_dv_is_supported(p.ctx->device));
	p.buf = aligned_alloc(4096, 4096);
	p.pd = ibv_alloc_pd(p.ctx);
	p.cq = ibv_create_cq(p.ctx, 2 * DEPTH, NULL, NULL, 0);
	CHECK(p.buf && p.pd && p.cq);
	p.mr = ibv_reg_mr(p.pd, p.buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(p.mr);
	p.xrcd = open_domain(p.ctx, path);
	while (read(fd, &m, sizeof(m)) == sizeof(m)) {
		uint32_t answer = m.run(&p, &m);

		CHECK(write(fd, &answer, sizeof(answer)) == sizeof(answer));
	}
	_exit(0);
}

/* ---- in the program ---- */

static struct child start(const char *path)
{
	struct child c;
	int fds[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
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

static uint32_t tell2(struct child *c, uint32_t (*run)(struct peer *, const struct message *),
		      uint32_t arg, int mask)
{
	struct message m = { .run = run, .arg = arg, .mask = mask };
	struct ibv_context *ctx = open_device(client_device);
	uint32_t answer;

	CHECK(!ibv_query_gid(ctx, 1, client_gid, &m.client));
	ibv_close_device(ctx);
	CHECK(write(c->fd, &m, sizeof(m)) == sizeof(m));
	CHECK(read(c->fd, &answer, sizeof(answer)) == sizeof(answer));
	return answer;
}

#define tell(child, run, arg) tell2(child, run, arg, 0)

static void kill_child(struct child *c)
{
	CHECK(!kill(c->pid, SIGKILL));
	CHECK(waitpid(c->pid, NULL, 0) == c->pid);
	close(c->fd);
}

/* Lets the process end by itself. */
static void end_child(struct child *c)
{
	int status;

	/* Children that were made later have this end as well. */
	CHECK(!shutdown(c->fd, SHUT_RDWR));
	close(c->fd);
	CHECK(waitpid(c->pid, &status, 0) == c->pid && status == 0);
}

/* The number that COMMAND prints. */
static int count(const char *command)
{
	FILE *f = popen(command, "r");
	int n = -1;

	CHECK(f && fscanf(f, "%d", &n) == 1);
	pclose(f);
	return n;
}

static int targets(void)
{
	return count("rdma res show qp | grep -c XRC_TGT");
}

/* Does `rdma -dd` show target QPN with these users? */
static int shown(uint32_t qpn, int views, int registrations)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "rdma -dd res show qp lqpn %u | tr '\\n' ' ' | grep -Ec "
		 "'XRC_TGT.*xrcd [1-9][0-9]* .*views %d .*registrations %d'",
		 qpn, views, registrations);
	return count(command);
}

struct client {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid server;
	uint8_t *buf;
};

static void make_client(struct client *c)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1 },
	};
	struct ibv_context *ctx = open_device(server_device);

	CHECK(!ibv_query_gid(ctx, 1, server_gid, &c->server));
	ibv_close_device(ctx);
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
	struct ibv_qp_attr a = connected_to(target, &c->server, client_gid);

	a.qp_state = IBV_QPS_RESET;
	CHECK(!ibv_modify_qp(c->qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_INIT;
	CHECK(!ibv_modify_qp(c->qp, &a, TO_INIT));
	a.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(c->qp, &a, TO_RTR));
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = a.rq_psn;
	/* Time to answer: about 0.3 s a try on the debug kernel, 4 ms else. */
	a.timeout = getenv("SELFTEST_SLOW") && atoi(getenv("SELFTEST_SLOW")) > 1 ? 16 : 10;
	a.retry_cnt = 3;
	a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	CHECK(!ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* Sends message N to SRQ number SRQN; how it completed. */
static enum ibv_wc_status send_to(struct client *c, uint32_t srqn, uint32_t n)
{
	struct ibv_sge sge = { (uintptr_t)c->buf, SIZE, c->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = n,
		.qp_type.xrc.remote_srqn = srqn,
	};
	struct ibv_wc wc;

	memset(c->buf, n, SIZE);
	CHECK(!ibv_post_send(c->qp, &wr, &bad));
	CHECK(next_wc(c->cq, &wc) == 1);
	CHECK(wc.wr_id == n);
	return wc.status;
}

/* ---- the cases ---- */

/* Made by one process, received by another; everyone of the domain can ask. */
static void traffic(void)
{
	struct child maker = start(domain_file), other = start(domain_file);
	uint32_t qpn, srqn, n;
	struct client c;

	make_client(&c);
	qpn = tell(&maker, create, c.qp->qp_num);
	CHECK(targets() == 1 && shown(qpn, 0, 1) == 1);
	connect_client(&c, qpn);
	srqn = tell(&other, make_srq, DEPTH);
	for (n = 0; n < DEPTH; n++) {
		CHECK(send_to(&c, srqn, n) == IBV_WC_SUCCESS);
		CHECK(tell(&other, receive, qpn) == n);
	}
	CHECK(tell(&other, as_made, qpn) == c.qp->qp_num);
	CHECK(targets() == 1);
	CHECK(tell(&maker, unreg, qpn) == 0);
	CHECK(targets() == 0);
	CHECK(tell(&maker, close_domain, 0) == 0);
	end_child(&maker);
	CHECK(tell(&other, close_domain, 0) == 0);
	end_child(&other);
}

/* The maker is killed; the other who is registered keeps the QP. */
static void maker_killed(void)
{
	struct child maker = start(domain_file), other = start(domain_file);
	uint32_t qpn, srqn, n;
	struct client c;

	make_client(&c);
	qpn = tell(&maker, create, c.qp->qp_num);
	connect_client(&c, qpn);
	CHECK(tell(&other, reg, qpn) == 0);
	CHECK(shown(qpn, 0, 2) == 1);
	srqn = tell(&other, make_srq, DEPTH);
	kill_child(&maker);
	CHECK(targets() == 1 && shown(qpn, 0, 1) == 1);
	for (n = 0; n < 10; n++) {
		CHECK(send_to(&c, srqn, n) == IBV_WC_SUCCESS);
		CHECK(tell(&other, receive, qpn) == n);
	}
	/* The last one out. */
	CHECK(tell(&other, unreg, qpn) == 0);
	CHECK(targets() == 0);
	CHECK(tell(&other, state, qpn) == 100 + EINVAL);
	CHECK(send_to(&c, srqn, n) == IBV_WC_RETRY_EXC_ERR);
	end_child(&other);
}

/* Nobody is registered but the maker, who is killed or exits. */
static void maker_alone(void)
{
	struct child maker = start(domain_file), other = start(domain_file);
	struct client c;
	uint32_t qpn;

	make_client(&c);
	qpn = tell(&maker, create, c.qp->qp_num);
	CHECK(tell(&other, state, qpn) == IBV_QPS_RTR);
	kill_child(&maker);
	CHECK(targets() == 0);
	CHECK(tell(&other, state, qpn) == 100 + EINVAL);
	maker = start(domain_file);
	qpn = tell(&maker, create, c.qp->qp_num);
	CHECK(targets() == 1);
	end_child(&maker);
	CHECK(targets() == 0);
	end_child(&other);
}

/* Who is registered cannot close the domain, and nothing changes. */
static void domain_busy(void)
{
	struct child maker = start(domain_file), other = start(domain_file);
	struct client c;
	uint32_t qpn;

	make_client(&c);
	qpn = tell(&maker, create, c.qp->qp_num);
	CHECK(tell(&maker, close_domain, 0) == EBUSY);
	CHECK(tell(&maker, state, qpn) == IBV_QPS_RTR);
	CHECK(tell(&other, close_domain, 0) == 0);
	CHECK(tell(&maker, close_domain, 0) == EBUSY);
	CHECK(tell(&maker, unreg, qpn) == 0);
	CHECK(tell(&maker, close_domain, 0) == 0);
	CHECK(targets() == 0);
	end_child(&maker);
	end_child(&other);
}

/* Registration is a state, not a count; of each context. */
static void registered_once(void)
{
	struct child maker = start(domain_file), other = start(domain_file);
	struct client c;
	uint32_t qpn;

	make_client(&c);
	qpn = tell(&maker, create, c.qp->qp_num);
	CHECK(tell(&maker, reg, qpn) == 0);
	CHECK(tell(&other, reg, qpn) == 0);
	CHECK(tell(&other, reg, qpn) == 0);
	CHECK(shown(qpn, 0, 2) == 1);
	CHECK(tell(&other, unreg, qpn) == 0);
	CHECK(tell(&other, unreg, qpn) == EINVAL);
	CHECK(shown(qpn, 0, 1) == 1);
	CHECK(tell(&other, reg, qpn) == 0);
	CHECK(tell(&maker, unreg, qpn) == 0);
	CHECK(shown(qpn, 0, 1) == 1);
	CHECK(tell(&other, unreg, qpn) == 0);
	CHECK(targets() == 0);
	CHECK(tell(&other, reg, qpn) == EINVAL);
	end_child(&maker);
	end_child(&other);
}

/* A view holds it as well: ibv_open_qp() of a QP that was made by number. */
static void held_by_view(void)
{
	struct child maker = start(domain_file), other = start(domain_file);
	struct client c;
	uint32_t qpn;

	make_client(&c);
	qpn = tell(&maker, create, c.qp->qp_num);
	CHECK(tell(&other, open_view, qpn) == 0);
	CHECK(shown(qpn, 1, 1) == 1);
	CHECK(tell(&maker, unreg, qpn) == 0);
	CHECK(shown(qpn, 1, 0) == 1);
	CHECK(tell(&maker, state, qpn) == IBV_QPS_RTR);
	kill_child(&other);
	CHECK(targets() == 0);

	/* The other way round: destroyed while somebody is registered. */
	other = start(domain_file);
	qpn = tell(&maker, create, c.qp->qp_num);
	CHECK(tell(&other, open_view, qpn) == 0);
	CHECK(tell(&other, destroy_view, 0) == 0);
	CHECK(shown(qpn, 0, 1) == 1);
	CHECK(tell(&maker, unreg, qpn) == 0);
	CHECK(targets() == 0);
	end_child(&maker);
	end_child(&other);
}

/* A target that was made with an object belongs to its domain: it goes neither
 * with its maker nor with its last registration, but with the domain. */
static void with_domain(void)
{
	struct child maker = start(domain_file), other = start(domain_file);
	uint32_t qpn = tell(&maker, make_view, 0);

	CHECK(tell(&other, reg, qpn) == 0);
	CHECK(shown(qpn, 1, 1) == 1);
	kill_child(&maker);
	CHECK(shown(qpn, 0, 1) == 1);
	CHECK(tell(&other, unreg, qpn) == 0);
	CHECK(shown(qpn, 0, 0) == 1);
	CHECK(tell(&other, state, qpn) == IBV_QPS_RESET);
	CHECK(tell(&other, close_domain, 0) == 0);
	CHECK(targets() == 0);

	/* Destroyed by its maker, it lives on for who is registered. */
	maker = start(domain_file);
	end_child(&other);
	other = start(domain_file);
	qpn = tell(&maker, make_view, 0);
	CHECK(tell(&other, reg, qpn) == 0);
	CHECK(tell(&maker, destroy_view, 0) == 0);
	CHECK(shown(qpn, 0, 1) == 1);
	CHECK(tell(&other, unreg, qpn) == 0);
	CHECK(targets() == 0);
	end_child(&maker);
	end_child(&other);
}

/* Who is not registered modifies; the connection breaks and comes back. */
static void modified_by_other(void)
{
	struct child maker = start(domain_file), other = start(domain_file);
	uint32_t qpn, srqn;
	struct client c;

	make_client(&c);
	qpn = tell(&maker, create, c.qp->qp_num);
	connect_client(&c, qpn);
	srqn = tell(&maker, make_srq, DEPTH);
	CHECK(send_to(&c, srqn, 1) == IBV_WC_SUCCESS);
	CHECK(tell(&maker, receive, qpn) == 1);
	CHECK(tell(&other, to_error, qpn) == 0);
	CHECK(tell(&maker, state, qpn) == IBV_QPS_ERR);
	CHECK(send_to(&c, srqn, 2) != IBV_WC_SUCCESS);
	tell2(&other, revive, qpn, c.qp->qp_num);
	CHECK(tell(&maker, as_made, qpn) == c.qp->qp_num);
	connect_client(&c, qpn);
	CHECK(send_to(&c, srqn, 3) == IBV_WC_SUCCESS);
	CHECK(tell(&maker, receive, qpn) == 3);
	end_child(&other);
	end_child(&maker);
	CHECK(targets() == 0);
}

/* Everyone who is registered hears of an event, and nobody else. */
static void events(void)
{
	struct child maker = start(domain_file), other = start(domain_file);
	struct child third = start(domain_file);
	struct client c;
	uint32_t qpn;

	make_client(&c);
	qpn = tell(&maker, create, c.qp->qp_num);
	connect_client(&c, qpn);
	CHECK(tell(&other, reg, qpn) == 0);
	CHECK(tell(&third, reg, qpn) == 0);
	CHECK(tell(&third, unreg, qpn) == 0);
	CHECK(send_to(&c, 0xfffff0, 1) == IBV_WC_REM_INV_REQ_ERR);
	CHECK(tell(&maker, await_event, qpn) == IBV_EVENT_COMM_EST);
	CHECK(tell(&maker, await_event, qpn) == IBV_EVENT_QP_ACCESS_ERR);
	CHECK(tell(&maker, await_event, qpn) == IBV_EVENT_QP_LAST_WQE_REACHED);
	CHECK(tell(&other, await_event, qpn) == IBV_EVENT_COMM_EST);
	CHECK(tell(&other, await_event, qpn) == IBV_EVENT_QP_ACCESS_ERR);
	CHECK(tell(&other, await_event, qpn) == IBV_EVENT_QP_LAST_WQE_REACHED);
	CHECK(!tell(&third, has_event, 0) && !tell(&maker, has_event, 0));
	CHECK(tell(&third, state, qpn) == IBV_QPS_ERR);
	kill_child(&maker);
	end_child(&third);
	end_child(&other);
	CHECK(targets() == 0);
}

/* Of two opens of a domain, the one that the registration was made through stays. */
static void two_opens(void)
{
	struct ibv_context *ctx = open_device(server_device);
	struct ibv_xrcd *first = open_domain(ctx, domain_file);
	struct ibv_xrcd *second = open_domain(ctx, domain_file);
	struct ibv_qp_attr attr;
	struct client c;
	uint32_t qpn;

	make_client(&c);
	attr = connected_to(c.qp->qp_num, &c.server, server_gid);
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!xroce_dv_create_xrc_rcv_qp(first, &attr, USUAL, &qpn));
	CHECK(!xroce_dv_reg_xrc_rcv_qp(second, qpn));
	CHECK(ibv_close_xrcd(first) == EBUSY);
	CHECK(!ibv_close_xrcd(second));
	CHECK(targets() == 1);
	CHECK(!xroce_dv_unreg_xrc_rcv_qp(first, qpn));
	CHECK(!ibv_close_xrcd(first));
	CHECK(targets() == 0);
}

/* What a create call may not say. */
static void masks(void)
{
	struct ibv_context *ctx = open_device(server_device);
	struct ibv_xrcd *xrcd = open_domain(ctx, domain_file);
	struct ibv_qp_attr bad, good;
	uint32_t qpn = 77;
	struct client c;
	int bit;

	make_client(&c);
	good = connected_to(c.qp->qp_num, &c.server, server_gid);
	good.qp_state = IBV_QPS_RTR;
	for (bit = 0; bit < 32; bit++) {
		int mask = NEEDED ^ (1u << bit);

		if (mask == USUAL)
			continue;
		CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, &good, mask, &qpn) == EINVAL);
	}
	CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, &good, 0, &qpn) == EINVAL);
	CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, &good, -1, &qpn) == EINVAL);
#define REFUSED(member, value)								\
	do {										\
		bad = good;								\
		bad.member = value;							\
		CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, &bad, USUAL, &qpn) == EINVAL);	\
	} while (0)
	REFUSED(port_num, 0);
	REFUSED(port_num, 2);
	REFUSED(pkey_index, 1);
	REFUSED(path_mtu, 0);
	REFUSED(path_mtu, 6);
	REFUSED(path_mtu, -1);
	REFUSED(dest_qp_num, 1 << 24);
	REFUSED(min_rnr_timer, 32);
	REFUSED(max_dest_rd_atomic, 255);
	REFUSED(qp_access_flags, 1u << 31);
	REFUSED(ah_attr.port_num, 0);
	REFUSED(ah_attr.port_num, 2);
	REFUSED(ah_attr.is_global, 0);
	/* ib_core's word for an entry of the GID table without an address. */
	bad = good;
	bad.ah_attr.grh.sgid_index = 255;
	CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, &bad, USUAL, &qpn) == ENODATA);
	CHECK(xroce_dv_create_xrc_rcv_qp(NULL, &good, USUAL, &qpn) == EINVAL);
	CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, NULL, USUAL, &qpn) == EINVAL);
	CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, &good, USUAL, NULL) == EINVAL);
	CHECK(qpn == 77);
	CHECK(targets() == 0);
	CHECK(!xroce_dv_create_xrc_rcv_qp(xrcd, &good, NEEDED, &qpn));
	/* Nor a modify call. */
	good.qp_state = IBV_QPS_ERR;
	CHECK(xroce_dv_modify_xrc_rcv_qp(xrcd, qpn, &good, IBV_QP_STATE | IBV_QP_CAP) == EINVAL);
	CHECK(xroce_dv_modify_xrc_rcv_qp(xrcd, qpn, &good, IBV_QP_STATE | IBV_QP_QKEY) == EINVAL);
	CHECK(xroce_dv_modify_xrc_rcv_qp(xrcd, qpn, &good, IBV_QP_STATE | 1 << 21) == EINVAL);
	good.qp_state = 7;
	CHECK(xroce_dv_modify_xrc_rcv_qp(xrcd, qpn, &good, IBV_QP_STATE) == EINVAL);
	CHECK(!xroce_dv_unreg_xrc_rcv_qp(xrcd, qpn));
	CHECK(!ibv_close_xrcd(xrcd));
	CHECK(targets() == 0);
}

/* Numbers that are none of the domain's. */
static void wrong_numbers(void)
{
	struct child stranger = start(other_file), maker = start(domain_file);
	struct client c;
	uint32_t qpn;
	int i;

	make_client(&c);
	qpn = tell(&maker, create, c.qp->qp_num);
	for (i = 0; i < 5; i++) {
		uint32_t wrong[] = { qpn, 0, 1, c.qp->qp_num, 0xffffffff };
		struct child *who = i ? &maker : &stranger;

		CHECK(tell(who, reg, wrong[i]) == EINVAL);
		CHECK(tell(who, unreg, wrong[i]) == EINVAL);
		CHECK(tell(who, to_error, wrong[i]) == EINVAL);
		CHECK(tell(who, state, wrong[i]) == 100 + EINVAL);
	}
	CHECK(tell(&maker, state, qpn) == IBV_QPS_RTR);
	end_child(&stranger);
	end_child(&maker);
	CHECK(targets() == 0);
}

/* ---- past the library ---- */

struct raw {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[4];
};

static struct raw *raw_begin(struct raw *raw, uint16_t method)
{
	memset(raw, 0, sizeof(*raw));
	raw->hdr.object_id = UVERBS_OBJECT_XRCD;
	raw->hdr.method_id = method;
	raw->hdr.driver_id = XROCE_DRIVER_ID;
	return raw;
}

static struct raw *raw_attr(struct raw *raw, uint16_t id, uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *attr = &raw->attrs[raw->hdr.num_attrs++];

	attr->attr_id = id;
	attr->len = len;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	attr->data = data;
	return raw;
}

static int raw_call(struct ibv_context *ctx, struct raw *raw)
{
	raw->hdr.length = sizeof(raw->hdr) + raw->hdr.num_attrs * sizeof(raw->attrs[0]);
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, raw) ? errno : 0;
}

/* Handles, sizes and addresses that the library would not pass. */
static void raw_calls(void)
{
	struct ibv_context *ctx = open_device(server_device);
	struct ibv_xrcd *xrcd = open_domain(ctx, domain_file);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	/* struct verbs_xrcd: the kernel's handle follows the mask. */
	uint32_t domain = ((uint32_t *)(xrcd + 1))[1];
	struct xroce_rcv_qp_attr attr = {
		.attr_mask = USUAL, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.dest = { .is_global = 1, .port_num = 1, .sgid_index = server_gid },
	};
	struct {
		struct xroce_rcv_qp_attr attr;
		uint64_t later;
	} longer = { .later = 1 };
	uint32_t qpn = 0, qpn2 = 0, handle, i;
	struct client c;
	struct raw r;

	make_client(&c);
	attr.dest_qp_num = c.qp->qp_num;
	memcpy(attr.dest.dgid, &c.server, 16);
	longer.attr = attr;
#define BEGIN(method) raw_begin(&r, XROCE_METHOD_RCV_QP_##method)
#define ATTR(id, len, data) raw_attr(&r, XROCE_ATTR_RCV_QP_##id, len, (uintptr_t)(data))
#define CREATE(xrcd, qpn, len, attr)							\
	(BEGIN(CREATE), ATTR(XRCD, 0, xrcd), ATTR(HANDLE, 0, 0), ATTR(QPN, 4, qpn),	\
	 ATTR(ATTR, len, attr), raw_call(ctx, &r))
	/* A target that nobody learns of is gone. */
	CHECK(CREATE(domain, 8, sizeof(attr), &attr) == EFAULT);
	CHECK(CREATE(domain, &qpn, sizeof(attr), 8) == EFAULT);
	CHECK(CREATE(domain, &qpn, sizeof(attr) - 4, &attr) == EINVAL);
	/* Members that this kernel does not know, in use. */
	CHECK(CREATE(domain, &qpn, sizeof(longer), &longer) == EOPNOTSUPP);
	CHECK(CREATE(0xffffff, &qpn, sizeof(attr), &attr) == ENOENT);
	CHECK(CREATE(pd->handle, &qpn, sizeof(attr), &attr) == EINVAL);
	attr.dest.reserved = 1;
	CHECK(CREATE(domain, &qpn, sizeof(attr), &attr) == EINVAL);
	attr.dest.reserved = 0;
	attr.reserved[1] = 1;
	CHECK(CREATE(domain, &qpn, sizeof(attr), &attr) == EINVAL);
	attr.reserved[1] = 0;
	BEGIN(CREATE), ATTR(XRCD, 0, domain), ATTR(QPN, 4, &qpn), ATTR(ATTR, sizeof(attr), &attr);
	CHECK(raw_call(ctx, &r) == EINVAL);
	CHECK(targets() == 0 && qpn == 0);
	/* Not in use, they do no harm. */
	longer.attr = attr;
	longer.later = 0;
	CHECK(CREATE(domain, &qpn, sizeof(longer), &longer) == 0);
	handle = r.attrs[1].data;
	BEGIN(UNREG), ATTR(HANDLE, 0, handle);
	CHECK(raw_call(ctx, &r) == 0 && targets() == 0);

	CHECK(CREATE(domain, &qpn, sizeof(attr), &attr) == 0);
	handle = r.attrs[1].data;
	CHECK(targets() == 1);
	BEGIN(REG), ATTR(XRCD, 0, domain), ATTR(HANDLE, 0, 0), ATTR(QPN, 4, qpn);
	CHECK(raw_call(ctx, &r) == EEXIST);
	BEGIN(QUERY), ATTR(XRCD, 0, domain), ATTR(QPN, 4, qpn), ATTR(HANDLE, 4, &i);
	CHECK(raw_call(ctx, &r) == 0 && i == handle);
	BEGIN(QUERY), ATTR(XRCD, 0, domain), ATTR(QPN, 4, qpn);
	CHECK(raw_call(ctx, &r) == 0);
	BEGIN(QUERY), ATTR(XRCD, 0, domain), ATTR(QPN, 4, qpn), ATTR(ATTR, sizeof(attr), 8);
	CHECK(raw_call(ctx, &r) == EFAULT);
	BEGIN(MODIFY), ATTR(XRCD, 0, domain), ATTR(QPN, 4, qpn), ATTR(ATTR, sizeof(attr), 8);
	CHECK(raw_call(ctx, &r) == EFAULT);
	BEGIN(UNREG), ATTR(HANDLE, 0, domain);
	CHECK(raw_call(ctx, &r) == EINVAL);
	/* A second one beside it, and the handles do not mix. */
	CHECK(CREATE(domain, &qpn2, sizeof(attr), &attr) == 0);
	CHECK(qpn2 != qpn && r.attrs[1].data != handle && targets() == 2);
	BEGIN(UNREG), ATTR(HANDLE, 0, handle);
	CHECK(raw_call(ctx, &r) == 0);
	CHECK(raw_call(ctx, &r) == ENOENT);
	CHECK(targets() == 1 && shown(qpn2, 0, 1) == 1);
	/* The rest goes with the file. */
	CHECK(ibv_close_xrcd(xrcd) == EBUSY);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	CHECK(targets() == 0);
}

/* Many at once, from several processes, all killed. */
static void many(void)
{
	struct child makers[4];
	struct client c;
	uint32_t i, j;

	make_client(&c);
	for (i = 0; i < 4; i++)
		makers[i] = start(domain_file);
	for (j = 0; j < 25; j++)
		for (i = 0; i < 4; i++) {
			uint32_t qpn = tell(&makers[i], create, c.qp->qp_num);

			CHECK(tell(&makers[(i + 1) % 4], reg, qpn) == 0);
		}
	CHECK(targets() == 100);
	for (i = 0; i < 4; i++)
		CHECK(!kill(makers[i].pid, SIGKILL));
	for (i = 0; i < 4; i++)
		CHECK(waitpid(makers[i].pid, NULL, 0) == makers[i].pid);
	CHECK(targets() == 0);
}

/* Not a case of its own: registered until the device is gone or stdin ends. */
static void until_removed(void)
{
	struct ibv_context *ctx = open_device(server_device);
	struct ibv_xrcd *xrcd = open_domain(ctx, domain_file);
	struct ibv_async_event ev;
	struct ibv_qp_attr attr;
	struct client c;
	uint32_t qpn;

	make_client(&c);
	attr = connected_to(c.qp->qp_num, &c.server, server_gid);
	CHECK(!xroce_dv_create_xrc_rcv_qp(xrcd, &attr, USUAL, &qpn));
	printf("ready %u\n", qpn);
	CHECK(next_event(ctx, IBV_EVENT_DEVICE_FATAL, &ev));
	CHECK(xroce_dv_query_xrc_rcv_qp(xrcd, qpn, &attr, 0, NULL) == EIO);
	CHECK(xroce_dv_reg_xrc_rcv_qp(xrcd, qpn) == EIO);
	CHECK(xroce_dv_unreg_xrc_rcv_qp(xrcd, qpn) == EIO);
	printf("closed\n");
}

static const struct check_case cases[] = {
	{ "traffic", traffic },
	{ "maker_killed", maker_killed },
	{ "maker_alone", maker_alone },
	{ "domain_busy", domain_busy },
	{ "registered_once", registered_once },
	{ "held_by_view", held_by_view },
	{ "with_domain", with_domain },
	{ "modified_by_other", modified_by_other },
	{ "events", events },
	{ "two_opens", two_opens },
	{ "masks", masks },
	{ "wrong_numbers", wrong_numbers },
	{ "raw_calls", raw_calls },
	{ "many", many },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	int fd, ret = 0;

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
	close(fd);
	fd = mkstemp(other_file);
	if (fd < 0)
		die(other_file);
	close(fd);
	if (!strcmp(argv[1], "until_removed"))
		until_removed();
	else
		ret = run_case(cases, argv[1]);
	unlink(domain_file);
	unlink(other_file);
	return ret;
}
