// SPDX-License-Identifier: GPL-2.0
#include "unreliable.h"

int set_state(struct end *e, enum ibv_qp_state state, int current)
{
	struct ibv_qp_attr attr = { .qp_state = state, .cur_qp_state = current };

	return ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | (current < 0 ? 0 : IBV_QP_CUR_STATE));
}

void path(const struct end *e, const struct end *peer, struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = peer->gid, .sgid_index = e->gid_index, .hop_limit = 16 },
	};
}

void start_unreliable(struct unreliable *self, struct end *e, const struct end *peer)
{
	int datagrams = self->type == IBV_QPT_UD;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num, .rq_psn = 0xfffffe, .sq_psn = 0xfffffe,
	};

	path(e, peer, &attr.ah_attr);
	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | (datagrams ? 0 : IBV_QP_AV |
			     IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

void make_unreliable(struct unreliable *self, enum ibv_qp_type t)
{
	struct ibv_qp_init_attr init = {
		.cap = { PAIR_DEPTH, PAIR_DEPTH, 2, 2, 64 },
	};
	struct ibv_ah_attr attr;
	struct end *e;

	init.qp_type = self->type = t;
	for (e = &self->pair.a; ; e = &self->pair.b) {
		open_end(e, self->pair.on.name[e == &self->pair.b],
			 self->pair.on.gid_index[e == &self->pair.b]);
		init.send_cq = init.recv_cq = e->cq;
		e->qp = ibv_create_qp(e->pd, &init);
		CHECK(e->qp);
		if (e == &self->pair.b)
			break;
	}
	path(&self->pair.a, &self->pair.b, &attr);
	self->to_b = ibv_create_ah(self->pair.a.pd, &attr);
	path(&self->pair.b, &self->pair.a, &attr);
	self->to_a = ibv_create_ah(self->pair.b.pd, &attr);
	CHECK(self->to_a && self->to_b);
	start_unreliable(self, &self->pair.a, &self->pair.b);
	start_unreliable(self, &self->pair.b, &self->pair.a);
}

void free_unreliable(struct unreliable *self)
{
	CHECK(!ibv_destroy_ah(self->to_a) && !ibv_destroy_ah(self->to_b));
	free_pair(&self->pair);
}

static struct end *peer_of(struct unreliable *self, const struct end *e)
{
	return e == &self->pair.a ? &self->pair.b : &self->pair.a;
}

struct ibv_send_wr request(struct unreliable *self, struct end *e, uint32_t id,
			   struct ibv_sge *sge)
{
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htobe32(id), .send_flags = IBV_SEND_SIGNALED,
	};

	if (self->type == IBV_QPT_UD) {
		wr.wr.ud.ah = e == &self->pair.a ? self->to_b : self->to_a;
		wr.wr.ud.remote_qpn = peer_of(self, e)->qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	}
	return wr;
}

struct ibv_sge bytes_of(struct end *e, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)e->buf, length, e->mr->lkey };
}

struct ibv_wc expect_wc(struct end *e, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {};

	CHECK(next_wc(e->cq, &wc) == 1);
	if (wc.wr_id != id || wc.status != status)
		printf("WR %llu: %s, WR %llu with %s wanted\n", (unsigned long long)wc.wr_id,
		       ibv_wc_status_str(wc.status), (unsigned long long)id,
		       ibv_wc_status_str(status));
	CHECK(wc.wr_id == id && wc.status == status);
	CHECK(wc.qp_num == e->qp->qp_num);
	return wc;
}

void expect_none(struct end *e)
{
	struct ibv_wc wc;

	CHECK(!ibv_poll_cq(e->cq, 1, &wc));
}

void message(struct unreliable *self, struct end *from, uint32_t id, uint32_t length)
{
	struct end *to = peer_of(self, from);
	struct ibv_sge sge = bytes_of(from, length);
	struct ibv_send_wr *bad, wr = request(self, from, id, &sge);
	uint32_t skip = self->type == IBV_QPT_UD ? GRH : 0, i;
	struct ibv_wc wc;

	for (i = 0; i < length; i++)
		from->buf[i] = i * 7 + id;
	memset(to->buf + PAIR_SIZE, 0, PAIR_SIZE);
	CHECK(!post_receive(to, 1000 + id));
	CHECK(!ibv_post_send(from->qp, &wr, &bad));
	expect_wc(from, id, IBV_WC_SUCCESS);
	wc = expect_wc(to, 1000 + id, IBV_WC_SUCCESS);
	CHECK(wc.imm_data == htobe32(id) && wc.byte_len == length + skip);
	CHECK(!memcmp(to->buf + PAIR_SIZE + skip, from->buf, length));
}
