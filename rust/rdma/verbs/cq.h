/* SPDX-License-Identifier: GPL-2.0 */
/* Completion queues. */
#ifndef XRDMA_VERBS_CQ_H
#define XRDMA_VERBS_CQ_H

#include <linux/types.h>

struct ib_cq;

void xrdma_ib_show_adaptive(struct ib_cq *cq, bool on);
void xrdma_ib_end_polling(struct ib_cq *cq);
void xrdma_ib_choose_polling(struct ib_cq *cq);

#endif /* XRDMA_VERBS_CQ_H */
