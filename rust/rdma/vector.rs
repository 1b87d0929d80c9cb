// SPDX-License-Identifier: GPL-2.0

//! Completion vectors: interrupts that deliver the events of completion queues.
//!
//! A completion queue belongs to one vector. Its events wait on the vector's queue until the
//! vector's handler, on the vector's CPU, calls the user of the completion queue. The handler
//! delivers one event of each source in turn and a bounded number before it makes way for what else
//! the CPU has to do.

use kernel::{
    list::{
        List,
        ListArc, //
    },
    prelude::*,
    sync::Arc, //
};

use crate::{
    events::CqCell,
    irq::{
        Handler,
        Interrupts,
        Line, //
    },
    sync::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
};

pub(crate) mod pending;

/// Events that one run of a handler delivers at most.
const BATCH: usize = 64;

/// One completion vector.
#[pin_data]
pub(crate) struct Vector {
    line: Line,
    /// Sources that have events to deliver, the one that has waited longest first.
    #[pin]
    queue: SpinLockIrq<List<CqCell>>,
}

impl Vector {
    fn new(line: Line) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                line,
                queue <- new_spinlock_irq!(List::new(), "rdma vector"),
            }),
            GFP_KERNEL,
        )
    }

    /// Queues a source that was not queued. Any context.
    fn push(&self, source: Arc<CqCell>) {
        // That it is in no list is what its count says, see `Pending`.
        if let Ok(source) = ListArc::try_from_arc(source) {
            self.queue.lock().push_back(source);
        }
    }

    /// Has the handler deliver the events of a source that was not queued. Any context.
    ///
    /// # Safety
    ///
    /// The [`Vectors`] exist and their drop has not begun.
    pub(crate) unsafe fn deliver(&self, source: Arc<CqCell>) {
        self.push(source);
        // SAFETY: By contract.
        unsafe { self.line.raise() };
    }

    fn pop(&self) -> Option<Arc<CqCell>> {
        Some(self.queue.lock().pop_front()?.into_arc())
    }
}

impl Handler for Vector {
    fn handle(&self) {
        for _ in 0..BATCH {
            let Some(source) = self.pop() else {
                return;
            };
            if source.deliver() {
                self.push(source);
            }
        }
        if !self.queue.lock().is_empty() {
            // SAFETY: This is the handler.
            unsafe { self.line.raise() };
        }
    }

    fn end(&self) {
        // Completion queues that are gone, whose events nobody was told: each has a reference to us.
        while self.pop().is_some() {}
    }
}

/// The completion vectors of a device, at least one.
///
/// They appear in `/proc/interrupts` and `/proc/irq` as any interrupt does: with a count for each CPU
/// and an affinity that the administrator can change. Each has a CPU of its own at first.
pub struct Vectors(Interrupts<Vector>);

impl Vectors {
    /// Makes `count` vectors that are called `DEVICE-comp0` and so on. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for none; `ENOMEM`; `ENOSPC` when the kernel has no more interrupts.
    pub fn new(device: &CStr, count: u32) -> Result<Self> {
        Ok(Self(Interrupts::new(device, count, Vector::new)?))
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// The vector with this number.
    pub(crate) fn get(&self, index: u32) -> Option<&Arc<Vector>> {
        self.0.get(index as usize)
    }
}
