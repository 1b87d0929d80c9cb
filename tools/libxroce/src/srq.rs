// SPDX-License-Identifier: GPL-2.0
//! Shared receive queues: basic, XRC, and with tag matching ([`crate::tags`]).

use core::cell::UnsafeCell;
use core::ffi::c_int;

use crate::abi::{
    CreateTmSrqReq,
    CreateTmSrqResp,
    ModifySrqReq,
    RingInfo, //
};
use crate::context::Context;
use crate::doorbell;
use crate::lock::Locked;
use crate::recv::{
    slot_len,
    RecvQueue, //
};
use crate::ring::{
    Producer,
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
use crate::tags::TagQueue;
use crate::verbs::cmd::{
    self,
    log_error,
    size,
    Buffer, //
};
use crate::verbs::*;

/// A shared receive queue.
#[repr(C)]
pub struct Srq {
    /// Written by libibverbs. Must come first.
    base: UnsafeCell<VerbsSrq>,
    queue: Locked<RecvQueue>,
    tags: Option<Locked<TagQueue>>,
}

/// The kernel fills the part that the type of the queue needs.
type Resp = Buffer<{ size::CREATE_SRQ_RESP }, CreateTmSrqResp>;

/// Makes an SRQ: `make` has the kernel create it in the given place and
/// returns the actual number of elements a request may have. `max_num_tags` is
/// 0 for a queue that matches no tags.
///
/// # Safety
///
/// `context` must be open, and `make` must leave a complete SRQ when it
/// succeeds.
unsafe fn create(
    context: *mut IbvContext,
    max_num_tags: u32,
    make: impl FnOnce(*mut VerbsSrq, &mut Resp) -> Result<u32>,
) -> Result<*mut IbvSrq> {
    // As for a CQ: the final address must stand before the kernel knows it.
    let place = Box::into_raw(Box::<Srq>::new_uninit()).cast::<Srq>();
    let mut resp = Resp::new(CreateTmSrqResp::default());
    // SAFETY: fresh memory; a zeroed base is valid.
    let base = unsafe {
        let base = core::ptr::addr_of_mut!((*place).base).cast::<VerbsSrq>();
        base.write_bytes(0, 1);
        base
    };
    let made = make(base, &mut resp).and_then(|max_sge| {
        // SAFETY: an open context.
        let fd = unsafe { Context::fd(context) };
        let ring = Ring::map(fd, &resp.driver.srq.ring, slot_len(max_sge));
        let queue = ring
            .and_then(|r| r.ok_or(EPROTO))
            .map(|ring| RecvQueue::new(Producer::new(ring), max_sge));
        let tags = match max_num_tags {
            0 => Ok(None),
            // SAFETY: the kernel has filled it in.
            n => TagQueue::map(fd, unsafe { (*base).srq.handle }, n, &resp.driver).map(Some),
        };
        match queue.and_then(|queue| Ok((queue, tags?))) {
            Ok(both) => Ok(both),
            Err(e) => {
                // SAFETY: `make` created it; nobody else knows it.
                unsafe {
                    log_error(context, "cannot map the ring of a new SRQ");
                    cmd::ibv_cmd_destroy_srq(base.cast());
                }
                Err(e)
            }
        }
    });
    match made {
        Ok((queue, tags)) => {
            // SAFETY: completes the object.
            unsafe {
                core::ptr::addr_of_mut!((*place).tags).write(tags.map(Locked::new));
                core::ptr::addr_of_mut!((*place).queue).write(Locked::new(queue));
                // The core fills the number for XRC only.
                (*base).srq_num = resp.driver.srq.srqn;
            }
            Ok(place.cast())
        }
        Err(e) => {
            // SAFETY: fresh memory that nobody knows any more.
            drop(unsafe { Box::from_raw(place.cast::<core::mem::MaybeUninit<Srq>>()) });
            Err(e)
        }
    }
}

/// ibv_create_srq(3)
///
/// # Safety
///
/// Called by libibverbs with a live PD and valid attributes.
pub unsafe extern "C" fn create_srq(pd: *mut IbvPd, attr: *mut IbvSrqInitAttr) -> *mut IbvSrq {
    let make = |srq: *mut VerbsSrq, resp: &mut Resp| {
        let mut cmd = Buffer::<{ size::CREATE_SRQ }, ()>::new(());
        // SAFETY: the caller's arguments; the buffers have the sizes given.
        check(unsafe {
            cmd::ibv_cmd_create_srq(
                pd,
                srq.cast(),
                attr,
                cmd.ptr(),
                4 * size::CREATE_SRQ,
                resp.ptr(),
                Resp::SIZE,
            )
        })?;
        // SAFETY: as above.
        Ok(unsafe { (*attr).attr.max_sge })
    };
    // SAFETY: a live PD names an open context; `make` creates the SRQ.
    object(unsafe { create((*pd).context, 0, make) })
}

/// ibv_create_srq_ex(3)
///
/// # Safety
///
/// Called with an open context and valid attributes.
pub unsafe extern "C" fn create_srq_ex(
    context: *mut IbvContext,
    attr: *mut IbvSrqInitAttrEx,
) -> *mut IbvSrq {
    // SAFETY: the caller's structure is valid.
    let a = unsafe { &*attr };
    let kind = match a.comp_mask & IBV_SRQ_INIT_ATTR_TYPE {
        0 => IBV_SRQT_BASIC,
        _ => a.srq_type,
    };
    if a.comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED {
        return object(Err(EOPNOTSUPP));
    }
    let needed = match kind {
        IBV_SRQT_BASIC => IBV_SRQ_INIT_ATTR_PD,
        IBV_SRQT_XRC => IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
        IBV_SRQT_TM => IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
        _ => return object(Err(EOPNOTSUPP)),
    };
    if a.comp_mask & needed != needed
        || a.pd.is_null()
        || kind == IBV_SRQT_XRC && a.xrcd.is_null()
        || kind != IBV_SRQT_BASIC && a.cq.is_null()
        || kind == IBV_SRQT_TM && (a.tm_cap.max_num_tags == 0 || a.tm_cap.max_ops == 0)
    {
        return object(Err(EINVAL));
    }
    let (max_num_tags, max_ops) = match kind {
        IBV_SRQT_TM => (a.tm_cap.max_num_tags, a.tm_cap.max_ops),
        _ => (0, 0),
    };
    let make = |srq: *mut VerbsSrq, resp: &mut Resp| {
        type Cmd = Buffer<{ size::CREATE_XSRQ }, CreateTmSrqReq>;
        let mut cmd = Cmd::new(CreateTmSrqReq {
            max_ops,
            reserved: 0,
        });
        let cmd_size = match max_num_tags {
            0 => 4 * size::CREATE_XSRQ,
            _ => Cmd::SIZE,
        };
        // SAFETY: the caller's arguments; the buffers have the sizes given.
        check(unsafe {
            cmd::ibv_cmd_create_srq_ex(
                context,
                srq,
                attr,
                cmd.ptr(),
                cmd_size,
                resp.ptr(),
                Resp::SIZE,
            )
        })?;
        // SAFETY: libibverbs leaves this to the provider.
        unsafe { (*srq).srq.srq_context = (*attr).srq_context };
        // SAFETY: the caller's structure, now with the actual values.
        Ok(unsafe { (*attr).attr.max_sge })
    };
    // SAFETY: an open context; `make` creates the SRQ.
    object(unsafe { create(context, max_num_tags, make) })
}

/// ibv_modify_srq(3): limit and size.
///
/// # Safety
///
/// Called by libibverbs with a live SRQ and valid attributes.
pub unsafe extern "C" fn modify_srq(srq: *mut IbvSrq, attr: *mut IbvSrqAttr, mask: c_int) -> c_int {
    type Cmd = Buffer<{ size::MODIFY_SRQ }, ModifySrqReq>;
    if mask & !(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR) != 0 {
        return status(Err(EINVAL));
    }
    // SAFETY: a live SRQ of ours; what changes in it is behind the lock.
    let queue = unsafe { &(*srq.cast::<Srq>()).queue };
    // Nobody may post to the old ring while its content moves.
    let mut queue = queue.lock();
    let mut info = RingInfo::default();
    let mut cmd = Cmd::new(ModifySrqReq {
        ring_addr: core::ptr::from_mut(&mut info) as u64,
    });
    // SAFETY: the caller's arguments; the buffer has the size given, and the
    // kernel writes a `RingInfo` to the address in it.
    let done = check(unsafe { cmd::ibv_cmd_modify_srq(srq, attr, mask, cmd.ptr(), Cmd::SIZE) });
    if mask & IBV_SRQ_MAX_WR == 0 {
        return status(done);
    }
    status(done.and_then(|()| {
        // SAFETY: a live SRQ names an open context.
        let context = unsafe { (*srq).context };
        // SAFETY: as above.
        let fd = unsafe { Context::fd(context) };
        match Ring::map(fd, &info, slot_len(queue.max_sge())).and_then(|r| r.ok_or(EPROTO)) {
            Ok(ring) => {
                queue.replace(Producer::new(ring));
                Ok(())
            }
            Err(e) => {
                // SAFETY: as above.
                unsafe { log_error(context, "cannot map the new ring of a resized SRQ") };
                Err(e)
            }
        }
    }))
}

/// ibv_query_srq(3)
///
/// # Safety
///
/// Called by libibverbs with a live SRQ and room for the answer.
pub unsafe extern "C" fn query_srq(srq: *mut IbvSrq, attr: *mut IbvSrqAttr) -> c_int {
    let mut cmd = Buffer::<{ size::QUERY_SRQ }, ()>::new(());
    // SAFETY: the caller's arguments; the buffer has the size given.
    unsafe { cmd::ibv_cmd_query_srq(srq, attr, cmd.ptr(), 4 * size::QUERY_SRQ) }
}

/// ibv_get_srq_num(3): of an XRC SRQ, as the page has it.
///
/// # Safety
///
/// Called with a live SRQ and room for the answer.
pub unsafe extern "C" fn get_srq_num(srq: *mut IbvSrq, num: *mut u32) -> c_int {
    let srq = srq.cast::<VerbsSrq>();
    // SAFETY: a live SRQ of ours; these members do not change.
    let (kind, number) = unsafe { ((*srq).srq_type, (*srq).srq_num) };
    if kind != IBV_SRQT_XRC {
        return status(Err(EINVAL));
    }
    // SAFETY: the caller's place.
    unsafe { *num = number };
    0
}

/// Distinct masks that the tags of an SRQ may have; `None` if it matches no tags.
///
/// # Safety
///
/// `srq` must be a live SRQ from this file.
pub unsafe fn max_tag_masks(srq: *mut IbvSrq) -> Option<u32> {
    // SAFETY: a live SRQ of ours; what changes in it is behind the lock.
    let tags = unsafe { &(*srq.cast::<Srq>()).tags };
    tags.as_ref().map(|tags| tags.lock().max_masks())
}

/// ibv_destroy_srq(3)
///
/// # Safety
///
/// Called by libibverbs with an SRQ from this file.
pub unsafe extern "C" fn destroy_srq(srq: *mut IbvSrq) -> c_int {
    // SAFETY: a live SRQ.
    let ret = unsafe { cmd::ibv_cmd_destroy_srq(srq) };
    if ret == 0 {
        // SAFETY: `create` made it with Box; it may not be used again.
        drop(unsafe { Box::from_raw(srq.cast::<Srq>()) });
    }
    ret
}

/// ibv_post_srq_recv(3)
///
/// # Safety
///
/// Called with a live SRQ and a valid list.
pub unsafe extern "C" fn post_srq_recv(
    srq: *mut IbvSrq,
    wr: *mut IbvRecvWr,
    bad: *mut *mut IbvRecvWr,
) -> c_int {
    // SAFETY: a live SRQ of ours; what changes in it is behind the lock.
    let queue = unsafe { &(*srq.cast::<Srq>()).queue };
    // SAFETY: the caller's list. An SRQ has no error state to be told about.
    let (_, result) = unsafe { queue.lock().post(wr, bad) };
    status(result)
}

/// ibv_post_srq_ops(3). EINVAL for an SRQ that matches no tags.
///
/// # Safety
///
/// Called with a live SRQ and a valid list.
pub unsafe extern "C" fn post_srq_ops(
    srq: *mut IbvSrq,
    wr: *mut IbvOpsWr,
    bad: *mut *mut IbvOpsWr,
) -> c_int {
    // SAFETY: a live SRQ of ours; what changes in it is behind the lock.
    let tags = unsafe { &(*srq.cast::<Srq>()).tags };
    let Some(tags) = tags else {
        if !bad.is_null() {
            // SAFETY: the caller's place for it.
            unsafe { *bad = wr };
        }
        return status(Err(EINVAL));
    };
    // SAFETY: the caller's list.
    let (bell, result) = unsafe { tags.lock().post(wr, bad) };
    // Without the lock: the kernel works on the ring.
    let ring = || bell.map_or(Ok(()), |bell| bell.ring());
    // SAFETY: the caller's place.
    status(unsafe { doorbell::after(result, wr, bad, ring) })
}
