// SPDX-License-Identifier: GPL-2.0

//! The bandwidth that a connection gets, from the rate of its acknowledgements.
//!
//! It is for what TCP Westwood+ does at a loss: the window becomes the bandwidth times the shortest
//! round trip, which is what the wire holds without a queue (L. A. Grieco and S. Mascolo,
//! "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion
//! control", 2004). Westwood+ takes a mean. Here, each loss delays acknowledgements, because there
//! are no selective ones, and a mean would follow the window down. So this is the largest rate of
//! late, as that of BBR.
//!
//! A host that has no time for a while acknowledges many packets together afterwards. A sender
//! whose window is what the wire holds has nothing to send meanwhile. So the window of BBR has room
//! for these packets as well (`extra_acked` in draft-ietf-ccwg-bbr). They are counted here
//! ([`Bandwidth::extra`]).

use core::num::NonZeroU64;

/// No measurement is shorter, nanoseconds.
const MIN_INTERVAL_NS: u64 = 1_000_000;

/// The estimate shrinks by a sixteenth with each measurement that is lower.
const FORGET_SHIFT: u32 = 4;

/// An estimate of the bandwidth, in packets.
///
/// One measurement takes a round trip, as those of Westwood+. It begins and ends when nothing is
/// missing: only then is what is acknowledged all that has arrived. While nothing is in flight,
/// nothing is measured.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bandwidth {
    /// Packets per nanosecond, times 2^32; 0 while nothing was measured.
    rate: u64,
    /// When the present measurement began, if one has; none begins at time 0.
    since: Option<NonZeroU64>,
    /// Packets acknowledged since then.
    count: u32,
    /// The lowest difference since then between the packets that were acknowledged and those that
    /// the rate lets expect; 0 at most.
    least: i32,
    /// By how much that difference has been above the lowest one, at most. `None` if a missing
    /// packet has held up acknowledgements since then, which are no evidence.
    most: Option<u16>,
    /// The largest `most` of late; those that say nothing do not count.
    extra: u16,
}

impl Bandwidth {
    /// `count` more packets were acknowledged; a round trip takes `round_trip` nanoseconds in the
    /// mean. `is_whole`: no packet before one that has arrived is known to be missing. `is_prompt`:
    /// nothing was left of what was in flight at the last loss, so that what was lost then has not
    /// held this acknowledgement up.
    #[inline]
    pub fn on_ack(
        &mut self,
        count: u32,
        now: u64,
        round_trip: u64,
        is_whole: bool,
        is_prompt: bool,
    ) {
        let Some(since) = self.since else {
            self.begin(NonZeroU64::new(now).filter(|_| is_whole));
            return;
        };
        let ns = now.saturating_sub(since.get());
        self.compare(count, ns, is_whole && is_prompt);
        self.count = self.count.saturating_add(count);
        if is_whole && ns >= round_trip.max(MIN_INTERVAL_NS) {
            self.measured(ns, now);
        }
    }

    /// A measurement begins, or none.
    fn begin(&mut self, since: Option<NonZeroU64>) {
        self.since = since;
        self.count = 0;
        self.least = 0;
        self.most = Some(0);
    }

    /// `count` more packets were acknowledged `ns` nanoseconds after the measurement began.
    fn compare(&mut self, count: u32, ns: u64, is_prompt: bool) {
        let Some(most) = self.most.filter(|_| is_prompt) else {
            self.most = None;
            return;
        };
        let expected = i64::from(self.packets_in(ns));
        let before = i64::from(self.count).saturating_sub(expected);
        // At most `least`, and clamped to what an i32 can hold.
        self.least = before.clamp(i32::MIN.into(), self.least.into()) as i32;
        let beyond = before
            .saturating_add(count.into())
            .saturating_sub(self.least.into())
            .clamp(0, u16::MAX.into());
        // At most `u16::MAX`.
        self.most = Some(most.max(beyond as u16));
    }

    fn measured(&mut self, ns: u64, now: u64) {
        // Below 2^64, and `ns` is not 0.
        let sample = (u64::from(self.count) << 32).checked_div(ns).unwrap_or(0);
        // Packets that came faster all the time did not come together: the rate was too low.
        if let Some(most) = self.most.filter(|_| sample <= self.rate) {
            let forget = self.extra.div_ceil(1 << FORGET_SHIFT);
            self.extra = self.extra.saturating_sub(forget).max(most);
        }
        let forgotten = self.rate.saturating_sub(self.rate >> FORGET_SHIFT);
        self.rate = sample.max(forgotten);
        self.begin(NonZeroU64::new(now));
    }

    /// Nothing is in flight.
    #[inline]
    pub fn on_idle(&mut self) {
        self.since = None;
    }

    /// The most packets of late that were acknowledged together, beyond those that the rate lets
    /// expect. A burst of the sender, which one ACK answers, counts as well.
    pub fn extra(&self) -> u32 {
        self.extra.into()
    }

