// SPDX-License-Identifier: GPL-2.0

//! The path MTU that a net device allows.

use roce::mtu::Mtu;

/// Bytes of headers around the payload of a packet: IPv6 40, UDP 8, BTH 12, the largest extended
/// headers (XRCETH 4, RETH 16, ImmDt 4), ICRC 4.
const HEADERS: u32 = 40 + 8 + 12 + 4 + 16 + 4 + 4;

/// The largest path MTU whose packets fit a net device's MTU.
pub fn of_netdev(netdev_mtu: u32) -> Mtu {
    Mtu::fitting(netdev_mtu.saturating_sub(HEADERS)).unwrap_or(Mtu::M256)
}
