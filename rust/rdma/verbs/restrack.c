// SPDX-License-Identifier: GPL-2.0
/* The resource tracker: calls of the core whose header is private. */
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#include "verbs/restrack.h"

/* Needs the declarations of the core's private header. */
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
