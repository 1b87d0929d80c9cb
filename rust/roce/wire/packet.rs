// SPDX-License-Identifier: GPL-2.0

//! Complete packets: which headers they have, and which bytes are payload.

#[cfg(not(kernel))]
use super::checked;
use super::{
    aeth,
    atomiceth,
    bth,
    deth,
    feth,
    ieth,
    immdt,
    reth,
    take,
    xrceth,
    Aeth,
    AtomicAckEth,
    AtomicEth,
    Bth,
    Deth,
    Feth,
    Ieth,
    ImmDt,
    Reth,
    XrcEth,
    ICRC_LEN, //
};
use crate::opcode::{
    Headers,
    Opcode, //
};

/// Why bytes are not a packet. None of these gets an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Shorter than the headers that the operation code asks for.
    Truncated,
    /// Another transport header version than 0.
    Version(u8),
    /// An operation code that does not exist or that nobody here implements.
    Opcode(u8),
    /// More pad bytes than payload bytes, or a length that is not a multiple of
    /// four.
    Pad,
}

/// A packet from the wire that was checked, cut into its headers and the payload.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Packet<'a> {
    /// Base transport header.
    pub bth: Bth,
    /// The operation code in it.
    pub opcode: Opcode,
    /// XRC extended transport header.
    pub xrceth: Option<XrcEth>,
    /// Datagram extended transport header.
    pub deth: Option<Deth>,
    /// FLUSH extended transport header.
    pub feth: Option<Feth>,
    /// RDMA extended transport header.
    pub reth: Option<Reth>,
    /// Atomic extended transport header.
    pub atomiceth: Option<AtomicEth>,
    /// ACK extended transport header.
    pub aeth: Option<Aeth>,
    /// Atomic acknowledge extended transport header.
    pub atomic_ack: Option<AtomicAckEth>,
    /// Immediate data.
    pub immdt: Option<ImmDt>,
    /// Invalidate extended transport header.
    pub ieth: Option<Ieth>,
    /// The payload, pad bytes cut off.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Cuts up `bytes`: a UDP payload without its invariant CRC
    /// (see [`split_icrc`]). Any bytes are welcome.
    ///
    /// For tests, whose packets need no invariant CRC. In the kernel a packet comes from
    /// [`Checked::content`](super::Checked::content) only.
    ///
    /// # Errors
    ///
    /// [`ParseError`]; the packet is to be dropped.
    #[cfg(not(kernel))]
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        match checked::classify(bytes)? {
            (_, checked::Kind::Message(opcode)) => Ok(Self::read(opcode, bytes)),
            (bth, checked::Kind::Cnp) => Err(ParseError::Opcode(bth.opcode)),
        }
    }

    /// Cuts up `bytes`, in which [`classify`](super::checked::classify) has found `opcode`. From
    /// other bytes it makes a packet that may lack headers.
    #[inline]
    pub(super) fn read(opcode: Opcode, bytes: &'a [u8]) -> Self {
        let mut rest = bytes;
        let bth = take::<{ bth::LEN }>(&mut rest).map(Bth::parse);
        let mut packet = Self {
            bth: bth.unwrap_or_default(),
            opcode,
            xrceth: None,
            deth: None,
            feth: None,
            reth: None,
            atomiceth: None,
            aeth: None,
            atomic_ack: None,
            immdt: None,
            ieth: None,
            payload: &[],
        };
        if packet.parse_extended(&mut rest).is_some() {
            let len = rest.len().saturating_sub(usize::from(packet.bth.pad));
            packet.payload = rest.get(..len).unwrap_or_default();
        }
        packet
    }

    /// The extended headers, in the order in which they lie on the wire.
    #[inline]
    fn parse_extended(&mut self, rest: &mut &'a [u8]) -> Option<()> {
        let has = self.opcode.headers();
        if has.has(Headers::XRCETH) {
            self.xrceth = Some(XrcEth::parse(take::<{ xrceth::LEN }>(rest)?));
        }
        if has.has(Headers::DETH) {
            self.deth = Some(Deth::parse(take::<{ deth::LEN }>(rest)?));
        }
        if has.has(Headers::FETH) {
            self.feth = Some(Feth::parse(take::<{ feth::LEN }>(rest)?));
        }
        if has.has(Headers::RETH) {
            self.reth = Some(Reth::parse(take::<{ reth::LEN }>(rest)?));
        }
        if has.has(Headers::ATOMICETH) {
            self.atomiceth = Some(AtomicEth::parse(take::<{ atomiceth::LEN }>(rest)?));
        }
        if has.has(Headers::AETH) {
            self.aeth = Some(Aeth::parse(take::<{ aeth::LEN }>(rest)?));
        }
        if has.has(Headers::ATOMICACKETH) {
            let ack = take::<{ atomiceth::ACK_LEN }>(rest)?;
            self.atomic_ack = Some(AtomicAckEth::parse(ack));
        }
        if has.has(Headers::IMMDT) {
            self.immdt = Some(ImmDt::parse(take::<{ immdt::LEN }>(rest)?));
        }
        if has.has(Headers::IETH) {
            self.ieth = Some(Ieth::parse(take::<{ ieth::LEN }>(rest)?));
        }
        Some(())
    }

    /// Payload bytes; a UDP payload is always shorter than 2^16.
    #[inline]
    pub fn payload_len(&self) -> u32 {
        self.payload.len() as u32
    }
}

