// SPDX-License-Identifier: GPL-2.0
//! Queue pairs.

mod control;
mod create;
mod encode;
mod post;
mod wr;

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{
    AtomicI32,
    Ordering, //
};

pub use control::{
    destroy_qp,
    modify_qp,
    query_qp, //
};
pub use create::{
    create_qp,
    create_qp_ex,
    open_qp, //
};
pub use post::{
    post_recv,
    post_send, //
};

use crate::doorbell;
use crate::lock::Locked;
use crate::recv::RecvQueue;
use crate::ring::Producer;
use crate::sys::{
    Errno,
    Result, //
};
use crate::verbs::{
    IbvQp,
    VerbsQp,
    IBV_QPS_INIT,
    IBV_QPS_RESET,
    IBV_QPS_RTR, //
};

/// Type of a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Rc,
    Uc,
    Ud,
    XrcSend,
    XrcRecv,
}

/// A queue pair. An XRC receive QP has neither queue.
#[repr(C)]
pub struct Qp {
    /// Written by libibverbs and, `wr_id` and `wr_flags`, by programs. Must
    /// come first.
    base: UnsafeCell<VerbsQp>,
    kind: Kind,
    /// Descriptor of the device file.
    fd: c_int,
    send: Option<Locked<SendQueue>>,
    recv: Option<Locked<RecvQueue>>,
}

/// A send ring and what is being built in it.
pub struct SendQueue {
    ring: Producer,
    limits: Limits,
    /// Between wr_start and wr_complete: the first error; slot, opcode and
    /// flags of the current request.
    error: Option<Errno>,
    current: u32,
    opcode: u8,
    flags: u8,
}

/// What fits in a slot, and what the QP can do.
#[derive(Clone, Copy)]
pub struct Limits {
    pub kind: Kind,
    pub max_sge: u32,
    pub max_inline: u32,
    /// Every request is signalled (`sq_sig_all`).
    pub signal_all: bool,
}

impl Qp {
    /// # Safety
    ///
    /// `qp` must come from this module and live for `'a`.
    unsafe fn get<'a>(qp: *mut IbvQp) -> &'a Self {
        // SAFETY: ours; all that changes is in cells and locks.
        unsafe { &*qp.cast::<Self>() }
    }

    /// The state, as the program last set or queried it through libibverbs.
    fn state(&self) -> c_int {
        // SAFETY: the member is in place for as long as the QP lives. Libibverbs
        // writes it in one go, and posting to a QP while it is moved to RESET may
        // go either way.
        unsafe {
            let state = core::ptr::addr_of_mut!((*self.base.get()).qp.qp_base.state);
            AtomicI32::from_ptr(state).load(Ordering::Relaxed)
        }
    }

    /// Whether sends can be posted: not before RTS. What happens to them is up
    /// to the kernel.
    fn accepts_sends(&self) -> bool {
        !matches!(self.state(), IBV_QPS_RESET | IBV_QPS_INIT | IBV_QPS_RTR)
    }

    /// Whether receives can be posted: not in RESET.
    fn accepts_receives(&self) -> bool {
        self.state() != IBV_QPS_RESET
    }

    /// Rings the doorbell. Without the queue's lock: the kernel may work on
    /// the queue before this returns.
    fn doorbell(&self) -> Result {
        // SAFETY: written once, when the QP was made.
        let handle = unsafe { (*self.base.get()).qp.qp_base.handle };
        doorbell::ring(self.fd, doorbell::Bell::Qp, handle)
    }
}

#[cfg(test)]
mod tests;
