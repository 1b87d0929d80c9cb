// SPDX-License-Identifier: GPL-2.0

//! Pacing: what the window admits at once is spread over the round trip, as TCP does it
//! (`tcp_update_pacing_rate` of Linux), if a round trip takes long.

use core::{
    num::NonZeroU64,
    ops::DerefMut, //
};

use super::{
    Requester,
    Wqe, //
};

/// With shorter round trips than this, nothing is paced, nanoseconds: there, a timer costs more
/// than a burst does harm.
const PACED_NS: u64 = 500_000;

/// Packets that are sent together, at least and at most; in between, an eighth of the window.
const BURST: (u32, u32) = (8, 64);

/// The mean of how late pauses end follows by an eighth.
const LATE_SHIFT: u32 = 3;

/// A pause that is left out makes it smaller by so much.
const FORGET_SHIFT: u32 = 7;

/// How much later than they are to end pauses are noticed to be over: a moving mean, in units of
/// 1,024 ns. Where timers are late by about as much as a burst takes, pauses cost more than they
/// are good for.
#[derive(Clone, Copy, Default, Debug)]
struct Lateness(u16);

impl Lateness {
    /// A pause before a burst of `burst` nanoseconds was noticed to be over so many nanoseconds
    /// late. That counts as no more than the burst: a host may have no time for once.
    fn on_pause(&mut self, late: u64, burst: u64) {
        let late = (late.min(burst) >> 10).min(u16::MAX.into()) as u16;
        let rest = self.0.saturating_sub(self.0 >> LATE_SHIFT);
        self.0 = rest.saturating_add(late >> LATE_SHIFT);
    }

    /// Whether a pause of `ns` nanoseconds would last much longer than that, and is to be left out.
    /// Some time later, one is made again.
    fn leaves_out(&mut self, ns: u64) -> bool {
        let is_late = u64::from(self.0) << 10 > ns >> 1;
        if is_late {
            self.0 = self.0.saturating_sub((self.0 >> FORGET_SHIFT).max(1));
        }
        is_late
    }
}

/// When the next packets may be sent.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Pace {
    /// What was sent so far takes until then, at the rate of the window.
    at: u64,
    /// A burst was sent: nothing more before that time.
    until: Option<NonZeroU64>,
    /// The lower bits of the time at which a pause was noticed to be over. What is sent then makes
    /// up for what could have been sent since the end of it.
    ended: u32,
    /// How late timers are. All else begins anew after a time without pacing.
    late: Lateness,
}

impl Pace {
    /// When to go on, if something waits.
    #[inline]
    pub(super) fn deadline(&self) -> Option<u64> {
        self.until.map(NonZeroU64::get)
    }
}

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// Whether pacing is of use. In slow start it is not: acknowledgements tell the pace. But in a
    /// recovery, one of them admits a whole window.
    #[inline]
    fn has_pace(&self) -> bool {
        self.rtt.min() >= PACED_NS && !(self.window.is_slow_start() && self.recovery.is_over())
    }

    /// Time from one packet to the next: of a window in five sixths of a round trip, so that the
    /// window stays what limits.
    fn pace_interval(&self) -> u64 {
        let spread = self.rtt.smoothed().saturating_mul(5) / 6;
        spread
            .checked_div(self.window.packets().into())
            .unwrap_or(0)
    }

    /// Packets that are sent together.
    #[inline]
    pub(super) fn burst(&self) -> u32 {
        (self.window.packets() >> 3).clamp(BURST.0, BURST.1)
    }

    /// Packets after which one has to ask for an answer: so that one of each burst does. What is
    /// sent before a pause would else seem to be answered late.
    #[inline]
    pub(super) fn unasked_at_most(&self) -> u32 {
        match self.has_pace() {
            true => self.burst(),
            false => u32::MAX,
        }
    }

    /// Time of a burst at the pace.
    fn burst_time(&self) -> u64 {
        self.pace_interval().saturating_mul(self.burst().into())
    }

    /// Time has passed. A timer may be late, as on a busy host. What is sent next makes up for
    /// that, but for no more than a burst.
    #[inline]
    pub(super) fn expire_pace(&mut self, now: u64) {
        let Some(until) = self.pace.until.filter(|t| now >= t.get()) else {
            return;
        };
        let burst = self.burst_time();
        let earliest = now.saturating_sub(burst);
        self.pace = Pace {
            at: self.pace.at.max(earliest),
            until: None,
            ended: now as u32,
            ..self.pace
        };
        let late = now.saturating_sub(until.get());
        self.pace.late.on_pause(late, burst);
    }

    /// Whether the next packet has to wait; [`Requester::next_deadline`] then says how long.
    #[inline]
    pub(super) fn is_paced(&mut self, now: u64) -> bool {
        if !self.has_pace() {
            self.pace = Pace {
                late: self.pace.late,
                ..Pace::default()
            };
            return false;
        }
        self.expire_pace(now);
        if self.pace.until.is_some() {
            // The pace is that of the window. With late timers, the window itself is never full.
            // Who sends little more than a burst now and then is not held back by either.
            if self.flight_packets() >= self.window.packets() >> 2 {
                self.on_limited();
            }
            return true;
        }
        let burst = self.burst_time();
        if self.pace.at > now.saturating_add(burst) {
            match self.pace.late.leaves_out(burst) {
                true => self.pace.at = now,
                false => self.pace.until = NonZeroU64::new(self.pace.at),
            }
        }
        self.pace.until.is_some()
    }

    /// A packet was sent.
    #[inline]
    pub(super) fn on_paced(&mut self, now: u64) {
        if self.has_pace() {
            let from = match self.pace.ended == now as u32 {
                true => self.pace.at,
                false => self.pace.at.max(now),
            };
            self.pace.at = from.saturating_add(self.pace_interval());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of 10,000 pauses before bursts of 300 us are made, if each ends so late.
    fn made(late: u64) -> u32 {
        const BURST_NS: u64 = 300_000;
        let mut lateness = Lateness::default();
        let mut made = 0;
        for _ in 0..10_000 {
            if !lateness.leaves_out(BURST_NS) {
                lateness.on_pause(late, BURST_NS);
                made += 1;
            }
        }
        made
    }

    #[test]
    fn some_pauses_are_made_whatever_was_found_out() {
        assert_eq!(made(0), 10_000);
        assert_eq!(made(140_000), 10_000);
        for late in [300_000, 10_000_000, u64::MAX] {
            assert!((500..800).contains(&made(late)), "{}", made(late));
        }
    }

    #[test]
    fn one_pause_that_is_late_tells_nothing() {
        let mut lateness = Lateness::default();
        for late in [0, 0, u64::MAX, u64::MAX, 0] {
            lateness.on_pause(late, 300_000);
            assert!(!lateness.leaves_out(300_000));
        }
    }
}
