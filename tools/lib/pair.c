// SPDX-License-Identifier: GPL-2.0
#include "pair.h"

void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		die(name);
	ibv_free_device_list(list);
	return ctx;
}

void open_end(struct end *e, const char *device, int gid_index)
{
	memset(e, 0, sizeof(*e));
	e->ctx = open_device(device);
	e->gid_index = gid_index;
	e->buf = aligned_alloc(4096, 2 * PAIR_SIZE);
	if (!e->buf)
		die("memory");
	memset(e->buf, 0, 2 * PAIR_SIZE);
	if (ibv_query_gid(e->ctx, 1, gid_index, &e->gid))
		die("ibv_query_gid");
	e->pd = ibv_alloc_pd(e->ctx);
	e->cq = ibv_create_cq(e->ctx, 4 * PAIR_DEPTH, NULL, NULL, 0);
	if (!e->pd || !e->cq)
		die("PD or CQ");
	e->mr = ibv_reg_mr(e->pd, e->buf, 2 * PAIR_SIZE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!e->mr)
		die("ibv_reg_mr");
}

void make_end(struct end *e, const char *device, int gid_index)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { PAIR_DEPTH, PAIR_DEPTH, 2, 2, 64 },
	};

	open_end(e, device, gid_index);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = ibv_create_qp(e->pd, &init);
	if (!e->qp)
		die("ibv_create_qp");
}

void ready_end(struct end *e, const struct end *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	if (ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			  IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("modify to INIT");
	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = peer->qp->qp_num;
	a.max_dest_rd_atomic = 4;
	a.min_rnr_timer = 1;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.dgid = peer->gid;
	a.ah_attr.grh.sgid_index = e->gid_index;
	a.ah_attr.grh.hop_limit = 16;
	if (ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_AV |
			  IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("modify to RTR");
}

void start_end(struct end *e, uint8_t timeout)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS,
		.timeout = timeout,
		.retry_cnt = RETRIES,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};

	if (ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT |
			  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("modify to RTS");
}

void connect_end(struct end *e, const struct end *peer)
{
	ready_end(e, peer);
	start_end(e, PATIENT);
}

void connect_end_lossy(struct end *e, const struct end *peer)
{
	ready_end(e, peer);
	start_end(e, LOSSY);
}

int post_receive(struct end *e, uint64_t id)
{
	struct ibv_sge sge = {
		(uintptr_t)e->buf + PAIR_SIZE, PAIR_SIZE, e->mr->lkey
	};
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (e->srq)
		return ibv_post_srq_recv(e->srq, &wr, &bad);
	return ibv_post_recv(e->qp, &wr, &bad);
}

int post_send(struct end *e, uint64_t id, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e->buf, length, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = e->srqn,
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(e->qp, &wr, &bad);
}
