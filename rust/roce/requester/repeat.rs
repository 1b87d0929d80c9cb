// SPDX-License-Identifier: GPL-2.0

//! Packets that are sent once more while the transmit cursor stays where it is: those of a probe,
//! and what is known to be missing.

use core::ops::DerefMut;

use super::timeout::ProbePacket;
use super::{
    Requester,
    RequesterEnv,
    SendOp,
    Transmit,
    Wqe, //
};
use crate::opcode::Operation;
use crate::psn::Psn;
use crate::wire::Reth;

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// The next packet that is due because of a probe.
    #[inline]
    pub(super) fn next_probe<E: RequesterEnv>(
        &mut self,
        now: u64,
        env: &mut E,
    ) -> Option<Transmit> {
        while let Some(which) = self.take_due() {
            if which == ProbePacket::Echo && self.probe.is_steady() && !env.may_ask() {
                self.probe.ask_rarely(&self.rtt);
                continue;
            }
            if let Some(transmit) = self.probe_packet(which, now) {
                return Some(transmit);
            }
            if which == ProbePacket::Hole {
                self.recovery.skip_rest();
            }
        }
        None
    }

    /// Which packet is due because of a probe, or is missing like the one before it.
    #[inline]
    fn take_due(&mut self) -> Option<ProbePacket> {
        match self.probe.take_due() {
            None if self.recovery.is_due() => Some(ProbePacket::Hole),
            due => due,
        }
    }

    /// A packet of a probe: one that was sent before, once more, with a request for an answer. Of
    /// several that are missing, the last has it. The cursor stays where it is.
    fn probe_packet(&mut self, which: ProbePacket, now: u64) -> Option<Transmit> {
        let oldest = *self.oldest_assigned()?;
        // Nothing is in flight, or it is about to be sent again anyway.
        if self.next == self.una
            || oldest.packets == 0
            || oldest.fault.is_some()
            || self.rnr_retry.is_refused()
            || (which == ProbePacket::Tail && self.unasked_packets == 0)
        {
            return None;
        }
        let has_response = oldest.wr.op.has_response();
        // Only what is known to be missing is repeated if it has a response.
        let is_allowed = match which {
            ProbePacket::Oldest | ProbePacket::Newest | ProbePacket::Tail => !has_response,
            ProbePacket::Missing => has_response,
            ProbePacket::Hole => true,
            ProbePacket::Echo => self.may_echo(),
        };
        if !is_allowed {
            return None;
        }
        if which == ProbePacket::Echo {
            return Some(self.echo_packet(&oldest));
        }
        let first = (self.una, 0, self.una.since(oldest.psn));
        let (missing, behind) = match which {
            ProbePacket::Hole => self.next_missing(),
            _ => (self.una, 0),
        };
        let at = match which {
            ProbePacket::Newest => self.newest_data()?,
            ProbePacket::Hole if missing != self.una => self.data_at(missing)?,
            ProbePacket::Tail if self.next != self.una.next() => self.newest_data()?,
            _ => first,
        };
        let cursor = (self.next, self.sent, self.sent_packets);
        let unasked = (self.unasked_packets, self.unasked_messages);
        let responses = self.rd_atomic.sent();
        let retransmitted = self.stats.retransmitted;
        (self.next, self.sent, self.sent_packets) = at;
        let slot = self.slot_at(self.sent);
        let begins = self.wqe(slot).map_or(0, |wqe| wqe.begins);
        let transmit = match oldest.wr.op {
            SendOp::Read => self.missing_part(slot, which == ProbePacket::Hole),
            _ if has_response => {
                self.rd_atomic.rewind();
                self.atomic_packet(slot)
            }
            // It takes no room in the window, and the last one asks for an answer.
            _ => self.data_packet_with(slot, behind),
        };
        (self.next, self.sent, self.sent_packets) = cursor;
        if let Some(wqe) = self.queue.get_mut(slot as usize) {
            // The copy does not tell how the packet went that is missing.
            wqe.begins = begins;
        }
        (self.unasked_packets, self.unasked_messages) = unasked;
        self.rd_atomic.resume(responses);
        let transmit = Transmit {
            // What is polled next need not be behind it.
            followers: 0,
            others: 0,
            ..transmit?
        };
        // An answer could be one to either of two packets (Karn's rule).
        self.timed = None;
        if has_response {
            self.probe.echo.renew(true, now, &self.rtt);
        }
        if which == ProbePacket::Hole {
            let end = match oldest.wr.op {
                SendOp::Read => self.rd_atomic.first_end(),
                _ => None,
            };
            let count = end.map_or(1, |end| end.since(self.una));
            self.on_resent(missing, count, now);
        } else if which == ProbePacket::Tail {
            self.stats.retransmitted = retransmitted;
            self.stats.tails = self.stats.tails.wrapping_add(1);
            (self.unasked_packets, self.unasked_messages) = (0, 0);
            self.probe.echo.on_asked();
            self.start_ack_timer(now);
        } else if which != ProbePacket::Missing {
            self.stats.retransmitted = retransmitted;
            self.stats.probes = self.stats.probes.wrapping_add(1);
            self.probe.on_sent(now);
            self.probe.echo.on_asked();
        }
        Some(transmit)
    }

    /// A READ request for the packets at the cursor that are missing before one that came, or for
    /// all of those that were asked for together.
    fn missing_part(&mut self, slot: u32, is_whole: bool) -> Option<Transmit> {
        let wqe = *self.queue.get(slot as usize)?;
        let (mtu, index) = (self.config.mtu, self.sent_packets);
        let rest = wqe.packets.saturating_sub(index);
        let end = self.rd_atomic.first_end()?;
        let whole = end.since(self.next).min(rest);
        let count = match is_whole {
            true => whole,
            false => self.missing(whole),
        };
        let offset = mtu.offset(index);
        let header = self.rdma_request(Operation::ReadRequest, &wqe, |wr| Reth {
            va: wr.remote_addr.wrapping_add(u64::from(offset)),
            rkey: wr.rkey,
            len: wr.length.saturating_sub(offset).min(mtu.offset(count)),
        });
        self.early.asked = Some(self.next.add(count));
        self.stats.retransmitted = self.stats.retransmitted.wrapping_add(1);
        Some(Transmit {
            header,
            payload: None,
            pad: 0,
            followers: 0,
            others: 0,
            again: true,
        })
    }

    /// The cursor before the packet `psn`, which is in flight, if it can be sent again behind the
    /// oldest one: all from that on are of SENDs and WRITEs.
    fn data_at(&self, psn: Psn) -> Option<(Psn, u32, u32)> {
        for rel in 0..self.assigned {
            let wqe = self.wqe(self.slot_at(rel))?;
            if wqe.wr.op.has_response() || wqe.fault.is_some() {
                return None;
            }
            if psn.is_within(wqe.psn, wqe.packets) {
                return Some((psn, rel, psn.since(wqe.psn)));
            }
        }
        None
    }

    /// The cursor before the packet that was sent last, if there is one behind the oldest that was
    /// not answered, and it is of a SEND or a WRITE.
    fn newest_data(&self) -> Option<(Psn, u32, u32)> {
        let psn = self.next.prev();
        if psn == self.una {
            return None;
        }
        let mut sent = match self.sent_packets {
            0 => self.sent.checked_sub(1)?,
            _ => self.sent,
        };
        // Local work has no packets. No more of it can be there than the queue has room for.
        while self.wqe(self.slot_at(sent))?.packets == 0 {
            sent = sent.checked_sub(1)?;
        }
        let wqe = self.wqe(self.slot_at(sent))?;
        let index = psn.since(wqe.psn);
        let is_data = index < wqe.packets && !wqe.wr.op.has_response() && wqe.fault.is_none();
        is_data.then_some((psn, sent, index))
    }
}
