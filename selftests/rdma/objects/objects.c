// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug xroce on=both
/*
 * Objects that pyverbs hides or does not have: shared receive queues that are resized,
 * parent and thread domains, imported contexts, multicast groups.
 *
 *   objects                                     lists the cases
 *   objects CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>

#include "datagrams.h"
#include "devices.h"

struct node {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t *buf;
};

static void open_node(const struct devices *on, struct node *n, int which)
{
	n->ctx = open_device(on->name[which]);
	CHECK(!ibv_query_gid(n->ctx, 1, on->gid_index[which], &n->gid));
	n->pd = ibv_alloc_pd(n->ctx);
	n->cq = ibv_create_cq(n->ctx, 4096, NULL, NULL, 0);
	n->buf = aligned_alloc(4096, 65536);
	CHECK(n->pd && n->cq && n->buf);
	memset(n->buf, 0, 65536);
	n->mr = ibv_reg_mr(n->pd, n->buf, 65536, IBV_ACCESS_LOCAL_WRITE);
	CHECK(n->mr);
}

static void close_node(struct node *n)
{
	CHECK(!ibv_dereg_mr(n->mr) && !ibv_destroy_cq(n->cq) && !ibv_dealloc_pd(n->pd));
	CHECK(!ibv_close_device(n->ctx));
	free(n->buf);
}

static int srq_post(struct node *n, struct ibv_srq *srq, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)n->buf, 64, n->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static int srq_set(struct ibv_srq *srq, uint32_t max_wr, uint32_t limit, int mask)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr, .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, mask);
}

static uint32_t srq_size(struct ibv_srq *srq)
{
	struct ibv_srq_attr attr;

	CHECK(!ibv_query_srq(srq, &attr));
	return attr.max_wr;
}

/* COUNT sends from A to B, whose receives must come in the order of their ids. */
static void drain_srq(struct end *a, struct end *b, uint64_t *next, unsigned int count)
{
	struct ibv_wc wc;

	while (count--) {
		CHECK(!post_send(a, 1, 32));
		CHECK(next_wc(a->cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
		CHECK(next_wc(b->cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
		CHECK(wc.wr_id == (*next)++);
	}
}

static void srq_resized(const struct devices *on)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	uint64_t posted = 0, next = 0;
	struct ibv_device_attr caps;
	struct ibv_srq *srq;
	struct end a, b;
	struct node n;

	make_end(&a, on->name[0], on->gid_index[0]);
	make_end(&b, on->name[1], on->gid_index[1]);
	CHECK(!ibv_query_device(b.ctx, &caps));
	CHECK(caps.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	srq = ibv_create_srq(b.pd, &srq_init);
	CHECK(srq);
	CHECK(!ibv_destroy_qp(b.qp));
	init.send_cq = init.recv_cq = b.cq;
	init.srq = srq;
	b.qp = ibv_create_qp(b.pd, &init);
	CHECK(b.qp);
	connect_end(&a, &b);
	connect_end(&b, &a);
	n = (struct node) { .mr = b.mr, .buf = b.buf };

	while (!srq_post(&n, srq, posted))
		posted++;
	CHECK(posted >= 16 && srq_post(&n, srq, posted) == ENOMEM);
	drain_srq(&a, &b, &next, 5);
	/* Larger, with receives in it: they stay, in their order. */
	CHECK(!srq_set(srq, 100, 0, IBV_SRQ_MAX_WR));
	CHECK(srq_size(srq) >= 100);
	drain_srq(&a, &b, &next, 3);
	while (posted - next < 100) {
		CHECK(!srq_post(&n, srq, posted));
		posted++;
	}
	/* Not smaller than what is in it, nor out of range. */
	CHECK(srq_set(srq, 32, 0, IBV_SRQ_MAX_WR) == EINVAL);
	CHECK(srq_set(srq, 0, 0, IBV_SRQ_MAX_WR) == EINVAL);
	CHECK(srq_set(srq, caps.max_srq_wr + 1, 0, IBV_SRQ_MAX_WR) == EINVAL);
	CHECK(srq_set(srq, 100, 0, 1 << 5) == EINVAL);
	CHECK(srq_size(srq) >= 100);
	drain_srq(&a, &b, &next, 95);
	CHECK(!srq_set(srq, 8, 0, IBV_SRQ_MAX_WR) && srq_size(srq) == 8);
	CHECK(srq_set(srq, 0, 9, IBV_SRQ_LIMIT) == EINVAL);
	while (!srq_post(&n, srq, posted))
		posted++;
	CHECK(posted - next == 8);
	drain_srq(&a, &b, &next, 8);
	/* Both at once, or neither. */
	CHECK(srq_set(srq, 64, 65, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == EINVAL);
	CHECK(srq_size(srq) == 8 && !srq_post(&n, srq, posted));
	posted++;
	drain_srq(&a, &b, &next, 1);
	CHECK(!srq_set(srq, 64, 40, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
	/* Nothing is posted, so the limit was reached at once, and holds nothing. */
	CHECK(srq_size(srq) == 64);
	CHECK(!srq_set(srq, 32, 0, IBV_SRQ_MAX_WR) && srq_size(srq) == 32);
	CHECK(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp) && !ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(a.cq) && !ibv_destroy_cq(b.cq));
	CHECK(!ibv_dereg_mr(a.mr) && !ibv_dereg_mr(b.mr));
	CHECK(!ibv_dealloc_pd(a.pd) && !ibv_dealloc_pd(b.pd));
	CHECK(!ibv_close_device(a.ctx) && !ibv_close_device(b.ctx));
	free(a.buf);
	free(b.buf);
}

static void parent_domains(const struct devices *on)
{
	struct ibv_parent_domain_init_attr attr = { };
	struct ibv_td_init_attr td_attr = { };
	struct ibv_pd *pd, *parent;
	struct ibv_context *ctx;
	struct ibv_td *td;
	struct ibv_mr *mr;
	uint64_t memory[8];

	ctx = open_device(on->name[0]);
	pd = ibv_alloc_pd(ctx);
	td = ibv_alloc_td(ctx, &td_attr);
	CHECK(pd && td);
	attr.pd = pd;
	attr.td = td;
	parent = ibv_alloc_parent_domain(ctx, &attr);
	CHECK(parent);
	mr = ibv_reg_mr(parent, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK(ibv_dealloc_pd(pd) == EBUSY && ibv_dealloc_td(td) == EBUSY);
	CHECK(!ibv_dealloc_pd(parent));
	CHECK(!ibv_dealloc_td(td));
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
	attr.pd = NULL;
	attr.td = NULL;
	CHECK(!ibv_alloc_parent_domain(ctx, &attr) && errno == EINVAL);
	attr.comp_mask = 1 << 9;
	CHECK(!ibv_alloc_parent_domain(ctx, &attr) && errno == EOPNOTSUPP);
	td_attr.comp_mask = 1;
	CHECK(!ibv_alloc_td(ctx, &td_attr) && errno == EINVAL);
	CHECK(!ibv_close_device(ctx));
}

static void imported(const struct devices *on)
{
	struct ibv_context *ctx, *again;
	struct ibv_pd *pd, *pd2;
	struct ibv_mr *mr, *mr2, *mine;
	uint64_t memory[8];

	ctx = open_device(on->name[0]);
	pd = ibv_alloc_pd(ctx);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	CHECK(pd && mr);
	again = ibv_import_device(dup(ctx->cmd_fd));
	CHECK(again && again->num_comp_vectors == ctx->num_comp_vectors);
	pd2 = ibv_import_pd(again, pd->handle);
	CHECK(pd2);
	mr2 = ibv_import_mr(pd2, mr->handle);
	CHECK(mr2 && mr2->lkey == mr->lkey && mr2->rkey == mr->rkey);
	CHECK(!ibv_import_mr(pd2, mr->handle + 1000));
	mine = ibv_reg_mr(pd2, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mine);
	CHECK(!ibv_dereg_mr(mine));
	ibv_unimport_mr(mr2);
	ibv_unimport_pd(pd2);
	CHECK(!ibv_close_device(again));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	CHECK(!ibv_import_device(0));
}

static void expect_datagram(struct node *n, struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)n->buf, 256, n->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = qp->qp_num, .sg_list = &sge, .num_sge = 1 }, *bad;

	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

/* One datagram to QPN at the handle's address. */
static void send_datagram(struct node *n, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn,
			  uint8_t what)
{
	struct ibv_sge sge = { (uintptr_t)n->buf + 4096, 16, n->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY },
	}, *bad;
	struct ibv_wc wc;

	memset(n->buf + 4096, what, 16);
	CHECK(!ibv_post_send(qp, &wr, &bad));
	CHECK(next_wc(n->cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS &&
	      wc.opcode == IBV_WC_SEND);
}

static void group_of(struct node *n, union ibv_gid *group, uint8_t last)
{
	memset(group, 0, sizeof(*group));
	if (((uint32_t *)n->gid.raw)[2] == htonl(0xffff)) {
		group->raw[10] = group->raw[11] = 0xff;
		group->raw[12] = 239;
	} else {
		group->raw[0] = 0xff;
		group->raw[1] = 0x0e;
	}
	group->raw[15] = last;
}

static struct ibv_ah *handle(const struct devices *on, struct node *n, int which,
			     const union ibv_gid *to)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *to, .sgid_index = on->gid_index[which], .hop_limit = 8 },
	};
	struct ibv_ah *ah = ibv_create_ah(n->pd, &attr);

	CHECK(ah);
	return ah;
}

static void multicast(const struct devices *on)
{
	struct ibv_qp *sender, *member[3], *outsider, *rc;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	union ibv_gid group, other, none;
	struct node a = { }, b = { };
	struct ibv_ah *ah, *ah2, *direct;
	struct ibv_wc wc;
	int i, seen;

	open_node(on, &a, 0);
	open_node(on, &b, 1);
	sender = datagram_qp(a.pd, a.cq);
	outsider = datagram_qp(b.pd, b.cq);
	for (i = 0; i < 3; i++)
		member[i] = datagram_qp(b.pd, b.cq);
	group_of(&a, &group, 17);
	group_of(&a, &other, 18);
	for (i = 0; i < 3; i++) {
		CHECK(!ibv_attach_mcast(member[i], &group, 0));
		expect_datagram(&b, member[i]);
		expect_datagram(&b, member[i]);
	}
	CHECK(!ibv_attach_mcast(outsider, &other, 0));
	expect_datagram(&b, outsider);
	/* Twice is once; with another LID it wants a detach more, and no packet. */
	CHECK(!ibv_attach_mcast(member[0], &group, 0));
	CHECK(!ibv_attach_mcast(member[0], &group, 1));
	CHECK(!ibv_attach_mcast(member[1], &group, 1));
	ah = handle(on, &a, 0, &group);
	ah2 = handle(on, &a, 0, &other);
	direct = handle(on, &a, 0, &b.gid);
	send_datagram(&a, sender, ah, 0xffffff, 0x51);
	for (i = seen = 0; i < 3; i++) {
		CHECK(next_wc(b.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
		CHECK(wc.byte_len == 16 + GRH && wc.wc_flags & IBV_WC_GRH &&
		      wc.src_qp == sender->qp_num && b.buf[GRH] == 0x51);
		seen |= wc.wr_id == member[0]->qp_num ? 1 :
			wc.wr_id == member[1]->qp_num ? 2 :
			wc.wr_id == member[2]->qp_num ? 4 : 8;
	}
	CHECK(seen == 7);
	/* A number with a group's address, and the group's number with an address. */
	send_datagram(&a, sender, ah, member[0]->qp_num, 0x52);
	send_datagram(&a, sender, direct, 0xffffff, 0x52);
	/* It is a member until the last detach. */
	CHECK(!ibv_detach_mcast(member[0], &group, 0));
	CHECK(ibv_detach_mcast(member[0], &group, 0) == EINVAL);
	send_datagram(&a, sender, ah, 0xffffff, 0x55);
	for (i = seen = 0; i < 3; i++) {
		CHECK(next_wc(b.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
		seen |= wc.wr_id == member[0]->qp_num ? 1 :
			wc.wr_id == member[1]->qp_num ? 2 :
			wc.wr_id == member[2]->qp_num ? 4 : 8;
	}
	CHECK(seen == 7);
	for (i = 0; i < 3; i++)
		expect_datagram(&b, member[i]);
	/* One leaves; what comes to the other group says that nothing came before it. */
	CHECK(!ibv_detach_mcast(member[0], &group, 1));
	CHECK(ibv_detach_mcast(member[0], &group, 1) == EINVAL);
	send_datagram(&a, sender, ah, 0xffffff, 0x53);
	send_datagram(&a, sender, ah2, 0xffffff, 0x54);
	for (i = seen = 0; i < 3; i++) {
		CHECK(next_wc(b.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
		seen |= wc.wr_id == member[1]->qp_num ? 1 :
			wc.wr_id == member[2]->qp_num ? 2 :
			wc.wr_id == outsider->qp_num ? 4 : 8;
	}
	CHECK(seen == 7 && !ibv_poll_cq(b.cq, 1, &wc));
	/* No group, no datagrams, not a member. */
	memset(&none, 0, sizeof(none));
	CHECK(ibv_attach_mcast(sender, &none, 0) == EINVAL);
	CHECK(ibv_attach_mcast(sender, &b.gid, 0) == EINVAL);
	init.send_cq = init.recv_cq = a.cq;
	rc = ibv_create_qp(a.pd, &init);
	CHECK(rc && ibv_attach_mcast(rc, &group, 0) == EINVAL);
	CHECK(ibv_detach_mcast(outsider, &group, 0) == EINVAL);
	CHECK(!ibv_destroy_qp(rc) && !ibv_destroy_ah(ah) && !ibv_destroy_ah(ah2) &&
	      !ibv_destroy_ah(direct));
	/* A member stays until it leaves, or the process ends, as here: one is it twice. */
	CHECK(ibv_destroy_qp(outsider) == EBUSY);
	CHECK(!ibv_detach_mcast(outsider, &other, 0) && !ibv_destroy_qp(outsider));
	CHECK(!ibv_destroy_qp(sender) && !ibv_destroy_qp(member[0]));
	close_node(&a);
}

static const CASES(const struct devices) cases[] = {
	{ "srq_resized", srq_resized },
	{ "parent_domains", parent_domains },
	{ "imported", imported },
	{ "multicast", multicast },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct devices on;

	return RUN_CASES(&on, cases, argc, argv);
}
