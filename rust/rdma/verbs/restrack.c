// SPDX-License-Identifier: GPL-2.0
/* The resource tracker: calls of the core whose header is private. */
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#include "verbs/restrack.h"

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

/* Needs the declarations above. */
void xrdma_ib_track_qp(struct ib_qp *qp)
{
	rdma_restrack_new(&qp->res, RDMA_RESTRACK_QP);
	rdma_restrack_set_name(&qp->res, KBUILD_MODNAME);
	rdma_restrack_add(&qp->res);
}

/* As above. Waits for those that hold a reference on the entry. */
void xrdma_ib_untrack_qp(struct ib_qp *qp)
{
	rdma_restrack_del(&qp->res);
}
