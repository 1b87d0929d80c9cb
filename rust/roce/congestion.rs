// SPDX-License-Identifier: GPL-2.0

//! The reaction to congestion, which the network marks (ECN) or the receiving host sees, except for
//! that of the window ([`crate::window::Window::on_mark`]): when a receiver notifies the sender,
//! and how a responder slows down its READ responses.

/// Shortest time between two notifications of a connection, nanoseconds: about
/// a round trip between hosts, within which the sender acts once anyway.
pub const NOTIFY_INTERVAL: u64 = 50_000;

/// ECN codepoint "not ECN capable" (RFC 3168).
pub const NOT_ECT: u8 = 0;

/// ECN codepoint "ECN capable".
pub const ECT0: u8 = 2;

/// ECN codepoint "congestion experienced".
pub const CE: u8 = 3;

/// Whether an IP packet with this type of service or traffic class was marked.
#[inline]
pub const fn is_marked(tos: u8) -> bool {
    tos & 3 == CE
}

/// `tos` with another ECN codepoint.
#[inline]
pub const fn with_ecn(tos: u8, ecn: u8) -> u8 {
    tos & !3 | ecn & 3
}

/// Decides when a receiver of packets that met congestion sends a congestion notification packet.
#[derive(Clone, Copy, Default, Debug)]
pub struct Notifier {
    /// Not before that time.
    next: u64,
}

impl Notifier {
    /// A packet has come that met congestion, a marked one for example. Whether to tell its sender.
    #[inline]
    pub fn on_congestion(&mut self, now: u64) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now.saturating_add(NOTIFY_INTERVAL);
        true
    }
}

/// First gap between bursts after a notification, nanoseconds.
const FIRST_GAP: u64 = 50_000;

/// Longest gap between bursts, nanoseconds.
const LONGEST_GAP: u64 = 2_000_000;

/// Slows a responder's READ responses down, which no window holds back: it
/// waits between bursts. The gap doubles with every notification, up to a
/// limit, and shrinks by a quarter with every burst.
#[derive(Clone, Copy, Default, Debug)]
pub struct Brake {
    gap: u64,
    until: u64,
}

impl Brake {
    /// The peer told of congestion.
    pub fn on_notified(&mut self) {
        self.gap = self.gap.saturating_mul(2).clamp(FIRST_GAP, LONGEST_GAP);
    }

    /// A burst was sent.
    #[inline]
    pub fn on_burst(&mut self, now: u64) {
        if self.gap == 0 {
            return;
        }
        self.until = now.saturating_add(self.gap);
        self.gap = self.gap.wrapping_sub(self.gap >> 2);
        if self.gap < FIRST_GAP >> 3 {
            self.gap = 0;
        }
    }

    /// Until when to wait, if at all.
    #[inline]
    pub fn wait(&self, now: u64) -> Option<u64> {
        (now < self.until).then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints() {
        for tos in 0..=255u8 {
            assert_eq!(is_marked(tos), tos % 4 == 3);
            assert_eq!(with_ecn(tos, ECT0), tos / 4 * 4 + 2);
            assert_eq!(with_ecn(tos, NOT_ECT), tos / 4 * 4);
        }
    }

    #[test]
    fn notifies_once_an_interval() {
        let mut n = Notifier::default();
        assert!(n.on_congestion(7));
        assert!(!n.on_congestion(7));
        assert!(!n.on_congestion(6 + NOTIFY_INTERVAL));
        assert!(n.on_congestion(7 + NOTIFY_INTERVAL));
        assert!(n.on_congestion(u64::MAX - 1));
        assert!(!n.on_congestion(u64::MAX - 1));
    }

    #[test]
    fn brakes_and_lets_go() {
        let mut b = Brake::default();
        b.on_burst(10);
        assert_eq!(b.wait(10), None);
        b.on_notified();
        assert_eq!(b.wait(10), None, "what waits is the next burst");
        b.on_burst(10);
        assert_eq!(b.wait(10), Some(10 + FIRST_GAP));
        assert_eq!(b.wait(10 + FIRST_GAP), None);
        for _ in 0..1000 {
            b.on_notified();
        }
        b.on_burst(0);
        assert_eq!(b.wait(0), Some(LONGEST_GAP));
        let mut now = 0;
        let mut bursts = 0;
        while let Some(until) = b.wait(now) {
            now = until;
            b.on_burst(now);
            bursts += 1;
        }
        assert!(bursts > 10 && bursts < 40, "{bursts} bursts");
        assert!(now < 5 * LONGEST_GAP);
        b.on_notified();
        b.on_burst(u64::MAX);
        assert_eq!(b.wait(u64::MAX), None);
    }
}
