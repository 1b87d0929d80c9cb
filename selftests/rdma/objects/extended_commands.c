// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug=long xroce
/*
 * The extended commands of write(): their header, as verify_hdr() of uverbs_main.c
 * checks it, their masks, reserved members and handles; and commands that the driver
 * does not have. The library uses hardly any of them. No object is created. See
 * devices.h for the arguments.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "commands.h"
#include "counted.h"

#define EXTENDED(name) #name, IB_USER_VERBS_EX_CMD_##name | IB_USER_VERBS_CMD_FLAG_EXTENDED
#define EX_IN(command) sizeof(struct ib_uverbs_ex_##command)
#define EX_OUT(command) sizeof(struct ib_uverbs_ex_##command##_resp)
#define EX_AT(command, member) offsetof(struct ib_uverbs_ex_##command, member)
#define EX_HANDLE(command, member, kind) { EX_AT(command, member), kind, ENOENT }

static void fill_ex_pair(struct owned *self, void *request)
{
	struct ib_uverbs_ex_create_qp *r = request;

	r->qp_type = IBV_QPT_RC;
	r->is_srq = 1;
	r->max_send_wr = r->max_send_sge = 1;
}

static void fill_ex_cq(struct owned *self, void *request)
{
	struct ib_uverbs_ex_create_cq *r = request;

	r->cqe = 4;
	r->comp_channel = -1;
}

static void fill_nothing(struct owned *self, void *request)
{
}

static void fill_moderation(struct owned *self, void *request)
{
	((struct ib_uverbs_ex_modify_cq *)request)->attr_mask = IBV_CQ_ATTR_MODERATE;
}

enum { PAIR_CMD, CQ_CMD, DEVICE_CMD, MODIFY_PAIR, MODERATE, COMMANDS };

static const struct extended {
	struct command c;
	/* Members that must be zero. */
	struct {
		uint16_t at, len;
	} zero[2];
} extended[COMMANDS] = {
	[PAIR_CMD] = { { EXTENDED(CREATE_QP), fill_ex_pair, EX_IN(create_qp), EX_OUT(create_qp), 8, 56,
			 { EX_HANDLE(create_qp, pd_handle, PD), EX_HANDLE(create_qp, send_cq_handle, CQ),
			   EX_HANDLE(create_qp, recv_cq_handle, CQ),
			   EX_HANDLE(create_qp, srq_handle, SRQ) }, QP, 0 },
		       { { EX_AT(create_qp, reserved), 1 }, { EX_AT(create_qp, comp_mask), 4 } } },
	[CQ_CMD] = { { EXTENDED(CREATE_CQ), fill_ex_cq, EX_IN(create_cq), EX_OUT(create_cq), 8, 24,
		       {}, CQ, 0 },
		     { { EX_AT(create_cq, comp_mask), 4 }, { EX_AT(create_cq, reserved), 4 } } },
	[DEVICE_CMD] = { { EXTENDED(QUERY_DEVICE), fill_nothing, EX_IN(query_device),
			   sizeof(struct ib_uverbs_ex_query_device_resp), 0, 0, {}, NONE, 0 },
			 { { EX_AT(query_device, comp_mask), 4 }, { EX_AT(query_device, reserved), 4 } } },
	[MODIFY_PAIR] = { { EXTENDED(MODIFY_QP), fill_nothing, EX_IN(modify_qp), EX_OUT(modify_qp), 0, 0,
			    { EX_HANDLE(modify_qp, base.qp_handle, QP) }, NONE, 0 },
			  {} },
	[MODERATE] = { { EXTENDED(MODIFY_CQ), fill_moderation, EX_IN(modify_cq), 0, 0, 0,
			 { EX_HANDLE(modify_cq, cq_handle, CQ) }, NONE, 0 },
		       { { EX_AT(modify_cq, reserved), 4 } } },
};

static uint8_t answer_room[1024] __attribute__((aligned(8)));

/* What write() gets; the request is of whole 8 bytes. */
struct attempt {
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		uint8_t body[512];
	} cmd;
	size_t len;
};

