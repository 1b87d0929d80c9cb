// SPDX-License-Identifier: GPL-2.0

//! Multicast groups: which datagram queue pairs get the packets to a group address.
//!
//! The IP stack of the namespace does the rest: a queue pair that joins a group makes its net device a
//! member (IGMP, MLD, address filter), and what is sent to a group comes back to the members on this
//! host by the stack's own loop.

use crate::prelude::*;
use crate::provider::Xroce;
use crate::qp::QpKind;
use crate::tables;
use rdma::qp::Qp;

/// Queue pairs that one group can have.
pub(crate) const MAX_QPS: usize = 56;
/// Memberships, of all groups of all devices. Nobody has a share: one process may use them up.
pub(crate) const MAX_MEMBERS: usize = 1 << 12;
/// Groups that can have members: each has one at least.
pub(crate) const MAX_GROUPS: u32 = MAX_MEMBERS as u32;

/// The number that packets to a group carry in place of a queue pair's.
pub(crate) const QPN: u32 = 0x00ff_ffff;

/// A queue pair in a group. Sorted by group, so that a packet finds its members together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    ns: u64,
    group: [u8; 16],
    qpn: u32,
}

impl Member {
    fn new(qp: &WireQp, group: &GidAddr) -> Self {
        Member {
            ns: qp.ns().0,
            group: group.0,
            qpn: qp.qpn,
        }
    }

    fn is_of(&self, ns: NamespaceId, group: &GidAddr) -> bool {
        self.ns == ns.0 && self.group == group.0
    }
}

/// The memberships of all queue pairs.
pub(crate) type Members = KVec<Member>;

/// Enters a member, unless it is one; true when it was entered. ENOMEM when the group is full.
/// Process context.
fn enter(member: Member, ns: NamespaceId, group: &GidAddr) -> Result<bool> {
    let tables = tables::tables()?;
    loop {
        let room = {
            let mut members = tables.groups.lock();
            let at = match members.binary_search(&member) {
                Ok(_) => return Ok(false),
                Err(at) => at,
            };
            let first = members.partition_point(|m| (m.ns, m.group) < (ns.0, group.0));
            let end = members.partition_point(|m| (m.ns, m.group) <= (ns.0, group.0));
            if end.wrapping_sub(first) >= MAX_QPS || members.len() >= MAX_MEMBERS {
                return Err(ENOMEM);
            }
            if members.push_within_capacity(member).is_ok() {
                move_last_to(&mut members, at);
                return Ok(true);
            }
            members.capacity()
        };
        // Memory is allocated outside the lock; the old vector is freed there as well.
        let mut grown = KVec::with_capacity(room.saturating_mul(2).max(16), GFP_ACCOUNT)?;
        let mut members = tables.groups.lock();
        if members.len() < grown.capacity() {
            for old in members.iter() {
                let _ = grown.push_within_capacity(*old);
            }
            core::mem::swap(&mut *members, &mut grown);
        }
        drop(members);
    }
}

/// Moves the last member to its place.
fn move_last_to(members: &mut [Member], at: usize) {
    let mut last = None;
    for member in members.get_mut(at..).unwrap_or(&mut []).iter_mut().rev() {
        if let Some(behind) = last.replace(member) {
            if let Some(here) = &mut last {
                core::mem::swap(behind, *here);
            }
        }
    }
}

/// Takes a member out; true when it was one. Process context.
fn leave(member: Member) -> bool {
    let Some(tables) = tables::get() else {
        return false;
    };
    let mut emptied = KVec::new();
    let mut members = tables.groups.lock();
    let Ok(at) = members.binary_search(&member) else {
        return false;
    };
    let _ = members.remove(at);
    if members.is_empty() {
        // A static must not keep memory when the module goes.
        core::mem::swap(&mut *members, &mut emptied);
    }
    drop(members);
    true
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

/// `ibv_attach_mcast`. EINVAL for what is no group or no datagram queue pair, ENOMEM for a group with
/// as many members as it can have. Process context.
pub(crate) fn attach(qp: &Qp<Xroce>, gid: &[u8; 16]) -> Result {
    let wire = &qp.data().wire;
    let group = group(wire, gid)?;
    let member = Member::new(wire, &group);
    if !enter(member, wire.ns(), &group)? {
        return Ok(());
    }
    qp.device().join_group(gid).inspect_err(|_| {
        leave(member);
    })
}

/// `ibv_detach_mcast`. EINVAL when it is no member. Process context.
pub(crate) fn detach(qp: &Qp<Xroce>, gid: &[u8; 16]) -> Result {
    let wire = &qp.data().wire;
    let group = group(wire, gid)?;
    if !leave(Member::new(wire, &group)) {
        return Err(EINVAL);
    }
    qp.device().leave_group(gid);
    Ok(())
}

/// Numbers of the queue pairs of a group. Any context.
pub(crate) fn members(ns: NamespaceId, group: &GidAddr, out: &mut [u32; MAX_QPS]) -> usize {
    let Some(tables) = tables::get() else {
        return 0;
    };
    let members = tables.groups.lock();
    let from = members.partition_point(|m| (m.ns, m.group) < (ns.0, group.0));
    let mut count = 0usize;
    for (to, member) in out.iter_mut().zip(members.get(from..).unwrap_or(&[])) {
        if !member.is_of(ns, group) {
            break;
        }
        *to = member.qpn;
        count = count.wrapping_add(1);
    }
    count
}
