// SPDX-License-Identifier: GPL-2.0

//! The port, whose state follows the net device.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use datapath::mtu;
use datapath::rx::PKEY;
use rdma::device::Device;
use rdma::port::PortAttr;
use roce::mtu::{
    Mtu,
    MAX_MESSAGE, //
};

/// The one port.
pub(crate) const PORT: u32 = 1;
/// Entries of the GID table: as many as many network cards have. ib_core creates three files in
/// sysfs for each of them, which is most of the time that adding or removing a device takes.
pub(crate) const GID_TABLE_LEN: u32 = 256;
/// `IB_PORT_CM_SUP`: the connection manager serves the port.
const PORT_CM_SUP: u32 = 1 << 16;

/// `ibv_query_port`.
pub(crate) fn query(device: &Device<Xroce>, port: u32) -> Result<PortAttr> {
    if port != PORT {
        return Err(EINVAL);
    }
    let link = device.link(port)?;
    let mtu = mtu::of_netdev(link.mtu);
    let wire = &device.data().wire;
    wire.set_mtu(mtu);
    Ok(PortAttr {
        state: link.state,
        max_mtu: Mtu::M4096.bytes(),
        active_mtu: mtu.bytes(),
        gid_table_len: GID_TABLE_LEN,
        pkey_table_len: 1,
        cap_flags: PORT_CM_SUP,
        max_msg_size: MAX_MESSAGE,
        bad_pkey: violations(wire, Counter::BadPkey),
        qkey_violations: violations(wire, Counter::BadQkey),
        active_width: link.width,
        active_speed: link.speed,
    })
}

/// A count of PortInfo, which has 16 bits and stays at the largest value (IBTA 14.2.5.6).
fn violations(wire: &WireDevice, counter: Counter) -> u32 {
    wire.counter(counter as usize).min(u64::from(u16::MAX)) as u32
}

/// The one partition key: the default one, with full membership.
pub(crate) fn query_pkey(port: u32, index: u16) -> Result<u16> {
    if port != PORT || index != 0 {
        return Err(EINVAL);
    }
    Ok(PKEY)
}
