// SPDX-License-Identifier: GPL-2.0

//! The path MTU: payload bytes of a full packet, and message segmentation.

/// The longest message, bytes (IBTA 9.7.7: 2^31).
pub const MAX_MESSAGE: u32 = 0x8000_0000;

/// A path MTU. The discriminants are those of `enum ib_mtu`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Mtu {
    /// 256 bytes.
    M256 = 1,
    /// 512 bytes.
    M512 = 2,
    /// 1024 bytes.
    #[default]
    M1024 = 3,
    /// 2048 bytes.
    M2048 = 4,
    /// 4096 bytes.
    M4096 = 5,
}

impl Mtu {
    /// From a value of `enum ib_mtu`.
    #[inline]
    pub const fn from_ib(value: u32) -> Option<Self> {
        match value {
            1 => Some(Self::M256),
            2 => Some(Self::M512),
            3 => Some(Self::M1024),
            4 => Some(Self::M2048),
            5 => Some(Self::M4096),
            _ => None,
        }
    }

    /// The largest MTU whose packets fit `room` bytes, headers not counted.
    pub const fn fitting(room: u32) -> Option<Self> {
        match room {
            4096.. => Some(Self::M4096),
            2048.. => Some(Self::M2048),
            1024.. => Some(Self::M1024),
            512.. => Some(Self::M512),
            256.. => Some(Self::M256),
            _ => None,
        }
    }

    /// Payload bytes of a full packet.
    #[inline]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::M256 => 256,
            Self::M512 => 512,
            Self::M1024 => 1024,
            Self::M2048 => 2048,
            Self::M4096 => 4096,
        }
    }

    /// Logarithm of [`Mtu::bytes`] to base 2.
    #[inline]
    pub const fn shift(self) -> u32 {
        match self {
            Self::M256 => 8,
            Self::M512 => 9,
            Self::M1024 => 10,
            Self::M2048 => 11,
            Self::M4096 => 12,
        }
    }

    /// Packets that a message of `len` bytes takes: at least one, as an empty
    /// message is one packet.
    #[inline]
    pub const fn packets(self, len: u32) -> u32 {
        if len == 0 {
            1
        } else {
            // No division: this runs for every message.
            (len.wrapping_sub(1) >> self.shift()).wrapping_add(1)
        }
    }

    /// Where packet `index` of a message begins, bytes; saturates.
    #[inline]
    pub const fn offset(self, index: u32) -> u32 {
        index.saturating_mul(self.bytes())
    }

    /// Payload length of packet `index` of a message of `len` bytes.
    #[inline]
    pub const fn payload(self, len: u32, index: u32) -> u32 {
        let rest = len.saturating_sub(self.offset(index));
        if rest < self.bytes() {
            rest
        } else {
            self.bytes()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Mtu; 5] = [Mtu::M256, Mtu::M512, Mtu::M1024, Mtu::M2048, Mtu::M4096];

    #[test]
    fn values() {
        for (i, m) in ALL.iter().enumerate() {
            assert_eq!(Mtu::from_ib(i as u32 + 1), Some(*m));
            assert_eq!(*m as u32, i as u32 + 1);
            assert_eq!(1 << m.shift(), m.bytes());
            assert_eq!(Mtu::fitting(m.bytes()), Some(*m));
            assert_ne!(Mtu::fitting(m.bytes() - 1), Some(*m));
        }
        assert_eq!(Mtu::from_ib(0), None);
        assert_eq!(Mtu::from_ib(6), None);
        assert_eq!(Mtu::fitting(255), None);
    }

    #[test]
    fn segmentation() {
        for m in ALL {
            let b = m.bytes();
            assert_eq!(m.packets(0), 1);
            assert_eq!(m.packets(1), 1);
            assert_eq!(m.packets(b), 1);
            assert_eq!(m.packets(b + 1), 2);
            assert_eq!(m.packets(MAX_MESSAGE), MAX_MESSAGE / b);
            assert_eq!(m.packets(u32::MAX), u32::MAX / b + 1);
            assert_eq!(m.payload(2 * b + 3, 0), b);
            assert_eq!(m.payload(2 * b + 3, 2), 3);
            assert_eq!(m.payload(2 * b + 3, 3), 0);
            assert_eq!(m.payload(0, 0), 0);
        }
    }
}
