// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug=long xroce
/*
 * The driver's own part of commands, without the library, which would not pass any of
 * this: requests that are too short or too long, members that must be zero, and
 * response buffers without memory. Also what the library refuses before the driver can.
 * By both of the kernel's calls. No object is created, and existing objects continue to
 * work. See devices.h for the arguments.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "commands.h"
#include "counted.h"

/* A command, with the driver's parts where the case wants them. */
struct attempt {
	const struct command *command;
	struct request r;
	/* The driver's request. */
	uint8_t driver[64];
	size_t driver_in;
	/* Where the core's answer goes, with the driver's behind it. */
	uint8_t *answer;
};

static int attempt_by_write(struct owned *self, struct attempt *a)
{
	const struct command *c = a->command;
	uint64_t response = (uintptr_t)a->answer;
	size_t len = sizeof(a->r.hdr) + c->in + a->driver_in;

	if (c->out)
		memcpy(a->r.body, &response, 8);
	memcpy(a->r.body + c->in, a->driver, a->driver_in);
	a->r.hdr = (struct ib_uverbs_cmd_hdr){ c->number, len / 4, (c->out + c->driver_out) / 4 };
	return write(self->ours.ctx->cmd_fd, &a->r, len) == (ssize_t)len ? 0 : errno;
}

static int attempt_by_ioctl(struct owned *self, struct attempt *a)
{
	const struct command *c = a->command;
	uint64_t number = c->number;
	struct raw raw;

	raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	raw_in(&raw, UVERBS_ATTR_WRITE_CMD, &number, 8);
	raw_in(&raw, UVERBS_ATTR_CORE_IN, a->r.body, c->in);
	if (c->out)
		raw_attr(&raw, UVERBS_ATTR_CORE_OUT, c->out, (uintptr_t)a->answer);
	if (a->driver_in)
		raw_in(&raw, UVERBS_ATTR_UHW_IN, a->driver, a->driver_in);
	if (c->driver_out)
		raw_attr(&raw, UVERBS_ATTR_UHW_OUT, c->driver_out, (uintptr_t)a->answer + c->out);
	return raw_call(self->ours.ctx, &raw);
}

static int (*const attempts[])(struct owned *self, struct attempt *a) = {
	attempt_by_write, attempt_by_ioctl,
};

/* ---- the commands that have a driver's part ---- */

static void fill_completions(struct owned *self, void *request)
{
	struct ib_uverbs_create_cq *r = request;

	r->cqe = 4;
	r->comp_channel = -1;
}

static void fill_tags(struct owned *self, void *request)
{
	struct ib_uverbs_create_xsrq *r = request;

	r->srq_type = IBV_SRQT_TM;
	r->max_wr = r->max_sge = 1;
	r->max_num_tags = 4;
}

static void fill_size(struct owned *self, void *request)
{
	struct ib_uverbs_modify_srq *r = request;

	r->attr_mask = IBV_SRQ_MAX_WR;
	r->max_wr = 64;
}

/* MODIFY_SRQ's request for the driver says where its answer goes. */
static struct xroce_ring_info new_ring;

enum { PAIR_CMD, QUEUE_CMD, XRC_CMD, TAGS_CMD, CQ_CMD, RESIZE_CMD, SIZE_CMD, AH_CMD, COMMANDS };

