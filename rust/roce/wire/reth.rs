// SPDX-License-Identifier: GPL-2.0

//! RDMA extended transport header (IBTA 9.3.3).

use super::HeaderBuf;
use crate::key::Key;

/// Bytes on the wire.
pub const LEN: usize = 16;

/// RDMA extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reth {
    /// Remote virtual address.
    pub va: u64,
    /// Remote key.
    pub rkey: Key,
    /// Bytes of the whole message.
    pub len: u32,
}

impl Reth {
    /// From the wire.
    #[inline]
    pub fn parse(b: &[u8; LEN]) -> Self {
        let [a0, a1, a2, a3, a4, a5, a6, a7, k0, k1, k2, k3, l0, l1, l2, l3] = *b;
        Self {
            va: u64::from_be_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            rkey: Key::from_wire([k0, k1, k2, k3]),
            len: u32::from_be_bytes([l0, l1, l2, l3]),
        }
    }

    /// To the wire.
    #[inline]
    pub fn emit(&self, out: &mut HeaderBuf) {
        out.put(&self.va.to_be_bytes());
        out.put(&self.rkey.to_wire());
        out.put(&self.len.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let b = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        let h = Reth::parse(&b);
        assert_eq!(h.va, 0x0102_0304_0506_0708);
        assert_eq!(h.rkey, Key::new(0x090a_0b0c));
        assert_eq!(h.len, 0x0d0e_0f10);
        let mut out = HeaderBuf::new();
        h.emit(&mut out);
        assert_eq!(out.as_slice(), &b);
    }
}
