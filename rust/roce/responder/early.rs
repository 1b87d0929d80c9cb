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

/// The longest time for which a gap is not reported, nanoseconds: less than a requester like ours
/// waits before it asks, see [`crate::rtt::MIN_PROBE_NS`].
pub const MAX_WAIT_NS: u64 = 3_000_000;

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
    /// The packet that was reported missing last, and how late it was.
    reported: Option<(Psn, u64)>,
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

    /// Packets that are late for so long have not been seen for a while.
    fn forget_some(&mut self) {
        self.wait = self.wait.saturating_sub(self.wait >> 5);
        if self.wait < MIN_WAIT_NS {
            self.wait = 0;
        }
    }

    /// A packet was so late that a gap was seen, and came by itself.
    fn on_late(&mut self, late: u64) {
        let wait = late.saturating_add(late >> 2).min(MAX_WAIT_NS);
        self.wait = self.wait.max(wait);
    }
}

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    /// After [`Responder::take_request`] has said that the request with the number `psn` came
    /// early: whether the caller keeps it. Reports the gap when it is time.
    pub fn on_early<E: ResponderEnv>(&mut self, psn: Psn, kept: bool, now: u64, env: &mut E) {
        if self.state != State::Ready || self.is_local_open {
            return;
        }
        if kept {
            self.early.set(psn);
            self.stats.early_kept = self.stats.early_kept.wrapping_add(1);
        } else if !self.early.is_set(psn) {
            self.stats.early_dropped = self.stats.early_dropped.wrapping_add(1);
        }
        self.on_gap(psn, now, env);
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
    pub(super) fn on_filled(&mut self, gap: Gap, psn: Psn, now: u64) {
        let Some((mark, at)) = self.early.mark else {
            return;
        };
        let late = now.saturating_sub(at);
        if gap == Gap::Reported {
            self.early.reported = Some((psn, late));
            self.early.grace = late.saturating_add(late >> 1).min(2 * MAX_WAIT_NS);
        }
        if mark.is_before(self.epsn) {
            self.early.mark = self
                .early
                .highest
                .filter(|(highest, _)| !highest.is_before(self.epsn));
            self.early.forget_some();
            if !core::mem::take(&mut self.early.is_reported) {
                self.early.on_late(late);
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
    /// before its copy could, it was only late.
    pub(super) fn on_copy(&mut self, psn: Psn) {
        if let Some((reported, late)) = self.early.reported {
            if reported == psn {
                self.early.reported = None;
                self.early.on_late(late);
                self.stats.wrong_naks = self.stats.wrong_naks.wrapping_add(1);
            }
        }
    }

    /// The packet with the number `psn` came too early: reports the gap, once, and not at once in a
    /// network that is known to disorder packets.
    fn on_gap<E: ResponderEnv>(&mut self, psn: Psn, now: u64, env: &mut E) {
        self.stats.out_of_sequence = self.stats.out_of_sequence.wrapping_add(1);
        let early = &mut self.early;
        if early
            .highest
            .is_none_or(|(highest, _)| psn.is_after(highest) || highest.is_before(self.epsn))
        {
            early.highest = Some((psn, now));
        }
        let (_, since) = *early.mark.get_or_insert((psn, now));
        match self.gap {
            Gap::Reported => return,
            Gap::NotReady(until) | Gap::Waiting(until) if now < until => return,
            Gap::Waiting(_) => {}
            Gap::None | Gap::NotReady(_) => {
                let until = since.saturating_add(early.wait);
                if until > now && early.count != 0 {
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
