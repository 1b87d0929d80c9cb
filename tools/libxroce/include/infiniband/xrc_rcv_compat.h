/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XRC as programs knew it before libibverbs had it: the calls of OFED 1.3, and
 * the one of the proposal of December 2007. Link with -lxroce -libverbs; see
 * xrc_rcv_compat(3).
 *
 * Include it after <infiniband/verbs.h> and before all that uses what is
 * renamed at the end of this file. It is C, or C++, with the extensions of GNU.
 */
#ifndef INFINIBAND_XRC_RCV_COMPAT_H
#define INFINIBAND_XRC_RCV_COMPAT_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <infiniband/verbs.h>
#include <infiniband/xroce_dv.h>

/* _Static_assert is not known to g++, nor to compilers for C99. */
#define XRC_COMPAT_ASSERT(condition) extern char xrc_compat_assert[(condition) ? 1 : -1]

/* The domain is today's, so that calls of both kinds take it. */
#define ibv_xrc_domain ibv_xrcd

/* A queue pair that sends. */
#define IBV_QPT_XRC IBV_QPT_XRC_SEND

/* In event_type: the event is one of a receive QP, whose number is element.xrc_qp_num. */
#define IBV_XRC_QP_EVENT_FLAG XROCE_DV_XRC_QP_EVENT_FLAG

/* ---- structures that had members which today's lack ---- */

/*
 * struct ibv_srq. The members at its end are where libibverbs keeps them, which no public
 * header says: ibv_create_xrc_srq() looks whether it does.
 */
struct xrc_compat_srq {
	__extension__ struct {
		struct ibv_context *context;
		void *srq_context;
		struct ibv_pd *pd;
		uint32_t handle;
		pthread_mutex_t mutex;
		pthread_cond_t cond;
		uint32_t events_completed;
	};
	int srq_type_of_libibverbs;
	struct ibv_xrc_domain *xrc_domain;
	struct ibv_cq *xrc_cq;
	uint32_t xrc_srq_num;
};
XRC_COMPAT_ASSERT(offsetof(struct xrc_compat_srq, srq_type_of_libibverbs) ==
		  sizeof(struct ibv_srq));
XRC_COMPAT_ASSERT(offsetof(struct xrc_compat_srq, events_completed) ==
		  offsetof(struct ibv_srq, events_completed));

/* struct ibv_qp_init_attr */
struct xrc_compat_qp_init_attr {
	void *qp_context;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct xrc_compat_srq *srq;
	struct ibv_qp_cap cap;
	enum ibv_qp_type qp_type;
	int sq_sig_all;
	struct ibv_xrc_domain *xrc_domain;
};
XRC_COMPAT_ASSERT(offsetof(struct xrc_compat_qp_init_attr, sq_sig_all) ==
		  offsetof(struct ibv_qp_init_attr, sq_sig_all));

/* struct ibv_send_wr */
struct xrc_compat_send_wr {
	uint64_t wr_id;
	struct xrc_compat_send_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
	enum ibv_wr_opcode opcode;
	unsigned int send_flags;
	__extension__ union {
		uint32_t imm_data;
		uint32_t invalidate_rkey;
	};
	__typeof__(((struct ibv_send_wr *)0)->wr) wr;
	__extension__ union {
		__typeof__(((struct ibv_send_wr *)0)->qp_type) qp_type;
		uint32_t xrc_remote_srq_num;
	};
	__extension__ union {
		__typeof__(((struct ibv_send_wr *)0)->bind_mw) bind_mw;
		__typeof__(((struct ibv_send_wr *)0)->tso) tso;
	};
};
XRC_COMPAT_ASSERT(sizeof(struct xrc_compat_send_wr) == sizeof(struct ibv_send_wr));
XRC_COMPAT_ASSERT(offsetof(struct xrc_compat_send_wr, wr) == offsetof(struct ibv_send_wr, wr));
XRC_COMPAT_ASSERT(offsetof(struct xrc_compat_send_wr, xrc_remote_srq_num) ==
		  offsetof(struct ibv_send_wr, qp_type));
XRC_COMPAT_ASSERT(offsetof(struct xrc_compat_send_wr, bind_mw) ==
		  offsetof(struct ibv_send_wr, bind_mw));

/* struct ibv_async_event */
struct xrc_compat_async_event {
	union {
		struct ibv_cq *cq;
		struct ibv_qp *qp;
		struct xrc_compat_srq *srq;
		int port_num;
		uint32_t xrc_qp_num;
	} element;
	enum ibv_event_type event_type;
};
XRC_COMPAT_ASSERT(sizeof(struct xrc_compat_async_event) == sizeof(struct ibv_async_event));
XRC_COMPAT_ASSERT(offsetof(struct xrc_compat_async_event, event_type) ==
		  offsetof(struct ibv_async_event, event_type));

/* ---- today's calls for these structures ---- */

