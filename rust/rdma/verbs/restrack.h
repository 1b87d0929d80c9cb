/* SPDX-License-Identifier: GPL-2.0 */
/* The resource tracker. */
#ifndef XRDMA_VERBS_RESTRACK_H
#define XRDMA_VERBS_RESTRACK_H

#include <linux/types.h>

struct ib_qp;

void xrdma_ib_track_qp(struct ib_qp *qp);
void xrdma_ib_untrack_qp(struct ib_qp *qp);

#endif /* XRDMA_VERBS_RESTRACK_H */
