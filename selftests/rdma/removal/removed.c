// SPDX-License-Identifier: GPL-2.0
/*
 * What a process with an open device can still do when the device is removed, as with
 * "del" of rdma-link(8): each command by both of the kernel's calls, and what the
 * library does without the kernel.
 *
 * The core refuses to look up or create anything in such a file, EIO
 * (rdma_lookup_get_uobject(), ib_uverbs_get_ucontext_file()). It has ended the objects,
 * but keeps their handles until the process destroys them. Destroying succeeds,
 * whatever used the objects (uverbs_destroy_uobject()). Methods of the driver are gone
 * (uverbs_disassociate_api_pre()).
 *
 * Each case removes the device. See devices.h for the arguments.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "asleep.h"
#include "bare_commands.h"
#include "both.h"

static void take_away(struct both *self)
{
	char command[64];

	snprintf(command, sizeof(command), "rdma link del %s", self->owned.on.name[0]);
	CHECK(!system(command));
}

/*
 * The command destroys something; in commands.h, those with nothing to fill in do, but for a few.
 */
static int destroys(const struct command *c)
{
	switch (c->number) {
	case IB_USER_VERBS_CMD_DEALLOC_PD:
	case IB_USER_VERBS_CMD_DEREG_MR:
	case IB_USER_VERBS_CMD_DEALLOC_MW:
	case IB_USER_VERBS_CMD_DESTROY_AH:
	case IB_USER_VERBS_CMD_DESTROY_QP:
	case IB_USER_VERBS_CMD_DESTROY_SRQ:
	case IB_USER_VERBS_CMD_DESTROY_CQ:
	case IB_USER_VERBS_CMD_CLOSE_XRCD:
		return 1;
	}
	return 0;
}

#define EACH_COMMAND(c) \
	(c = commands; c < commands + command_count; c++)

/* With handles from M, in its file, by call WAY. */
static int run(struct both *self, const struct command *c, const struct made *m, unsigned int way)
{
	struct ibv_context *ctx = self->owned.ours.ctx;
	const struct place *place;
	struct request r;
	int err;

	begin_request(&self->owned, c, &r);
	for (place = c->place; place == c->place || place->at; place++)
		set_handle(&r, place, m->handle[place->kind]);
	self->owned.ours.ctx = m->ctx;
	err = ways[way](&self->owned, c, &r);
	self->owned.ours.ctx = ctx;
	return err;
}

static void close_made(struct made *m)
{
	int i;

	for (i = 0; i < FILLERS; i++)
		if (m->filler[i])
			CHECK(!ibv_dealloc_pd(m->filler[i]));
	CHECK(!ibv_close_device(m->ctx));
}

static void all_commands(struct both *self)
{
	struct request r;
	const struct command *c;
	unsigned int way;
	char what[64];

	make_all(&self->owned.on, &self->owned.ours, 0);
	make_all(&self->owned.on, &self->owned.theirs, FILLERS);
	take_away(self);
	for (way = 0; way < 2; way++) {
		for EACH_COMMAND(c) {
			snprintf(what, sizeof(what), "%s, way %u", c->name, way);
			if (destroys(c))
				continue;
			expect_errno(what, run(self, c, &self->owned.ours, way), EIO);
			/* What names nothing names nothing. */
			begin_request(&self->owned, c, &r);
			if (c->makes != NONE || c->place[0].none != ENOENT)
				continue;
			set_handle(&r, c->place, 1000);
			expect_errno(what, ways[way](&self->owned, c, &r), ENOENT);
		}
		expect_of_bare(&self->owned, way, EIO);
	}
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->owned.ours.ctx->cmd_fd,
		   4096) == MAP_FAILED);
	expect_errno("mmap", errno, EIO);
	/* Domains and queues that were in use go first, as well as last; one call each. */
	for EACH_COMMAND(c) {
		if (!destroys(c))
			continue;
		expect_errno(c->name, run(self, c, &self->owned.ours, 0), 0);
		expect_errno(c->name, run(self, c, &self->owned.ours, 0), ENOENT);
		expect_errno(c->name, run(self, c, &self->owned.theirs, 1), 0);
		expect_errno(c->name, run(self, c, &self->owned.theirs, 1), ENOENT);
	}
	CHECK(!ibv_free_dm(self->owned.ours.dm) && !ibv_free_dm(self->owned.theirs.dm));
	close_made(&self->owned.ours);
	close_made(&self->owned.theirs);
}

