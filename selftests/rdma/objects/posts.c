// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug=long xroce
/*
 * POST_SEND and POST_SRQ_RECV as commands. (The library uses its rings and rings the
 * doorbell with these commands.) Lists of requests that are truncated, too long or
 * invalid, as ib_uverbs_post_send() and ib_uverbs_unmarshall_recv() of uverbs_cmd.c
 * check them; and valid lists, which are refused because a process posts into its ring
 * only. By both of the kernel's calls. See devices.h for the arguments.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "commands.h"

/* A command with its list. */
struct post {
	struct ib_uverbs_cmd_hdr hdr;
	uint8_t body[1024];
	/* Of BODY. */
	size_t len;
};

static uint32_t answer[4];

/* What is behind BODY's end may be no memory. */
static int post_by(struct owned *self, unsigned int way, uint32_t number, const struct post *p,
		   const void *from)
{
	struct raw raw;
	uint64_t n = number;
	size_t len = p->len + 8;

	if (way) {
		raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
		raw_in(&raw, UVERBS_ATTR_WRITE_CMD, &n, 8);
		raw_in(&raw, UVERBS_ATTR_CORE_IN, (const uint8_t *)from + 8, p->len);
		raw_attr(&raw, UVERBS_ATTR_CORE_OUT, 4, (uintptr_t)answer);
		return raw_call(self->ours.ctx, &raw);
	}
	return write(self->ours.ctx->cmd_fd, from, len) == (ssize_t)len ? 0 : errno;
}

static struct post send_of(uint32_t qp, uint32_t requests, uint32_t sges)
{
	struct post p = { .len = sizeof(struct ib_uverbs_post_send) };
	struct ib_uverbs_post_send *c = (void *)p.body;
	unsigned int i;

	c->response = (uintptr_t)answer;
	c->qp_handle = qp;
	c->wr_count = requests;
	c->sge_count = sges;
	c->wqe_size = sizeof(struct ib_uverbs_send_wr);
	for (i = 0; i < requests; i++)
		c->send_wr[i].opcode = IBV_WR_SEND;
	p.len += requests * sizeof(c->send_wr[0]) + sges * sizeof(struct ib_uverbs_sge);
	return p;
}

static struct post recv_of(uint32_t srq, uint32_t requests, uint32_t sges)
{
	struct post p = { .len = sizeof(struct ib_uverbs_post_srq_recv) };
	struct ib_uverbs_post_srq_recv *c = (void *)p.body;

	c->response = (uintptr_t)answer;
	c->srq_handle = srq;
	c->wr_count = requests;
	c->sge_count = sges;
	c->wqe_size = sizeof(struct ib_uverbs_recv_wr);
	p.len += requests * sizeof(c->recv[0]) + sges * sizeof(struct ib_uverbs_sge);
	return p;
}

static void gives_by(struct owned *self, const char *what, uint32_t number, struct post *p, int err)
{
	unsigned int way;
	char text[96];

	p->hdr = (struct ib_uverbs_cmd_hdr){ number, (p->len + 8) / 4, 1 };
	for (way = 0; way < 2; way++) {
		snprintf(text, sizeof(text), "%s, way %u", what, way);
		expect_errno(text, post_by(self, way, number, p, p), err);
	}
}

static void send_gives(struct owned *self, const char *what, struct post p, int err)
{
	gives_by(self, what, IB_USER_VERBS_CMD_POST_SEND, &p, err);
}

static void recv_gives(struct owned *self, const char *what, struct post p, int err)
{
	gives_by(self, what, IB_USER_VERBS_CMD_POST_SRQ_RECV, &p, err);
}

/* A connected pair's half, to post to without address handles. */
static struct ibv_qp *connected(struct owned *self)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp *qp;

	init.send_cq = init.recv_cq = self->ours.cq;
	CHECK((qp = ibv_create_qp(self->ours.pd, &init)));
	return qp;
}

