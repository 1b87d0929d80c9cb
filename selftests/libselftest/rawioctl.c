// SPDX-License-Identifier: GPL-2.0
#include "rawioctl.h"

struct raw *raw_begin_on(struct raw *raw, uint16_t object, uint16_t method)
{
	memset(raw, 0, sizeof(*raw));
	raw->hdr.object_id = object;
	raw->hdr.method_id = method;
	raw->hdr.driver_id = XROCE_DRIVER_ID;
	return raw;
}

struct raw *raw_begin(struct raw *raw, uint16_t method)
{
	return raw_begin_on(raw, UVERBS_OBJECT_XRCD, method);
}

struct raw *raw_attr(struct raw *raw, uint16_t id, uint16_t len, uint64_t data)
{
	struct ib_uverbs_attr *attr = &raw->attrs[raw->hdr.num_attrs++];

	attr->attr_id = id;
	attr->len = len;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	attr->data = data;
	return raw;
}

struct raw *raw_in(struct raw *raw, uint16_t id, const void *from, uint16_t len)
{
	uint64_t data = (uintptr_t)from;

	if (len <= sizeof(data)) {
		data = 0;
		memcpy(&data, from, len);
	}
	return raw_attr(raw, id, len, data);
}

int raw_call(struct ibv_context *ctx, struct raw *raw)
{
	raw->hdr.length = sizeof(raw->hdr) + raw->hdr.num_attrs * sizeof(raw->attrs[0]);
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, raw) ? errno : 0;
}
