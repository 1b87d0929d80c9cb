// SPDX-License-Identifier: GPL-2.0

//! Requests that come before an earlier one: which of them the caller keeps, and when the requester
//! is told of the gap.

use core::ops::DerefMut;

use super::nak::Gap;
use super::{
    Resource,
    Responder,
    ResponderEnv,
    State, //
};
use crate::psn::Psn;
use crate::wire::{
    NakCode,
    Syndrome, //
};

/// Only so many numbers behind the expected one are kept. A power of two, at least 64: a number has
/// the same bit when numbers begin anew.
pub const KEPT: u32 = 1024;

const _: () = assert!(KEPT.is_power_of_two() && KEPT >= 64);

/// The longest time for which a gap is not reported, nanoseconds. A host that is busy, or a radio
/// that collects packets, delays some of them by as much.
pub const MAX_WAIT_NS: u64 = 30_000_000;

/// What closes a gap sooner is hardly a copy that the requester has sent without a report,
/// nanoseconds: less than one like ours waits before it probes, see [`crate::rtt::MIN_PROBE_NS`].
pub const SURE_NS: u64 = 3_000_000;

/// A shorter wait is none.
const MIN_WAIT_NS: u64 = 10_000;

/// What is kept behind a gap that was reported, or behind a request that met no receive, is dropped
/// after this time, nanoseconds: the requester has given up, or starts again from there anyway.
pub const MAX_KEPT_NS: u64 = 1_000_000_000;

/// Which requests the caller has kept, and what the network is like.
///
/// A network that disorders packets cannot be told from one that loses them when a packet comes
/// early. So the first gap is reported at once. If the packet that was missing comes by itself, the
/// report was wrong, and the next gap gets as much time as this one would have needed.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Early {
    /// By number modulo [`KEPT`].
    kept: [u64; (KEPT / 64) as usize],
    /// How many bits of it are set.
    count: u32,
    /// An early packet, and when it came: what is missing before it is late by the time since.
    mark: Option<(Psn, u64)>,
    /// The same of the one with the highest number so far.
    highest: Option<(Psn, u64)>,
    /// How long packets are late in this network, as far as known; 0: they are lost.
    wait: u64,
    /// After a report the requester sends what is missing behind that gap as well, or learns by the
    /// ACK that it is missing: other gaps get at least so much time.
    grace: u64,
    /// A gap before the mark was reported.
    is_reported: bool,
    /// The packet that closed a gap last of which it is not known whether it was a copy.
    closer: Option<Closer>,
    /// The request that the caller was given last was kept before.
    is_taken: bool,
}

/// A packet that closed a gap, and may be a copy of the one that was missing.
#[derive(Clone, Copy, Debug)]
struct Closer {
    psn: Psn,
    /// How late it was, nanoseconds.
    late: u64,
    cause: Cause,
}

/// Why a packet may be a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    /// It was reported missing.
    Report,
    /// It came so late that the requester may have probed: then a copy of the newest packet comes
    /// right behind it.
    Time,
    /// That came.
    Probe,
}

impl Early {
    /// Word and bit of a number.
    #[inline]
    fn bit(psn: Psn) -> (usize, u64) {
        let at = psn.get() % KEPT;
        ((at / 64) as usize, 1 << (at % 64))
    }

    #[inline]
    fn is_set(&self, psn: Psn) -> bool {
        let (word, bit) = Self::bit(psn);
        self.kept.get(word).is_some_and(|word| word & bit != 0)
    }

    fn set(&mut self, psn: Psn) {
        let (word, bit) = Self::bit(psn);
        if let Some(word) = self.kept.get_mut(word) {
            self.count = self.count.wrapping_add(u32::from(*word & bit == 0));
            *word |= bit;
        }
    }

    fn clear(&mut self, psn: Psn) {
        let (word, bit) = Self::bit(psn);
        if let Some(word) = self.kept.get_mut(word) {
            self.count = self.count.wrapping_sub(u32::from(*word & bit != 0));
            *word &= !bit;
        }
    }

    /// Forgets what is kept, not what is known of the network.
    pub(super) fn drop_all(&mut self) {
        self.kept = [0; (KEPT / 64) as usize];
        self.count = 0;
        self.mark = None;
        self.highest = None;
        self.grace = 0;
        self.is_reported = false;
        self.is_taken = false;
    }

    /// `count` numbers from `from` on were executed.
    #[inline]
    pub(super) fn pass(&mut self, from: Psn, count: u32) {
        if self.count == 0 {
            return;
        }
        for i in 0..count.min(KEPT) {
            self.clear(from.add(i));
        }
    }

