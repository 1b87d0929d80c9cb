/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Features of an xroce device beyond the verbs: receive QPs by number, the interface
 * that XRC had in OFED 1.3; what verbs do not tell of tag matching. Link with -lxroce; see
 * xroce_dv_create_xrc_rcv_qp(3), xroce_dv_query_tm_masks(3).
 */
#ifndef INFINIBAND_XROCE_DV_H
#define INFINIBAND_XROCE_DV_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Is DEVICE one that the functions below work on? */
bool xroce_dv_is_supported(struct ibv_device *device);

/*
 * How many distinct masks the tags of SRQ may have at a time, by *MAX_MASKS. 0, or the
 * value of errno: EINVAL if it matches no tags.
 */
int xroce_dv_query_tm_masks(struct ibv_srq *srq, uint32_t *max_masks);

/* Flags of xroce_dv_create_xrc_rcv_qp_ex(). */
enum xroce_dv_xrc_rcv_qp_flags {
	/* It is destroyed with its domain, and not with its last registration. */
	XROCE_DV_XRC_RCV_QP_PERSISTENT = 1 << 0,
};

/*
 * Each returns 0, or the value of errno. A receive QP is named by the domain
 * and its number.
 */
int xroce_dv_create_xrc_rcv_qp(struct ibv_xrcd *xrcd, const struct ibv_qp_attr *attr,
			       int attr_mask, uint32_t *xrc_rcv_qpn);
int xroce_dv_create_xrc_rcv_qp_ex(struct ibv_xrcd *xrcd, const struct ibv_qp_attr *attr,
				  int attr_mask, uint32_t flags, uint32_t *xrc_rcv_qpn);
int xroce_dv_modify_xrc_rcv_qp(struct ibv_xrcd *xrcd, uint32_t xrc_rcv_qpn,
			       const struct ibv_qp_attr *attr, int attr_mask);
int xroce_dv_query_xrc_rcv_qp(struct ibv_xrcd *xrcd, uint32_t xrc_rcv_qpn,
			      struct ibv_qp_attr *attr, int attr_mask,
			      struct ibv_qp_init_attr *init_attr);
int xroce_dv_reg_xrc_rcv_qp(struct ibv_xrcd *xrcd, uint32_t xrc_rcv_qpn);
int xroce_dv_unreg_xrc_rcv_qp(struct ibv_xrcd *xrcd, uint32_t xrc_rcv_qpn);

/*
 * An asynchronous event with this bit in event_type is one of a receive QP that
 * the process is registered for.
 */
#define XROCE_DV_XRC_QP_EVENT_FLAG	0x80000000u

/*
 * Is EVENT one of a receive QP? If so, *TYPE is what happened and *XRC_RCV_QPN
 * the QP's number.
 */
static inline bool xroce_dv_is_xrc_rcv_qp_event(const struct ibv_async_event *event,
						enum ibv_event_type *type,
						uint32_t *xrc_rcv_qpn)
{
	unsigned int raw = (unsigned int)event->event_type;

	if (!(raw & XROCE_DV_XRC_QP_EVENT_FLAG))
		return false;
	*type = (enum ibv_event_type)(raw & ~XROCE_DV_XRC_QP_EVENT_FLAG);
	*xrc_rcv_qpn = (uint32_t)event->element.port_num;
	return true;
}

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_XROCE_DV_H */
