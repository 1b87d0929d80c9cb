// SPDX-License-Identifier: GPL-2.0

//! Receiver-not-ready timers and the RNR retry counter (IBTA 9.7.5.2.8).

use crate::retry::Retry;

/// Delays that a 5-bit RNR NAK timer field stands for, in units of 10 us.
const TENS_OF_US: [u32; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

/// The delay in nanoseconds that a timer code stands for; only the low 5 bits
/// of `code` count.
#[inline]
pub fn delay_ns(code: u8) -> u64 {
    let tens = TENS_OF_US
        .get(usize::from(code & 0x1f))
        .copied()
        .unwrap_or(0);
    u64::from(tens).wrapping_mul(10_000)
}

/// The value of `rnr_retry` that means "for ever".
pub const INFINITE: u8 = 7;

/// The shortest wait after the first refusal, ns: the shortest that a responder can ask for.
const MIN_WAIT_NS: u64 = 10_000;

/// How often the shortest wait doubles: up to 1.28 ms.
const MAX_DOUBLINGS: u32 = 7;

/// How often a request may yet be refused for want of a receive, and how long the requester waits
/// after each time.
///
/// A responder may ask for waits that are shorter than the time that a packet takes to be handled.
/// With retries that never end, a receiver that posts nothing would then occupy a CPU of either
/// host for ever. So the wait doubles with each refusal.
#[derive(Clone, Copy, Default, Debug)]
pub struct RnrRetry {
    retry: Retry,
    /// Refusals since the responder took something.
    refusals: u32,
}

impl RnrRetry {
    /// From the QP attribute `rnr_retry` (0 to 7, more counts as 7).
    pub const fn new(limit: u8) -> Self {
        Self {
            retry: Retry::new(limit),
            refusals: 0,
        }
    }

    /// One more try, if there is one left.
    #[inline]
    pub fn consume(&mut self) -> bool {
        self.retry.limit() == INFINITE || self.retry.consume()
    }

    /// The responder refused a request and asks for a wait of `delay` ns. How long the requester
    /// waits, ns: that long at least, as IBTA wants it, longer if it was refused before.
    #[inline]
    pub fn wait_ns(&mut self, delay: u64) -> u64 {
        let least = MIN_WAIT_NS << self.refusals.min(MAX_DOUBLINGS);
        self.refusals = self.refusals.saturating_add(1);
        delay.max(least)
    }

    /// Whether the responder has taken nothing since it last refused a request.
    #[inline]
    pub const fn is_refused(&self) -> bool {
        self.refusals != 0
    }

    /// The responder took a request.
    #[inline]
    pub fn reset(&mut self) {
        self.retry.reset();
        self.refusals = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_in_microseconds() {
        // IBTA table 45, in milliseconds times 100.
        assert_eq!(delay_ns(0), 655_360_000);
        assert_eq!(delay_ns(1), 10_000);
        assert_eq!(delay_ns(2), 20_000);
        assert_eq!(delay_ns(12), 640_000);
        assert_eq!(delay_ns(31), 491_520_000);
        assert_eq!(delay_ns(0x20 | 1), 10_000);
        for code in 2..32 {
            assert!(delay_ns(code) > delay_ns(code - 1));
        }
    }

    #[test]
    fn seven_never_ends() {
        let mut r = RnrRetry::new(7);
        assert!((0..1000).all(|_| r.consume()));
    }

    #[test]
    fn waits_double_until_the_responder_takes_something() {
        let mut r = RnrRetry::new(7);
        assert!(!r.is_refused());
        let waits: Vec<u64> = (0..10).map(|_| r.wait_ns(10_000) / 10_000).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 128, 128]);
        assert!(r.is_refused());
        // What the responder asks for is the least.
        assert_eq!(r.wait_ns(655_360_000), 655_360_000);
        r.reset();
        assert!(!r.is_refused());
        assert_eq!(r.wait_ns(10_000), 10_000);
    }

    #[test]
    fn counts_down_and_resets() {
        let mut r = RnrRetry::new(2);
        assert!(r.consume());
        assert!(r.consume());
        assert!(!r.consume());
        assert!(!r.consume());
        r.reset();
        assert!(r.consume());
        assert!(!RnrRetry::new(0).consume());
    }
}