    /// The expected request has to come again: how late the packets behind it are tells nothing.
    pub(super) fn on_not_ready(&mut self) {
        self.is_reported = self.mark.is_some();
    }

    /// Packets that are late for so long have not been seen for a while.
    fn forget_some(&mut self) {
        self.wait = self.wait.saturating_sub(self.wait >> 7);
        if self.wait < MIN_WAIT_NS {
            self.wait = 0;
        }
    }

    /// A packet was so late that a gap was seen, and came by itself: waits for a quarter longer
    /// from now on, but not for more than `most`.
    fn on_late(&mut self, late: u64, most: u64) {
        let wait = late.saturating_add(late >> 2).min(most);
        self.wait = self.wait.max(wait);
    }

    /// The same, if a copy of the packet tells that. Two copies would tell the same, so the wait
    /// does not become long by one packet.
    fn on_late_copied(&mut self, late: u64) {
        let most = self.wait.saturating_mul(2).clamp(SURE_NS, MAX_WAIT_NS);
        self.on_late(late, most);
    }

    /// A packet did not come by itself for as long as the wait is.
    fn on_lost(&mut self) {
        self.wait = self.wait.saturating_sub(self.wait >> 2);
    }

    /// Something is kept, or a packet came early.
    #[inline]
    pub(super) const fn is_busy(&self) -> bool {
        self.count != 0 || self.mark.is_some() || self.is_taken
    }

    /// A packet came that is no copy, so nobody has probed.
    #[inline]
    pub(super) fn on_new(&mut self) {
        if let Some(closer) = self.closer.filter(|c| c.cause == Cause::Time) {
            self.closer = None;
            self.on_late_copied(closer.late);
        }
    }

