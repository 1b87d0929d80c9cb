// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug=long xroce
/*
 * Attributes of the ioctl's own methods: combinations that the library never makes.
 * QP_CREATE, SRQ_CREATE, CQ_CREATE, REG_MR and INFO_HANDLES of
 * core/uverbs_std_types_*.c. A missing attribute is EINVAL if the method declares it
 * mandatory, and ENOENT if the method asks for it (uverbs_attr_get()). A flag that does
 * not exist is EINVAL (uverbs_get_flags32()); a constant that does not exist is the
 * method's own EINVAL. No object is created. See devices.h for the arguments.
 */
#include "counted.h"

/* An attribute of a call, which a case leaves out or changes. */
struct part {
	uint16_t id;
	/* Handle of an object of this kind; NONE: one that is made; VALUE: data. */
	enum { OBJECT, NEW, VALUE, ANSWER } what;
	enum kind kind;
	uint16_t len;
	uint64_t value;
	/* What the call without it gives. */
	int without;
};

#define MAX_PARTS 14

struct call {
	const char *name;
	uint16_t object, method;
	struct part part[MAX_PARTS];
};

static uint8_t answers[MAX_PARTS][256];

static const struct ib_uverbs_qp_cap cap = { 1, 1, 1, 1, 0 };
static struct ib_uverbs_qp_cap asked;

