// SPDX-License-Identifier: GPL-2.0

//! Packet sequence numbers: 24 bits, compared as serial numbers (IBTA 9.7.1).

/// A packet sequence number.
///
/// There is no `Ord`: "before" and "after" only mean something for two numbers
/// less than half the sequence space apart.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub struct Psn(u32);

impl Psn {
    /// The bits that a sequence number has.
    pub const MASK: u32 = 0x00ff_ffff;

    /// Half the sequence space: numbers that far apart cannot be ordered.
    pub const HALF: u32 = 0x0080_0000;

    /// A sequence number from the low 24 bits of `value`.
    #[inline]
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MASK)
    }

    /// The number, below 2^24.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number that follows.
    #[inline]
    pub const fn next(self) -> Self {
        self.add(1)
    }

    /// The number that precedes.
    #[inline]
    pub const fn prev(self) -> Self {
        Self::new(self.0.wrapping_sub(1))
    }

    /// The number `n` places further on.
    #[inline]
    pub const fn add(self, n: u32) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// How many places `self` lies after `origin`, 0 to 2^24 - 1.
    ///
    /// For numbers known not to lie before `origin`.
    #[inline]
    pub const fn since(self, origin: Psn) -> u32 {
        self.0.wrapping_sub(origin.0) & Self::MASK
    }

    /// Signed distance from `origin`, -2^23 to 2^23 - 1.
    #[inline]
    pub const fn distance(self, origin: Psn) -> i32 {
        let d = self.since(origin);
        // Move the sign bit of the 24-bit number to that of the i32 and back.
        (d << 8) as i32 >> 8
    }

    /// Whether `self` lies before `other`.
    #[inline]
    pub const fn is_before(self, other: Psn) -> bool {
        self.distance(other) < 0
    }

    /// Whether `self` lies after `other`.
    #[inline]
    pub const fn is_after(self, other: Psn) -> bool {
        self.distance(other) > 0
    }

    /// Whether `self` is one of the `len` numbers that begin with `start`.
    #[inline]
    pub const fn is_within(self, start: Psn, len: u32) -> bool {
        self.since(start) < len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_24_bits() {
        assert_eq!(Psn::new(0xffff_ffff).get(), 0xff_ffff);
        assert_eq!(Psn::new(0xff_ffff).next(), Psn::new(0));
        assert_eq!(Psn::new(0).prev(), Psn::new(0xff_ffff));
        assert_eq!(Psn::new(0xff_fffe).add(5), Psn::new(3));
    }

    #[test]
    fn distance_is_signed() {
        assert_eq!(Psn::new(3).distance(Psn::new(0xff_fffe)), 5);
        assert_eq!(Psn::new(0xff_fffe).distance(Psn::new(3)), -5);
        assert_eq!(Psn::new(Psn::HALF).distance(Psn::new(0)), -(1 << 23));
        assert_eq!(Psn::new(Psn::HALF - 1).distance(Psn::new(0)), (1 << 23) - 1);
        assert!(Psn::new(0).is_after(Psn::new(0xff_ffff)));
        assert!(Psn::new(0xff_ffff).is_before(Psn::new(0)));
        assert!(!Psn::new(7).is_before(Psn::new(7)));
    }

    #[test]
    fn range() {
        assert!(Psn::new(1).is_within(Psn::new(0xff_ffff), 3));
        assert!(!Psn::new(2).is_within(Psn::new(0xff_ffff), 3));
        assert!(!Psn::new(0xff_fffe).is_within(Psn::new(0xff_ffff), 3));
    }
}
