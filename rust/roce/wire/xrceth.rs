// SPDX-License-Identifier: GPL-2.0

//! XRC extended transport header (IBTA annex A14).

use super::HeaderBuf;
use crate::number::Srqn;

/// Bytes on the wire.
pub const LEN: usize = 4;

/// XRC extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct XrcEth {
    /// Number of the XRC shared receive queue at the responder.
    pub srqn: Srqn,
}

impl XrcEth {
    /// From the wire.
    #[inline]
    pub fn parse(b: &[u8; LEN]) -> Self {
        let [_, s0, s1, s2] = *b;
        Self {
            srqn: Srqn::from_wire([s0, s1, s2]),
        }
    }

    /// To the wire.
    #[inline]
    pub fn emit(&self, out: &mut HeaderBuf) {
        let [s0, s1, s2] = self.srqn.to_wire();
        out.put(&[0, s0, s1, s2]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_bits_are_ignored_and_sent_as_zero() {
        let h = XrcEth::parse(&[0xff, 1, 2, 3]);
        assert_eq!(h.srqn, Srqn::new(0x01_0203));
        let mut out = HeaderBuf::new();
        h.emit(&mut out);
        assert_eq!(out.as_slice(), &[0, 1, 2, 3]);
    }
}
