// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel user of DEVICE that never stops posting: each request that completes is
 * posted again, flushed ones included, until a while after its queue pair was drained.
 * It has two queue pairs that are connected with each other, and releases the device
 * when the device goes away.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "connect.h"

#define REQUESTS 32
#define LENGTH 4096

static char *device = "x1";
module_param(device, charp, 0444);
static int gid_index;
module_param(gid_index, int, 0444);

struct poster;

struct request {
	struct ib_cqe cqe;
	struct poster *poster;
};

struct poster {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	/* Sends, receives. */
	struct ib_qp *a, *b;
	u8 *memory;
	u64 dma;
	bool enough;
	struct request request[REQUESTS];
};

static int post(struct request *r)
{
	struct poster *u = r->poster;
	struct ib_sge sge = { .addr = u->dma, .length = LENGTH, .lkey = u->pd->local_dma_lkey };
	struct ib_rdma_wr wr = {
		.wr = { .wr_cqe = &r->cqe, .sg_list = &sge, .num_sge = 1,
			.opcode = IB_WR_RDMA_WRITE, .send_flags = IB_SEND_SIGNALED },
		.remote_addr = u->dma + LENGTH, .rkey = u->pd->unsafe_global_rkey,
	};

	return ib_post_send(u->a, &wr.wr, NULL);
}

static void done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct request *r = container_of(wc->wr_cqe, struct request, cqe);

	if (READ_ONCE(r->poster->enough))
		return;
	if (post(r))
		pr_info(KBUILD_MODNAME ": a request is refused\n");
}

static struct ib_qp *make_qp(struct poster *u)
{
	struct ib_qp_init_attr init = {
		.send_cq = u->cq, .recv_cq = u->cq, .qp_type = IB_QPT_RC,
		/* One more for each drain. */
		.cap = { .max_send_wr = REQUESTS + 2, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	return ib_create_qp(u->pd, &init);
}

static int connect_to(struct ib_qp *qp, const struct ib_qp *peer)
{
	return connect_rc(qp, peer->qp_num, gid_index, IB_ACCESS_REMOTE_WRITE, 18);
}

static void let_go(struct poster *u)
{
	if (!IS_ERR_OR_NULL(u->a))
		ib_destroy_qp(u->a);
	if (!IS_ERR_OR_NULL(u->b))
		ib_destroy_qp(u->b);
	if (!IS_ERR_OR_NULL(u->cq))
		ib_free_cq(u->cq);
	if (u->dma)
		ib_dma_unmap_single(u->dev, u->dma, 2 * LENGTH, DMA_BIDIRECTIONAL);
	if (!IS_ERR_OR_NULL(u->pd))
		ib_dealloc_pd(u->pd);
	kfree(u->memory);
	kfree(u);
}

static int add(struct ib_device *dev);
static void remove(struct ib_device *dev, void *data);
static struct ib_client client = { .name = KBUILD_MODNAME, .add = add, .remove = remove };

static int add(struct ib_device *dev)
{
	struct poster *u;
	int ret, i;

	if (strcmp(dev_name(&dev->dev), device))
		return -EOPNOTSUPP;
	u = kzalloc(sizeof(*u), GFP_KERNEL);
	if (!u)
		return -ENOMEM;
	ret = -EINVAL;
	u->dev = dev;
	u->memory = kzalloc(2 * LENGTH, GFP_KERNEL);
	u->pd = ib_alloc_pd(dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	u->cq = ib_alloc_cq(dev, NULL, 2 * REQUESTS, 0, IB_POLL_WORKQUEUE);
	if (!u->memory || IS_ERR(u->pd) || IS_ERR(u->cq))
		goto out;
	u->dma = ib_dma_map_single(dev, u->memory, 2 * LENGTH, DMA_BIDIRECTIONAL);
	u->a = make_qp(u);
	u->b = make_qp(u);
	if (IS_ERR(u->a) || IS_ERR(u->b))
		goto out;
	ret = connect_to(u->a, u->b) ?: connect_to(u->b, u->a);
	for (i = 0; i < REQUESTS && !ret; i++) {
		u->request[i].poster = u;
		u->request[i].cqe.done = done;
		ret = post(&u->request[i]);
	}
	if (ret) {
		WRITE_ONCE(u->enough, true);
		ib_drain_qp(u->a);
		goto out;
	}
	ib_set_client_data(dev, &client, u);
	return 0;
out:
	pr_info(KBUILD_MODNAME ": no ground to stand on\n");
	let_go(u);
	return ret;
}

static void remove(struct ib_device *dev, void *data)
{
	struct poster *u = data;

	/* What is posted meanwhile is flushed, and posted once more. */
	ib_drain_qp(u->a);
	WRITE_ONCE(u->enough, true);
	ib_drain_qp(u->a);
	let_go(u);
}

static int __init start(void)
{
	return ib_register_client(&client);
}
module_init(start);

static void __exit end(void)
{
	ib_unregister_client(&client);
}
module_exit(end);

MODULE_DESCRIPTION("Tests that a device goes whose kernel user never stops posting");
MODULE_LICENSE("GPL");
