// SPDX-License-Identifier: GPL-2.0
/*
 * Features that only kernel users have: all of memory by one key, fast registration of
 * pages by work requests, with every refusal, and address handles that are created and
 * destroyed in atomic context. Runs on DEVICE, which is connected to itself. The module
 * loads if all went well and logs what did not.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "connect.h"
#include "on_device.h"

#define PAGES 3
#define LENGTH (PAGES * PAGE_SIZE)

struct ground {
	struct ib_device *dev;
	/* Of the two ends, and another one. */
	struct ib_pd *pd, *foreign;
	struct ib_cq *cq;
	struct ib_qp *a, *b;
	/* What is written, and where to. */
	u8 *from, *to;
};

static struct ib_qp *make_qp(struct ground *g)
{
	struct ib_qp_init_attr init = {
		.send_cq = g->cq, .recv_cq = g->cq, .qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = { .max_send_wr = 16, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return ib_create_qp(g->pd, &init);
}

static int connect_to(struct ib_qp *qp, const struct ib_qp *peer)
{
	return connect_rc(qp, peer->qp_num, gid_index,
			  IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ, 14);
}

static void disconnect(struct ground *g)
{
	struct ib_wc wc;

	if (!IS_ERR_OR_NULL(g->a))
		ib_destroy_qp(g->a);
	if (!IS_ERR_OR_NULL(g->b))
		ib_destroy_qp(g->b);
	g->a = g->b = NULL;
	while (ib_poll_cq(g->cq, 1, &wc) > 0)
		;
}

/* A new connection: an error has ended the last. */
static int reconnect(struct ground *g)
{
	disconnect(g);
	g->a = make_qp(g);
	g->b = make_qp(g);
	if (IS_ERR(g->a) || IS_ERR(g->b))
		return -EINVAL;
	memset(g->to, 0, LENGTH);
	return connect_to(g->a, g->b) ?: connect_to(g->b, g->a);
}

/* The status of WR on QP; it is the only one under way. */
static int status_of(struct ground *g, struct ib_qp *qp, const struct ib_send_wr *wr)
{
	struct ib_wc wc;
	int i, ret = ib_post_send(qp, wr, NULL);

	if (ret)
		return ret;
	for (i = 0; i < 20000; i++) {
		ret = ib_poll_cq(g->cq, 1, &wc);
		if (ret == 1 && wc.qp == qp && wc.opcode != IB_WC_RECV)
			return wc.status;
		if (ret <= 0)
			usleep_range(500, 1000);
	}
	return -ETIMEDOUT;
}

static int write_to(struct ground *g, u64 addr, u32 rkey)
{
	struct ib_sge sge = {
		.addr = ib_dma_map_single(g->dev, g->from, LENGTH, DMA_TO_DEVICE),
		.length = LENGTH, .lkey = g->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = addr, .rkey = rkey,
	};
	int ret = status_of(g, g->a, &wr.wr);

	ib_dma_unmap_single(g->dev, sge.addr, LENGTH, DMA_TO_DEVICE);
	return ret;
}

static int reg(struct ground *g, struct ib_qp *qp, struct ib_mr *mr, int access)
{
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR }, .mr = mr, .key = mr->rkey, .access = access,
	};

	return status_of(g, qp, &wr.wr);
}

static int invalidate(struct ground *g, struct ib_qp *qp, u32 rkey)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = rkey };

	return status_of(g, qp, &wr);
}

static int send_inv(struct ground *g, u32 rkey)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .ex.invalidate_rkey = rkey };
	struct ib_recv_wr rwr = {};

	return ib_post_recv(g->b, &rwr, NULL) ?: status_of(g, g->a, &wr);
}

static bool landed(struct ground *g)
{
	return !memcmp(g->from, g->to, LENGTH);
}

static bool untouched(struct ground *g)
{
	return !memchr_inv(g->to, 0, LENGTH);
}

