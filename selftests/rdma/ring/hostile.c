// SPDX-License-Identifier: GPL-2.0
/*
 * Writes garbage into the rings that the kernel shares with user space, while a
 * well-behaved connection between the same devices continues.
 *
 *   hostile ROUNDS SEED DEVICE GID-INDEX [DEVICE GID-INDEX]
 *
 * Each round is a child process. It creates connections of its own (RC, XRC and UD),
 * finds the rings among its mappings, and mixes valid calls with random stores to
 * indices, flags and slots. One of its threads rewrites them while the kernel reads.
 * The kernel may report nonsense to the child, but the kernel itself and the connection
 * of the parent must not be affected. A child that did not find its rings, or did not
 * reach its end, is a failure. The runner checks the kernel's log.
 */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "devices.h"
#include "flow.h"
#include "rings.h"

#define CALLS 300
#define KINDS 3

/* How far a child has got, in memory that its parent sees. */
static struct progress {
	atomic_uint calls;
	/* Stores of the child, and of its thread. */
	atomic_uint stores, rewrites;
} *progress;

/* The parent's mappings, which a child inherits and has to leave alone. */
static struct rings honest_rings;
/* The child's. The lock keeps them mapped while something is stored. */
static struct rings rings;
static pthread_mutex_t mapped = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stopped;
/* The thread leaves indices and flags alone, so that the kernel gets to read slots. */
static int spares_indices;

static __thread uint64_t state;

/* A generator whose sequence the seed decides (xorshift64*). */
static uint32_t rnd(uint32_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)((state * 0x2545f4914f6cdd1dull) >> 32) % below;
}

static uint32_t odd_word(void)
{
	switch (rnd(6)) {
	case 0: return 0;
	case 1: return UINT32_MAX;
	case 2: return 1u << rnd(32);
	case 3: return rnd(256);
	case 4: return 0x80000000u + rnd(64);
	default: return rnd(UINT32_MAX);
	}
}

/* A word of a slot: opcode, flags, counts, keys, lengths... */
static void scribble_slot(const struct ring *r)
{
	size_t words = (r->size - XROCE_RING_HDR_SIZE) / 4;

	((volatile uint32_t *)(r->at + XROCE_RING_HDR_SIZE))[rnd(words)] = odd_word();
}

static void scribble(const struct ring *r)
{
	volatile uint32_t *words = (void *)r->at;
	volatile uint32_t *index = words + offsetof(struct xroce_ring_hdr, user_index) / 4;
	size_t at;
	int i;

	switch (rnd(5)) {
	case 0:
		*index += rnd(80);
		break;
	case 1:
		*index = odd_word();
		break;
	case 2:
		words[rnd(XROCE_RING_HDR_SIZE / 4)] = odd_word();
		break;
	case 3:
		scribble_slot(r);
		break;
	default:
		at = XROCE_RING_HDR_SIZE + rnd((r->size - XROCE_RING_HDR_SIZE) / 64) * 64;
		for (i = 0; i < 64 && at + i < r->size; i++)
			((volatile uint8_t *)r->at)[at + i] = rnd(256);
	}
}

/* Rewrites the rings as fast as it can. */
static void *rewrite(void *arg)
{
	state = *(uint64_t *)arg;
	while (!atomic_load(&stopped)) {
		int i;

		pthread_mutex_lock(&mapped);
		for (i = 0; i < 16; i++) {
			const struct ring *r = &rings.ring[rnd(rings.count)];

			if (spares_indices || rnd(64))
				scribble_slot(r);
			else
				scribble(r);
		}
		pthread_mutex_unlock(&mapped);
		atomic_fetch_add(&progress->rewrites, 16);
	}
	return NULL;
}

static void look_for_rings(const struct flow *f)
{
	size_t at = receive_ring_at(f->a.qp);
	int i, found;

	rings.count = 0;
	found = find_rings(&rings, &honest_rings);
	CHECK(found);
	/* A receive ring behind a send ring is as good as others; elsewhere it is a slot. */
	for (i = 0; i < found; i++) {
		const struct ring *r = &rings.ring[i];

		if (r->size < at + XROCE_RING_HDR_SIZE + 64)
			continue;
		CHECK(rings.count < MAX_RINGS);
		rings.ring[rings.count++] = (struct ring) { r->at + at, r->size - at };
	}
}

/* Queue pairs anew: those of before may be in error for good, and the library's idea
 * of their rings with them. */
static void renew(struct flow *f)
{
	pthread_mutex_lock(&mapped);
	CHECK(!ibv_destroy_qp(f->a.qp) && !ibv_destroy_qp(f->b.qp));
	flow_make_qps(f);
	look_for_rings(f);
	pthread_mutex_unlock(&mapped);
}

static void resize(struct flow *f)
{
	struct ibv_srq_attr attr = { .max_wr = 1 + rnd(4 * PAIR_DEPTH) };

	/* The old ring is unmapped, the new one another mapping. */
	pthread_mutex_lock(&mapped);
	if (f->srq && rnd(2))
		ibv_modify_srq(f->srq, &attr, IBV_SRQ_MAX_WR);
	else
		ibv_resize_cq(rnd(2) ? f->a.cq : f->b.cq, 1 + rnd(4 * PAIR_DEPTH));
	look_for_rings(f);
	pthread_mutex_unlock(&mapped);
}

