// SPDX-License-Identifier: GPL-2.0

//! Trains to be sent: super-packets whose packets are not built.

use core::{
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};

use super::{
    Route,
    Sender, //
};
use crate::bindings;

/// Packets of a train, at most: as of any super-packet (`XRDMA_GSO_SEGS`).
const MAX_COUNT: u32 = 64;

/// A train whose headers and payload are to be filled in: packets of `mtu` bytes of payload each,
/// the last of which may have fewer. They have the same headers, but for their numbers and for what
/// some have behind those of the others. They have no ICRCs: whoever cuts the train computes them.
///
/// # Invariants
///
/// `skb` is a train being built that this value owns; `header` is `size.first` bytes of it. There
/// is room for `size.count` packets, of which `filled` were filled in.
pub struct TxTrain {
    skb: NonNull<kernel::bindings::sk_buff>,
    header: NonNull<u8>,
    size: bindings::xrdma_train,
    filled: u32,
}

// SAFETY: A packet is not tied to a thread.
unsafe impl Send for TxTrain {}

// SAFETY: A shared reference reads only.
unsafe impl Sync for TxTrain {}

impl Route {
    /// How many packets with `mtu` bytes of payload may be in a train along this route, as far as
    /// is known: 0 if none goes there. A hint.
    #[inline]
    pub fn train_room(&self, mtu: u32) -> u32 {
        u32::from(self.raw.train_room)
            .wrapping_mul(1024)
            .checked_div(mtu)
            .unwrap_or(0)
            .min(MAX_COUNT)
    }
}

impl TxTrain {
    /// A train of `sender` along `route` for up to `count` packets, [`Route::train_room`] at most,
    /// with `mtu` bytes of payload each, a power of two. It has `first` bytes of transport headers,
    /// of which all packets have the first `middle`. No packet has more than `longest` bytes of
    /// them. A stale route is looked up anew first. Any context but hard interrupt.
    ///
    /// `None` as in [`TxSkb::alloc`](super::TxSkb::alloc), or if no train may go there: the packets
    /// are to be built one by one.
    pub fn alloc(
        route: &mut Route,
        sender: &Sender,
        (first, middle, longest): (u32, u32, u32),
        mtu: u32,
        count: u32,
    ) -> Option<Self> {
        let sender = sender.as_raw_for(&route.tunnel)?;
        let size = bindings::xrdma_train {
            first,
            middle,
            longest,
            mtu,
            count,
            last: mtu,
            seam: 0,
        };
        if !mtu.is_power_of_two() || count > MAX_COUNT || middle > first || first >= mtu {
            return None;
        }
        let mut skb = ptr::null_mut();
        let tunnel = route.tunnel.as_raw();
        let raw = &mut route.raw;
        // SAFETY: The tunnel is held by the route, which is borrowed mutably; the sender is one of
        // the same tunnel, and borrowed.
        let header =
            unsafe { bindings::xrdma_tx_alloc_train(tunnel, raw, sender, &size, &mut skb) };
        // INVARIANT: If there is a header, the call has set `skb`, which is ours.
        Some(Self {
            header: NonNull::new(header)?,
            skb: NonNull::new(skb)?,
            size,
            filled: 0,
        })
    }

    /// The transport headers, to be written. The bytes are whatever the allocator left there.
    #[inline]
    pub fn header_mut(&mut self) -> &mut [u8] {
        // SAFETY: By the type invariant. The memory comes from C, where every byte has a value.
        unsafe { slice::from_raw_parts_mut(self.header.as_ptr(), self.size.first as usize) }
    }

    /// The payload of the next packets, to be written: of one, and of those behind it, up to `most`
    /// of them, whose payload follows in memory. All of it is to be written, or what the allocator
    /// left there goes out. [`Self::pass`] adds the packets. `None`: there is no room for one more.
    #[inline]
    pub fn next_mut(&mut self, most: u32) -> Option<&mut [u8]> {
        let most = most.min(self.room());
        if most == 0 {
            return None;
        }
        let (skb, mut len) = (self.skb.as_ptr(), most.wrapping_mul(self.size.mtu));
        // SAFETY: By the type invariant, there is room for this payload.
        let payload = unsafe { bindings::xrdma_train_payload(skb, self.filled, &mut len) };
        let payload = NonNull::new(payload)?;
        // SAFETY: The call returns the place of `len` bytes in a page of the train, which is ours.
        Some(unsafe { slice::from_raw_parts_mut(payload.as_ptr(), len as usize) })
    }

    /// The payload of a packet that was filled in; nothing, if it was not.
    #[inline]
    pub fn filled(&self, index: u32) -> &[u8] {
        if index >= self.filled {
            return &[];
        }
        let mut len = self.size.mtu;
        // SAFETY: By the type invariant, the packet has this payload.
        let payload = unsafe { bindings::xrdma_train_payload(self.skb.as_ptr(), index, &mut len) };
        match NonNull::new(payload) {
            // SAFETY: As in `next_mut`; the reference to `self` is shared.
            Some(payload) => unsafe { slice::from_raw_parts(payload.as_ptr(), len as usize) },
            None => &[],
        }
    }

    /// The next `count` packets are filled in.
    #[inline]
    pub fn pass(&mut self, count: u32) {
        self.filled = self.filled.saturating_add(count).min(self.size.count);
    }

    /// The next packet is filled in, with `len` bytes of payload, and none follows it. Without any
    /// payload it is not added.
    #[inline]
    pub fn pass_last(&mut self, len: u32) {
        if len == 0 {
            return;
        }
        self.size.last = len.min(self.size.mtu);
        self.pass(1);
        self.size.count = self.filled;
    }

    /// Packets that were filled in.
    #[inline]
    pub fn len(&self) -> u32 {
        self.filled
    }

    /// Whether none was filled in.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Packets that there is still room for.
    #[inline]
    pub fn room(&self) -> u32 {
        self.size.count.saturating_sub(self.filled)
    }

    /// Finishes a train of two packets or more along `route`, the one that it was allocated for.
    /// `None`: it has fewer, and is dropped.
    pub(super) fn finish(self, route: &mut Route) -> Option<NonNull<kernel::bindings::sk_buff>> {
        if self.filled < 2 {
            return None;
        }
        let size = bindings::xrdma_train {
            count: self.filled,
            ..self.size
        };
        let skb = ManuallyDrop::new(self).skb;
        // SAFETY: By the type invariant; `raw` is borrowed mutably. There are no more packets than
        // there is room for.
        unsafe { bindings::xrdma_tx_end_train(&mut route.raw, skb.as_ptr(), &size) };
        Some(skb)
    }
}

impl Drop for TxTrain {
    /// The train is not sent.
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_tx_drop(self.skb.as_ptr()) };
    }
}
