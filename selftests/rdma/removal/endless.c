// SPDX-License-Identifier: GPL-2.0
/*
 * Never stops posting until the device is gone:
 *
 *   endless KIND DEVICE GID-INDEX PEER-DEVICE GID-INDEX
 *
 * KIND is ud, rc or xrc. There are two queue pairs. A thread for each of them rings its
 * doorbell again and again. One thread for both keeps the rings full by writing to them
 * without the library: a request that a doorbell has fetched is there again before the
 * doorbell looks again. The requests make no completions, so nobody has to poll.
 *
 * Prints "ready" when all of that is running, and "closed" when the device has gone,
 * the threads have ended and everything is destroyed.
 */
#include <pthread.h>

#include "rings.h"
#include "xrcpair.h"

#define STREAMS 2
/* So many that the thread that fills the ring need not run often. */
#define ENTRIES 4096
#define MAGIC 0x656e646c65737300ull
#define QKEY 0x11111111
#define LENGTH 1024
/* Requests that the kernel has taken when all is under way. */
#define ENOUGH 512

/* A queue pair whose ring is written by hand. */
struct stream {
	struct end from, to;
	struct xrc_pair xrc;
	struct ibv_ah *ah;
	struct ibv_qp *qp;
	struct ring ring;
	uint32_t entries;
	pthread_t ringer;
};

static struct stream streams[STREAMS];
static atomic_int is_over;

#define EACH_STREAM(s) (s = streams; s < streams + STREAMS; s++)

/* ---- queue pairs ---- */

static struct ibv_qp *make_qp(struct end *e, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type, .send_cq = e->cq, .recv_cq = e->cq,
		.cap = { ENTRIES, 1, 1, 1, 0 },
	};

	e->qp = ibv_create_qp(e->pd, &init);
	CHECK(e->qp);
	return e->qp;
}

static void start_ud(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

/* A request that needs no receive and leaves no completion. */
static int post(struct stream *s, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)s->from.buf, LENGTH, s->from.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)s->to.buf, s->to.mr->rkey },
		.qp_type.xrc.remote_srqn = s->xrc.ini.srqn,
	}, *bad;

	if (s->ah) {
		wr.opcode = IBV_WR_SEND;
		wr.wr.ud.ah = s->ah;
		wr.wr.ud.remote_qpn = s->to.qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	}
	return ibv_post_send(s->qp, &wr, &bad);
}

/* Finds the ring of the requests with the numbers ID and ID + 1, and has all its slots say
 * the same as the first. */
static void take_ring(struct stream *s, uint64_t id)
{
	static struct rings all;
	uint32_t stride, i;
	uint8_t *first = NULL;

	all.count = 0;
	find_rings(&all, NULL);
	for (i = 0; i < (uint32_t)all.count && !first; i++) {
		first = first_slot(&all.ring[i], 1024);
		if (first && memcmp(first, &id, sizeof(id)))
			first = NULL;
		s->ring = all.ring[i];
	}
	CHECK(first);
	id++;
	for (stride = 32; memcmp(first + stride, &id, sizeof(id)); stride += 32)
		CHECK(stride < 1024 - 32);
	CHECK(XROCE_RING_HDR_SIZE + (size_t)s->entries * stride <= s->ring.size);
	for (i = 1; i < s->entries; i++)
		memcpy(first + (size_t)i * stride, first, stride);
}

static void make_stream(struct stream *s, const char *kind, char **argv, uint64_t id)
{
	struct end *from = &s->from, *to = &s->to;

	open_end(from, argv[0], atoi(argv[1]));
	open_end(to, argv[2], atoi(argv[3]));
	s->entries = ENTRIES;
	if (!strcmp(kind, "xrc")) {
		make_xrc_pair(&s->xrc, from, to);
		s->qp = s->xrc.ini.qp;
		s->entries = PAIR_DEPTH;
	} else if (!strcmp(kind, "ud")) {
		struct ibv_ah_attr attr = {
			.is_global = 1, .port_num = 1,
			.grh = { .dgid = to->gid, .sgid_index = from->gid_index, .hop_limit = 16 },
		};

		start_ud(s->qp = make_qp(from, IBV_QPT_UD));
		start_ud(make_qp(to, IBV_QPT_UD));
		s->ah = ibv_create_ah(from->pd, &attr);
		CHECK(s->ah);
	} else {
		s->qp = make_qp(from, IBV_QPT_RC);
		make_qp(to, IBV_QPT_RC);
		connect_end(from, to);
		connect_end(to, from);
	}
	/* Two, so that the distance of the slots is seen. */
	CHECK(!post(s, id) && !post(s, id + 1));
	take_ring(s, id);
}

static void free_stream(struct stream *s)
{
	struct end *ends[] = { &s->from, &s->to }, *e;
	int i;

	if (s->xrc.ini.qp)
		free_xrc_pair(&s->xrc);
	if (s->ah)
		CHECK(!ibv_destroy_ah(s->ah));
	for (i = 0; i < 2; i++) {
		e = ends[i];
		CHECK(!e->qp || !ibv_destroy_qp(e->qp));
		CHECK(!ibv_destroy_cq(e->cq) && !ibv_dereg_mr(e->mr) && !ibv_dealloc_pd(e->pd));
		CHECK(!ibv_close_device(e->ctx));
	}
}

/* ---- threads ---- */

static uint32_t taken(const struct stream *s)
{
	return atomic_load((_Atomic uint32_t *)&ring_hdr(&s->ring)->kernel_index);
}

static void *ring_again(void *arg)
{
	struct stream *s = arg;

	while (qp_doorbell(s->qp) != EIO)
		;
	return NULL;
}

static void *fill_again(void *arg)
{
	struct stream *s;

	(void)arg;
	while (!is_over) {
		for EACH_STREAM(s)
			store_index(&s->ring, taken(s) + s->entries);
		usleep(100);
	}
	return NULL;
}

/* Returns when the device of CTX has gone. */
static void wait_for_end(struct ibv_context *ctx)
{
	struct ibv_async_event ev;
	int type;

	do {
		CHECK(!ibv_get_async_event(ctx, &ev));
		type = ev.event_type;
		ibv_ack_async_event(&ev);
	} while (type != IBV_EVENT_DEVICE_FATAL);
}

int main(int argc, char **argv)
{
	pthread_t filler;
	struct stream *s;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 6)
		return 2;
	for EACH_STREAM(s)
		make_stream(s, argv[1], argv + 2, MAGIC + 2 * (s - streams));
	CHECK(!pthread_create(&filler, NULL, fill_again, NULL));
	for EACH_STREAM(s)
		CHECK(!pthread_create(&s->ringer, NULL, ring_again, s));
	for EACH_STREAM(s)
		while (taken(s) < ENOUGH)
			usleep(1000);
	printf("ready\n");
	for EACH_STREAM(s)
		wait_for_end(s->from.ctx);
	for EACH_STREAM(s)
		CHECK(!pthread_join(s->ringer, NULL));
	is_over = 1;
	CHECK(!pthread_join(filler, NULL));
	for EACH_STREAM(s)
		free_stream(s);
	printf("closed\n");
	return 0;
}
