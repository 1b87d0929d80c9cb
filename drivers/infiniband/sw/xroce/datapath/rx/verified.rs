// SPDX-License-Identifier: GPL-2.0

//! Received packets that were checked, and queues of them.
//!
//! Only this file can create a [`Verified`]. Backlogs, runs and queue pairs take no other packet.

use kernel::prelude::*;
use kernel::sync::Arc;
use rdma::net::{
    self,
    GidAddr,
    RxSkb, //
};
use rdma::process::Process;
use roce::congestion;
use roce::number::Qpn;
use roce::psn::Psn;
use roce::wire::{
    Checked,
    Content,
    Kind,
    Refused, //
};

use super::PKEY;
use crate::tx::KernelCrc;

/// A packet, or a train, whose invariant CRC, transport headers, lengths and P_Key were found
/// right. No CRC is computed of a train or of a member of a super-packet, which no wire can have
/// changed.
///
/// A packet is checked when it arrives, and never again: what the check found is kept with it. The
/// check does not say that the packet fits its queue pair, nor that the numbers and keys in it are
/// valid.
pub(crate) struct Verified(RxSkb<Checked>);

impl Verified {
    /// Checks a packet that has just arrived.
    ///
    /// # Errors
    ///
    /// The packet, and what is wrong with it.
    #[inline]
    pub(super) fn check(skb: RxSkb) -> Result<Self, (RxSkb, Refused)> {
        let checked = match skb.is_unmoved() {
            true if skb.is_of_train() => Checked::check_train(skb.payload(), PKEY),
            true => Checked::check_unmoved(skb.payload(), PKEY),
            false => Checked::check::<KernelCrc>(skb.headers(), skb.payload(), PKEY),
        };
        match checked {
            Ok(checked) => Ok(Verified(skb.note(checked))),
            Err(refused) => Err((skb, refused)),
        }
    }

    /// Another one of the same packet, for another queue pair. `None` without memory.
    pub(super) fn share(&mut self) -> Option<Self> {
        self.0.share().map(Verified)
    }

    /// What kind of packet it is.
    #[inline]
    pub(super) fn kind(&self) -> Kind {
        self.0.noted().kind()
    }

    /// The queue pair that it is for.
    #[inline]
    pub(super) fn dest_qpn(&self) -> Qpn {
        self.0.noted().dest_qpn()
    }