/* The list reaches beyond the memory that there is. P's body must be longer than KNOWN. */
static void cut_by_memory(struct owned *self, const char *what, uint32_t number, struct post *p,
			  size_t known)
{
	uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *from = pages + 4096 - 8 - known;
	unsigned int way;

	CHECK(pages != MAP_FAILED && !mprotect(pages + 4096, 4096, PROT_NONE));
	p->hdr = (struct ib_uverbs_cmd_hdr){ number, (p->len + 8) / 4, 1 };
	memcpy(from, p, 8 + known);
	for (way = 0; way < 2; way++)
		expect_errno(what, post_by(self, way, number, p, from), EFAULT);
	CHECK(!munmap(pages, 8192));
}

static void sends(struct owned *self)
{
	static const uint32_t opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_SEND_WITH_INV,
	};
	struct ib_uverbs_post_send *c;
	struct ibv_qp *rc;
	struct post p;
	unsigned int i;

	begin_owned(self);
	rc = connected(self);
	send_gives(self, "the doorbell", send_of(rc->handle, 0, 0), 0);
#define SEND(member, value, err)							\
	do {										\
		p = send_of(rc->handle, 1, 1);						\
		c = (void *)p.body;							\
		c->member = (value);							\
		send_gives(self, #member " " #value, p, err);				\
	} while (0)
	SEND(wqe_size, sizeof(struct ib_uverbs_send_wr) - 1, EINVAL);
	SEND(wqe_size, 0, EINVAL);
	SEND(wqe_size, sizeof(struct ib_uverbs_send_wr) + 64, ENOSPC);
	SEND(wqe_size, UINT32_MAX, ENOSPC);
	SEND(wr_count, 2, ENOSPC);
	SEND(wr_count, UINT32_MAX, ENOSPC);
	SEND(sge_count, 2, ENOSPC);
	SEND(sge_count, UINT32_MAX, ENOSPC);
	SEND(send_wr[0].num_sge, 2, EINVAL);
	SEND(send_wr[0].num_sge, UINT32_MAX, EINVAL);
	SEND(qp_handle, 1000, ENOENT);
	SEND(qp_handle, self->ours.handle[SRQ], EINVAL);
	/* A size of requests that no memory is for, of none. */
	p = send_of(rc->handle, 0, 0);
	((struct ib_uverbs_post_send *)p.body)->wqe_size = UINT32_MAX;
	send_gives(self, "large requests", p, ENOMEM);
	/* More than is counted must be zero. */
	p = send_of(rc->handle, 1, 1);
	p.body[p.len + 7] = 1;
	p.len += 8;
	send_gives(self, "more behind it", p, EOPNOTSUPP);
	/* Two requests share the elements. */
	p = send_of(rc->handle, 2, 1);
	c = (void *)p.body;
	c->send_wr[0].num_sge = c->send_wr[1].num_sge = 1;
	send_gives(self, "an element too few", p, EINVAL);
	/* Opcodes: those that the command has go to the driver, which posts for no process. */
	for (i = 0; i < 40; i++)
		SEND(send_wr[0].opcode, i, EINVAL);
	SEND(send_wr[0].opcode, UINT32_MAX, EINVAL);
	for (i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++)
		SEND(send_wr[0].opcode, opcodes[i], EINVAL);
	/* Which request is the bad one. */
	p = send_of(rc->handle, 2, 0);
	answer[0] = 77;
	p.hdr = (struct ib_uverbs_cmd_hdr){ IB_USER_VERBS_CMD_POST_SEND, (p.len + 8) / 4, 1 };
	expect_errno("two", post_by(self, 0, IB_USER_VERBS_CMD_POST_SEND, &p, &p), EINVAL);
	CHECK(answer[0] == 1);
	/* Datagrams are sent, to address handles of the process. */
	p = send_of(self->ours.handle[QP], 1, 0);
	c = (void *)p.body;
	c->send_wr[0].opcode = IBV_WR_RDMA_READ;
	c->send_wr[0].wr.ud.ah = self->ours.handle[AH];
	send_gives(self, "READ of datagrams", p, EINVAL);
	c->send_wr[0].opcode = IBV_WR_SEND;
	c->send_wr[0].wr.ud.ah = 1000;
	send_gives(self, "no address", p, ENOENT);
	c->send_wr[0].wr.ud.ah = self->ours.handle[MR];
	send_gives(self, "a region for an address", p, EINVAL);
	/* No memory. */
	p = send_of(rc->handle, 1, 1);
	cut_by_memory(self, "no command", IB_USER_VERBS_CMD_POST_SEND, &p, 8);
	cut_by_memory(self, "no request", IB_USER_VERBS_CMD_POST_SEND, &p,
		      sizeof(struct ib_uverbs_post_send));
	((struct ib_uverbs_post_send *)p.body)->send_wr[0].num_sge = 1;
	cut_by_memory(self, "no element", IB_USER_VERBS_CMD_POST_SEND, &p,
		      sizeof(struct ib_uverbs_post_send) + sizeof(struct ib_uverbs_send_wr));
	CHECK(!ibv_destroy_qp(rc));
	end_owned(self);
}

