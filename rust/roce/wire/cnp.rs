// SPDX-License-Identifier: GPL-2.0

//! Congestion notification packet (IBTA A17.9.3), with which the receiver of a packet that the
//! network marked notifies the sender.

use super::{
    bth,
    Bth,
    HeaderBuf, //
};
use crate::number::Qpn;
use crate::psn::Psn;

/// Its operation code.
pub const OPCODE: u8 = 0x81;

/// Reserved bytes behind the base transport header.
const RESERVED: usize = 16;

/// Bytes on the wire, without the invariant CRC.
pub const LEN: usize = bth::LEN + RESERVED;

/// A congestion notification packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cnp {
    /// Partition key.
    pub pkey: u16,
    /// The queue pair that is to slow down.
    pub dest_qpn: Qpn,
}

impl Cnp {
    /// The whole packet.
    pub fn emit(&self) -> HeaderBuf {
        let mut out = HeaderBuf::new();
        Bth {
            opcode: OPCODE,
            becn: true,
            pkey: self.pkey,
            dest_qpn: self.dest_qpn,
            psn: Psn::new(0),
            ..Bth::default()
        }
        .emit(&mut out);
        out.put(&[0; RESERVED]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{
        checked::{
            classify,
            Kind, //
        },
        Packet,
        ParseError, //
    };

    const CNP: Cnp = Cnp {
        pkey: 0xffff,
        dest_qpn: Qpn::new(0x12_3456),
    };

    #[test]
    fn layout() {
        let mut expect = vec![
            0x81, 0, 0xff, 0xff, 0x40, 0x12, 0x34, 0x56, 0, 0, 0, 0, //
        ];
        expect.extend([0; 16]);
        assert_eq!(CNP.emit().as_slice(), expect);
        let (bth, kind) = classify(&expect).unwrap();
        assert_eq!(kind, Kind::Cnp);
        assert_eq!((bth.pkey, bth.dest_qpn), (CNP.pkey, CNP.dest_qpn));
        // For those who carry messages it is no packet.
        assert_eq!(
            Packet::parse(&expect).unwrap_err(),
            ParseError::Opcode(OPCODE)
        );
    }

    #[test]
    fn nothing_else_is_one() {
        let cnp = CNP.emit();
        let good = cnp.as_slice();
        for len in 0..LEN {
            assert!(classify(&good[..len]).is_err());
        }
        let mut long = good.to_vec();
        long.push(0);
        assert!(classify(&long).is_err());
        for (at, value) in [(0, 0x11), (0, 0x80), (1, 0x01), (1, 0x0f)] {
            let mut bad = good.to_vec();
            bad[at] = value;
            assert!(!matches!(classify(&bad), Ok((_, Kind::Cnp))));
        }
    }
}
