// SPDX-License-Identifier: GPL-2.0

//! ACK extended transport header (IBTA 9.5.4, 9.7.5.2).

use super::HeaderBuf;

/// Bytes on the wire.
pub const LEN: usize = 4;

/// The credit count that means "no end-to-end flow control".
pub const CREDITS_UNLIMITED: u8 = 0x1f;

/// Why a request was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NakCode {
    /// A packet is missing before this one.
    PsnSequence = 0,
    /// The request makes no sense or is not permitted on this QP.
    InvalidRequest = 1,
    /// The key, the address or the rights do not admit the access.
    RemoteAccess = 2,
    /// The responder failed on its own side.
    RemoteOperational = 3,
}

/// The meaning of the syndrome byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syndrome {
    /// Acknowledged; the low 5 bits are a credit count.
    Ack(u8),
    /// Receiver not ready; the low 5 bits are a timer code (see [`crate::rnr`]).
    Rnr(u8),
    /// Refused.
    Nak(NakCode),
    /// A reserved value, ignored.
    Reserved(u8),
}

impl Syndrome {
    /// From the wire.
    #[inline]
    pub const fn from_byte(byte: u8) -> Self {
        match byte {
            0x00..=0x1f => Self::Ack(byte),
            0x20..=0x3f => Self::Rnr(byte & 0x1f),
            0x60 => Self::Nak(NakCode::PsnSequence),
            0x61 => Self::Nak(NakCode::InvalidRequest),
            0x62 => Self::Nak(NakCode::RemoteAccess),
            0x63 => Self::Nak(NakCode::RemoteOperational),
            _ => Self::Reserved(byte),
        }
    }

    /// To the wire.
    #[inline]
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Ack(credits) => credits & 0x1f,
            Self::Rnr(timer) => 0x20 | timer & 0x1f,
            Self::Nak(code) => 0x60 | code as u8,
            Self::Reserved(byte) => byte,
        }
    }
}

/// ACK extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aeth {
    /// Positive, negative, or not now.
    pub syndrome: Syndrome,
    /// Messages that the responder has completed, modulo 2^24.
    pub msn: u32,
}

impl Aeth {
    /// From the wire.
    #[inline]
    pub fn parse(b: &[u8; LEN]) -> Self {
        let [syndrome, m0, m1, m2] = *b;
        Self {
            syndrome: Syndrome::from_byte(syndrome),
            msn: u32::from_be_bytes([0, m0, m1, m2]),
        }
    }

    /// To the wire.
    #[inline]
    pub fn emit(&self, out: &mut HeaderBuf) {
        let [_, m0, m1, m2] = self.msn.to_be_bytes();
        out.put(&[self.syndrome.to_byte(), m0, m1, m2]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syndromes() {
        assert_eq!(Syndrome::from_byte(0x1f), Syndrome::Ack(0x1f));
        assert_eq!(Syndrome::from_byte(0x2c), Syndrome::Rnr(12));
        assert_eq!(
            Syndrome::from_byte(0x63),
            Syndrome::Nak(NakCode::RemoteOperational)
        );
        assert_eq!(Syndrome::from_byte(0x64), Syndrome::Reserved(0x64));
        assert_eq!(Syndrome::from_byte(0x40), Syndrome::Reserved(0x40));
        for b in 0..=255 {
            assert_eq!(Syndrome::from_byte(b).to_byte(), b);
        }
    }

    #[test]
    fn layout() {
        let h = Aeth::parse(&[0x1f, 1, 2, 3]);
        assert_eq!(h.msn, 0x01_0203);
        let mut out = HeaderBuf::new();
        h.emit(&mut out);
        assert_eq!(out.as_slice(), &[0x1f, 1, 2, 3]);
    }
}
