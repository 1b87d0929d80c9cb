// SPDX-License-Identifier: GPL-2.0

//! Events of a queue pair that wait for a work item, because their handlers may sleep.

use super::QpEvent;
use kernel::{
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
    workqueue::{
        HasWork,
        Queue,
        WorkItem, //
    }, //
};

/// Which events wait. Each kind of event waits once at most.
pub(crate) struct WaitingEvents {
    /// Bit `n`: event `n` of `enum ib_event_type`.
    bits: Atomic<i32>,
}

impl WaitingEvents {
    /// None.
    pub(crate) fn new() -> Self {
        Self {
            bits: Atomic::new(0),
        }
    }

    /// Lets an event wait for `item`, whose work item takes it, and queues that. Any context.
    pub(crate) fn add<T>(&self, kind: QpEvent, item: Arc<T>)
    where
        T: WorkItem<Pointer = Arc<T>> + HasWork<T> + Send + Sync + 'static,
    {
        let bit = 1i32 << kind as u32;
        let mut bits = self.bits.load(ordering::Relaxed);
        while let Err(now) = self.bits.cmpxchg(bits, bits | bit, ordering::Full) {
            bits = now;
        }
        // SAFETY: The kernel makes this work queue at boot and keeps it.
        let queue = unsafe { Queue::from_raw(kernel::bindings::system_dfl_wq) };
        // An item that is queued already takes the new bit along.
        let _ = queue.enqueue::<_, 0>(item);
    }

    /// Takes all that wait, in the order in which `order` has them.
    pub(crate) fn take(&self, order: [QpEvent; 6]) -> impl Iterator<Item = QpEvent> {
        let bits = self.bits.xchg(0, ordering::Full);
        order
            .into_iter()
            .filter(move |event| bits & (1 << *event as u32) != 0)
    }
}
