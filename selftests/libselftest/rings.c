// SPDX-License-Identifier: GPL-2.0
#include <stddef.h>

#include "rings.h"

static int has_ring(const struct rings *r, const uint8_t *at)
{
	int i;

	for (i = 0; r && i < r->count; i++)
		if (r->ring[i].at == at)
			return 1;
	return 0;
}

int find_rings(struct rings *r, const struct rings *but)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char text[512];
	int found = 0;

	CHECK(f);
	while (fgets(text, sizeof(text), f)) {
		if (!strstr(text, "uverbs") || sscanf(text, "%lx-%lx rw-s", &from, &to) != 2 ||
		    has_ring(r, (uint8_t *)from) || has_ring(but, (uint8_t *)from))
			continue;
		CHECK(r->count < MAX_RINGS);
		r->ring[r->count++] = (struct ring) { (uint8_t *)from, to - from };
		found++;
	}
	fclose(f);
	return found;
}

size_t receive_ring_at(struct ibv_qp *qp)
{
	size_t data, slot, entries = 1, line = offsetof(struct xroce_ring_hdr, kernel_index);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_CAP, &init));
	data = attr.cap.max_send_sge * sizeof(struct xroce_sge);
	if (data < attr.cap.max_inline_data)
		data = attr.cap.max_inline_data;
	slot = (XROCE_SEND_SLOT_HDR + data + XROCE_SEND_SLOT_ALIGN - 1) /
	       XROCE_SEND_SLOT_ALIGN * XROCE_SEND_SLOT_ALIGN;
	while (entries < attr.cap.max_send_wr)
		entries *= 2;
	return (XROCE_RING_HDR_SIZE + entries * slot + line - 1) / line * line;
}

struct xroce_ring_hdr *ring_hdr(const struct ring *r)
{
	return (void *)r->at;
}

void *first_slot(const struct ring *r, size_t size)
{
	return r->size >= XROCE_RING_HDR_SIZE + size ? r->at + XROCE_RING_HDR_SIZE : NULL;
}

void store_index(const struct ring *r, uint32_t index)
{
	atomic_store((_Atomic uint32_t *)&ring_hdr(r)->user_index, index);
}

/* The doorbell that libxroce rings: COMMAND is that of the object HANDLE. The error. */
static int ring_doorbell(struct ibv_context *ctx, uint32_t command, uint32_t handle)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send body;
	} cmd = {
		.hdr = { .command = command, .in_words = sizeof(cmd) / 4, .out_words = 1 },
		.body = { .qp_handle = handle, .wqe_size = 64 },
	};
	uint32_t response;

	cmd.body.response = (uintptr_t)&response;
	return write(ctx->cmd_fd, &cmd, sizeof(cmd)) == sizeof(cmd) ? 0 : errno;
}

int qp_doorbell(struct ibv_qp *qp)
{
	return ring_doorbell(qp->context, IB_USER_VERBS_CMD_POST_SEND, qp->handle);
}

int srq_doorbell(struct ibv_srq *srq)
{
	return ring_doorbell(srq->context, IB_USER_VERBS_CMD_POST_SRQ_RECV, srq->handle);
}