static void call(struct flow *f, uint64_t id)
{
	struct ibv_qp_attr other = { .qp_state = rnd(2) ? IBV_QPS_ERR : IBV_QPS_RTS };
	struct ibv_wc wc[8];

	switch (rnd(16)) {
	case 0: case 1: case 2:
		scribble(&rings.ring[rnd(rings.count)]);
		atomic_fetch_add(&progress->stores, 1);
		break;
	case 3: case 4: case 5: case 6:
		flow_send(f, id, rnd(f->kind == FLOW_UD ? 1200 : PAIR_SIZE));
		break;
	case 7: case 8: case 9:
		flow_receive(f, id);
		break;
	case 10: case 11:
		ibv_poll_cq(rnd(2) ? f->a.cq : f->b.cq, 8, wc);
		break;
	case 12:
		ibv_req_notify_cq(rnd(2) ? f->a.cq : f->b.cq, rnd(2));
		break;
	case 13:
		qp_doorbell(f->a.qp);
		break;
	case 14:
		if (rnd(2))
			resize(f);
		else if (rnd(2))
			/* To RTS perhaps from SQE. */
			ibv_modify_qp(rnd(2) ? f->a.qp : f->b.qp, &other, IBV_QP_STATE);
		break;
	default:
		renew(f);
	}
}

static void round_of_garbage(const struct devices *on, uint64_t seed)
{
	uint64_t of_thread = seed ^ 0x5bd1e995;
	struct flow flows[KINDS];
	pthread_t writer;
	int i;

	state = seed;
	for (i = 0; i < KINDS; i++)
		make_flow(&flows[i], (enum flow_kind)i, rnd(2), on->name, on->gid_index);
	look_for_rings(&flows[0]);
	spares_indices = rnd(2);
	CHECK(!pthread_create(&writer, NULL, rewrite, &of_thread));
	/* On a busy machine the thread may begin after all calls. */
	while (!atomic_load(&progress->rewrites))
		sched_yield();
	for (i = 0; i < CALLS; i++) {
		call(&flows[rnd(KINDS)], i);
		atomic_fetch_add(&progress->calls, 1);
	}
	/* The library takes down half of them, the kernel the rest. */
	if (rnd(2))
		_exit(0);
	atomic_store(&stopped, 1);
	CHECK(!pthread_join(writer, NULL));
	for (i = 0; i < KINDS; i++)
		free_flow(&flows[i]);
	_exit(0);
}

/* One checked message from A to B. */
static void honest(struct end *a, struct end *b, uint8_t value)
{
	struct ibv_wc wc;

	memset(a->buf, value, PAIR_SIZE);
	memset(b->buf + PAIR_SIZE, ~value, PAIR_SIZE);
	CHECK(!post_receive(b, value) && !post_send(a, value, PAIR_SIZE));
	CHECK(next_wc(b->cq, &wc) == 1 && !wc.status);
	CHECK(!memcmp(b->buf + PAIR_SIZE, a->buf, PAIR_SIZE));
	CHECK(next_wc(a->cq, &wc) == 1 && !wc.status);
}

/* The child PID of round I, at whose end it must have done all it was to do. */
static void wait_for_child(pid_t pid, int i, struct end *a, struct end *b)
{
	int status;

	do {
		honest(a, b, (uint8_t)i);
	} while (!waitpid(pid, &status, WNOHANG));
	if (status || progress->calls != CALLS || !progress->stores || !progress->rewrites)
		printf("round %d: %s %d after %u calls, %u stores, %u by the thread\n", i,
		       WIFEXITED(status) ? "exit" : "signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
		       progress->calls, progress->stores, progress->rewrites);
	CHECK(!status);
	CHECK(progress->calls == CALLS && progress->stores && progress->rewrites);
}

int main(int argc, char **argv)
{
	unsigned long rewrites = 0;
	struct devices on;
	struct end a, b;
	int rounds, i;
	uint64_t seed;

	if (argc != 5 && argc != 7)
		return 2;
	rounds = atoi(argv[1]);
	seed = strtoull(argv[2], NULL, 0);
	on.name[0] = argv[3];
	on.gid_index[0] = atoi(argv[4]);
	on.name[1] = argv[argc - 2];
	on.gid_index[1] = atoi(argv[argc - 1]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	CHECK(progress != MAP_FAILED);
	make_end(&a, on.name[0], on.gid_index[0]);
	make_end(&b, on.name[1], on.gid_index[1]);
	connect_end(&a, &b);
	connect_end(&b, &a);
	CHECK(find_rings(&honest_rings, NULL));
	for (i = 0; i < rounds; i++) {
		pid_t pid;

		memset((void *)progress, 0, sizeof(*progress));
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			/* Nobody waits for ever on a ring that makes no sense. */
			alarm(getenv("SELFTEST_SLOW") ? 60 * atoi(getenv("SELFTEST_SLOW")) : 60);
			round_of_garbage(&on, (seed + i) * 0x9e3779b97f4a7c15ull + 1);
		}
		wait_for_child(pid, i, &a, &b);
		rewrites += progress->rewrites;
	}
	honest(&a, &b, 77);
	printf("%d rounds, %lu words rewritten by threads\n", rounds, rewrites);
	return 0;
}
