// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=120 debug=long xroce on=both left
/*
 * What the library would not write to the rings of a queue pair or a shared receive
 * queue: invalid slots and impossible producer indices. Each ends its own queue as
 * Documentation/infiniband/xroce-abi.rst says, with the status and the event named
 * there, and the requests behind it are flushed. A queue pair beside it, of the same
 * process, domain and completion queue, continues as if nothing had happened. See
 * devices.h for the arguments.
 */
#include "devices.h"
#include "flow.h"
#include "rings.h"

#define MAGIC 0x736c6f7473207278ull
#define MESSAGE 64
#define ENTRIES PAIR_DEPTH
/* Slots are apart by a multiple of this. */
#define STEP 32

/* The flow whose rings are written to, and the one beside it. */
static struct flow f, beside;

/* A ring that is written by hand from here on. */
struct queue {
	struct ring ring;
	uint32_t stride;
	/* Index of the next slot. */
	uint32_t next;
	/* The first slot, as the library filled it. */
	uint8_t template[128] __attribute__((aligned(8)));
};

static struct queue sq, rq;

/* Room for the largest slot that these queues have. */
union slot {
	struct xroce_send_slot send;
	struct xroce_recv_slot recv;
	struct {
		uint8_t head[XROCE_SEND_SLOT_HDR];
		struct xroce_sge sge[2];
	} list;
	uint8_t bytes[128];
};

/* ---- the rings ---- */

/*
 * The ring whose first requests have the numbers ID and ID + 1: it begins where a mapping
 * does, or BEHIND bytes behind that.
 */
static void find_queue(struct queue *q, uint64_t id, size_t behind)
{
	static struct rings all;
	int i;

	all.count = 0;
	find_rings(&all, NULL);
	*q = (struct queue) { .next = 2 };
	for (i = 0; i < 2 * all.count && !q->stride; i++) {
		struct ring ring = all.ring[i / 2];
		size_t skip = i % 2 && behind < ring.size ? behind : 0;
		const uint64_t *first;
		uint32_t at;

		ring.at += skip;
		ring.size -= skip;
		first = first_slot(&ring, 2 * sizeof(union slot));
		/* A completion has the number at the same place, and 0 behind it. */
		if (!first || *first != id || !(uint32_t)first[1])
			continue;
		for (at = STEP; at <= sizeof(union slot) && !q->stride; at += STEP)
			if (first[at / 8] == id + 1)
				q->stride = at;
		q->ring = ring;
		memcpy(q->template, first, sizeof(q->template));
	}
	CHECK(q->stride);
}

/* Writes a slot; publish() tells the kernel. */
static void put(struct queue *q, const union slot *slot)
{
	memcpy(q->ring.at + XROCE_RING_HDR_SIZE + q->next++ % ENTRIES * q->stride, slot, q->stride);
}

static void publish(struct queue *q)
{
	store_index(&q->ring, q->next);
}

/* ---- completions and events ---- */

static void completes(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {};
	int n = next_wc(cq, &wc);

	if (n != 1 || wc.wr_id != id || wc.status != status)
		printf("%d completions: request %llu, %s; not request %llu, %s\n", n,
		       (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
		       (unsigned long long)id, ibv_wc_status_str(status));
	CHECK(n == 1 && wc.wr_id == id && wc.status == status);
}

/* Nothing more has completed, nor will. */
static void nothing_else(void)
{
	struct ibv_wc wc;

	CHECK(!ibv_poll_cq(f.a.cq, 1, &wc) && !ibv_poll_cq(f.b.cq, 1, &wc));
}

/* What is told besides that something is wrong. */
/* A port that was set up a moment ago may have news, too. */
static int is_harmless(int type)
{
	return type == IBV_EVENT_COMM_EST || type == IBV_EVENT_QP_LAST_WQE_REACHED ||
	       type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_GID_CHANGE;
}

static void no_events(struct ibv_context *ctx)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	while (poll(&p, 1, 0) == 1) {
		CHECK(!ibv_get_async_event(ctx, &ev));
		ibv_ack_async_event(&ev);
		if (!is_harmless(ev.event_type))
			printf("event: %s\n", ibv_event_type_str(ev.event_type));
		CHECK(is_harmless(ev.event_type));
	}
}

