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

static inline struct raw *raw_begin_on(struct raw *raw, uint16_t object, uint16_t method)
{
	memset(raw, 0, sizeof(*raw));
	raw->hdr.object_id = object;
	raw->hdr.method_id = method;
	raw->hdr.driver_id = XROCE_DRIVER_ID;
	return raw;
}

static inline struct raw *raw_begin(struct raw *raw, uint16_t method)
{
	return raw_begin_on(raw, UVERBS_OBJECT_XRCD, method);
}

static inline struct raw *raw_attr(struct raw *raw, uint16_t id, uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *attr = &raw->attrs[raw->hdr.num_attrs++];

	attr->attr_id = id;
	attr->len = len;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	attr->data = data;
	return raw;
}

/* What a method reads: up to 8 bytes stand in the attribute itself. */
static inline struct raw *raw_in(struct raw *raw, uint16_t id, const void *from, uint16_t len)
{
	uint64_t data = (uintptr_t)from;

	if (len <= sizeof(data)) {
		data = 0;
		memcpy(&data, from, len);
	}
	return raw_attr(raw, id, len, data);
}

/* 0 or the value of errno. What the kernel answers in place is in the attributes. */
static inline int raw_call(struct ibv_context *ctx, struct raw *raw)
{
	raw->hdr.length = sizeof(raw->hdr) + raw->hdr.num_attrs * sizeof(raw->attrs[0]);
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, raw) ? errno : 0;
}

#endif /* SELFTEST_RAWIOCTL_H */