#define WORDS(bytes) (((bytes) + 7) / 8)

static struct attempt attempt_of(struct owned *self, int which)
{
	const struct command *c = &extended[which].c;
	const struct place *place;
	struct attempt a;

	memset(&a, 0, sizeof(a));
	a.cmd.hdr = (struct ib_uverbs_cmd_hdr){ c->number, WORDS(c->in), WORDS(c->out) };
	a.cmd.ex.provider_in_words = WORDS(c->driver_in);
	a.cmd.ex.provider_out_words = WORDS(c->driver_out);
	if (c->out)
		a.cmd.ex.response = (uintptr_t)answer_room;
	c->fill(self, a.cmd.body);
	for (place = c->place; place->none; place++)
		memcpy(a.cmd.body + place->at, &self->ours.handle[place->kind], 4);
	a.len = 24 + 8 * (WORDS(c->in) + WORDS(c->driver_in));
	return a;
}

static int carried(struct owned *self, const struct attempt *a)
{
	return write(self->ours.ctx->cmd_fd, &a->cmd, a->len) == (ssize_t)a->len ? 0 : errno;
}

/* By the ioctl that carries commands; it has no header. */
static int carried_by_ioctl(struct owned *self, int which, const struct attempt *a, size_t in,
			    size_t out)
{
	const struct command *c = &extended[which].c;
	uint64_t number = c->number;
	struct raw raw;

	raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	raw_in(&raw, UVERBS_ATTR_WRITE_CMD, &number, 8);
	raw_in(&raw, UVERBS_ATTR_CORE_IN, a->cmd.body, in);
	if (out)
		raw_attr(&raw, UVERBS_ATTR_CORE_OUT, out, (uintptr_t)answer_room);
	if (c->driver_in)
		raw_in(&raw, UVERBS_ATTR_UHW_IN, a->cmd.body + 8 * WORDS(c->in), c->driver_in);
	if (c->driver_out)
		raw_attr(&raw, UVERBS_ATTR_UHW_OUT, c->driver_out, (uintptr_t)answer_room + c->out);
	return raw_call(self->ours.ctx, &raw);
}

static void refuses(struct owned *self, int which, const char *what, const struct attempt *a,
		    int err)
{
	int before = objects(self);
	char text[128];

	snprintf(text, sizeof(text), "EX_%s, %s", extended[which].c.name, what);
	expect_errno(text, carried(self, a), err);
	CHECK(objects(self) == before);
}

static void refuses_both(struct owned *self, int which, const char *what, const struct attempt *a,
			 int err)
{
	const struct command *c = &extended[which].c;
	int before = objects(self);
	char text[128];

	refuses(self, which, what, a, err);
	snprintf(text, sizeof(text), "EX_%s by ioctl, %s", c->name, what);
	expect_errno(text, carried_by_ioctl(self, which, a, c->in, c->out), err);
	CHECK(objects(self) == before);
}

/* Without a fault they do what they are for; what they make goes with the file. */
static void as_they_are(struct owned *self)
{
	struct attempt a;
	int i;

	begin_owned(self);
	for (i = 0; i < COMMANDS; i++) {
		uint32_t handle;
		struct raw raw;
		uint32_t room[4];

		a = attempt_of(self, i);
		expect_errno(extended[i].c.name, carried(self, &a), 0);
		if (extended[i].c.makes == NONE) {
			expect_errno(extended[i].c.name,
				     carried_by_ioctl(self, i, &a, extended[i].c.in,
						      extended[i].c.out), 0);
			continue;
		}
		memcpy(&handle, answer_room, 4);
		raw_begin_on(&raw, i == PAIR_CMD ? UVERBS_OBJECT_QP : UVERBS_OBJECT_CQ,
			     i == PAIR_CMD ? UVERBS_METHOD_QP_DESTROY : UVERBS_METHOD_CQ_DESTROY);
		raw_attr(&raw, 0, 0, handle);
		raw_attr(&raw, 1, i == PAIR_CMD ? 4 : 8, (uintptr_t)room);
		expect_errno("destroy", raw_call(self->ours.ctx, &raw), 0);
	}
	end_owned(self);
}

