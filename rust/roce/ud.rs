// SPDX-License-Identifier: GPL-2.0

//! Unreliable datagrams: one packet is one message, and the sequence number is the only state (IBTA
//! 9.8.3).

use crate::number::Qpn;
use crate::opcode::{
    Opcode,
    Operation,
    Transport, //
};
use crate::psn::Psn;
use crate::wire::{
    pad,
    Bth,
    Deth,
    HeaderBuf,
    ImmDt,
    Packet, //
};

/// Queue keys with this bit stand for the sender's own queue key (IBTA
/// 10.2.5): so ordinary users cannot claim privileged ones.
pub const QKEY_CONTROLLED: u32 = 0x8000_0000;

/// What the headers of a datagram say.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Number of the sending QP.
    pub src_qpn: Qpn,
    /// Number of the receiving QP.
    pub dest_qpn: Qpn,
    /// Queue key, controlled bit already resolved (see [`effective_qkey`]).
    pub qkey: u32,
    /// Partition key.
    pub pkey: u16,
    /// Sequence number.
    pub psn: Psn,
    /// Raise an event at the receiver.
    pub solicited: bool,
    /// Immediate data as the verbs carry it.
    pub imm: Option<u32>,
    /// Payload bytes.
    pub len: u32,
}

impl Datagram {
    /// The headers, and how many pad bytes follow the payload.
    #[inline]
    pub fn headers(&self) -> (HeaderBuf, u8) {
        let operation = match self.imm {
            Some(_) => Operation::SendOnlyImm,
            None => Operation::SendOnly,
        };
        let pad = pad(self.len);
        let mut h = HeaderBuf::new();
        Bth {
            opcode: Opcode::new(Transport::Ud, operation).to_byte(),
            solicited: self.solicited,
            mig_req: true,
            pad,
            pkey: self.pkey,
            dest_qpn: self.dest_qpn,
            psn: self.psn,
            ..Bth::default()
        }
        .emit(&mut h);
        Deth {
            qkey: self.qkey,
            src_qpn: self.src_qpn,
        }
        .emit(&mut h);
        if let Some(raw) = self.imm {
            ImmDt { raw }.emit(&mut h);
        }
        (h, pad)
    }
}

/// The queue key to send: the work request's, or with the controlled bit set
/// the QP's own.
#[inline]
pub const fn effective_qkey(requested: u32, own: u32) -> u32 {
    if requested & QKEY_CONTROLLED != 0 {
        own
    } else {
        requested
    }
}

/// Why a datagram is not for this QP; all are dropped without an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UdError {
    /// Not a datagram.
    NotUd,
    /// Another partition.
    Pkey,
    /// Another queue key.
    Qkey,
}

/// A datagram that may be received.
#[derive(Clone, Copy, Debug)]
pub struct UdMessage<'a> {
    /// Number of the sending QP.
    pub src_qpn: Qpn,
    /// Immediate data as the verbs carry it.
    pub imm: Option<u32>,
    /// Raise an event even if only solicited ones are wanted.
    pub solicited: bool,
    /// The bytes.
    pub payload: &'a [u8],
}

/// Checks `packet` against the queue key and the partition of a UD QP.
///
/// # Errors
///
/// [`UdError`]; the packet is to be dropped.
#[inline]
pub fn receive<'a>(packet: &Packet<'a>, qkey: u32, pkey: u16) -> Result<UdMessage<'a>, UdError> {
    let Some(deth) = packet.deth else {
        return Err(UdError::NotUd);
    };
    if !pkey_matches(packet.bth.pkey, pkey) {
        return Err(UdError::Pkey);
    }
    if deth.qkey != qkey {
        return Err(UdError::Qkey);
    }
    Ok(UdMessage {
        src_qpn: deth.src_qpn,
        imm: packet.immdt.map(|i| i.raw),
        solicited: packet.bth.solicited,
        payload: packet.payload,
    })
}

/// Whether two partition keys talk to each other: same partition, and at least
/// one of them a full member (IBTA 10.9.3).
#[inline]
pub const fn pkey_matches(a: u16, b: u16) -> bool {
    a & 0x7fff == b & 0x7fff && (a | b) & 0x8000 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(imm: Option<u32>) -> Vec<u8> {
        let (h, pad) = Datagram {
            src_qpn: Qpn::new(0x12_3456),
            dest_qpn: Qpn::GSI,
            qkey: 0x8001_0000,
            pkey: 0xffff,
            psn: Psn::new(5),
            solicited: true,
            imm,
            len: 5,
        }
        .headers();
        assert_eq!(pad, 3);
        let mut v = h.as_slice().to_vec();
        v.extend_from_slice(b"hello\0\0\0");
        v
    }

    #[test]
    fn round_trip() {
        for imm in [None, Some(0xdead_beef)] {
            let bytes = datagram(imm);
            let p = Packet::parse(&bytes).unwrap();
            let m = receive(&p, 0x8001_0000, 0xffff).unwrap();
            assert_eq!(m.src_qpn, Qpn::new(0x12_3456));
            assert_eq!(m.imm, imm);
            assert!(m.solicited);
            assert_eq!(m.payload, b"hello");
            assert_eq!(p.bth.dest_qpn, Qpn::GSI);
            assert!(p.bth.mig_req);
        }
    }

    #[test]
    fn wrong_keys() {
        let bytes = datagram(None);
        let p = Packet::parse(&bytes).unwrap();
        assert_eq!(receive(&p, 1, 0xffff).unwrap_err(), UdError::Qkey);
        assert_eq!(receive(&p, 0x8001_0000, 0x8001).unwrap_err(), UdError::Pkey);
        let mut rc = bytes.clone();
        rc[0] = 0x04;
        let p = Packet::parse(&rc).unwrap();
        assert_eq!(
            receive(&p, 0x8001_0000, 0xffff).unwrap_err(),
            UdError::NotUd
        );
    }

    #[test]
    fn partitions() {
        assert!(pkey_matches(0xffff, 0x7fff));
        assert!(!pkey_matches(0x7fff, 0x7fff));
        assert!(!pkey_matches(0x8001, 0x8002));
    }

    #[test]
    fn controlled_qkeys() {
        assert_eq!(effective_qkey(0x1111_1111, 5), 0x1111_1111);
        assert_eq!(effective_qkey(0x8000_0000, 5), 5);
    }
}
