// SPDX-License-Identifier: GPL-2.0

//! Packets that wait for the owner of a queue pair.

use core::marker::PhantomData;

use kernel::{
    prelude::*,
    sync::Arc, //
};
use pin_init::{
    pin_data,
    PinInit, //
};

use super::{
    queue::Queue,
    RxSkb, //
};
use crate::process::Process;

/// A bounded first-in, first-out queue of packets with a note `N` ([`RxSkb::note`]), for any number
/// of producers and consumers in any context. What they take in memory is bounded as well as their
/// number, for this queue, for all queues of a process and for all there are: they come from
/// whoever likes to send some.
///
/// # Invariants
///
/// The packets in the queue were those of `RxSkb<N>`s.
#[pin_data]
pub struct Backlog<N = ()> {
    #[pin]
    queue: Queue,
    packets: PhantomData<RxSkb<N>>,
}

// SAFETY: The queue may go to any thread, and so may its packets if their notes may.
unsafe impl<N: Send> Send for Backlog<N> {}

// SAFETY: The queue has a lock of its own; each packet goes to one consumer.
unsafe impl<N: Send> Sync for Backlog<N> {}

impl<N: Copy + 'static> Backlog<N> {
    /// An empty queue of `process` for `limit` packets, and for no more once they take `max_bytes`
    /// of memory, or the share of it that the process has at that time.
    pub fn new(limit: u32, max_bytes: u32, process: Arc<Process>) -> impl PinInit<Self> {
        pin_init!(Self {
            queue <- Queue::new(limit, max_bytes, process),
            packets: PhantomData,
        })
    }

    /// Appends a packet. Any context.
    ///
    /// # Errors
    ///
    /// The packet, when the queue is full.
    #[inline]
    pub fn push(&self, skb: RxSkb<N>) -> Result<(), RxSkb<N>> {
        // SAFETY: The packet is given up below if the queue has it.
        if unsafe { self.queue.push(skb.as_raw()) } {
            // It is the queue's now.
            let _ = skb.into_raw();
            return Ok(());
        }
        Err(skb)
    }

    /// Whether more than half of the room is taken, in packets or in bytes. A hint. Any context.
    #[inline]
    pub fn is_half_full(&self) -> bool {
        self.queue.is_half_full()
    }

    /// Puts a packet in its place by `order`, a number that may wrap: those in the queue are less
    /// than 2^15 apart. The work is in proportion to the packets behind it. Any context.
    ///
    /// # Errors
    ///
    /// The packet, when the queue is full.
    pub fn insert(&self, skb: RxSkb<N>, order: u16) -> Result<(), RxSkb<N>> {
        // SAFETY: As in `push`; an `RxSkb` has such a control block.
        if unsafe { self.queue.insert(skb.as_raw(), order) } {
            // It is the queue's now.
            let _ = skb.into_raw();
            return Ok(());
        }
        Err(skb)
    }

    /// Takes the first packet, unless its place is behind `order`: of a queue to which packets came
    /// by [`insert`](Self::insert) only. Any context.
    pub fn pop_until(&self, order: u16) -> Option<RxSkb<N>> {
        // SAFETY: By the type invariant.
        unsafe { RxSkb::from_raw(self.queue.pop_until(order)) }
    }

    /// Takes the oldest packet. Any context.
    #[inline]
    pub fn pop(&self) -> Option<RxSkb<N>> {
        // SAFETY: By the type invariant.
        unsafe { RxSkb::from_raw(self.queue.pop()) }
    }
}

impl<N> Backlog<N> {
    /// Packets at this moment.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether there are none at this moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all packets. Any context.
    pub fn purge(&self) {
        self.queue.purge();
    }
}