static void headers(struct owned *self)
{
	uint8_t *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct command *c;
	struct attempt a;
	int i;

	CHECK(none != MAP_FAILED);
	begin_owned(self);
	for (i = 0; i < COMMANDS; i++) {
		c = &extended[i].c;
		a = attempt_of(self, i);
		a.len = 8;
		refuses(self, i, "half a header", &a, EINVAL);
		a.len = 23;
		refuses(self, i, "most of a header", &a, EINVAL);
		a = attempt_of(self, i);
		a.cmd.hdr.in_words++;
		refuses(self, i, "less than the header says", &a, EINVAL);
		a = attempt_of(self, i);
		a.cmd.hdr.in_words--;
		refuses(self, i, "more than the header says", &a, EINVAL);
		a = attempt_of(self, i);
		a.cmd.ex.provider_in_words++;
		refuses(self, i, "less for the driver than the header says", &a, EINVAL);
		a = attempt_of(self, i);
		a.len++;
		refuses(self, i, "a byte more", &a, EINVAL);
		a = attempt_of(self, i);
		a.cmd.ex.cmd_hdr_reserved = 1;
		refuses(self, i, "reserved", &a, EINVAL);
		if (!c->out) {
			a = attempt_of(self, i);
			a.cmd.hdr.out_words = 1;
			refuses(self, i, "room for an answer nowhere", &a, EINVAL);
			continue;
		}
		a = attempt_of(self, i);
		a.cmd.hdr.out_words = a.cmd.ex.provider_out_words = 0;
		refuses(self, i, "no room for the answer", &a, EINVAL);
		a = attempt_of(self, i);
		a.cmd.ex.response = 0;
		refuses(self, i, "room for an answer nowhere", &a, EINVAL);
		a.cmd.ex.response = UINT64_MAX - 4095;
		refuses(self, i, "an answer into the kernel", &a, EFAULT);
		a.cmd.ex.response = (uintptr_t)none;
		refuses(self, i, "an answer into nothing", &a, EFAULT);
	}
	CHECK(!munmap(none, 4096));
	end_owned(self);
}

/*
 * uapi_create_write() gives extended commands no least size, so that what is missing of a
 * request is zero, and an answer is cut to the room that there is.
 */
static void short_requests(struct owned *self)
{
	static const struct {
		int which, words, err;
	} shorter[] = {
		/* Of no type. */
		{ PAIR_CMD, 0, EINVAL }, { PAIR_CMD, 5, EINVAL },
		/* For no completions; with the channel of descriptor 0, which is none. */
		{ CQ_CMD, 0, EINVAL }, { CQ_CMD, 1, EINVAL }, { CQ_CMD, 2, EBADF },
		{ DEVICE_CMD, 0, 0 },
		/* Without a mask; without numbers. */
		{ MODERATE, 0, EINVAL }, { MODERATE, 1, 0 },
	};
	struct attempt a;
	unsigned int i;

	begin_owned(self);
	for (i = 0; i < sizeof(shorter) / sizeof(shorter[0]); i++) {
		a = attempt_of(self, shorter[i].which);
		memset(a.cmd.body + 8 * shorter[i].words, 0,
		       sizeof(a.cmd.body) - 8 * shorter[i].words);
		a.len -= 8 * (a.cmd.hdr.in_words - shorter[i].words);
		a.cmd.hdr.in_words = shorter[i].words;
		refuses(self, shorter[i].which, "shorter", &a, shorter[i].err);
	}
	a = attempt_of(self, DEVICE_CMD);
	a.cmd.hdr.out_words = 1;
	memset(answer_room, 0xff, sizeof(answer_room));
	refuses(self, DEVICE_CMD, "a short answer", &a, 0);
	CHECK(answer_room[8] == 0xff);
	end_owned(self);
}

