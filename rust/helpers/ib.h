/* SPDX-License-Identifier: GPL-2.0 */
/* ib_core and uverbs: helpers for functions that are inline or macros there. */
#ifndef XROCE_HELPERS_IB_H
#define XROCE_HELPERS_IB_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

struct nlattr;

struct ib_device *xrdma_ib_alloc_device(size_t size, struct net *net);
u16 xrdma_ib_udp_sport(u32 flow_label, u32 local_qpn, u32 remote_qpn);
struct ib_ucontext *xrdma_ib_udata_context(const struct ib_udata *udata);
struct ib_udata *xrdma_ib_attrs_udata(struct uverbs_attr_bundle *attrs);
u32 xrdma_ib_dm_handle(struct uverbs_attr_bundle *attrs);
void xrdma_ib_flush_work(struct work_struct *work);
bool xrdma_ib_is_adaptive(const struct ib_device *dev);
struct nlattr *xrdma_ib_res_begin(struct sk_buff *msg);
void xrdma_ib_res_end(struct sk_buff *msg, struct nlattr *table);

#endif /* XROCE_HELPERS_IB_H */
