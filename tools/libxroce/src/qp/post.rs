// SPDX-License-Identifier: GPL-2.0
//! `ibv_post_send` and `ibv_post_recv`.

use core::ffi::c_int;

use super::Qp;
use crate::doorbell;
use crate::sys::{
    status,
    Result,
    EINVAL,
    EIO, //
};
use crate::verbs::{
    IbvQp,
    IbvRecvWr,
    IbvSendWr, //
};

/// Posts a list of requests; `bad` is set to the one that failed.
///
/// # Safety
///
/// The list must be valid, `bad` NULL or valid.
unsafe fn send(qp: &Qp, first: *mut IbvSendWr, bad: *mut *mut IbvSendWr) -> Result {
    let mut wr = first;
    let mut result = Ok(());
    let asleep = match qp.send.as_ref().filter(|_| qp.accepts_sends()) {
        None => {
            result = Err(EINVAL);
            false
        }
        Some(queue) => {
            let mut queue = queue.lock();
            if queue.dead() {
                result = Err(EIO);
            }
            while result.is_ok() && !wr.is_null() {
                // SAFETY: an element of the caller's list.
                let request = unsafe { &*wr };
                // SAFETY: as the caller says.
                result = unsafe { queue.fill(request) };
                if result.is_ok() {
                    wr = request.next;
                }
            }
            queue.publish()
        }
    };
    if result.is_err() && !bad.is_null() {
        // SAFETY: the caller's place for it.
        unsafe { *bad = wr };
    }
    let ring = || if asleep { qp.doorbell() } else { Ok(()) };
    // SAFETY: as the caller says.
    unsafe { doorbell::after(result, first, bad, ring) }
}

/// ibv_post_send(3): EINVAL for a request that the QP cannot take and before RTS, ENOMEM when
/// the queue is full, EIO when the device is gone.
///
/// # Safety
///
/// Called with a live QP and a valid list.
pub unsafe extern "C" fn post_send(
    qp: *mut IbvQp,
    wr: *mut IbvSendWr,
    bad: *mut *mut IbvSendWr,
) -> c_int {
    // SAFETY: a live QP of ours, and the caller's list.
    status(unsafe { send(Qp::get(qp), wr, bad) })
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
    let ring = || if tell { qp.doorbell() } else { Ok(()) };
    // SAFETY: the caller's place.
    status(unsafe { doorbell::after(result, wr, bad, ring) })
}
