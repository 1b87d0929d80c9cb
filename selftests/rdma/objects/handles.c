// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug=long xroce
/*
 * Handles that name nothing, a destroyed object, or an object of another context or of
 * another kind, in each handle of each command, by both of the kernel's calls. Checks
 * the errno, and that the command creates, uses and breaks nothing. Also commands with
 * an invalid envelope. See devices.h for the arguments.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>

#include "commands.h"
#include "counted.h"

static int count_before;

static void setup(struct owned *self)
{
	begin_owned(self);
	count_before = objects(self);
}

static void finish(struct owned *self)
{
	CHECK(objects(self) == count_before);
	end_owned(self);
}

/* HANDLE at PLACE of command C is refused with ERR, twice. */
static void refused(struct owned *self, const struct command *c, const struct place *place,
		    uint32_t handle, int err)
{
	int way, i, n = objects(self);
	struct request r;
	char what[80];

	for (way = 0; way < 2; way++) {
		snprintf(what, sizeof(what), "%s, way %d, handle %u for a %s", c->name, way, handle,
			 kind_names[place->kind]);
		for (i = 0; i < 2; i++) {
			begin_request(self, c, &r);
			set_handle(&r, place, handle);
			expect_errno(what, ways[way](self, c, &r), err);
		}
	}
	CHECK(objects(self) == n);
}

#define EACH_PLACE(c, place)								\
	(c = commands; c < commands + command_count; c++)	\
		for (place = c->place; place == c->place || place->at; place++)

static void wrong_kinds(struct owned *self)
{
	const struct command *c;
	const struct place *place;
	int kind;

	setup(self);
	for EACH_PLACE(c, place)
		for (kind = 0; kind < KINDS; kind++)
			if (kind != place->kind)
				refused(self, c, place, self->ours.handle[kind], EINVAL);
	finish(self);
}

static void no_objects(struct owned *self)
{
	static const uint32_t none[] = { 1000, 0x7fffffff, 0x80000000, UINT32_MAX };
	const struct command *c;
	const struct place *place;
	int i;

	setup(self);
	for EACH_PLACE(c, place)
		for (i = 0; i < 4; i++)
			refused(self, c, place, none[i], place->none);
	finish(self);
}

/* A handle is a number of the context that made the object. */
static void foreign(struct owned *self)
{
	const struct command *c;
	const struct place *place;

	setup(self);
	for EACH_PLACE(c, place)
		refused(self, c, place, self->theirs.handle[place->kind], place->none);
	finish(self);
}

/* The number of what is gone, which the object under way may have meanwhile. */
static void gone(struct owned *self)
{
	static struct made more;
	const struct command *c;
	const struct place *place;

	setup(self);
	make_in(&self->on, &more, self->ours.ctx);
	unmake(&more);
	for EACH_PLACE(c, place)
		refused(self, c, place, more.handle[place->kind], place->none);
	finish(self);
}

/* The command that ends an object of KIND, as a last word. */
static const struct command *end_of(enum kind kind)
{
	const struct command *c = commands + command_count;

	while (c-- > commands)
		if (c->makes == kind && c->fill == NULL)
			return c;
	return NULL;
}

/* With right handles they do what they are for; twice ended is once. */
static void right_ones(struct owned *self)
{
	const struct command *c, *last;
	struct request r;
	uint32_t made;
	int way;

	setup(self);
	for (c = commands; c < commands + command_count; c++) {
		for (way = 0; way < 2; way++) {
			if (c->makes != NONE && !c->fill)
				continue;
			begin_request(self, c, &r);
			expect_errno(c->name, ways[way](self, c, &r), c->err);
			if (c->makes == NONE)
				continue;
			made = r.answer[0];
			last = end_of(c->makes);
			begin_request(self, last, &r);
			set_handle(&r, last->place, made);
			expect_errno(last->name, ways[way](self, last, &r), 0);
			expect_errno(last->name, ways[!way](self, last, &r), ENOENT);
		}
	}
	finish(self);
}

/* ---- methods of the ioctl's own ---- */

/* An attribute that is a handle. */
struct named {
	uint16_t attr, kind;
};

