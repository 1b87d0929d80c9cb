// SPDX-License-Identifier: GPL-2.0

//! Turns at gated data where nobody loses the CPU while softirq is off: a writer spins until the
//! readers are done.

use core::{
    hint,
    sync::atomic::{
        AtomicU32,
        Ordering, //
    },
};

use super::Entry;

/// Readers are let in.
const OPEN: u32 = 1 << 0;
/// Somebody changes the data, or waits for the readers to do so.
const WRITING: u32 = 1 << 1;
/// One reader.
const READER: u32 = 1 << 2;

/// Whose turn it is. Softirq is off from the beginning of a turn to its end.
pub(super) struct Turns(AtomicU32);

impl Turns {
    /// Of a closed gate.
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Begins a reader's turn if the gate is open; says whether it is. Never waits.
    #[inline]
    pub(super) fn begin_read(&self) -> bool {
        let is_open = self.0.fetch_add(READER, Ordering::Acquire) & OPEN != 0;
        if !is_open {
            self.end_read();
        }
        is_open
    }

    /// Ends it.
    #[inline]
    pub(super) fn end_read(&self) {
        self.0.fetch_sub(READER, Ordering::Release);
    }

    /// Closes the gate, and waits until the data are the writer's. How the gate was.
    pub(super) fn begin_write(&self) -> Entry {
        let mut before = self.0.load(Ordering::Relaxed);
        loop {
            if before & WRITING != 0 {
                hint::spin_loop();
                before = self.0.load(Ordering::Relaxed);
                continue;
            }
            match self.0.compare_exchange_weak(
                before,
                before & !OPEN | WRITING,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => before = now,
            }
        }
        // A reader that is counted from now on finds the gate closed.
        while self.0.load(Ordering::Acquire) & !(OPEN | WRITING) != 0 {
            hint::spin_loop();
        }
        match before & OPEN {
            0 => Entry::Closed,
            _ => Entry::Open,
        }
    }

    /// Ends the writer's turn, and leaves the gate as `gate` says.
    pub(super) fn end_write(&self, gate: Entry) {
        // Readers come and go meanwhile, so only these bits change.
        self.0.fetch_xor(
            match gate {
                Entry::Open => OPEN | WRITING,
                Entry::Closed => WRITING,
            },
            Ordering::Release,
        );
    }
}
