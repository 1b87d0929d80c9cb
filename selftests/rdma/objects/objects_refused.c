// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug=long xroce
/*
 * Attributes of queues, windows, paths and groups that are refused, queries of objects
 * that do not exist, and verbs that the device does not have. Errors that modify.c,
 * memory.c, objects.c, extended.c and refused.c cause are not repeated. See devices.h
 * for the arguments.
 */
#include <arpa/inet.h>

#include "made.h"

#define LOCAL IBV_ACCESS_LOCAL_WRITE

static struct ibv_device_attr caps;

static struct ibv_qp_init_attr_ex pair_attr(struct owned *self)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RC, .send_cq = self->ours.cq, .recv_cq = self->ours.cq,
		.pd = self->ours.pd,
		.cap = { 4, 4, 1, 1, 0 }, .comp_mask = IBV_QP_INIT_ATTR_PD,
	};
}

/* A queue pair with MEMBER set to VALUE, by both calls if the older one has it. */
#define NO_PAIR(err, member, value)						\
	do {									\
		struct ibv_qp_init_attr_ex x = pair_attr(self);			\
		struct ibv_qp_init_attr o;					\
		x.member = value;						\
		REFUSED(err, ibv_create_qp_ex(self->ours.ctx, &x));		\
		x = pair_attr(self);						\
		x.member = value;						\
		memcpy(&o, &x, sizeof(o));					\
		REFUSED(err, ibv_create_qp(self->ours.pd, &o));			\
	} while (0)

static void pairs(struct owned *self)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct ibv_qp_init_attr_ex ex;
	struct ibv_qp_open_attr view;
	int bit;

	begin_owned(self);
	CHECK(!ibv_query_device(self->ours.ctx, &caps));
	NO_PAIR(EINVAL, cap.max_send_wr, caps.max_qp_wr + 1);
	NO_PAIR(EINVAL, cap.max_recv_wr, caps.max_qp_wr + 1);
	NO_PAIR(EINVAL, cap.max_send_sge, caps.max_sge + 1);
	NO_PAIR(EINVAL, cap.max_recv_sge, caps.max_sge + 1);
	NO_PAIR(EINVAL, cap.max_send_wr, UINT32_MAX);
	NO_PAIR(EINVAL, cap.max_inline_data, 513);
	NO_PAIR(EINVAL, send_cq, NULL);
	NO_PAIR(EINVAL, recv_cq, NULL);
	NO_PAIR(ENOENT, send_cq, self->theirs.cq);
	NO_PAIR(ENOENT, recv_cq, self->theirs.cq);
	NO_PAIR(ENOENT, srq, self->theirs.srq);
	NO_PAIR(EOPNOTSUPP, qp_type, IBV_QPT_RAW_PACKET);
	NO_PAIR(EOPNOTSUPP, qp_type, IBV_QPT_DRIVER);
	NO_PAIR(EOPNOTSUPP, qp_type, 0);
	NO_PAIR(EOPNOTSUPP, qp_type, -1);
	for (bit = 0; bit < 32; bit++) {
		ex = pair_attr(self);
		ex.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		ex.create_flags = 1u << bit;
		REFUSED(EOPNOTSUPP, ibv_create_qp_ex(self->ours.ctx, &ex));
		if (known & 1u << bit)
			continue;
		ex = pair_attr(self);
		ex.comp_mask |= 1u << bit;
		REFUSED(EOPNOTSUPP, ibv_create_qp_ex(self->ours.ctx, &ex));
	}
	ex = pair_attr(self);
	ex.comp_mask = 0;
	REFUSED(EINVAL, ibv_create_qp_ex(self->ours.ctx, &ex));
	ex = pair_attr(self);
	/* The kernel has ENOENT for it (handles.c); EINVAL comes before that. */
	ex.pd = self->theirs.pd;
	REFUSED(EINVAL, ibv_create_qp_ex(self->ours.ctx, &ex));
	ex.qp_type = IBV_QPT_XRC_RECV;
	ex.xrcd = self->theirs.xrcd;
	REFUSED(EINVAL, ibv_create_qp_ex(self->ours.ctx, &ex));
	ex.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	REFUSED(ENOENT, ibv_create_qp_ex(self->ours.ctx, &ex));

	for (bit = 0; bit < 32; bit++) {
		view = (struct ibv_qp_open_attr){
			.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
			.qp_num = self->ours.qp->qp_num, .xrcd = self->ours.xrcd,
			.qp_type = IBV_QPT_XRC_RECV,
		};
		/* One too many, or one missing; else no target has the number. */
		view.comp_mask ^= 1u << bit;
		REFUSED(bit < 4 ? EINVAL : EOPNOTSUPP, ibv_open_qp(self->ours.ctx, &view));
	}
	view.comp_mask ^= 1u << 31;
	view.qp_type = IBV_QPT_RC;
	REFUSED(EINVAL, ibv_open_qp(self->ours.ctx, &view));
	end_owned(self);
}