static inline struct xrc_compat_srq *xrc_compat_create_srq(struct ibv_pd *pd,
							   struct ibv_srq_init_attr *attr)
{
	return (struct xrc_compat_srq *)ibv_create_srq(pd, attr);
}

static inline int xrc_compat_modify_srq(struct xrc_compat_srq *srq, struct ibv_srq_attr *attr,
					int attr_mask)
{
	return ibv_modify_srq((struct ibv_srq *)srq, attr, attr_mask);
}

static inline int xrc_compat_query_srq(struct xrc_compat_srq *srq, struct ibv_srq_attr *attr)
{
	return ibv_query_srq((struct ibv_srq *)srq, attr);
}

static inline int xrc_compat_destroy_srq(struct xrc_compat_srq *srq)
{
	return ibv_destroy_srq((struct ibv_srq *)srq);
}

static inline int xrc_compat_post_srq_recv(struct xrc_compat_srq *srq, struct ibv_recv_wr *wr,
					   struct ibv_recv_wr **bad_wr)
{
	return ibv_post_srq_recv((struct ibv_srq *)srq, wr, bad_wr);
}

static inline int xrc_compat_post_send(struct ibv_qp *qp, struct xrc_compat_send_wr *wr,
				       struct xrc_compat_send_wr **bad_wr)
{
	return ibv_post_send(qp, (struct ibv_send_wr *)wr, (struct ibv_send_wr **)bad_wr);
}

static inline int xrc_compat_get_async_event(struct ibv_context *context,
					     struct xrc_compat_async_event *event)
{
	return ibv_get_async_event(context, (struct ibv_async_event *)event);
}

static inline void xrc_compat_ack_async_event(struct xrc_compat_async_event *event)
{
	ibv_ack_async_event((struct ibv_async_event *)event);
}

/* Of type IBV_QPT_XRC it only sends, and belongs to no domain. */
static inline struct ibv_qp *xrc_compat_create_qp(struct ibv_pd *pd,
						  struct xrc_compat_qp_init_attr *attr)
{
	struct ibv_qp_init_attr today;
	struct ibv_qp *qp;

	memset(&today, 0, sizeof(today));
	today.qp_context = attr->qp_context;
	today.send_cq = attr->send_cq;
	today.recv_cq = attr->recv_cq;
	today.cap = attr->cap;
	today.qp_type = attr->qp_type;
	today.sq_sig_all = attr->sq_sig_all;
	if (attr->qp_type == IBV_QPT_XRC) {
		today.cap.max_recv_wr = 0;
		today.cap.max_recv_sge = 0;
	} else {
		today.srq = (struct ibv_srq *)attr->srq;
	}
	qp = ibv_create_qp(pd, &today);
	if (qp)
		attr->cap = today.cap;
	return qp;
}

static inline int xrc_compat_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
				      struct xrc_compat_qp_init_attr *init_attr)
{
	struct ibv_qp_init_attr today;
	int err;

	memset(&today, 0, sizeof(today));
	err = ibv_query_qp(qp, attr, attr_mask, &today);
	if (err)
		return err;
	init_attr->qp_context = today.qp_context;
	init_attr->send_cq = today.send_cq;
	init_attr->recv_cq = today.recv_cq;
	init_attr->srq = (struct xrc_compat_srq *)today.srq;
	init_attr->cap = today.cap;
	init_attr->qp_type = today.qp_type;
	init_attr->sq_sig_all = today.sq_sig_all;
	init_attr->xrc_domain = NULL;
	return 0;
}

/* ---- OFED 1.3 ---- */

/* A device that had no such calls was told by ENOSYS. */
static inline int xrc_compat_error(int err)
{
	return err == EOPNOTSUPP ? ENOSYS : err;
}

/* With FD -1 it is nobody else's. NULL and errno on failure. */
static inline struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd,
							 int oflag)
{
	struct ibv_xrcd_init_attr attr;

	if (!xroce_dv_is_supported(context->device)) {
		errno = ENOSYS;
		return NULL;
	}
	memset(&attr, 0, sizeof(attr));
	attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	attr.fd = fd;
	attr.oflags = oflag;
	return ibv_open_xrcd(context, &attr);
}

/* 0 or the value of errno. */
static inline int ibv_close_xrc_domain(struct ibv_xrc_domain *xrc_domain)
{
	return ibv_close_xrcd(xrc_domain);
}

/* NULL and errno on failure; ENOSYS if libibverbs keeps its number elsewhere. */
static inline struct xrc_compat_srq *ibv_create_xrc_srq(struct ibv_pd *pd,
							struct ibv_xrc_domain *xrc_domain,
							struct ibv_cq *xrc_cq,
							struct ibv_srq_init_attr *srq_init_attr)
{
	struct ibv_srq_init_attr_ex attr;
	struct xrc_compat_srq *srq;
	struct ibv_srq *today;
	uint32_t number;