/* uverbs_request(): what comes behind what the kernel knows must be zero. */
static void long_requests(struct owned *self)
{
	struct attempt a;
	int i;

	begin_owned(self);
	for (i = 0; i < COMMANDS; i++) {
		const struct command *c = &extended[i].c;
		size_t end = 8 * WORDS(c->in);

		a = attempt_of(self, i);
		memmove(a.cmd.body + end + 8, a.cmd.body + end, c->driver_in);
		memset(a.cmd.body + end, 0, 8);
		a.cmd.hdr.in_words++;
		a.len += 8;
		a.cmd.body[end + 7] = 1;
		refuses(self, i, "too long", &a, EOPNOTSUPP);
		if (c->makes != NONE)
			continue;
		a.cmd.body[end + 7] = 0;
		expect_errno(c->name, carried(self, &a), 0);
	}
	end_owned(self);
}

static void members(struct owned *self)
{
	const uint32_t known = IB_UVERBS_CREATE_QP_MASK_IND_TABLE;
	struct ib_uverbs_ex_create_qp *pair;
	struct ib_uverbs_ex_create_cq *cq;
	struct ib_uverbs_ex_modify_cq *moderation;
	struct ib_uverbs_ex_modify_qp *modify;
	struct attempt a;
	int i, z, bit;

	begin_owned(self);
	for (i = 0; i < COMMANDS; i++)
		for (z = 0; z < 2; z++)
			for (bit = 0; bit < 8 * extended[i].zero[z].len; bit++) {
				uint32_t mask = 1u << bit;

				if (i == PAIR_CMD && z == 1 && mask == known)
					continue;
				a = attempt_of(self, i);
				memcpy(a.cmd.body + extended[i].zero[z].at, &mask,
				       extended[i].zero[z].len);
				refuses_both(self, i, "a reserved bit", &a, EINVAL);
			}
	/* There are no such tables: the core has no kind of object for the handle. */
	a = attempt_of(self, PAIR_CMD);
	pair = (void *)a.cmd.body;
	pair->comp_mask = known;
	refuses_both(self, PAIR_CMD, "a table", &a, EINVAL);
	/* Bits 1 to 4 and 8 to 11 the core knows (create_qp() of uverbs_cmd.c); the driver none. */
	for (bit = 0; bit < 32; bit++) {
		a = attempt_of(self, PAIR_CMD);
		pair->create_flags = 1u << bit;
		refuses_both(self, PAIR_CMD, "a flag", &a, 0xf1e & 1u << bit ? EOPNOTSUPP : EINVAL);
	}
	a = attempt_of(self, PAIR_CMD);
	pair->qp_type = 0;
	refuses_both(self, PAIR_CMD, "type SMI", &a, EINVAL);
	pair->qp_type = 255;
	refuses_both(self, PAIR_CMD, "type DRIVER", &a, EOPNOTSUPP);

	a = attempt_of(self, CQ_CMD);
	cq = (void *)a.cmd.body;
	cq->cqe = 0;
	refuses_both(self, CQ_CMD, "no completions", &a, EINVAL);
	cq->cqe = UINT32_MAX;
	refuses_both(self, CQ_CMD, "too many completions", &a, EINVAL);
	a = attempt_of(self, CQ_CMD);
	cq->comp_vector = 1 << 20;
	refuses_both(self, CQ_CMD, "no such vector", &a, EINVAL);
	a = attempt_of(self, CQ_CMD);
	cq->comp_channel = 987;
	refuses_both(self, CQ_CMD, "a closed descriptor", &a, EBADF);
	/* The core takes any; ours refuses as mlx5 does. */
	for (bit = 1; bit < 32; bit++) {
		a = attempt_of(self, CQ_CMD);
		cq->flags = 1u << bit;
		refuses_both(self, CQ_CMD, "a flag", &a, EOPNOTSUPP);
	}

	/* ib_uverbs_ex_modify_cq() */
	a = attempt_of(self, MODERATE);
	moderation = (void *)a.cmd.body;
	moderation->attr_mask = 0;
	refuses_both(self, MODERATE, "no mask", &a, EINVAL);
	for (bit = 1; bit < 32; bit++) {
		moderation->attr_mask = 1u << bit;
		refuses_both(self, MODERATE, "a mask", &a, EOPNOTSUPP);
	}
	moderation->attr_mask = IBV_CQ_ATTR_MODERATE;
	moderation->attr.cq_count = moderation->attr.cq_period = UINT16_MAX;
	refuses_both(self, MODERATE, "beyond what the device says", &a, EINVAL);

	/* Bits 21 to 24 are others' or none's; 25 is a rate, which the driver has not. */
	for (bit = 21; bit < 32; bit++) {
		a = attempt_of(self, MODIFY_PAIR);
		modify = (void *)a.cmd.body;
		modify->base.attr_mask = 1u << bit;
		refuses_both(self, MODIFY_PAIR, "a mask", &a, EOPNOTSUPP);
	}
	end_owned(self);
}

