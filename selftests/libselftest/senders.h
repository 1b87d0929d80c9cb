/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Many senders to one tag-matching queue. Each has a connection of its own and some
 * messages in progress: short ones, long ones, ones that the queue's end fetches, and
 * ones without a tag. The queue has tags for any message of one sender, tags for
 * messages of any sender, and receives for the rest. Each message is checked: it must
 * be complete, arrive once, and arrive in its sender's order.
 */
#ifndef SELFTEST_SENDERS_H
#define SELFTEST_SENDERS_H

#include "tm.h"

#define SENDERS 16
/* Messages of a sender under way. */
#define WINDOW 4
#define ROOM 24576
#define SENDER_TAGS 24
#define SENDER_RECEIVES 48
#define RECEIVE_ROOM 8192
#define FIN_ROOM 64

struct sender {
	struct ibv_qp *qp, *peer;
	/* Messages that were sent, and that have come. */
	uint32_t sent, got;
	/* What has to happen before a place is free again. */
	uint8_t busy[WINDOW];
};

struct senders {
	/* The senders' end and the queue's. */
	struct end a, b;
	struct tag_queue tm;
	struct sender s[SENDERS];
	uint8_t *from, *to;
	struct ibv_mr *from_mr, *to_mr;
	/* The message that has taken a tag. */
	struct { uint32_t sender, n; } taken[SENDER_TAGS];
	/* Unexpected messages, and what was reported of them. */
	uint32_t handled, reported;
	uint32_t seed;
	uint32_t matched, unexpected, untagged, fetched;
};

void senders_make(struct senders *all, const char *const device[2],
		  const int gid_index[2]);

void senders_free(struct senders *all);

/* Sends a few messages of any senders that have fewer than MAX, and takes what has
 * come. Not 0 when something failed. */
int senders_step(struct senders *all, uint32_t max);

/* Whether each sender's MAX messages have come, and all places are free. */
int senders_done(const struct senders *all, uint32_t max);

#endif /* SELFTEST_SENDERS_H */