	memset(&attr, 0, sizeof(attr));
	attr.srq_context = srq_init_attr->srq_context;
	attr.attr = srq_init_attr->attr;
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			 IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	attr.srq_type = IBV_SRQT_XRC;
	attr.pd = pd;
	attr.xrcd = xrc_domain;
	attr.cq = xrc_cq;
	today = ibv_create_srq_ex(pd->context, &attr);
	if (!today)
		return NULL;
	srq = (struct xrc_compat_srq *)today;
	if (ibv_get_srq_num(today, &number) || srq->xrc_srq_num != number ||
	    srq->xrc_domain != xrc_domain || srq->xrc_cq != xrc_cq) {
		ibv_destroy_srq(today);
		errno = ENOSYS;
		return NULL;
	}
	srq_init_attr->attr = attr.attr;
	return srq;
}

/*
 * In the reset state; init_attr->xrc_domain is all that counts. Each returns 0 or the value of
 * errno, as OFED's library did. (Its header says that this one's is negative.)
 */
static inline int ibv_create_xrc_rcv_qp(struct xrc_compat_qp_init_attr *init_attr,
					uint32_t *xrc_rcv_qpn)
{
	struct ibv_qp_attr none;

	if (!init_attr)
		return EINVAL;
	memset(&none, 0, sizeof(none));
	return xrc_compat_error(xroce_dv_create_xrc_rcv_qp(init_attr->xrc_domain, &none, 0,
							   xrc_rcv_qpn));
}

static inline int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
					struct ibv_qp_attr *attr, int attr_mask)
{
	return xrc_compat_error(xroce_dv_modify_xrc_rcv_qp(xrc_domain, xrc_qp_num, attr,
							   attr_mask));
}

static inline int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
				       struct ibv_qp_attr *attr, int attr_mask,
				       struct xrc_compat_qp_init_attr *init_attr)
{
	int err = xroce_dv_query_xrc_rcv_qp(xrc_domain, xrc_qp_num, attr, attr_mask, NULL);

	if (err)
		return xrc_compat_error(err);
	/* As written in note 3 of the proposal. */
	attr->cap.max_send_wr = 1;
	attr->cap.max_send_sge = 1;
	if (init_attr) {
		memset(init_attr, 0, sizeof(*init_attr));
		init_attr->cap = attr->cap;
		init_attr->qp_type = IBV_QPT_XRC;
		init_attr->xrc_domain = xrc_domain;
	}
	return 0;
}

static inline int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
	return xrc_compat_error(xroce_dv_reg_xrc_rcv_qp(xrc_domain, xrc_qp_num));
}

static inline int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
	return xrc_compat_error(xroce_dv_unreg_xrc_rcv_qp(xrc_domain, xrc_qp_num));
}

/* ---- the proposal ---- */

/*
 * In RTR, until the domain ends; nobody is registered. 0 or the negative value of errno.
 * Bits of the mask that its note 3 lists and a receive QP has no use for are ignored.
 */
static inline int ibv_alloc_xrc_rcv_qp(struct ibv_pd *pd, struct ibv_xrc_domain *xrc_domain,
				       struct ibv_qp_attr *attr, enum ibv_qp_attr_mask attr_mask,
				       uint32_t *xrc_rcv_qpn)
{
	const int ignored = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY |
			    IBV_QP_QKEY | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_PATH_MIG_STATE |
			    IBV_QP_CAP;
	struct ibv_qp_attr given;
	int mask = (int)attr_mask & ~ignored;
	int err;

	if (!pd || !xrc_domain || !attr ||
	    pd->context->device != xrc_domain->context->device)
		return -EINVAL;
	given = *attr;
	if (!(mask & IBV_QP_MIN_RNR_TIMER))
		given.min_rnr_timer = 0;
	err = xroce_dv_create_xrc_rcv_qp_ex(xrc_domain, &given, mask | IBV_QP_MIN_RNR_TIMER,
					    XROCE_DV_XRC_RCV_QP_PERSISTENT, xrc_rcv_qpn);
	/* No process has it, this one neither: it may close the domain. */
	if (!err)
		err = xroce_dv_unreg_xrc_rcv_qp(xrc_domain, *xrc_rcv_qpn);
	return -xrc_compat_error(err);
}

/* ---- from here on, the old names ---- */

#define ibv_srq xrc_compat_srq
#define ibv_qp_init_attr xrc_compat_qp_init_attr
#define ibv_send_wr xrc_compat_send_wr
#define ibv_async_event xrc_compat_async_event

#define ibv_create_srq xrc_compat_create_srq
#define ibv_modify_srq xrc_compat_modify_srq
#define ibv_query_srq xrc_compat_query_srq
#define ibv_destroy_srq xrc_compat_destroy_srq
#define ibv_post_srq_recv xrc_compat_post_srq_recv
#define ibv_create_qp xrc_compat_create_qp
#define ibv_query_qp xrc_compat_query_qp
#define ibv_post_send xrc_compat_post_send
#define ibv_get_async_event xrc_compat_get_async_event
#define ibv_ack_async_event xrc_compat_ack_async_event

#endif /* INFINIBAND_XRC_RCV_COMPAT_H */
