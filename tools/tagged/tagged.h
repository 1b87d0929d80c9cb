/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ranks that exchange tagged messages, as in MPI. plan.c decides who sends what and how
 * it is received, rank.c connects and sends, match.c receives.
 */
#ifndef TAGGED_H
#define TAGGED_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "tm.h"

#define MAX_RANKS 32
/* Longer messages go by rendezvous: the receiver reads them. */
#define EAGER_MAX 2048
#define LEN_MAX 12000
/* Messages under way from one rank to another. */
#define WINDOW 4
/* Where a message waits at its sender: headers first, the data of a rendezvous behind. */
#define SLOT 16384
#define SLOT_DATA 64
/* Receives for messages that no tag takes. */
#define BUFFERS 64
#define BUFFER (EAGER_MAX + 64)

struct options {
	int ranks, messages, rounds;
	uint32_t seed;
	/* The device matches, or software does. */
	int by_device;
	const char *device[2];
	int gid_index[2];
};

extern struct options options;

/* What a rank has to say. */
struct outcome {
	/* Messages that took a tag; that the receiver kept until it wanted them. */
	uint32_t by_device, kept;
	/* Receives and messages that software compared. */
	uint64_t compared;
	double seconds, cpu;
};

/* What the ranks tell each other when they start. */
struct shared {
	atomic_int arrived[3];
	/* Grows with whatever a rank gets done. */
	atomic_uint steps;
	struct {
		union ibv_gid gid;
		uint32_t qpn[MAX_RANKS];
		struct outcome outcome;
	} rank[MAX_RANKS];
};

/*
 * Messages are of classes, which are received differently: by sender and tag, by
 * tag from any sender, by sender with any tag of a group.
 */
#define ANY_SENDER_FIRST 6
#define GROUP 8
#define GROUP_BITS 7ull

struct receive {
	uint64_t tag, mask;
	uint32_t handle;
	int class;
	uint8_t *buf;
	/* The message that came. */
	uint32_t from, n;
	int is_done;
	TAILQ_ENTRY(receive) entry;
};

TAILQ_HEAD(receives, receive);

/* plan.c */
uint32_t plan_tag(int from, int to, uint32_t n);
uint32_t plan_len(int from, int to, uint32_t n);
void plan_fill(uint8_t *at, int from, int to, uint32_t n);
uint32_t plan_random(uint32_t below);
void plan_seed(uint32_t seed);
struct receive *plan_receives(int me, uint32_t *count);
void plan_check(int me, const struct receive *r, uint32_t len);
void plan_check_order(int me, const struct receive *r, uint32_t count);

/* A rank. */
struct rank {
	int me;
	struct shared *shared;
	struct end end;
	struct ibv_qp *qp[MAX_RANKS];
	struct ibv_cq *send_cq;
	/* Where messages wait, and what each has to wait for. */
	uint8_t *out;
	struct ibv_mr *out_mr;
	uint8_t busy[MAX_RANKS][WINDOW];
	uint32_t sent[MAX_RANKS];
	/* Where others come. */
	uint8_t *in;
	struct ibv_mr *in_mr;
	/* Receives in the order in which they are posted; how many were, and are done. */
	struct receive *receives;
	uint32_t count, posted, done;
	uint8_t *bufs;
	struct ibv_mr *bufs_mr;
	struct receives open;
	TAILQ_HEAD(, kept) kept;
	struct outcome outcome;
	/* The queue: one that matches, or a plain one. */
	struct tag_queue tm;
	struct ibv_srq *srq;
	struct ibv_cq *recv_cq;
	/* Messages without a tag in the list that were handled, and reported. */
	uint32_t handled, reported;
};

enum { WR_MESSAGE, WR_READ, WR_FIN };

/* rank.c */
void rank_run(struct shared *shared, int me);
void rank_send_done(struct rank *r, uint32_t slot);
void rank_post(struct rank *r, int to, struct ibv_send_wr *wr);

/* match.c */
void match_start(struct rank *r);
void match_post(struct rank *r, struct receive *v);
void match_poll(struct rank *r);
void match_read_done(struct rank *r, uint32_t receive);
void match_stop(struct rank *r);

#endif /* TAGGED_H */
