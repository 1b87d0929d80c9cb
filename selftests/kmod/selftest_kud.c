// SPDX-License-Identifier: GPL-2.0
/*
 * SQE for kernel users, on DEVICE, which is connected to itself: a UD queue pair that
 * fails, is brought back the moment the error is seen, and is drained. Also the QP of
 * ib_mad, which ib_mad brings back by itself, when it gets an address handle of another
 * protection domain. The module loads if all went well and logs what did not.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

#include "on_device.h"

#define QKEY 0x1234
#define LENGTH 64
#define ROUNDS 50
/* MADs at a time, and the one that fails. */
#define MADS 8
#define WRONG 3

struct ground {
	struct ib_device *dev;
	/* Of the queue pair, and another one. */
	struct ib_pd *pd, *foreign;
	struct ib_ah *ah, *foreign_ah;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 *memory;
	u64 dma;
};

/* The way to the device itself, for PD. */
static struct ib_ah *make_ah(struct ground *g, struct ib_pd *pd)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };
	union ib_gid gid;
	int ret = rdma_query_gid(g->dev, 1, gid_index, &gid);

	if (ret)
		return ERR_PTR(ret);
	rdma_ah_set_port_num(&attr, 1);
	rdma_ah_set_grh(&attr, &gid, 0, gid_index, 16, 0);
	return rdma_create_ah(pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
}

static int start_qp(struct ground *g)
{
	struct ib_qp_init_attr init = {
		.send_cq = g->cq, .recv_cq = g->cq, .qp_type = IB_QPT_UD,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = 16, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1, .qkey = QKEY };
	int ret;

	g->qp = ib_create_qp(g->pd, &init);
	if (IS_ERR(g->qp))
		return PTR_ERR(g->qp);
	ret = ib_modify_qp(g->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	attr.qp_state = IB_QPS_RTR;
	ret = ret ?: ib_modify_qp(g->qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	return ret ?: ib_modify_qp(g->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

/* Posts COUNT datagrams to nobody, of which BAD fails. */
static int post(struct ground *g, int count, int bad)
{
	struct ib_sge sge = { .addr = g->dma, .length = LENGTH, .lkey = g->pd->local_dma_lkey };
	struct ib_ud_wr wr[4] = {};
	int i;

	for (i = 0; i < count; i++) {
		wr[i].wr.opcode = IB_WR_SEND;
		wr[i].wr.sg_list = &sge;
		wr[i].wr.num_sge = 1;
		wr[i].wr.wr_id = i;
		wr[i].wr.next = i + 1 < count ? &wr[i + 1].wr : NULL;
		wr[i].ah = i == bad ? g->foreign_ah : g->ah;
		wr[i].remote_qpn = g->qp->qp_num;
		wr[i].remote_qkey = QKEY;
	}
	return ib_post_send(g->qp, &wr[0].wr, NULL);
}

/* The status of the next completion. */
static int next_status(struct ground *g)
{
	struct ib_wc wc;
	int i;

	for (i = 0; i < 20000; i++) {
		if (ib_poll_cq(g->cq, 1, &wc) == 1)
			return wc.status;
		usleep_range(500, 1000);
	}
	return -ETIMEDOUT;
}

static enum ib_qp_state state_of(struct ground *g)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	if (ib_query_qp(g->qp, &attr, IB_QP_STATE, &init))
		return IB_QPS_RESET;
	return attr.qp_state;
}

static int bring_back(struct ground *g)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS, .cur_qp_state = IB_QPS_SQE };

	return ib_modify_qp(g->qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE);
}

static void own_queue_pair(struct ground *g)
{
	int round;

	if (start_qp(g)) {
		EXPECT(!"a queue pair");
		goto out;
	}
	for (round = 0; round < ROUNDS && !failed; round++) {
		EXPECT(!post(g, 4, 1));
		EXPECT(next_status(g) == IB_WC_SUCCESS);
		EXPECT(next_status(g) == IB_WC_LOC_QP_OP_ERR);
		/* What is under way and what is posted in SQE is flushed, by then or now. */
		if (round & 1)
			EXPECT(state_of(g) == IB_QPS_SQE);
		EXPECT(!post(g, 1, -1));
		EXPECT(!bring_back(g));
		EXPECT(next_status(g) == IB_WC_WR_FLUSH_ERR);
		EXPECT(next_status(g) == IB_WC_WR_FLUSH_ERR);
		EXPECT(next_status(g) == IB_WC_WR_FLUSH_ERR);
		EXPECT(!post(g, 1, -1));
		EXPECT(next_status(g) == IB_WC_SUCCESS);
	}
	/* From SQE; the drain posts an RDMA WRITE, which UD does not have. */
	EXPECT(!post(g, 1, 0));
	EXPECT(next_status(g) == IB_WC_LOC_QP_OP_ERR);
	EXPECT(state_of(g) == IB_QPS_SQE);
	ib_drain_qp(g->qp);
	EXPECT(state_of(g) == IB_QPS_ERR);
out:
	if (!IS_ERR_OR_NULL(g->qp))
		ib_destroy_qp(g->qp);
}

static struct {
	atomic_t left;
	struct completion done;
	int status[MADS];
} mads;

static void mad_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	mads.status[(unsigned long)wc->send_buf->context[0]] = wc->status;
	ib_free_send_mad(wc->send_buf);
	if (atomic_dec_and_test(&mads.left))
		complete(&mads.done);
}

