// SPDX-License-Identifier: GPL-2.0

//! IP addresses in the form in which RoCEv2 writes them in GIDs.

/// An IPv6 address, or an IPv4 address as `::ffff:a.b.c.d` (IBTA annex A17, RFC 4291 2.5.5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
#[repr(transparent)]
pub struct GidAddr(
    /// The bytes, in network order.
    pub [u8; 16],
);

impl GidAddr {
    /// An IPv4 address, network order.
    #[inline]
    pub const fn from_v4([a, b, c, d]: [u8; 4]) -> Self {
        Self([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d])
    }

    /// The IPv4 address, network order, if it is one.
    pub const fn v4(&self) -> Option<[u8; 4]> {
        match self.0 {
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => Some([a, b, c, d]),
            _ => None,
        }
    }

    /// Whether it is an IPv4 address.
    #[inline]
    pub const fn is_v4(&self) -> bool {
        self.v4().is_some()
    }

    /// Whether it is a multicast address.
    pub const fn is_multicast(&self) -> bool {
        match self.v4() {
            Some([a, ..]) => a & 0xf0 == 0xe0,
            None => {
                let [a, ..] = self.0;
                a == 0xff
            }
        }
    }
}

impl From<[u8; 16]> for GidAddr {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}
