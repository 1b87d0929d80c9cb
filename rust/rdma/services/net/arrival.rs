// SPDX-License-Identifier: GPL-2.0

//! Packets that are received on another CPU than the one to which they came.
//!
//! Such a packet has not been looked at, but for a few bytes of its headers that nobody has checked
//! ([`Peek`]). All the checks are made where it is received, as if it came only then.

use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};
use pin_init::{
    pin_data,
    pinned_drop,
    PinInit, //
};

use super::{
    queue::Queue,
    GidAddr,
    Tunnel, //
};
use crate::{
    bindings,
    process::Process, //
};

/// What the headers of a packet say that nobody has checked.
pub struct Peek<'a>(pub(super) &'a bindings::xrdma_peek);

impl Peek<'_> {
    /// Source address.
    #[inline]
    pub fn src(&self) -> GidAddr {
        GidAddr(self.0.src)
    }

    /// Destination address.
    #[inline]
    pub fn dst(&self) -> GidAddr {
        GidAddr(self.0.dst)
    }

    /// Number of the queue pair that it is for, 24 bits.
    #[inline]
    pub fn qpn(&self) -> u32 {
        self.0.qpn
    }

    /// The first byte of the transport header.
    #[inline]
    pub fn opcode(&self) -> u8 {
        self.0.opcode
    }

    /// Whether it is a super-packet.
    #[inline]
    pub fn is_super(&self) -> bool {
        self.0.is_super
    }

    /// Bytes from the UDP header on, of all packets of a super-packet together.
    #[inline]
    pub fn bytes(&self) -> u32 {
        self.0.len
    }
}

/// A packet that has not been looked at, or a super-packet.
///
/// # Invariants
///
/// The packet is owned by this value, detached from its device and its route, with `data` at the
/// UDP header, its link layer in the control block, and intact if it is a super-packet.
pub struct Arrival(NonNull<kernel::bindings::sk_buff>);

// SAFETY: A packet is not tied to a thread.
unsafe impl Send for Arrival {}

impl Arrival {
    /// # Safety
    ///
    /// The caller gives up a packet of which the type invariant holds.
    pub(super) unsafe fn from_raw(skb: NonNull<kernel::bindings::sk_buff>) -> Self {
        // INVARIANT: By the safety requirement.
        Self(skb)
    }

    pub(super) fn into_raw(self) -> NonNull<kernel::bindings::sk_buff> {
        ManuallyDrop::new(self).0
    }

    /// Whether it is the packet that `skb` points to.
    pub(super) fn is_of(&self, skb: NonNull<kernel::bindings::sk_buff>) -> bool {
        self.0 == skb
    }

    /// Bytes from the UDP header on, of all packets of a super-packet together.
    #[inline]
    pub fn bytes(&self) -> u32 {
        // SAFETY: By the type invariant.
        unsafe { (*self.0.as_ptr()).len }
    }

    /// See [`Due::receive`].
    fn receive(self, tunnel: &Tunnel) {
        // SAFETY: The tunnel is borrowed. By the type invariant the packet is ours, which is given
        // up, and is as the call expects it.
        unsafe { bindings::xrdma_arrival_receive(tunnel.as_raw(), self.into_raw().as_ptr()) };
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the packet is ours.
        unsafe { bindings::xrdma_arrival_drop(self.0.as_ptr()) };
    }
}

/// The CPU that takes up what comes to this one in bulk and belongs to none; `None`: this one. Any
/// context; the answer is good for the CPU that asks.
pub fn other_cpu() -> Option<u32> {
    // SAFETY: Looks at masks of CPUs, in an RCU read section of its own.
    u32::try_from(unsafe { bindings::xrdma_bulk_cpu(-1, true) }).ok()
}

/// A first-in, first-out queue of [`Arrival`]s, bounded as a [`Backlog`](super::Backlog) is. For
/// any number of producers and consumers in any context.
///
/// While a packet is in any such queue, or has been taken from it and is being received, all that
/// comes is shown to the receiver ([`Receiver::steer`](super::Receiver::steer)), which can have it
/// wait as well, so that it does not overtake the packet. Else only super-packets are.
///
/// # Invariants
///
/// The packets in the queue were those of `Arrival`s. `count` of them have not been received, for
/// each of which there is one in `xrdma_arrivals`.
#[pin_data(PinnedDrop)]
pub struct Arrivals {
    #[pin]
    queue: Queue,
    count: Atomic<u32>,
}

impl Arrivals {
    /// An empty queue of `process` for `limit` packets, and for no more once they take `max_bytes`
    /// of memory, or the share of it that the process has at that time.
    pub fn new(limit: u32, max_bytes: u32, process: Arc<Process>) -> impl PinInit<Self> {
        pin_init!(Self {
            queue <- Queue::new(limit, max_bytes, process),
            count: Atomic::new(0),
        })
    }

    /// Whether packets wait, or are being received. Any context.
    #[inline]
    pub fn is_busy(&self) -> bool {
        // Whoever sees that one has been received sees what that has done.
        self.count.load(Acquire) != 0
    }

    /// Appends a packet. Any context.
    ///
    /// # Errors
    ///
    /// The packet, when the queue is full.
    pub fn push(&self, packet: Arrival) -> Result<(), Arrival> {
        // First, since the packet may have been received when `push` returns.
        self.count.fetch_add(1, Relaxed);
        // SAFETY: Counts.
        unsafe { bindings::xrdma_arrivals_add(1) };
        // SAFETY: The packet is given up below if the queue has it.
        if unsafe { self.queue.push(packet.0.as_ptr()) } {
            // It is the queue's now.
            let _ = packet.into_raw();
            return Ok(());
        }
        self.received();
        Err(packet)
    }

    /// Takes the oldest packet. Any context.
    pub fn pop(&self) -> Option<Due<'_>> {
        // SAFETY: By the type invariant, and the queue gives the packet up.
        let packet = NonNull::new(self.queue.pop()).map(|skb| unsafe { Arrival::from_raw(skb) })?;
        // INVARIANT: It was counted when it was appended.
        Some(Due {
            packet: Some(packet),
            queue: self,
        })
    }

    /// One packet less has to be received.
    fn received(&self) {
        self.count.fetch_sub(1, Release);
        // SAFETY: Counts.
        unsafe { bindings::xrdma_arrivals_add(-1) };
    }
}

#[pinned_drop]
impl PinnedDrop for Arrivals {
    fn drop(self: Pin<&mut Self>) {
        while self.pop().is_some() {}
    }
}

/// A packet that was taken from a queue. Others do not overtake it before it is dropped.
///
/// # Invariants
///
/// The packet is counted in the queue.
pub struct Due<'a> {
    packet: Option<Arrival>,
    queue: &'a Arrivals,
}

impl Due<'_> {
    /// Bytes from the UDP header on, of all packets of a super-packet together.
    pub fn bytes(&self) -> u32 {
        self.packet.as_ref().map_or(0, Arrival::bytes)
    }

    /// Hands the packet to the receiver of `tunnel` ([`Receiver::receive`](super::Receiver)), here
    /// and now, with softirqs off; a super-packet is taken apart first, unless it is a train.
    /// Softirq or process context.
    pub fn receive(mut self, tunnel: &Tunnel) {
        if let Some(packet) = self.packet.take() {
            packet.receive(tunnel);
        }
    }
}

impl Drop for Due<'_> {
    fn drop(&mut self) {
        self.packet = None;
        self.queue.received();
    }
}
