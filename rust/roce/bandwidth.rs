// SPDX-License-Identifier: GPL-2.0

//! The bandwidth that a connection gets, from the rate of its acknowledgements.
//!
//! It is for what TCP Westwood+ does at a loss: the window becomes the bandwidth times the shortest
//! round trip, which is what the wire holds without a queue (L. A. Grieco and S. Mascolo,
//! "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion
//! control", 2004). Westwood+ takes a mean. Here, each loss delays acknowledgements, because there
//! are no selective ones, and a mean would follow the window down. So this is the largest rate of
//! late, as that of BBR.

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
}

impl Bandwidth {
    /// `count` more packets were acknowledged; a round trip takes `round_trip` nanoseconds in the
    /// mean. `is_whole`: no packet before one that has arrived is known to be missing.
    #[inline]
    pub fn on_ack(&mut self, count: u32, now: u64, round_trip: u64, is_whole: bool) {
        let Some(since) = self.since else {
            self.since = NonZeroU64::new(now).filter(|_| is_whole);
            self.count = 0;
            return;
        };
        self.count = self.count.saturating_add(count);
        let ns = now.saturating_sub(since.get());
        if is_whole && ns >= round_trip.max(MIN_INTERVAL_NS) {
            self.measured(ns, now);
        }
    }

    fn measured(&mut self, ns: u64, now: u64) {
        // Below 2^64, and `ns` is not 0.
        let sample = (u64::from(self.count) << 32).checked_div(ns).unwrap_or(0);
        let forgotten = self.rate.saturating_sub(self.rate >> FORGET_SHIFT);
        self.rate = sample.max(forgotten);
        self.since = NonZeroU64::new(now);
        self.count = 0;
    }

    /// Nothing is in flight.
    #[inline]
    pub fn on_idle(&mut self) {
        self.since = None;
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
            b.on_ack(4, t * MS / 10, 2 * MS, true);
        }
        // 40 in a millisecond.
        assert!((79..=80).contains(&b.packets_in(2 * MS)));
        // The rate drops, and is forgotten after a while.
        for t in 1000..1100 {
            b.on_ack(1, t * MS / 10, 2 * MS, true);
        }
        assert!((40..=70).contains(&b.packets_in(2 * MS)));
        for t in 1100..3000 {
            b.on_ack(1, t * MS / 10, 2 * MS, true);
        }
        assert!((19..=21).contains(&b.packets_in(2 * MS)));
    }

    #[test]
    fn what_was_held_up_by_a_missing_packet_is_not_more() {
        let mut b = Bandwidth::default();
        for t in 0..100 {
            // One of three has something missing; then comes what that had held up.
            let count = [20, 0, 40][t as usize % 3];
            b.on_ack(count, t * MS, 2 * MS, t % 3 != 1);
            assert!(b.packets_in(MS) <= 20, "{}", b.packets_in(MS));
        }
        assert!(b.packets_in(MS) >= 15);
    }

    #[test]
    fn idle_time_is_not_measured() {
        let mut b = Bandwidth::default();
        for t in 0..100 {
            b.on_ack(4, t * MS, 2 * MS, true);
        }
        let before = b.packets_in(MS);
        assert_ne!(before, 0);
        b.on_idle();
        for t in 1_000_000..1_000_100 {
            b.on_ack(4, t * MS, 2 * MS, true);
        }
        assert_eq!(b.packets_in(MS), before);
    }

    #[test]
    fn bounds() {
        let mut b = Bandwidth::default();
        // Time 0 begins nothing.
        b.on_ack(u32::MAX, 0, 0, true);
        b.on_ack(u32::MAX, 1, 0, true);
        b.on_ack(u32::MAX, 1 + MIN_INTERVAL_NS, 0, true);
        b.on_ack(u32::MAX, u64::MAX, u64::MAX, true);
        assert!(b.packets_in(u64::MAX) > 0);
        // Time that goes back, and none.
        b.on_ack(1, 0, 0, true);
        b.on_ack(1, 0, 0, true);
        b.on_ack(0, u64::MAX, 0, false);
        assert_eq!(b.packets_in(0), 0);
    }
}