static struct ibv_srq_init_attr_ex queue_attr(struct owned *self, enum ibv_srq_type type)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = 4, .max_sge = 1 }, .srq_type = type,
		.pd = self->ours.pd, .cq = self->ours.cq, .xrcd = self->ours.xrcd,
		.tm_cap = { .max_num_tags = 4, .max_ops = 4 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_TM,
	};
}

#define NO_QUEUE(err, type, member, value)					\
	do {									\
		struct ibv_srq_init_attr_ex x = queue_attr(self, type);		\
		x.member = value;						\
		REFUSED(err, ibv_create_srq_ex(self->ours.ctx, &x));		\
	} while (0)

static void shared_queues(struct owned *self)
{
	static const enum ibv_srq_type types[] = { IBV_SRQT_BASIC, IBV_SRQT_XRC, IBV_SRQT_TM };
	static const uint32_t needs[] = {
		IBV_SRQ_INIT_ATTR_PD,
		IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
	};
	struct ibv_srq_init_attr plain = {};
	struct ibv_srq_init_attr_ex ex;
	uint32_t number;
	int i, bit;

	begin_owned(self);
	CHECK(!ibv_query_device(self->ours.ctx, &caps));
	for (i = 0; i < 3; i++) {
		NO_QUEUE(EINVAL, types[i], attr.max_wr, 0);
		NO_QUEUE(EINVAL, types[i], attr.max_wr, caps.max_srq_wr + 1);
		NO_QUEUE(EINVAL, types[i], attr.max_wr, UINT32_MAX);
		NO_QUEUE(EINVAL, types[i], attr.max_sge, caps.max_srq_sge + 1);
		NO_QUEUE(EINVAL, types[i], pd, NULL);
		/* The kernel has ENOENT for it (handles.c); EINVAL comes before that. */
		NO_QUEUE(EINVAL, types[i], pd, self->theirs.pd);
		for (bit = 0; bit < 32; bit++) {
			ex = queue_attr(self, types[i]);
			ex.comp_mask ^= 1u << bit;
			if (1u << bit >= IBV_SRQ_INIT_ATTR_RESERVED)
				REFUSED(EOPNOTSUPP, ibv_create_srq_ex(self->ours.ctx, &ex));
			else if (needs[i] & 1u << bit)
				REFUSED(EINVAL, ibv_create_srq_ex(self->ours.ctx, &ex));
		}
	}
	NO_QUEUE(EOPNOTSUPP, 3, pd, self->ours.pd);
	NO_QUEUE(EOPNOTSUPP, -1, pd, self->ours.pd);
	NO_QUEUE(EINVAL, IBV_SRQT_XRC, cq, NULL);
	NO_QUEUE(ENOENT, IBV_SRQT_XRC, cq, self->theirs.cq);
	NO_QUEUE(EINVAL, IBV_SRQT_XRC, xrcd, NULL);
	NO_QUEUE(ENOENT, IBV_SRQT_XRC, xrcd, self->theirs.xrcd);
	NO_QUEUE(ENOENT, IBV_SRQT_TM, cq, self->theirs.cq);
	REFUSED(EINVAL, ibv_create_srq(self->ours.pd, &plain));
	/* Only XRC's have a number for others. */
	RETURNS(EINVAL, ibv_get_srq_num(self->ours.srq, &number));
	/* One of XRC is no receive queue of a pair. */
	ex = queue_attr(self, IBV_SRQT_XRC);
	ex.comp_mask &= ~IBV_SRQ_INIT_ATTR_TM;
	struct ibv_srq *xrc = ibv_create_srq_ex(self->ours.ctx, &ex);
	CHECK(xrc);
	NO_PAIR(EINVAL, srq, xrc);
	RETURNS(EBUSY, ibv_close_xrcd(self->ours.xrcd));
	RETURNS(0, ibv_destroy_srq(xrc));
	end_owned(self);
}

/* A pair of OURS, in INIT. */
static struct ibv_qp *ready(struct owned *self, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex ex = pair_attr(self);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	int last = type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	struct ibv_qp *qp;

	ex.qp_type = type;
	CHECK((qp = ibv_create_qp_ex(self->ours.ctx, &ex)));
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last));
	return qp;
}