    /// Packets that it stands for: more than one if it is a train.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        match self.0.part() {
            Some(_) => 1,
            None => self.0.train_count(),
        }
    }

    /// A copy of the packet with this index of a train, to be kept by itself. `None` without
    /// memory, or if there is no such packet. Any context.
    pub(crate) fn part(&self, index: u32) -> Option<Verified> {
        self.0.copy_part(index).map(Verified)
    }

    /// Headers and payload, for the run that handles the packet, or the one with this index of a
    /// train. This decodes the headers and checks nothing.
    #[inline]
    pub(crate) fn content(&self, index: u32) -> Content<'_> {
        let (checked, payload) = (self.0.noted(), self.0.payload());
        if !self.0.is_of_train() {
            return checked.content(payload);
        }
        let index = self.0.part().unwrap_or(index);
        let count = self.0.train_count();
        let content = self.0.train_payload(index, 1);
        checked.train_content(payload, (index, index), count, content)
    }

    /// The Middle packets of a train from `index` on whose payload follows in memory, as one packet
    /// ([`Checked::train_content`]), and how many they are. `None`: it is no train, or has no such
    /// packet.
    #[inline]
    pub(crate) fn several(&self, index: u32) -> Option<(Content<'_>, u32)> {
        let (header, all) = (self.0.payload(), self.count());
        if all < 2 {
            return None;
        }
        let checked = self.0.noted();
        let most = checked.train_middles(header, index, all);
        let payload = self.0.train_payload(index, most);
        let mtu = self.0.train_payload(index, 1).len();
        let count = payload.len().checked_div(mtu)? as u32;
        let last = index.wrapping_add(count).wrapping_sub(1);
        Some((
            checked.train_content(header, (index, last), all, payload),
            count,
        ))
    }

    /// Its sequence number, if it is a message.
    pub(crate) fn psn(&self) -> Option<Psn> {
        match self.content(0) {
            Content::Message(message) => Some(message.bth.psn),
            Content::Cnp => None,
        }
    }

    /// Bytes of UDP payload of a packet that has just come, of all those of a train together.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self.0.is_of_train() {
            false => self.0.payload().len(),
            true => {
                let count = self.0.train_count();
                let payload = |index| self.0.train_payload(index, 1).len();
                let (mtu, last) = (payload(0), payload(count.wrapping_sub(1)));
                let (header, count) = (self.0.payload(), count as usize);
                self.0.noted().train_bytes(header, count, mtu, last)
            }
        }
    }

    /// Whether it came as the first of a super-packet that was taken whole.
    #[inline]
    pub(super) fn is_super(&self) -> bool {
        self.0.is_super()
    }

    /// Whether it came as the first of packets that GRO had put together.
    #[inline]
    pub(super) fn is_merged(&self) -> bool {
        self.0.is_merged()
    }

    /// Source address.
    #[inline]
    pub(crate) fn src(&self) -> GidAddr {
        self.0.src()
    }

    /// Destination address.
    #[inline]
    pub(crate) fn dst(&self) -> GidAddr {
        self.0.dst()
    }

    /// Whether it met congestion on its way. Of a train, this is said of the first packet.
    #[inline]
    pub(crate) fn is_marked(&self, index: u32) -> bool {
        self.0.part().unwrap_or(index) == 0 && congestion::is_marked(self.0.tos())
    }

    /// Whether it is an IPv6 packet.
    pub(crate) fn is_v6(&self) -> bool {
        self.0.is_v6()
    }

    /// The IP header, 20 or 40 bytes.
    pub(crate) fn ip_header(&self) -> &[u8] {
        self.0.ip_header()
    }

    /// Source MAC address; zeroes when it came over a link without.
    pub(crate) fn smac(&self) -> [u8; 6] {
        self.0.smac()
    }

    /// VLAN identifier it came with.
    pub(crate) fn vlan(&self) -> Option<u16> {
        self.0.vlan()
    }
}

/// Checked packets that wait for the owner of a direction of a queue pair, see
/// [`rdma::net::Backlog`].
#[pin_data]
pub(crate) struct Backlog {
    #[pin]
    packets: net::Backlog<Checked>,
}

impl Backlog {
    /// An empty queue of `process` for `limit` packets that take `max_bytes` of memory.
    pub(crate) fn new(limit: u32, max_bytes: u32, process: Arc<Process>) -> impl PinInit<Self> {
        pin_init!(Self {
            packets <- net::Backlog::new(limit, max_bytes, process),
        })
    }

    /// Appends a packet. Any context.
    ///
    /// # Errors
    ///
    /// The packet, when the queue is full.
    #[inline]
    pub(crate) fn push(&self, packet: Verified) -> Result<(), Verified> {
        self.packets.push(packet.0).map_err(Verified)
    }

    /// Whether more than half of the room is taken, see [`rdma::net::Backlog::is_half_full`].
    #[inline]
    pub(crate) fn is_half_full(&self) -> bool {
        self.packets.is_half_full()
    }

    /// Takes the oldest packet. Any context.
    #[inline]
    pub(crate) fn pop(&self) -> Option<Verified> {
        self.packets.pop().map(Verified)
    }

    /// Puts a packet in its place by `order`, see [`rdma::net::Backlog::insert`]. Any context.
    ///
    /// # Errors
    ///
    /// The packet, when the queue is full.
    pub(crate) fn insert(&self, packet: Verified, order: u16) -> Result<(), Verified> {
        self.packets.insert(packet.0, order).map_err(Verified)
    }

    /// Takes the first packet, unless its place is behind `order`. Any context.
    pub(crate) fn pop_until(&self, order: u16) -> Option<Verified> {
        self.packets.pop_until(order).map(Verified)
    }

    /// Drops all packets. Any context.
    pub(crate) fn purge(&self) {
        self.packets.purge();
    }
}
