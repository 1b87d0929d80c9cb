// SPDX-License-Identifier: GPL-2.0
//! Polling with `ibv_start_poll` and its relatives.
//!
//! A successful start takes the lock and end releases it, so the readers between them need no lock.
//!
//! Start and next return ENOENT when the CQ is empty, and EOVERFLOW or EIO when no completion will
//! come any more, as [`super::poll_cq`] does.

use core::ffi::c_int;

use super::poll::{
    found_nothing,
    found_something, //
};
use super::{
    Cq,
    State, //
};
use crate::abi::{
    self,
    Cqe, //
};
use crate::sys::{
    clock_ns,
    status,
    Result,
    CLOCK_MONOTONIC_RAW,
    CLOCK_REALTIME,
    EINVAL,
    ENOENT, //
};
use crate::verbs::{
    IbvCqEx,
    IbvPollCqAttr,
    IbvWcTmInfo, //
};

impl Cq {
    /// # Safety
    ///
    /// `cq` must come from this crate and live for `'a`.
    unsafe fn extended<'a>(cq: *mut IbvCqEx) -> &'a Self {
        // SAFETY: an extended CQ starts with a plain one; as the caller says.
        unsafe { Self::get(cq.cast()) }
    }

    /// The completion that polling stands at.
    ///
    /// # Safety
    ///
    /// Between a successful start_poll and end_poll only.
    unsafe fn current(&self) -> &Cqe {
        // SAFETY: start_poll took the lock for the caller.
        unsafe { &self.state.held().current }
    }

    /// Moves on to the next completion.
    fn step(&self, state: &mut State) -> Result {
        let Some(cqe) = state.next() else {
            return Err(state.no_more());
        };
        let base = self.base.get();
        // SAFETY: programs read these two members between start and end of
        // polling, which the holder of the lock does.
        unsafe {
            (*base).status = cqe.status;
            (*base).wr_id = cqe.wr_id;
        }
        state.current = cqe;
        Ok(())
    }
}

unsafe extern "C" fn start_poll(cq: *mut IbvCqEx, attr: *mut IbvPollCqAttr) -> c_int {
    // SAFETY: the program's attributes are valid.
    if unsafe { (*attr).comp_mask } != 0 {
        return status(Err(EINVAL));
    }
    // SAFETY: a live CQ of ours.
    let this = unsafe { Cq::extended(cq) };
    this.state.hold();
    // SAFETY: the lock was taken in the line above.
    let step = this.step(unsafe { this.state.held() });
    if step.is_err() {
        // SAFETY: taken above, and no reference is left.
        unsafe { this.state.release() };
    }
    match step {
        Ok(()) => found_something(),
        Err(ENOENT) => found_nothing(),
        Err(_) => {}
    }
    status(step)
}

unsafe extern "C" fn next_poll(cq: *mut IbvCqEx) -> c_int {
    // SAFETY: a live CQ of ours.
    let this = unsafe { Cq::extended(cq) };
    // SAFETY: start_poll took the lock for the caller.
    status(this.step(unsafe { this.state.held() }))
}

unsafe extern "C" fn end_poll(cq: *mut IbvCqEx) {
    // SAFETY: a live CQ of ours.
    let this = unsafe { Cq::extended(cq) };
    // SAFETY: start_poll took the lock for the caller; no reference is left
    // when it is released.
    unsafe {
        this.state.held().ring.publish();
        this.state.release();
    }
}

macro_rules! reader {
    ($name:ident, $field:ident, $type:ty) => {
        unsafe extern "C" fn $name(cq: *mut IbvCqEx) -> $type {
            // SAFETY: a live CQ of ours, called between start and end.
            unsafe { Cq::extended(cq).current() }.$field.into()
        }
    };
}

reader!(read_opcode, opcode, u32);
reader!(read_vendor_err, vendor_err, u32);
reader!(read_byte_len, byte_len, u32);
reader!(read_imm_data, imm, u32);
reader!(read_qp_num, qp_num, u32);
reader!(read_src_qp, src_qp, u32);
reader!(read_wc_flags, wc_flags, u32);
reader!(read_slid, slid, u32);
reader!(read_sl, sl, u8);
reader!(read_dlid_path_bits, dlid_path_bits, u8);
reader!(read_completion_ts, timestamp, u64);

/// The stamp in terms of the wall clock, from where both clocks stand now.
unsafe extern "C" fn read_completion_wallclock_ns(cq: *mut IbvCqEx) -> u64 {
    // SAFETY: a live CQ of ours, called between start and end.
    let stamp = unsafe { Cq::extended(cq).current() }.timestamp;
    let age = clock_ns(CLOCK_MONOTONIC_RAW).wrapping_sub(stamp);
    clock_ns(CLOCK_REALTIME).wrapping_sub(age)
}

/// What a message that took a tag says in its header; zero with any other
/// completion.
unsafe extern "C" fn read_tm_info(cq: *mut IbvCqEx, info: *mut IbvWcTmInfo) {
    // SAFETY: a live CQ of ours, called between start and end.
    let cqe = unsafe { Cq::extended(cq).current() };
    let (tag, app_ctx) = match cqe.opcode {
        abi::WC_TM_RECV => (cqe.tm_tag, cqe.src_qp),
        _ => (0, 0),
    };
    // SAFETY: the caller's place for the answer.
    unsafe { info.write(IbvWcTmInfo { tag, app_ctx }) };
}

/// Fills in the functions of a new CQ.
pub(super) fn fill(cq: &mut IbvCqEx) {
    cq.start_poll = Some(start_poll);
    cq.next_poll = Some(next_poll);
    cq.end_poll = Some(end_poll);
    cq.read_opcode = Some(read_opcode);
    cq.read_vendor_err = Some(read_vendor_err);
    cq.read_byte_len = Some(read_byte_len);
    cq.read_imm_data = Some(read_imm_data);
    cq.read_qp_num = Some(read_qp_num);
    cq.read_src_qp = Some(read_src_qp);
    cq.read_wc_flags = Some(read_wc_flags);
    cq.read_slid = Some(read_slid);
    cq.read_sl = Some(read_sl);
    cq.read_dlid_path_bits = Some(read_dlid_path_bits);
    cq.read_tm_info = Some(read_tm_info);
    cq.read_completion_ts = Some(read_completion_ts);
    cq.read_completion_wallclock_ns = Some(read_completion_wallclock_ns);
}
