// SPDX-License-Identifier: GPL-2.0

//! Invalidate extended transport header (IBTA 9.3.6).

use super::HeaderBuf;
use crate::key::Key;

/// Bytes on the wire.
pub const LEN: usize = 4;

/// Invalidate extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ieth {
    /// The remote key to invalidate.
    pub rkey: Key,
}

impl Ieth {
    /// From the wire.
    #[inline]
    pub fn parse(b: &[u8; LEN]) -> Self {
        Self {
            rkey: Key::from_wire(*b),
        }
    }

    /// To the wire.
    #[inline]
    pub fn emit(&self, out: &mut HeaderBuf) {
        out.put(&self.rkey.to_wire());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let h = Ieth::parse(&[1, 2, 3, 4]);
        assert_eq!(h.rkey, Key::new(0x0102_0304));
        let mut out = HeaderBuf::new();
        h.emit(&mut out);
        assert_eq!(out.as_slice(), &[1, 2, 3, 4]);
    }
}
