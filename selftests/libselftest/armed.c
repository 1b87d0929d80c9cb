// SPDX-License-Identifier: GPL-2.0
#include "armed.h"

/* QPs of A, whose first receives to A's queue. */
static void connect_pair(struct armed *a, int gid_index)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC,
			.cap = { PAIR_DEPTH, PAIR_DEPTH, 1, 1, 0 },
			.send_cq = a->sink,
			.recv_cq = i ? a->sink : a->cq,
		};

		memset(&a->e[i], 0, sizeof(a->e[i]));
		a->e[i].ctx = a->ctx;
		a->e[i].gid_index = gid_index;
		CHECK(!ibv_query_gid(a->ctx, 1, gid_index, &a->e[i].gid));
		a->e[i].qp = ibv_create_qp(a->pd, &init);
		CHECK(a->e[i].qp);
	}
	connect_end(&a->e[0], &a->e[1]);
	connect_end(&a->e[1], &a->e[0]);
}

void make_armed(struct armed *a, const char *device, int gid_index, int entries,
		int vector)
{
	a->ctx = open_device(device);
	a->pd = ibv_alloc_pd(a->ctx);
	a->channel = ibv_create_comp_channel(a->ctx);
	a->sink = ibv_create_cq(a->ctx, 1024, NULL, NULL, 0);
	CHECK(a->pd && a->channel && a->sink);
	a->cq = ibv_create_cq(a->ctx, entries, a, a->channel, vector % a->ctx->num_comp_vectors);
	CHECK(a->cq);
	connect_pair(a, gid_index);
}

void arm(struct armed *a)
{
	CHECK(!ibv_req_notify_cq(a->cq, 0));
}

void complete(struct armed *a, int n)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	while (n--) {
		CHECK(!ibv_post_recv(a->e[0].qp, &recv, &bad_recv));
		CHECK(!ibv_post_send(a->e[1].qp, &wr, &bad));
		/* Acknowledged, so the receiver has completed. */
		CHECK(next_wc(a->sink, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	}
}

void drain_armed(struct armed *a, int n)
{
	struct ibv_wc wc;

	while (n--)
		CHECK(ibv_poll_cq(a->cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(ibv_poll_cq(a->cq, 1, &wc) == 0);
}

void take_event(struct armed *a, int n)
{
	struct ibv_cq *cq;
	void *context;

	CHECK(readable(a->channel->fd, 20));
	CHECK(!ibv_get_cq_event(a->channel, &cq, &context));
	CHECK(cq == a->cq && context == a);
	ibv_ack_cq_events(cq, 1);
	drain_armed(a, n);
}

void destroy_armed(struct armed *a)
{
	CHECK(!ibv_destroy_qp(a->e[0].qp) && !ibv_destroy_qp(a->e[1].qp));
	CHECK(!ibv_destroy_cq(a->cq) && !ibv_destroy_cq(a->sink));
	CHECK(!ibv_destroy_comp_channel(a->channel));
	CHECK(!ibv_dealloc_pd(a->pd) && !ibv_close_device(a->ctx));
}

void end_armed(struct armed *a)
{
	struct pollfd p = { .fd = a->channel->fd, .events = POLLIN };

	CHECK(poll(&p, 1, 0) == 0);
	destroy_armed(a);
}
