// SPDX-License-Identifier: GPL-2.0

//! How much may be in flight: a congestion window, counted in packets.
//!
//! The window doubles with every window of acknowledged packets until the
//! first loss (slow start), then grows by a packet a round, and halves at most
//! once a round when packets are lost. It only grows while it is what holds
//! the sender back. A READ counts with the packets of its response.

use crate::mtu::Mtu;
use crate::psn::Psn;

/// Fewest packets: what keeps two ends busy.
pub const MIN_PACKETS: u32 = 4;

/// Packets of a new connection.
pub const INITIAL_PACKETS: u32 = 64;

/// Bytes that a window grows to when the configuration does not say.
pub const DEFAULT_MAX_BYTES: u32 = 2 << 20;

/// Most packets in flight, whatever the configuration says: far below half the
/// sequence space, within which numbers can be compared.
pub const MAX_PACKETS: u32 = 1 << 20;

/// A congestion window.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    packets: u32,
    max: u32,
    /// Slow start ends here.
    threshold: u32,
    /// Acknowledged packets not yet turned into growth.
    credit: u32,
    /// The window held the sender back since it last grew.
    limited: bool,
    /// Losses of packets before this one belong to a loss already counted.
    recover: Option<Psn>,
}

impl Default for Window {
    fn default() -> Self {
        Self::new(Mtu::M1024, 0)
    }
}

impl Window {
    /// A window of at most `max_bytes` (0: [`DEFAULT_MAX_BYTES`]).
    pub fn new(mtu: Mtu, max_bytes: u32) -> Self {
        let bytes = if max_bytes == 0 {
            DEFAULT_MAX_BYTES
        } else {
            max_bytes
        };
        let max = mtu.packets(bytes).clamp(MIN_PACKETS, MAX_PACKETS);
        Self {
            packets: INITIAL_PACKETS.min(max),
            max,
            threshold: max,
            credit: 0,
            limited: false,
            recover: None,
        }
    }

    /// Packets that may be in flight.
    #[inline]
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// The sender had more to send than the window let pass.
    #[inline]
    pub fn on_limited(&mut self) {
        self.limited = true;
    }

    /// `count` packets were acknowledged, all before `una`.
    #[inline]
    pub fn on_ack(&mut self, count: u32, una: Psn) {
        if let Some(recover) = self.recover {
            if !una.is_before(recover) {
                self.recover = None;
            } else if self.packets >= self.threshold {
                // Until then it grows only from a timeout back to the threshold.
                return;
            }
        }
        if !self.limited || self.packets >= self.max {
            return;
        }
        self.credit = self.credit.saturating_add(count);
        if self.packets < self.threshold {
            let grown = self.packets.saturating_add(self.credit);
            self.packets = grown.min(self.threshold).min(self.max);
            self.credit = 0;
            self.limited = false;
        } else if self.credit >= self.packets {
            self.credit = 0;
            self.packets = self.packets.saturating_add(1).min(self.max);
            self.limited = false;
        }
    }

    /// A packet at or after `una` was lost while everything before `sent` was
    /// in flight.
    #[inline]
    pub fn on_loss(&mut self, una: Psn, sent: Psn) {
        if let Some(recover) = self.recover {
            if una.is_before(recover) {
                return;
            }
        }
        self.recover = Some(sent);
        self.threshold = (self.packets >> 1).max(MIN_PACKETS).min(self.max);
        self.packets = self.threshold;
        self.credit = 0;
    }

    /// Nothing was heard for a whole timeout: start small again.
    #[inline]
    pub fn on_timeout(&mut self, una: Psn, sent: Psn) {
        self.on_loss(una, sent);
        self.recover = Some(sent);
        self.packets = MIN_PACKETS.min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(acks: u32) -> Window {
        let mut w = Window::new(Mtu::M1024, 0);
        for i in 0..acks {
            w.on_limited();
            w.on_ack(64, Psn::new(i * 64));
        }
        w
    }

    #[test]
    fn slow_start_up_to_the_maximum() {
        assert_eq!(Window::new(Mtu::M1024, 0).packets(), INITIAL_PACKETS);
        assert_eq!(grown(1).packets(), 128);
        assert_eq!(grown(1000).packets(), DEFAULT_MAX_BYTES / 1024);
    }

    #[test]
    fn does_not_grow_unused() {
        let mut w = Window::new(Mtu::M1024, 0);
        w.on_ack(1000, Psn::new(1000));
        assert_eq!(w.packets(), INITIAL_PACKETS);
    }

    #[test]
    fn halves_once_a_round_then_grows_linearly() {
        let mut w = grown(7);
        assert_eq!(w.packets(), 512);
        w.on_loss(Psn::new(100), Psn::new(600));
        assert_eq!(w.packets(), 256);
        w.on_loss(Psn::new(300), Psn::new(700));
        assert_eq!(w.packets(), 256);
        w.on_limited();
        w.on_ack(100, Psn::new(400));
        assert_eq!(w.packets(), 256);
        w.on_limited();
        w.on_ack(256, Psn::new(600));
        assert_eq!(w.packets(), 257);
        w.on_loss(Psn::new(600), Psn::new(857));
        assert_eq!(w.packets(), 128);
    }

    #[test]
    fn slow_start_after_a_timeout_does_not_wait_for_the_old_flight() {
        let mut w = grown(7);
        w.on_timeout(Psn::new(100), Psn::new(612));
        assert_eq!(w.packets(), MIN_PACKETS);
        let mut una = 100;
        while w.packets() < 256 {
            una += w.packets();
            assert!(una < 612, "stays small until all is acknowledged");
            w.on_limited();
            w.on_ack(w.packets(), Psn::new(una));
        }
        // What was in flight at the timeout counts as one loss.
        w.on_limited();
        w.on_ack(60, Psn::new(una + 1));
        assert_eq!(w.packets(), 256);
        w.on_loss(Psn::new(una + 1), Psn::new(700));
        assert_eq!(w.packets(), 256);
    }

    #[test]
    fn bounds() {
        let mut w = Window::new(Mtu::M4096, 1);
        assert_eq!(w.packets(), MIN_PACKETS);
        for i in 0..100 {
            w.on_loss(Psn::new(i * 100), Psn::new(i * 100 + 50));
            w.on_timeout(Psn::new(i * 100), Psn::new(i * 100 + 50));
        }
        assert_eq!(w.packets(), MIN_PACKETS);
        assert!(Window::new(Mtu::M256, u32::MAX).max <= MAX_PACKETS);
    }
}
