// SPDX-License-Identifier: GPL-2.0

//! Base transport header (IBTA 9.2).

use super::HeaderBuf;
use crate::number::Qpn;
use crate::psn::Psn;

/// Bytes on the wire.
pub const LEN: usize = 12;

/// The partition key of the default partition, full member.
pub const DEFAULT_PKEY: u16 = 0xffff;

/// Base transport header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Bth {
    /// Operation code, raw: it may be one that nobody knows.
    pub opcode: u8,
    /// Solicited event.
    pub solicited: bool,
    /// Path migration state; 1 as long as no path was migrated.
    pub mig_req: bool,
    /// Bytes (0 to 3) that fill the payload up to a multiple of four.
    pub pad: u8,
    /// Version of the transport headers: 0.
    pub version: u8,
    /// Partition key.
    pub pkey: u16,
    /// Forward congestion notification.
    pub fecn: bool,
    /// Backward congestion notification.
    pub becn: bool,
    /// Destination QP number.
    pub dest_qpn: Qpn,
    /// The sender wants an acknowledgement.
    pub ack_req: bool,
    /// Packet sequence number.
    pub psn: Psn,
}

impl Bth {
    /// From the wire.
    #[inline]
    pub fn parse(b: &[u8; LEN]) -> Self {
        let [opcode, flags, pkey0, pkey1, resv8, qp0, qp1, qp2, ack, psn0, psn1, psn2] = *b;
        Self {
            opcode,
            solicited: flags & 0x80 != 0,
            mig_req: flags & 0x40 != 0,
            pad: flags >> 4 & 3,
            version: flags & 0x0f,
            pkey: u16::from_be_bytes([pkey0, pkey1]),
            fecn: resv8 & 0x80 != 0,
            becn: resv8 & 0x40 != 0,
            dest_qpn: Qpn::from_wire([qp0, qp1, qp2]),
            ack_req: ack & 0x80 != 0,
            psn: Psn::new(u32::from_be_bytes([0, psn0, psn1, psn2])),
        }
    }

    /// To the wire.
    #[inline]
    pub fn emit(&self, out: &mut HeaderBuf) {
        let [pkey0, pkey1] = self.pkey.to_be_bytes();
        let [qp0, qp1, qp2] = self.dest_qpn.to_wire();
        let [_, psn0, psn1, psn2] = self.psn.get().to_be_bytes();
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        out.put(&[
            self.opcode,
            bit(self.solicited, 0x80)
                | bit(self.mig_req, 0x40)
                | (self.pad & 3) << 4
                | self.version & 0x0f,
            pkey0,
            pkey1,
            bit(self.fecn, 0x80) | bit(self.becn, 0x40),
            qp0,
            qp1,
            qp2,
            bit(self.ack_req, 0x80),
            psn0,
            psn1,
            psn2,
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let b = [
            0xa4, 0xe0, 0xff, 0xfe, 0x40, 0x12, 0x34, 0x56, 0x80, 0xfe, 0xdc, 0xba,
        ];
        let h = Bth::parse(&b);
        assert_eq!(
            h,
            Bth {
                opcode: 0xa4,
                solicited: true,
                mig_req: true,
                pad: 2,
                version: 0,
                pkey: 0xfffe,
                fecn: false,
                becn: true,
                dest_qpn: Qpn::new(0x12_3456),
                ack_req: true,
                psn: Psn::new(0xfe_dcba),
            }
        );
        let mut out = HeaderBuf::new();
        h.emit(&mut out);
        assert_eq!(out.as_slice(), &b);
    }
}
