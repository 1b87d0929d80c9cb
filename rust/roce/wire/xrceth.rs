// SPDX-License-Identifier: GPL-2.0

//! XRC extended transport header (IBTA annex A14).

use super::HeaderBuf;

/// Bytes on the wire.
pub const LEN: usize = 4;

/// XRC extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct XrcEth {
    /// Number of the XRC shared receive queue at the responder, 24 bits.
    pub srqn: u32,
}

impl XrcEth {
    /// From the wire.
    #[inline]
    pub fn parse(b: &[u8; LEN]) -> Self {
        let [_, s0, s1, s2] = *b;
        Self {
            srqn: u32::from_be_bytes([0, s0, s1, s2]),
        }
    }

    /// To the wire.
    #[inline]
    pub fn emit(&self, out: &mut HeaderBuf) {
        let [_, s0, s1, s2] = self.srqn.to_be_bytes();
        out.put(&[0, s0, s1, s2]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_bits_are_ignored_and_sent_as_zero() {
        let h = XrcEth::parse(&[0xff, 1, 2, 3]);
        assert_eq!(h.srqn, 0x01_0203);
        let mut out = HeaderBuf::new();
        XrcEth { srqn: 0xaa01_0203 }.emit(&mut out);
        assert_eq!(out.as_slice(), &[0, 1, 2, 3]);
    }
}
