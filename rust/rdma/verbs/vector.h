/* SPDX-License-Identifier: GPL-2.0 */
/* How many completion vectors devices get. */
#ifndef XRDMA_VERBS_VECTOR_H
#define XRDMA_VERBS_VECTOR_H

#include <linux/types.h>

__u32 xrdma_vectors_wanted(const char *device, __u32 otherwise);

#endif /* XRDMA_VERBS_VECTOR_H */
