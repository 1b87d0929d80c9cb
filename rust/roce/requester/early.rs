// SPDX-License-Identifier: GPL-2.0

//! Responses that came before an earlier one: a network that disorders packets, or one that lost
//! the earlier one.

use core::{
    num::NonZeroU64,
    ops::DerefMut, //
};

use super::{
    Requester,
    RequesterEnv,
    SendOp,
    State,
    Wqe, //
};
use crate::psn::Psn;
use crate::status::WcStatus;

/// Only so many numbers behind the missing one are kept. A power of two, at least 64: a number has
/// the same bit when numbers begin anew.
pub(super) const KEPT: u32 = 512;

const _: () = assert!(KEPT.is_power_of_two() && KEPT >= 64);

/// A response may be overtaken for so many round trips at most, if one was late.
const MAX_PATIENCE: u8 = 4;

/// So many packets that were asked for again are remembered.
const DOUBTS: usize = 4;

/// How many work requests behind the oldest one are searched for the one that a response is of.
const SEARCHED: u32 = 64;

/// Which packets of READ responses were placed before it was their turn, and what the responder
/// said it has done while a response from before that was missing. The packets themselves are in
/// the memory of the work request, so this takes the same few bytes whatever the peer sends.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Early {
    /// By number modulo [`KEPT`]; of numbers that wait for an answer.
    placed: [u64; (KEPT / 64) as usize],
    /// How many bits of it are set.
    count: u32,
    /// Everything before this was executed.
    executed: Option<Psn>,
    /// When what is missing counts as lost; never at time 0.
    deadline: Option<NonZeroU64>,
    /// What is missing before this number was missing at that time already.
    suspect: Option<(Psn, u64)>,
    /// What is missing before this has been late for long enough: it is lost.
    lost: Option<Psn>,
    /// What is missing before this was asked for again.
    pub(super) asked: Option<Psn>,
    /// How often the oldest was.
    times: u8,
    /// What was asked for again of late.
    doubts: Doubts,
    /// So many round trips are waited for what is missing: it was only late before. 0: that has not
    /// happened, and less is waited.
    patience: u8,
}

/// The first packets of what was asked for again last, of which it is not known whether they were
/// lost or late. The newest is the first.
#[derive(Clone, Copy, Default, Debug)]
struct Doubts {
    firsts: [Psn; DOUBTS],
    count: u8,
}

impl Doubts {
    /// One more. True if another one has to go, which did not come a second time.
    fn add(&mut self, psn: Psn) -> bool {
        self.firsts.rotate_right(1);
        let [first, ..] = &mut self.firsts;
        *first = psn;
        let is_full = usize::from(self.count) == DOUBTS;
        self.count = self.count.saturating_add(u8::from(!is_full));
        is_full
    }

    /// Whether `psn` is one of them, which it is no longer.
    fn take(&mut self, psn: Psn) -> bool {
        let known = self.firsts.get_mut(..self.count.into()).unwrap_or_default();
        let Some(at) = known.iter().position(|first| *first == psn) else {
            return false;
        };
        if let Some(rest) = known.get_mut(at..) {
            rest.rotate_left(1);
        }
        self.count = self.count.saturating_sub(1);
        true
    }
}

impl Early {
    /// Word and bit of a number.
    #[inline]
    fn bit(psn: Psn) -> (usize, u64) {
        let at = psn.get() % KEPT;
        ((at / 64) as usize, 1 << (at % 64))
    }

    /// Notes that the packet with this number, less than [`KEPT`] behind the oldest that waits, is
    /// in its place. False if it was before.
    fn set(&mut self, psn: Psn) -> bool {
        let (word, bit) = Self::bit(psn);
        let Some(word) = self.placed.get_mut(word) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        self.count = self.count.wrapping_add(u32::from(is_new));
        is_new
    }

    /// Whether the packet is in its place.
    fn is_set(&self, psn: Psn) -> bool {
        let (word, bit) = Self::bit(psn);
        self.placed.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Forgets that the packet is in its place. Whether it was.
    fn take(&mut self, psn: Psn) -> bool {
        let (word, bit) = Self::bit(psn);
        let Some(word) = self.placed.get_mut(word) else {
            return false;
        };
        let was = *word & bit != 0;
        *word &= !bit;
        self.count = self.count.wrapping_sub(u32::from(was));
        was
    }

    /// The oldest number that waits goes from `from` to `to`: forgets those between.
    #[inline]
    pub(super) fn pass(&mut self, from: Psn, to: Psn) {
        if self.count == 0 {
            return;
        }
        for i in 0..to.since(from).min(KEPT) {
            self.take(from.add(i));
        }
    }

    /// How many packets are in their place.
    #[inline]
    pub(super) const fn placed(&self) -> u32 {
        self.count
    }

    /// No response is missing before one that came.
    #[inline]
    pub(super) const fn is_none(&self) -> bool {
        self.executed.is_none()
    }

    /// When what is missing counts as lost, if anything is.
    #[inline]
    pub(super) fn deadline(&self) -> Option<u64> {
        self.deadline.map(NonZeroU64::get)
    }

    /// Everything before `end` is sent again.
    #[inline]
    pub(super) fn on_rewind(&mut self, end: Psn) {
        self.deadline = None;
        self.suspect = None;
        self.lost = None;
        self.asked = self.executed.and(Some(end));
        self.times = 0;
        self.doubts = Doubts::default();
    }
}

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// How long one answer may be overtaken by another, nanoseconds: a round trip, more than which
    /// no packet gains on another where a network has several ways to the same host; and more, if
    /// responses were late.
    pub(super) fn disorder_wait(&self) -> u64 {
        let times = self.early.patience.saturating_add(1).min(MAX_PATIENCE);
        self.rtt.smoothed().saturating_mul(times.into())
    }