/* The three pages of g->to, mapped for MR. */
static int map(struct ground *g, struct ib_mr *mr)
{
	struct scatterlist sg[PAGES];
	int i, n;

	sg_init_table(sg, PAGES);
	for (i = 0; i < PAGES; i++)
		sg_set_buf(&sg[i], g->to + i * PAGE_SIZE, PAGE_SIZE);
	if (ib_dma_map_sg(g->dev, sg, PAGES, DMA_FROM_DEVICE) != PAGES)
		return -EIO;
	n = ib_map_mr_sg(mr, sg, PAGES, NULL, PAGE_SIZE);
	ib_dma_unmap_sg(g->dev, sg, PAGES, DMA_FROM_DEVICE);
	return n;
}

#define RIGHTS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

static void fast_registration(struct ground *g)
{
	u32 most = g->dev->attrs.max_fast_reg_page_list_len;
	struct ib_mr *mr, *other;

	EXPECT(most >= PAGES);
	mr = ib_alloc_mr(g->pd, IB_MR_TYPE_MEM_REG, most + 1);
	EXPECT(IS_ERR(mr) && PTR_ERR(mr) == -EINVAL);
	EXPECT(IS_ERR(ib_alloc_mr(g->pd, IB_MR_TYPE_SG_GAPS, 4)));
	mr = ib_alloc_mr(g->pd, IB_MR_TYPE_MEM_REG, PAGES);
	other = ib_alloc_mr(g->foreign, IB_MR_TYPE_MEM_REG, PAGES);
	if (IS_ERR(mr) || IS_ERR(other)) {
		EXPECT(!"regions");
		return;
	}
	EXPECT(map(g, mr) == PAGES && mr->length == LENGTH);
	EXPECT(map(g, other) == PAGES);

	/* Not before it is registered. */
	EXPECT(!reconnect(g));
	EXPECT(write_to(g, mr->iova, mr->rkey) == IB_WC_REM_ACCESS_ERR && untouched(g));
	/* Then, and not when it was invalidated again, or with the key before. */
	EXPECT(!reconnect(g));
	EXPECT(reg(g, g->b, mr, RIGHTS) == IB_WC_SUCCESS);
	EXPECT(write_to(g, mr->iova, mr->rkey) == IB_WC_SUCCESS && landed(g));
	EXPECT(invalidate(g, g->b, mr->rkey) == IB_WC_SUCCESS);
	memset(g->to, 0, LENGTH);
	EXPECT(write_to(g, mr->iova, mr->rkey) == IB_WC_REM_ACCESS_ERR && untouched(g));
	EXPECT(!reconnect(g));
	ib_update_fast_reg_key(mr, (u8)(mr->rkey + 1));
	EXPECT(map(g, mr) == PAGES);
	EXPECT(reg(g, g->b, mr, RIGHTS) == IB_WC_SUCCESS);
	EXPECT(write_to(g, mr->iova, mr->rkey - 1) == IB_WC_REM_ACCESS_ERR && untouched(g));
	EXPECT(!reconnect(g));
	EXPECT(write_to(g, mr->iova, mr->rkey) == IB_WC_SUCCESS && landed(g));
	/* The peer invalidates it, once. */
	EXPECT(send_inv(g, mr->rkey) == IB_WC_SUCCESS);
	memset(g->to, 0, LENGTH);
	EXPECT(write_to(g, mr->iova, mr->rkey) == IB_WC_REM_ACCESS_ERR && untouched(g));

	/* What peers have no right to stays registered. */
	EXPECT(!reconnect(g));
	EXPECT(map(g, mr) == PAGES);
	EXPECT(reg(g, g->b, mr, IB_ACCESS_LOCAL_WRITE) == IB_WC_SUCCESS);
	EXPECT(send_inv(g, mr->rkey) == IB_WC_REM_ACCESS_ERR);
	EXPECT(!reconnect(g));
	EXPECT(reg(g, g->b, mr, IB_ACCESS_LOCAL_WRITE) == IB_WC_MW_BIND_ERR);
	EXPECT(!reconnect(g));
	EXPECT(invalidate(g, g->b, mr->rkey) == IB_WC_SUCCESS);

	/* A right to FLUSH is one. */
	EXPECT(!reconnect(g));
	EXPECT(map(g, mr) == PAGES);
	EXPECT(reg(g, g->b, mr, IB_ACCESS_FLUSH_GLOBAL) == IB_WC_SUCCESS);
	EXPECT(send_inv(g, mr->rkey) == IB_WC_SUCCESS);

	/* Rights are those of the registration. */
	EXPECT(!reconnect(g));
	EXPECT(map(g, mr) == PAGES);
	EXPECT(reg(g, g->b, mr, IB_ACCESS_REMOTE_READ) == IB_WC_SUCCESS);
	EXPECT(write_to(g, mr->iova, mr->rkey) == IB_WC_REM_ACCESS_ERR && untouched(g));
	/* Registered already; of another domain; with rights that there are not. */
	EXPECT(!reconnect(g));
	EXPECT(reg(g, g->b, mr, RIGHTS) == IB_WC_MW_BIND_ERR);
	EXPECT(!reconnect(g));
	EXPECT(invalidate(g, g->b, mr->rkey) == IB_WC_SUCCESS);
	EXPECT(invalidate(g, g->b, other->rkey) == IB_WC_MW_BIND_ERR);
	EXPECT(!reconnect(g));
	EXPECT(reg(g, g->b, other, RIGHTS) == IB_WC_MW_BIND_ERR);
	EXPECT(!reconnect(g));
	EXPECT(reg(g, g->b, mr, IB_ACCESS_ON_DEMAND) == IB_WC_MW_BIND_ERR);
	EXPECT(!ib_dereg_mr(mr) && !ib_dereg_mr(other));
}

