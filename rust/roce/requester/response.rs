// SPDX-License-Identifier: GPL-2.0

//! Handling the responses of the responder (the completer).

use core::ops::DerefMut;

use super::{
    recovery,
    Requester,
    RequesterEnv,
    SendOp,
    State,
    Wqe, //
};
use crate::opcode::{
    Family,
    Opcode,
    Operation, //
};
use crate::psn::Psn;
use crate::rnr;
use crate::status::WcStatus;
use crate::ud::pkey_matches;
use crate::wire::{
    NakCode,
    Packet,
    Syndrome, //
};

/// Whether an acknowledgement reached as far as it said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reached {
    /// Everything before it is done.
    Yes,
    /// A request before it still misses its response.
    ResponseMissing,
}

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// Takes a packet from the responder; anything else is ignored.
    #[inline]
    pub fn handle_response<E: RequesterEnv>(&mut self, packet: &Packet<'_>, now: u64, env: &mut E) {
        let service = self.config.service;
        let psn = packet.bth.psn;
        if self.state != State::Ready
            || self.local_slot.is_some()
            || !service.is_reliable()
            || packet.opcode.transport != service.transport()
            || !pkey_matches(packet.bth.pkey, self.config.pkey)
        {
            self.ignore();
            return;
        }
        // Only what is in flight can be answered.
        if psn.since(self.una) >= self.max.since(self.una) {
            self.ignore();
            if matches!(packet.aeth.map(|a| a.syndrome), Some(Syndrome::Ack(_)))
                && packet.opcode.family() == Family::Ack
            {
                self.on_answer(now);
            }
            if packet.opcode.family() == Family::ReadResponse {
                self.on_response_copy(psn);
            }
            return;
        }
        match packet.opcode.family() {
            Family::ReadResponse => self.on_read_response(psn, packet.payload, now, env),
            Family::Ack => match packet.aeth.map(|a| a.syndrome) {
                Some(Syndrome::Ack(_)) => {
                    let end = psn.next();
                    if self.acknowledge(end, now, env) == Reached::ResponseMissing
                        && !self.on_answer(now)
                    {
                        self.on_response_missing(end, now, env);
                    }
                }
                Some(Syndrome::Rnr(timer)) => self.on_rnr(psn, timer, now, env),
                Some(Syndrome::Nak(code)) => self.on_nak(psn, code, now, env),
                _ => self.ignore(),
            },
            Family::AtomicAck => {
                if let Some(ack) = packet.atomic_ack {
                    self.on_atomic_ack(psn, ack.original, now, env);
                }
            }
            _ => self.ignore(),
        }
    }

    /// Packets of this connection met congestion: fewer are sent at a time.
    pub fn on_congestion(&mut self) {
        // With nothing in flight the window was not the cause.
        if self.state == State::Ready && self.config.service.is_reliable() && self.in_flight() {
            self.window.on_mark(self.una, self.max);
        }
    }

    fn ignore(&mut self) {
        self.stats.ignored = self.stats.ignored.wrapping_add(1);
    }

    /// Everything before `end` was executed.
    fn acknowledge<E: RequesterEnv>(&mut self, end: Psn, now: u64, env: &mut E) -> Reached {
        let una = self.una;
        let reached = self.acknowledge_data(end, now, env);
        if self.una != una {
            self.take_early(now, env);
        }
        reached
    }

    /// Everything before `end` was executed. Requests with a response are only
    /// done when that has come.
    pub(super) fn acknowledge_data<E: RequesterEnv>(
        &mut self,
        end: Psn,
        now: u64,
        env: &mut E,
    ) -> Reached {
        let mut progress = 0u32;
        let mut reached = Reached::Yes;
        // Every turn but the last completes one work request.
        for _ in 0..=self.count {
            let rest = end.since(self.una);
            let Some(wqe) = self.oldest_assigned() else {
                break;
            };
            if rest == 0 {
                break;
            }
            if wqe.packets == 0 {
                // Local work; it ran before later requests got their numbers.
                if !wqe.done {
                    break;
                }
                self.pop(WcStatus::Success, env);
                continue;
            }
            if wqe.wr.op.has_response() {
                reached = Reached::ResponseMissing;
                break;
            }
            let left = wqe.packets.saturating_sub(self.una.since(wqe.psn));
            let step = rest.min(left);
            let to = self.una.add(step);
            progress = progress.saturating_add(step);
            if step == left {
                self.pop(WcStatus::Success, env);
            }
            self.advance_una(to);
        }
        if progress != 0 {
            self.on_data_done(self.una);
            self.on_progress(progress, now);
            self.on_recovery_ack(now);
            self.settle(env);
        }
        reached
    }

    /// `count` more packets are done with.
    #[inline]
    pub(super) fn on_progress(&mut self, count: u32, now: u64) {
        self.retry.reset();
        self.rnr_retry.reset();
        self.rnr_until = None;
        self.implied_nak_at = None;
        self.rd_atomic.release(self.una);
        let is_prompt = !self.window.is_recovering();
        self.window.on_ack(count, self.una);
        self.losses.on_ack(count);
        self.measure(now);
        self.on_progress_of_probe(now);
        if self.una == self.max {
            self.ack_deadline = None;
            self.probe.silent = 0;
            self.bandwidth.on_idle();
        } else {
            let is_whole = self.recovery.is_over() && self.early.is_none();
            self.bandwidth
                .on_ack(count, now, self.rtt.smoothed(), is_whole, is_prompt);
            self.start_ack_timer(now);
        }
    }

    /// Packets that the wire and the hosts hold without a queue; 0 if that is unknown.
    ///
    /// The hosts hold the packets that are acknowledged together. A burst of the sender is
    /// acknowledged together as well, and is a large part of a small window. So there is room for
    /// no more of them than what the wire holds less two bursts. If packets are lost often, a short
    /// queue may have no room for them. Where losses are not rare, it may have no room for a larger
    /// window either, so this is no more than the window.
    pub(super) fn fits(&self) -> u32 {
        let wire = self.bandwidth.packets_in(self.rtt.min());
        let room = wire.saturating_sub(self.burst().saturating_mul(2));
        let hosts = match self.losses.is_often() {
            true => 0,
            false => self.bandwidth.extra().min(room),
        };
        // A responder keeps two such windows behind a missing packet, as a rule.
        let fits = wire
            .saturating_add(hosts)
            .min(wire.max(recovery::AHEAD >> 1));
        match self.losses.is_rare() {
            true => fits,
            false => fits.min(self.window.packets()),
        }
    }

    /// A packet was lost.
    pub(super) fn on_loss(&mut self) {
        self.count_loss();
        self.shrink();
    }

    /// A packet was lost, which may belong to a loss that the window knows of.
    pub(super) fn count_loss(&mut self) {
        self.losses.on_loss();
        if !self.losses.is_rare() {
            self.window.stop_growth();
        }
    }

    /// The window shrinks, because of a loss that is counted already.
    fn shrink(&mut self) {
        self.window.on_loss(self.una, self.max, self.fits());
    }

    /// The packet whose round trip is measured may have been answered.
    #[inline]
    fn measure(&mut self, now: u64) {
        if let Some((psn, at)) = self.timed {
            if psn.is_before(self.una) {
                self.timed = None;
                self.probe.on_round_trip();
                let ns = now.saturating_sub(at);
                self.rtt.on_sample(ns);
                self.window.on_round_trip(ns, self.rtt.min());
            }
        }
    }

    /// Counts a try and transmits again from the oldest unacknowledged number.
    fn go_back<E: RequesterEnv>(&mut self, now: u64, env: &mut E) -> bool {
        if !self.retry.consume() {
            self.fail_oldest(WcStatus::RetryExcErr, env);
            return false;
        }
        self.on_loss();
        self.rewind(now);
        self.start_ack_timer(now);
        true
    }

    /// The oldest packet is missing. Whether that is all that has to be sent again.
    fn is_hole<E: RequesterEnv>(&mut self, now: u64, env: &mut E) -> bool {
        let is_known = !self.recovery.is_over();
        if !self.recover(now) {
            return false;
        }
        if !is_known {
            if !self.retry.consume() {
                self.fail_oldest(WcStatus::RetryExcErr, env);
                return true;
            }
            self.shrink();
            self.start_ack_timer(now);
        }
        true
    }

    /// Acknowledges everything before `psn`, whose request was not executed. Whether `psn` is now
    /// the oldest number that waits. If a response from before it is missing, that and everything
    /// behind it is sent again: the responder may not refuse `psn` a second time.
    fn reach<E: RequesterEnv>(&mut self, psn: Psn, now: u64, env: &mut E) -> bool {
        if self.acknowledge(psn, now, env) == Reached::ResponseMissing {
            if self.state == State::Ready && self.implied_nak_at != Some(self.una) {
                self.stats.implied_naks = self.stats.implied_naks.wrapping_add(1);
                if self.go_back(now, env) {
                    self.implied_nak_at = Some(self.una);
                }
            }
            return false;
        }
        self.state == State::Ready && self.una == psn
    }

    /// Acknowledges everything before `psn`, whose response came. Whether that is the next one.
    fn is_next<E: RequesterEnv>(&mut self, psn: Psn, now: u64, env: &mut E) -> bool {
        if self.acknowledge(psn, now, env) == Reached::ResponseMissing {
            self.on_response_missing(psn.next(), now, env);
        }
        self.state == State::Ready && self.una == psn
    }

    fn on_nak<E: RequesterEnv>(&mut self, psn: Psn, code: NakCode, now: u64, env: &mut E) {
        if !self.reach(psn, now, env) {
            return;
        }
        let status = match code {
            NakCode::PsnSequence => {
                self.stats.sequence_naks = self.stats.sequence_naks.wrapping_add(1);
                // Waiting already, or about to transmit that packet again. While one packet is sent
                // at a time there is no gap but an earlier one, which that packet fills.
                if self.rnr_until.is_some() || self.next == self.una || self.rnr_retry.is_refused()
                {
                    self.ignore();
                    return;
                }
                if self.is_hole(now, env) {
                    return;
                }
                // The responder had not seen a probe that is on its way: no second copy.
                let is_on_its_way = self.probe.is_on_its_way(now, self.rtt.min());
                if self.go_back(now, env) {
                    self.recovery.on_sent_again(self.una);
                    if is_on_its_way {
                        self.pass_oldest();
                    }
                }
                return;
            }
            NakCode::InvalidRequest => WcStatus::RemInvReqErr,
            NakCode::RemoteAccess => WcStatus::RemAccessErr,
            NakCode::RemoteOperational => WcStatus::RemOpErr,
        };
        self.fail_oldest(status, env);
    }

    fn on_rnr<E: RequesterEnv>(&mut self, psn: Psn, timer: u8, now: u64, env: &mut E) {
        if !self.reach(psn, now, env) {
            return;
        }
        // Waiting already, or about to transmit that packet again: a copy.
        if self.rnr_until.is_some() || self.next == self.una {
            self.ignore();
            return;
        }
        self.wait_not_ready(rnr::delay_ns(timer), now, env);
    }

    /// The responder has no receive: tries again after `delay` nanoseconds, or later.
    pub(super) fn wait_not_ready<E: RequesterEnv>(&mut self, delay: u64, now: u64, env: &mut E) {
        self.stats.rnr_naks = self.stats.rnr_naks.wrapping_add(1);
        if !self.rnr_retry.consume() {
            self.fail_oldest(WcStatus::RnrRetryExcErr, env);
            return;
        }
        self.retry.reset();
        self.rewind(now);
        let wait = self.rnr_retry.wait_ns(delay);
        self.rnr_until = Some(now.saturating_add(wait));
        self.ack_deadline = None;
    }

    fn on_read_response<E: RequesterEnv>(
        &mut self,
        psn: Psn,
        payload: &[u8],
        now: u64,
        env: &mut E,
    ) {
        if !self.is_next(psn, now, env) {
            self.place_early(psn, payload, env);
            return;
        }
        let slot = self.head;
        let Some(wqe) = self.oldest_assigned() else {
            return;
        };
        match wqe.wr.op {
            SendOp::Read => {
                let mtu = self.config.mtu;
                let index = psn.since(wqe.psn);
                if payload.len() != mtu.payload(wqe.wr.length, index) as usize {
                    self.fail_oldest(WcStatus::LocLenErr, env);
                    return;
                }
                if !payload.is_empty() && env.scatter(slot, mtu.offset(index), payload).is_err() {
                    self.fail_oldest(WcStatus::LocProtErr, env);
                    return;
                }
            }
            SendOp::AtomicWrite | SendOp::Flush if payload.is_empty() => {}
            _ => {
                self.bad_response(env);
                return;
            }
        }
        self.on_response_done(psn, now, env);
    }

    /// Takes `count` Middle packets of a READ response at once. `packet` is the first of them, but
    /// for its payload, which is that of all, one behind the other.
    ///
    /// False, and nothing is done but that some of the payload may have been stored, unless these
    /// are what is missing next, all of it can be stored, and nothing is waited for that came out
    /// of order: then each of them is to be [handled](Self::handle_response) by itself.
    pub fn handle_middles<E: RequesterEnv>(
        &mut self,
        packet: &Packet<'_>,
        count: u32,
        now: u64,
        env: &mut E,
    ) -> bool {
        let (service, mtu) = (self.config.service, self.config.mtu);
        if self.state != State::Ready
            || self.local_slot.is_some()
            || packet.opcode != Opcode::new(service.transport(), Operation::ReadResponseMiddle)
            || !service.is_reliable()
            || !pkey_matches(packet.bth.pkey, self.config.pkey)
            || packet.bth.psn != self.una
            || !self.early.is_none()
            || self.early.placed() != 0
            || mtu.bytes().checked_mul(count) != Some(packet.payload_len())
        {
            return false;
        }
        let slot = self.head;
        let Some(wqe) = self.oldest_assigned() else {
            return false;
        };
        let index = self.una.since(wqe.psn);
        // The last packet ends more than itself.
        if count == 0
            || wqe.wr.op != SendOp::Read
            || index.saturating_add(count) >= wqe.packets
            || count > self.max.since(self.una)
            || env
                .scatter(slot, mtu.offset(index), packet.payload)
                .is_err()
        {
            return false;
        }
        self.advance_una(self.una.add(count));
        self.on_progress(count, now);
        self.on_recovery_response(now);
        true
    }

    fn on_atomic_ack<E: RequesterEnv>(&mut self, psn: Psn, original: u64, now: u64, env: &mut E) {
        if !self.is_next(psn, now, env) {
            return;
        }
        let slot = self.head;
        match self.oldest_assigned().map(|w| w.wr.op) {
            Some(SendOp::CmpSwap | SendOp::FetchAdd) => {}
            Some(_) => {
                self.bad_response(env);
                return;
            }
            None => return,
        }
        if env.scatter(slot, 0, &original.to_ne_bytes()).is_err() {
            self.fail_oldest(WcStatus::LocProtErr, env);
            return;
        }
        self.on_response_done(psn, now, env);
    }

    /// One packet of the response of the oldest request was taken.
    #[inline]
    fn on_response_done<E: RequesterEnv>(&mut self, psn: Psn, now: u64, env: &mut E) {
        let to = psn.next();
        let is_done = self
            .oldest_assigned()
            .is_some_and(|w| to.since(w.psn) >= w.packets);
        let is_read = self
            .oldest_assigned()
            .is_some_and(|w| w.wr.op == SendOp::Read);
        if is_done {
            self.pop(WcStatus::Success, env);
        }
        self.advance_una(to);
        if !is_read {
            self.on_data_done(to);
        }
        self.on_progress(1, now);
        self.on_recovery_response(now);
        if is_done {
            self.settle(env);
        }
        self.take_early(now, env);
    }

    /// A response of another kind than the request: the peer is broken, unless
    /// the request has none, when the packet is a stray.
    fn bad_response<E: RequesterEnv>(&mut self, env: &mut E) {
        if self
            .oldest_assigned()
            .is_some_and(|w| w.wr.op.has_response())
        {
            self.fail_oldest(WcStatus::BadRespErr, env);
        } else {
            self.ignore();
        }
    }
}