/* Methods of the ioctl: the core's and the driver's. */
static void methods(struct both *self)
{
	uint64_t length = 4096, id = UVERBS_OBJECT_PD;
	uint32_t alignment = 0, list[64], total = 0, qpn = 1;
	struct raw raw;

	make_all(&self->owned.on, &self->owned.ours, 0);
	take_away(self);
	raw_begin_on(&raw, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
	raw_attr(&raw, UVERBS_ATTR_ALLOC_DM_HANDLE, 0, 0);
	raw_in(&raw, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, 8);
	raw_in(&raw, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &alignment, 4);
	expect_errno("DM_ALLOC", raw_call(self->owned.ours.ctx, &raw), EIO);
	raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
	raw_attr(&raw, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4, (uintptr_t)&total);
	expect_errno("QUERY_CONTEXT", raw_call(self->owned.ours.ctx, &raw), EIO);
	raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	expect_errno("GET_CONTEXT", raw_call(self->owned.ours.ctx, &raw), EIO);
	raw_begin(&raw, XROCE_METHOD_RCV_QP_QUERY);
	raw_attr(&raw, XROCE_ATTR_RCV_QP_XRCD, 0, self->owned.ours.handle[XRCD]);
	raw_attr(&raw, XROCE_ATTR_RCV_QP_QPN, 4, (uintptr_t)&qpn);
	expect_errno("RCV_QP_QUERY", raw_call(self->owned.ours.ctx, &raw), EIO);
	/* None is left to list. */
	raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	raw_in(&raw, UVERBS_ATTR_INFO_OBJECT_ID, &id, 8);
	raw_attr(&raw, UVERBS_ATTR_INFO_TOTAL_HANDLES, 4, (uintptr_t)&total);
	raw_attr(&raw, UVERBS_ATTR_INFO_HANDLES_LIST, sizeof(list), (uintptr_t)list);
	expect_errno("INFO_HANDLES", raw_call(self->owned.ours.ctx, &raw), 0);
	CHECK(!total);
	unmake(&self->owned.ours);
	close_made(&self->owned.ours);
}

/* The library's own: what it posts and polls without the kernel, and what it asks it for. */
static void library(struct both *self)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_poll_cq_attr poll = {};
	struct ibv_cq_init_attr_ex ex = { .cqe = 4 };
	struct ibv_async_event ev;
	struct ibv_recv_wr *bad_recv, recv = {};
	struct ibv_send_wr *bad_send, send = { .opcode = IBV_WR_SEND };
	struct ibv_ah_attr to;
	struct ibv_port_attr port;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct ibv_wc wc;

	make_pair(&self->pair);
	CHECK((cq = ibv_create_cq_ex(self->pair.a.ctx, &ex)));
	CHECK((srq = ibv_create_srq(self->pair.a.pd, &srq_init)));
	take_away(self);
	CHECK(next_event(self->pair.a.ctx, IBV_EVENT_DEVICE_FATAL, &ev));
	ibv_ack_async_event(&ev);
	RETURNS(EIO, ibv_post_send(self->pair.a.qp, &send, &bad_send));
	CHECK(bad_send == &send);
	RETURNS(EIO, ibv_post_recv(self->pair.a.qp, &recv, &bad_recv));
	CHECK(bad_recv == &recv);
	RETURNS(EIO, ibv_post_srq_recv(srq, &recv, &bad_recv));
	CHECK(bad_recv == &recv);
	CHECK(ibv_poll_cq(self->pair.a.cq, 1, &wc) < 0);
	RETURNS(EIO, ibv_start_poll(cq, &poll));
	REFUSED(EIO, ibv_alloc_pd(self->pair.a.ctx));
	REFUSED(EIO, ibv_reg_mr(self->pair.a.pd, self->pair.a.buf, 4096, 0));
	REFUSED(EIO, ibv_create_cq(self->pair.a.ctx, 4, NULL, NULL, 0));
	REFUSED(EIO, ibv_create_srq(self->pair.a.pd, &srq_init));
	REFUSED(EIO, ibv_alloc_mw(self->pair.a.pd, IBV_MW_TYPE_2));
	REFUSED(EIO, ibv_create_comp_channel(self->pair.a.ctx));
	to = address_of(&self->owned.on, &self->pair.a.gid);
	REFUSED(EIO, ibv_create_ah(self->pair.a.pd, &to));
	RETURNS(EIO, ibv_query_port(self->pair.a.ctx, 1, &port));
	RETURNS(EIO, ibv_resize_cq(self->pair.a.cq, 500));
	CHECK(ibv_rereg_mr(self->pair.a.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) ==
	      IBV_REREG_MR_ERR_CMD);
	/* Everything can go. */
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) && !ibv_destroy_srq(srq));
	free_pair(&self->pair);
}

/* Ranges of 4 GiB less a page: hours of prefetching. */
#define RANGES 1000
#define RANGE 0xfffff000u

/* A thread that has all of a range prefetched again and again, in one call. */
static void *prefetch(void *arg)
{
	static struct ibv_sge list[RANGES];
	struct ibv_mr *mr = arg;
	int i;

	for (i = 0; i < RANGES; i++)
		list[i] = (struct ibv_sge) { (uintptr_t)mr->addr, RANGE, mr->lkey };
	RETURNS(EIO, ibv_advise_mr(mr->pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
				   IBV_ADVISE_MR_FLAG_FLUSH, list, RANGES));
	return NULL;
}