    /// How long a response may be overtaken by others before it counts as lost, nanoseconds: half
    /// of a round trip as long as none that counted as lost has turned out to be late, then a whole
    /// one, and one more each time. (The reordering window of RACK begins with a quarter of the
    /// shortest one, RFC 8985, 6.2.) Of an atomic, a second response says nothing, so that nothing
    /// would be learnt; and where nothing may be retried, a mistake ends the connection.
    fn missing_wait(&self) -> u64 {
        if !self.learns_what_is_late() {
            return self.disorder_wait();
        }
        let round_trip = self.rtt.smoothed();
        match self.early.patience {
            0 => round_trip >> 1,
            times => round_trip.saturating_mul(times.into()),
        }
    }

    /// The oldest packet can be asked for again too early without harm, and that would be noticed.
    fn learns_what_is_late(&self) -> bool {
        self.config.retry_cnt != 0
            && self
                .oldest_assigned()
                .is_some_and(|wqe| wqe.wr.op == SendOp::Read)
    }

    /// A response came again, with its packet `psn`. If that was asked for because it, or its
    /// request, was missing, it was only late.
    pub(super) fn on_response_copy(&mut self, psn: Psn) {
        let mut is_late = self.recovery.take_doubt(psn);
        if self.early.doubts.take(psn) {
            self.early.patience = self.early.patience.saturating_add(1).min(MAX_PATIENCE);
            is_late = true;
        }
        if is_late {
            self.losses.on_no_loss();
            self.window.on_no_loss(psn);
        }
    }

    /// The responder has executed everything before `end`, and a response from before that did not
    /// come. It may be on its way.
    pub(super) fn on_response_missing<E: RequesterEnv>(&mut self, end: Psn, now: u64, env: &mut E) {
        if self.state != State::Ready {
            return;
        }
        let distance = |to: Psn| to.since(self.una);
        if self
            .early
            .executed
            .is_none_or(|e| distance(end) > distance(e))
        {
            self.early.executed = Some(end);
        }
        if self.early.deadline.is_none() && self.implied_nak_at != Some(self.una) {
            self.wait_for_missing(now, env);
        }
    }

    /// Whether `end` is one of the numbers that are in flight, and not the oldest.
    fn is_ahead(&self, end: Option<Psn>) -> bool {
        end.is_some_and(|end| end != self.una && end.since(self.una) <= self.max.since(self.una))
    }

    /// The oldest response is missing, but later ones came. Asks for it again if it is late, or
    /// else says when it will be.
    fn wait_for_missing<E: RequesterEnv>(&mut self, now: u64, env: &mut E) {
        if self.is_ahead(self.early.asked) {
            self.await_asked(now);
            return;
        }
        let wait = self.missing_wait();
        let suspect = match self.early.suspect {
            Some((end, since)) if now.saturating_sub(since) >= wait => {
                self.early.lost = Some(end);
                None
            }
            suspect => suspect.filter(|s| self.is_ahead(Some(s.0))),
        };
        self.early.suspect = suspect;
        // A READ before an atomic has not waited for as long as that is to.
        let is_counted = self.early.patience != 0 || self.learns_what_is_late();
        if is_counted && self.is_ahead(self.early.lost) {
            self.on_implied_nak(now, env);
            return;
        }
        if self.early.suspect.is_none() {
            self.suspect(now);
        }
        match self.early.suspect {
            Some((_, since)) if wait != 0 => {
                self.early.deadline = NonZeroU64::new(since.saturating_add(wait));
            }
            _ => self.on_implied_nak(now, env),
        }
    }

    /// What the responder has executed by now, and has not come, may be late.
    fn suspect(&mut self, now: u64) {
        self.early.suspect = self.early.executed.map(|end| (end, now));
    }

    /// What was asked for again may be lost again. There is no doubt that it was lost before, so
    /// nothing is repeated that only takes long; but the distance doubles, as that of probes.
    fn await_asked(&mut self, now: u64) {
        let wait = self.rtt.probe_timeout(self.early.times);
        let at = wait.map(|wait| now.saturating_add(wait));
        self.early.deadline = at.and_then(NonZeroU64::new);
    }

