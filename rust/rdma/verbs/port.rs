// SPDX-License-Identifier: GPL-2.0

//! Ports.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    bindings,
    qp::mtu_to_raw, //
};

/// Logical state of a port (`enum ib_port_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum PortState {
    /// No traffic.
    #[default]
    Down = bindings::ib_port_state_IB_PORT_DOWN,
    /// The link is there, the port not set up.
    Init = bindings::ib_port_state_IB_PORT_INIT,
    /// Traffic flows.
    Active = bindings::ib_port_state_IB_PORT_ACTIVE,
}

/// What a port is and can do (`struct ib_port_attr`).
#[derive(Clone, Copy, Debug, Default)]
pub struct PortAttr {
    /// State; take it from [`crate::device::IbDevice::port_state`].
    pub state: PortState,
    /// Largest MTU in bytes.
    pub max_mtu: u32,
    /// MTU in force, bytes.
    pub active_mtu: u32,
    /// Entries of the GID table.
    pub gid_table_len: u32,
    /// Entries of the partition key table.
    pub pkey_table_len: u16,
    /// Capability mask of PortInfo (`IB_PORT_*_SUP`).
    pub cap_flags: u32,
    /// Largest message in bytes.
    pub max_msg_size: u32,
    /// Packets with a wrong partition key.
    pub bad_pkey: u32,
    /// Packets with a wrong queue key.
    pub qkey_violations: u32,
    /// Link width (`enum ib_port_width`).
    pub active_width: u8,
    /// Link speed (`enum ib_port_speed`).
    pub active_speed: u16,
}

impl PortAttr {
    pub(crate) fn to_raw(self, raw: &mut bindings::ib_port_attr) {
        raw.state = self.state as u32;
        // IBA: PortPhysicalState 5 is LinkUp, 3 is Disabled.
        raw.phys_state = match self.state {
            PortState::Active | PortState::Init => {
                bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_LINK_UP as u8
            }
            PortState::Down => bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_DISABLED as u8,
        };
        raw.max_mtu = mtu_to_raw(self.max_mtu);
        raw.active_mtu = mtu_to_raw(self.active_mtu);
        raw.gid_tbl_len = i32::try_from(self.gid_table_len).unwrap_or(i32::MAX);
        raw.set_ip_gids(1);
        raw.port_cap_flags = self.cap_flags;
        raw.max_msg_sz = self.max_msg_size;
        raw.bad_pkey_cntr = self.bad_pkey;
        raw.qkey_viol_cntr = self.qkey_violations;
        raw.pkey_tbl_len = self.pkey_table_len;
        raw.max_vl_num = 1;
        raw.active_width = self.active_width;
        raw.active_speed = self.active_speed;
    }
}
