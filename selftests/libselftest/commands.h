/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The commands of uverbs that have handles in their request: what else the request
 * needs, and the two calls that carry it, write() and an ioctl.
 */
#ifndef SELFTEST_COMMANDS_H
#define SELFTEST_COMMANDS_H

#include <rdma/ib_user_verbs.h>
#include <stddef.h>

#include "made.h"
#include "rawioctl.h"

#define AT(command, member) offsetof(struct ib_uverbs_##command, member)
#define IN(command) sizeof(struct ib_uverbs_##command)
#define OUT(command) sizeof(struct ib_uverbs_##command##_resp)

#define HANDLE(command, member, kind) { AT(command, member), kind, ENOENT }
#define DOMAIN(command, member) { AT(command, member), XRCD, EINVAL }

/* A handle in a request. */
struct place {
	uint16_t at;
	uint16_t kind;
	/* The core's errno if it names nothing. */
	uint16_t none;
};

struct command {
	const char *name;
	uint32_t number;
	/* The request's fields but response and handles. */
	void (*fill)(struct owned *self, void *request);
	uint16_t in, out, driver_in, driver_out;
	struct place place[5];
	/* What becomes of it with right handles: an object, an errno, or neither. */
	enum kind makes;
	int err;
};

void fill_address(struct owned *self, void *request);

void fill_pair(struct owned *self, void *request);

void fill_queue(struct owned *self, void *request);

void fill_xrc_queue(struct owned *self, void *request);

void fill_resize(struct owned *self, void *request);

#define CMD(name) #name, IB_USER_VERBS_CMD_##name

extern const struct command commands[];
extern const size_t command_count;

/* A request, with right handles, and where the answer goes. */
struct request {
	struct ib_uverbs_cmd_hdr hdr;
	uint8_t body[256];
	uint32_t answer[64];
};

void set_handle(struct request *r, const struct place *place, uint32_t handle);

void begin_request(struct owned *self, const struct command *c, struct request *r);

int by_write(struct owned *self, const struct command *c, struct request *r);

int by_ioctl(struct owned *self, const struct command *c, struct request *r);

/* The two calls. */
extern int (*const ways[2])(struct owned *self, const struct command *c, struct request *r);

#endif /* SELFTEST_COMMANDS_H */
