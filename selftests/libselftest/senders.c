// SPDX-License-Identifier: GPL-2.0
#include "senders.h"

static uint32_t sender_rnd(struct senders *all, uint32_t below)
{
	all->seed = all->seed * 1103515245 + 12345;
	return (all->seed >> 16) % below;
}

/* What message N of a sender is. */
static uint8_t message_op(uint32_t n)
{
	switch (n % 8) {
	case 2: return IBV_TMH_NO_TAG;
	case 5: case 7: return IBV_TMH_RNDV;
	default: return IBV_TMH_EAGER;
	}
}

static uint32_t message_len(uint32_t sender, uint32_t n)
{
	uint32_t odd = (n * 37 + sender * 11) % 997;

	return n % 8 == 4 ? 3000 + 3 * odd : n % 8 == 5 ? 20 * odd : odd;
}

static uint8_t message_byte(uint32_t sender, uint32_t n, uint32_t i)
{
	return n * 31 + sender * 7 + i * 13 + (i >> 8);
}

static void check_message(const uint8_t *at, uint32_t len,
			  uint32_t sender, uint32_t n)
{
	uint32_t i;

	CHECK(len == message_len(sender, n));
	for (i = 0; i < len; i++)
		CHECK(at[i] == message_byte(sender, n, i));
}

/* Where message N of a sender lies: its headers, and behind them the data. */
static uint8_t *message_place(struct senders *all, uint32_t sender, uint32_t n)
{
	return all->from + (size_t)(sender * WINDOW + n % WINDOW) * (ROOM + 4096);
}

/* Posts tag I; every third is for any sender. */
static int sender_tag(struct senders *all, uint32_t i)
{
	struct ibv_sge sge = {
		(uintptr_t)all->to + (size_t)i * ROOM, ROOM, all->to_mr->lkey
	};
	struct ibv_ops_wr wr = {
		.opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_TM_SYNC,
		.tm = { .unexpected_cnt = all->handled, .add = {
			.recv_wr_id = i, .sg_list = &sge, .num_sge = 1,
			.tag = (uint64_t)(i % SENDERS) << 32,
			.mask = i % 3 ? ~0ull << 32 : 0 } },
	}, *bad;

	all->reported = all->handled;
	return ibv_post_srq_ops(all->tm.srq, &wr, &bad);
}

static int sender_receive(struct senders *all, uint32_t i)
{
	size_t at = SENDER_TAGS * (size_t)ROOM + (size_t)i * RECEIVE_ROOM;
	struct ibv_sge sge = {
		(uintptr_t)all->to + at, RECEIVE_ROOM, all->to_mr->lkey
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return ibv_post_srq_recv(all->tm.srq, &wr, &bad);
}

/* A receive for the notice that a message was fetched. */
static int sender_fin(struct senders *all, uint32_t sender, uint32_t place)
{
	struct ibv_sge sge = {
		(uintptr_t)message_place(all, sender, place) + ROOM + 2048, FIN_ROOM,
		all->from_mr->lkey
	};
	struct ibv_recv_wr wr = {
		.wr_id = sender * WINDOW + place, .sg_list = &sge, .num_sge = 1
	}, *bad;

	return ibv_post_recv(all->s[sender].qp, &wr, &bad);
}

static struct ibv_mr *sender_memory(struct end *e, uint8_t **p, size_t size)
{
	struct ibv_mr *mr;

	*p = aligned_alloc(4096, size);
	CHECK(*p);
	memset(*p, 0, size);
	mr = ibv_reg_mr(e->pd, *p, size, IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	return mr;
}

void senders_make(struct senders *all, const char *const device[2],
		  const int gid_index[2])
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { WINDOW, WINDOW, 1, 1, 0 },
	};
	uint32_t i, k;

	memset(all, 0, sizeof(*all));
	all->seed = 1;
	make_end(&all->a, device[0], gid_index[0]);
	make_end(&all->b, device[1], gid_index[1]);
	CHECK(!ibv_destroy_qp(all->a.qp) && !ibv_destroy_qp(all->b.qp));
	all->from_mr = sender_memory(&all->a, &all->from,
				     (size_t)SENDERS * WINDOW * (ROOM + 4096));
	all->to_mr = sender_memory(&all->b, &all->to, SENDER_TAGS * (size_t)ROOM +
				   SENDER_RECEIVES * (size_t)RECEIVE_ROOM);
	tm_make(&all->tm, &all->b, (struct tag_queue_size) {
		.tags = SENDER_TAGS, .ops = 64, .receives = SENDER_RECEIVES,
		.cqe = 1024 });
	init.send_cq = init.recv_cq = all->a.cq;
	for (i = 0; i < SENDERS; i++) {
		struct sender *s = &all->s[i];

		s->qp = all->a.qp = ibv_create_qp(all->a.pd, &init);
		CHECK(s->qp);
		s->peer = all->b.qp = tm_qp(&all->tm, &all->b, 0);
		connect_end_lossy(&all->a, &all->b);
		connect_end_lossy(&all->b, &all->a);
		for (k = 0; k < WINDOW; k++)
			CHECK(!sender_fin(all, i, k));
	}
	for (i = 0; i < SENDER_TAGS; i++)
		CHECK(!sender_tag(all, i));
	for (i = 0; i < SENDER_RECEIVES; i++)
		CHECK(!sender_receive(all, i));
}

