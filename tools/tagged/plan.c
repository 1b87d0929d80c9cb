// SPDX-License-Identifier: GPL-2.0
/*
 * The seed alone determines who sends what to whom, so that every rank knows which
 * messages have to come.
 */
#include "tagged.h"

static uint32_t state;

static uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352d;
	x = (x ^ x >> 15) * 0x846ca68b;
	return x ^ x >> 16;
}

static uint32_t draw(int from, int to, uint32_t n, uint32_t what)
{
	return mix(options.seed + mix(from * MAX_RANKS + to + mix(n * 4 + what)));
}

uint32_t plan_random(uint32_t below)
{
	state = state * 1103515245 + 12345;
	return (state >> 16) % below;
}

void plan_seed(uint32_t seed)
{
	state = mix(seed);
}

uint32_t plan_tag(int from, int to, uint32_t n)
{
	return draw(from, to, n, 0) % 16;
}

uint32_t plan_len(int from, int to, uint32_t n)
{
	uint32_t r = draw(from, to, n, 1);

	if (r % 4 == 0)
		return EAGER_MAX + 1 + (r >> 8) % (LEN_MAX - EAGER_MAX);
	return (r >> 8) % (r % 4 == 1 ? EAGER_MAX + 1 : 65);
}

static uint8_t byte(uint32_t start, uint32_t i)
{
	return start + i * 11 + (i >> 8);
}

void plan_fill(uint8_t *at, int from, int to, uint32_t n)
{
	uint32_t len = plan_len(from, to, n), start = draw(from, to, n, 2), i;

	for (i = 0; i < len; i++)
		at[i] = byte(start, i);
}

static int class_of(uint32_t tag)
{
	return tag < GROUP ? (int)tag : GROUP;
}

/* The receives of rank ME, in the order in which it posts them: any. */
struct receive *plan_receives(int me, uint32_t *count)
{
	struct receive *all = calloc(options.ranks * options.messages, sizeof(*all));
	uint32_t k = 0, i, n;
	int from;

	CHECK(all);
	for (from = 0; from < options.ranks; from++) {
		for (n = 0; from != me && n < (uint32_t)options.messages; n++) {
			struct receive *r = &all[k++];

			r->class = class_of(plan_tag(from, me, n));
			r->tag = (uint64_t)from << 32 | r->class;
			r->mask = UINT64_MAX;
			if (r->class == GROUP)
				r->mask &= ~GROUP_BITS;
			else if (r->class >= ANY_SENDER_FIRST)
				r->mask = UINT32_MAX;
		}
	}
	for (i = k; i > 1; i--) {
		uint32_t j = plan_random(i);
		struct receive other = all[j];

		all[j] = all[i - 1];
		all[i - 1] = other;
	}
	*count = k;
	return all;
}

/* The message of a receive is whole. */
void plan_check(int me, const struct receive *r, uint32_t len)
{
	uint32_t start, i;

	CHECK((int)r->from < options.ranks && r->n < (uint32_t)options.messages);
	CHECK(len == plan_len(r->from, me, r->n));
	start = draw(r->from, me, r->n, 2);
	for (i = 0; i < len; i++)
		CHECK(r->buf[i] == byte(start, i));
}

/*
 * Receives of one class take the messages of one sender in the order in which they
 * were sent, each once: what MPI promises.
 */
void plan_check_order(int me, const struct receive *r, uint32_t count)
{
	static uint32_t next[MAX_RANKS][GROUP + 1];
	uint32_t i, n;

	memset(next, 0, sizeof(next));
	for (i = 0; i < count; i++) {
		uint32_t *at = &next[r[i].from][r[i].class];

		CHECK(r[i].is_done);
		if (r[i].mask != UINT32_MAX)
			CHECK(r[i].tag >> 32 == r[i].from);
		for (n = *at; class_of(plan_tag(r[i].from, me, n)) != r[i].class; n++)
			;
		CHECK(r[i].n == n);
		*at = n + 1;
	}
}
