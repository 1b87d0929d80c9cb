// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <fcntl.h>
#include <infiniband/xroce_dv.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/xroce-abi.h>

#include "census.h"
#include "everyverb.h"
#include "tm.h"

static struct devices on;
static const char *netdev;

/* Two devices, queue pairs of which are connected. */
static struct end a, b;
/* What the verbs make or change. */
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static struct ibv_dm *dm;
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;
static struct ibv_qp *qp;
static struct ibv_ah *ah;
static int file = -1;
static uint32_t target;
/* What they stand on. */
static struct ibv_xrcd *domain;
static struct ibv_comp_channel *events;
static struct ibv_srq *plain, *tagged;
static struct ibv_qp *datagrams, *opened;
/* Behind the domain, and behind none. */
static int domain_file, free_file;

static int made(const void *object)
{
	return object ? 0 : errno;
}

/* ---- a device ---- */

static struct ibv_device *first_device;

static int make_context(void)
{
	ctx = ibv_open_device(first_device);
	return made(ctx);
}

static int undo_context(void)
{
	return ibv_close_device(ctx) ? errno : 0;
}

static int write_context(void)
{
	struct {
		struct ib_uverbs_get_context_resp core;
		struct xroce_alloc_ucontext_resp driver;
	} answer;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context core;
		struct xroce_alloc_ucontext_req driver;
	} cmd = {
		.hdr = { IB_USER_VERBS_CMD_GET_CONTEXT, sizeof(cmd) / 4, sizeof(answer) / 4 },
		.core = { .response = (uintptr_t)&answer },
		.driver = { .abi_version = XROCE_ABI_VERSION },
	};
	char path[128];
	int err;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", first_device->dev_name);
	file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return errno;
	if (write(file, &cmd, sizeof(cmd)) == sizeof(cmd))
		return close(answer.core.async_fd) ? errno : 0;
	err = errno;
	close(file);
	return err;
}

static int undo_file(void)
{
	return close(file) ? errno : 0;
}

static int add_link(const char *name)
{
	struct rdma_request r;

	rdma_begin(&r, RDMA_OP(NEWLINK), NLM_F_ACK);
	rdma_attr(&r, RDMA_NLDEV_ATTR_DEV_NAME, name, strlen(name) + 1);
	rdma_attr(&r, RDMA_NLDEV_ATTR_LINK_TYPE, "xroce", 6);
	rdma_attr(&r, RDMA_NLDEV_ATTR_NDEV_NAME, netdev, strlen(netdev) + 1);
	rdma_send(&r);
	return rdma_ack();
}

static int make_link(void)
{
	return add_link("z1");
}

/* All that the driver does; then ib_core finds that the name is taken. */
static int make_link_twice(void)
{
	int ret = add_link(on.name[0]);

	return ret == ENFILE ? 0 : ret;
}

static int undo_link(void)
{
	struct rdma_request r;
	uint32_t index = count("rdma link show z1/1 >/dev/null && "
			       "rdma dev show z1 | sed 's/:.*//'");

	rdma_begin(&r, RDMA_OP(DELLINK), NLM_F_ACK);
	rdma_attr(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof(index));
	rdma_send(&r);
	return rdma_ack();
}

/* ---- memory ---- */

static int make_pd(void)
{
	pd = ibv_alloc_pd(a.ctx);
	return made(pd);
}

static int undo_pd(void)
{
	return ibv_dealloc_pd(pd);
}

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static int make_mr(void)
{
	mr = ibv_reg_mr(a.pd, a.buf, 2 * PAIR_SIZE, ALL_ACCESS);
	return made(mr);
}

static int make_odp(void)
{
	mr = ibv_reg_mr(a.pd, a.buf, 2 * PAIR_SIZE, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	return made(mr);
}

static int make_dm_mr(void)
{
	mr = ibv_reg_dm_mr(a.pd, dm, 0, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
	return made(mr);
}

static int undo_mr(void)
{
	return ibv_dereg_mr(mr);
}

static int make_mw1(void)
{
	mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_1);
	return made(mw);
}

static int make_mw2(void)
{
	mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
	return made(mw);
}

static int undo_mw(void)
{
	return ibv_dealloc_mw(mw);
}

static int make_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 8192 };

	dm = ibv_alloc_dm(a.ctx, &attr);
	return made(dm);
}

