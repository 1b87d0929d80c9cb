// SPDX-License-Identifier: GPL-2.0
//! `ibv_post_send` and `ibv_post_recv`.

use core::ffi::c_int;

use super::Qp;
use crate::sys::{status, Result, EINVAL, EIO};
use crate::verbs::{IbvQp, IbvRecvWr, IbvSendWr};

/// Posts a list of requests; `wr` ends at the one that failed.
///
/// # Safety
///
/// The list must be valid.
unsafe fn send(qp: &Qp, wr: &mut *mut IbvSendWr) -> Result {
    let Some(queue) = qp.send.as_ref().filter(|_| qp.accepts_sends()) else {
        return Err(EINVAL);
    };
    let mut result = Ok(());
    let asleep = {
        let mut queue = queue.lock();
        if queue.dead() {
            result = Err(EIO);
        }
        while result.is_ok() && !wr.is_null() {
            // SAFETY: an element of the caller's list.
            let request = unsafe { &**wr };
            // SAFETY: as the caller says.
            result = unsafe { queue.fill(request) };
            if result.is_ok() {
                *wr = request.next;
            }
        }
        queue.publish()
    };
    if asleep {
        let rung = qp.doorbell();
        result = result.and(rung);
    }
    result
}

/// ibv_post_send(3): EINVAL for a request that the QP cannot take and before RTS, ENOMEM when
/// the queue is full, EIO when the device is gone.
///
/// # Safety
///
/// Called with a live QP and a valid list.
pub unsafe extern "C" fn post_send(
    qp: *mut IbvQp,
    mut wr: *mut IbvSendWr,
    bad: *mut *mut IbvSendWr,
) -> c_int {
    // SAFETY: a live QP of ours, and the caller's list.
    let result = unsafe { send(Qp::get(qp), &mut wr) };
    if result.is_err() && !bad.is_null() {
        // SAFETY: the caller's place for it.
        unsafe { *bad = wr };
    }
    status(result)
}

/// ibv_post_recv(3): EINVAL for a request that the QP cannot take, in RESET and
/// for a QP without a receive queue, ENOMEM when the queue is full, EIO when the device
/// is gone.
///
/// # Safety
///
/// Called with a live QP and a valid list.
pub unsafe extern "C" fn post_recv(
    qp: *mut IbvQp,
    wr: *mut IbvRecvWr,
    bad: *mut *mut IbvRecvWr,
) -> c_int {
    // SAFETY: a live QP of ours.
    let qp = unsafe { Qp::get(qp) };
    let Some(queue) = qp.recv.as_ref().filter(|_| qp.accepts_receives()) else {
        if !bad.is_null() {
            // SAFETY: the caller's place for it.
            unsafe { *bad = wr };
        }
        return status(Err(EINVAL));
    };
    // SAFETY: the caller's list.
    let (tell, result) = unsafe { queue.lock().post(wr, bad) };
    let rung = if tell { qp.doorbell() } else { Ok(()) };
    status(result.and(rung))
}
