/* SPDX-License-Identifier: GPL-2.0 */
/* Functions of Rust that C calls. */
#ifndef XRDMA_SERVICES_CALL_H
#define XRDMA_SERVICES_CALL_H

#include <linux/types.h>

/* @fn is a Rust function that only Rust can call; @cookie is its argument. */
typedef void (*xrdma_call_fn)(void *fn, __u64 cookie);

#endif /* XRDMA_SERVICES_CALL_H */
