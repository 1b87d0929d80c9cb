// SPDX-License-Identifier: GPL-2.0

//! The acknowledge timer and the wait for a responder that was not ready.

use core::{
    num::NonZeroU64,
    ops::DerefMut, //
};

use super::echo::{
    self,
    Echo, //
};
use super::{
    Requester,
    RequesterEnv,
    State,
    Wqe, //
};
use crate::retry;
use crate::status::WcStatus;

/// A packet of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProbePacket {
    /// The oldest that was not answered: what every responder answers, whatever else it has.
    Oldest,
    /// The newest, behind it: a responder that lacks something between the two says so.
    Newest,
    /// The oldest, alone, because its response is lost.
    Missing,
    /// The oldest, because it did not arrive; or one that is missing like the one before it.
    Hole,
    /// The newest, alone, because neither it nor those before it asked for an answer.
    Tail,
    /// None of them, but a question to the responder.
    Echo,
}

/// Asking for an answer again before the acknowledge timeout: the tail loss probe of RFC 8985 for a
/// transport without selective acknowledgements.
///
/// A probe tells the requester nothing by itself. The answers do, as always: an ACK covers all that
/// the responder has, and a NAK says that there is a gap. So a probe that came too early, because a
/// host had no time to answer, costs its packets and nothing else.
///
/// That is so because only SENDs and WRITEs are repeated. A responder that has executed them does
/// not touch their memory again. A READ would be executed a second time, maybe after its memory was
/// deregistered, for which rxe ends the connection (`rxe_resp.c`, `read_reply`); and all its data
/// would come again. So without a sign of loss, nothing that has a response is repeated. An
/// [`echo`] is sent instead.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Probe {
    /// When the next is due.
    at: Option<NonZeroU64>,
    /// When the last was sent, until there is progress.
    sent: Option<NonZeroU64>,
    /// The next packet of the one that is due.
    pub(super) due: Option<ProbePacket>,
    /// How often the time has doubled since a round trip was last measured.
    pub(super) count: u8,
    /// How often none came in time since there was progress.
    pub(super) silent: u16,
    pub(super) echo: Echo,
}

impl Probe {
    /// Which packet is due, if any; from then on the next one is.
    #[inline]
    pub(super) fn take_due(&mut self) -> Option<ProbePacket> {
        let due = self.due?;
        self.due = match due {
            ProbePacket::Oldest => Some(ProbePacket::Newest),
            ProbePacket::Newest
            | ProbePacket::Missing
            | ProbePacket::Hole
            | ProbePacket::Tail
            | ProbePacket::Echo => None,
        };
        Some(due)
    }

    /// The response to the oldest packet is lost.
    pub(super) fn ask_for_missing(&mut self) {
        self.due = Some(ProbePacket::Missing);
    }

    /// The oldest packet is lost.
    pub(super) fn ask_for_hole(&mut self) {
        self.due = Some(ProbePacket::Hole);
    }

    /// Whether an answer was missed and asked for again.
    #[inline]
    pub(super) fn has_probed(&self) -> bool {
        self.count != 0
    }

    /// The last packets did not ask for an answer, and are to do so now.
    pub(super) fn ask_for_tail(&mut self) {
        self.due.get_or_insert(ProbePacket::Tail);
    }

    /// There is nothing to ask for.
    pub(super) fn stop(&mut self) {
        self.at = None;
        self.forget();
    }

    /// What was sent is sent again anyway.
    pub(super) fn forget(&mut self) {
        self.due = None;
        self.sent = None;
    }

    /// A packet of it was sent.
    pub(super) fn on_sent(&mut self, now: u64) {
        self.sent = NonZeroU64::new(now);
    }

    /// Whether a packet of it was sent since there was progress.
    pub(super) fn is_sent(&self) -> bool {
        self.sent.is_some()
    }

    /// Whether an answer to its packets cannot have come yet, if a round trip takes at least
    /// `round_trip`.
    pub(super) fn is_on_its_way(&self, now: u64, round_trip: u64) -> bool {
        self.sent
            .is_some_and(|at| now.saturating_sub(at.get()) < round_trip)
    }

