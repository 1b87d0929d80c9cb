// SPDX-License-Identifier: GPL-2.0

//! Completion vectors: interrupts that deliver the events of completion queues.
//!
//! A completion queue belongs to one vector. Its events wait on the queue of the vector until the
//! handler of the vector, on the CPU of the vector, calls the user of the completion queue. The
//! handler delivers one event of each source in turn. After a limited number of events it returns,
//! and a work item in softirq calls it again, so that the limits of softirqs, and ksoftirqd, apply
//! to it (in a thread on a real-time kernel). In the meantime nobody else calls the handler,
//! because several CPUs may raise events faster than one CPU can deliver them.

use kernel::{
    list::{
        List,
        ListArc, //
    },
    prelude::*,
    sync::{
        lock::Guard,
        Arc, //
    },
};

use crate::{
    bindings,
    events::CqCell,
    irq::{
        Handler,
        Interrupts,
        Line, //
    },
    percpu::possible_cpus,
    sync::{
        new_spinlock_irq,
        IrqBackend,
        NoPreempt,
        SpinLockIrq, //
    },
};

pub(crate) mod pending;

use pending::Called;

/// Events that one run of a handler delivers at most.
const BATCH: usize = 64;

/// What waits for a handler.
struct Queue {
    /// Sources that have events to deliver, the one that has waited longest first.
    sources: List<CqCell>,
    called: Called,
}

/// One completion vector.
#[pin_data]
pub(crate) struct Vector {
    line: Line,
    #[pin]
    queue: SpinLockIrq<Queue>,
}

impl Vector {
    fn new(line: Line) -> Result<Arc<Self>> {
        let queue = Queue {
            sources: List::new(),
            called: Called(false),
        };
        Arc::pin_init(
            pin_init!(Self {
                line,
                queue <- new_spinlock_irq!(queue, "rdma vector"),
            }),
            GFP_KERNEL,
        )
    }

    /// Queues a source that was not queued. The queue, locked, when the handler has to be called.
    /// Any context.
    fn push(&self, source: Arc<CqCell>) -> Option<Guard<'_, Queue, IrqBackend>> {
        // That it is in no list is what its count says, see `Pending`.
        let source = ListArc::try_from_arc(source).ok()?;
        let mut queue = self.queue.lock();
        queue.sources.push_back(source);
        let (called, call) = queue.called.queued();
        queue.called = called;
        call.then_some(queue)
    }

    /// Has the handler deliver the events of a source that was not queued. Any context.
    ///
    /// # Safety
    ///
    /// The [`Vectors`] exist and their drop has not begun.
    pub(crate) unsafe fn deliver(&self, source: Arc<CqCell>) {
        // Once the source is queued, nobody but this task calls the handler, for any queue of the
        // vector. If the task lost its CPU here, all of them would wait for it.
        let _here = NoPreempt::new();
        let Some(queue) = self.push(source) else {
            return;
        };
        // On a real-time kernel it can. There others wait for the lock, and lend the task their
        // priority; the handler is a thread of its own.
        let _locked = match cfg!(CONFIG_PREEMPT_RT) {
            true => Some(queue),
            false => {
                drop(queue);
                None
            }
        };
        // SAFETY: By contract.
        unsafe { self.line.raise() };
    }

    /// See [`Line::bulk_cpu`].
    ///
    /// # Safety
    ///
    /// As for [`deliver`](Self::deliver).
    pub(crate) unsafe fn bulk_cpu(&self) -> Option<u32> {
        // SAFETY: By contract.
        unsafe { self.line.bulk_cpu() }
    }

    /// The source that has waited longest. `None`: the handler ends. For the handler only.
    fn pop(&self) -> Option<Arc<CqCell>> {
        let mut queue = self.queue.lock();
        let source = queue.sources.pop_front();
        if source.is_none() {
            queue.called = queue.called.emptied();
        }
        Some(source?.into_arc())
    }

    /// Whether nothing is left: then the handler ends. For the handler only.
    fn is_done(&self) -> bool {
        let mut queue = self.queue.lock();
        let done = queue.sources.is_empty();
        if done {
            queue.called = queue.called.emptied();
        }
        done
    }
}

impl Handler for Vector {
    fn handle(&self) {
        for _ in 0..BATCH {
            let Some(source) = self.pop() else {
                return;
            };
            if source.deliver() {
                // It was called: this is it.
                drop(self.push(source));
            }
        }
        if !self.is_done() {
            // SAFETY: This is the handler.
            unsafe { self.line.raise_later() };
        }
    }

    fn end(&self) {
        // Completion queues that are gone, whose events nobody was told: each has a reference to
        // us.
        while self.pop().is_some() {}
    }
}

/// The completion vectors of a device, at least one.
///
/// They appear in `/proc/interrupts` and `/proc/irq` as any interrupt does: with a count for each
/// CPU and an affinity that the administrator can change. Each has a CPU of its own at first.
pub struct Vectors(Interrupts<Vector>);

impl Vectors {
    /// Makes vectors that are called `DEVICE-comp0` and so on: as many as module parameter
    /// `device_vectors` says of the device, or `wanted` if it says nothing; but at most one for
    /// each possible CPU, and as many for 0. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `ENODEV` without [`Services`](crate::work::Services); `ENOSPC`
    /// when the kernel has no more interrupts.
    pub fn new(device: &CStr, wanted: u32) -> Result<Self> {
        // SAFETY: A string; process context.
        let wanted = unsafe { bindings::xrdma_vectors_wanted(device.as_char_ptr(), wanted) };
        let possible = possible_cpus();
        let count = match wanted {
            0 => possible,
            wanted => wanted.min(possible),
        };
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
