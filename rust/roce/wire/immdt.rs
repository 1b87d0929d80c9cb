// SPDX-License-Identifier: GPL-2.0

//! Immediate data (IBTA 9.3.5).

use super::HeaderBuf;

/// Bytes on the wire.
pub const LEN: usize = 4;

/// Immediate data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ImmDt {
    /// The four bytes as they lie in memory and on the wire: the verbs carry
    /// immediate data as a big-endian word, so nobody converts it.
    pub raw: u32,
}

impl ImmDt {
    /// From the wire.
    #[inline]
    pub fn parse(b: &[u8; LEN]) -> Self {
        Self {
            raw: u32::from_ne_bytes(*b),
        }
    }

    /// To the wire.
    #[inline]
    pub fn emit(&self, out: &mut HeaderBuf) {
        out.put(&self.raw.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_not_swapped() {
        let h = ImmDt::parse(&[1, 2, 3, 4]);
        assert_eq!(h.raw.to_ne_bytes(), [1, 2, 3, 4]);
        let mut out = HeaderBuf::new();
        h.emit(&mut out);
        assert_eq!(out.as_slice(), &[1, 2, 3, 4]);
    }
}