    /// A copy of the packet with the number `psn` came. If that is the one that closed a gap, one
    /// of the two had only been late. Whether it was wrong to report that.
    fn on_copy(&mut self, psn: Psn) -> bool {
        let Some(closer) = &mut self.closer else {
            return false;
        };
        let Closer { late, cause, .. } = *closer;
        if closer.psn == psn {
            self.closer = None;
            self.on_late_copied(late);
            return cause == Cause::Report;
        }
        if cause == Cause::Time {
            closer.cause = Cause::Probe;
            self.on_lost();
        }
        false
    }
}

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    /// After [`Responder::take_request`] has said that the request with the number `psn` came
    /// early: whether the caller keeps it. Reports the gap, or says in
    /// [`Responder::next_deadline`] until when it may close by itself.
    pub fn on_early<E: ResponderEnv>(&mut self, psn: Psn, kept: bool, now: u64, env: &mut E) {
        if self.state != State::Ready || self.is_local_open {
            return;
        }
        if kept {
            self.early.on_new();
            self.early.set(psn);
            self.stats.early_kept = self.stats.early_kept.wrapping_add(1);
        } else if !self.is_kept(psn) {
            self.stats.early_dropped = self.stats.early_dropped.wrapping_add(1);
        } else {
            self.early.on_copy(psn);
        }
        self.on_gap(psn, now, env);
        // While the requester knows of no gap, it sends more than is kept.
        if matches!(self.gap, Gap::Waiting(_)) && !self.is_kept(psn) {
            self.report(env);
        }
    }

    /// Whether the request with the number `psn`, which came early, is kept. Those further behind
    /// have the bits of others.
    fn is_kept(&self, psn: Psn) -> bool {
        psn.since(self.epsn) < KEPT && self.early.is_set(psn)
    }

    /// Whether the caller should keep the request with the number `psn`, which came early.
    pub fn should_keep(&self, psn: Psn) -> bool {
        psn.since(self.epsn) < KEPT
            && !self.early.is_set(psn)
            // What comes behind a request that waits for a receive is sent again with it.
            && !matches!(self.gap, Gap::NotReady(_))
    }

    /// The number of a kept request whose turn it is now. From then on it does not count as kept:
    /// the caller hands it to [`Responder::take_request`], or has lost it.
    #[inline]
    pub fn take_kept(&mut self) -> Option<Psn> {
        if !self.is_next_kept() {
            return None;
        }
        self.early.clear(self.epsn);
        self.early.is_taken = true;
        Some(self.epsn)
    }

    /// Whether [`Responder::take_kept`] has one.
    #[inline]
    pub fn is_next_kept(&self) -> bool {
        self.early.count != 0
            && self.state == State::Ready
            && !self.is_local_open
            && self.early.is_set(self.epsn)
    }

    /// Whether any request counts as kept. If not, the caller drops what it keeps.
    #[inline]
    pub fn has_kept(&self) -> bool {
        self.early.count != 0
    }

    /// When [`Responder::handle_timeout`] wants to be called, if ever.
    #[inline]
    pub fn next_deadline(&self) -> Option<u64> {
        if self.state != State::Ready {
            return None;
        }
        match self.gap {
            Gap::Waiting(until) => Some(until),
            Gap::Reported | Gap::NotReady(_) if self.early.count != 0 => {
                let at = self.early.mark.map_or(0, |mark| mark.1);
                Some(at.saturating_add(MAX_KEPT_NS))
            }
            _ => None,
        }
    }

    /// Time has passed: reports a gap that was not closed. Harmless when nothing is due.
    pub fn handle_timeout<E: ResponderEnv>(&mut self, now: u64, env: &mut E) {
        if self.next_deadline().is_none_or(|t| now < t) {
            return;
        }
        match self.gap {
            Gap::Waiting(_) => self.report(env),
            _ => self.early.drop_all(),
        }
    }

    /// The request with the number `psn` was executed, which closed `gap`.
    #[inline]
    pub(super) fn on_filled(&mut self, gap: Gap, psn: Psn, now: u64) {
        if !core::mem::take(&mut self.early.is_taken) {
            self.early.on_new();
        }
        if let Some((mark, at)) = self.early.mark {
            self.on_closer(gap, psn, mark, now.saturating_sub(at), now);
        }
    }

    /// The same, after the early packet `mark` came `late` nanoseconds ago.
    fn on_closer(&mut self, gap: Gap, psn: Psn, mark: Psn, late: u64, now: u64) {
        match gap {
            Gap::Reported => {
                self.early.on_lost();
                self.early.closer = Some(Closer {
                    psn,
                    late,
                    cause: Cause::Report,
                });
                self.early.grace = late.saturating_add(late >> 1).min(2 * SURE_NS);
            }
            // Unless there was a report, after which the requester sends what is missing behind
            // that gap as well.
            Gap::Waiting(_) if late > SURE_NS && self.early.grace == 0 => {
                self.early.closer = Some(Closer {
                    psn,
                    late,
                    cause: Cause::Time,
                });
            }
            _ => (),
        }
        if mark.is_before(self.epsn) {
            self.early.highest = self
                .early
                .highest
                .filter(|(highest, _)| !highest.is_before(self.epsn));
            self.early.mark = self.early.highest;
            self.early.forget_some();
            if !core::mem::take(&mut self.early.is_reported) {
                self.early.on_late(late, SURE_NS);
            }
        }
        if self.early.count == 0 {
            self.early.grace = 0;
        } else if self.gap == Gap::None && !self.early.is_set(self.epsn) {
            // There is another gap before what is kept.
            let at = self.early.mark.map_or(now, |mark| mark.1);
            let until = at.saturating_add(self.early.wait);
            self.gap = Gap::Waiting(until.max(now.saturating_add(self.early.grace)));
        }
    }

    /// A request with the number `psn` came again. If that was reported missing, and filled the gap
    /// before its copy could, it was only late. Or the copy tells of a probe.
    pub(super) fn on_copy(&mut self, psn: Psn) {
        if self.early.on_copy(psn) {
            self.stats.wrong_naks = self.stats.wrong_naks.wrapping_add(1);
        }
    }

    /// The packet with the number `psn` came too early: reports the gap, once, and not at once in a
    /// network that is known to disorder packets.
    fn on_gap<E: ResponderEnv>(&mut self, psn: Psn, now: u64, env: &mut E) {
        self.stats.out_of_sequence = self.stats.out_of_sequence.wrapping_add(1);
        if matches!(self.gap, Gap::NotReady(until) if now < until) {
            return;
        }
        let early = &mut self.early;
        if early
            .highest
            .is_none_or(|(highest, _)| psn.is_after(highest) || highest.is_before(self.epsn))
        {
            early.highest = Some((psn, now));
        }
        let (_, since) = *early.mark.get_or_insert((psn, now));
        // What is expected is kept, and the caller has no time for it.
        if self.is_next_kept() {
            return;
        }
        match self.gap {
            // Even if the time is over: what is missing may come with this one. The caller calls
            // `handle_timeout` when nothing else has come.
            Gap::Reported | Gap::Waiting(_) => return,
            Gap::None | Gap::NotReady(_) => {
                let until = since.saturating_add(self.early.wait);
                if until > now && self.early.count != 0 {
                    self.gap = Gap::Waiting(until);
                    return;
                }
            }
        }
        self.report(env);
    }

    /// Asks for the expected request.
    fn report<E: ResponderEnv>(&mut self, env: &mut E) {
        self.gap = Gap::Reported;
        self.early.is_reported = true;
        self.send_nak(Syndrome::Nak(NakCode::PsnSequence), env);
    }
}
