// SPDX-License-Identifier: GPL-2.0

//! Multicast groups: attach and detach.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use datapath::mcast::{
    enter,
    leave,
    Left,
    Member, //
};
use datapath::qp::QpKind;
use rdma::qp::Qp;

/// `ibv_attach_mcast`, once or more for a group, which the queue pair then leaves with the last
/// detach; it gets each packet once. EINVAL for what is no group or no datagram queue pair, ENOMEM
/// for a group with as many members as it can have, or too many attaches. Process context; the
/// caller has attach and detach of one queue pair take turns, as uverbs does.
pub(crate) fn attach(qp: &Qp<Xroce>, gid: &[u8; 16]) -> Result {
    let wire = &qp.data().wire;
    let group = group(wire, gid)?;
    let member = Member::new(wire, &group);
    if !enter(member, wire.ns(), &group)? {
        return Ok(());
    }
    qp.device().join_group(wire.ns(), gid).inspect_err(|_| {
        leave(member);
    })
}

/// `ibv_detach_mcast`. EINVAL when it is no member. Context as for [`attach`].
pub(crate) fn detach(qp: &Qp<Xroce>, gid: &[u8; 16]) -> Result {
    let wire = &qp.data().wire;
    let group = group(wire, gid)?;
    match leave(Member::new(wire, &group)) {
        Left::Nothing => return Err(EINVAL),
        Left::One => {}
        Left::Last => qp.device().leave_group(wire.ns(), gid),
    }
    Ok(())
}

/// The group that a verb names. EINVAL when the address is not one of a group, or the queue pair
/// not one for datagrams.
fn group(qp: &WireQp, gid: &[u8; 16]) -> Result<GidAddr> {
    let group = GidAddr(*gid);
    if qp.kind != QpKind::Ud || !group.is_multicast() {
        return Err(EINVAL);
    }
    Ok(group)
}
