// SPDX-License-Identifier: GPL-2.0

//! Bounded queues of packets, whatever is known of the packets.

use kernel::{
    bindings::sk_buff,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use pin_init::{
    pin_data,
    pinned_drop,
    PinInit, //
};

use crate::{
    bindings,
    process::Process, //
};

/// A bounded first-in, first-out queue for any number of producers and consumers in any context.
/// What the packets take in memory is bounded as well as their number, for this queue, for all
/// queues of a process and for all there are: they come from whoever likes to send some.
///
/// [`Backlog`](super::Backlog) and [`Arrivals`](super::Arrivals) say what packets are in it.
#[pin_data(PinnedDrop)]
pub(super) struct Queue {
    #[pin]
    queue: Opaque<kernel::bindings::sk_buff_head>,
    /// What the packets take, under the lock of the queue.
    bytes: Opaque<u32>,
    limit: u32,
    max_bytes: u32,
    process: Arc<Process>,
}

// SAFETY: The queue has a lock of its own, which is for `bytes` as well, and a packet is not tied
// to a thread. Whoever wraps the queue says the same of what is noted with the packets.
unsafe impl Send for Queue {}

// SAFETY: As above.
unsafe impl Sync for Queue {}

impl Queue {
    /// An empty queue of `process` for `limit` packets, and for no more once they take `max_bytes`
    /// of memory, or the share of it that the process has at that time.
    pub(super) fn new(limit: u32, max_bytes: u32, process: Arc<Process>) -> impl PinInit<Self> {
        pin_init!(Self {
            queue <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is memory for a queue that does not move.
                unsafe { bindings::xrdma_skb_queue_init(slot) }
            }),
            bytes: Opaque::new(0),
            limit,
            max_bytes,
            process,
        })
    }

    /// Appends a packet, and says whether it did: the queue may be full. Any context.
    ///
    /// # Safety
    ///
    /// The packet is the caller's, who gives it up if it is appended.
    #[inline]
    pub(super) unsafe fn push(&self, skb: *mut sk_buff) -> bool {
        // SAFETY: The queue and its count are valid as long as `self`; the packet by contract.
        unsafe {
            bindings::xrdma_skb_queue_push(
                self.queue.get(),
                self.bytes.get(),
                skb,
                self.limit,
                self.max_bytes,
                self.process.as_raw(),
            )
        }
    }

    /// As [`push`](Self::push), but in its place by `order`, see
    /// [`Backlog::insert`](super::Backlog::insert). Any context.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push), and the control block has a `struct xrdma_rx_info`.
    pub(super) unsafe fn insert(&self, skb: *mut sk_buff, order: u16) -> bool {
        // SAFETY: As in `push`. Nobody else has the packet, whose control block is written to.
        unsafe {
            bindings::xrdma_skb_queue_insert(
                self.queue.get(),
                self.bytes.get(),
                skb,
                order,
                self.limit,
                self.max_bytes,
                self.process.as_raw(),
            )
        }
    }

    /// Takes the oldest packet, which is the caller's then; null without. Any context.
    #[inline]
    pub(super) fn pop(&self) -> *mut sk_buff {
        // SAFETY: The queue and its count are valid as long as `self`.
        unsafe {
            bindings::xrdma_skb_queue_pop(self.queue.get(), self.bytes.get(), self.process.as_raw())
        }
    }

    /// As [`pop`](Self::pop), unless the place of the packet is behind `order`. Any context.
    pub(super) fn pop_until(&self, order: u16) -> *mut sk_buff {
        // SAFETY: As in `pop`.
        unsafe {
            bindings::xrdma_skb_queue_pop_until(
                self.queue.get(),
                self.bytes.get(),
                order,
                self.process.as_raw(),
            )
        }
    }

    /// Packets at this moment.
    pub(super) fn len(&self) -> usize {
        // SAFETY: The queue is valid as long as `self`.
        unsafe { bindings::xrdma_skb_queue_len(self.queue.get()) as usize }
    }

    /// Whether more than half of the packets are there that the queue may hold now, or more than
    /// half of the bytes. A hint. Any context.
    #[inline]
    pub(super) fn is_half_full(&self) -> bool {
        // SAFETY: The queue, its count and the process are valid as long as `self`; the count is
        // read as shared data.
        unsafe {
            bindings::xrdma_skb_queue_is_half_full(
                self.queue.get(),
                self.bytes.get(),
                self.limit,
                self.max_bytes,
                self.process.as_raw(),
            )
        }
    }

    /// Drops all packets. Any context.
    pub(super) fn purge(&self) {
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
impl PinnedDrop for Queue {
    fn drop(self: Pin<&mut Self>) {
        self.purge();
    }
}
