// SPDX-License-Identifier: GPL-2.0

//! Turns at gated data on a real-time kernel, where readers can lose the CPU: a writer has the
//! kernel's reader-writer lock, which sleeps there. Readers only try it. Where a writer has it, or
//! waits for it (`kernel/locking/rwbase_rt.c`), the gate is closed. So nobody waits for a lock who
//! has another, and readers may nest in any order.

use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};
use kernel::{
    bindings::rwlock_t,
    types::Opaque, //
};

use super::Entry;
use crate::bindings;

/// Whose turn it is. Softirq is off from the beginning of a turn to its end.
pub(super) struct Turns {
    lock: Opaque<rwlock_t>,
    /// Changed by a writer, in its turn.
    is_open: AtomicBool,
}

// SAFETY: The lock is made to be shared; an unlocked one has no pointers to itself, so that it may
// be moved before it is used.
unsafe impl Send for Turns {}
// SAFETY: As above.
unsafe impl Sync for Turns {}

impl Turns {
    /// Of a closed gate.
    pub(super) fn new() -> Self {
        let lock: Opaque<rwlock_t> = Opaque::uninit();
        // SAFETY: The place of a lock.
        unsafe { bindings::xrdma_gate_lock_init(lock.get().cast()) };
        Self {
            lock,
            is_open: AtomicBool::new(false),
        }
    }

    /// Begins a reader's turn if the gate is open; says whether it is. Never waits.
    #[inline]
    pub(super) fn begin_read(&self) -> bool {
        // SAFETY: `new` has made the lock; `end_read` gives it back.
        if !unsafe { bindings::xrdma_gate_read_trylock(self.lock.get().cast()) } {
            return false;
        }
        let is_open = self.is_open.load(Ordering::Relaxed);
        if !is_open {
            self.end_read();
        }
        is_open
    }

    /// Ends it.
    #[inline]
    pub(super) fn end_read(&self) {
        // SAFETY: `begin_read` has taken it.
        unsafe { bindings::xrdma_gate_read_unlock(self.lock.get().cast()) };
    }

    /// Waits until the data are the writer's. How the gate was.
    pub(super) fn begin_write(&self) -> Entry {
        // SAFETY: `new` has made the lock; `end_write` gives it back.
        unsafe { bindings::xrdma_gate_write_lock(self.lock.get().cast()) };
        match self.is_open.load(Ordering::Relaxed) {
            true => Entry::Open,
            false => Entry::Closed,
        }
    }

    /// Ends the writer's turn, and leaves the gate as `gate` says.
    pub(super) fn end_write(&self, gate: Entry) {
        self.is_open.store(gate == Entry::Open, Ordering::Relaxed);
        // SAFETY: `begin_write` has taken it.
        unsafe { bindings::xrdma_gate_write_unlock(self.lock.get().cast()) };
    }
}
