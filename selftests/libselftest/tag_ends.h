/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A sender and a shared receive queue with tag matching, which each case gets anew:
 * operations on the list, messages, and the queue's completions. The sender is on the
 * first device, the queue on the second.
 */
#ifndef SELFTEST_TAG_ENDS_H
#define SELFTEST_TAG_ENDS_H

#include "devices.h"
#include "tm.h"

/* More than there may be masks. */
#define TAGS 80
#define OPS 512
#define RECEIVES 32
#define AREA (1 << 20)
#define ALL UINT64_MAX

struct tag_ends {
	struct devices on;
	/* The sender, and the end with the queue. */
	struct end a, b;
	struct tag_queue queue;
	/* Of what comes to the sender: that may be before its own message is acknowledged. */
	struct ibv_cq *answers;
	/* Memory of each end. */
	uint8_t *from, *to;
	struct ibv_mr *from_mr, *to_mr;
	uint32_t unexpected;
};

void make_tag_ends(struct tag_ends *self);

void free_tag_ends(struct tag_ends *self);

/* The next completion of the queue, which must come. */
struct tm_done next_done(struct tag_ends *self);

void nothing_done(struct tag_ends *self);

int post_op(struct tag_ends *self, struct ibv_ops_wr *wr);

/* Adds a tag for LEN bytes at OFFSET; its handle. */
uint32_t add_flags(struct tag_ends *self, uint64_t id, uint64_t tag, uint64_t mask,
		   uint32_t offset, uint32_t len, int flags);

/* Adds a tag, without a completion: the kernel looks before it matches. */
uint32_t add(struct tag_ends *self, uint64_t id, uint64_t tag, uint64_t mask,
	     uint32_t offset, uint32_t len);

int delete(struct tag_ends *self, uint32_t handle);

struct tm_done sync_count(struct tag_ends *self, uint32_t count);

/* A receive for what no tag takes. */
void post_buffer(struct tag_ends *self, uint64_t id, uint32_t offset, uint32_t len);

/* Sends LEN bytes of the sender's memory; how that ended. */
enum ibv_wc_status send_bytes(struct tag_ends *self, uint32_t len);

void header(struct tag_ends *self, uint8_t op, uint64_t tag);

/* Sends an eager message with LEN bytes of data, which begin with SEED. */
enum ibv_wc_status eager(struct tag_ends *self, uint64_t tag, uint32_t len,
			 uint8_t seed);

int is_data(struct tag_ends *self, uint32_t offset, uint32_t len, uint8_t seed);

/* The next completion is of a message that took tag ID. */
void matched(struct tag_ends *self, uint64_t id, uint64_t tag, uint32_t len);

/* The next completion is of an unexpected message. */
void is_unexpected(struct tag_ends *self, uint64_t id, uint32_t len,
		   unsigned int flags);

#endif /* SELFTEST_TAG_ENDS_H */
