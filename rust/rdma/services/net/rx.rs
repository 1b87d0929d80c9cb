// SPDX-License-Identifier: GPL-2.0

//! Received packets.

use core::{
    marker::PhantomData,
    mem::{
        align_of,
        offset_of,
        size_of,
        ManuallyDrop, //
    },
    ptr::NonNull,
    slice, //
};

use super::GidAddr;
use crate::bindings;

/// Bytes for a note, which is the last field.
const NOTE_LEN: usize =
    size_of::<bindings::xrdma_rx_info>() - offset_of!(bindings::xrdma_rx_info, note);

/// A RoCEv2 packet. It may be kept, in a [`Backlog`](super::Backlog) for instance.
///
/// It may be a *train*, which stands for several packets: its payload is the transport headers that
/// all of them share, and [`train_payload`](RxSkb::train_payload) is what each has behind its own.
/// Or it is a copy of [one packet of a train](RxSkb::copy_part).
///
/// Whoever has examined a packet may leave a [`note`](RxSkb::note) with it. A packet with a note
/// has another type, so that it cannot be confused with packets that nobody has examined.
///
/// # Invariants
///
/// `skb` is a packet that this value owns and nobody writes to. Its control block is the
/// `xrdma_rx_info` that `xrdma_rx_parse()` and `xrdma_rx_detach()` have made, which points into the
/// packet. If its way is `XRDMA_RX_TRAIN`, the packet is an intact train, and
/// `xrdma_rx_parse_train()` has made it; if it is `XRDMA_RX_TRAIN_PART`, `xrdma_skb_copy_part()`
/// has made both. The note in it is an `N`, unless `N` is `()`.
pub struct RxSkb<N = ()> {
    skb: NonNull<kernel::bindings::sk_buff>,
    note: PhantomData<N>,
}

// SAFETY: A packet is not tied to a thread; it was detached from its device and its route.
unsafe impl<N: Send> Send for RxSkb<N> {}

// SAFETY: A shared reference reads only.
unsafe impl<N: Sync> Sync for RxSkb<N> {}

impl RxSkb {
    /// Leaves `note` with the packet. A note has at most 16 bytes and the alignment of a `u64`; the
    /// compiler checks this.
    #[inline]
    pub fn note<N: Copy + 'static>(self, note: N) -> RxSkb<N> {
        const { assert!(size_of::<N>() <= NOTE_LEN && align_of::<N>() <= align_of::<u64>()) };
        let skb = ManuallyDrop::new(self).skb;
        let packet = RxSkb::<N> {
            skb,
            note: PhantomData,
        };
        // SAFETY: By the type invariant the control block is ours, and has room for a note of this
        // size and alignment.
        unsafe { packet.note_ptr().write(note) };
        // INVARIANT: The note was just written.
        packet
    }
}

impl<N: Copy + 'static> RxSkb<N> {
    /// Takes a packet over.
    ///
    /// # Safety
    ///
    /// `skb` is null, or the caller gives up a packet that was parsed and detached. Unless `N` is
    /// `()`, the packet once was that of an `RxSkb<N>`.
    pub(super) unsafe fn from_raw(skb: *mut kernel::bindings::sk_buff) -> Option<Self> {
        // INVARIANT: By the safety requirement.
        NonNull::new(skb).map(|skb| Self {
            skb,
            note: PhantomData,
        })
    }

    /// Gives the packet up.
    pub(super) fn into_raw(self) -> *mut kernel::bindings::sk_buff {
        ManuallyDrop::new(self).as_raw()
    }

    /// The note that was left with the packet.
    #[inline]
    pub fn noted(&self) -> N {
        // SAFETY: By the type invariant the note is an `N`; if `N` is `()` it has no bytes.
        unsafe { self.note_ptr().read() }
    }

    /// Another one of the same packet, whose bytes both read, with the same note. `None` without
    /// memory. Any context.
    pub fn share(&mut self) -> Option<Self> {
        // SAFETY: By the type invariant it is a packet that nobody writes to. The reference is
        // exclusive: two clones must not be made of one packet at a time, since they could take the
        // same place beside it (`struct sk_buff_fclones`).
        let skb = unsafe { bindings::xrdma_skb_share(self.as_raw()) };
        // SAFETY: The clone is ours. It has a copy of the control block, and a reference to the
        // bytes that this points to.
        unsafe { Self::from_raw(skb) }
    }

    /// A copy of packet `index` of the train that it is, to be kept by itself; it has the same
    /// note. `None` without memory, or if there is no such packet. Any context.
    pub fn copy_part(&self, index: u32) -> Option<Self> {
        if !self.is_train() {
            return None;
        }
        let part = u8::try_from(index).ok()?;
        // SAFETY: By the type invariant it is an intact train, which was parsed, and which nobody
        // writes to.
        let skb = unsafe { bindings::xrdma_skb_copy_part(self.as_raw(), part) };
        // SAFETY: The copy is ours. It has a copy of the control block, which points into it.
        unsafe { Self::from_raw(skb) }
    }
}

