/* SPDX-License-Identifier: GPL-2.0 */
/* Events of queue pairs. */
#ifndef XRDMA_VERBS_EVENTS_H
#define XRDMA_VERBS_EVENTS_H

#include <linux/types.h>

struct ib_qp;

bool xrdma_ib_target_opened(struct ib_qp *qp);

#endif /* XRDMA_VERBS_EVENTS_H */
