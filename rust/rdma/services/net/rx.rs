// SPDX-License-Identifier: GPL-2.0

//! Received packets.

use core::{
    ptr::NonNull,
    slice, //
};

use super::GidAddr;
use crate::bindings;

/// A RoCEv2 packet. It may be kept, in a [`Backlog`](super::Backlog) for instance.
///
/// # Invariants
///
/// `skb` is a packet that this value owns and nobody writes to; `info` was made of it by
/// `xrdma_rx_parse()`, and points into it.
pub struct RxSkb {
    skb: NonNull<kernel::bindings::sk_buff>,
    info: bindings::xrdma_rx_info,
}

// SAFETY: A packet is not tied to a thread; it was detached from its device and its route.
unsafe impl Send for RxSkb {}

// SAFETY: A shared reference reads only.
unsafe impl Sync for RxSkb {}

impl RxSkb {
    /// # Safety
    ///
    /// The caller gives up `skb`, from which `info` was made and which was detached, unless null.
    pub(super) unsafe fn from_raw(
        skb: *mut kernel::bindings::sk_buff,
        info: bindings::xrdma_rx_info,
    ) -> Option<Self> {
        // INVARIANT: By the safety requirement.
        NonNull::new(skb).map(|skb| Self { skb, info })
    }

    /// As [`from_raw`](Self::from_raw), for a packet that was parsed before.
    ///
    /// # Safety
    ///
    /// The caller gives up `skb`, which once was that of an `RxSkb`, unless null.
    pub(super) unsafe fn from_parsed(skb: *mut kernel::bindings::sk_buff) -> Option<Self> {
        let skb = NonNull::new(skb)?;
        let mut info = bindings::xrdma_rx_info::default();
        // SAFETY: By the safety requirement it is a whole packet of ours.
        if !unsafe { bindings::xrdma_rx_parse(skb.as_ptr(), &mut info) } {
            // It was good before, so this is not reached; but it is not ours to say what C may
            // find.
            // SAFETY: By the safety requirement it is ours.
            unsafe { bindings::xrdma_skb_drop(skb.as_ptr()) };
            return None;
        }
        // INVARIANT: Just parsed.
        Some(Self { skb, info })
    }

    pub(super) fn as_raw(&self) -> *mut kernel::bindings::sk_buff {
        self.skb.as_ptr()
    }

    /// Another one of the same packet, whose bytes both read. `None` without memory. Any context.
    pub fn share(&mut self) -> Option<Self> {
        // SAFETY: By the type invariant it is a packet that nobody writes to. The reference is
        // exclusive: two clones must not be made of one packet at a time, since they could take the
        // same place beside it (`struct sk_buff_fclones`).
        let skb = unsafe { bindings::xrdma_skb_share(self.skb.as_ptr()) };
        // SAFETY: The copy is ours, with the bytes of one that was parsed.
        unsafe { Self::from_parsed(skb) }
    }

    /// The UDP payload: BTH to ICRC.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        // SAFETY: By the type invariant; the packet lives as long as `self`.
        unsafe { slice::from_raw_parts(self.info.payload, self.info.payload_len as usize) }
    }

    /// IP header and UDP header, as they came: what the ICRC covers of them.
    #[inline]
    pub fn headers(&self) -> &[u8] {
        // SAFETY: By the type invariant; eight bytes of UDP header follow the IP header.
        unsafe {
            slice::from_raw_parts(self.info.ip, usize::from(self.info.ip_len).wrapping_add(8))
        }
    }

    /// The IP header, 20 or 40 bytes: what datagram receivers get in place of a GRH.
    #[inline]
    pub fn ip_header(&self) -> &[u8] {
        // SAFETY: By the type invariant.
        unsafe { slice::from_raw_parts(self.info.ip, usize::from(self.info.ip_len)) }
    }

    /// Source address.
    #[inline]
    pub fn src(&self) -> GidAddr {
        GidAddr(self.info.src)
    }

    /// Destination address.
    #[inline]
    pub fn dst(&self) -> GidAddr {
        GidAddr(self.info.dst)
    }

    /// IPv4 type of service or IPv6 traffic class, ECN included.
    #[inline]
    pub fn tos(&self) -> u8 {
        self.info.tos
    }

    /// Whether it is an IPv6 packet.
    #[inline]
    pub fn is_v6(&self) -> bool {
        self.info.ip_len == 40
    }

    fn link(&self) -> bindings::xrdma_link_info {
        let mut link = bindings::xrdma_link_info::default();
        // SAFETY: By the type invariant; the packet was detached.
        unsafe { bindings::xrdma_rx_link(self.as_raw(), &mut link) };
        link
    }

    /// Source MAC address; zeroes when it came over a link without.
    pub fn smac(&self) -> [u8; 6] {
        self.link().smac
    }

    /// VLAN identifier it came with.
    pub fn vlan(&self) -> Option<u16> {
        let vlan = self.link().vlan;
        (vlan != 0xffff).then_some(vlan)
    }
}

impl Drop for RxSkb {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_skb_consume(self.as_raw()) };
    }
}