static void receives(struct owned *self)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 }, .srq_type = IBV_SRQT_TM,
		.tm_cap = { .max_num_tags = 4, .max_ops = 4 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
	};
	struct ib_uverbs_post_srq_recv *c;
	struct ibv_srq *tagged;
	struct post p;

	begin_owned(self);
	init.pd = self->ours.pd;
	init.cq = self->ours.cq;
	CHECK((tagged = ibv_create_srq_ex(self->ours.ctx, &init)));
	/* The doorbell is for operations on a matching list. */
	recv_gives(self, "the doorbell", recv_of(tagged->handle, 0, 0), 0);
	recv_gives(self, "no doorbell", recv_of(self->ours.handle[SRQ], 0, 0), EINVAL);
#define RECV(member, value, err)							\
	do {										\
		p = recv_of(tagged->handle, 1, 1);					\
		c = (void *)p.body;							\
		c->member = (value);							\
		recv_gives(self, #member " " #value, p, err);				\
	} while (0)
	RECV(wqe_size, sizeof(struct ib_uverbs_recv_wr) - 1, EINVAL);
	RECV(wqe_size, 0, EINVAL);
	RECV(wqe_size, UINT32_MAX, ENOSPC);
	RECV(wr_count, 2, ENOSPC);
	RECV(wr_count, UINT32_MAX, ENOSPC);
	RECV(sge_count, 2, ENOSPC);
	RECV(sge_count, UINT32_MAX, ENOSPC);
	RECV(recv[0].num_sge, 2, EINVAL);
	RECV(recv[0].num_sge, UINT32_MAX, EINVAL);
	RECV(srq_handle, 1000, ENOENT);
	RECV(srq_handle, self->ours.handle[QP], EINVAL);
	/* A whole one: the ring is the place for it. */
	RECV(recv[0].num_sge, 1, EINVAL);
	RECV(srq_handle, self->ours.handle[SRQ], EINVAL);
	p = recv_of(tagged->handle, 0, 0);
	((struct ib_uverbs_post_srq_recv *)p.body)->wqe_size = UINT32_MAX;
	recv_gives(self, "large requests", p, ENOMEM);
	p = recv_of(tagged->handle, 1, 1);
	p.body[p.len + 7] = 1;
	p.len += 8;
	recv_gives(self, "more behind it", p, EOPNOTSUPP);
	p = recv_of(tagged->handle, 1, 1);
	cut_by_memory(self, "no command", IB_USER_VERBS_CMD_POST_SRQ_RECV, &p, 8);
	cut_by_memory(self, "no request", IB_USER_VERBS_CMD_POST_SRQ_RECV, &p,
		      sizeof(struct ib_uverbs_post_srq_recv));
	((struct ib_uverbs_post_srq_recv *)p.body)->recv[0].num_sge = 1;
	cut_by_memory(self, "no element", IB_USER_VERBS_CMD_POST_SRQ_RECV, &p,
		      sizeof(struct ib_uverbs_post_srq_recv) + sizeof(struct ib_uverbs_recv_wr));
	CHECK(!ibv_destroy_srq(tagged));
	end_owned(self);
}

static const CASES(struct owned) cases[] = {
	{ "sends", sends },
	{ "receives", receives },
	{}
};

int main(int argc, char **argv)
{
	static struct owned self;

	return RUN_CASES(&self, cases, argc, argv);
}