static int undo_dm(void)
{
	return ibv_free_dm(dm);
}

/* One message from A to B, out of what A's region has at ADDRESS. */
static void sends(struct ibv_mr *from, void *address)
{
	struct ibv_sge sge = { (uintptr_t)address, 64, from->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	memset(address, 0x5c, 64);
	memset(b.buf + PAIR_SIZE, 0, 64);
	CHECK(!post_receive(&b, 1));
	CHECK(!ibv_post_send(a.qp, &wr, &bad));
	CHECK(next_wc(a.cq, &wc) == 1);
	if (wc.status != IBV_WC_SUCCESS)
		printf("%s\n", ibv_wc_status_str(wc.status));
	CHECK(wc.status == IBV_WC_SUCCESS);
	CHECK(next_wc(b.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(!memcmp(address, b.buf + PAIR_SIZE, 64));
}

/* What the region is now, and what it is to be; with these the access changes, too. */
static int half;

static int rereg(void)
{
	int ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
			       NULL, a.buf + !half * PAIR_SIZE, PAIR_SIZE,
			       half ? ALL_ACCESS : IBV_ACCESS_REMOTE_READ);

	if (ret)
		return errno;
	half = !half;
	return 0;
}

static void region_kept(void)
{
	sends(mr, a.buf + half * PAIR_SIZE);
}

/* ---- queues ---- */

static int make_channel(void)
{
	channel = ibv_create_comp_channel(a.ctx);
	return made(channel);
}

static int undo_channel(void)
{
	return ibv_destroy_comp_channel(channel) ? errno : 0;
}

static int make_cq(void)
{
	cq = ibv_create_cq(a.ctx, 16, NULL, events, 0);
	return made(cq);
}

static int undo_cq(void)
{
	return ibv_destroy_cq(cq);
}

static int cqe_now;

static int resize(void)
{
	int ret = ibv_resize_cq(cq, cq->cqe < 100 ? 200 : 20);

	if (!ret)
		cqe_now = cq->cqe;
	return ret;
}

static int make_cq_to_resize(void)
{
	int ret = make_cq();

	cqe_now = ret ? 0 : cq->cqe;
	return ret;
}

static void cq_kept(void)
{
	CHECK(cq->cqe == cqe_now);
}

static int make_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 2 } };

	srq = ibv_create_srq(a.pd, &attr);
	return made(srq);
}

static int make_xrc_srq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC, .xrcd = domain, .cq = a.cq, .pd = a.pd,
	};

	srq = ibv_create_srq_ex(a.ctx, &attr);
	return made(srq);
}

static int make_tagged_srq(void)
{
	struct tag_queue_size size = { .tags = 16, .ops = 8, .receives = 16 };

	srq = tm_srq(&a, (struct ibv_cq_ex *)a.cq, size);
	return made(srq);
}

static int undo_srq(void)
{
	return ibv_destroy_srq(srq);
}

static uint32_t srq_size(void)
{
	struct ibv_srq_attr attr;

	CHECK(!ibv_query_srq(plain, &attr));
	return attr.max_wr;
}

static uint32_t size_now;

static int modify_srq(void)
{
	/* Powers of two are not rounded up. */
	struct ibv_srq_attr attr = { .max_wr = size_now < 100 ? 256 : 32 };
	int ret = ibv_modify_srq(plain, &attr, IBV_SRQ_MAX_WR);

	if (!ret)
		size_now = attr.max_wr;
	return ret;
}

static void srq_kept(void)
{
	CHECK(srq_size() == size_now);
}

/* ---- queue pairs ---- */

