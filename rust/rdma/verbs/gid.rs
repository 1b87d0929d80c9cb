// SPDX-License-Identifier: GPL-2.0

//! Entries of a port's GID table.
//!
//! C header: `include/rdma/ib_cache.h`.

use crate::bindings;

/// How packets from a GID are encapsulated (`enum ib_gid_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GidKind {
    /// InfiniBand, or RoCE version 1: an Ethernet type of its own.
    Roce1,
    /// RoCE version 2: UDP over IPv4 or IPv6.
    Roce2,
    /// Something that this crate does not know.
    Other,
}

/// A copy of one entry of a GID table.
///
/// It holds no reference: an address can leave the table at any time, which a sender notices
/// because no route leads from it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gid {
    /// The GID; IPv4 addresses are mapped (`::ffff:a.b.c.d`).
    pub raw: [u8; 16],
    /// Index in the table of the port.
    pub index: u16,
    /// Port number, from 1.
    pub port: u32,
    /// Encapsulation.
    pub kind: GidKind,
    /// Interface that owns the address: the device's net device, or one stacked on it. 0 when it
    /// is gone.
    pub ifindex: i32,
    /// VLAN of that interface.
    pub vlan: Option<u16>,
    /// Its hardware address.
    pub mac: [u8; 6],
}

impl Gid {
    /// Copies what an attribute says.
    ///
    /// # Safety
    ///
    /// `attr` must be valid: ib_core hands it in for the time of a callback, or a reference on it
    /// is held.
    pub(crate) unsafe fn from_raw(attr: *const bindings::ib_gid_attr) -> Self {
        let mut info = bindings::xrdma_ib_gid_info::default();
        // SAFETY: `attr` is valid by this function's contract, `info` is ours. The helper takes
        // the RCU read lock that the net device pointer inside needs.
        unsafe { bindings::xrdma_ib_gid_read(attr, &mut info) };
        Self {
            raw: info.gid,
            index: info.index,
            port: info.port,
            kind: match info.kind {
                bindings::ib_gid_type_IB_GID_TYPE_IB => GidKind::Roce1,
                bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP => GidKind::Roce2,
                _ => GidKind::Other,
            },
            ifindex: info.ifindex,
            vlan: (info.vlan != 0xffff).then_some(info.vlan),
            mac: info.mac,
        }
    }

    /// Tells whether the address is an IPv4 one.
    pub fn is_ipv4(&self) -> bool {
        matches!(self.raw, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ..])
    }
}
