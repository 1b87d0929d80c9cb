// SPDX-License-Identifier: GPL-2.0

//! The packets of one run, on their way to the network stack.

use crate::prelude::*;
use crate::tx::{
    self,
    Assembly,
    BuildError,
    Planned, //
};
use roce::requester::Middles;

/// Packets that one run of a send side has built. They are handed over in bursts, and counted at
/// the end of the run.
pub(super) struct Outgoing {
    batch: TxBatch,
    assembly: Assembly,
    packets: u64,
    /// Bytes of payload in these.
    bytes: u64,
    flushed: Flushed,
}

impl Outgoing {
    /// No packets.
    pub(super) fn new() -> Self {
        Outgoing {
            batch: TxBatch::new(),
            assembly: Assembly::new(),
            packets: 0,
            bytes: 0,
            flushed: Flushed::default(),
        }
    }

    /// Builds `packet`, whose payload `fill` writes; hands over what there is if that is as many
    /// packets as the route takes at a time ([`Route::burst`]). Says whether it is in a train with
    /// the one before it. Softirq or process context.
    pub(super) fn add(
        &mut self,
        qp: &WireQp,
        route: &mut Route,
        packet: &Planned<'_>,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Fault>,
    ) -> Result<bool, BuildError> {
        let (batch, sender) = (&mut self.batch, &qp.sender);
        // A train that begins ends with the burst at the latest.
        let room = route
            .burst()
            .saturating_sub(batch.len().wrapping_add(self.assembly.len()));
        let room = room.saturating_sub(1) as u32;
        let followers = packet.followers.min(room);
        let packet = &Planned {
            followers,
            others: packet.others.min(room.saturating_sub(followers)),
            ..*packet
        };
        let joins = self.assembly.add(batch, route, sender, packet, fill)?;
        self.added(qp, route, 1, packet.len as u64);
        Ok(joins)
    }

    /// Whether a train has ended since the last call, and none is being built.
    pub(super) fn take_ended(&mut self) -> bool {
        self.assembly.take_ended()
    }

    /// Middle packets that [`Self::extend`] may add to the packet that was added last.
    pub(super) fn room(&self) -> u32 {
        self.assembly.room()
    }

    /// Adds `middles`, [`Self::room`] of them at most, with `len` bytes of payload each, which
    /// `fill` writes piece by piece ([`Assembly::extend`]). Else as [`Self::add`].
    pub(super) fn extend(
        &mut self,
        qp: &WireQp,
        route: &mut Route,
        middles: Middles,
        len: u32,
        fill: impl FnMut(u32, &mut [u8]) -> Result<(), Fault>,
    ) -> Result<(), BuildError> {
        let (batch, sender) = (&mut self.batch, &qp.sender);
        let added = self.assembly.extend(batch, route, sender, middles, fill);
        self.added(qp, route, added, u64::from(added).wrapping_mul(len.into()));
        match added == middles.count {
            true => Ok(()),
            false => Err(BuildError::Fault),
        }
    }

    /// Counts packets with `bytes` of payload. Hands over what there is if that is enough.
    fn added(&mut self, qp: &WireQp, route: &mut Route, packets: u32, bytes: u64) {
        self.packets = self.packets.wrapping_add(packets.into());
        self.bytes = self.bytes.wrapping_add(bytes);
        if self.batch.len().wrapping_add(self.assembly.len()) >= route.burst() {
            self.assembly.close(&mut self.batch, route, &qp.sender);
            self.flushed = self.flushed.and(self.batch.flush());
        }
    }

    /// Takes a packet without payload that is complete. Context as for [`Self::add`].
    pub(super) fn push(&mut self, skb: TxSkb) {
        self.packets = self.packets.wrapping_add(1);
        self.batch.push(skb, Joining::Alone);
    }

    /// Hands over what is left and counts all packets for `qp`; `route` is that of [`Self::add`].
    /// Context as there.
    pub(super) fn finish(mut self, qp: &WireQp, route: Option<&mut Route>) {
        if let Some(route) = route {
            self.assembly.close(&mut self.batch, route, &qp.sender);
        }
        if self.packets == 0 {
            return;
        }
        qp.device.count(Counter::SentPackets, self.packets);
        qp.device.count(Counter::SentBytes, self.bytes);
        let lost = Flushed {
            dropped: self.assembly.lost(),
            ..Flushed::default()
        };
        let flushed = self.flushed.and(self.batch.flush()).and(lost);
        tx::count_flushed(&qp.device, flushed);
    }
}
