// SPDX-License-Identifier: GPL-2.0

//! Keys of memory regions and memory windows (IBTA 10.6.3).

use core::fmt;

/// A local or remote key: the index of a region or a window in the upper 24 bits, and in the lower
/// 8 bits a variant, so that a key of the past rarely fits what has the same index now.
///
/// `Display` and `Debug` print it as Wireshark does, `0x00000107`.
///
/// # Examples
///
/// ```
/// use roce::key::Key;
///
/// let key = Key::from_parts(1, 7);
/// assert_eq!(key.get(), 0x107);
/// assert_eq!((key.index(), key.variant()), (1, 7));
/// assert_eq!(key.to_string(), "0x00000107");
/// ```
///
/// A bare number is not a key:
///
/// ```compile_fail,E0308
/// use roce::key::Key;
///
/// let key: Key = 0x107;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
#[repr(transparent)]
pub struct Key(u32);

impl Key {
    /// The key `value`, as packets and work requests have it.
    #[inline]
    pub const fn new(value: u32) -> Self {
        Self(value)
    }

    /// The key of the region or window with number `index`, of which the low 24 bits count.
    #[inline]
    pub const fn from_parts(index: u32, variant: u8) -> Self {
        Self(index << 8 | variant as u32)
    }

    /// The key as packets and work requests have it.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number of the region or window, below 2^24.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0 >> 8
    }

    /// What tells keys with one index apart.
    #[inline]
    pub const fn variant(self) -> u8 {
        self.0 as u8
    }

    /// The key in four bytes of a header.
    #[inline]
    pub(crate) const fn from_wire(bytes: [u8; 4]) -> Self {
        Self(u32::from_be_bytes(bytes))
    }

    /// The four bytes for a header.
    #[inline]
    pub(crate) const fn to_wire(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }
}

impl From<Key> for u32 {
    #[inline]
    fn from(key: Key) -> Self {
        key.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let key = Key::from_parts(0x12_3456, 0x78);
        assert_eq!(key, Key::new(0x1234_5678));
        assert_eq!((key.index(), key.variant()), (0x12_3456, 0x78));
        // What does not fit does not reach the variant.
        assert_eq!(Key::from_parts(0x100_0001, 2), Key::new(0x102));
    }

    #[test]
    fn on_the_wire() {
        assert_eq!(Key::from_wire([1, 2, 3, 4]), Key::new(0x0102_0304));
        assert_eq!(Key::new(0x0102_0304).to_wire(), [1, 2, 3, 4]);
    }
}