    /// The deadline of what is missing may have come.
    pub(super) fn expire_missing<E: RequesterEnv>(&mut self, now: u64, env: &mut E) {
        if self.early.deadline().is_none_or(|t| now < t) {
            return;
        }
        self.early.deadline = None;
        if self.early.executed.is_none() {
            return;
        }
        if self.implied_nak_at == Some(self.una) {
            self.early.times = self.early.times.saturating_add(1);
            // Two copies would look like one.
            self.early.doubts.take(self.una);
            self.probe.ask_for_missing();
            self.await_asked(now);
            return;
        }
        if let Some((end, _)) = self.early.suspect {
            self.early.lost = Some(end);
        }
        // Until what is asked for now has come, the rest will be late as well.
        self.suspect(now);
        self.on_implied_nak(now, env);
    }

    /// The responder is past a request whose response did not come: asks for what is missing of
    /// that again, and for nothing behind it.
    pub(super) fn on_implied_nak<E: RequesterEnv>(&mut self, now: u64, env: &mut E) {
        if self.state != State::Ready || self.implied_nak_at == Some(self.una) {
            return;
        }
        self.stats.implied_naks = self.stats.implied_naks.wrapping_add(1);
        if !self.retry.consume() {
            self.fail_oldest(WcStatus::RetryExcErr, env);
            return;
        }
        self.on_loss();
        self.probe.ask_for_missing();
        self.start_ack_timer(now);
        self.implied_nak_at = Some(self.una);
        self.early.times = 0;
        let is_forgotten = self.early.doubts.add(self.una);
        // Once one was late, it is never as little again as before that.
        if is_forgotten && self.early.patience > 1 {
            self.early.patience = self.early.patience.saturating_sub(1);
        }
        self.await_asked(now);
    }

    /// How many packets are missing, of so many from the oldest on.
    pub(super) fn missing(&self, most: u32) -> u32 {
        let placed = |i: &u32| self.early.is_set(self.una.add(*i));
        (1..most.min(KEPT)).find(placed).unwrap_or(most)
    }

    /// Places a packet of a READ response whose turn it is not. One that does not fit is left
    /// alone: it is asked for again, and judged when it is its turn.
    pub(super) fn place_early<E: RequesterEnv>(&mut self, psn: Psn, payload: &[u8], env: &mut E) {
        let distance = psn.since(self.una);
        if self.state != State::Ready || distance >= self.max.since(self.una) {
            return;
        }
        if distance == 0 || distance >= KEPT {
            self.stats.early_dropped = self.stats.early_dropped.wrapping_add(1);
            return;
        }
        let mut found = None;
        for rel in 0..self.assigned.min(SEARCHED) {
            let slot = self.slot_at(rel);
            let Some(wqe) = self.wqe(slot) else {
                break;
            };
            if psn.is_within(wqe.psn, wqe.packets) {
                found = Some((slot, *wqe));
                break;
            }
        }
        let Some((slot, wqe)) = found else {
            self.stats.early_dropped = self.stats.early_dropped.wrapping_add(1);
            return;
        };
        let (index, mtu) = (psn.since(wqe.psn), self.config.mtu);
        if wqe.wr.op != SendOp::Read
            || wqe.fault.is_some()
            || payload.len() != mtu.payload(wqe.wr.length, index) as usize
        {
            return;
        }
        // The memory is the user's to lend until the work request ends.
        if !payload.is_empty() && env.scatter(slot, mtu.offset(index), payload).is_err() {
            return;
        }
        if self.early.set(psn) {
            self.stats.early_kept = self.stats.early_kept.wrapping_add(1);
        }
    }

    /// There was progress: takes what is there already behind it.
    #[inline]
    pub(super) fn take_early<E: RequesterEnv>(&mut self, now: u64, env: &mut E) {
        if self.early.executed.is_some() {
            self.resume_early(now, env);
        }
    }

    fn resume_early<E: RequesterEnv>(&mut self, now: u64, env: &mut E) {
        // Every turn but the last makes progress.
        while self.state == State::Ready {
            let una = self.una;
            self.take_placed(now, env);
            let Some(end) = self.early.executed else {
                break;
            };
            let rest = end.since(self.una);
            if rest == 0 || rest > self.max.since(self.una) {
                self.early.executed = None;
                break;
            }
            self.acknowledge_data(end, now, env);
            if self.una == una {
                break;
            }
        }
        self.early.deadline = None;
        if self.early.executed.is_some() && self.state == State::Ready {
            self.wait_for_missing(now, env);
        }
    }

    /// Goes on over what was placed of the oldest work request.
    fn take_placed<E: RequesterEnv>(&mut self, now: u64, env: &mut E) {
        let Some(wqe) = self.oldest_assigned() else {
            return;
        };
        let (first, packets) = (wqe.psn, wqe.packets);
        let mut count = 0u32;
        while self.una.is_within(first, packets) && self.early.take(self.una) {
            let to = self.una.next();
            if to.since(first) >= packets {
                self.pop(WcStatus::Success, env);
            }
            self.advance_una(to);
            count = count.wrapping_add(1);
        }
        if count != 0 {
            self.on_progress(count, now);
            self.on_recovery_response(now);
            self.settle(env);
        }
    }
}