static const struct command driver_commands[COMMANDS] = {
	[PAIR_CMD] = { CMD(CREATE_QP), fill_pair, IN(create_qp), OUT(create_qp),
		       sizeof(struct xroce_create_qp_req), sizeof(struct xroce_create_qp_resp),
		       { HANDLE(create_qp, pd_handle, PD), HANDLE(create_qp, send_cq_handle, CQ),
			 HANDLE(create_qp, recv_cq_handle, CQ), HANDLE(create_qp, srq_handle, SRQ) },
		       QP, 0 },
	[QUEUE_CMD] = { CMD(CREATE_SRQ), fill_queue, IN(create_srq), OUT(create_srq), 0,
			sizeof(struct xroce_create_srq_resp),
			{ HANDLE(create_srq, pd_handle, PD) }, SRQ, 0 },
	[XRC_CMD] = { CMD(CREATE_XSRQ), fill_xrc_queue, IN(create_xsrq), OUT(create_srq), 0,
		      sizeof(struct xroce_create_srq_resp),
		      { HANDLE(create_xsrq, pd_handle, PD), HANDLE(create_xsrq, cq_handle, CQ),
			DOMAIN(create_xsrq, xrcd_handle) }, SRQ, 0 },
	[TAGS_CMD] = { CMD(CREATE_XSRQ), fill_tags, IN(create_xsrq), OUT(create_srq),
		       sizeof(struct xroce_create_tm_srq_req),
		       sizeof(struct xroce_create_tm_srq_resp),
		       { HANDLE(create_xsrq, pd_handle, PD), HANDLE(create_xsrq, cq_handle, CQ) },
		       SRQ, 0 },
	[CQ_CMD] = { CMD(CREATE_CQ), fill_completions, IN(create_cq), OUT(create_cq),
		     sizeof(struct xroce_create_cq_req), sizeof(struct xroce_create_cq_resp),
		     {}, CQ, 0 },
	[RESIZE_CMD] = { CMD(RESIZE_CQ), fill_resize, IN(resize_cq), OUT(resize_cq), 0,
			 sizeof(struct xroce_create_cq_resp),
			 { HANDLE(resize_cq, cq_handle, CQ) }, NONE, 0 },
	[SIZE_CMD] = { CMD(MODIFY_SRQ), fill_size, IN(modify_srq), 0,
		       sizeof(struct xroce_modify_srq_req), 0,
		       { HANDLE(modify_srq, srq_handle, SRQ) }, NONE, 0 },
	[AH_CMD] = { CMD(CREATE_AH), fill_address, IN(create_ah), OUT(create_ah), 0,
		     sizeof(struct xroce_create_ah_resp),
		     { HANDLE(create_ah, pd_handle, PD) }, AH, 0 },
};

static uint8_t answer_room[512];

static struct attempt attempt_of(struct owned *self, int which)
{
	const struct command *c = &driver_commands[which];
	struct attempt a = { .command = c, .driver_in = c->driver_in, .answer = answer_room };
	const struct place *place;

	c->fill(self, a.r.body);
	for (place = c->place; place->none; place++)
		set_handle(&a.r, place, self->ours.handle[place->kind]);
	if (which == TAGS_CMD)
		((struct xroce_create_tm_srq_req *)a.driver)->max_ops = 4;
	if (which == SIZE_CMD)
		((struct xroce_modify_srq_req *)a.driver)->ring_addr = (uintptr_t)&new_ring;
	return a;
}

/* A is refused with ERR, by both calls, and there is as much as before. */
static void refuses(struct owned *self, const char *what, const struct attempt *a, int err)
{
	int before = objects(self);
	unsigned int way;
	char text[128];

	for (way = 0; way < 2; way++) {
		struct attempt t = *a;

		snprintf(text, sizeof(text), "%s, %s, way %u", a->command->name, what, way);
		expect_errno(text, attempts[way](self, &t), err);
		CHECK(objects(self) == before);
	}
}

/* Without a fault in it each does what it is for; so it is the fault that is refused below. */
static void as_they_are(struct owned *self)
{
	struct attempt a;
	unsigned int way;
	struct raw raw;
	int i;

	begin_owned(self);
	for (i = 0; i < COMMANDS; i++) {
		for (way = 0; way < 2; way++) {
			static const uint16_t ends[KINDS][3] = {
				[QP] = { UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY },
				[CQ] = { UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY },
				[SRQ] = { UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY },
				[AH] = { UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY },
			};
			static const uint16_t answers[KINDS] = {
				[QP] = sizeof(struct ib_uverbs_destroy_qp_resp),
				[CQ] = sizeof(struct ib_uverbs_destroy_cq_resp),
				[SRQ] = sizeof(struct ib_uverbs_destroy_srq_resp),
			};
			enum kind kind = driver_commands[i].makes;
			uint32_t handle, room[4];

			if (kind == NONE)
				continue;
			a = attempt_of(self, i);
			expect_errno(a.command->name, attempts[way](self, &a), 0);
			memcpy(&handle, answer_room, 4);
			/* Attribute 0 of each of these is the handle, 1 the answer. */
			raw_begin_on(&raw, ends[kind][0], ends[kind][1]);
			raw_attr(&raw, 0, 0, handle);
			if (answers[kind])
				raw_attr(&raw, 1, answers[kind], (uintptr_t)room);
			expect_errno("destroy", raw_call(self->ours.ctx, &raw), 0);
		}
	}
	end_owned(self);
}

