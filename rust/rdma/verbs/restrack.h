/* SPDX-License-Identifier: GPL-2.0 */
/* The resource tracker. */
#ifndef XRDMA_VERBS_RESTRACK_H
#define XRDMA_VERBS_RESTRACK_H

#include <rdma/restrack.h>

struct ib_qp;

/*
 * Exported, but declared in a private header of the core (restrack.h). The name
 * in the list is the module's, as for other kernel-owned objects.
 */
void rdma_restrack_new(struct rdma_restrack_entry *res,
		       enum rdma_restrack_type type);
void rdma_restrack_set_name(struct rdma_restrack_entry *res,
			    const char *caller);
void rdma_restrack_add(struct rdma_restrack_entry *res);
void rdma_restrack_del(struct rdma_restrack_entry *res);

void xrdma_ib_track_qp(struct ib_qp *qp);
void xrdma_ib_untrack_qp(struct ib_qp *qp);

#endif /* XRDMA_VERBS_RESTRACK_H */
