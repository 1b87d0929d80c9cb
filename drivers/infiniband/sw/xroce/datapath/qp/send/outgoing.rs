// SPDX-License-Identifier: GPL-2.0

//! The packets of one run, on their way to the network stack.

use crate::prelude::*;

/// Packets that are handed to the stack at a time. On a virtual link, the peer receives the packets
/// of a burst within the call that hands them over. With larger bursts this takes longer than
/// softirqs may, and the rest waits for a thread that has to compete for the CPU.
const BURST: usize = 16;

/// Packets that one run of a send side has built. They are handed over in bursts, and counted at
/// the end of the run.
pub(super) struct Outgoing {
    batch: TxBatch,
    packets: u64,
    /// Bytes of payload in these.
    bytes: u64,
    dropped: u32,
}

impl Outgoing {
    /// No packets.
    pub(super) fn new() -> Self {
        Outgoing {
            batch: TxBatch::new(),
            packets: 0,
            bytes: 0,
            dropped: 0,
        }
    }

    /// Takes a packet with `payload` bytes. Softirq or process context.
    pub(super) fn push(&mut self, skb: TxSkb, payload: u32) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(u64::from(payload));
        self.batch.push(skb);
        if self.batch.len() >= BURST {
            self.dropped = self.dropped.wrapping_add(self.batch.flush());
        }
    }

    /// Hands over what is left and counts all packets for `qp`. Context as for [`Self::push`].
    pub(super) fn finish(mut self, qp: &WireQp) {
        if self.packets == 0 {
            return;
        }
        qp.device.count(Counter::SentPackets, self.packets);
        qp.device.count(Counter::SentBytes, self.bytes);
        let dropped = self.dropped.wrapping_add(self.batch.flush());
        if dropped > 0 {
            qp.device.count(Counter::SendError, u64::from(dropped));
        }
    }
}
