/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Definitions that the kernel has and the headers of an older kernel lack (Debian
 * trixie, with a backported kernel).
 */
#ifndef SELFTEST_LATER_UAPI_H
#define SELFTEST_LATER_UAPI_H

#include <linux/version.h>
#include <rdma/ib_user_ioctl_cmds.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
#define UVERBS_METHOD_REG_MR (UVERBS_METHOD_REG_DMABUF_MR + 1)
enum {
	UVERBS_ATTR_REG_MR_HANDLE,
	UVERBS_ATTR_REG_MR_PD_HANDLE,
	UVERBS_ATTR_REG_MR_DMA_HANDLE,
	UVERBS_ATTR_REG_MR_IOVA,
	UVERBS_ATTR_REG_MR_ADDR,
	UVERBS_ATTR_REG_MR_LENGTH,
	UVERBS_ATTR_REG_MR_ACCESS_FLAGS,
	UVERBS_ATTR_REG_MR_FD,
	UVERBS_ATTR_REG_MR_FD_OFFSET,
	UVERBS_ATTR_REG_MR_RESP_LKEY,
	UVERBS_ATTR_REG_MR_RESP_RKEY,
};
#endif

#endif /* SELFTEST_LATER_UAPI_H */
