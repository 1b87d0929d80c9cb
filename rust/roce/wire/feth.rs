// SPDX-License-Identifier: GPL-2.0

//! FLUSH extended transport header (IBTA 1.5 annex A19).

use super::HeaderBuf;

/// Bytes on the wire.
pub const LEN: usize = 4;

/// FLUSH extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Feth {
    /// Placement type: bit 0 global visibility, bit 1 persistence.
    pub placement: u8,
    /// Selectivity level: 0 the range in the RETH, 1 the whole region.
    pub level: u8,
}

impl Feth {
    /// From the wire.
    #[inline]
    pub fn parse(b: &[u8; LEN]) -> Self {
        let [_, _, _, last] = *b;
        Self {
            placement: last & 0x0f,
            level: last >> 4 & 3,
        }
    }

    /// To the wire.
    #[inline]
    pub fn emit(&self, out: &mut HeaderBuf) {
        out.put(&[0, 0, 0, self.placement & 0x0f | (self.level & 3) << 4]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let h = Feth::parse(&[0, 0, 0, 0x12]);
        assert_eq!((h.placement, h.level), (2, 1));
        let mut out = HeaderBuf::new();
        h.emit(&mut out);
        assert_eq!(out.as_slice(), &[0, 0, 0, 0x12]);
    }
}
