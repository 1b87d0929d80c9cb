// SPDX-License-Identifier: GPL-2.0
//! Completion queues: creating, resizing, moderating, arming, destroying.

mod extended;
mod poll;

use core::cell::UnsafeCell;
use core::ffi::{
    c_int,
    c_void, //
};
use std::sync::Arc;

pub use poll::poll_cq;

use crate::abi::{
    self,
    Cqe,
    CreateCqReq,
    CreateCqResp, //
};
use crate::context::Context;
use crate::lock::Locked;
use crate::ring::{
    Consumer,
    Ring, //
};
use crate::sys::{
    check,
    object,
    status,
    Result,
    EINVAL,
    EOPNOTSUPP,
    EPROTO, //
};
use crate::verbs::cmd::{
    self,
    log_error,
    size,
    Buffer, //
};
use crate::verbs::*;

/// A completion queue.
#[repr(C)]
pub struct Cq {
    /// Written by libibverbs and, while polling, by us. Must come first.
    base: UnsafeCell<IbvCqEx>,
    state: Locked<State>,
    /// The ring, to arm it; `None` when a system call does that. A lock of its
    /// own, because programs may arm while they iterate over completions. Who
    /// takes both takes it second.
    arm: Option<Locked<Arc<Ring>>>,
}

/// What a poller holds the lock for.
struct State {
    ring: Consumer,
    /// The completion that extended polling stands at.
    current: Cqe,
}

impl Cq {
    /// # Safety
    ///
    /// `cq` must come from this file and live for `'a`.
    unsafe fn get<'a>(cq: *mut IbvCq) -> &'a Self {
        // SAFETY: ours; all that changes is in cells and locks.
        unsafe { &*cq.cast::<Self>() }
    }
}

type CreateCmd = Buffer<{ size::CREATE_CQ }, CreateCqReq>;
type CreateResp = Buffer<{ size::CREATE_CQ_RESP }, CreateCqResp>;

/// Maps the ring of a response. A CQ has one in any case.
///
/// # Safety
///
/// `context` must be an open context.
unsafe fn map(context: *mut IbvContext, resp: &CreateCqResp) -> Result<Consumer> {
    // SAFETY: an open context.
    let fd = unsafe { Context::fd(context) };
    let ring = Ring::map(fd, &resp.ring, core::mem::size_of::<Cqe>())?.ok_or(EPROTO)?;
    Ok(Consumer::new(ring))
}

/// Makes a CQ; its base is zero but for what the kernel's answer fills.
///
/// # Safety
///
/// `context` must be an open context of ours, `channel` NULL or alive.
unsafe fn create(
    context: *mut IbvContext,
    cqe: c_int,
    channel: *mut IbvCompChannel,
    comp_vector: c_int,
    shared: bool,
) -> Result<*mut Cq> {
    if cqe <= 0 {
        return Err(EINVAL);
    }
    // The kernel hands this address back with every event, so it must be the
    // final one before the kernel knows the CQ.
    let place = Box::<Cq>::new_uninit();
    let place = Box::into_raw(place).cast::<Cq>();
    let mut cmd = CreateCmd::new(CreateCqReq::default());
    let mut resp = CreateResp::new(CreateCqResp::default());
    // SAFETY: fresh memory of the right size; a zeroed base is valid. The
    // buffers have the sizes given.
    let made = check(unsafe {
        let base = core::ptr::addr_of_mut!((*place).base).cast::<IbvCqEx>();
        base.write_bytes(0, 1);
        cmd::ibv_cmd_create_cq(
            context,
            cqe,
            channel,
            comp_vector,
            base.cast(),
            cmd.ptr(),
            CreateCmd::SIZE,
            resp.ptr(),
            CreateResp::SIZE,
        )
    })
    .and_then(|()| {
        // SAFETY: an open context; the CQ is alive in the kernel.
        unsafe { map(context, &resp.driver) }.inspect_err(|_| unsafe {
            // SAFETY: made above; no event can have been taken for it yet.
            log_error(context, "cannot map the ring of a new CQ");
            cmd::ibv_cmd_destroy_cq(place.cast());
        })
    });
    match made {
        Ok(ring) => {
            // SAFETY: completes the object; `base` is already in place, and an
            // open context of ours.
            unsafe {
                let by_ring = Context::features(context) & abi::FEATURE_SHARED_ARM != 0;
                let arm = by_ring.then(|| Locked::with_sharing(ring.ring().clone(), shared));
                let state = State {
                    ring,
                    current: Cqe::default(),
                };
                core::ptr::addr_of_mut!((*place).state).write(Locked::with_sharing(state, shared));
                core::ptr::addr_of_mut!((*place).arm).write(arm);
            }
            Ok(place)
        }
        Err(e) => {
            // SAFETY: fresh memory that nobody knows any more.
            drop(unsafe { Box::from_raw(place.cast::<core::mem::MaybeUninit<Cq>>()) });
            Err(e)
        }
    }
}

/// ibv_create_cq(3)
///
/// # Safety
///
/// Called by libibverbs with valid arguments.
pub unsafe extern "C" fn create_cq(
    context: *mut IbvContext,
    cqe: c_int,
    channel: *mut IbvCompChannel,
    comp_vector: c_int,
) -> *mut IbvCq {
    // SAFETY: passed on.
    object(unsafe { create(context, cqe, channel, comp_vector, true) }).cast()
}

/// What [`create_cq_ex`] can report with a completion.
const WC_FLAGS: u64 = IBV_WC_STANDARD_FLAGS
    | IBV_WC_EX_WITH_TM_INFO
    | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP
    | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

