// SPDX-License-Identifier: GPL-2.0

//! Atomic extended transport header and its acknowledge (IBTA 9.3.4, 9.5.3).

use super::HeaderBuf;
use crate::key::Key;

/// Bytes of [`AtomicEth`] on the wire.
pub const LEN: usize = 28;

/// Bytes of [`AtomicAckEth`] on the wire.
pub const ACK_LEN: usize = 8;

/// Atomic extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AtomicEth {
    /// Remote virtual address, a multiple of eight.
    pub va: u64,
    /// Remote key.
    pub rkey: Key,
    /// Value to swap in, or to add.
    pub swap_add: u64,
    /// Value to compare with.
    pub compare: u64,
}

impl AtomicEth {
    /// From the wire.
    #[inline]
    pub fn parse(b: &[u8; LEN]) -> Self {
        let [a0, a1, a2, a3, a4, a5, a6, a7, k0, k1, k2, k3, rest @ ..] = *b;
        let [s0, s1, s2, s3, s4, s5, s6, s7, c0, c1, c2, c3, c4, c5, c6, c7] = rest;
        Self {
            va: u64::from_be_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            rkey: Key::from_wire([k0, k1, k2, k3]),
            swap_add: u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
            compare: u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
        }
    }

    /// To the wire.
    #[inline]
    pub fn emit(&self, out: &mut HeaderBuf) {
        out.put(&self.va.to_be_bytes());
        out.put(&self.rkey.to_wire());
        out.put(&self.swap_add.to_be_bytes());
        out.put(&self.compare.to_be_bytes());
    }
}

/// Atomic acknowledge extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AtomicAckEth {
    /// What the memory held before.
    pub original: u64,
}

impl AtomicAckEth {
    /// From the wire.
    #[inline]
    pub fn parse(b: &[u8; ACK_LEN]) -> Self {
        Self {
            original: u64::from_be_bytes(*b),
        }
    }

    /// To the wire.
    #[inline]
    pub fn emit(&self, out: &mut HeaderBuf) {
        out.put(&self.original.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let b: [u8; 28] = core::array::from_fn(|i| i as u8);
        let h = AtomicEth::parse(&b);
        assert_eq!(h.va, 0x0001_0203_0405_0607);
        assert_eq!(h.rkey, Key::new(0x0809_0a0b));
        assert_eq!(h.swap_add, 0x0c0d_0e0f_1011_1213);
        assert_eq!(h.compare, 0x1415_1617_1819_1a1b);
        let mut out = HeaderBuf::new();
        h.emit(&mut out);
        assert_eq!(out.as_slice(), &b);

        let a = AtomicAckEth::parse(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(a.original, 0x0102_0304_0506_0708);
        let mut out = HeaderBuf::new();
        a.emit(&mut out);
        assert_eq!(out.as_slice(), &[1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
