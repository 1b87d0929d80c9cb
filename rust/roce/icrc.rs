// SPDX-License-Identifier: GPL-2.0

//! The invariant CRC of RoCEv2 (IBTA annex A17.3.3).
//!
//! This is the CRC-32 of Ethernet over everything from the IP header to the pad bytes. Eight bytes
//! of ones come before it (for a local route header, which RoCEv2 does not have). Ones also replace
//! the fields that routers may change: traffic class, flow label, hop limit, header and UDP
//! checksums, and the reserved byte of the base transport header that carries FECN and BECN.

use crate::wire::bth;

/// A CRC-32 with the reflected polynomial 0xedb88320, without final inversion:
/// what the kernel calls `crc32_le()`.
pub trait Crc32 {
    /// Continues `crc` over `data`.
    fn update(crc: u32, data: &[u8]) -> u32;
}

/// The state after a start value of all ones and the eight bytes of ones.
pub const SEED: u32 = 0xdebb_20e3;

/// Bytes of a UDP header.
const UDP_LEN: usize = 8;
/// Bytes of an IPv4 header without options.
const V4_LEN: usize = 20;
/// Bytes of an IPv6 header without extension headers.
const V6_LEN: usize = 40;
/// The longest masked block.
const MAX_LEN: usize = V6_LEN + UDP_LEN + bth::LEN;

/// Network headers and base transport header with the variant fields masked.
#[derive(Clone, Copy, Debug)]
pub struct Masked {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Masked {
    /// Masks `headers` (an IPv4 header without options or an IPv6 header
    /// without extension headers, and the UDP header) and the 12 bytes of the
    /// base transport header.
    ///
    /// `None` when `headers` are neither.
    #[inline]
    pub fn new(headers: &[u8], bth: &[u8; bth::LEN]) -> Option<Self> {
        let mut masked = Self {
            bytes: [0; MAX_LEN],
            len: headers.len().wrapping_add(bth::LEN),
        };
        let version = headers.first()? >> 4;
        let (ip_len, fields): (usize, &[(usize, u8)]) = match (version, headers.len()) {
            // Type of service, time to live, header checksum.
            (4, 28) => (V4_LEN, &[(1, 0xff), (8, 0xff), (10, 0xff), (11, 0xff)]),
            // Traffic class and flow label (all but the version), hop limit.
            (6, 48) => (
                V6_LEN,
                &[(0, 0x0f), (1, 0xff), (2, 0xff), (3, 0xff), (7, 0xff)],
            ),
            _ => return None,
        };
        let (front, back) = masked.bytes.split_at_mut_checked(headers.len())?;
        front.copy_from_slice(headers);
        *back.first_chunk_mut::<{ bth::LEN }>()? = *bth;
        // The reserved byte before the destination QP number.
        *back.get_mut(4)? = 0xff;
        for &(at, mask) in fields {
            *front.get_mut(at)? |= mask;
        }
        let checksum = front.get_mut(ip_len.wrapping_add(6)..ip_len.wrapping_add(8))?;
        checksum.fill(0xff);
        Some(masked)
    }

