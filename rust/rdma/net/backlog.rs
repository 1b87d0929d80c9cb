// SPDX-License-Identifier: GPL-2.0

//! Packets that wait for the owner of a queue pair.

use kernel::{
    prelude::*,
    types::Opaque, //
};
use pin_init::{
    pin_data,
    pinned_drop,
    PinInit, //
};

use super::RxSkb;
use crate::bindings;

/// A bounded first-in, first-out queue of packets, for any number of producers and consumers in any
/// context.
#[pin_data(PinnedDrop)]
pub struct Backlog {
    #[pin]
    queue: Opaque<kernel::bindings::sk_buff_head>,
    limit: u32,
}

// SAFETY: The queue has a lock of its own, and packets may go to any thread.
unsafe impl Send for Backlog {}

// SAFETY: As above.
unsafe impl Sync for Backlog {}

impl Backlog {
    /// An empty queue for about `limit` packets (a few more may get in at once).
    pub fn new(limit: u32) -> impl PinInit<Self> {
        pin_init!(Self {
            queue <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is memory for a queue that does not move.
                unsafe { bindings::xrdma_skb_queue_init(slot) }
            }),
            limit,
        })
    }

    /// Appends a packet, or gives it back when the queue is full. Any context.
    #[inline]
    pub fn push(&self, skb: RxSkb) -> Result<(), RxSkb> {
        // SAFETY: The queue is valid as long as `self`, and takes the packet over if it says so.
        if unsafe { bindings::xrdma_skb_queue_push(self.queue.get(), skb.as_raw(), self.limit) } {
            // It is the queue's now.
            core::mem::forget(skb);
            return Ok(());
        }
        Err(skb)
    }

    /// Takes the oldest packet. Any context.
    #[inline]
    pub fn pop(&self) -> Option<RxSkb> {
        // SAFETY: The queue is valid as long as `self`, has packets of `RxSkb`s, and gives one up.
        unsafe { RxSkb::from_parsed(bindings::xrdma_skb_queue_pop(self.queue.get())) }
    }

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
        // SAFETY: The queue is valid as long as `self`.
        unsafe { bindings::xrdma_skb_queue_purge(self.queue.get()) };
    }
}

#[pinned_drop]
impl PinnedDrop for Backlog {
    fn drop(self: Pin<&mut Self>) {
        self.purge();
    }
}