/// ibv_create_cq_ex(3)
///
/// # Safety
///
/// Called by libibverbs with valid arguments.
pub unsafe extern "C" fn create_cq_ex(
    context: *mut IbvContext,
    attr: *mut IbvCqInitAttrEx,
) -> *mut IbvCqEx {
    // SAFETY: the caller's structure is valid.
    let attr = unsafe { &*attr };
    let flags = match attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS {
        0 => 0,
        _ => attr.flags,
    };
    if attr.comp_mask & !(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) != 0
        || flags & !IBV_CREATE_CQ_ATTR_SINGLE_THREADED != 0
        || attr.wc_flags & !WC_FLAGS != 0
    {
        return object(Err(EOPNOTSUPP));
    }
    let shared = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED == 0;
    let cqe = c_int::try_from(attr.cqe).map_err(|_| EINVAL);
    let vector = c_int::try_from(attr.comp_vector).map_err(|_| EINVAL);
    let made = cqe.and_then(|cqe| {
        // SAFETY: passed on.
        unsafe { create(context, cqe, attr.channel, vector?, shared) }
    });
    let cq = object(made).cast::<IbvCqEx>();
    if !cq.is_null() {
        // SAFETY: made above, and nobody else knows it yet.
        extended::fill(unsafe { &mut *cq });
    }
    cq
}

/// ibv_resize_cq(3)
///
/// # Safety
///
/// Called by libibverbs with a live CQ.
pub unsafe extern "C" fn resize_cq(cq: *mut IbvCq, cqe: c_int) -> c_int {
    type Cmd = Buffer<{ size::RESIZE_CQ }, [u32; 0]>;
    type Resp = Buffer<{ size::RESIZE_CQ_RESP }, CreateCqResp>;
    if cqe <= 0 {
        return status(Err(EINVAL));
    }
    // SAFETY: a live CQ of ours.
    let this = unsafe { Cq::get(cq) };
    // Nobody may poll or arm the old ring while its content moves.
    let mut state = this.state.lock();
    let mut arm = this.arm.as_ref().map(Locked::lock);
    state.ring.publish();
    let mut cmd = Cmd::new([]);
    let mut resp = Resp::new(CreateCqResp::default());
    // SAFETY: a live CQ; the buffers have the sizes given.
    let resized = check(unsafe {
        cmd::ibv_cmd_resize_cq(
            cq,
            cqe,
            cmd.ptr(),
            4 * size::RESIZE_CQ,
            resp.ptr(),
            Resp::SIZE,
        )
    });
    status(resized.and_then(|()| {
        // SAFETY: a live CQ names an open context.
        let context = unsafe { (*cq).context };
        // SAFETY: as above.
        match unsafe { map(context, &resp.driver) } {
            Ok(ring) => {
                if let Some(arm) = arm.as_mut() {
                    **arm = ring.ring().clone();
                }
                state.ring = ring;
                Ok(())
            }
            Err(e) => {
                // SAFETY: as above.
                unsafe { log_error(context, "cannot map the new ring of a resized CQ") };
                Err(e)
            }
        }
    }))
}

/// ibv_modify_cq(3): moderation of its events. `attr` goes to the kernel through
/// libibverbs, which checks its mask.
///
/// # Safety
///
/// Called by libibverbs with a live CQ and valid attributes.
pub unsafe extern "C" fn modify_cq(cq: *mut IbvCq, attr: *mut c_void) -> c_int {
    type Cmd = Buffer<{ size::MODIFY_CQ }, [u32; 0]>;
    let mut cmd = Cmd::new([]);
    // SAFETY: a live CQ; the buffer has the size given.
    status(check(unsafe {
        cmd::ibv_cmd_modify_cq(cq, attr, cmd.ptr(), 4 * size::MODIFY_CQ)
    }))
}

/// ibv_req_notify_cq(3)
///
/// # Safety
///
/// Called with a live CQ.
pub unsafe extern "C" fn req_notify_cq(cq: *mut IbvCq, solicited_only: c_int) -> c_int {
    // SAFETY: a live CQ of ours.
    let this = unsafe { Cq::get(cq) };
    let Some(ring) = &this.arm else {
        // SAFETY: a live CQ.
        return unsafe { cmd::ibv_cmd_req_notify_cq(cq, solicited_only) };
    };
    ring.lock().arm(match solicited_only {
        0 => abi::ARM_NEXT,
        _ => abi::ARM_SOLICITED,
    });
    0
}

/// Takes the completions of a queue pair out of a CQ, for one that starts anew.
///
/// # Safety
///
/// `cq` must be NULL or a live CQ of ours that the caller does not poll now.
pub unsafe fn forget(cq: *mut IbvCq, qp_num: u32) {
    if cq.is_null() {
        return;
    }
    // SAFETY: a live CQ of ours.
    let this = unsafe { Cq::get(cq) };
    let mut state = this.state.lock();
    // What a tag-matching queue has received is not the queue pair's: a tag is
    // gone, or the message was counted.
    let is_tagged = |cqe: &Cqe| matches!(cqe.opcode, abi::WC_TM_RECV | abi::WC_TM_NO_TAG);
    state
        .ring
        .remove(|cqe: &Cqe| cqe.qp_num == qp_num && !is_tagged(cqe));
}

/// ibv_destroy_cq(3). libibverbs' command waits until every event that was
/// taken has been acknowledged.
///
/// # Safety
///
/// Called by libibverbs with a CQ from this file.
pub unsafe extern "C" fn destroy_cq(cq: *mut IbvCq) -> c_int {
    // SAFETY: a live CQ.
    let ret = unsafe { cmd::ibv_cmd_destroy_cq(cq) };
    if ret == 0 {
        // SAFETY: `create` made it with Box; it may not be used again.
        drop(unsafe { Box::from_raw(cq.cast::<Cq>()) });
    }
    ret
}

#[cfg(test)]
mod tests;
