// SPDX-License-Identifier: GPL-2.0

//! The check of a received packet, which is made once, and the type that says that it was.

use super::{
    cnp,
    split_icrc,
    Bth,
    Packet,
    ParseError, //
};
use crate::icrc::{
    self,
    Crc32, //
};
use crate::number::Qpn;
use crate::opcode::Opcode;
use crate::ud::pkey_matches;

/// Why a received packet is refused. None of these gets an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Too short for an invariant CRC, or not a packet ([`ParseError`]).
    Malformed,
    /// The invariant CRC is wrong: the packet was corrupted, or its addresses were translated.
    Icrc,
    /// Another partition.
    Pkey,
}

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Part of a message, or an answer.
    Message(Opcode),
    /// A congestion notification: packets of ours met congestion.
    Cnp,
}

/// What a packet holds.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// Headers and payload.
    Message(Packet<'a>),
    /// A congestion notification: packets of ours met congestion.
    Cnp,
}

/// What the check of a packet found.
///
/// The check covers the invariant CRC (but for [`check_unmoved`](Self::check_unmoved) and
/// [`check_train`](Self::check_train)), the base
/// transport header, the partition key, and that the packet has the extended headers and the pad
/// bytes that it claims to have. The extended headers are decoded by [`content`](Self::content),
/// which checks nothing and cannot fail.
///
/// The value is small and does not borrow the packet, so that it can be kept beside it. Only the
/// check creates one:
///
/// ```compile_fail,E0451
/// use roce::number::Qpn;
/// use roce::wire::{Checked, Kind};
///
/// let checked = Checked { kind: Kind::Cnp, dest_qpn: Qpn::new(1) };
/// ```
///
/// Nor does anything but this crate create a [`Packet`], which requester and responder take:
///
/// ```compile_fail,E0639
/// use roce::{opcode::Opcode, wire::{Bth, Packet}};
///
/// let bth = Bth::default();
/// let opcode = Opcode::from_byte(bth.opcode).expect("it is SEND First");
/// let packet = Packet {
///     bth,
///     opcode,
///     xrceth: None,
///     deth: None,
///     feth: None,
///     reth: None,
///     atomiceth: None,
///     aeth: None,
///     atomic_ack: None,
///     immdt: None,
///     ieth: None,
///     payload: &[],
/// };
/// ```
///
/// # Examples
///
/// ```
/// use roce::icrc::{self, Crc32};
/// use roce::wire::{Checked, Content, Refused};
///
/// struct Crc;
/// impl Crc32 for Crc {
///     // ...
/// #   fn update(mut crc: u32, data: &[u8]) -> u32 {
/// #       for b in data {
/// #           crc ^= u32::from(*b);
/// #           for _ in 0..8 {
/// #               crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
/// #           }
/// #       }
/// #       crc
/// #   }
/// }
///
/// // IPv4 and UDP headers; SEND Only to QP 17, with its ICRC.
/// let mut headers = [0; 28];
/// headers[0] = 0x45;
/// let mut packet = b"\x04\0\xff\xff\0\0\0\x11\x80\0\0\0a packet".to_vec();
/// let crc = icrc::compute::<Crc>(&headers, &packet).expect("it has a BTH");
/// packet.extend(crc.to_le_bytes());
///
/// let checked = Checked::check::<Crc>(&headers, &packet, 0xffff)?;
/// assert_eq!(checked.dest_qpn().get(), 17);
/// let Content::Message(message) = checked.content(&packet) else {
///     panic!("it is no CNP");
/// };
/// assert_eq!(message.payload, b"a packet");
///
/// packet[15] ^= 1;
/// let refused = Checked::check::<Crc>(&headers, &packet, 0xffff).unwrap_err();
/// assert_eq!(refused, Refused::Icrc);
/// # Ok::<(), Refused>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    kind: Kind,
    dest_qpn: Qpn,
}

impl Checked {
    /// Checks a UDP payload, invariant CRC included, for partition `pkey`. `headers`: the IP header
    /// and the UDP header. Any bytes are welcome.
    ///
    /// # Errors
    ///
    /// [`Refused`]: the first that applies of too short for an ICRC, a wrong ICRC, malformed,
    /// another partition. The packet is to be dropped.
    #[inline]
    pub fn check<C: Crc32>(headers: &[u8], payload: &[u8], pkey: u16) -> Result<Self, Refused> {
        let (covered, icrc) = split_icrc(payload).ok_or(Refused::Malformed)?;
        if icrc::compute::<C>(headers, covered) != Some(icrc) {
            return Err(Refused::Icrc);
        }
        Self::check_covered(covered, pkey)
    }