/* The events of CTX are WANTED and, unless that is the same, OTHER: each once. */
static void only_events(struct ibv_context *ctx, int wanted, int other)
{
	int seen = 0, other_seen = wanted == other;
	struct ibv_async_event ev;

	while (!seen || !other_seen) {
		CHECK(readable(ctx->async_fd, 20));
		CHECK(!ibv_get_async_event(ctx, &ev));
		ibv_ack_async_event(&ev);
		if (is_harmless(ev.event_type))
			continue;
		printf("event: %s\n", ibv_event_type_str(ev.event_type));
		if (!seen && (int)ev.event_type == wanted)
			seen = 1;
		else if (!other_seen && (int)ev.event_type == other)
			other_seen = 1;
		else
			CHECK(!"an event that is not wanted");
	}
	no_events(ctx);
}

/*
 * The receive ring of FLOW is broken for good: its queue pair's, or a shared one. An XRC target
 * is not its queue's alone and goes on.
 */
static void is_fatal(const struct flow *flow)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	only_events(flow->b.ctx, flow->kind == FLOW_XRC ? IBV_EVENT_SRQ_ERR : IBV_EVENT_QP_FATAL,
		    flow->srq ? IBV_EVENT_SRQ_ERR : IBV_EVENT_QP_FATAL);
	if (flow->kind != FLOW_XRC) {
		gets_to(flow->b.qp, IBV_QPS_ERR);
		return;
	}
	CHECK(!ibv_query_qp(flow->b.qp, &attr, IBV_QP_STATE, &init));
	CHECK(attr.qp_state == IBV_QPS_RTS);
}

/* What a sender to such a ring is told. */
static enum ibv_wc_status told_broken(enum flow_kind kind)
{
	switch (kind) {
	case FLOW_RC: return IBV_WC_REM_OP_ERR;
	case FLOW_XRC: return IBV_WC_RNR_RETRY_EXC_ERR;
	default: return IBV_WC_SUCCESS;
	}
}

static void is_in_error(struct ibv_qp *qp)
{
	gets_to(qp, IBV_QPS_ERR);
}

/* A message of FLOW, which is whole. */
static void passes(struct flow *flow, uint8_t value)
{
	memset(flow->a.buf, value, MESSAGE);
	memset(flow_landing(flow), ~value, MESSAGE);
	CHECK(!flow_receive(flow, 1000 + value));
	CHECK(!flow_send(flow, 2000 + value, MESSAGE));
	completes(flow->b.cq, 1000 + value, IBV_WC_SUCCESS);
	completes(flow->a.cq, 2000 + value, IBV_WC_SUCCESS);
	CHECK(!memcmp(flow_landing(flow), flow->a.buf, MESSAGE));
}

/* The other queue pair has noticed nothing. */
static void goes_on(uint8_t value)
{
	nothing_else();
	passes(&beside, value);
}

/* ---- the flow ---- */

/* Finds the rings of FLOW by two messages of the library. Its calls are not used with
 * them again. */
static void open_rings(struct flow *flow, struct queue *send, struct queue *receive)
{
	static uint64_t magic = MAGIC;
	int i;

	for (i = 0; i < 2; i++)
		CHECK(!flow_receive(flow, magic + i));
	for (i = 0; i < 2; i++) {
		CHECK(!flow_send(flow, magic + 16 + i, MESSAGE));
		completes(flow->b.cq, magic + i, IBV_WC_SUCCESS);
		completes(flow->a.cq, magic + 16 + i, IBV_WC_SUCCESS);
	}
	find_queue(receive, magic, receive_ring_at(flow->a.qp));
	find_queue(send, magic + 16, 0);
	magic += 32;
}

/* The sender, which is idle, gives up soon where no receive is. */
static void make_impatient(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD, .rnr_retry = 1 };

	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_RNR_RETRY));
	a.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
}

static void start(const struct devices *on, enum flow_kind kind, int shared)
{
	make_flow(&f, kind, shared, on->name, on->gid_index);
	make_flow_beside(&beside, FLOW_RC, &f);
	open_rings(&f, &sq, &rq);
	if (kind == FLOW_XRC)
		make_impatient(f.a.qp);
	goes_on(1);
}

static void stop(void)
{
	goes_on(2);
	no_events(f.a.ctx);
	no_events(f.b.ctx);
	free_flow(&beside);
	free_flow(&f);
}

/* What the library wrote for the flow's first message, with another number. */
static union slot good_send(uint64_t id)
{
	union slot s;

