// SPDX-License-Identifier: GPL-2.0
/*
 * Writes garbage into the rings that the kernel shares with user space, while
 * a well-behaved connection on the same device goes on.
 *
 *   hostile DEVICE GID-INDEX ROUNDS SEED
 *
 * Each round is a child process: it connects a pair of its own, finds the rings
 * among its mappings, and for a while mixes proper calls with random stores to
 * indices, flags and slots. It may crash; the kernel, and the connection of the
 * parent, may not notice. The kernel's log is the runner's to look at.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/xroce-abi.h>

#include "pair.h"

#define MAX_RINGS 16

static struct {
	volatile uint8_t *base;
	size_t size;
} rings[MAX_RINGS];
static int nrings;

/* The parent's mappings, which a child inherits and has to leave alone. */
static unsigned long honest_rings[MAX_RINGS];
static int nhonest;

static uint64_t state;

/* A generator whose sequence the seed decides (xorshift64*). */
static uint32_t rnd(uint32_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)((state * 0x2545f4914f6cdd1dull) >> 32) % below;
}

static int is_honest(unsigned long at)
{
	int i;

	for (i = 0; i < nhonest; i++)
		if (honest_rings[i] == at)
			return 1;
	return 0;
}

/* The mappings of the uverbs file are the rings. */
static void find_rings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512];

	nrings = 0;
	while (f && fgets(line, sizeof(line), f) && nrings < MAX_RINGS) {
		if (!strstr(line, "uverbs") ||
		    sscanf(line, "%lx-%lx rw-s", &from, &to) != 2 ||
		    is_honest(from))
			continue;
		rings[nrings].base = (uint8_t *)from;
		rings[nrings++].size = to - from;
	}
	if (f)
		fclose(f);
	if (!nrings) {
		printf("no rings found\n");
		exit(3);
	}
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

static void scribble(void)
{
	volatile uint8_t *base;
	size_t size, at;
	int r = rnd(nrings), i;

	base = rings[r].base;
	size = rings[r].size;
	switch (rnd(5)) {
	case 0:
		*(volatile uint32_t *)(base + offsetof(struct xroce_ring_hdr, user_index)) += rnd(80);
		break;
	case 1:
		*(volatile uint32_t *)(base + offsetof(struct xroce_ring_hdr, user_index)) = odd_word();
		break;
	case 2:
		at = rnd(XROCE_RING_HDR_SIZE / 4) * 4;
		*(volatile uint32_t *)(base + at) = odd_word();
		break;
	case 3:
		/* A word of a slot: opcode, flags, counts, keys, lengths... */
		at = XROCE_RING_HDR_SIZE + rnd((size - XROCE_RING_HDR_SIZE) / 4) * 4;
		*(volatile uint32_t *)(base + at) = odd_word();
		break;
	default:
		at = XROCE_RING_HDR_SIZE + rnd((size - XROCE_RING_HDR_SIZE) / 64) * 64;
		for (i = 0; i < 64 && at + i < size; i++)
			base[at + i] = rnd(256);
	}
}

static void round_of_garbage(const char *device, int gid_index)
{
	struct end a, b;
	struct ibv_wc wc[8];
	int i, calls = 300;

	make_end(&a, device, gid_index);
	make_end(&b, device, gid_index);
	connect_end(&a, &b);
	connect_end(&b, &a);
	find_rings();
	for (i = 0; i < calls; i++) {
		struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
		struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

		switch (rnd(12)) {
		case 0: case 1: case 2:
			scribble();
			break;
		case 3: case 4: case 5:
			post_send(rnd(2) ? &a : &b, i, rnd(PAIR_SIZE));
			break;
		case 6: case 7:
			post_receive(rnd(2) ? &a : &b, i);
			break;
		case 8: case 9:
			ibv_poll_cq(rnd(2) ? a.cq : b.cq, 8, wc);
			break;
		case 10:
			ibv_req_notify_cq(rnd(2) ? a.cq : b.cq, rnd(2));
			break;
		default:
			if (rnd(4))
				break;
			if (rnd(3) == 0)
				ibv_resize_cq(a.cq, 1 + rnd(4 * PAIR_DEPTH));
			else if (rnd(2))
				ibv_modify_qp(a.qp, &err, IBV_QP_STATE);
			else if (!ibv_modify_qp(b.qp, &reset, IBV_QP_STATE))
				connect_end(&b, &a);
			/* A resized ring is another mapping. */
			find_rings();
		}
	}
	if (rnd(2))
		_exit(0);
	ibv_destroy_qp(a.qp);
	ibv_destroy_qp(b.qp);
	_exit(0);
}

/* One checked message from A to B. */
static void honest(struct end *a, struct end *b, uint8_t value)
{
	struct ibv_wc wc;
	int n;

	memset(a->buf, value, PAIR_SIZE);
	memset(b->buf + PAIR_SIZE, ~value, PAIR_SIZE);
	if (post_receive(b, value) || post_send(a, value, PAIR_SIZE)) {
		printf("the honest pair cannot post\n");
		exit(1);
	}
	while (!(n = ibv_poll_cq(b->cq, 1, &wc)))
		;
	if (n != 1 || wc.status || memcmp(b->buf + PAIR_SIZE, a->buf, PAIR_SIZE)) {
		printf("the honest pair's message: %s\n", n == 1 ?
		       ibv_wc_status_str(wc.status) : "poll failed");
		exit(1);
	}
	while (!(n = ibv_poll_cq(a->cq, 1, &wc)))
		;
	if (n != 1 || wc.status) {
		printf("the honest pair's send: %s\n", n == 1 ?
		       ibv_wc_status_str(wc.status) : "poll failed");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct end a, b;
	int rounds, i, status, crashed = 0;
	uint64_t seed;

	if (argc != 5)
		return 2;
	rounds = atoi(argv[3]);
	seed = strtoull(argv[4], NULL, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	make_end(&a, argv[1], atoi(argv[2]));
	make_end(&b, argv[1], atoi(argv[2]));
	connect_end(&a, &b);
	connect_end(&b, &a);
	find_rings();
	for (i = 0; i < nrings; i++)
		honest_rings[i] = (unsigned long)rings[i].base;
	nhonest = nrings;
	for (i = 0; i < rounds; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid) {
			state = (seed + i) * 0x9e3779b97f4a7c15ull + 1;
			/* The plug-in may spin on a ring that makes no sense. */
			alarm(60);
			round_of_garbage(argv[1], atoi(argv[2]));
		}
		do {
			honest(&a, &b, (uint8_t)i);
		} while (!waitpid(pid, &status, WNOHANG));
		if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
			return 1;
		crashed += !WIFEXITED(status);
	}
	honest(&a, &b, 77);
	printf("%d rounds, %d children crashed\n", rounds, crashed);
	return 0;
}