static int make_qp(enum ibv_qp_type type, struct ibv_srq *from)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = a.pd,
		.send_cq = a.cq, .recv_cq = a.cq, .srq = from, .cap = { 16, 16, 2, 2, 64 },
	};

	if (type == IBV_QPT_XRC_SEND)
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	qp = ibv_create_qp_ex(a.ctx, &init);
	return made(qp);
}

static int make_rc(void)
{
	return make_qp(IBV_QPT_RC, NULL);
}

static int make_tagged_rc(void)
{
	return make_qp(IBV_QPT_RC, tagged);
}

static int make_uc(void)
{
	return make_qp(IBV_QPT_UC, NULL);
}

static int make_ud(void)
{
	return make_qp(IBV_QPT_UD, NULL);
}

static int make_xrc_send(void)
{
	return make_qp(IBV_QPT_XRC_SEND, NULL);
}

static int make_target(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain,
	};

	qp = ibv_create_qp_ex(a.ctx, &init);
	return made(qp);
}

static int open_target(void)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = opened->qp_num, .xrcd = domain, .qp_type = IBV_QPT_XRC_RECV,
	};

	qp = ibv_open_qp(a.ctx, &attr);
	return made(qp);
}

static int undo_qp(void)
{
	return ibv_destroy_qp(qp);
}

/* An opened target goes with the first that destroys it by name: it is made again. */
static int undo_opened(void)
{
	int ret = ibv_destroy_qp(qp);

	if (ret)
		return ret;
	CHECK(!ibv_destroy_qp(opened));
	CHECK(!make_target());
	opened = qp;
	return 0;
}

static int to_reset(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int to_init(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS);
}

static struct ibv_qp_attr rtr_attr(void)
{
	return (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = b.qp->qp_num,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 1, .port_num = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = b.gid, .sgid_index = a.gid_index,
				      .hop_limit = 16 } },
	};
}

#define TO_RTR (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

static int to_rtr(void)
{
	struct ibv_qp_attr attr = rtr_attr();

	return ibv_modify_qp(qp, &attr, TO_RTR);
}

static int to_rts(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				    .rnr_retry = 7, .max_rd_atomic = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int back_to_init(void)
{
	int ret = to_reset();

	return ret ? ret : to_init();
}

static int back_to_rtr(void)
{
	int ret = back_to_init();

	return ret ? ret : to_rtr();
}

static void reset_kept(void)
{
	CHECK(state_of(qp) == IBV_QPS_RESET);
}

static void init_kept(void)
{
	CHECK(state_of(qp) == IBV_QPS_INIT);
}

static void rtr_kept(void)
{
	CHECK(state_of(qp) == IBV_QPS_RTR);
}

/* ---- XRC ---- */

static int make_xrcd(int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd, .oflags = O_CREAT,
	};

	xrcd = ibv_open_xrcd(a.ctx, &attr);
	return made(xrcd);
}

static int make_shared(void)
{
	return make_xrcd(free_file);
}

static int make_again(void)
{
	return make_xrcd(domain_file);
}

static int make_private(void)
{
	return make_xrcd(-1);
}

static int undo_xrcd(void)
{
	return ibv_close_xrcd(xrcd);
}

#define TARGET_ATTRS (IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV | \
		      IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		      IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC)

static int make_rcv_qp(void)
{
	struct ibv_qp_attr attr = rtr_attr();

	return xroce_dv_create_xrc_rcv_qp(domain, &attr, TARGET_ATTRS, &target);
}

static int undo_rcv_qp(void)
{
	return xroce_dv_unreg_xrc_rcv_qp(domain, target);
}

static int modify_rcv_qp(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return xroce_dv_modify_xrc_rcv_qp(domain, target, &attr, IBV_QP_STATE);
}

static int query_rcv_qp(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return xroce_dv_query_xrc_rcv_qp(domain, target, &attr, IBV_QP_STATE, &init);
}

/* By another file of this process. */
static struct ibv_context *other;
static struct ibv_xrcd *other_domain;

static int register_rcv_qp(void)
{
	return xroce_dv_reg_xrc_rcv_qp(other_domain, target);
}