static const struct method {
	uint16_t object, method;
	struct named named[5];
	/* An attribute for what is answered, or no more. */
	uint16_t answer, answer_len;
} methods[] = {
	{ UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, { { UVERBS_ATTR_DESTROY_PD_HANDLE, PD } }, 0, 0 },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, { { UVERBS_ATTR_DESTROY_MR_HANDLE, MR } }, 0, 0 },
	{ UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, { { UVERBS_ATTR_DESTROY_MW_HANDLE, MW } }, 0, 0 },
	{ UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, { { UVERBS_ATTR_DESTROY_AH_HANDLE, AH } }, 0, 0 },
	{ UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, { { UVERBS_ATTR_FREE_DM_HANDLE, DM } }, 0, 0 },
	{ UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY,
	  { { UVERBS_ATTR_DESTROY_XRCD_HANDLE, XRCD } }, 0, 0 },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, { { UVERBS_ATTR_DESTROY_CQ_HANDLE, CQ } },
	  UVERBS_ATTR_DESTROY_CQ_RESP, sizeof(struct ib_uverbs_destroy_cq_resp) },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, { { UVERBS_ATTR_DESTROY_QP_HANDLE, QP } },
	  UVERBS_ATTR_DESTROY_QP_RESP, sizeof(struct ib_uverbs_destroy_qp_resp) },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, { { UVERBS_ATTR_DESTROY_SRQ_HANDLE, SRQ } },
	  UVERBS_ATTR_DESTROY_SRQ_RESP, sizeof(struct ib_uverbs_destroy_srq_resp) },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, { { UVERBS_ATTR_QUERY_MR_HANDLE, MR } }, 0, 0 },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, { { UVERBS_ATTR_ADVISE_MR_PD_HANDLE, PD } }, 0, 0 },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG,
	  { { UVERBS_ATTR_REG_DM_MR_PD_HANDLE, PD }, { UVERBS_ATTR_REG_DM_MR_DM_HANDLE, DM } }, 0, 0 },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_REG_MR, { { UVERBS_ATTR_REG_MR_PD_HANDLE, PD } }, 0, 0 },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR,
	  { { UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, PD } }, 0, 0 },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE,
	  { { UVERBS_ATTR_CREATE_QP_PD_HANDLE, PD }, { UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, SRQ },
	    { UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, CQ }, { UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, CQ },
	    { UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, XRCD } }, 0, 0 },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE,
	  { { UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, PD }, { UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, CQ },
	    { UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, XRCD } }, 0, 0 },
};

#define EACH_NAMED(m, n)								\
	(m = methods; m < methods + sizeof(methods) / sizeof(methods[0]); m++)		\
		for (n = m->named; n < m->named + 5 && (n == m->named || n->attr); n++)

/* HANDLE in attribute N of method M, before all that is wrong behind it. */
static void refused_by_method(struct owned *self, const struct method *m, const struct named *n,
			      uint32_t handle, int err)
{
	uint32_t answer[4];
	struct raw raw;
	char what[80];

	snprintf(what, sizeof(what), "object %u, method %u, handle %u for a %s", m->object, m->method,
		 handle, kind_names[n->kind]);
	raw_begin_on(&raw, m->object, m->method);
	raw_attr(&raw, n->attr, 0, handle);
	if (m->answer_len)
		raw_attr(&raw, m->answer, m->answer_len, (uintptr_t)answer);
	expect_errno(what, raw_call(self->ours.ctx, &raw), err);
}

static void by_method(struct owned *self)
{
	const struct method *m;
	const struct named *n;
	int kind;

	setup(self);
	for EACH_NAMED(m, n) {
		for (kind = 0; kind < KINDS; kind++)
			if (kind != n->kind)
				refused_by_method(self, m, n, self->ours.handle[kind], EINVAL);
		refused_by_method(self, m, n, 1000, ENOENT);
		refused_by_method(self, m, n, UINT32_MAX, ENOENT);
		refused_by_method(self, m, n, self->theirs.handle[n->kind], ENOENT);
	}
	finish(self);
}

/* ---- what is around a command ---- */

/* The ioctl that says how many PDs there are, bent by BEND. */
static int bent(struct owned *self, void (*bend)(struct raw *raw))
{
	static uint64_t id = UVERBS_OBJECT_PD;
	static uint32_t list[256], total;
	struct raw raw;

	raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	raw_in(&raw, UVERBS_ATTR_INFO_OBJECT_ID, &id, 8);
	raw_attr(&raw, UVERBS_ATTR_INFO_TOTAL_HANDLES, 4, (uintptr_t)&total);
	raw_attr(&raw, UVERBS_ATTR_INFO_HANDLES_LIST, sizeof(list), (uintptr_t)list);
	raw.hdr.length = sizeof(raw.hdr) + 3 * sizeof(raw.attrs[0]);
	bend(&raw);
	return ioctl(self->ours.ctx->cmd_fd, RDMA_VERBS_IOCTL, &raw) ? errno : 0;
}

