// SPDX-License-Identifier: GPL-2.0
#include "domains.h"

struct ibv_xrcd *open_domain(struct ibv_context *ctx, const char *path)
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

struct ibv_qp_attr connected_to(uint32_t qpn, const union ibv_gid *gid,
				int sgid_index)
{
	return (struct ibv_qp_attr){
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .port_num = 1,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = qpn, .rq_psn = 0x123,
		.max_dest_rd_atomic = 3, .min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = *gid, .sgid_index = sgid_index, .hop_limit = 16 } },
	};
}

void to_rtr(struct ibv_qp *qp, struct ibv_qp_attr attr)
{
	attr.qp_state = IBV_QPS_RESET;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_INIT;
	CHECK(!ibv_modify_qp(qp, &attr, TO_INIT));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr, TO_RTR));
}

int targets(void)
{
	return lines_with("XRC_TGT", "rdma res show qp");
}

void post_srq(struct peer *p, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)p->buf + slot * SIZE, SIZE, p->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	CHECK(!ibv_post_srq_recv(p->srq, &wr, &bad));
}

uint32_t make_srq(struct peer *p, const struct message *m)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC, .xrcd = p->xrcd, .cq = p->cq, .pd = p->pd,
	};
	uint32_t i, number;

	p->srq = ibv_create_srq_ex(p->ctx, &attr);
	CHECK(p->srq);
	for (i = 0; i < m->arg; i++)
		post_srq(p, i);
	CHECK(!ibv_get_srq_num(p->srq, &number));
	return number;
}

uint32_t make_view(struct peer *p, const struct message *m)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = p->xrcd,
	};

	(void)m;
	p->view = ibv_create_qp_ex(p->ctx, &init);
	CHECK(p->view);
	return p->view->qp_num;
}

uint32_t open_view(struct peer *p, const struct message *m)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = m->arg, .xrcd = p->xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};

	p->view = ibv_open_qp(p->ctx, &attr);
	if (!p->view)
		return errno;
	CHECK(p->view->qp_num == m->arg);
	return 0;
}

uint32_t destroy_view(struct peer *p, const struct message *m)
{
	struct ibv_qp *view = p->view;

	(void)m;
	p->view = NULL;
	return ibv_destroy_qp(view);
}

uint32_t close_domain(struct peer *p, const struct message *m)
{
	(void)m;
	if (p->srq) {
		CHECK(ibv_close_xrcd(p->xrcd) == EBUSY);
		CHECK(!ibv_destroy_srq(p->srq));
	}
	p->srq = NULL;
	return ibv_close_xrcd(p->xrcd);
}

/* What a process of a domain has to know. */
struct place {
	const struct devices *on;
	const char *path;
};

static void serve(int fd, void *arg)
{
	const struct place *place = arg;
	struct peer p = { .on = place->on, .ctx = open_device(place->on->name[SERVER]) };
	struct message m;

	p.buf = aligned_alloc(4096, DEPTH * SIZE);
	p.pd = ibv_alloc_pd(p.ctx);
	p.cq = ibv_create_cq(p.ctx, 2 * DEPTH, NULL, NULL, 0);
	CHECK(p.buf && p.pd && p.cq);
	p.mr = ibv_reg_mr(p.pd, p.buf, DEPTH * SIZE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(p.mr);
	p.xrcd = open_domain(p.ctx, place->path);
	while (read(fd, &m, sizeof(m)) == sizeof(m)) {
		uint32_t answer = m.run(&p, &m);

		CHECK(write(fd, &answer, sizeof(answer)) == sizeof(answer));
	}
}

/* Starts a process of the domain of PATH. */
static struct child start_in(const struct devices *on, const char *path)
{
	struct place place = { .on = on, .path = path };

	return start_child(serve, &place);
}

struct child start(const struct domains *self)
{
	return start_in(&self->on, self->domain_file);
}

struct child start_other(const struct domains *self)
{
	return start_in(&self->on, self->other_file);
}

/* The client's GID, for which a device need not be opened again for each order. */
static const union ibv_gid *client_gid(const struct devices *on)
{
	static union ibv_gid gid;
	static int is_known;
	struct ibv_context *ctx;

	if (!is_known) {
		ctx = open_device(on->name[CLIENT]);
		CHECK(!ibv_query_gid(ctx, 1, on->gid_index[CLIENT], &gid));
		CHECK(!ibv_close_device(ctx));
		is_known = 1;
	}
	return &gid;
}

uint32_t tell2(const struct devices *on, struct child *c,
	       uint32_t (*run)(struct peer *p, const struct message *m),
	       uint32_t arg, uint32_t extra)
{
	struct message m = { .run = run, .arg = arg, .extra = extra };
	uint32_t answer;

	m.client = *client_gid(on);
	CHECK(write(c->fd, &m, sizeof(m)) == sizeof(m));
	CHECK(read(c->fd, &answer, sizeof(answer)) == sizeof(answer));
	return answer;
}

uint32_t tell(const struct devices *on, struct child *c,
	      uint32_t (*run)(struct peer *p, const struct message *m), uint32_t arg)
{
	return tell2(on, c, run, arg, 0);
}

void make_client(const struct devices *on, struct client *c)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1 },
	};
	struct ibv_context *ctx = open_device(on->name[SERVER]);

	CHECK(!ibv_query_gid(ctx, 1, on->gid_index[SERVER], &c->server));
	ibv_close_device(ctx);
	c->rnr_retry = 7;
	c->ctx = open_device(on->name[CLIENT]);
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

void connect_client(const struct devices *on, struct client *c, uint32_t target)
{
	struct ibv_qp_attr a = connected_to(target, &c->server, on->gid_index[CLIENT]);

	to_rtr(c->qp, a);
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = a.rq_psn;
	a.timeout = PATIENT;
	a.retry_cnt = RETRIES;
	a.rnr_retry = c->rnr_retry;
	a.max_rd_atomic = 1;
	CHECK(!ibv_modify_qp(c->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

enum ibv_wc_status send_buffer(struct client *c, uint32_t srqn, uint32_t id,
			       uint32_t imm_data)
{
	struct ibv_sge sge = { (uintptr_t)c->buf, SIZE, c->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = imm_data, .qp_type.xrc.remote_srqn = srqn,
	};
	struct ibv_wc wc;

	CHECK(!ibv_post_send(c->qp, &wr, &bad));
	CHECK(next_wc(c->cq, &wc) == 1);
	CHECK(wc.wr_id == id);
	if (wc.status != IBV_WC_SUCCESS)
		printf("# %s\n", ibv_wc_status_str(wc.status));
	return wc.status;
}

void unanswered(struct client *c, uint32_t srqn)
{
	CHECK(!make_hasty(c->qp));
	CHECK(send_buffer(c, srqn, 0, 0) == IBV_WC_RETRY_EXC_ERR);
}

static int make_file(char *path, const char *name)
{
	sprintf(path, "/tmp/selftest-%s-XXXXXX", name);
	return mkstemp(path);
}

void make_files(struct domains *self)
{
	int domain = make_file(self->domain_file, "xrc");
	int other = make_file(self->other_file, "xrc-other");

	CHECK(domain >= 0 && other >= 0);
	close(domain);
	close(other);
}

void remove_files(struct domains *self)
{
	unlink(self->domain_file);
	unlink(self->other_file);
}