    /// As [`check`](Self::check), but for a packet that never left the memory it was built in, so
    /// that its invariant CRC, which has to be there, says nothing new. Any bytes are welcome.
    ///
    /// # Errors
    ///
    /// [`Refused`], but for a wrong ICRC.
    #[inline]
    pub fn check_unmoved(payload: &[u8], pkey: u16) -> Result<Self, Refused> {
        let (covered, _) = split_icrc(payload).ok_or(Refused::Malformed)?;
        Self::check_covered(covered, pkey)
    }

    /// Checks a UDP payload without its invariant CRC.
    #[inline]
    fn check_covered(covered: &[u8], pkey: u16) -> Result<Self, Refused> {
        let (bth, kind) = classify(covered).map_err(|_| Refused::Malformed)?;
        if !pkey_matches(bth.pkey, pkey) {
            return Err(Refused::Pkey);
        }
        Ok(Self::new(kind, bth.dest_qpn))
    }

    /// What a check has found.
    #[inline]
    pub(super) const fn new(kind: Kind, dest_qpn: Qpn) -> Self {
        Self { kind, dest_qpn }
    }

    /// What the packet is.
    #[inline]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The queue pair that it is for.
    #[inline]
    pub const fn dest_qpn(&self) -> Qpn {
        self.dest_qpn
    }

    /// What the packet holds. `payload` is the UDP payload that was checked. (From another one this
    /// makes a packet that may lack headers; requester and responder refuse it.)
    #[inline]
    pub fn content<'a>(&self, payload: &'a [u8]) -> Content<'a> {
        match self.kind {
            Kind::Message(opcode) => {
                let (covered, _) = split_icrc(payload).unwrap_or_default();
                Content::Message(Packet::read(opcode, covered))
            }
            Kind::Cnp => Content::Cnp,
        }
    }
}