void senders_free(struct senders *all)
{
	uint32_t i;

	for (i = 0; i < SENDERS; i++)
		CHECK(!ibv_destroy_qp(all->s[i].qp) && !ibv_destroy_qp(all->s[i].peer));
	tm_free(&all->tm);
	CHECK(!ibv_destroy_cq(all->a.cq) && !ibv_destroy_cq(all->b.cq));
	CHECK(!ibv_dereg_mr(all->from_mr) && !ibv_dereg_mr(all->to_mr));
	CHECK(!ibv_dereg_mr(all->a.mr) && !ibv_dereg_mr(all->b.mr));
	CHECK(!ibv_dealloc_pd(all->a.pd) && !ibv_dealloc_pd(all->b.pd));
	CHECK(!ibv_close_device(all->a.ctx) && !ibv_close_device(all->b.ctx));
}

/* Sends the next message of a sender. */
static int sender_send(struct senders *all, uint32_t sender)
{
	struct sender *s = &all->s[sender];
	uint32_t n = s->sent, len = message_len(sender, n), i;
	uint8_t op = message_op(n), *p = message_place(all, sender, n);
	struct ibv_tmh tmh = {
		.opcode = op, .app_ctx = htobe32(n),
		.tag = htobe64((uint64_t)sender << 32 | 7),
	};
	uint8_t *data = p + (op == IBV_TMH_RNDV ? 1024 : TM_HDR);
	struct ibv_rvh rvh = {
		.va = htobe64((uintptr_t)data),
		.rkey = htobe32(all->from_mr->rkey), .len = htobe32(len),
	};
	struct ibv_sge sge = { (uintptr_t)p, TM_HDR + len, all->from_mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = sender * WINDOW + n % WINDOW, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	memcpy(p, &tmh, sizeof(tmh));
	for (i = 0; i < len; i++)
		data[i] = message_byte(sender, n, i);
	s->busy[n % WINDOW] = 1;
	if (op == IBV_TMH_RNDV) {
		memcpy(p + TM_HDR, &rvh, sizeof(rvh));
		sge.length = TM_HDR + sizeof(rvh);
		/* And the notice. */
		s->busy[n % WINDOW] = 2;
	}
	s->sent++;
	return ibv_post_send(s->qp, &wr, &bad);
}

/* Message N of a sender has come, on QPN. */
static void in_order(struct senders *all, uint32_t sender, uint32_t n,
		     uint32_t qpn)
{
	CHECK(sender < SENDERS);
	CHECK(n == all->s[sender].got);
	CHECK(qpn == all->s[sender].peer->qp_num);
	all->s[sender].got++;
}

static int handle_tag(struct senders *all, const struct tm_done *d)
{
	uint32_t i = d->wr_id, sender, n;

	CHECK(i < SENDER_TAGS);
	if (d->flags & IBV_WC_TM_MATCH) {
		sender = all->taken[i].sender = d->tag >> 32;
		n = all->taken[i].n = d->priv;
		in_order(all, sender, n, d->qpn);
		CHECK(i % 3 == 0 || sender == i % SENDERS);
		CHECK(message_op(n) != IBV_TMH_NO_TAG);
		all->matched++;
	}
	if (!(d->flags & IBV_WC_TM_DATA_VALID))
		return 0;
	sender = all->taken[i].sender;
	n = all->taken[i].n;
	all->fetched += message_op(n) == IBV_TMH_RNDV;
	check_message(all->to + (size_t)i * ROOM, d->len, sender, n);
	return sender_tag(all, i);
}

static int handle_receive(struct senders *all, const struct tm_done *d)
{
	uint8_t *p = all->to + SENDER_TAGS * (size_t)ROOM + d->wr_id * RECEIVE_ROOM;
	uint32_t sender, n, op;
	struct ibv_tmh tmh;

	CHECK(d->wr_id < SENDER_RECEIVES);
	memcpy(&tmh, p, sizeof(tmh));
	sender = be64toh(tmh.tag) >> 32;
	n = be32toh(tmh.app_ctx);
	in_order(all, sender, n, d->qpn);
	op = message_op(n);
	CHECK(tmh.opcode == op);
	CHECK((d->opcode == IBV_WC_TM_NO_TAG) == (op == IBV_TMH_NO_TAG));
	if (op == IBV_TMH_RNDV) {
		/* The data are this process's own; there will be no notice. */
		CHECK(d->len == TM_HDR + sizeof(struct ibv_rvh));
		check_message(message_place(all, sender, n) + 1024,
			      message_len(sender, n), sender, n);
		all->s[sender].busy[n % WINDOW]--;
	} else {
		check_message(p + TM_HDR, d->len - TM_HDR, sender, n);
	}
	if (op == IBV_TMH_NO_TAG) {
		all->untagged++;
	} else {
		all->handled++;
		all->unexpected++;
	}
	return sender_receive(all, d->wr_id);
}

/* Takes what has come. Not 0 when something failed. */
static int senders_poll(struct senders *all)
{
	struct tm_done d;
	struct ibv_wc wc;
	int n, bad = 0;

	while (!bad && tm_poll(&all->tm, &d)) {
		if (d.status)
			return -1;
		if (d.opcode == IBV_WC_TM_RECV && d.flags &
		    (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID))
			bad = handle_tag(all, &d);
		else
			bad = handle_receive(all, &d);
	}
	while (!bad && (n = ibv_poll_cq(all->a.cq, 1, &wc))) {
		struct sender *s = &all->s[wc.wr_id / WINDOW % SENDERS];
		uint32_t place = wc.wr_id % WINDOW;

		if (n < 0 || wc.status)
			return -1;
		if (wc.opcode == IBV_WC_RECV) {
			uint8_t *p = message_place(all, s - all->s, place) + ROOM + 2048;
			uint64_t va;

			/* The notice says where the data were. */
			CHECK(p[0] == IBV_TMH_FIN && wc.byte_len == 32);
			memcpy(&va, p + TM_HDR, 8);
			bad = sender_fin(all, s - all->s, place);
			place = (be64toh(va) - (uintptr_t)all->from) / (ROOM + 4096) % WINDOW;
		}
		CHECK(s->busy[place]);
		s->busy[place]--;
	}
	if (!bad && all->handled != all->reported) {
		struct ibv_ops_wr wr = {
			.opcode = IBV_WR_TAG_SYNC,
			.tm = { .unexpected_cnt = all->handled },
		}, *bad_wr;

		all->reported = all->handled;
		bad = ibv_post_srq_ops(all->tm.srq, &wr, &bad_wr);
	}
	return bad;
}

int senders_step(struct senders *all, uint32_t max)
{
	uint32_t i, k;
	int bad = 0;

	for (k = sender_rnd(all, 8); k && !bad; k--) {
		i = sender_rnd(all, SENDERS);
		if (all->s[i].sent < max && !all->s[i].busy[all->s[i].sent % WINDOW])
			bad = sender_send(all, i);
	}
	return bad ? bad : senders_poll(all);
}

int senders_done(const struct senders *all, uint32_t max)
{
	uint32_t i, k;

	for (i = 0; i < SENDERS; i++) {
		if (all->s[i].got < max)
			return 0;
		for (k = 0; k < WINDOW; k++)
			if (all->s[i].busy[k])
				return 0;
	}
	return 1;
}
