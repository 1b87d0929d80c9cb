// SPDX-License-Identifier: GPL-2.0

//! The numbers by which packets name queues. They have 24 bits, as in the headers (IBTA 9.2).

use core::fmt;

macro_rules! number {
    ($(#[$doc:meta])* pub struct $name:ident;) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            /// The bits that a number has.
            pub const MASK: u32 = 0x00ff_ffff;

            /// The number in the low 24 bits of `value`.
            #[inline]
            pub const fn new(value: u32) -> Self {
                Self(value & Self::MASK)
            }

            /// The number `value`; `None` if it has more than 24 bits.
            #[inline]
            pub const fn checked(value: u32) -> Option<Self> {
                if value & !Self::MASK == 0 {
                    Some(Self(value))
                } else {
                    None
                }
            }

            /// The number, below 2^24.
            #[inline]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// The number in three bytes of a header.
            #[inline]
            pub(crate) const fn from_wire(bytes: [u8; 3]) -> Self {
                let [b0, b1, b2] = bytes;
                Self(u32::from_be_bytes([0, b0, b1, b2]))
            }

            /// The three bytes for a header.
            #[inline]
            pub(crate) const fn to_wire(self) -> [u8; 3] {
                let [_, b0, b1, b2] = self.0.to_be_bytes();
                [b0, b1, b2]
            }
        }

        impl From<$name> for u32 {
            #[inline]
            fn from(number: $name) -> Self {
                number.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#08x}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

number! {
    /// The number of a queue pair.
    ///
    /// It has 24 bits, so code that has one need not mask or check it. `Display` and `Debug`
    /// print it as Wireshark does, `0x000011`.
    ///
    /// # Examples
    ///
    /// ```
    /// use roce::number::Qpn;
    ///
    /// // A field of a header: the bits above the number do not belong to it.
    /// assert_eq!(Qpn::new(0x8000_0011).get(), 0x11);
    /// // A number that a user gave: one that is too large is an error.
    /// assert_eq!(Qpn::checked(0x8000_0011), None);
    /// assert_eq!(Qpn::checked(0x11), Some(Qpn::new(0x11)));
    /// assert_eq!(Qpn::new(0x11).to_string(), "0x000011");
    /// ```
    ///
    /// A bare number is not a QP number:
    ///
    /// ```compile_fail,E0308
    /// use roce::number::Qpn;
    ///
    /// let qpn: Qpn = 17;
    /// ```
    pub struct Qpn;
}

impl Qpn {
    /// The general services QP, which every device has.
    pub const GSI: Self = Self(1);

    /// What datagrams to a multicast group carry in place of a number.
    pub const MULTICAST: Self = Self(Self::MASK);
}

number! {
    /// The number of a shared receive queue, as requests of XRC name it. As [`Qpn`] otherwise.
    ///
    /// ```compile_fail,E0308
    /// use roce::number::{Qpn, Srqn};
    ///
    /// let srqn: Srqn = Qpn::GSI;
    /// ```
    pub struct Srqn;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_24_bits() {
        assert_eq!(Qpn::new(0xff12_3456).get(), 0x12_3456);
        assert_eq!(Qpn::checked(0x100_0000), None);
        assert_eq!(Qpn::checked(0xff_ffff), Some(Qpn::MULTICAST));
        assert_eq!(Qpn::checked(0), Some(Qpn::default()));
        assert_eq!(Srqn::new(0xff12_3456).get(), 0x12_3456);
        assert_eq!(Srqn::checked(0x100_0000), None);
        assert_eq!(Srqn::checked(0xff_ffff), Some(Srqn::new(0xff_ffff)));
    }

    #[test]
    fn on_the_wire() {
        assert_eq!(Qpn::from_wire([0x12, 0x34, 0x56]).get(), 0x12_3456);
        assert_eq!(Qpn::new(0x12_3456).to_wire(), [0x12, 0x34, 0x56]);
    }

    #[test]
    fn are_shown_with_six_digits() {
        assert_eq!(Qpn::GSI.to_string(), "0x000001");
        assert_eq!(format!("{:?}", Qpn::MULTICAST), "0xffffff");
    }
}
