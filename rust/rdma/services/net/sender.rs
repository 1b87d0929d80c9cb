// SPDX-License-Identifier: GPL-2.0

//! The account of a process for the packets that it sends.

use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::Tunnel;
use crate::{
    bindings,
    process::Process, //
};

/// A process in the network namespace of a tunnel, which sends packets.
///
/// Its packets in the queues of the host (queueing disciplines, net devices) take at most 16 MiB,
/// as those of a socket do, however many queue pairs it has. Packets beyond that are dropped. A
/// process with several groups of queue pairs has as much for each group, so that a device whose
/// queue stands still does not affect the others.
///
/// This limit is for fairness: a user that wants more can start more processes.
///
/// # Invariants
///
/// `raw` is a handle of a sender of `process` in `tunnel`, owned by this value.
pub struct Sender {
    raw: NonNull<bindings::xrdma_sender>,
    tunnel: Tunnel,
    _process: Arc<Process>,
}

// SAFETY: C locks what is in it.
unsafe impl Send for Sender {}

// SAFETY: As above.
unsafe impl Sync for Sender {}

impl Sender {
    /// The sender of `process` and `group`, any number, in the namespace of `tunnel`. Process
    /// context, sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(tunnel: &Tunnel, process: Arc<Process>, group: u64) -> Result<Self> {
        // SAFETY: Process context, by contract. The value keeps both until it gives the handle
        // back.
        let raw = unsafe { bindings::xrdma_sender_get(tunnel.as_raw(), process.as_raw(), group) };
        // INVARIANT: A new handle.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            tunnel: tunnel.clone(),
            _process: process,
        })
    }

    /// Memory of the packets that the process has sent here and that have not left the queues of
    /// the host, bytes. Any context.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_sender_bytes(self.raw.as_ptr()) }
    }

    /// The C structure, if it sends by `tunnel`.
    #[inline]
    pub(super) fn as_raw_for(&self, tunnel: &Tunnel) -> Option<*const bindings::xrdma_sender> {
        (self.tunnel.as_raw() == tunnel.as_raw()).then_some(self.raw.as_ptr().cast_const())
    }
}

impl Drop for Sender {
    /// Process context, sleeps.
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_sender_put(self.tunnel.as_raw(), self.raw.as_ptr()) };
    }
}