/// What `covered`, a UDP payload without its invariant CRC, is; and its base transport header.
#[inline]
pub(super) fn classify(covered: &[u8]) -> Result<(Bth, Kind), ParseError> {
    let bth = Bth::parse(covered.first_chunk().ok_or(ParseError::Truncated)?);
    if bth.version != 0 {
        return Err(ParseError::Version(bth.version));
    }
    if bth.opcode == cnp::OPCODE && covered.len() == cnp::LEN {
        return Ok((bth, Kind::Cnp));
    }
    let opcode = Opcode::from_byte(bth.opcode).ok_or(ParseError::Opcode(bth.opcode))?;
    if covered.len() & 3 != 0 {
        return Err(ParseError::Pad);
    }
    let rest = covered
        .len()
        .checked_sub(opcode.header_len())
        .ok_or(ParseError::Truncated)?;
    if rest < usize::from(bth.pad) {
        return Err(ParseError::Pad);
    }
    Ok((bth, Kind::Message(opcode)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icrc::tests::Slow;

    /// IPv4 and UDP; the addresses do not matter here.
    const HEADERS: [u8; 28] = {
        let mut headers = [0; 28];
        headers[0] = 0x45;
        headers
    };

    fn sealed(covered: &[u8]) -> Vec<u8> {
        let mut packet = covered.to_vec();
        let crc = icrc::compute::<Slow>(&HEADERS, covered).unwrap_or(0);
        packet.extend(crc.to_le_bytes());
        packet
    }

    fn check(packet: &[u8]) -> Result<Checked, Refused> {
        Checked::check::<Slow>(&HEADERS, packet, 0xffff)
    }

    fn packet(opcode: u8, flags: u8, tail: usize) -> Vec<u8> {
        let mut covered = vec![opcode, flags, 0xff, 0xff, 0, 1, 2, 3, 0x80, 4, 5, 6];
        covered.extend((0..tail as u8).map(|b| b.wrapping_mul(7)));
        covered
    }

    #[test]
    fn is_small_enough_to_be_kept_beside_a_packet() {
        assert!(size_of::<Checked>() <= 8);
    }

    /// Whatever passes is read as the parser of the tests reads it; and nothing else passes.
    #[test]
    fn every_opcode_and_length() {
        for opcode in 0..=255 {
            for (tail, flags) in (0..70).flat_map(|t| [0, 0x10, 0x30, 0x01, 0x8f].map(|f| (t, f))) {
                let covered = packet(opcode, flags, tail);
                let bytes = sealed(&covered);
                let is_cnp = opcode == cnp::OPCODE && covered.len() == cnp::LEN && flags & 15 == 0;
                match (check(&bytes), Packet::parse(&covered)) {
                    (Ok(checked), Ok(parsed)) => {
                        assert_eq!(checked.kind(), Kind::Message(parsed.opcode));
                        assert_eq!(checked.dest_qpn(), Qpn::new(0x01_0203));
                        let Content::Message(read) = checked.content(&bytes) else {
                            panic!("a message became a CNP");
                        };
                        assert_eq!(format!("{read:?}"), format!("{parsed:?}"));
                        let len = tail + 12 - parsed.opcode.header_len() - usize::from(flags >> 4);
                        assert_eq!(read.payload.len(), len);
                    }
                    (Ok(checked), Err(_)) => {
                        assert!(is_cnp && checked.kind() == Kind::Cnp);
                        assert_eq!(checked.dest_qpn(), Qpn::new(0x01_0203));
                        assert!(matches!(checked.content(&bytes), Content::Cnp));
                    }
                    (Err(refused), parsed) => {
                        assert!(parsed.is_err() && !is_cnp);
                        assert_eq!(refused, Refused::Malformed);
                    }
                }
            }
        }
    }

    #[test]
    fn the_first_fault_counts() {
        let good = packet(0x04, 0, 8);
        // No place for an ICRC.
        for len in 0..4 {
            assert_eq!(check(&sealed(&good)[..len]), Err(Refused::Malformed));
        }
        // An ICRC of nothing, or of too little for a base transport header.
        for len in 4..16 {
            assert_eq!(check(&sealed(&good)[..len]), Err(Refused::Icrc));
        }
        let mut bad_key = good.clone();
        bad_key[3] = 0xfe;
        assert_eq!(check(&sealed(&bad_key)), Err(Refused::Pkey));
        let mut malformed = bad_key.clone();
        malformed[1] |= 1;
        assert_eq!(check(&sealed(&malformed)), Err(Refused::Malformed));
        let mut corrupt = sealed(&malformed);
        corrupt[16] ^= 1;
        assert_eq!(check(&corrupt), Err(Refused::Icrc));
        // Other headers than the sender's, and none that RoCEv2 allows.
        let mut headers = HEADERS;
        headers[12] = 10;
        let bytes = sealed(&good);
        for headers in [&headers[..], &HEADERS[..24], &[]] {
            let refused = Checked::check::<Slow>(headers, &bytes, 0xffff);
            assert_eq!(refused, Err(Refused::Icrc));
        }
    }

    #[test]
    fn what_did_not_move_needs_its_icrc_only_to_be_there() {
        let good = packet(0x04, 0, 8);
        let sealed_good = sealed(&good);
        let mut other_icrc = sealed_good.clone();
        *other_icrc.last_mut().unwrap() ^= 1;
        assert_eq!(check(&other_icrc), Err(Refused::Icrc));
        for bytes in [&sealed_good, &other_icrc] {
            assert_eq!(Checked::check_unmoved(bytes, 0xffff), check(&sealed_good));
        }
        for len in 0..16 {
            let refused = Checked::check_unmoved(&sealed_good[..len], 0xffff);
            assert_eq!(refused, Err(Refused::Malformed), "{len}");
        }
        let other_pkey = Checked::check_unmoved(&sealed_good, 0xfffe);
        assert_eq!(other_pkey, Err(Refused::Pkey));
        let mut malformed = good;
        malformed[1] |= 1;
        assert_eq!(
            Checked::check_unmoved(&sealed(&malformed), 0xffff),
            Err(Refused::Malformed)
        );
    }

    #[test]
    fn every_bit_is_covered() {
        let good = sealed(&packet(0x0b, 0, 40));
        assert!(check(&good).is_ok());
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            // Routers may change FECN and BECN, and the reserved bits beside them.
            let expect = match bit / 8 {
                4 => check(&good),
                _ => Err(Refused::Icrc),
            };
            assert_eq!(check(&bytes), expect, "bit {bit}");
        }
    }

    #[test]
    fn other_bytes_than_those_checked() {
        let bytes = sealed(&packet(0x13, 0, 28));
        let checked = check(&bytes).unwrap();
        for len in 0..bytes.len() {
            let Content::Message(packet) = checked.content(&bytes[..len]) else {
                panic!("a message became a CNP");
            };
            assert!(packet.atomiceth.is_none());
            assert!(packet.payload.is_empty());
        }
    }
}