/* The device does not wait for a command that takes long. */
static void meanwhile(struct both *self)
{
	unsigned char is_there = 0;
	struct ibv_mr *mr;
	pthread_t thread;
	void *p;

	make_pair(&self->pair);
	p = mmap(NULL, RANGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(p != MAP_FAILED);
	CHECK((mr = ibv_reg_mr(self->pair.a.pd, p, RANGE,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND)));
	CHECK(!pthread_create(&thread, NULL, prefetch, mr));
	while (!(is_there & 1))
		CHECK(!mincore(p, 1, &is_there));
	take_away(self);
	CHECK(!pthread_join(thread, NULL));
	CHECK(!ibv_dereg_mr(mr) && !munmap(p, RANGE));
	free_pair(&self->pair);
}

#define WAITERS 8

/* Calls METHOD for the receive QP *QPN; an errno value. */
static int by_number(struct both *self, uint16_t method, uint32_t *qpn,
		     const struct xroce_rcv_qp_attr *attr)
{
	struct raw raw;

	raw_begin(&raw, method);
	raw_attr(&raw, XROCE_ATTR_RCV_QP_XRCD, 0, self->owned.ours.handle[XRCD]);
	if (method == XROCE_METHOD_RCV_QP_CREATE) {
		raw_attr(&raw, XROCE_ATTR_RCV_QP_HANDLE, 0, 0);
		raw_attr(&raw, XROCE_ATTR_RCV_QP_QPN, 4, (uintptr_t)qpn);
	} else {
		raw_in(&raw, XROCE_ATTR_RCV_QP_QPN, qpn, 4);
	}
	raw_attr(&raw, XROCE_ATTR_RCV_QP_ATTR, sizeof(*attr), (uintptr_t)attr);
	return raw_call(self->owned.ours.ctx, &raw);
}

/* A thread that takes the receive QP QPN to RTR, with a neighbour that is silent. */
struct waiter {
	struct both *self;
	pthread_t thread;
	uint32_t qpn;
	struct xroce_rcv_qp_attr attr;
	int tid, err;
};

static void *modify(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_SEQ_CST);
	w->err = by_number(w->self, XROCE_METHOD_RCV_QP_MODIFY, &w->qpn, &w->attr);
	__atomic_store_n(&w->tid, 0, __ATOMIC_SEQ_CST);
	return NULL;
}

/* Changes of a receive QP come one after the other, and each may wait for an address for a
 * second. The device waits for one of them. */
static void one_by_one(struct both *self)
{
	struct xroce_rcv_qp_attr attr = {
		.attr_mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_AV |
			     IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.port_num = 1, .path_mtu = IBV_MTU_1024, .dest_qp_num = 77,
		.dest = { .is_global = 1, .port_num = 1 },
	};
	struct waiter waiters[WAITERS], *w;
	int asleep, gone = 0;
	uint32_t qpn = 0;

	make_all(&self->owned.on, &self->owned.ours, 0);
	attr.dest.sgid_index = self->owned.on.gid_index[0];
	memcpy(attr.dest.dgid, &self->owned.ours.gid, 16);
	RETURNS(0, by_number(self, XROCE_METHOD_RCV_QP_CREATE, &qpn, &attr));
	attr.attr_mask = IBV_QP_STATE;
	attr.qp_state = IBV_QPS_RESET;
	RETURNS(0, by_number(self, XROCE_METHOD_RCV_QP_MODIFY, &qpn, &attr));
	attr.attr_mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	attr.qp_state = IBV_QPS_INIT;
	RETURNS(0, by_number(self, XROCE_METHOD_RCV_QP_MODIFY, &qpn, &attr));
	attr.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	attr.qp_state = IBV_QPS_RTR;
	for (w = waiters; w < waiters + WAITERS; w++) {
		*w = (struct waiter) { .self = self, .qpn = qpn, .attr = attr };
		/* The last two bytes are those of the IPv4 address. */
		w->attr.dest.dgid[15] = 100 + (w - waiters);
		CHECK(!pthread_create(&w->thread, NULL, modify, w));
	}
	do
		for (asleep = 0, w = waiters; w < waiters + WAITERS; w++)
			asleep += is_asleep(__atomic_load_n(&w->tid, __ATOMIC_SEQ_CST));
	while (asleep < 2);
	take_away(self);
	for (w = waiters; w < waiters + WAITERS; w++) {
		CHECK(!pthread_join(w->thread, NULL));
		CHECK(w->err == ETIMEDOUT || w->err == EIO);
		gone += w->err == EIO;
	}
	/* All but those whose turn had come when the device was about to go. */
	CHECK(gone);
	unmake(&self->owned.ours);
	close_made(&self->owned.ours);
}

static const CASES(struct both) cases[] = {
	{ "all_commands", all_commands },
	{ "methods", methods },
	{ "library", library },
	{ "meanwhile", meanwhile },
	{ "one_by_one", one_by_one },
	{}
};

int main(int argc, char **argv)
{
	static struct both self;

	return RUN_CASES_AROUND(&self, cases, share_devices, (void), argc, argv);
}
