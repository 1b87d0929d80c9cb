/* SPDX-License-Identifier: GPL-2.0 */
/* Persistent memory. */
#ifndef XRDMA_SERVICES_MEM_PERSISTENT_H
#define XRDMA_SERVICES_MEM_PERSISTENT_H

#include <linux/types.h>

struct xrdma_mem;

bool xrdma_mem_is_persistent(const struct xrdma_mem *m);
void xrdma_mem_write_back(const struct xrdma_mem *m, __u64 off, size_t len);

#endif /* XRDMA_SERVICES_MEM_PERSISTENT_H */