    /// Packets that are delivered in `ns` nanoseconds; 0 if that was not measured.
    pub fn packets_in(&self, ns: u64) -> u32 {
        let packets = self.rate.saturating_mul(ns) >> 32;
        packets.min(u64::from(u32::MAX)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn follows_the_rate() {
        let mut b = Bandwidth::default();
        assert_eq!(b.packets_in(MS), 0);
        for t in 0..1000 {
            b.on_ack(4, t * MS / 10, 2 * MS, true, true);
        }
        // 40 in a millisecond.
        assert!((79..=80).contains(&b.packets_in(2 * MS)));
        // The rate drops, and is forgotten after a while.
        for t in 1000..1100 {
            b.on_ack(1, t * MS / 10, 2 * MS, true, true);
        }
        assert!((40..=70).contains(&b.packets_in(2 * MS)));
        for t in 1100..3000 {
            b.on_ack(1, t * MS / 10, 2 * MS, true, true);
        }
        assert!((19..=21).contains(&b.packets_in(2 * MS)));
    }

    #[test]
    fn what_was_held_up_by_a_missing_packet_is_not_more() {
        let mut b = Bandwidth::default();
        for t in 0..100 {
            // One of three has something missing; then comes what that had held up.
            let count = [20, 0, 40][t as usize % 3];
            b.on_ack(count, t * MS, 2 * MS, t % 3 != 1, true);
            assert!(b.packets_in(MS) <= 20, "{}", b.packets_in(MS));
        }
        assert!(b.packets_in(MS) >= 15);
    }

    #[test]
    fn idle_time_is_not_measured() {
        let mut b = Bandwidth::default();
        for t in 0..100 {
            b.on_ack(4, t * MS, 2 * MS, true, true);
        }
        let before = b.packets_in(MS);
        assert_ne!(before, 0);
        b.on_idle();
        for t in 1_000_000..1_000_100 {
            b.on_ack(4, t * MS, 2 * MS, true, true);
        }
        assert_eq!(b.packets_in(MS), before);
    }

    /// 40 packets in a millisecond, acknowledged when `times` a tenth of one has passed.
    fn every(b: &mut Bandwidth, times: u64) {
        for t in (0..1000).filter(|t| t % times == 0) {
            b.on_ack(4 * times as u32, (1 + t) * MS / 10, 8 * MS, true, true);
        }
    }

    #[test]
    fn what_is_acknowledged_together_is_extra() {
        let mut b = Bandwidth::default();
        every(&mut b, 1);
        assert!((4..=8).contains(&b.extra()), "{}", b.extra());
        let mut b = Bandwidth::default();
        every(&mut b, 20);
        assert!((75..=85).contains(&b.extra()), "{}", b.extra());
        // It is forgotten when they come one by one again.
        for t in 1001..4000 {
            b.on_ack(4, t * MS / 10, 8 * MS, true, true);
        }
        assert!((4..=20).contains(&b.extra()), "{}", b.extra());
    }

    #[test]
    fn a_higher_rate_is_not_extra() {
        let mut b = Bandwidth::default();
        every(&mut b, 1);
        let before = b.extra();
        for t in 1001..2000 {
            b.on_ack(8, t * MS / 10, 8 * MS, true, true);
        }
        assert!(b.packets_in(MS) > 70);
        assert!(b.extra() <= 2 * before, "{} {before}", b.extra());
    }

    #[test]
    fn what_a_missing_packet_held_up_is_not_extra() {
        for (is_whole, is_prompt) in [(false, true), (true, false)] {
            let mut b = Bandwidth::default();
            every(&mut b, 1);
            let before = b.extra();
            // Nothing for 5 ms, and then all of it.
            for t in 1001..3000 {
                match t % 100 {
                    1 => b.on_ack(0, t * MS / 10, 8 * MS, is_whole, is_prompt),
                    2..50 => {}
                    50 => b.on_ack(4 * 50, t * MS / 10, 8 * MS, true, is_prompt),
                    _ => b.on_ack(4, t * MS / 10, 8 * MS, true, true),
                }
            }
            assert!(b.extra() <= before, "{} {before}", b.extra());
        }
    }

    #[test]
    fn bounds() {
        let mut b = Bandwidth::default();
        // Time 0 begins nothing.
        b.on_ack(u32::MAX, 0, 0, true, true);
        b.on_ack(u32::MAX, 1, 0, true, true);
        b.on_ack(u32::MAX, 1 + MIN_INTERVAL_NS, 0, true, true);
        b.on_ack(u32::MAX, u64::MAX, u64::MAX, true, true);
        assert!(b.packets_in(u64::MAX) > 0);
        // Time that goes back, and none.
        b.on_ack(1, 0, 0, true, true);
        b.on_ack(1, 0, 0, true, true);
        b.on_ack(0, u64::MAX, 0, false, true);
        assert_eq!(b.packets_in(0), 0);
        // More than can be counted, together.
        for t in 1..100 {
            b.on_ack(u32::MAX, t * MS, 3 * MS, true, true);
        }
        assert_eq!(b.extra(), u16::MAX.into());
    }
}
