// SPDX-License-Identifier: GPL-2.0
/*
 * XRC receive QPs by number: what is refused, with and without the library.
 *
 *   rcvqp_refused                                       lists the cases
 *   rcvqp_refused CASE SERVER-DEVICE GID-INDEX CLIENT-DEVICE GID-INDEX
 */
#define _GNU_SOURCE
#include "rawioctl.h"
#include "rcvqp.h"

/* What a create call may not say. */
static void masks(struct domains *self)
{
	struct ibv_context *ctx = open_device(self->on.name[SERVER]);
	struct ibv_xrcd *xrcd = open_domain(ctx, self->domain_file);
	struct ibv_qp_attr bad, good;
	uint32_t qpn = 77;
	struct client c;
	int bit;

	make_client(&self->on, &c);
	good = connected_to(c.qp->qp_num, &c.server, self->on.gid_index[SERVER]);
	good.qp_state = IBV_QPS_RTR;
	for (bit = 0; bit < 32; bit++) {
		int mask = NEEDED ^ (1u << bit);

		if (mask == USUAL)
			continue;
		CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, &good, mask, &qpn) == EINVAL);
	}
	CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, &good, -1, &qpn) == EINVAL);
#define REFUSED(member, value)								\
	do {										\
		bad = good;								\
		bad.member = value;							\
		CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, &bad, USUAL, &qpn) == EINVAL);	\
	} while (0)
	REFUSED(port_num, 0);
	REFUSED(port_num, 2);
	REFUSED(pkey_index, 1);
	REFUSED(path_mtu, 0);
	REFUSED(path_mtu, 6);
	REFUSED(path_mtu, -1);
	REFUSED(dest_qp_num, 1 << 24);
	REFUSED(min_rnr_timer, 32);
	REFUSED(max_dest_rd_atomic, 255);
	REFUSED(qp_access_flags, 1u << 31);
	REFUSED(ah_attr.port_num, 0);
	REFUSED(ah_attr.port_num, 2);
	REFUSED(ah_attr.is_global, 0);
	/* ib_core's word for an entry of the GID table without an address. */
	bad = good;
	bad.ah_attr.grh.sgid_index = 255;
	CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, &bad, USUAL, &qpn) == ENODATA);
	CHECK(xroce_dv_create_xrc_rcv_qp(NULL, &good, USUAL, &qpn) == EINVAL);
	CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, NULL, USUAL, &qpn) == EINVAL);
	CHECK(xroce_dv_create_xrc_rcv_qp(xrcd, &good, USUAL, NULL) == EINVAL);
	for (bit = 1; bit < 32; bit++)
		CHECK(xroce_dv_create_xrc_rcv_qp_ex(xrcd, &good, USUAL, 1u << bit, &qpn) == EINVAL);
	CHECK(qpn == 77);
	CHECK(targets() == 0);
	CHECK(!xroce_dv_create_xrc_rcv_qp(xrcd, &good, NEEDED, &qpn));
	/* Nor a modify call. */
	good.qp_state = IBV_QPS_ERR;
	CHECK(xroce_dv_modify_xrc_rcv_qp(xrcd, qpn, &good, IBV_QP_STATE | IBV_QP_CAP) == EINVAL);
	CHECK(xroce_dv_modify_xrc_rcv_qp(xrcd, qpn, &good, IBV_QP_STATE | IBV_QP_QKEY) == EINVAL);
	CHECK(xroce_dv_modify_xrc_rcv_qp(xrcd, qpn, &good, IBV_QP_STATE | 1 << 21) == EINVAL);
	good.qp_state = 7;
	CHECK(xroce_dv_modify_xrc_rcv_qp(xrcd, qpn, &good, IBV_QP_STATE) == EINVAL);
	CHECK(!xroce_dv_unreg_xrc_rcv_qp(xrcd, qpn));
	CHECK(!ibv_close_xrcd(xrcd));
	CHECK(targets() == 0);
}

/* Numbers that are none of the domain's. */
static void wrong_numbers(struct domains *self)
{
	struct child stranger = start_other(self), maker = start(self);
	struct client c;
	uint32_t qpn;
	int i;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &maker, create, c.qp->qp_num);
	for (i = 0; i < 5; i++) {
		uint32_t wrong[] = { qpn, 0, 1, c.qp->qp_num, 0xffffffff };
		struct child *who = i ? &maker : &stranger;

		CHECK(tell(&self->on, who, reg, wrong[i]) == EINVAL);
		CHECK(tell(&self->on, who, unreg, wrong[i]) == EINVAL);
		CHECK(tell(&self->on, who, to_error, wrong[i]) == EINVAL);
		CHECK(tell(&self->on, who, state, wrong[i]) == 100 + EINVAL);
	}
	CHECK(tell(&self->on, &maker, state, qpn) == IBV_QPS_RTR);
	end_child(&stranger);
	end_child(&maker);
	CHECK(targets() == 0);
}

/* ---- past the library ---- */