impl<N> RxSkb<N> {
    pub(super) fn as_raw(&self) -> *mut kernel::bindings::sk_buff {
        self.skb.as_ptr()
    }

    /// The control block. Its note may be uninitialised, so no reference to all of it is made.
    #[inline]
    fn info(&self) -> *mut bindings::xrdma_rx_info {
        // SAFETY: By the type invariant the packet is valid, and so is the place of a field.
        unsafe { (&raw mut (*self.as_raw()).cb).cast() }
    }

    #[inline]
    fn note_ptr(&self) -> *mut N {
        // SAFETY: As in `info`.
        unsafe { (&raw mut (*self.info()).note).cast() }
    }

    /// The UDP payload: BTH to ICRC. Of a train, or of a packet of one, only the transport headers
    /// of the train.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        let info = self.info();
        // SAFETY: By the type invariant; the packet lives as long as `self`.
        unsafe { slice::from_raw_parts((*info).payload, usize::from((*info).payload_len)) }
    }

    /// IP header and UDP header, as they came: what the ICRC covers of them.
    #[inline]
    pub fn headers(&self) -> &[u8] {
        let info = self.info();
        // SAFETY: By the type invariant; eight bytes of UDP header follow the IP header.
        unsafe { slice::from_raw_parts((*info).ip, usize::from((*info).ip_len).wrapping_add(8)) }
    }

    /// The IP header, 20 or 40 bytes: what datagram receivers get in place of a GRH.
    #[inline]
    pub fn ip_header(&self) -> &[u8] {
        let info = self.info();
        // SAFETY: By the type invariant.
        unsafe { slice::from_raw_parts((*info).ip, usize::from((*info).ip_len)) }
    }

    /// The address that begins at `v4` in an IPv4 header, at `v6` in an IPv6 header.
    #[inline]
    fn address(&self, v4: usize, v6: usize) -> GidAddr {
        let header = self.ip_header();
        // Headers are long enough, whatever the compiler knows of it.
        match self.is_v6() {
            true => {
                let address = header.get(v6..).and_then(|rest| rest.first_chunk());
                GidAddr(address.copied().unwrap_or_default())
            }
            false => {
                let address = header.get(v4..).and_then(|rest| rest.first_chunk());
                GidAddr::from_v4(address.copied().unwrap_or_default())
            }
        }
    }

    /// Source address.
    #[inline]
    pub fn src(&self) -> GidAddr {
        self.address(12, 8)
    }

    /// Destination address.
    #[inline]
    pub fn dst(&self) -> GidAddr {
        self.address(16, 24)
    }

    /// IPv4 type of service or IPv6 traffic class, ECN included.
    #[inline]
    pub fn tos(&self) -> u8 {
        // SAFETY: By the type invariant.
        unsafe { (*self.info()).tos }
    }

    /// Whether it is an IPv6 packet.
    #[inline]
    pub fn is_v6(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { (*self.info()).ip_len == 40 }
    }

    /// Whether it came as the first of a super-packet that was taken whole.
    #[inline]
    pub fn is_super(&self) -> bool {
        // SAFETY: By the type invariant.
        let way = u32::from(unsafe { (*self.info()).way });
        way == bindings::xrdma_rx_way_XRDMA_RX_HEAD
            || way == bindings::xrdma_rx_way_XRDMA_RX_HEAD_PUT_OFF
            || way == bindings::xrdma_rx_way_XRDMA_RX_TRAIN
    }

    /// Whether it is a train, or one packet of a train.
    #[inline]
    pub fn is_of_train(&self) -> bool {
        self.part().is_some() || self.is_train()
    }

    /// Whether it is a train.
    #[inline]
    fn is_train(&self) -> bool {
        // SAFETY: By the type invariant.
        u32::from(unsafe { (*self.info()).way }) == bindings::xrdma_rx_way_XRDMA_RX_TRAIN
    }

    /// Which packet of a train it is, if it is one.
    #[inline]
    pub fn part(&self) -> Option<u32> {
        // SAFETY: By the type invariant.
        let (way, part) = unsafe { ((*self.info()).way, (*self.info()).part) };
        (u32::from(way) == bindings::xrdma_rx_way_XRDMA_RX_TRAIN_PART).then_some(part.into())
    }

    /// Packets of the train that it is, or is a packet of; 1 if there is none.
    #[inline]
    pub fn train_count(&self) -> u32 {
        match self.is_of_train() {
            // SAFETY: By the type invariant it is a train, or was copied from one.
            true => unsafe { bindings::xrdma_train_count(self.as_raw()) },
            false => 1,
        }
    }

    /// The payload of packet `index` of the train that it is, and of those behind it, up to `most`
    /// packets, whose payload follows in memory; or its own, if it was copied from a train; or
    /// nothing, if there is no such packet.
    #[inline]
    pub fn train_payload(&self, index: u32, most: u32) -> &[u8] {
        if !self.is_of_train() {
            return &[];
        }
        let skb = self.as_raw();
        // SAFETY: By the type invariant it is a train, or was copied from one.
        let mut len = unsafe { bindings::xrdma_train_mtu(skb) }.saturating_mul(most);
        // SAFETY: It is an intact train, or was copied from one, and was parsed.
        let payload = unsafe { bindings::xrdma_skb_train_payload(skb, index, &mut len) };
        match NonNull::new(payload.cast_mut()) {
            // SAFETY: There are `len` bytes in a page of the train, or in the copy, which nobody
            // writes to, and which stay as long as the packet.
            Some(payload) => unsafe { slice::from_raw_parts(payload.as_ptr(), len as usize) },
            None => &[],
        }
    }

    /// Whether it came as the first of packets that GRO had put together.
    #[inline]
    pub fn is_merged(&self) -> bool {
        // SAFETY: By the type invariant.
        u32::from(unsafe { (*self.info()).way }) == bindings::xrdma_rx_way_XRDMA_RX_MERGED
    }

    /// Whether it came in a super-packet that was taken whole, and needs no ICRC, which it may
    /// not even have: since it was built, it has been in the memory of this kernel.
    #[inline]
    pub fn is_unmoved(&self) -> bool {
        // SAFETY: By the type invariant.
        let way = u32::from(unsafe { (*self.info()).way });
        way == bindings::xrdma_rx_way_XRDMA_RX_MEMBER
            || way == bindings::xrdma_rx_way_XRDMA_RX_HEAD_PUT_OFF
            || self.is_of_train()
    }

    /// Source MAC address; zeroes when it came over a link without.
    pub fn smac(&self) -> [u8; 6] {
        // SAFETY: By the type invariant.
        unsafe { (*self.info()).link.smac }
    }

    /// VLAN identifier it came with.
    pub fn vlan(&self) -> Option<u16> {
        // SAFETY: By the type invariant.
        let vlan = unsafe { (*self.info()).link.vlan };
        (vlan != 0xffff).then_some(vlan)
    }
}

impl<N> Drop for RxSkb<N> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_skb_consume(self.as_raw()) };
    }
}