/* Far more requests without a packet at once than the device takes up at a time. */
#define AT_ONCE 300

/* Registers a region and invalidates it again and again, in one post. */
static void registrations_at_once(struct ground *g)
{
	struct ib_qp_init_attr init = {
		.send_cq = g->cq, .recv_cq = g->cq, .qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = AT_ONCE, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ib_reg_wr *wr = kcalloc(AT_ONCE, sizeof(*wr), GFP_KERNEL);
	struct ib_mr *mr = ib_alloc_mr(g->pd, IB_MR_TYPE_MEM_REG, PAGES);
	struct ib_qp *qp = ib_create_qp(g->pd, &init);
	int i;

	if (!wr || IS_ERR(mr) || IS_ERR(qp)) {
		EXPECT(!"a region and a queue pair");
		goto out;
	}
	EXPECT(map(g, mr) == PAGES);
	/* With itself. */
	EXPECT(!connect_to(qp, qp));
	for (i = 0; i < AT_ONCE - 1; i++) {
		wr[i].wr.next = &wr[i + 1].wr;
		if (i % 2) {
			wr[i].wr.opcode = IB_WR_LOCAL_INV;
			wr[i].wr.ex.invalidate_rkey = mr->rkey;
		} else {
			wr[i].wr.opcode = IB_WR_REG_MR;
			wr[i].mr = mr;
			wr[i].key = mr->rkey;
			wr[i].access = RIGHTS;
		}
	}
	/* The last tells of itself. */
	wr[i].wr.opcode = IB_WR_LOCAL_INV;
	wr[i].wr.ex.invalidate_rkey = mr->rkey;
	wr[i].wr.send_flags = IB_SEND_SIGNALED;
	EXPECT(status_of(g, qp, &wr[0].wr) == IB_WC_SUCCESS);
out:
	if (!IS_ERR(qp))
		ib_destroy_qp(qp);
	if (!IS_ERR(mr))
		ib_dereg_mr(mr);
	kfree(wr);
}

/* One key for all of memory, the domain's maker willing. */
static void global_key(struct ground *g)
{
	struct ib_pd *pd = g->pd;
	u64 addr;

	g->pd = ib_alloc_pd(g->dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(g->pd)) {
		EXPECT(!"a domain with a global key");
		g->pd = pd;
		return;
	}
	EXPECT(!reconnect(g));
	addr = ib_dma_map_single(g->dev, g->to, LENGTH, DMA_FROM_DEVICE);
	EXPECT(write_to(g, addr, g->pd->unsafe_global_rkey) == IB_WC_SUCCESS && landed(g));
	EXPECT(write_to(g, addr, g->pd->local_dma_lkey + 256) == IB_WC_REM_ACCESS_ERR);
	ib_dma_unmap_single(g->dev, addr, LENGTH, DMA_FROM_DEVICE);
	disconnect(g);
	ib_dealloc_pd(g->pd);
	g->pd = pd;
}

static bool leads_to(struct ib_ah *ah, const union ib_gid *gid, u8 hop_limit)
{
	struct rdma_ah_attr attr = {};

	return !rdma_query_ah(ah, &attr) && attr.type == RDMA_AH_ATTR_TYPE_ROCE &&
	       rdma_ah_get_port_num(&attr) == 1 && attr.grh.sgid_index == gid_index &&
	       attr.grh.hop_limit == hop_limit &&
	       !memcmp(&attr.grh.dgid, gid, sizeof(*gid));
}

static void address_handles(struct ground *g)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };
	struct ib_ah *ah[16];
	static DEFINE_SPINLOCK(lock);
	unsigned long flags;
	union ib_gid gid;
	int i, round;

	EXPECT(!rdma_query_gid(g->dev, 1, gid_index, &gid));
	rdma_ah_set_port_num(&attr, 1);
	rdma_ah_set_grh(&attr, &gid, 0, gid_index, 16, 0);
	for (round = 0; round < 10; round++) {
		spin_lock_irqsave(&lock, flags);
		for (i = 0; i < ARRAY_SIZE(ah); i++)
			ah[i] = rdma_create_ah(g->pd, &attr, 0);
		for (i = 0; i < ARRAY_SIZE(ah); i++) {
			EXPECT(!IS_ERR(ah[i]));
			if (!IS_ERR(ah[i]))
				rdma_destroy_ah(ah[i], 0);
		}
		spin_unlock_irqrestore(&lock, flags);
	}
	ah[0] = rdma_create_ah(g->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	EXPECT(!IS_ERR(ah[0]));
	if (IS_ERR(ah[0]))
		return;
	EXPECT(leads_to(ah[0], &gid, 16));
	rdma_ah_set_grh(&attr, &gid, 0, gid_index, 17, 0);
	EXPECT(!rdma_modify_ah(ah[0], &attr) && leads_to(ah[0], &gid, 17));
	rdma_destroy_ah(ah[0], RDMA_DESTROY_AH_SLEEPABLE);
}

