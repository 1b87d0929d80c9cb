// SPDX-License-Identifier: GPL-2.0
//! Polling with `ibv_poll_cq`, and what it has in common with `ibv_start_poll`.
//!
//! A thread that waits for completions in a loop never sleeps. The work that it waits for may be
//! what waits for its CPU: the peer's process, or softirqs in `ksoftirqd`. So a thread yields after
//! some polls in a row that found nothing.

use core::cell::Cell;
use core::ffi::c_int;

use super::{
    Cq,
    State, //
};
use crate::abi::{
    self,
    Cqe, //
};
use crate::sys::{
    set_errno,
    Errno,
    EIO,
    ENOENT,
    EOVERFLOW, //
};
use crate::verbs::{
    IbvCq,
    IbvWc, //
};

/// Completions taken from the ring before it is told so.
const BATCH: u32 = 16;

/// A thread yields after this number of polls in a row that found nothing.
const EMPTY_POLLS: u32 = 16;

std::thread_local! {
    /// Polls of this thread that have found nothing since one found something, or since it
    /// yielded. They are counted for all queues together, because a thread that takes completions
    /// from one queue has work, however long another queue stays empty.
    static EMPTY: Cell<u32> = const { Cell::new(0) };
}

/// Notes that a poll of this thread found something.
pub(super) fn found_something() {
    EMPTY.set(0);
}

/// Notes that a poll of this thread found nothing, although more may come. May yield, so the caller
/// must not hold a lock.
pub(super) fn found_nothing() {
    let polls = EMPTY.get() + 1;
    if polls < EMPTY_POLLS {
        EMPTY.set(polls);
    } else {
        EMPTY.set(0);
        std::thread::yield_now();
    }
}

impl State {
    /// The next completion. The kernel gets the slots back in batches.
    pub(super) fn next(&mut self) -> Option<Cqe> {
        let cqe = self.ring.take();
        if cqe.is_none() || self.ring.unpublished() >= BATCH {
            self.ring.publish();
        }
        cqe
    }

    /// Why nothing will come any more, if so. Looked at only when the ring is
    /// empty: what arrived before is still delivered.
    fn broken(&self) -> Option<Errno> {
        match self.ring.ring().flags() {
            f if f & abi::RING_OVERRUN != 0 => Some(EOVERFLOW),
            f if f & abi::RING_DEAD != 0 => Some(EIO),
            _ => None,
        }
    }

    /// What an iterator over completions says when there is none.
    pub(super) fn no_more(&self) -> Errno {
        self.broken().unwrap_or(ENOENT)
    }
}

fn to_wc(cqe: &Cqe) -> IbvWc {
    IbvWc {
        wr_id: cqe.wr_id,
        status: cqe.status,
        opcode: cqe.opcode,
        vendor_err: cqe.vendor_err,
        byte_len: cqe.byte_len,
        imm: cqe.imm,
        qp_num: cqe.qp_num,
        src_qp: cqe.src_qp,
        wc_flags: cqe.wc_flags,
        pkey_index: cqe.pkey_index,
        slid: cqe.slid,
        sl: cqe.sl,
        dlid_path_bits: cqe.dlid_path_bits,
    }
}

/// ibv_poll_cq(3): the number of completions written; -1 with errno EOVERFLOW
/// or EIO when the CQ is empty and was overrun or its device is gone.
///
/// # Safety
///
/// Called with a live CQ and room for `num_entries` completions.
pub unsafe extern "C" fn poll_cq(cq: *mut IbvCq, num_entries: c_int, wc: *mut IbvWc) -> c_int {
    // SAFETY: a live CQ of ours.
    let this = unsafe { Cq::get(cq) };
    let mut state = this.state.lock();
    let mut n = 0;
    while n < num_entries {
        let Some(cqe) = state.next() else {
            break;
        };
        // SAFETY: the caller has room for `num_entries` > `n`.
        unsafe { wc.add(n as usize).write(to_wc(&cqe)) };
        n += 1;
    }
    state.ring.publish();
    if n == 0 && num_entries > 0 {
        if let Some(e) = state.broken() {
            set_errno(e);
            return -1;
        }
    }
    drop(state);
    match n {
        0 if num_entries > 0 => found_nothing(),
        0 => {}
        _ => found_something(),
    }
    n
}
