// SPDX-License-Identifier: GPL-2.0

//! The round trip time of a connection, and how long to wait for an answer before asking for one
//! again (RFC 6298, RFC 8985).

/// No answer is asked for again sooner than after this time, nanoseconds. Answers are given in
/// softirqs, which now and then wait for as long; and a timer of each busy connection fires at
/// most that often.
pub const MIN_PROBE_NS: u64 = 4_000_000;

/// A longer round trip counts as this, nanoseconds: a minute.
const MAX_NS: u64 = 60_000_000_000;

/// An estimate of the round trip time. Times are in nanoseconds.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rtt {
    /// The mean; 0 while nothing was measured.
    smoothed: u64,
    /// How far from it samples lie, in the mean.
    deviation: u64,
    /// The least.
    min: u64,
}

impl Rtt {
    /// A packet that was sent once was answered after this time.
    #[inline]
    pub fn on_sample(&mut self, ns: u64) {
        let ns = ns.clamp(1, MAX_NS);
        if self.smoothed == 0 {
            self.smoothed = ns;
            self.deviation = ns >> 1;
            self.min = ns;
            return;
        }
        // All of them are at most a minute.
        let error = self.smoothed.abs_diff(ns);
        self.deviation = (self.deviation.saturating_mul(3).saturating_add(error)) >> 2;
        self.smoothed = (self.smoothed.saturating_mul(7).saturating_add(ns)) >> 3;
        self.smoothed = self.smoothed.max(1);
        self.min = self.min.min(ns);
    }

    /// The least that was measured; 0 if nothing was.
    #[inline]
    pub const fn min(&self) -> u64 {
        self.min
    }

    /// The mean; 0 if nothing was measured.
    #[inline]
    pub const fn smoothed(&self) -> u64 {
        self.smoothed
    }

    /// After this time without an answer one is asked for, if anything was measured; twice as long
    /// after each of `doublings` times for which nothing came.
    #[inline]
    pub fn probe_timeout(&self, doublings: u8) -> Option<u64> {
        if self.smoothed == 0 {
            return None;
        }
        let once = self
            .smoothed
            .saturating_add(self.deviation.saturating_mul(4))
            .max(MIN_PROBE_NS);
        // At most five minutes by 2^16.
        Some(once << doublings.min(16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_samples() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.probe_timeout(0), None);
        rtt.on_sample(10_000_000);
        assert_eq!(rtt.probe_timeout(0), Some(30_000_000));
        assert_eq!(rtt.probe_timeout(2), Some(120_000_000));
        for _ in 0..100 {
            rtt.on_sample(10_000_000);
        }
        assert_eq!(rtt.smoothed(), 10_000_000);
        assert_eq!(rtt.probe_timeout(0).unwrap() / 1_000_000, 10);
        for _ in 0..100 {
            rtt.on_sample(100_000_000);
        }
        assert_eq!(rtt.smoothed() / 1_000_000, 99);
        assert_eq!(rtt.min(), 10_000_000);
    }

    #[test]
    fn bounds() {
        let mut rtt = Rtt::default();
        rtt.on_sample(0);
        assert_eq!(rtt.min(), 1);
        assert_eq!(rtt.probe_timeout(0), Some(MIN_PROBE_NS));
        for _ in 0..100 {
            rtt.on_sample(u64::MAX);
        }
        assert!(rtt.smoothed() <= MAX_NS);
        assert!(rtt.probe_timeout(u8::MAX).unwrap() <= (5 * MAX_NS) << 16);
        for _ in 0..200 {
            rtt.on_sample(0);
        }
        assert_eq!(rtt.smoothed(), 1);
    }
}
