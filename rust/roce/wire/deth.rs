// SPDX-License-Identifier: GPL-2.0

//! Datagram extended transport header (IBTA 9.3.2).

use super::HeaderBuf;
use crate::number::Qpn;

/// Bytes on the wire.
pub const LEN: usize = 8;

/// Datagram extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Deth {
    /// Queue key.
    pub qkey: u32,
    /// Source QP number.
    pub src_qpn: Qpn,
}

impl Deth {
    /// From the wire.
    #[inline]
    pub fn parse(b: &[u8; LEN]) -> Self {
        let [k0, k1, k2, k3, _, q0, q1, q2] = *b;
        Self {
            qkey: u32::from_be_bytes([k0, k1, k2, k3]),
            src_qpn: Qpn::from_wire([q0, q1, q2]),
        }
    }

    /// To the wire.
    #[inline]
    pub fn emit(&self, out: &mut HeaderBuf) {
        let [q0, q1, q2] = self.src_qpn.to_wire();
        out.put(&self.qkey.to_be_bytes());
        out.put(&[0, q0, q1, q2]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let h = Deth::parse(&[0x80, 1, 0, 0, 0xee, 0, 0, 1]);
        assert_eq!(h.qkey, 0x8001_0000);
        assert_eq!(h.src_qpn, Qpn::GSI);
        let mut out = HeaderBuf::new();
        h.emit(&mut out);
        assert_eq!(out.as_slice(), &[0x80, 1, 0, 0, 0, 0, 0, 1]);
    }
}