static void windows(struct owned *self)
{
	struct ibv_mw_bind bind = {
		.bind_info = { self->ours.mr, (uintptr_t)self->ours.buf, 64, 0 },
	};
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_BIND_MW, .num_sge = 0 };
	struct ibv_qp *rc, *ud;
	struct ibv_mw *two;
	uint32_t rkey;

	begin_owned(self);
	bind.bind_info.mr = self->ours.mr;
	rc = ready(self, IBV_QPT_RC);
	ud = ready(self, IBV_QPT_UD);
	CHECK((two = ibv_alloc_mw(self->ours.pd, IBV_MW_TYPE_2)));
	REFUSED(EINVAL, ibv_alloc_mw(self->ours.pd, (enum ibv_mw_type)0));
	REFUSED(EINVAL, ibv_alloc_mw(self->ours.pd, (enum ibv_mw_type)255));
	rkey = self->ours.mw->rkey;
	/* Of type 2 by the call for type 1, without region, of another domain. */
	RETURNS(EINVAL, ibv_bind_mw(rc, two, &bind));
	bind.bind_info.mr = NULL;
	RETURNS(EINVAL, ibv_bind_mw(rc, self->ours.mw, &bind));
	bind.bind_info.mr = self->theirs.mr;
	RETURNS(EPERM, ibv_bind_mw(rc, self->ours.mw, &bind));
	bind.bind_info.mr = self->ours.mr;
	bind.bind_info.mw_access_flags = IBV_ACCESS_ZERO_BASED;
	RETURNS(EINVAL, ibv_bind_mw(rc, self->ours.mw, &bind));
	bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	/* Not before RTS, and never with datagrams. */
	RETURNS(EINVAL, ibv_bind_mw(rc, self->ours.mw, &bind));
	RETURNS(EINVAL, ibv_bind_mw(ud, self->ours.mw, &bind));
	CHECK(self->ours.mw->rkey == rkey);
	/* The request itself. */
	RETURNS(EINVAL, ibv_post_send(rc, &wr, &bad));
	CHECK(bad == &wr);
	/* Half a window is none: it has no memory, and it can go. */
	RETURNS(0, ibv_dealloc_mw(two));
	CHECK(!ibv_destroy_qp(rc) && !ibv_destroy_qp(ud));
	end_owned(self);
}

static void paths(struct owned *self)
{
	struct ibv_ah_attr to;
	struct ibv_grh grh = {};
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	union ibv_gid group = { .raw = { [10] = 0xff, 0xff, 239, 7, 7, 7 } }, not_one;
	struct ibv_qp *member[57];
	int i;

	begin_owned(self);
#define NO_PATH(err, member, value)						\
	do {									\
		to = address_of(&self->on, &self->ours.gid);			\
		to.member = value;						\
		REFUSED(err, ibv_create_ah(self->ours.pd, &to));		\
	} while (0)
	NO_PATH(EINVAL, port_num, 0);
	NO_PATH(EINVAL, port_num, 2);
	NO_PATH(EINVAL, port_num, 255);
	NO_PATH(EINVAL, is_global, 0);
	NO_PATH(EINVAL, grh.dgid, (union ibv_gid){});
	/* The index has no address; ib_core's word for that. */
	NO_PATH(ENODATA, grh.sgid_index, 255);
	/* To IPv6 from IPv4. */
	NO_PATH(EINVAL, grh.dgid.raw[0], 0xfd);
	/* From a packet that is neither of IPv4 nor of IPv6. */
	REFUSED(EPROTONOSUPPORT, ibv_create_ah_from_wc(self->ours.pd, &wc, &grh, 0));

	/* A group takes as many as it may, and one more when one goes. */
	for (i = 0; i < 57; i++)
		member[i] = ready(self, IBV_QPT_UD);
	for (i = 0; i < 56; i++)
		RETURNS(0, ibv_attach_mcast(member[i], &group, 0));
	RETURNS(ENOMEM, ibv_attach_mcast(member[56], &group, 0));
	RETURNS(EINVAL, ibv_detach_mcast(member[56], &group, 0));
	not_one = group;
	not_one.raw[12] = 223;
	RETURNS(EINVAL, ibv_attach_mcast(member[56], &not_one, 0));
	/* With another LID it is another membership, to detach. */
	RETURNS(EINVAL, ibv_detach_mcast(member[3], &group, 1));
	RETURNS(0, ibv_detach_mcast(member[3], &group, 0));
	RETURNS(EINVAL, ibv_detach_mcast(member[3], &group, 0));
	RETURNS(0, ibv_attach_mcast(member[56], &group, 0));
	for (i = 0; i < 57; i++) {
		RETURNS(i == 3 ? 0 : EBUSY, ibv_destroy_qp(member[i]));
		if (i == 3)
			continue;
		RETURNS(0, ibv_detach_mcast(member[i], &group, 0));
		RETURNS(0, ibv_destroy_qp(member[i]));
	}
	end_owned(self);
}