/* Handles, sizes and addresses that the library would not pass. */
static void raw_calls(struct domains *self)
{
	struct ibv_context *ctx = open_device(self->on.name[SERVER]);
	struct ibv_xrcd *xrcd = open_domain(ctx, self->domain_file);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	/* struct verbs_xrcd: the kernel's handle follows the mask. */
	uint32_t domain = ((uint32_t *)(xrcd + 1))[1];
	struct xroce_rcv_qp_attr attr = {
		.attr_mask = USUAL, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.dest = { .is_global = 1, .port_num = 1, .sgid_index = self->on.gid_index[SERVER] },
	};
	struct {
		struct xroce_rcv_qp_attr attr;
		uint64_t later;
	} longer = { .later = 1 };
	uint32_t qpn = 0, qpn2 = 0, handle, i;
	struct client c;
	struct raw r;

	make_client(&self->on, &c);
	attr.dest_qp_num = c.qp->qp_num;
	memcpy(attr.dest.dgid, &c.server, 16);
	longer.attr = attr;
#define BEGIN(method) raw_begin(&r, XROCE_METHOD_RCV_QP_##method)
#define ATTR(id, len, data) raw_attr(&r, XROCE_ATTR_RCV_QP_##id, len, (uintptr_t)(data))
#define CREATE(xrcd, qpn, len, attr)							\
	(BEGIN(CREATE), ATTR(XRCD, 0, xrcd), ATTR(HANDLE, 0, 0), ATTR(QPN, 4, qpn),	\
	 ATTR(ATTR, len, attr), raw_call(ctx, &r))
	/* A target that nobody learns of is gone. */
	CHECK(CREATE(domain, 8, sizeof(attr), &attr) == EFAULT);
	CHECK(CREATE(domain, &qpn, sizeof(attr), 8) == EFAULT);
	CHECK(CREATE(domain, &qpn, sizeof(attr) - 4, &attr) == EINVAL);
	/* Members that this kernel does not know, in use. */
	CHECK(CREATE(domain, &qpn, sizeof(longer), &longer) == EOPNOTSUPP);
	CHECK(CREATE(0xffffff, &qpn, sizeof(attr), &attr) == ENOENT);
	CHECK(CREATE(pd->handle, &qpn, sizeof(attr), &attr) == EINVAL);
	attr.dest.reserved = 1;
	CHECK(CREATE(domain, &qpn, sizeof(attr), &attr) == EINVAL);
	attr.dest.reserved = 0;
	attr.reserved[1] = 1;
	CHECK(CREATE(domain, &qpn, sizeof(attr), &attr) == EINVAL);
	attr.reserved[1] = 0;
	BEGIN(CREATE), ATTR(XRCD, 0, domain), ATTR(QPN, 4, &qpn), ATTR(ATTR, sizeof(attr), &attr);
	CHECK(raw_call(ctx, &r) == EINVAL);
	CHECK(targets() == 0 && qpn == 0);
	/* Not in use, they do no harm. */
	longer.attr = attr;
	longer.later = 0;
	CHECK(CREATE(domain, &qpn, sizeof(longer), &longer) == 0);
	handle = r.attrs[1].data;
	BEGIN(UNREG), ATTR(HANDLE, 0, handle);
	CHECK(raw_call(ctx, &r) == 0 && targets() == 0);

	CHECK(CREATE(domain, &qpn, sizeof(attr), &attr) == 0);
	handle = r.attrs[1].data;
	CHECK(targets() == 1);
	BEGIN(REG), ATTR(XRCD, 0, domain), ATTR(HANDLE, 0, 0), ATTR(QPN, 4, qpn);
	CHECK(raw_call(ctx, &r) == EEXIST);
	BEGIN(QUERY), ATTR(XRCD, 0, domain), ATTR(QPN, 4, qpn), ATTR(HANDLE, 4, &i);
	CHECK(raw_call(ctx, &r) == 0 && i == handle);
	BEGIN(QUERY), ATTR(XRCD, 0, domain), ATTR(QPN, 4, qpn);
	CHECK(raw_call(ctx, &r) == 0);
	BEGIN(QUERY), ATTR(XRCD, 0, domain), ATTR(QPN, 4, qpn), ATTR(ATTR, sizeof(attr), 8);
	CHECK(raw_call(ctx, &r) == EFAULT);
	BEGIN(MODIFY), ATTR(XRCD, 0, domain), ATTR(QPN, 4, qpn), ATTR(ATTR, sizeof(attr), 8);
	CHECK(raw_call(ctx, &r) == EFAULT);
	BEGIN(UNREG), ATTR(HANDLE, 0, domain);
	CHECK(raw_call(ctx, &r) == EINVAL);
	/* A second one beside it, and the handles do not mix. */
	CHECK(CREATE(domain, &qpn2, sizeof(attr), &attr) == 0);
	CHECK(qpn2 != qpn && r.attrs[1].data != handle && targets() == 2);
	BEGIN(UNREG), ATTR(HANDLE, 0, handle);
	CHECK(raw_call(ctx, &r) == 0);
	CHECK(raw_call(ctx, &r) == ENOENT);
	CHECK(targets() == 1 && shown(qpn2, 0, 1) == 1);
	/* The rest goes with the file. */
	CHECK(ibv_close_xrcd(xrcd) == EBUSY);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	CHECK(targets() == 0);
}

static const CASES(struct domains) cases[] = {
	{ "masks", masks },
	{ "wrong_numbers", wrong_numbers },
	{ "raw_calls", raw_calls },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct domains self;

	return RUN_CASES_AROUND(&self, cases, make_files, remove_files, argc, argv);
}