	memcpy(&s, sq.template, sq.stride);
	s.send.wr_id = id;
	if (f.kind != FLOW_UD) {
		s.send.rdma.remote_addr = (uintptr_t)f.b.buf;
		s.send.rdma.rkey = f.b.mr->rkey;
	}
	return s;
}

static union slot good_receive(uint64_t id)
{
	union slot s;

	memcpy(&s, rq.template, rq.stride);
	s.recv.wr_id = id;
	return s;
}

static void put_send(uint64_t id)
{
	union slot s = good_send(id);

	put(&sq, &s);
}

static void put_receive(uint64_t id)
{
	union slot s = good_receive(id);

	put(&rq, &s);
}

/* The kernel looks at what was sent. */
static void ring(void)
{
	publish(&sq);
	CHECK(!qp_doorbell(f.a.qp));
}

/* The rings work, after what they went through. */
static void works(void)
{
	store_index(&sq.ring, sq.next);
	store_index(&rq.ring, rq.next);
	flow_reset(&f);
	put_receive(31);
	publish(&rq);
	put_send(21);
	ring();
	completes(f.b.cq, 31, IBV_WC_SUCCESS);
	completes(f.a.cq, 21, IBV_WC_SUCCESS);
}

/* ---- slots of a send queue ---- */

/* What a slot may not name: an address handle and memory of another domain, and memory
 * that was registered once. */
static struct {
	struct flow flow;
	uint32_t ah, old_lkey;
} foreign;