static void queries(struct owned *self)
{
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	struct ibv_modify_cq_attr cq = { .attr_mask = IBV_CQ_ATTR_MODERATE | 1 << 8 };
	struct ibv_xrcd_init_attr domain = { .fd = -1, .oflags = O_CREAT };
	struct ibv_device_attr_ex device_attr;
	struct ibv_srq_attr srq = { .max_wr = 8 };
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	uint16_t pkey;

	begin_owned(self);
	RETURNS(EINVAL, ibv_query_device_ex(self->ours.ctx, &input, &device_attr));
	RETURNS(EINVAL, ibv_query_port(self->ours.ctx, 0, &port));
	RETURNS(EINVAL, ibv_query_port(self->ours.ctx, 2, &port));
	RETURNS(EINVAL, ibv_query_port(self->ours.ctx, 255, &port));
	RETURNS(0, ibv_query_port(self->ours.ctx, 1, &port));
	RETURNS(-1, ibv_query_gid(self->ours.ctx, 2, 0, &gid));
	RETURNS(-1, ibv_query_gid(self->ours.ctx, 1, port.gid_tbl_len, &gid));
	RETURNS(-1, ibv_query_gid(self->ours.ctx, 1, -1, &gid));
	RETURNS(-1, ibv_query_pkey(self->ours.ctx, 1, port.pkey_tbl_len, &pkey));
	RETURNS(-1, ibv_get_pkey_index(self->ours.ctx, 1, htons(0x1234)));
	RETURNS(EINVAL, ibv_query_gid_ex(self->ours.ctx, 2, 0, &entry, 0));
	RETURNS(EINVAL, ibv_query_gid_ex(self->ours.ctx, 1, port.gid_tbl_len, &entry, 0));
	RETURNS(ENODATA, ibv_query_gid_ex(self->ours.ctx, 1, port.gid_tbl_len - 1, &entry, 0));
	RETURNS(EINVAL, ibv_query_gid_ex(self->ours.ctx, 1, 0, &entry, 1));
	RETURNS(-EINVAL, ibv_query_gid_table(self->ours.ctx, &entry, 1, 1));
	RETURNS(-EINVAL, ibv_query_gid_table(self->ours.ctx, &entry, 0, 0));
	RETURNS(EINVAL, ibv_modify_cq(self->ours.cq, &cq));
	RETURNS(EINVAL, ibv_modify_srq(self->ours.srq, &srq, IBV_SRQ_MAX_WR | 1 << 2));
	RETURNS(EINVAL, ibv_modify_srq(self->ours.srq, &srq, 1 << 31));
	REFUSED(EINVAL, ibv_open_xrcd(self->ours.ctx, &domain));
	domain.comp_mask = IBV_XRCD_INIT_ATTR_FD;
	REFUSED(EINVAL, ibv_open_xrcd(self->ours.ctx, &domain));
	domain.comp_mask = IBV_XRCD_INIT_ATTR_RESERVED;
	REFUSED(EOPNOTSUPP, ibv_open_xrcd(self->ours.ctx, &domain));
	end_owned(self);
}

/* Verbs that other devices have. */
static void not_had(struct owned *self)
{
	struct ibv_flow_attr flow = { .type = IBV_FLOW_ATTR_NORMAL, .port = 1, .size = sizeof(flow) };
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1 };
	struct ibv_rwq_ind_table_init_attr table = {};
	struct ibv_counters_init_attr counters = {};
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1 };
	struct ibv_flow_action_esp_attr esp = {};
	struct ibv_ece ece = {};

	begin_owned(self);
	wq.pd = self->ours.pd;
	wq.cq = self->ours.cq;
	REFUSED(EOPNOTSUPP, ibv_create_flow(self->ours.qp, &flow));
	REFUSED(EOPNOTSUPP, ibv_create_wq(self->ours.ctx, &wq));
	REFUSED(EOPNOTSUPP, ibv_create_rwq_ind_table(self->ours.ctx, &table));
	REFUSED(EOPNOTSUPP, ibv_create_counters(self->ours.ctx, &counters));
	REFUSED(EOPNOTSUPP, ibv_create_flow_action_esp(self->ours.ctx, &esp));
	RETURNS(EOPNOTSUPP, ibv_modify_qp_rate_limit(self->ours.qp, &rate));
	RETURNS(EOPNOTSUPP, ibv_query_ece(self->ours.qp, &ece));
	/* Its options are nothing to refuse if there are none. */
	ece.vendor_id = 1;
	RETURNS(EOPNOTSUPP, ibv_set_ece(self->ours.qp, &ece));
	end_owned(self);
}

static const CASES(struct owned) cases[] = {
	{ "pairs", pairs },
	{ "shared_queues", shared_queues },
	{ "windows", windows },
	{ "paths", paths },
	{ "queries", queries },
	{ "not_had", not_had },
	{}
};

int main(int argc, char **argv)
{
	static struct owned self;

	return RUN_CASES(&self, cases, argc, argv);
}