#define PART(id, what, kind, len, value, without) \
	{ UVERBS_ATTR_##id, what, kind, len, value, without }
#define NEW_PART(id) PART(id, NEW, NONE, 0, 0, EINVAL)
#define HANDLE_PART(id, kind, without) PART(id, OBJECT, kind, 0, 0, without)
#define VALUE_PART(id, len, value, without) PART(id, VALUE, NONE, len, value, without)
#define ANSWER_PART(id, len) PART(id, ANSWER, NONE, len, 0, EINVAL)
/* The driver's request is EINVAL if it is missing, its answer is not needed. */
#define DRIVER_PARTS(in, out)								\
	{ UVERBS_ATTR_UHW_IN, VALUE, NONE, in, 0, EINVAL },				\
	{ UVERBS_ATTR_UHW_OUT, ANSWER, NONE, out, 0, 0 }

static struct call pair, target, queue, xrc_queue, tag_queue, completions, region;

/* Each call as it goes well. */
static void prepare(struct owned *self)
{
	asked = cap;
	pair = (struct call){ "QP_CREATE", UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, {
		NEW_PART(CREATE_QP_HANDLE), HANDLE_PART(CREATE_QP_PD_HANDLE, PD, ENOENT),
		HANDLE_PART(CREATE_QP_SEND_CQ_HANDLE, CQ, ENOENT),
		HANDLE_PART(CREATE_QP_RECV_CQ_HANDLE, CQ, ENOENT),
		VALUE_PART(CREATE_QP_USER_HANDLE, 8, 1, EINVAL),
		VALUE_PART(CREATE_QP_CAP, sizeof(cap), (uintptr_t)&asked, EINVAL),
		VALUE_PART(CREATE_QP_TYPE, 8, IBV_QPT_UD, EINVAL),
		VALUE_PART(CREATE_QP_FLAGS, 8, 0, 0),
		ANSWER_PART(CREATE_QP_RESP_CAP, sizeof(cap)), ANSWER_PART(CREATE_QP_RESP_QP_NUM, 4),
		DRIVER_PARTS(sizeof(struct xroce_create_qp_req), sizeof(struct xroce_create_qp_resp)),
	} };
	target = (struct call){ "QP_CREATE of a target", UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, {
		NEW_PART(CREATE_QP_HANDLE), HANDLE_PART(CREATE_QP_XRCD_HANDLE, XRCD, ENOENT),
		VALUE_PART(CREATE_QP_USER_HANDLE, 8, 1, EINVAL),
		VALUE_PART(CREATE_QP_CAP, sizeof(cap), (uintptr_t)&asked, EINVAL),
		VALUE_PART(CREATE_QP_TYPE, 8, IBV_QPT_XRC_RECV, EINVAL),
		ANSWER_PART(CREATE_QP_RESP_CAP, sizeof(cap)), ANSWER_PART(CREATE_QP_RESP_QP_NUM, 4),
	} };
#define QUEUE_PARTS(type)								\
		NEW_PART(CREATE_SRQ_HANDLE), HANDLE_PART(CREATE_SRQ_PD_HANDLE, PD, EINVAL),	\
		VALUE_PART(CREATE_SRQ_USER_HANDLE, 8, 1, EINVAL),			\
		VALUE_PART(CREATE_SRQ_TYPE, 8, type, EINVAL),				\
		VALUE_PART(CREATE_SRQ_MAX_WR, 4, 1, EINVAL),				\
		VALUE_PART(CREATE_SRQ_MAX_SGE, 4, 1, EINVAL),				\
		VALUE_PART(CREATE_SRQ_LIMIT, 4, 0, EINVAL),				\
		ANSWER_PART(CREATE_SRQ_RESP_MAX_WR, 4), ANSWER_PART(CREATE_SRQ_RESP_MAX_SGE, 4)
	queue = (struct call){ "SRQ_CREATE", UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, {
		QUEUE_PARTS(IBV_SRQT_BASIC),
		PART(UHW_OUT, ANSWER, NONE, sizeof(struct xroce_create_srq_resp), 0, 0),
	} };
	xrc_queue = (struct call){ "SRQ_CREATE of XRC", UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, {
		QUEUE_PARTS(IBV_SRQT_XRC),
		HANDLE_PART(CREATE_SRQ_CQ_HANDLE, CQ, ENOENT),
		HANDLE_PART(CREATE_SRQ_XRCD_HANDLE, XRCD, ENOENT),
		/* The core makes the queue and then has nowhere to tell its number. */
		ANSWER_PART(CREATE_SRQ_RESP_SRQ_NUM, 4),
		PART(UHW_OUT, ANSWER, NONE, sizeof(struct xroce_create_srq_resp), 0, 0),
	} };
	xrc_queue.part[11].without = ENOENT;
	tag_queue = (struct call){ "SRQ_CREATE of tags", UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, {
		QUEUE_PARTS(IBV_SRQT_TM),
		HANDLE_PART(CREATE_SRQ_CQ_HANDLE, CQ, ENOENT),
		VALUE_PART(CREATE_SRQ_MAX_NUM_TAGS, 4, 4, ENOENT),
		DRIVER_PARTS(sizeof(struct xroce_create_tm_srq_req),
			     sizeof(struct xroce_create_tm_srq_resp)),
	} };
	/* Four operations. */
	tag_queue.part[11].value = 4;
	completions = (struct call){ "CQ_CREATE", UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, {
		NEW_PART(CREATE_CQ_HANDLE), VALUE_PART(CREATE_CQ_CQE, 4, 4, EINVAL),
		VALUE_PART(CREATE_CQ_USER_HANDLE, 8, 1, EINVAL),
		VALUE_PART(CREATE_CQ_COMP_VECTOR, 4, 0, EINVAL),
		VALUE_PART(CREATE_CQ_FLAGS, 8, 0, 0), ANSWER_PART(CREATE_CQ_RESP_CQE, 4),
		DRIVER_PARTS(sizeof(struct xroce_create_cq_req), sizeof(struct xroce_create_cq_resp)),
	} };
	region = (struct call){ "REG_MR", UVERBS_OBJECT_MR, UVERBS_METHOD_REG_MR, {
		NEW_PART(REG_MR_HANDLE), HANDLE_PART(REG_MR_PD_HANDLE, PD, EINVAL),
		VALUE_PART(REG_MR_IOVA, 8, (uintptr_t)self->ours.buf, EINVAL),
		VALUE_PART(REG_MR_LENGTH, 8, 4096, EINVAL),
		VALUE_PART(REG_MR_ACCESS_FLAGS, 8, IBV_ACCESS_LOCAL_WRITE, EINVAL),
		VALUE_PART(REG_MR_ADDR, 8, (uintptr_t)self->ours.buf, EINVAL),
		ANSWER_PART(REG_MR_RESP_LKEY, 4), ANSWER_PART(REG_MR_RESP_RKEY, 4),
	} };
}

static void setup(struct owned *self)
{
	begin_owned(self);
	prepare(self);
}

/* Makes CALL, but for its part WITHOUT; with PLUS, if there is one, in its place. */
static int made_with(struct owned *self, const struct call *call, int without,
		     const struct part *plus, uint32_t *handle)
{
	struct raw raw;
	int i, err;

	raw_begin_on(&raw, call->object, call->method);
	for (i = 0; i <= MAX_PARTS; i++) {
		const struct part *p = i < MAX_PARTS ? &call->part[i] : plus;

		if (!p || i == without || (i < MAX_PARTS && !p->len && p->what >= VALUE))
			continue;
		if (i < MAX_PARTS && i && !p->id && p->what == OBJECT)
			continue;
		switch (p->what) {
		case OBJECT:
			raw_attr(&raw, p->id, 0, p->value ? p->value : self->ours.handle[p->kind]);
			break;
		case NEW:
			raw_attr(&raw, p->id, 0, 0);
			break;
		case VALUE:
			raw_attr(&raw, p->id, p->len, p->value);
			break;
		case ANSWER:
			raw_attr(&raw, p->id, p->len, (uintptr_t)answers[i]);
			break;
		}
	}
	err = raw_call(self->ours.ctx, &raw);
	*handle = raw.attrs[0].data;
	return err;
}

/* What was made goes. Attribute 0 of each of these is the handle, 1 the answer. */
static void destroyed(struct owned *self, const struct call *call, uint32_t handle)
{
	uint32_t room[4];
	struct raw raw;
	int len;

	switch (call->object) {
	case UVERBS_OBJECT_QP:
		raw_begin_on(&raw, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY);
		len = sizeof(struct ib_uverbs_destroy_qp_resp);
		break;
	case UVERBS_OBJECT_SRQ:
		raw_begin_on(&raw, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY);
		len = sizeof(struct ib_uverbs_destroy_srq_resp);
		break;
	case UVERBS_OBJECT_CQ:
		raw_begin_on(&raw, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
		len = sizeof(struct ib_uverbs_destroy_cq_resp);
		break;
	default:
		raw_begin_on(&raw, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY);
		len = 0;
	}
	raw_attr(&raw, 0, 0, handle);
	if (len)
		raw_attr(&raw, 1, len, (uintptr_t)room);
	expect_errno("destroy", raw_call(self->ours.ctx, &raw), 0);
}

static void gives(struct owned *self, const char *what, const struct call *call, int without,
		  const struct part *plus, int err)
{
	int before = objects(self), got;
	uint32_t handle;
	char text[128];

	snprintf(text, sizeof(text), "%s, %s %d", call->name, what, without);
	got = made_with(self, call, without, plus, &handle);
	expect_errno(text, got, err);
	if (!got)
		destroyed(self, call, handle);
	CHECK(objects(self) == before);
}

/* With all there, and without each part in turn. */
static void missing(struct owned *self)
{
	const struct call *calls[] = {
		&pair, &target, &queue, &xrc_queue, &tag_queue, &completions, &region,
	};
	unsigned int c, i;

	setup(self);
	for (c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
		gives(self, "whole", calls[c], -1, NULL, 0);
		for (i = 0; i < MAX_PARTS; i++) {
			const struct part *p = &calls[c]->part[i];

			if (!i || p->id || p->len)
				gives(self, "without part", calls[c], i, NULL, p->without);
		}
	}
	end_owned(self);
}

/* Call C with part AT set to DATA gives ERR. */
#define CHANGED(c, at, data, err)							\
	do {										\
		struct call changed = c;						\
		changed.part[at].value = (data);					\
		gives(self, #c " " #at " " #data, &changed, -1, NULL, err);		\
	} while (0)
/* Call C with one more attribute gives ERR. */
#define AND(c, err, ...)								\
	do {										\
		struct part more = __VA_ARGS__;						\
		gives(self, #c " and more", &c, -1, &more, err);			\
	} while (0)

enum { PAIR_CAP = 5, PAIR_TYPE = 6, PAIR_FLAGS = 7 };

static void pairs(struct owned *self)
{
	struct ibv_srq_init_attr_ex xrc_init = {
		.attr = { .max_wr = 1, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_XRCD,
	};
	struct ibv_srq *xrc;
	int bit;

	setup(self);
	xrc_init.pd = self->ours.pd;
	xrc_init.cq = self->ours.cq;
	xrc_init.xrcd = self->ours.xrcd;
	CHECK((xrc = ibv_create_srq_ex(self->ours.ctx, &xrc_init)));
	/* Types that there are not. */
	CHANGED(pair, PAIR_TYPE, 0, EINVAL);
	CHANGED(pair, PAIR_TYPE, 5, EINVAL);
	CHANGED(pair, PAIR_TYPE, 254, EINVAL);
	CHANGED(pair, PAIR_TYPE, 1ull << 32, EINVAL);
	CHANGED(pair, PAIR_TYPE, IBV_QPT_DRIVER, EOPNOTSUPP);
	CHANGED(pair, PAIR_TYPE, IBV_QPT_RAW_PACKET, EOPNOTSUPP);
	/* A target has a domain and nothing else, all others have none. */
	AND(pair, EINVAL, HANDLE_PART(CREATE_QP_XRCD_HANDLE, XRCD, 0));
	AND(target, EINVAL, HANDLE_PART(CREATE_QP_PD_HANDLE, PD, 0));
	AND(target, EINVAL, HANDLE_PART(CREATE_QP_SEND_CQ_HANDLE, CQ, 0));
	AND(target, EINVAL, HANDLE_PART(CREATE_QP_RECV_CQ_HANDLE, CQ, 0));
	CHANGED(pair, PAIR_TYPE, IBV_QPT_XRC_RECV, EINVAL);
	CHANGED(target, 4, IBV_QPT_RC, EINVAL);
	/* An SRQ of XRC is no pair's, an ordinary one no target's; an initiator has none. */
	AND(pair, EINVAL, PART(CREATE_QP_SRQ_HANDLE, OBJECT, SRQ, 0, xrc->handle, 0));
	AND(target, EINVAL, HANDLE_PART(CREATE_QP_SRQ_HANDLE, SRQ, 0));
	pair.part[PAIR_TYPE].value = IBV_QPT_XRC_SEND;
	AND(pair, EINVAL, HANDLE_PART(CREATE_QP_SRQ_HANDLE, SRQ, 0));
	prepare(self);
	/*
	 * Flags: unknown ones; of raw packets alone (scatter FCS, VLAN stripping), of raw packets
	 * and datagrams (bits 1 and 11), which this driver has not either; SQ_SIG_ALL.
	 */
	for (bit = 0; bit < 64; bit++) {
		int err = bit == 1 || bit == 11 ? EOPNOTSUPP : bit == 12 ? 0 : EINVAL;

		CHANGED(pair, PAIR_FLAGS, 1ull << bit, err);
	}
	pair.part[PAIR_TYPE].value = IBV_QPT_RC;
	CHANGED(pair, PAIR_FLAGS, 1 << 1, EINVAL);
	CHANGED(pair, PAIR_FLAGS, 1 << 11, EINVAL);
	CHANGED(pair, PAIR_FLAGS, 1 << 12, 0);
	prepare(self);
	AND(pair, EOPNOTSUPP, VALUE_PART(CREATE_QP_SOURCE_QPN, 4, 77, 0));
	/* Capacities. */
	asked.max_send_wr = UINT32_MAX;
	gives(self, "capacity", &pair, -1, NULL, EINVAL);
	asked = cap;
	CHANGED(pair, PAIR_CAP, 8, EFAULT);
	CHECK(!ibv_destroy_srq(xrc));
	end_owned(self);
}

static void queues(struct owned *self)
{
	static const uint64_t types[] = { 3, 99, UINT32_MAX, 1ull << 32 };
	int i, bit;

	setup(self);
	for (i = 0; i < 4; i++)
		CHANGED(queue, 3, types[i], EINVAL);
	CHANGED(queue, 4, 0, EINVAL);
	CHANGED(queue, 4, UINT32_MAX, EINVAL);
	CHANGED(queue, 5, UINT32_MAX, EINVAL);
	CHANGED(tag_queue, 10, 0, EINVAL);
	CHANGED(tag_queue, 10, UINT32_MAX, EINVAL);
	CHANGED(tag_queue, 11, 0, EINVAL);
	CHANGED(tag_queue, 11, UINT32_MAX, EINVAL);

	CHANGED(completions, 1, 0, EINVAL);
	CHANGED(completions, 1, UINT32_MAX, EINVAL);
	CHANGED(completions, 3, 1 << 20, EINVAL);
	/* The core knows stamps, which we have, and queues that may overrun, which we have not. */
	for (bit = 0; bit < 64; bit++)
		CHANGED(completions, 4, 1ull << bit, bit == 0 ? 0 : bit == 1 ? EOPNOTSUPP : EINVAL);
	AND(completions, EBADF, PART(CREATE_CQ_COMP_CHANNEL, OBJECT, NONE, 0, 987, 0));
	AND(completions, EBADF, PART(CREATE_CQ_COMP_CHANNEL, OBJECT, NONE, 0,
				     (uint64_t)self->ours.ctx->cmd_fd, 0));
	AND(completions, EBADF, PART(CREATE_CQ_EVENT_FD, OBJECT, NONE, 0, 987, 0));
	end_owned(self);
}

/* UVERBS_METHOD_REG_MR: memory is at an address or behind a descriptor, with an offset. */
static void regions(struct owned *self)
{
	int bit;

	setup(self);
	AND(region, EINVAL, VALUE_PART(REG_MR_FD_OFFSET, 8, 0, 0));
	/* No driver's memory without the operation. */
	AND(region, EOPNOTSUPP, VALUE_PART(REG_MR_FD, 0, (uint64_t)self->ours.ctx->cmd_fd, 0));
	AND(region, EINVAL, PART(REG_MR_DMA_HANDLE, OBJECT, NONE, 0, 1000, 0));
	CHANGED(region, 5, (uintptr_t)self->ours.buf + 1, EINVAL);
	CHANGED(region, 2, (uintptr_t)self->ours.buf + 1, EINVAL);
	CHANGED(region, 3, 0, EINVAL);
	CHANGED(region, 3, UINT64_MAX, EINVAL);
	CHANGED(region, 3, (1ull << 40) + 1, EINVAL);
	/* Bits 9 and 20 to 29 are in IB_ACCESS_SUPPORTED with 0 to 8; 8 and 9 are FLUSH. */
	for (bit = 10; bit < 64; bit++)
		if (bit < 20 || bit > 29)
			CHANGED(region, 4, 1ull << bit, EINVAL);
	CHANGED(region, 4, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	CHANGED(region, 4, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	CHANGED(region, 4, IBV_ACCESS_FLUSH_PERSISTENT, EINVAL);
	CHANGED(region, 5, 0, EFAULT);
	end_owned(self);
}

static int listed(struct owned *self, uint64_t id, uint16_t len, uint64_t list, uint64_t total)
{
	struct raw raw;

	raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	raw_in(&raw, UVERBS_ATTR_INFO_OBJECT_ID, &id, 8);
	raw_attr(&raw, UVERBS_ATTR_INFO_TOTAL_HANDLES, 4, total);
	raw_attr(&raw, UVERBS_ATTR_INFO_HANDLES_LIST, len, list);
	return raw_call(self->ours.ctx, &raw);
}

/* uverbs_std_types_device.c: a list is of whole numbers, of objects that there are. */
static void lists(struct owned *self)
{
	uint32_t list[64], total;
	uintptr_t at = (uintptr_t)list, n = (uintptr_t)&total;

	setup(self);
	expect_errno("whole", listed(self, UVERBS_OBJECT_PD, sizeof(list), at, n), 0);
	CHECK(total == 1 && list[0] == self->ours.handle[PD]);
	expect_errno("short", listed(self, UVERBS_OBJECT_PD, 3, at, n), EINVAL);
	expect_errno("of no length", listed(self, UVERBS_OBJECT_PD, 0, at, n), EINVAL);
	expect_errno("of half a number", listed(self, UVERBS_OBJECT_PD, 6, at, n), EINVAL);
	/* uapi_get_object() */
	expect_errno("of nothing", listed(self, 0xfff, sizeof(list), at, n), ENOENT);
	expect_errno("of flows, which we have not",
		     listed(self, UVERBS_OBJECT_FLOW, sizeof(list), at, n), ENOENT);
	/* What stands for any kind there, and is none to list. */
	expect_errno("of any", listed(self, UINT16_MAX, sizeof(list), at, n), ENOMSG);
	/* The identity is of 16 bits: uverbs_get_const(). */
	expect_errno("of too much", listed(self, 1 << 16, sizeof(list), at, n), EINVAL);
	expect_errno("to nowhere", listed(self, UVERBS_OBJECT_PD, sizeof(list), 8, n), EFAULT);
	expect_errno("of a number to nowhere", listed(self, UVERBS_OBJECT_PD, sizeof(list), at, 8),
		     EFAULT);
	end_owned(self);
}

static const CASES(struct owned) cases[] = {
	{ "missing", missing },
	{ "pairs", pairs },
	{ "queues", queues },
	{ "regions", regions },
	{ "lists", lists },
	{}
};

int main(int argc, char **argv)
{
	static struct owned self;

	return RUN_CASES(&self, cases, argc, argv);
}