static void on_device(struct ib_device *dev)
{
	struct ground g = { .dev = dev };
	int i;

	g.pd = ib_alloc_pd(dev, 0);
	g.foreign = ib_alloc_pd(dev, 0);
	g.cq = ib_alloc_cq(dev, NULL, 64, 0, IB_POLL_DIRECT);
	g.from = kmalloc(LENGTH, GFP_KERNEL);
	g.to = kmalloc(LENGTH, GFP_KERNEL);
	if (IS_ERR(g.pd) || IS_ERR(g.foreign) || IS_ERR(g.cq) || !g.from || !g.to) {
		EXPECT(!"objects");
		goto out;
	}
	for (i = 0; i < LENGTH; i++)
		g.from[i] = i * 31 + 1;
	fast_registration(&g);
	disconnect(&g);
	registrations_at_once(&g);
	global_key(&g);
	address_handles(&g);
out:
	kfree(g.to);
	kfree(g.from);
	if (!IS_ERR(g.cq))
		ib_free_cq(g.cq);
	if (!IS_ERR(g.foreign))
		ib_dealloc_pd(g.foreign);
	if (!IS_ERR(g.pd))
		ib_dealloc_pd(g.pd);
}

MODULE_DESCRIPTION("Tests what kernel users of memory keys and address handles have");
MODULE_LICENSE("GPL");
