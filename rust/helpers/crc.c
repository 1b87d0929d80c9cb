// SPDX-License-Identifier: GPL-2.0
/* The CRC-32 on which the ICRC is based. */
#include <linux/crc32.h>

#include "helpers.h"

/* crc32_le() is a plain function, but neither crate's bindings read its header. */
__u32 xrdma_crc32_le(__u32 seed, const void *data, size_t len)
{
	return crc32_le(seed, data, len);
}
