// SPDX-License-Identifier: GPL-2.0

//! Packets to be sent.

use core::{
    mem::ManuallyDrop,
    ptr::NonNull,
    slice, //
};

use super::{
    Route,
    Sender,
    TxTrain, //
};
use crate::bindings;

/// Bytes of an ICRC.
const ICRC_LEN: u32 = 4;

/// A packet whose IP and UDP headers are final and whose UDP payload is to be filled in.
///
/// # Invariants
///
/// `skb` is a linear packet that this value owns; `headers` and `payload` are `headers_len` and
/// `len` bytes of it.
pub struct TxSkb {
    skb: NonNull<kernel::bindings::sk_buff>,
    headers: NonNull<u8>,
    payload: NonNull<u8>,
    headers_len: u32,
    len: u32,
    icrc_may_wait: bool,
    lacks_icrc: bool,
}

// SAFETY: A packet is not tied to a thread.
unsafe impl Send for TxSkb {}

// SAFETY: A shared reference reads only.
unsafe impl Sync for TxSkb {}

impl TxSkb {
    /// A packet of `sender` along `route` with `len` bytes of UDP payload, ICRC included. A stale
    /// route is looked up anew first. Any context but hard interrupt.
    ///
    /// The payload's bytes are whatever the allocator left there: the caller fills all of them, or
    /// they go out.
    ///
    /// `None` when there is no memory or no route, when `sender` has as much under way as it may,
    /// or is one of another tunnel: to be taken as a packet that was lost.
    #[inline]
    pub fn alloc(route: &mut Route, sender: &Sender, len: u32) -> Option<Self> {
        let sender = sender.as_raw_for(&route.tunnel)?;
        let mut tx = bindings::xrdma_tx::default();
        let raw = &mut route.raw;
        let tunnel = route.tunnel.as_raw();
        // SAFETY: The tunnel is held by the route, which is borrowed mutably; the sender is one of
        // the same tunnel, and borrowed.
        if !unsafe { bindings::xrdma_tx_alloc(tunnel, raw, sender, len, &mut tx) } {
            return None;
        }
        // INVARIANT: Filled in by the call, which succeeded.
        Some(Self {
            skb: NonNull::new(tx.skb)?,
            headers: NonNull::new(tx.headers.cast_mut())?,
            payload: NonNull::new(tx.payload)?,
            headers_len: tx.headers_len,
            len,
            icrc_may_wait: tx.icrc_may_wait,
            lacks_icrc: false,
        })
    }

    /// IP header and UDP header: what the ICRC covers of them.
    #[inline]
    pub fn headers(&self) -> &[u8] {
        // SAFETY: By the type invariant.
        unsafe { slice::from_raw_parts(self.headers.as_ptr(), self.headers_len as usize) }
    }

    /// The UDP payload.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        // SAFETY: By the type invariant. The memory comes from C, where every byte has a value.
        unsafe { slice::from_raw_parts(self.payload.as_ptr(), self.len as usize) }
    }

    /// The UDP payload, to be written.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        // SAFETY: By the type invariant. The memory comes from C, where every byte has a value.
        unsafe { slice::from_raw_parts_mut(self.payload.as_ptr(), self.len as usize) }
    }

    /// Writes the last four bytes, little-endian as the wire has it.
    #[inline]
    pub fn set_icrc(&mut self, icrc: u32) {
        if let Some(last) = self.payload_mut().last_chunk_mut() {
            *last = icrc.to_le_bytes();
        }
    }

    /// Puts the ICRC off, if it may wait: whoever cuts the super-packet that the packet becomes
    /// a part of computes it, or [`TxBatch::flush`] does, if it goes alone. Says whether it may,
    /// which it may not if there is no room for one. To be called when everything else is written.
    #[inline]
    pub fn put_off_icrc(&mut self) -> bool {
        // C writes it into the last bytes.
        self.lacks_icrc = self.icrc_may_wait && self.len >= ICRC_LEN;
        if self.lacks_icrc {
            // A capture may see these bytes.
            self.set_icrc(0);
        }
        self.lacks_icrc
    }

    fn into_raw(self) -> NonNull<kernel::bindings::sk_buff> {
        ManuallyDrop::new(self).skb
    }
}

impl Drop for TxSkb {
    /// The packet is not sent.
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_tx_drop(self.skb.as_ptr()) };
    }
}

/// Whether a packet may share a super-packet with its neighbours in a [`TxBatch`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Joining {
    /// It goes alone.
    Alone,
    /// It may, if they go the same way, have the same length (the last may be shorter), and nobody
    /// has turned super-packets off for the net device.
    Allowed,
}

/// What became of the packets of a [`TxBatch`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct Flushed {
    /// Super-packets that were made of them.
    pub supers: u32,
    /// Packets that were dropped on the spot, which counts as loss.
    pub dropped: u32,
}

impl Flushed {
    /// Both together.
    #[inline]
    pub fn and(self, other: Self) -> Self {
        Flushed {
            supers: self.supers.wrapping_add(other.supers),
            dropped: self.dropped.wrapping_add(other.dropped),
        }
    }
}

/// Packets that are ready, in the order in which they will be sent. Takes no memory of its own.
///
/// # Invariants
///
/// `list` is a chain of packets that this value owns.
pub struct TxBatch {
    list: bindings::xrdma_tx_list,
}

// SAFETY: Packets are not tied to a thread.
unsafe impl Send for TxBatch {}

impl TxBatch {
    /// No packets.
    pub fn new() -> Self {
        Self {
            list: bindings::xrdma_tx_list::default(),
        }
    }

    /// Appends a packet.
    #[inline]
    pub fn push(&mut self, skb: TxSkb, joining: Joining) {
        let may_join = joining == Joining::Allowed;
        let lacks_icrc = skb.lacks_icrc;
        let skb = skb.into_raw().as_ptr();
        // SAFETY: By the type invariant; the list takes the packet over.
        unsafe { bindings::xrdma_tx_push(&mut self.list, skb, may_join, lacks_icrc) };
    }

    /// Appends a train of two packets or more along `route`, the one that it was allocated for.
    /// One that has fewer is dropped; it is to be built as a packet.
    pub fn push_train(&mut self, train: TxTrain, route: &mut Route) {
        if let Some(skb) = train.finish(route) {
            // SAFETY: By the type invariant; the list takes the train over.
            unsafe { bindings::xrdma_tx_push(&mut self.list, skb.as_ptr(), false, false) };
        }
    }

    /// Packets, those of trains included.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.count as usize
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.count == 0
    }

    /// Hands all packets to the IP stack; netfilter and queueing disciplines see them.
    ///
    /// Neighbours that may join ([`Joining`]) become one super-packet. The packets of a
    /// super-packet are received, dropped or duplicated together, unless a net device cuts it.
    ///
    /// Any context but hard interrupt, with no spinlock held: the packets may be received, and
    /// answered, on this CPU before it returns.
    #[inline]
    pub fn flush(&mut self) -> Flushed {
        let mut done = bindings::xrdma_tx_done::default();
        if !self.is_empty() {
            // SAFETY: By the type invariant; the call takes the packets and empties the list.
            unsafe { bindings::xrdma_tx_flush(&mut self.list, &mut done) };
        }
        Flushed {
            supers: done.supers,
            dropped: done.dropped,
        }
    }
}

impl Default for TxBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TxBatch {
    /// What was not flushed is not sent.
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_tx_purge(&mut self.list) };
    }
}
