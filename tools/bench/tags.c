// SPDX-License-Identifier: GPL-2.0
/*
 * Measures how long a message takes that is matched against a list of tags, within a
 * device.
 *
 *   bench-tags DEVICE GID-INDEX LENGTH MASKS BURST MS
 *
 * LENGTH tags are posted, under MASKS different masks (0: no bit is masked). For MS
 * milliseconds BURST messages of 8 bytes at a time are sent, each for any tag of the
 * list. The tags that they took are posted again, at the end. With LENGTH 0, for
 * comparison, messages without a tag are sent to receives of the same queue. Prints the
 * nanoseconds of one message, from the median burst, so that a moment in which the
 * machine did something else does not count.
 */
#include "tm.h"

#define MAX_BURST 32
#define OPS 8192
#define DATA 8
#define SLOT 64
#define MAX_TIMES (1 << 20)

static struct end a, b;
static struct tag_queue tm;
static uint32_t length, masks, burst;
static uint8_t *from, *to;
static struct ibv_mr *to_mr;
/* All tags; the first of them are those that the messages of this burst are for. */
static uint32_t *tags;

static uint32_t rnd(uint32_t below)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 32) % below;
}

/* The bits that the mask of tag I leaves out; messages have them, no tag does. */
static uint64_t masked_bits(uint32_t i)
{
	return masks ? (uint64_t)(i % masks + 1) << 40 : 0;
}

static void post_tags(const uint32_t *tag, uint32_t n)
{
	struct ibv_ops_wr wr[MAX_BURST] = {}, *bad;
	struct ibv_sge sge[MAX_BURST];
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t t = tag[i];

		sge[i] = (struct ibv_sge) {
			(uintptr_t)to + (uint64_t)t * DATA, DATA, to_mr->lkey
		};
		wr[i].opcode = IBV_WR_TAG_ADD;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		wr[i].tm.add.recv_wr_id = t;
		wr[i].tm.add.sg_list = &sge[i];
		wr[i].tm.add.num_sge = 1;
		wr[i].tm.add.tag = t;
		wr[i].tm.add.mask = ~masked_bits(t);
	}
	CHECK(!ibv_post_srq_ops(tm.srq, wr, &bad));
}

static void post_receive_at(uint32_t i)
{
	tm_receive(&tm, i, (struct ibv_sge) {
		(uintptr_t)to + SLOT * i, SLOT, to_mr->lkey });
}

/* Moves BURST tags, any of them, to the front. */
static void choose(void)
{
	uint32_t i, j, t;

	for (i = 0; i < burst; i++) {
		j = i + rnd(length - i);
		t = tags[i];
		tags[i] = tags[j];
		tags[j] = t;
	}
}

static void send_burst(void)
{
	struct ibv_send_wr wr[MAX_BURST] = {}, *bad;
	struct ibv_sge sge[MAX_BURST];
	uint32_t i;

	for (i = 0; i < burst; i++) {
		uint8_t *m = from + SLOT * i;
		uint64_t data = length ? tags[i] : i;

		tm_header(m, length ? IBV_TMH_EAGER : IBV_TMH_NO_TAG,
			  data | masked_bits(data));
		memcpy(m + TM_HDR, &data, DATA);
		sge[i] = (struct ibv_sge) { (uintptr_t)m, TM_HDR + DATA, 0 };
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_SEND;
		wr[i].send_flags = IBV_SEND_INLINE;
		wr[i].next = &wr[i + 1];
	}
	wr[burst - 1].next = NULL;
	wr[burst - 1].send_flags |= IBV_SEND_SIGNALED;
	CHECK(!ibv_post_send(a.qp, wr, &bad));
}

static void take_burst(void)
{
	struct tm_done d;
	struct ibv_wc wc;
	uint64_t data;
	uint32_t i;
	int n;

	for (i = 0; i < burst; i++) {
		while (!tm_poll(&tm, &d))
			;
		CHECK(!d.status);
		if (length) {
			CHECK(d.wr_id == tags[i] && d.flags & IBV_WC_TM_MATCH);
			memcpy(&data, to + d.wr_id * DATA, DATA);
			CHECK(data == tags[i]);
		} else {
			CHECK(d.opcode == IBV_WC_TM_NO_TAG);
			post_receive_at(d.wr_id);
		}
	}
	while (!(n = ibv_poll_cq(a.cq, 1, &wc)))
		;
	CHECK(n == 1 && !wc.status);
	if (length)
		post_tags(tags, burst);
}

static void one_burst(void)
{
	if (length)
		choose();
	send_burst();
	take_burst();
}

static uint64_t ns_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int compare(const void *x, const void *y)
{
	uint64_t l = *(const uint64_t *)x, r = *(const uint64_t *)y;

	return (l > r) - (l < r);
}

int main(int argc, char **argv)
{
	uint64_t end, last, *took;
	uint32_t i, n, bursts = 0;
	size_t size;

	if (argc != 7)
		return 2;
	length = atoi(argv[3]);
	masks = atoi(argv[4]);
	burst = atoi(argv[5]);
	if (!burst || burst > MAX_BURST || (length && length < burst))
		return 2;
	make_end(&a, argv[1], atoi(argv[2]));
	make_end(&b, argv[1], atoi(argv[2]));
	size = (length ? (size_t)length * DATA : SLOT * MAX_BURST);
	size = (size + 4095) & ~(size_t)4095;
	from = aligned_alloc(4096, 4096);
	to = aligned_alloc(4096, size);
	tags = calloc(length + 1, sizeof(*tags));
	took = calloc(MAX_TIMES, sizeof(*took));
	CHECK(from && to && tags && took);
	memset(to, 0, size);
	to_mr = ibv_reg_mr(b.pd, to, size, IBV_ACCESS_LOCAL_WRITE);
	CHECK(to_mr);
	tm_make(&tm, &b, (struct tag_queue_size) {
		.tags = length ? length : 1, .ops = OPS,
		.receives = MAX_BURST, .cqe = 4 * MAX_BURST });
	CHECK(!ibv_destroy_qp(b.qp));
	b.qp = tm_qp(&tm, &b, 0);
	connect_end(&a, &b);
	connect_end(&b, &a);
	for (i = 0; i < length; i++)
		tags[i] = i;
	for (i = 0; i < length; i += n) {
		n = length - i < MAX_BURST ? length - i : MAX_BURST;
		post_tags(tags + i, n);
	}
	for (i = 0; !length && i < burst; i++)
		post_receive_at(i);
	for (i = 0; i < 64; i += burst)
		one_burst();
	last = ns_now();
	end = last + atoi(argv[6]) * 1000000ull;
	while (last < end && bursts < MAX_TIMES) {
		one_burst();
		took[bursts] = ns_now() - last;
		last += took[bursts++];
	}
	CHECK(bursts);
	qsort(took, bursts, sizeof(*took), compare);
	printf("%.1f\n", (double)took[bursts / 2] / burst);
	return 0;
}
