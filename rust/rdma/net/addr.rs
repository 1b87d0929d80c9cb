// SPDX-License-Identifier: GPL-2.0

//! Addresses as RoCEv2 writes them in GIDs.

/// An IPv6 address, or an IPv4 address as `::ffff:a.b.c.d` (IBTA annex A17, RFC 4291 2.5.5.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
#[repr(transparent)]
pub struct GidAddr(
    /// The bytes, in network order.
    pub [u8; 16],
);

impl GidAddr {
    /// An IPv4 address, network order.
    pub const fn from_v4(v4: [u8; 4]) -> Self {
        let [a, b, c, d] = v4;
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

    /// Whether it is an IPv6 address of a link (`fe80::/10`), which means nothing without an
    /// interface.
    pub const fn is_link_local(&self) -> bool {
        let [a, b, ..] = self.0;
        a == 0xfe && b & 0xc0 == 0x80
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

    /// Whether it is no address: all zero, in either family.
    pub const fn is_unspecified(&self) -> bool {
        matches!(self.0, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, _, _, 0, 0, 0, 0])
            && matches!(
                self.0,
                [.., 0, 0, _, _, _, _] | [.., 0xff, 0xff, _, _, _, _]
            )
    }
}

impl From<[u8; 16]> for GidAddr {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}