/* MADs that nobody takes note of, at the same time. */
static void send_mads(struct ground *g, struct ib_mad_agent *agent, struct ib_ah *ah)
{
	unsigned long i;

	atomic_set(&mads.left, MADS);
	init_completion(&mads.done);
	for (i = 0; i < MADS; i++) {
		struct ib_mad_send_buf *buf;
		struct ib_mad_hdr *mad;

		mads.status[i] = -1;
		buf = ib_create_send_mad(agent, 1, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA,
					 GFP_KERNEL, IB_MGMT_BASE_VERSION);
		if (IS_ERR(buf)) {
			EXPECT(!"a MAD");
			if (atomic_dec_and_test(&mads.left))
				complete(&mads.done);
			continue;
		}
		mad = buf->mad;
		mad->base_version = IB_MGMT_BASE_VERSION;
		mad->mgmt_class = IB_MGMT_CLASS_DEVICE_MGMT;
		mad->class_version = 1;
		mad->method = IB_MGMT_METHOD_SEND;
		buf->ah = i == WRONG ? g->foreign_ah : ah;
		buf->context[0] = (void *)i;
		EXPECT(!ib_post_send_mad(buf, NULL));
	}
	if (!wait_for_completion_timeout(&mads.done, 60 * HZ))
		EXPECT(!"MADs end");
	for (i = 0; i < MADS; i++)
		EXPECT(mads.status[i] == (i == WRONG ? IB_WC_LOC_QP_OP_ERR : IB_WC_SUCCESS));
}

static void management(struct ground *g)
{
	struct ib_mad_agent *agent;
	struct ib_ah *ah;
	int round;

	agent = ib_register_mad_agent(g->dev, 1, IB_QPT_GSI, NULL, 0, mad_sent, NULL, NULL, 0);
	if (IS_ERR(agent)) {
		EXPECT(!"an agent");
		return;
	}
	ah = make_ah(g, agent->qp->pd);
	EXPECT(!IS_ERR(ah));
	for (round = 0; round < ROUNDS && !failed; round++)
		send_mads(g, agent, ah);
	ib_unregister_mad_agent(agent);
	if (!IS_ERR(ah))
		rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

static void on_device(struct ib_device *dev)
{
	struct ground g = { .dev = dev };

	g.memory = kzalloc(LENGTH, GFP_KERNEL);
	g.pd = ib_alloc_pd(dev, 0);
	g.foreign = ib_alloc_pd(dev, 0);
	g.cq = ib_alloc_cq(dev, NULL, 64, 0, IB_POLL_DIRECT);
	if (!g.memory || IS_ERR(g.pd) || IS_ERR(g.foreign) || IS_ERR(g.cq)) {
		EXPECT(!"objects");
		goto out;
	}
	g.dma = ib_dma_map_single(dev, g.memory, LENGTH, DMA_TO_DEVICE);
	g.ah = make_ah(&g, g.pd);
	g.foreign_ah = make_ah(&g, g.foreign);
	if (IS_ERR(g.ah) || IS_ERR(g.foreign_ah)) {
		EXPECT(!"address handles");
	} else {
		own_queue_pair(&g);
		management(&g);
	}
	if (!IS_ERR(g.ah))
		rdma_destroy_ah(g.ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (!IS_ERR(g.foreign_ah))
		rdma_destroy_ah(g.foreign_ah, RDMA_DESTROY_AH_SLEEPABLE);
	ib_dma_unmap_single(dev, g.dma, LENGTH, DMA_TO_DEVICE);
out:
	kfree(g.memory);
	if (!IS_ERR(g.cq))
		ib_free_cq(g.cq);
	if (!IS_ERR(g.foreign))
		ib_dealloc_pd(g.foreign);
	if (!IS_ERR(g.pd))
		ib_dealloc_pd(g.pd);
}

MODULE_DESCRIPTION("Tests what becomes of the datagrams of kernel users when one fails");
MODULE_LICENSE("GPL");
