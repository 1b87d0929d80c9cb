// SPDX-License-Identifier: GPL-2.0
#include "counted.h"

int objects(struct owned *self)
{
	static const uint16_t ids[] = {
		UVERBS_OBJECT_PD, UVERBS_OBJECT_CQ, UVERBS_OBJECT_QP, UVERBS_OBJECT_SRQ,
		UVERBS_OBJECT_AH, UVERBS_OBJECT_MR, UVERBS_OBJECT_MW, UVERBS_OBJECT_XRCD,
		UVERBS_OBJECT_DM, UVERBS_OBJECT_COMP_CHANNEL,
	};
	uint32_t list[256];
	struct raw raw;
	int n = 0, i;

	for (i = 0; i < (int)(sizeof(ids) / sizeof(ids[0])); i++) {
		uint64_t id = ids[i];
		uint32_t total = 0;

		raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
		raw_in(&raw, UVERBS_ATTR_INFO_OBJECT_ID, &id, 8);
		raw_attr(&raw, UVERBS_ATTR_INFO_TOTAL_HANDLES, 4, (uintptr_t)&total);
		raw_attr(&raw, UVERBS_ATTR_INFO_HANDLES_LIST, sizeof(list), (uintptr_t)list);
		CHECK(!raw_call(self->ours.ctx, &raw));
		n += total;
	}
	return n;
}