    /// The masked bytes: 40 or 60.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}

/// The CRC state after the masked headers: to be continued with
/// [`Crc32::update`] over what follows the base transport header, then
/// [`finish`]ed. For whoever computes the CRC while it copies.
#[inline]
pub fn start<C: Crc32>(headers: &[u8], bth: &[u8; bth::LEN]) -> Option<u32> {
    Some(C::update(SEED, Masked::new(headers, bth)?.as_slice()))
}

/// The value of the ICRC field, which is stored little-endian.
#[inline]
pub const fn finish(crc: u32) -> u32 {
    !crc
}

/// The value of the ICRC field (stored little-endian) of a packet.
///
/// `headers`: IP header and UDP header. `covered`: from the base transport
/// header to the last pad byte. `None` when the headers are not plain IPv4 or
/// IPv6 plus UDP, or `covered` is shorter than a base transport header.
#[inline]
pub fn compute<C: Crc32>(headers: &[u8], covered: &[u8]) -> Option<u32> {
    let (bth, rest) = covered.split_first_chunk::<{ bth::LEN }>()?;
    Some(finish(C::update(start::<C>(headers, bth)?, rest)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Bit by bit, for the tests.
    pub(crate) struct Slow;

    impl Crc32 for Slow {
        fn update(mut crc: u32, data: &[u8]) -> u32 {
            for b in data {
                crc ^= u32::from(*b);
                for _ in 0..8 {
                    crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
                }
            }
            crc
        }
    }

    #[test]
    fn crc_check_value() {
        assert_eq!(!Slow::update(!0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn seed_is_the_dummy_route_header() {
        assert_eq!(Slow::update(!0, &[0xff; 8]), SEED);
    }

    fn v4() -> ([u8; 28], [u8; 20]) {
        let headers = core::array::from_fn(|i| if i == 0 { 0x45 } else { i as u8 });
        let covered = core::array::from_fn(|i| 0x40 + i as u8);
        (headers, covered)
    }

    fn v6() -> ([u8; 48], [u8; 20]) {
        let headers = core::array::from_fn(|i| if i == 0 { 0x60 } else { i as u8 });
        let covered = core::array::from_fn(|i| 0x40 + i as u8);
        (headers, covered)
    }

    /// Which bits of a byte the CRC does not depend on.
    fn ignored(headers: &[u8], covered: &[u8]) -> Vec<(usize, u8)> {
        let base = compute::<Slow>(headers, covered).unwrap();
        let mut all = headers.to_vec();
        all.extend_from_slice(covered);
        let mut out = Vec::new();
        for i in 0..all.len() {
            let mut mask = 0;
            for bit in 0..8 {
                let mut v = all.clone();
                v[i] ^= 1 << bit;
                let (h, c) = v.split_at(headers.len());
                if compute::<Slow>(h, c) == Some(base) {
                    mask |= 1 << bit;
                }
            }
            if mask != 0 {
                out.push((i, mask));
            }
        }
        out
    }

    #[test]
    fn exactly_the_variant_fields_are_masked() {
        let (h, c) = v4();
        assert_eq!(
            ignored(&h, &c),
            [
                (1, 0xff),
                (8, 0xff),
                (10, 0xff),
                (11, 0xff),
                (26, 0xff),
                (27, 0xff),
                (32, 0xff)
            ]
        );
        let (h, c) = v6();
        assert_eq!(
            ignored(&h, &c),
            [
                (0, 0x0f),
                (1, 0xff),
                (2, 0xff),
                (3, 0xff),
                (7, 0xff),
                (46, 0xff),
                (47, 0xff),
                (52, 0xff)
            ]
        );
    }

    #[test]
    fn against_the_definition() {
        // The definition, spelled out: ones, masked headers, rest; inverted.
        let (h, c) = v4();
        let mut all = vec![0xff; 8];
        all.extend_from_slice(&h);
        all.extend_from_slice(&c);
        for i in [1, 8, 10, 11, 26, 27, 32] {
            all[8 + i] = 0xff;
        }
        assert_eq!(
            compute::<Slow>(&h, &c),
            Some(!Slow::update(0xffff_ffff, &all))
        );
    }

    /// Packets of the kernel's soft-RoCE driver, as captured: SEND only (37
    /// bytes, 3 pad bytes) and its ACK over IPv4 and over IPv6.
    const CAPTURED: [&str; 4] = [
        "45000054f2c04000401133d40a0100010a010002c12112b7004000000430ffff00000011806d4d277b7b7b7b \
         7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b000000ed6b74b4",
        "4500003058f540004011cdc30a0100020a010001c12112b7001c00001100ffff00000011006d4d271f000001 \
         74f7d66a",
        "6000000000401140fd010000000000000000000000000001fd010000000000000000000000000002c14412b7 \
         004000000430ffff000000128072e7c07b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b \
         7b7b7b7b7b7b7b7b7b000000bf297899",
        "60000000001c1140fd010000000000000000000000000002fd010000000000000000000000000001c14412b7 \
         001c00001100ffff000000120072e7c01f0000014a938609",
    ];

    #[test]
    fn captured_packets() {
        for hex in CAPTURED {
            let hex: Vec<u8> = hex.bytes().filter(|b| *b != b' ').collect();
            let digit = |b: u8| (b as char).to_digit(16).unwrap() as u8;
            let bytes: Vec<u8> = hex
                .chunks(2)
                .map(|d| digit(d[0]) << 4 | digit(d[1]))
                .collect();
            let headers = if bytes[0] == 0x45 { 28 } else { 48 };
            let (headers, udp_payload) = bytes.split_at(headers);
            let (covered, icrc) = crate::wire::split_icrc(udp_payload).unwrap();
            assert_eq!(compute::<Slow>(headers, covered), Some(icrc));
            let checked = crate::wire::Checked::check::<Slow>(headers, udp_payload, 0xffff);
            assert!(checked.is_ok());
        }
    }

    #[test]
    fn other_headers_are_refused() {
        let (h, c) = v4();
        assert_eq!(compute::<Slow>(&h[..27], &c), None);
        assert_eq!(compute::<Slow>(&[], &c), None);
        assert_eq!(compute::<Slow>(&h, &c[..11]), None);
        let mut options = [0; 32];
        options[0] = 0x46;
        assert_eq!(compute::<Slow>(&options, &c), None);
        let (mut h6, _) = v6();
        h6[0] = 0x45;
        assert_eq!(compute::<Slow>(&h6, &c), None);
    }
}
