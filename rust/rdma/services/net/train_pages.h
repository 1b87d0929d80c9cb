/* SPDX-License-Identifier: GPL-2.0 */
/* Pages for the payload of trains. */
#ifndef XRDMA_SERVICES_NET_TRAIN_PAGES_H
#define XRDMA_SERVICES_NET_TRAIN_PAGES_H

#include <linux/types.h>

struct sk_buff;

struct sk_buff *xrdma_train_alloc(u32 headroom, u32 head, u32 len);
void xrdma_train_pages_init(void);
void xrdma_train_pages_exit(void);

#endif /* XRDMA_SERVICES_NET_TRAIN_PAGES_H */