/// Cuts the invariant CRC off a UDP payload: what it covers, and its value.
#[inline]
pub fn split_icrc(udp_payload: &[u8]) -> Option<(&[u8], u32)> {
    let (covered, icrc) = udp_payload.split_last_chunk::<ICRC_LEN>()?;
    Some((covered, u32::from_le_bytes(*icrc)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::HeaderBuf;

    fn packet(opcode: u8, pad: u8, tail: &[u8]) -> Vec<u8> {
        let mut h = HeaderBuf::new();
        Bth {
            opcode,
            pad,
            ..Bth::default()
        }
        .emit(&mut h);
        let mut v = h.as_slice().to_vec();
        v.extend_from_slice(tail);
        v
    }

    #[test]
    fn every_opcode_needs_exactly_its_headers() {
        for b in 0..=255u8 {
            let Some(op) = Opcode::from_byte(b) else {
                let err = Packet::parse(&packet(b, 0, &[0; 64])).unwrap_err();
                assert_eq!(err, ParseError::Opcode(b));
                continue;
            };
            let full = packet(b, 0, &[0x11; 64]);
            let parsed = Packet::parse(&full).unwrap();
            assert_eq!(parsed.payload.len(), full.len() - op.header_len());
            let exact = &full[..op.header_len()];
            assert_eq!(Packet::parse(exact).unwrap().payload.len(), 0);
            for cut in (0..op.header_len()).step_by(4) {
                assert_eq!(
                    Packet::parse(&full[..cut]).unwrap_err(),
                    ParseError::Truncated
                );
            }
        }
    }

    #[test]
    fn pads() {
        let p = packet(0x04, 3, &[1, 0, 0, 0]);
        assert_eq!(Packet::parse(&p).unwrap().payload, &[1]);
        let p = packet(0x04, 1, &[]);
        assert_eq!(Packet::parse(&p).unwrap_err(), ParseError::Pad);
        let p = packet(0x04, 0, &[1, 2, 3]);
        assert_eq!(Packet::parse(&p).unwrap_err(), ParseError::Pad);
    }

    #[test]
    fn versions() {
        for v in 1..16 {
            let mut p = packet(0x04, 0, &[]);
            p[1] |= v;
            assert_eq!(Packet::parse(&p).unwrap_err(), ParseError::Version(v));
        }
    }

    #[test]
    fn icrc_is_the_last_word_little_endian() {
        assert_eq!(
            split_icrc(&[9, 8, 1, 2, 3, 4]),
            Some((&[9u8, 8][..], 0x0403_0201))
        );
        assert_eq!(split_icrc(&[1, 2, 3]), None);
    }
}
