// SPDX-License-Identifier: GPL-2.0
//! Modifying, querying and destroying queue pairs.

use core::ffi::c_int;

use super::Qp;
use crate::cq;
use crate::verbs::cmd::{
    self,
    size,
    Buffer, //
};
use crate::verbs::{
    IbvQp,
    IbvQpAttr,
    IbvQpAttrHead,
    IbvQpInitAttr,
    IBV_QPS_RESET,
    IBV_QP_STATE, //
};

/// ibv_modify_qp(3). A move to RESET makes the kernel drop what the rings
/// hold; the indices run on. Completions that were not polled go with it, so
/// that those of the new life are told from those of the old one.
///
/// # Safety
///
/// Called by libibverbs with a live QP and valid attributes.
pub unsafe extern "C" fn modify_qp(qp: *mut IbvQp, attr: *mut IbvQpAttr, mask: c_int) -> c_int {
    let mut cmd = Buffer::<{ size::MODIFY_QP }, ()>::new(());
    // SAFETY: the caller's arguments; the buffer has the size given.
    let ret = unsafe { cmd::ibv_cmd_modify_qp(qp, attr, mask, cmd.ptr(), 4 * size::MODIFY_QP) };
    if ret == 0 && mask & IBV_QP_STATE != 0 {
        // SAFETY: the caller's attributes begin with the state; a live QP
        // names its CQs, which stay as long as it.
        unsafe {
            if (*attr.cast::<IbvQpAttrHead>()).qp_state == IBV_QPS_RESET {
                cq::forget((*qp).send_cq, (*qp).qp_num);
                if (*qp).recv_cq != (*qp).send_cq {
                    cq::forget((*qp).recv_cq, (*qp).qp_num);
                }
            }
        }
    }
    ret
}

/// ibv_query_qp(3)
///
/// # Safety
///
/// Called by libibverbs with a live QP and room for the answers.
pub unsafe extern "C" fn query_qp(
    qp: *mut IbvQp,
    attr: *mut IbvQpAttr,
    mask: c_int,
    init_attr: *mut IbvQpInitAttr,
) -> c_int {
    let mut cmd = Buffer::<{ size::QUERY_QP }, ()>::new(());
    // SAFETY: the caller's arguments; the buffer has the size given.
    unsafe { cmd::ibv_cmd_query_qp(qp, attr, mask, init_attr, cmd.ptr(), 4 * size::QUERY_QP) }
}

/// ibv_destroy_qp(3). libibverbs' command waits until every event that was
/// taken has been acknowledged. Completions of the QP that were not polled
/// stay in their CQ, with its number.
///
/// # Safety
///
/// Called by libibverbs with a QP from this module.
pub unsafe extern "C" fn destroy_qp(qp: *mut IbvQp) -> c_int {
    // SAFETY: a live QP.
    let ret = unsafe { cmd::ibv_cmd_destroy_qp(qp) };
    if ret == 0 {
        // SAFETY: `create` made it with Box; it may not be used again.
        drop(unsafe { Box::from_raw(qp.cast::<Qp>()) });
    }
    ret
}
