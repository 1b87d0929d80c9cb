// SPDX-License-Identifier: GPL-2.0

//! Whether packets are lost so often that a full queue may be the cause.
//!
//! A wire that damages or loses packets now and then loses one of a hundred at most, as a rule. BBR
//! regards it as congestion if more than one of fifty is lost (`BBR.LossThresh` in
//! draft-ietf-ccwg-bbr). Here, several packets that are lost together may be counted as one.

/// One packet that is missing for each so many that arrive is often.
const PACKETS: u16 = 80;

/// So many may be missing in addition.
const AT_ONCE: u16 = 3;

/// No more than so many are remembered.
const REMEMBERED: u16 = 16;

/// How often packets have been missing of late: a bucket that each missing one fills by as much as
/// [`PACKETS`] that arrive empty it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Losses(u16);

impl Losses {
    /// A packet is missing.
    #[inline]
    pub fn on_loss(&mut self) {
        self.0 = self
            .0
            .saturating_add(PACKETS)
            .min(REMEMBERED.saturating_mul(PACKETS));
    }

    /// A packet that counted as missing was only late.
    pub fn on_no_loss(&mut self) {
        self.0 = self.0.saturating_sub(PACKETS);
    }

    /// `count` more packets have arrived.
    #[inline]
    pub fn on_ack(&mut self, count: u32) {
        self.0 = self.0.saturating_sub(count.min(u16::MAX.into()) as u16);
    }

    /// Whether no more than one that is missing is remembered.
    #[inline]
    pub const fn is_rare(&self) -> bool {
        self.0 <= PACKETS
    }

    /// Whether too many are missing.
    #[inline]
    pub const fn is_often(&self) -> bool {
        self.0 > AT_ONCE.saturating_mul(PACKETS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it is too often at the end of 100 times that one of `every` packets is missing.
    fn one_of(every: u32) -> bool {
        let mut losses = Losses::default();
        for _ in 0..100 {
            losses.on_loss();
            losses.on_ack(every - 1);
        }
        losses.is_often()
    }

    #[test]
    fn one_of_a_hundred_is_not_often() {
        assert!(!one_of(1000));
        assert!(!one_of(100));
        assert!(one_of(50));
        assert!(one_of(10));
    }

    #[test]
    fn some_at_once_are_not_often() {
        let mut losses = Losses::default();
        for _ in 0..AT_ONCE {
            losses.on_loss();
        }
        assert!(!losses.is_often());
        losses.on_loss();
        assert!(losses.is_often());
        losses.on_ack(PACKETS.into());
        assert!(!losses.is_often());
        losses.on_loss();
        losses.on_no_loss();
        assert!(!losses.is_often());
    }

    #[test]
    fn bounds() {
        let mut losses = Losses::default();
        for _ in 0..100_000 {
            losses.on_loss();
        }
        assert!(losses.is_often());
        // It forgets within that many packets.
        losses.on_ack((REMEMBERED * PACKETS).into());
        assert!(!losses.is_often());
        for _ in 0..REMEMBERED {
            losses.on_loss();
        }
        losses.on_ack(1 << 16);
        assert!(!losses.is_often());
    }

    #[test]
    fn the_last_one_is_forgotten_after_some_that_arrive() {
        let mut losses = Losses::default();
        assert!(losses.is_rare());
        losses.on_loss();
        assert!(losses.is_rare());
        losses.on_ack(u32::from(PACKETS) - 1);
        losses.on_loss();
        assert!(!losses.is_rare());
        losses.on_ack(1);
        assert!(losses.is_rare());
    }
}