static void make_foreign(const struct devices *on)
{
	struct queue send, receive;
	struct ibv_mr *old;

	make_flow(&foreign.flow, FLOW_UD, 0, on->name, on->gid_index);
	open_rings(&foreign.flow, &send, &receive);
	foreign.ah = ((struct xroce_send_slot *)send.template)->ud.ah;
	old = ibv_reg_mr(f.a.pd, f.a.buf, PAIR_SIZE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(old);
	foreign.old_lkey = old->lkey;
	CHECK(!ibv_dereg_mr(old));
}

static void spoil_opcode(union slot *s, uint32_t v)
{
	s->send.opcode = v;
}

static void spoil_count(union slot *s, uint32_t v)
{
	s->send.count = v;
}

static void spoil_length(union slot *s, uint32_t v)
{
	s->list.sge[0].length = v;
}

/* From so near the end of the memory that not even the first packet can be made. */
static void over_end(union slot *s, uint32_t v)
{
	s->list.sge[0].addr = (uintptr_t)f.a.buf + 2 * PAIR_SIZE - 16;
	s->list.sge[0].length = v;
}

/* Each of two elements may be as long as that; both together not. */
static void spoil_sum(union slot *s, uint32_t v)
{
	s->send.count = 2;
	s->list.sge[0].length = v;
	s->list.sge[1] = s->list.sge[0];
}

static void over_mtu(union slot *s, uint32_t v)
{
	struct ibv_port_attr port;

	CHECK(!ibv_query_port(f.a.ctx, 1, &port));
	s->list.sge[0].length = (128 << port.active_mtu) + v;
}

static void over_inline(union slot *s, uint32_t v)
{
	s->send.flags |= XROCE_SEND_INLINE;
	s->send.count = sq.stride - XROCE_SEND_SLOT_HDR + v;
}

/* What brings nothing, or fetches. */
static void inline_of(union slot *s, uint32_t v)
{
	s->send.opcode = v;
	s->send.flags |= XROCE_SEND_INLINE;
	s->send.count = 8;
}

static uint32_t wrong_lkey(uint32_t v)
{
	switch (v) {
	case 1: return f.a.mr->lkey ^ 1;
	case 2: return foreign.flow.a.mr->lkey;
	case 3: return foreign.old_lkey;
	default: return v;
	}
}

static void spoil_key(union slot *s, uint32_t v)
{
	s->list.sge[0].lkey = wrong_lkey(v);
	if (v == 2)
		s->list.sge[0].addr = (uintptr_t)foreign.flow.a.buf;
}

static void spoil_key_of_read(union slot *s, uint32_t v)
{
	s->send.opcode = XROCE_WR_RDMA_READ;
	spoil_key(s, v);
}

static void spoil_address(union slot *s, uint32_t v)
{
	uint64_t from = (uintptr_t)f.a.buf, to = from + 2 * PAIR_SIZE;
	uint64_t bad[] = { 0, from - 1, to - MESSAGE + 1, UINT64_MAX - MESSAGE / 2 };

	s->list.sge[0].addr = bad[v];
}

static void spoil_swap(union slot *s, uint32_t v)
{
	s->send.opcode = XROCE_WR_ATOMIC_CMP_SWAP;
	s->list.sge[0].length = v;
}

static void spoil_add(union slot *s, uint32_t v)
{
	s->send.opcode = XROCE_WR_ATOMIC_FETCH_ADD;
	s->list.sge[0].length = v;
}

static void spoil_atomic_write(union slot *s, uint32_t v)
{
	s->send.opcode = XROCE_WR_ATOMIC_WRITE;
	s->list.sge[0].length = v;
}

static void misalign(union slot *s, uint32_t v)
{
	s->send.opcode = XROCE_WR_ATOMIC_FETCH_ADD;
	s->list.sge[0].length = 8;
	s->send.rdma.remote_addr += v;
}

/* What has no data of its own. */
static void give_data(union slot *s, uint32_t v)
{
	s->send.opcode = v;
	s->send.count = 1;
}

static void give_inline(union slot *s, uint32_t v)
{
	s->send.opcode = v;
	s->send.flags |= XROCE_SEND_INLINE;
	s->send.count = 0;
}

static void spoil_invalidate(union slot *s, uint32_t v)
{
	s->send.opcode = XROCE_WR_LOCAL_INV;
	s->send.count = 0;
	/* Registered by a user: only its owner ends that. */
	s->send.imm = v == 1 ? f.a.mr->lkey : v;
}

static void spoil_bind(union slot *s, uint32_t v)
{
	uint32_t key = v == 1 ? f.a.mr->rkey : v;

	s->send.opcode = XROCE_WR_BIND_MW;
	s->send.count = 0;
	s->send.bind.addr = (uintptr_t)f.a.buf;
	s->send.bind.length = MESSAGE;
	s->send.bind.mr_lkey = f.a.mr->lkey;
	s->send.bind.mw_rkey = key;
	s->send.bind.new_rkey = key;
	s->send.bind.access = IBV_ACCESS_REMOTE_READ;
}

static void spoil_srqn(union slot *s, uint32_t v)
{
	s->send.rdma.srqn = v;
}

static void spoil_ah(union slot *s, uint32_t v)
{
	s->send.ud.ah = v == 1 ? foreign.ah : v;
}

#define RC (1 << FLOW_RC)
#define UD (1 << FLOW_UD)
#define XRC (1 << FLOW_XRC)

/* A slot that is wrong in one way: what SPOIL makes of a right one with each value. */
struct wrong {
	const char *name;
	/* Whose slots can be wrong like that. */
	unsigned int kinds;
	void (*spoil)(union slot *s, uint32_t v);
	enum ibv_wc_status status;
	int count;
	uint32_t values[10];
};

#define VALUES(...)						\
	sizeof((uint32_t []){ __VA_ARGS__ }) / 4, { __VA_ARGS__ }

static const struct wrong wrong_sends[] = {
	{ "opcode", RC | UD | XRC, spoil_opcode, IBV_WC_LOC_QP_OP_ERR,
	  VALUES(10, 11, 12, 13, 16, 0x7f, 0x80, 0xff) },
	{ "opcode of a connection", UD, spoil_opcode, IBV_WC_LOC_QP_OP_ERR,
	  VALUES(XROCE_WR_RDMA_WRITE, XROCE_WR_RDMA_WRITE_IMM, XROCE_WR_RDMA_READ,
		 XROCE_WR_ATOMIC_CMP_SWAP, XROCE_WR_ATOMIC_FETCH_ADD, XROCE_WR_LOCAL_INV,
		 XROCE_WR_BIND_MW, XROCE_WR_SEND_INV, XROCE_WR_FLUSH, XROCE_WR_ATOMIC_WRITE) },
	{ "elements", RC | UD | XRC, spoil_count, IBV_WC_LOC_QP_OP_ERR,
	  VALUES(3, 32, 33, 255, 0x8000, 0xffff) },
	{ "length", RC | UD | XRC, spoil_length, IBV_WC_LOC_LEN_ERR,
	  VALUES(0x80000001, UINT32_MAX) },
	{ "sum of lengths", RC | UD | XRC, spoil_sum, IBV_WC_LOC_LEN_ERR,
	  VALUES(0x40000001, 0x80000000, UINT32_MAX) },
	{ "length beyond the memory", RC | XRC, over_end, IBV_WC_LOC_PROT_ERR,
	  VALUES(17, 2 * PAIR_SIZE, 0x80000000) },
	{ "length beyond the MTU", UD, over_mtu, IBV_WC_LOC_LEN_ERR, VALUES(1, PAIR_SIZE) },
	{ "inline length", RC | UD | XRC, over_inline, IBV_WC_LOC_LEN_ERR, VALUES(1, 512, 0xff00) },
	{ "inline data", RC | XRC, inline_of, IBV_WC_LOC_QP_OP_ERR,
	  VALUES(XROCE_WR_RDMA_READ, XROCE_WR_ATOMIC_CMP_SWAP, XROCE_WR_ATOMIC_FETCH_ADD) },
	{ "key", RC | UD | XRC, spoil_key, IBV_WC_LOC_PROT_ERR, VALUES(0, 1, 2, 3, UINT32_MAX) },
	{ "key to read into", RC | XRC, spoil_key_of_read, IBV_WC_LOC_PROT_ERR,
	  VALUES(0, 1, 2, 3, UINT32_MAX) },
	{ "address", RC | UD | XRC, spoil_address, IBV_WC_LOC_PROT_ERR, VALUES(0, 1, 2, 3) },
	{ "length of a swap", RC | XRC, spoil_swap, IBV_WC_LOC_LEN_ERR, VALUES(0, 1, 4, 7, 9, 16) },
	{ "length of an add", RC | XRC, spoil_add, IBV_WC_LOC_LEN_ERR, VALUES(0, 7, 9) },
	{ "length of an atomic write", RC | XRC, spoil_atomic_write, IBV_WC_LOC_LEN_ERR,
	  VALUES(0, 7, 9) },
	{ "alignment", RC | XRC, misalign, IBV_WC_REM_INV_REQ_ERR, VALUES(1, 4, 7) },
	{ "data of what has none", RC | XRC, give_data, IBV_WC_LOC_QP_OP_ERR,
	  VALUES(XROCE_WR_LOCAL_INV, XROCE_WR_BIND_MW, XROCE_WR_FLUSH) },
	{ "inline data of what has none", RC | XRC, give_inline, IBV_WC_LOC_QP_OP_ERR,
	  VALUES(XROCE_WR_LOCAL_INV, XROCE_WR_BIND_MW, XROCE_WR_FLUSH) },
	{ "key to invalidate", RC | XRC, spoil_invalidate, IBV_WC_MW_BIND_ERR,
	  VALUES(0, 1, 0x80000000, UINT32_MAX) },
	{ "window", RC | XRC, spoil_bind, IBV_WC_MW_BIND_ERR,
	  VALUES(0, 1, 0x80000000, UINT32_MAX) },
	{ "SRQ number", XRC, spoil_srqn, IBV_WC_LOC_QP_OP_ERR,
	  VALUES(1 << 24, 0x80000000, 0x80000001, UINT32_MAX) },
	{ "address handle", UD, spoil_ah, IBV_WC_LOC_QP_OP_ERR,
	  VALUES(0, 1, 0xffffff, UINT32_MAX) },
	{}
};

/* How many of a wrong slot's values are tried: the debug kernel makes each try slow. */
static int tries(const struct wrong *w)
{
	return on_debug_kernel() && w->count > 2 ? 2 : w->count;
}

/* A right request, the wrong one, and both again. */
static void send_wrong(const struct wrong *w, uint32_t v)
{
	union slot s = good_send(2), again;

	w->spoil(&s, v);
	again = s;
	again.send.wr_id = 4;
	put_receive(11);
	publish(&rq);
	put_send(1);
	put(&sq, &s);
	put_send(3);
	put(&sq, &again);
	ring();
	completes(f.a.cq, 1, IBV_WC_SUCCESS);
	completes(f.b.cq, 11, IBV_WC_SUCCESS);
	completes(f.a.cq, 2, w->status);
	completes(f.a.cq, 3, IBV_WC_WR_FLUSH_ERR);
	completes(f.a.cq, 4, IBV_WC_WR_FLUSH_ERR);
	gets_to(f.a.qp, f.kind == FLOW_UD ? IBV_QPS_SQE : IBV_QPS_ERR);
	/* The completion has said it. */
	no_events(f.a.ctx);
	goes_on(3);
}

static void wrong_sends_of(const struct devices *on, enum flow_kind kind)
{
	const struct wrong *w;
	int i;

	start(on, kind, 0);
	make_foreign(on);
	for (w = wrong_sends; w->name; w++) {
		if (!(w->kinds & 1 << kind))
			continue;
		for (i = 0; i < tries(w); i++) {
			printf("%s %#x\n", w->name, w->values[i]);
			send_wrong(w, w->values[i]);
			flow_reset(&f);
		}
	}
	works();
	free_flow(&foreign.flow);
	stop();
}

/* ---- slots of a receive queue ---- */

static void spoil_receive_count(union slot *s, uint32_t v)
{
	s->recv.num_sge = v;
}

static void spoil_receive_key(union slot *s, uint32_t v)
{
	struct xroce_sge *sge = (void *)(s->bytes + XROCE_RECV_SLOT_HDR);

	sge->lkey = v == 1 ? f.b.mr->lkey ^ 1 : v;
}

/* The first cannot be decoded, the second can. */
static const struct wrong wrong_receives[] = {
	{ "elements", RC | UD | XRC, spoil_receive_count, IBV_WC_LOC_QP_OP_ERR,
	  VALUES(3, 33, 0xffff, 0x80000000, UINT32_MAX) },
	{ "key", RC | UD | XRC, spoil_receive_key, IBV_WC_LOC_PROT_ERR, VALUES(0, 1, UINT32_MAX) },
	{}
};

/* Three messages; the second meets a receive that fails, STATUS says how. */
static void send_three(enum ibv_wc_status status)
{
	put_send(1);
	put_send(2);
	put_send(3);
	ring();
	completes(f.a.cq, 1, IBV_WC_SUCCESS);
	completes(f.a.cq, 2, status);
	completes(f.a.cq, 3, f.kind == FLOW_UD ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
}

static void receive_wrong(const struct wrong *w, uint32_t v)
{
	/* The ring is at fault, or only what it names. */
	int is_corrupt = w->status == IBV_WC_LOC_QP_OP_ERR;
	/* The owner of the queue hears of it by its event alone. */
	int is_apart = is_corrupt && f.kind == FLOW_XRC;
	union slot s = good_receive(12);
	struct ibv_srq_attr attr;

	w->spoil(&s, v);
	put_receive(11);
	put(&rq, &s);
	put_receive(13);
	publish(&rq);
	send_three(is_apart ? IBV_WC_RNR_RETRY_EXC_ERR :
		   f.kind == FLOW_UD ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	completes(f.b.cq, 11, IBV_WC_SUCCESS);
	if (!is_apart)
		completes(f.b.cq, 12, w->status);
	if (is_corrupt) {
		is_fatal(&f);
	} else {
		no_events(f.b.ctx);
		is_in_error(f.b.qp);
	}
	if (!f.srq)
		completes(f.b.cq, 13, IBV_WC_WR_FLUSH_ERR);
	CHECK(!f.srq || !is_corrupt == !ibv_query_srq(f.srq, &attr));
	no_events(f.a.ctx);
	goes_on(3);
}

static void wrong_receives_of(const struct devices *on, enum flow_kind kind, int shared)
{
	const struct wrong *w;
	int i;

	start(on, kind, shared);
	for (w = wrong_receives; w->name; w++) {
		for (i = 0; i < tries(w); i++) {
			printf("%s %#x\n", w->name, w->values[i]);
			receive_wrong(w, w->values[i]);
			if (f.srq) {
				/* It is dead, or holds what is left. */
				stop();
				start(on, kind, shared);
			} else {
				flow_reset(&f);
			}
		}
	}
	works();
	stop();
}

/* ---- producer indices ---- */

/* More than the ring holds, and back behind what the kernel has read. */
static const uint32_t wrong_indices[] = { 1 << 20, UINT32_MAX, ENTRIES + 1, 0x80000000 };

static int indices(void)
{
	return on_debug_kernel() ? 2 : 4;
}

/* In SQE: UD's send queue has failed before, and may be no more than that. */
static void wrong_send_index_of(const struct devices *on, enum flow_kind kind, int in_sqe)
{
	int i;

	start(on, kind, 0);
	for (i = 0; i < indices(); i++) {
		printf("index %#x\n", wrong_indices[i]);
		if (in_sqe) {
			union slot s = good_send(1);

			s.send.opcode = 0xff;
			put(&sq, &s);
			ring();
			completes(f.a.cq, 1, IBV_WC_LOC_QP_OP_ERR);
			gets_to(f.a.qp, IBV_QPS_SQE);
		}
		store_index(&sq.ring, sq.next + wrong_indices[i]);
		CHECK(!qp_doorbell(f.a.qp));
		only_events(f.a.ctx, IBV_EVENT_QP_FATAL, IBV_EVENT_QP_FATAL);
		is_in_error(f.a.qp);
		CHECK(!qp_doorbell(f.a.qp));
		no_events(f.a.ctx);
		no_events(f.b.ctx);
		goes_on(3);
		works();
	}
	stop();
}

/*
 * A message meets the index. No request is known that failed; the completion has number 0. Of an
 * XRC queue there is none.
 */
static void wrong_receive_index_of(const struct devices *on, enum flow_kind kind, int shared)
{
	struct ibv_srq_attr attr;
	int i;

	start(on, kind, shared);
	for (i = 0; i < indices(); i++) {
		printf("index %#x\n", wrong_indices[i]);
		store_index(&rq.ring, rq.next + wrong_indices[i]);
		put_send(1);
		if (kind != FLOW_UD)
			put_send(2);
		ring();
		completes(f.a.cq, 1, told_broken(kind));
		if (kind != FLOW_UD)
			completes(f.a.cq, 2, IBV_WC_WR_FLUSH_ERR);
		if (kind != FLOW_XRC)
			completes(f.b.cq, 0, IBV_WC_LOC_QP_OP_ERR);
		is_fatal(&f);
		no_events(f.a.ctx);
		goes_on(3);
		if (shared) {
			/* Mended too late. */
			store_index(&rq.ring, rq.next);
			CHECK(ibv_query_srq(f.srq, &attr));
			stop();
			start(on, kind, shared);
		} else {
			works();
		}
	}
	stop();
}

#define CASE(name, call) static void name(const struct devices *on) { call; }

CASE(rc_sends, wrong_sends_of(on, FLOW_RC))
CASE(ud_sends, wrong_sends_of(on, FLOW_UD))
CASE(xrc_sends, wrong_sends_of(on, FLOW_XRC))
CASE(rc_receives, wrong_receives_of(on, FLOW_RC, 0))
CASE(ud_receives, wrong_receives_of(on, FLOW_UD, 0))
CASE(srq_receives, wrong_receives_of(on, FLOW_RC, 1))
CASE(xrc_receives, wrong_receives_of(on, FLOW_XRC, 1))
CASE(rc_send_index, wrong_send_index_of(on, FLOW_RC, 0))
CASE(ud_send_index, wrong_send_index_of(on, FLOW_UD, 0))
CASE(ud_send_index_in_sqe, wrong_send_index_of(on, FLOW_UD, 1))
CASE(xrc_send_index, wrong_send_index_of(on, FLOW_XRC, 0))
CASE(rc_receive_index, wrong_receive_index_of(on, FLOW_RC, 0))
CASE(ud_receive_index, wrong_receive_index_of(on, FLOW_UD, 0))
CASE(srq_index, wrong_receive_index_of(on, FLOW_RC, 1))
CASE(xrc_srq_index, wrong_receive_index_of(on, FLOW_XRC, 1))

static const CASES(const struct devices) cases[] = {
	{ "rc-sends", rc_sends },
	{ "ud-sends", ud_sends },
	{ "xrc-sends", xrc_sends },
	{ "rc-receives", rc_receives },
	{ "ud-receives", ud_receives },
	{ "srq-receives", srq_receives },
	{ "xrc-receives", xrc_receives },
	{ "rc-send-index", rc_send_index },
	{ "ud-send-index", ud_send_index },
	{ "ud-send-index-in-sqe", ud_send_index_in_sqe },
	{ "xrc-send-index", xrc_send_index },
	{ "rc-receive-index", rc_receive_index },
	{ "ud-receive-index", ud_receive_index },
	{ "srq-index", srq_index },
	{ "xrc-srq-index", xrc_srq_index },
	{}
};

int main(int argc, char **argv)
{
	static struct devices on;

	return RUN_CASES(&on, cases, argc, argv);
}
