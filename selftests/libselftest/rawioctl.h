/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ioctl methods of uverbs, called without the library: those of xroce on an XRC domain,
 * and any other.
 */
#ifndef SELFTEST_RAWIOCTL_H
#define SELFTEST_RAWIOCTL_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/xroce-abi.h>

#include "later_uapi.h"

#define RAW_ATTRS 16

struct raw {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[RAW_ATTRS];
};

struct raw *raw_begin_on(struct raw *raw, uint16_t object, uint16_t method);

struct raw *raw_begin(struct raw *raw, uint16_t method);

struct raw *raw_attr(struct raw *raw, uint16_t id, uint16_t len, uint64_t data);

/* What a method reads: up to 8 bytes stand in the attribute itself. */
struct raw *raw_in(struct raw *raw, uint16_t id, const void *from, uint16_t len);

/* 0 or the value of errno. What the kernel answers in place is in the attributes. */
int raw_call(struct ibv_context *ctx, struct raw *raw);

#endif /* SELFTEST_RAWIOCTL_H */
