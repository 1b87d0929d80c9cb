// SPDX-License-Identifier: GPL-2.0
/*
 * Compiled whenever the library is built, to nothing: the ABI of the header, of
 * abi.rs and of libibverbs are the same where they must be.
 */
#include <stddef.h>
#include <infiniband/verbs.h>
#include <infiniband/xroce_dv.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/xroce-abi.h>

/* The type of a member of the union in a send slot, which has no name. */
#define PART(member) __typeof__(((struct xroce_send_slot *)0)->member)

#include "assertions.h"

/* The parts of a send slot begin at one place, which is asserted for the first. */
#define UNION(member) _Static_assert(offsetof(struct xroce_send_slot, member) == \
	offsetof(struct xroce_send_slot, rdma), #member)
UNION(ud);
UNION(bind);
UNION(flush);

/* The library copies the elements of libibverbs into slots. */
#define SGE(member) _Static_assert(offsetof(struct ibv_sge, member) == \
	offsetof(struct xroce_sge, member), #member)
_Static_assert(sizeof(struct ibv_sge) == sizeof(struct xroce_sge), "sge");
SGE(addr);
SGE(length);
SGE(lkey);

/*
 * Numbers that the library passes on as they are. Left out are those that
 * older versions of libibverbs lack: of FLUSH and of the atomic write.
 */
#define SAME(ours, theirs) _Static_assert((unsigned int)(ours) == (unsigned int)(theirs), #ours)
#define WR(name, theirs) SAME(XROCE_WR_##name, IBV_WR_##theirs)
WR(RDMA_WRITE, RDMA_WRITE);
WR(RDMA_WRITE_IMM, RDMA_WRITE_WITH_IMM);
WR(SEND, SEND);
WR(SEND_IMM, SEND_WITH_IMM);
WR(RDMA_READ, RDMA_READ);
WR(ATOMIC_CMP_SWAP, ATOMIC_CMP_AND_SWP);
WR(ATOMIC_FETCH_ADD, ATOMIC_FETCH_AND_ADD);
WR(LOCAL_INV, LOCAL_INV);
WR(BIND_MW, BIND_MW);
WR(SEND_INV, SEND_WITH_INV);

#define SEND(name) SAME(XROCE_SEND_##name, IBV_SEND_##name)
SEND(FENCE);
SEND(SIGNALED);
SEND(SOLICITED);
SEND(INLINE);

#define WC(name) SAME(XROCE_WC_##name, IBV_WC_##name)
WC(SUCCESS);
WC(LOC_LEN_ERR);
WC(LOC_QP_OP_ERR);
WC(LOC_PROT_ERR);
WC(WR_FLUSH_ERR);
WC(MW_BIND_ERR);
WC(BAD_RESP_ERR);
WC(LOC_ACCESS_ERR);
WC(REM_INV_REQ_ERR);
WC(REM_ACCESS_ERR);
WC(REM_OP_ERR);
WC(RETRY_EXC_ERR);
WC(RNR_RETRY_EXC_ERR);
WC(REM_ABORT_ERR);
WC(FATAL_ERR);
WC(GENERAL_ERR);
WC(TM_ERR);
WC(TM_RNDV_INCOMPLETE);
WC(SEND);
WC(RDMA_WRITE);
WC(RDMA_READ);
WC(COMP_SWAP);
WC(FETCH_ADD);
WC(BIND_MW);
WC(LOCAL_INV);
WC(RECV);
WC(RECV_RDMA_WITH_IMM);
WC(TM_ADD);
WC(TM_DEL);
WC(TM_SYNC);
WC(TM_RECV);
WC(TM_NO_TAG);
WC(GRH);
WC(WITH_IMM);
WC(WITH_INV);
WC(TM_SYNC_REQ);
WC(TM_MATCH);
WC(TM_DATA_VALID);

/* Programs see it in <infiniband/xroce_dv.h>. */
SAME(XROCE_EVENT_RCV_QP, XROCE_DV_XRC_QP_EVENT_FLAG);
SAME(XROCE_RCV_QP_PERSISTENT, XROCE_DV_XRC_RCV_QP_PERSISTENT);
