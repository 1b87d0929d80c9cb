// SPDX-License-Identifier: GPL-2.0

//! Which packets ask for an ACK.
//!
//! An ACK costs the two hosts nearly as much as a small message. So not each message asks for one,
//! and one that nobody waits for may leave that to those that are posted later. If none is, the
//! newest packet is sent once more, and asks.

use core::ops::DerefMut;

use super::{
    Requester,
    SendOp,
    Wqe, //
};

/// Messages that may go without asking for an ACK as long as more follow.
const MAX_UNASKED_MESSAGES: u32 = 16;

/// Packets that may go without asking for an ACK.
const MAX_UNASKED_PACKETS: u32 = 64;

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// Whether the next packet, which leaves `room` in the window, must ask for an ACK. `ends`: the
    /// request that it is the last packet of.
    #[inline]
    pub(super) fn must_ask(&mut self, ends: Option<&Wqe>, room: u32) -> bool {
        self.unasked_packets = self.unasked_packets.wrapping_add(1);
        if ends.is_some() {
            self.unasked_messages = self.unasked_messages.wrapping_add(1);
        }
        let many = self.most_unasked();
        let ask = room == 0
            || self.unasked_packets >= many
            // The last one that is sent again.
            || (self.next != self.max && self.next.next() == self.max)
            || ends.is_some_and(|wqe| {
                self.unasked_messages >= MAX_UNASKED_MESSAGES
                    || !(self.another_follows(room) || self.can_wait(wqe))
            });
        if ask {
            self.unasked_packets = 0;
            self.unasked_messages = 0;
        }
        ask
    }

    /// The packet with this number since the last one that asked has to ask. That ends a train, so
    /// it is the last packet of a train that is as long as it may be, if the number is large enough
    /// for one.
    #[inline]
    fn most_unasked(&self) -> u32 {
        let most = (self.window_packets() >> 2)
            .min(self.unasked_at_most())
            .clamp(1, MAX_UNASKED_PACKETS);
        let over = most.checked_rem(self.train_room.into());
        match over.filter(|over| *over < most) {
            Some(over) => most.saturating_sub(over),
            None => most,
        }
    }

    /// Packets that are sent next, up to one that has to ask.
    #[inline]
    pub(super) fn until_asked(&self) -> u32 {
        self.most_unasked().saturating_sub(self.unasked_packets)
    }

    /// Whether the answer to the packet of `wqe`, the last one for now, can be asked for later:
    /// with a packet of a message that is yet to be posted, or else by the timer of the probe
    /// ([`Requester::expire_probe`]). Nobody waits for it then, and what the timer would send once
    /// more is small.
    #[inline]
    fn can_wait(&self, wqe: &Wqe) -> bool {
        !wqe.wr.signaled
            && wqe.packets == 1
            && self.sent.wrapping_add(1) >= self.count
            && self.count <= self.capacity() >> 1
            && self.recovery.is_over()
            && self.is_probed()
    }

    /// Whether a packet of another message can be sent right behind the last
    /// packet of the present one, with `room` left in the window.
    #[inline]
    fn another_follows(&self, room: u32) -> bool {
        let next = self.sent.wrapping_add(1);
        if room == 0 || next >= self.count || (self.draining && next >= self.assigned) {
            return false;
        }
        let Some(wqe) = self.wqe(self.slot_at(next)) else {
            return false;
        };
        wqe.fault.is_none()
            && !wqe.wr.fence
            && !wqe.wr.op.has_response()
            && wqe.wr.op != SendOp::Local
            && wqe
                .wr
                .check(self.config.service, self.config.max_rd_atomic)
                .is_ok()
    }

    /// Whether an answer that nobody asked for would be asked for by the timer of the probe, long
    /// before the acknowledge timer, which would count that as a try.
    #[inline]
    fn is_probed(&self) -> bool {
        match (self.timeout_ns(), self.rtt.probe_timeout(0)) {
            (Some(timeout), Some(wait)) => !self.probe.has_probed() && wait <= timeout >> 2,
            _ => false,
        }
    }

    /// Whether all was sent, and the last packets did not ask for an answer: then
    /// [`Requester::ask`] has one asked for.
    pub(super) fn is_tail_unasked(&self) -> bool {
        let can_repeat = self
            .oldest_assigned()
            .is_some_and(|wqe| !wqe.wr.op.has_response() && wqe.packets != 0);
        can_repeat && self.unasked_packets != 0 && self.sent >= self.count
    }

    /// Nothing else can be sent before an answer: asks for one if the last packets did not.
    pub(super) fn ask(&mut self) {
        if self.unasked_packets != 0 && self.una != self.next {
            self.probe.ask_for_tail();
        }
    }
}