/*
 * _ib_copy_validate_udata_in(): a request that is shorter than the driver's is EINVAL; more
 * than the driver knows must be zero, or it is EOPNOTSUPP.
 */
static void lengths(struct owned *self)
{
	struct attempt a;
	size_t len, whole;
	int i;

	begin_owned(self);
	for (i = 0; i < COMMANDS; i++) {
		whole = driver_commands[i].driver_in;
		if (!whole)
			continue;
		for (len = 0; len < whole; len += 4) {
			a = attempt_of(self, i);
			a.driver_in = len;
			refuses(self, "too short", &a, EINVAL);
		}
		for (len = 4; len <= 32; len += 28) {
			a = attempt_of(self, i);
			a.driver_in = whole + len;
			a.driver[whole + len - 1] = 1;
			refuses(self, "too long", &a, EOPNOTSUPP);
		}
	}
	/* Not in use, they do no harm. */
	a = attempt_of(self, SIZE_CMD);
	a.driver_in += 8;
	expect_errno("long and zero", attempt_by_write(self, &a), 0);
	CHECK(new_ring.entries == 64);
	free_all(&self->ours);
	free_all(&self->theirs);
}

/* xroce-abi.h: flags and reserved must be zero; a matching list has tags and operations. */
static void members(struct owned *self)
{
	struct attempt a;
	int i, bit;

	begin_owned(self);
	for (i = PAIR_CMD; i <= CQ_CMD; i++) {
		if (i != PAIR_CMD && i != CQ_CMD)
			continue;
		for (bit = 0; bit < 64; bit++) {
			/* XROCE_QP_ONE_MAPPING */
			if (i == PAIR_CMD && bit == 0)
				continue;
			a = attempt_of(self, i);
			a.driver[bit / 8] = 1 << bit % 8;
			refuses(self, "flags or reserved", &a, EINVAL);
		}
	}
	for (bit = 0; bit < 32; bit += 31) {
		a = attempt_of(self, TAGS_CMD);
		((struct xroce_create_tm_srq_req *)a.driver)->reserved = 1u << bit;
		refuses(self, "reserved", &a, EINVAL);
	}
#define NO_TAGS(tags, ops)								\
	do {										\
		a = attempt_of(self, TAGS_CMD);						\
		((struct ib_uverbs_create_xsrq *)a.r.body)->max_num_tags = (tags);	\
		((struct xroce_create_tm_srq_req *)a.driver)->max_ops = (ops);		\
		refuses(self, #tags " tags, " #ops " operations", &a, EINVAL);		\
	} while (0)
	struct ibv_device_attr_ex caps;
	CHECK(!ibv_query_device_ex(self->ours.ctx, NULL, &caps));
	NO_TAGS(0, 4);
	NO_TAGS(4, 0);
	NO_TAGS(caps.tm_caps.max_num_tags + 1, 4);
	NO_TAGS(4, caps.tm_caps.max_ops + 1);
	NO_TAGS(UINT32_MAX, 4);
	NO_TAGS(4, UINT32_MAX);
	end_owned(self);
}

static void destroy_pair(struct owned *self)
{
	uint32_t handle, room[4];
	struct raw raw;

	memcpy(&handle, answer_room, 4);
	raw_begin_on(&raw, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY);
	raw_attr(&raw, 0, 0, handle);
	raw_attr(&raw, 1, sizeof(struct ib_uverbs_destroy_qp_resp), (uintptr_t)room);
	expect_errno("destroy", raw_call(self->ours.ctx, &raw), 0);
}

/* XROCE_QP_ONE_MAPPING: both rings are where the answer says, and each has its own header. */
static void one_mapping(struct owned *self)
{
	const struct command *c = &driver_commands[PAIR_CMD];
	const int prot = PROT_READ | PROT_WRITE;
	struct xroce_create_qp_resp resp;
	struct xroce_ring_hdr *sq, *rq;
	struct ib_uverbs_create_qp *r;
	struct attempt a;
	unsigned int way;
	uint64_t at;
	int fd;

	begin_owned(self);
	fd = self->ours.ctx->cmd_fd;
	for (way = 0; way < 2; way++) {
		a = attempt_of(self, PAIR_CMD);
		r = (struct ib_uverbs_create_qp *)a.r.body;
		r->is_srq = 0;
		r->max_send_wr = r->max_recv_wr = 64;
		r->max_recv_sge = 1;
		((struct xroce_create_qp_req *)a.driver)->flags = XROCE_QP_ONE_MAPPING;
		expect_errno("one mapping", attempts[way](self, &a), 0);
		memcpy(&resp, answer_room + c->out, sizeof(resp));
		at = resp.rq.offset - resp.sq.offset;
		CHECK(resp.sq.entries == 64 && resp.rq.entries == 64);
		CHECK(at % 64 == 0 && at >= XROCE_RING_HDR_SIZE + 64 * resp.sq.stride);
		CHECK(resp.rq.size >= XROCE_RING_HDR_SIZE + 64 * resp.rq.stride);
		/* 64 and 64 requests: two pages, where two rings of their own take three. */
		CHECK(at + resp.rq.size == resp.sq.size && resp.sq.size == 2 * 4096);
		sq = mmap(NULL, resp.sq.size, prot, MAP_SHARED, fd, resp.sq.offset);
		CHECK(sq != MAP_FAILED);
		rq = (struct xroce_ring_hdr *)((char *)sq + at);
		CHECK(!sq->kernel_flags && !rq->kernel_flags);
		destroy_pair(self);
		CHECK(sq->kernel_flags & XROCE_RING_DEAD);
		CHECK(rq->kernel_flags & XROCE_RING_DEAD);
		CHECK(!munmap(sq, resp.sq.size));
	}
	end_owned(self);
}

/* What the library keeps from the driver. */
static void kinds(struct owned *self)
{
	static const uint32_t types[] = { 3, 99, UINT32_MAX };
	struct attempt a;
	unsigned int i;

	begin_owned(self);
	/* Not of the core's types either (create_qp() of uverbs_cmd.c). */
	a = attempt_of(self, PAIR_CMD);
	((struct ib_uverbs_create_qp *)a.r.body)->qp_type = 0;
	refuses(self, "type SMI", &a, EINVAL);
	((struct ib_uverbs_create_qp *)a.r.body)->qp_type = 5;
	refuses(self, "type 5", &a, EINVAL);
	/* The core hands this one on; no driver but EFA and mlx5 has it, theirs is EOPNOTSUPP, too. */
	((struct ib_uverbs_create_qp *)a.r.body)->qp_type = 255;
	refuses(self, "type DRIVER", &a, EOPNOTSUPP);
	((struct ib_uverbs_create_qp *)a.r.body)->qp_type = IBV_QPT_RAW_PACKET;
	refuses(self, "type RAW_PACKET", &a, EOPNOTSUPP);
	/* The core knows no limits; the driver's are EINVAL, as ibv_create_qp(3) has it. */
	a = attempt_of(self, PAIR_CMD);
	((struct ib_uverbs_create_qp *)a.r.body)->max_send_wr = UINT32_MAX;
	refuses(self, "send requests", &a, EINVAL);
	a = attempt_of(self, PAIR_CMD);
	((struct ib_uverbs_create_qp *)a.r.body)->max_inline_data = UINT32_MAX;
	refuses(self, "inline data", &a, EINVAL);
	/* The core takes any number for the type of an SRQ; of others mlx5 and rxe say the same. */
	for (i = 0; i < 3; i++) {
		a = attempt_of(self, QUEUE_CMD);
		a.command = &driver_commands[XRC_CMD];
		memset(a.r.body, 0, sizeof(a.r.body));
		((struct ib_uverbs_create_xsrq *)a.r.body)->srq_type = types[i];
		((struct ib_uverbs_create_xsrq *)a.r.body)->max_wr = 1;
		((struct ib_uverbs_create_xsrq *)a.r.body)->max_sge = 1;
		((struct ib_uverbs_create_xsrq *)a.r.body)->pd_handle = self->ours.handle[PD];
		((struct ib_uverbs_create_xsrq *)a.r.body)->cq_handle = self->ours.handle[CQ];
		((struct ib_uverbs_create_xsrq *)a.r.body)->xrcd_handle = self->ours.handle[XRCD];
		refuses(self, "a type that there is not", &a, EOPNOTSUPP);
	}
	end_owned(self);
}

/*
 * There is no memory where the answer goes: all of it, the driver's part, the core's part
 * (of which the core hears when the object is made, and unmakes it).
 */
static void bad_answers(struct owned *self)
{
	uint8_t *pages = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct attempt a;
	int i;

	CHECK(pages != MAP_FAILED && !mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE));
	begin_owned(self);
	for (i = 0; i < COMMANDS; i++) {
		if (i == SIZE_CMD)
			continue;
		a = attempt_of(self, i);
		a.answer = pages;
		refuses(self, "no room", &a, EFAULT);
		a.answer = pages + 2 * 4096 - a.command->out;
		refuses(self, "no room for the driver", &a, EFAULT);
		a.answer = pages + 2 * 4096 - a.command->out - a.command->driver_out + 4;
		refuses(self, "room for most of it", &a, EFAULT);
		/* A queue has its new size when the core answers; nothing is undone then. */
		if (i == RESIZE_CMD)
			continue;
		a.answer = pages + 4096 - a.command->out;
		refuses(self, "no room for the core", &a, EFAULT);
	}
	end_owned(self);
	munmap(pages, 3 * 4096);
}

static struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 8, .max_sge = 1 } };

/* The old ring of an SRQ is kept, with what is posted in it, when the new one cannot be told of. */
static void ring_kept(struct owned *self)
{
	static const uint64_t nowhere[] = { 0, 8, 1ull << 47, UINT64_MAX - 7 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_srq_attr is;
	struct attempt t;
	struct ibv_wc wc;
	struct end a, b;
	unsigned int i, way;

	make_end(&a, self->on.name[0], self->on.gid_index[0]);
	open_end(&b, self->on.name[1], self->on.gid_index[1]);
	begin_owned(self);
	CHECK((b.srq = ibv_create_srq(b.pd, &srq_init)));
	init.srq = b.srq;
	init.send_cq = init.recv_cq = b.cq;
	CHECK((b.qp = ibv_create_qp(b.pd, &init)));
	connect_end(&a, &b);
	connect_end(&b, &a);
	CHECK(!post_receive(&b, 77));
	for (i = 0; i < 4; i++) {
		for (way = 0; way < 2; way++) {
			struct ibv_context *ctx = self->ours.ctx;

			t = attempt_of(self, SIZE_CMD);
			set_handle(&t.r, t.command->place, b.srq->handle);
			((struct xroce_modify_srq_req *)t.driver)->ring_addr = nowhere[i];
			self->ours.ctx = b.ctx;
			expect_errno("nowhere", attempts[way](self, &t), EFAULT);
			self->ours.ctx = ctx;
			CHECK(!ibv_query_srq(b.srq, &is) && is.max_wr == 8);
		}
	}
	CHECK(!post_receive(&b, 78));
	for (i = 0; i < 2; i++) {
		CHECK(!post_send(&a, i, 64));
		CHECK(next_wc(a.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
		CHECK(next_wc(b.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == 77 + i);
	}
	CHECK(!ibv_destroy_qp(b.qp) && !ibv_destroy_srq(b.srq) && !ibv_destroy_qp(a.qp));
	free_all(&self->ours);
	free_all(&self->theirs);
}

/* The same of a completion queue: what completes comes to the ring that the process knows. */
static void completions_kept(struct owned *self)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	struct ibv_recv_wr *bad, wr = { .wr_id = 99 };
	struct attempt t;
	struct ibv_wc wc;
	unsigned int way;

	begin_owned(self);
	for (way = 0; way < 2; way++) {
		t = attempt_of(self, RESIZE_CMD);
		((struct ib_uverbs_resize_cq *)t.r.body)->cqe = 500;
		t.answer = (uint8_t *)8;
		expect_errno("nowhere", attempts[way](self, &t), EFAULT);
	}
	CHECK(!ibv_modify_qp(self->ours.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_QKEY));
	CHECK(!ibv_post_recv(self->ours.qp, &wr, &bad));
	attr.qp_state = IBV_QPS_ERR;
	CHECK(!ibv_modify_qp(self->ours.qp, &attr, IBV_QP_STATE));
	CHECK(next_wc(self->ours.cq, &wc) == 1);
	CHECK(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 99);
	end_owned(self);
}

static const CASES(struct owned) cases[] = {
	{ "as_they_are", as_they_are },
	{ "lengths", lengths },
	{ "members", members },
	{ "one_mapping", one_mapping },
	{ "kinds", kinds },
	{ "bad_answers", bad_answers },
	{ "ring_kept", ring_kept },
	{ "completions_kept", completions_kept },
	{}
};

int main(int argc, char **argv)
{
	static struct owned self;

	return RUN_CASES(&self, cases, argc, argv);
}