static void handles(struct owned *self)
{
	const struct place *place;
	struct attempt a;
	int i, kind;

	begin_owned(self);
	for (i = 0; i < COMMANDS; i++)
		for (place = extended[i].c.place; place->none; place++) {
			static const uint32_t nothing[] = { 1000, 0x80000000, UINT32_MAX };

			for (kind = 0; kind < 3 + 1; kind++) {
				uint32_t handle = kind < 3 ? nothing[kind] :
						  self->theirs.handle[place->kind];

				a = attempt_of(self, i);
				memcpy(a.cmd.body + place->at, &handle, 4);
				refuses_both(self, i, "a handle of nothing", &a, ENOENT);
			}
			for (kind = 0; kind < KINDS; kind++) {
				if (kind == place->kind)
					continue;
				a = attempt_of(self, i);
				memcpy(a.cmd.body + place->at, &self->ours.handle[kind], 4);
				refuses_both(self, i, "a handle of another kind", &a, EINVAL);
			}
		}
	end_owned(self);
}

/* Commands that other drivers have, and numbers that nobody has. */
static void not_had(struct owned *self)
{
	static const uint32_t none[] = {
		IB_USER_VERBS_EX_CMD_CREATE_FLOW, IB_USER_VERBS_EX_CMD_DESTROY_FLOW,
		IB_USER_VERBS_EX_CMD_CREATE_WQ, IB_USER_VERBS_EX_CMD_MODIFY_WQ,
		IB_USER_VERBS_EX_CMD_DESTROY_WQ, IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL,
		IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL,
		IB_USER_VERBS_CMD_REG_MR, IB_USER_VERBS_CMD_ALLOC_PD, 0xff,
	};
	struct attempt a;
	uint64_t number;
	unsigned int i;
	struct raw raw;
	int bit;

	begin_owned(self);
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		memset(&a, 0, sizeof(a));
		a.cmd.hdr.command = none[i] | IB_USER_VERBS_CMD_FLAG_EXTENDED;
		/* What stands for a command that there is not is none of the extended ones. */
		a.cmd.hdr.in_words = 16;
		a.len = 16 * 4;
		expect_errno("no command", carried(self, &a), EOPNOTSUPP);
		number = a.cmd.hdr.command;
		raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
		raw_in(&raw, UVERBS_ATTR_WRITE_CMD, &number, 8);
		raw_in(&raw, UVERBS_ATTR_CORE_IN, a.cmd.body, 64);
		expect_errno("no command, by ioctl", raw_call(self->ours.ctx, &raw), EOPNOTSUPP);
	}
	/* uapi_get_method(): bits that are neither a number nor the one that says extended. */
	for (bit = 8; bit < 31; bit++) {
		a = attempt_of(self, DEVICE_CMD);
		a.cmd.hdr.command |= 1u << bit;
		expect_errno("no flag", carried(self, &a), EINVAL);
	}
	end_owned(self);
}

static const CASES(struct owned) cases[] = {
	{ "as_they_are", as_they_are },
	{ "headers", headers },
	{ "short_requests", short_requests },
	{ "long_requests", long_requests },
	{ "members", members },
	{ "handles", handles },
	{ "not_had", not_had },
	{}
};

int main(int argc, char **argv)
{
	static struct owned self;

	return RUN_CASES(&self, cases, argc, argv);
}
