/* SPDX-License-Identifier: GPL-2.0 */
/* Pinned user memory. */
#ifndef XRDMA_VERBS_UMEM_H
#define XRDMA_VERBS_UMEM_H

#include <linux/types.h>

struct ib_device;
struct ib_umem;
struct xrdma_mem;

struct ib_umem *xrdma_umem_pin(struct ib_device *dev, __u64 addr, __u64 length,
			       int access, struct xrdma_mem *mem);
void xrdma_umem_unpin(struct ib_umem *umem, struct xrdma_mem *mem);
bool xrdma_umem_writable(const struct ib_umem *umem);

#endif /* XRDMA_VERBS_UMEM_H */
