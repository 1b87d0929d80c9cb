// SPDX-License-Identifier: GPL-2.0

//! The packets of one run, on their way to the network stack.

use crate::prelude::*;
use crate::tx;

/// Packets that one run of a send side has built. They are handed over in bursts, and counted at
/// the end of the run.
pub(super) struct Outgoing {
    batch: TxBatch,
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
            packets: 0,
            bytes: 0,
            flushed: Flushed::default(),
        }
    }

    /// Takes a packet with `payload` bytes; hands over what there is if that is `burst` packets
    /// ([`Route::burst`]). Softirq or process context.
    pub(super) fn push(&mut self, skb: TxSkb, payload: u32, joining: Joining, burst: usize) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(u64::from(payload));
        self.batch.push(skb, joining);
        if self.batch.len() >= burst {
            self.flushed = self.flushed.and(self.batch.flush());
        }
    }

    /// Hands over what is left and counts all packets for `qp`. Context as for [`Self::push`].
    pub(super) fn finish(mut self, qp: &WireQp) {
        if self.packets == 0 {
            return;
        }
        qp.device.count(Counter::SentPackets, self.packets);
        qp.device.count(Counter::SentBytes, self.bytes);
        tx::count_flushed(&qp.device, self.flushed.and(self.batch.flush()));
    }
}
