// SPDX-License-Identifier: GPL-2.0

//! The processes that have queue pairs: limits that apply to a process, not to one of its queues.

use core::ptr::NonNull;
use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    rcu::GFP_ACCOUNT, //
};

/// A process that has queue pairs, or all users in the kernel together.
///
/// The packets that wait for its queue pairs ([`Backlog`](crate::net::Backlog)) get a share of the
/// memory for such packets. Only a few of its work items ([`Work`](crate::work::Work)) run in
/// threads at a time. Thus no process waits for what another one causes. A process that is
/// connected to it may use its memory in runs of its own, and may be slower because of that: the
/// two take turns, see [`part`](crate::work::part). A process is identified by its address space.
///
/// # Invariants
///
/// `0` is a handle of a process, owned by this value.
pub struct Process(NonNull<bindings::xrdma_process>);

// SAFETY: What is in it is atomic, or locked by the C code.
unsafe impl Send for Process {}

// SAFETY: As above.
unsafe impl Sync for Process {}

impl Process {
    /// The calling process. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn current() -> Result<Arc<Self>> {
        Self::get(false)
    }

    /// What stands for the users in the kernel. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn kernel() -> Result<Arc<Self>> {
        Self::get(true)
    }

    fn get(kernel: bool) -> Result<Arc<Self>> {
        // SAFETY: Process context, by contract.
        let process = unsafe { bindings::xrdma_process_get(kernel) };
        // INVARIANT: A new handle.
        let process = Self(NonNull::new(process).ok_or(ENOMEM)?);
        Ok(Arc::new(process, GFP_ACCOUNT)?)
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::xrdma_process {
        self.0.as_ptr()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_process_put(self.0.as_ptr()) };
    }
}