static void as_it_is(struct raw *raw) { (void)raw; }
static void other_driver(struct raw *raw) { raw->hdr.driver_id++; }
static void no_object(struct raw *raw) { raw->hdr.object_id = 0xfff; }
static void no_method(struct raw *raw) { raw->hdr.method_id = 0xfff; }
static void reserved_1(struct raw *raw) { raw->hdr.reserved1 = 1; }
static void reserved_2(struct raw *raw) { raw->hdr.reserved2 = 1; }
static void length_short(struct raw *raw) { raw->hdr.length -= 8; }
static void length_long(struct raw *raw) { raw->hdr.length += 8; }
static void no_length(struct raw *raw) { raw->hdr.length = 0; }
static void too_many(struct raw *raw) { raw->hdr.num_attrs = UINT16_MAX; }
static void one_less(struct raw *raw) { raw->hdr.num_attrs--; raw->hdr.length -= 16; }
static void unknown(struct raw *raw) { raw->attrs[2].attr_id = 0xff; }
static void twice(struct raw *raw) { raw->attrs[1] = raw->attrs[2]; }
static void attr_reserved(struct raw *raw) { raw->attrs[1].attr_data.reserved = 1; }
static void short_place(struct raw *raw) { raw->attrs[1].len = 2; }
static void no_place(struct raw *raw) { raw->attrs[2].data = 8; }

static void envelopes(struct owned *self)
{
	static const struct {
		void (*bend)(struct raw *raw);
		int err;
	} bends[] = {
		{ as_it_is, 0 }, { other_driver, EINVAL }, { no_object, EPROTONOSUPPORT },
		{ no_method, EPROTONOSUPPORT }, { reserved_1, EPROTONOSUPPORT },
		{ reserved_2, EPROTONOSUPPORT }, { length_short, EINVAL }, { length_long, EINVAL },
		{ no_length, EINVAL }, { too_many, EINVAL }, { one_less, EINVAL },
		{ unknown, EPROTONOSUPPORT }, { twice, EINVAL }, { attr_reserved, EINVAL },
		{ short_place, EINVAL }, { no_place, EFAULT },
	};
	struct ib_uverbs_cmd_hdr hdr = { .command = IB_USER_VERBS_CMD_DEALLOC_PD, .in_words = 3 };
	const struct command *c;
	struct request r;
	char what[32];
	unsigned int i;

	setup(self);
	for (i = 0; i < sizeof(bends) / sizeof(bends[0]); i++) {
		snprintf(what, sizeof(what), "bend %u", i);
		expect_errno(what, bent(self, bends[i].bend), bends[i].err);
	}
	/* Of each command, a header alone, and one that says less than comes. */
	for (c = commands; c < commands + command_count; c++) {
		memset(&r, 0, sizeof(r));
		r.hdr = (struct ib_uverbs_cmd_hdr){ c->number, 2, (c->out + c->driver_out) / 4 };
		CHECK(write(self->ours.ctx->cmd_fd, &r, 8) < 0);
		expect_errno(c->name, errno, ENOSPC);
		CHECK(write(self->ours.ctx->cmd_fd, &r, 8 + c->in) < 0);
		expect_errno(c->name, errno, EINVAL);
	}
	CHECK(write(self->ours.ctx->cmd_fd, &hdr, 4) < 0 && errno == EINVAL);
	CHECK(syscall(SYS_write, self->ours.ctx->cmd_fd, 8L, 12L) < 0 && errno == EFAULT);
	/* What processes do in their rings is no command. */
	hdr.in_words = 2;
	hdr.command = IB_USER_VERBS_CMD_POLL_CQ;
	CHECK(write(self->ours.ctx->cmd_fd, &hdr, 8) < 0);
	expect_errno("POLL_CQ", errno, EOPNOTSUPP);
	hdr.command = IB_USER_VERBS_CMD_POST_RECV;
	CHECK(write(self->ours.ctx->cmd_fd, &hdr, 8) < 0);
	expect_errno("POST_RECV", errno, EOPNOTSUPP);
	hdr.command = 0xff;
	CHECK(write(self->ours.ctx->cmd_fd, &hdr, 8) < 0);
	expect_errno("no command", errno, EOPNOTSUPP);
	finish(self);
}

static const CASES(struct owned) cases[] = {
	{ "right_handles", right_ones },
	{ "wrong_kinds", wrong_kinds },
	{ "no_objects", no_objects },
	{ "of_others", foreign },
	{ "gone", gone },
	{ "by_method", by_method },
	{ "envelopes", envelopes },
	{}
};

int main(int argc, char **argv)
{
	static struct owned self;

	return RUN_CASES(&self, cases, argc, argv);
}