static int unregister_rcv_qp(void)
{
	return xroce_dv_unreg_xrc_rcv_qp(other_domain, target);
}

/* ---- addresses and traffic ---- */

static int make_ah(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = b.gid, .sgid_index = a.gid_index, .hop_limit = 8 },
	};

	ah = ibv_create_ah(a.pd, &attr);
	return made(ah);
}

static int undo_ah(void)
{
	return ibv_destroy_ah(ah);
}

static const union ibv_gid group = {
	.raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 17 },
};

static int attach(void)
{
	return ibv_attach_mcast(datagrams, &group, 0);
}

static int detach(void)
{
	return ibv_detach_mcast(datagrams, &group, 0);
}

/* A packet that could not be made is sent again; what a ring holds is not refused. */
static int send_rc(void)
{
	CHECK(!post_send(&a, 2, 3000));
	return 0;
}

static int received(void)
{
	struct ibv_wc wc;

	CHECK(next_wc(a.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(next_wc(b.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.byte_len == 3000);
	CHECK(!memcmp(a.buf, b.buf + PAIR_SIZE, 3000));
	memset(a.buf, a.buf[0] + 1, 3000);
	CHECK(!post_receive(&b, 1));
	return 0;
}

/* A datagram may be lost; its sender hears nothing of it. */
static int send_ud(void)
{
	struct ibv_sge sge = { (uintptr_t)a.buf, 64, a.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = 77, .remote_qkey = 1 },
	};
	struct ibv_wc wc;

	CHECK(!ibv_post_send(datagrams, &wr, &bad));
	CHECK(next_wc(a.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	return 0;
}

/* ---- the ground ---- */

static int make_rc_in_init(void)
{
	int ret = make_rc();

	return ret ? ret : to_init();
}

static int make_rc_in_rtr(void)
{
	int ret = make_rc_in_init();

	return ret ? ret : to_rtr();
}

static int make_half(void)
{
	half = 0;
	mr = ibv_reg_mr(a.pd, a.buf, PAIR_SIZE, IBV_ACCESS_REMOTE_READ);
	return made(mr);
}

static int open_other(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = domain_file, .oflags = O_CREAT,
	};

	other = ibv_open_device(first_device);
	CHECK(other);
	other_domain = ibv_open_xrcd(other, &attr);
	CHECK(other_domain);
	return make_rcv_qp();
}

static int close_other(void)
{
	CHECK(!undo_rcv_qp());
	CHECK(!ibv_close_xrcd(other_domain));
	return ibv_close_device(other) ? errno : 0;
}

static int expect_one(void)
{
	return post_receive(&b, 1);
}

/* A message for the receive that waits. */
static int last_one(void)
{
	struct ibv_wc wc;

	CHECK(!post_send(&a, 1, 8));
	CHECK(next_wc(a.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(next_wc(b.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	return 0;
}

void prepare(const struct devices *devices, const char *net_device)
{
	struct tag_queue_size size = { .tags = 16, .ops = 8, .receives = 16 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };

	on = *devices;
	netdev = net_device;
	make_end(&a, on.name[0], on.gid_index[0]);
	make_end(&b, on.name[1], on.gid_index[1]);
	connect_end(&a, &b);
	connect_end(&b, &a);
	first_device = a.ctx->device;
	domain_file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	free_file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	CHECK(domain_file >= 0 && free_file >= 0);
	CHECK(!make_again());
	domain = xrcd;
	events = ibv_create_comp_channel(a.ctx);
	CHECK(events && !make_srq());
	plain = srq;
	size_now = srq_size();
	tagged = tm_srq(&a, (struct ibv_cq_ex *)a.cq, size);
	CHECK(tagged && !make_target());
	opened = qp;
	CHECK(!make_ud());
	datagrams = qp;
	CHECK(!ibv_modify_qp(datagrams, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(datagrams, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(datagrams, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

#define VERB(text, make_it, undo_it, ...)					\
	{ .name = text, .make = make_it, .undo = undo_it, ##__VA_ARGS__ }

const struct verb verbs[] = {
	VERB("open_device by write", write_context, undo_file, .undo_apart = 1),
	VERB("open_device", make_context, undo_context, .where = OPENING),
	VERB("alloc_pd", make_pd, undo_pd),
	VERB("reg_mr", make_mr, undo_mr),
	VERB("reg_mr on demand", make_odp, undo_mr),
	VERB("rereg_mr", rereg, NULL, .before = make_half, .after = undo_mr, .kept = region_kept,
	     .copies_last = 1),
	VERB("alloc_dm", make_dm, undo_dm),
	VERB("reg_dm_mr", make_dm_mr, undo_mr, .before = make_dm, .after = undo_dm),
	VERB("alloc_mw type 1", make_mw1, undo_mw),
	VERB("alloc_mw type 2", make_mw2, undo_mw),
	VERB("create_comp_channel", make_channel, undo_channel, .undo_apart = 1),
	VERB("create_cq", make_cq, undo_cq),
	VERB("resize_cq", resize, NULL, .before = make_cq_to_resize, .after = undo_cq,
	     .kept = cq_kept, .copies_last = 1),
	VERB("create_srq", make_srq, undo_srq),
	VERB("create_srq XRC", make_xrc_srq, undo_srq),
	VERB("create_srq TM", make_tagged_srq, undo_srq),
	VERB("modify_srq", modify_srq, NULL, .kept = srq_kept),
	VERB("open_xrcd", make_shared, undo_xrcd),
	VERB("open_xrcd again", make_again, undo_xrcd),
	VERB("open_xrcd private", make_private, undo_xrcd),
	VERB("create_qp RC", make_rc, undo_qp),
	VERB("create_qp RC for tags", make_tagged_rc, undo_qp),
	VERB("create_qp UC", make_uc, undo_qp),
	VERB("create_qp UD", make_ud, undo_qp),
	VERB("create_qp XRC_SEND", make_xrc_send, undo_qp),
	VERB("create_qp XRC_RECV", make_target, undo_qp, .where = IN_DRIVER),
	VERB("open_qp", open_target, undo_opened, .where = IN_DRIVER, .undo_apart = 1),
	VERB("modify_qp to INIT", to_init, to_reset, .before = make_rc, .after = undo_qp,
	     .kept = reset_kept),
	VERB("modify_qp to RTR", to_rtr, back_to_init, .before = make_rc_in_init,
	     .after = undo_qp, .kept = init_kept, .undo_apart = 1),
	VERB("modify_qp to RTS", to_rts, back_to_rtr, .before = make_rc_in_rtr,
	     .after = undo_qp, .kept = rtr_kept, .undo_apart = 1),
	VERB("create_xrc_rcv_qp", make_rcv_qp, undo_rcv_qp),
	VERB("modify_xrc_rcv_qp", modify_rcv_qp, NULL, .before = make_rcv_qp,
	     .after = undo_rcv_qp),
	VERB("query_xrc_rcv_qp", query_rcv_qp, NULL, .before = make_rcv_qp,
	     .after = undo_rcv_qp),
	VERB("reg_xrc_rcv_qp", register_rcv_qp, unregister_rcv_qp, .before = open_other,
	     .after = close_other),
	VERB("create_ah", make_ah, undo_ah),
	VERB("attach_mcast", attach, detach),
	VERB("post_send RC", send_rc, received, .before = expect_one, .after = last_one,
	     .undo_apart = 1, .copies_last = 1, .never_fails = 1),
	VERB("post_send UD", send_ud, NULL, .before = make_ah, .after = undo_ah, .copies_last = 1,
	     .never_fails = 1),
	VERB("link add", make_link_twice, NULL, .where = LINKS),
	VERB("link add in ib_core", make_link, undo_link, .where = CORE_LINKS, .undo_apart = 1,
	     .step = 1300, .most = 6000),
};

const size_t verb_count = sizeof(verbs) / sizeof(verbs[0]);
