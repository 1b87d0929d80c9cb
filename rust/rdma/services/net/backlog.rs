// SPDX-License-Identifier: GPL-2.0

//! Packets that wait for the owner of a queue pair.

use core::marker::PhantomData;

use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use pin_init::{
    pin_data,
    pinned_drop,
    PinInit, //
};

use super::RxSkb;
use crate::{
    bindings,
    process::Process, //
};

/// A bounded first-in, first-out queue of packets with a note `N` ([`RxSkb::note`]), for any number
/// of producers and consumers in any context. What they take in memory is bounded as well as their
/// number, for this queue, for all queues of a process and for all there are: they come from
/// whoever likes to send some.
#[pin_data(PinnedDrop)]
pub struct Backlog<N = ()> {
    #[pin]
    queue: Opaque<kernel::bindings::sk_buff_head>,
    /// What the packets take, under the lock of the queue.
    bytes: Opaque<u32>,
    limit: u32,
    max_bytes: u32,
    process: Arc<Process>,
    packets: PhantomData<RxSkb<N>>,
}

// SAFETY: The queue has a lock of its own, which is for `bytes` as well, and packets may go to any
// thread if their notes may.
unsafe impl<N: Send> Send for Backlog<N> {}

// SAFETY: As above.
unsafe impl<N: Send> Sync for Backlog<N> {}

impl<N: Copy + 'static> Backlog<N> {
    /// An empty queue of `process` for `limit` packets, and for no more once they take `max_bytes`
    /// of memory, or the share of it that the process has at that time.
    pub fn new(limit: u32, max_bytes: u32, process: Arc<Process>) -> impl PinInit<Self> {
        pin_init!(Self {
            queue <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is memory for a queue that does not move.
                unsafe { bindings::xrdma_skb_queue_init(slot) }
            }),
            bytes: Opaque::new(0),
            limit,
            max_bytes,
            process,
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
        // SAFETY: The queue and its count are valid as long as `self`, and it takes the packet over
        // if it says so.
        let pushed = unsafe {
            bindings::xrdma_skb_queue_push(
                self.queue.get(),
                self.bytes.get(),
                skb.as_raw(),
                self.limit,
                self.max_bytes,
                self.process.as_raw(),
            )
        };
        if pushed {
            // It is the queue's now.
            let _ = skb.into_raw();
            return Ok(());
        }
        Err(skb)
    }

    /// Puts a packet in its place by `order`, a number that may wrap: those in the queue are less
    /// than 2^15 apart. The work is in proportion to the packets behind it. Any context.
    ///
    /// # Errors
    ///
    /// The packet, when the queue is full.
    pub fn insert(&self, skb: RxSkb<N>, order: u16) -> Result<(), RxSkb<N>> {
        // SAFETY: As in `push`. Nobody else has the packet, whose control block is written to.
        let inserted = unsafe {
            bindings::xrdma_skb_queue_insert(
                self.queue.get(),
                self.bytes.get(),
                skb.as_raw(),
                order,
                self.limit,
                self.max_bytes,
                self.process.as_raw(),
            )
        };
        if inserted {
            // It is the queue's now.
            let _ = skb.into_raw();
            return Ok(());
        }
        Err(skb)
    }

    /// Takes the first packet, unless its place is behind `order`: of a queue to which packets came
    /// by [`insert`](Self::insert) only. Any context.
    pub fn pop_until(&self, order: u16) -> Option<RxSkb<N>> {
        // SAFETY: As in `pop`.
        unsafe {
            let skb = bindings::xrdma_skb_queue_pop_until(
                self.queue.get(),
                self.bytes.get(),
                order,
                self.process.as_raw(),
            );
            RxSkb::from_raw(skb)
        }
    }

    /// Takes the oldest packet. Any context.
    #[inline]
    pub fn pop(&self) -> Option<RxSkb<N>> {
        // SAFETY: The queue and its count are valid as long as `self`, and it has packets of
        // `RxSkb<N>`s, of which it gives one up.
        unsafe {
            let skb = bindings::xrdma_skb_queue_pop(
                self.queue.get(),
                self.bytes.get(),
                self.process.as_raw(),
            );
            RxSkb::from_raw(skb)
        }
    }
}

impl<N> Backlog<N> {
    /// Packets at this moment.
    pub fn len(&self) -> usize {
        // SAFETY: The queue is valid as long as `self`.
        unsafe { bindings::xrdma_skb_queue_len(self.queue.get()) as usize }
    }

    /// Whether there are none at this moment.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops all packets. Any context.
    pub fn purge(&self) {
        // SAFETY: The queue and its count are valid as long as `self`.
        unsafe {
            bindings::xrdma_skb_queue_purge(
                self.queue.get(),
                self.bytes.get(),
                self.process.as_raw(),
            );
        }
    }
}

#[pinned_drop]
impl<N> PinnedDrop for Backlog<N> {
    fn drop(self: Pin<&mut Self>) {
        self.purge();
    }
}
