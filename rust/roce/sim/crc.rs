// SPDX-License-Identifier: GPL-2.0

//! The CRC of the simulated hosts, and packets that carry it.

use roce::icrc::{
    self,
    Crc32, //
};
use roce::wire::{
    Checked,
    Content,
    Packet,
    Refused, //
};

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

/// By table.
pub struct Crc;

impl Crc32 for Crc {
    fn update(mut crc: u32, data: &[u8]) -> u32 {
        for b in data {
            crc = (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ b)];
        }
        crc
    }
}

/// The network headers of all simulated packets: what is in them is beside the
/// point here.
const HEADERS: [u8; 28] = [
    0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 0, 0x12, 0xb7, 0,
    0, 0, 0,
];

/// Appends the invariant CRC.
pub fn seal(mut covered: Vec<u8>) -> Vec<u8> {
    let crc = icrc::compute::<Crc>(&HEADERS, &covered).unwrap();
    covered.extend_from_slice(&crc.to_le_bytes());
    covered
}

/// The packet, if its invariant CRC is right. Whatever is sent here is well-formed.
pub fn open(packet: &[u8]) -> Option<Packet<'_>> {
    let checked = match Checked::check::<Crc>(&HEADERS, packet, 0xffff) {
        Ok(checked) => checked,
        Err(Refused::Icrc) => return None,
        Err(refused) => panic!("nobody sends that: {refused:?}"),
    };
    match checked.content(packet) {
        Content::Message(packet) => Some(packet),
        Content::Cnp => panic!("nobody sends that: a CNP"),
    }
}

/// Puts any bytes through the check, whose invariant CRC is right if they are long enough for one,
/// and looks at what it lets pass; also as if fewer bytes had been checked.
pub fn put_through(covered: &[u8]) {
    let mut packet = covered.to_vec();
    let crc = icrc::compute::<Crc>(&HEADERS, covered).unwrap_or_default();
    packet.extend_from_slice(&crc.to_le_bytes());
    if let Ok(checked) = Checked::check::<Crc>(&HEADERS, &packet, 0xffff) {
        let _ = checked.content(&packet);
        let _ = checked.content(covered);
    }
}