    /// A round trip was measured. Only that ends the doubling, not progress (RFC 6298, 5.7): where
    /// round trips have become longer than the wait, none could be measured otherwise, as what is
    /// asked for twice is not.
    #[inline]
    pub(super) fn on_round_trip(&mut self) {
        self.count = 0;
        self.silent = 0;
    }
}

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// When [`Requester::handle_timeout`] wants to be called, if ever.
    #[inline]
    pub fn next_deadline(&self) -> Option<u64> {
        if self.state != State::Ready {
            return None;
        }
        let probe = self.probe.at.map(NonZeroU64::get);
        let next = match (self.rnr_until, probe, self.ack_deadline) {
            (Some(until), _, _) => Some(until),
            (None, Some(probe), Some(deadline)) => Some(probe.min(deadline)),
            (None, _, deadline) => deadline,
        };
        let next = match (self.rnr_until, self.early.deadline(), next) {
            (None, Some(early), Some(next)) => Some(early.min(next)),
            (None, early @ Some(_), None) => early,
            (_, _, next) => next,
        };
        let next = match (self.rnr_until, self.pace.deadline(), next) {
            (None, Some(pace), Some(next)) => Some(pace.min(next)),
            (None, pace @ Some(_), None) => pace,
            (_, _, next) => next,
        };
        next.filter(|t| *t != u64::MAX)
    }

    /// Time has passed: ends a wait that is over, or counts a missing answer as
    /// a loss and goes back. Harmless when nothing is due. Poll afterwards.
    pub fn handle_timeout<E: RequesterEnv>(&mut self, now: u64, env: &mut E) {
        if self.state != State::Ready || self.rnr_until.is_some() {
            self.is_wait_over(now);
            return;
        }
        self.expire_pace(now);
        self.expire_missing(now, env);
        if self.state != State::Ready {
            return;
        }
        match self.ack_deadline {
            Some(t) if now >= t => {}
            Some(deadline) => {
                self.expire_probe(now, deadline);
                return;
            }
            None => return,
        }
        if self.is_tail_unasked() {
            // The timer of the probe is late.
            self.ask();
            self.start_ack_timer(now);
            return;
        }
        self.stats.timeouts = self.stats.timeouts.wrapping_add(1);
        if !self.retry.consume() {
            self.fail_oldest(WcStatus::RetryExcErr, env);
            return;
        }
        self.count_loss();
        self.window.on_timeout(self.una, self.max, self.fits());
        self.implied_nak_at = None;
        self.rewind(now);
        self.ack_deadline = None;
        if self.una != self.max {
            self.start_ack_timer(now);
        }
    }

    /// Whether the responder may be bothered (again).
    #[inline]
    pub(super) fn is_wait_over(&mut self, now: u64) -> bool {
        match self.rnr_until {
            Some(t) if now < t => false,
            _ => {
                self.rnr_until = None;
                true
            }
        }
    }

    /// How long an answer is waited for, nanoseconds, if not for ever.
    #[inline]
    pub(super) fn timeout_ns(&self) -> Option<u64> {
        match self.config.service.is_reliable() {
            true => retry::timeout_ns(self.config.timeout),
            false => None,
        }
    }

    /// (Re)starts the acknowledge timer, and with it that of the probe.
    #[inline]
    pub(super) fn start_ack_timer(&mut self, now: u64) {
        self.ack_deadline = self.timeout_ns().map(|t| now.saturating_add(t));
        self.start_probe_timer(now);
    }

    /// (Re)starts the timer of the probe, if it would expire before the acknowledge timer.
    #[inline]
    pub(super) fn start_probe_timer(&mut self, now: u64) {
        self.probe.echo.forget_answer();
        self.probe.at = None;
        let most = self.timeout_ns().unwrap_or(0) >> 2;
        if let Some(wait) = self.probe.wait(most, &self.rtt) {
            self.start_probe_timer_at(now.saturating_add(wait));
        }
    }

    /// Starts the timer of the probe for the time `at`, if that is before the acknowledge timer's.
    #[inline]
    pub(super) fn start_probe_timer_at(&mut self, at: u64) {
        self.probe.at = match self.ack_deadline {
            Some(deadline) if at < deadline => NonZeroU64::new(at),
            _ => None,
        };
    }

    /// A probe may be due. No retry is counted: those belong to the acknowledge timer, whose
    /// `deadline` is not moved.
    fn expire_probe(&mut self, now: u64, deadline: u64) {
        if self.probe.at.is_none_or(|at| now < at.get()) || now >= deadline {
            return;
        }
        if self.probe.echo.is_answered() {
            self.resend_lost(now);
            return;
        }
        if self.is_tail_unasked() {
            // As far as is known, no answer is late.
            self.ask();
            self.start_probe_timer(now);
            return;
        }
        let has_response = self
            .oldest_assigned()
            .is_none_or(|wqe| wqe.wr.op.has_response());
        let is_asked =
            echo::is_persistent(self.probe.silent) || self.early.is_none() && has_response;
        if is_asked && self.may_echo() {
            self.probe.due = Some(ProbePacket::Echo);
        } else if !has_response {
            self.probe.count = self.probe.count.saturating_add(1);
            self.probe.due = Some(ProbePacket::Oldest);
        }
        self.probe.silent = self.probe.silent.saturating_add(1);
        self.start_probe_timer(now);
    }

    /// There was progress: no packet of a probe is due any more. What is missing is told by what
    /// the responder says.
    #[inline]
    pub(super) fn on_progress_of_probe(&mut self, now: u64) {
        if self.probe.is_on_its_way(now, self.rtt.min() >> 1) {
            self.stats.early_probes = self.stats.early_probes.wrapping_add(1);
        }
        self.probe.on_progress(now, &self.rtt);
    }
}
