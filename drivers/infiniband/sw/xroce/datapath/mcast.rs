// SPDX-License-Identifier: GPL-2.0

//! Multicast groups: which datagram queue pairs get the packets to a group address.
//!
//! The IP stack of the namespace does the rest. A queue pair that joins a group makes its net
//! device a member (IGMP, MLD, address filter). Packets that are sent to a group return to the
//! members on this host through the multicast loop of the stack.

use crate::prelude::*;
use crate::tables;

/// Queue pairs that one group can have.
pub const MAX_QPS: usize = 56;
/// Memberships, of all groups of all devices. Nobody has a share: one process may use them up.
pub const MAX_MEMBERS: usize = 1 << 12;
/// Groups that can have members: each has one at least.
pub const MAX_GROUPS: u32 = MAX_MEMBERS as u32;

/// A queue pair in a group. Sorted by group, so that a packet finds its members together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    ns: u64,
    group: [u8; 16],
    qpn: Qpn,
}

impl Member {
    /// The membership of `qp` in `group`.
    pub fn new(qp: &WireQp, group: &GidAddr) -> Self {
        Member {
            ns: qp.ns().0,
            group: group.0,
            qpn: qp.qpn,
        }
    }

    /// What tells its group from others.
    fn group(&self) -> (u64, [u8; 16]) {
        (self.ns, self.group)
    }
}

/// A membership. ib_core counts every attach that succeeds, and a queue pair with a count cannot be
/// destroyed; so each of them wants a detach that succeeds. uverbs lets a process attach one queue
/// pair to one group once for every LID, which means nothing here.
#[derive(Clone, Copy)]
pub struct Membership {
    member: Member,
    /// Attaches without their detach, at least one.
    attaches: u16,
}

/// The memberships of all queue pairs, sorted by member.
pub type Members = KVec<Membership>;

/// Counts an attach, and enters the member if it is the first; true when it was. ENOMEM when the
/// group is full, or the attaches of the member are too many to be counted. Process context.
///
/// # Errors
///
/// ENOMEM when the group or the table is full, when the attaches of the member cannot be counted,
/// and when memory is short; ENODEV before the module is loaded.
pub fn enter(member: Member, ns: NamespaceId, group: &GidAddr) -> Result<bool> {
    let tables = tables::tables()?;
    loop {
        let room = {
            let mut members = tables.groups.lock();
            let at = match members.binary_search_by_key(&member, |m| m.member) {
                Ok(at) => {
                    let known = members.get_mut(at).ok_or(EINVAL)?;
                    known.attaches = known.attaches.checked_add(1).ok_or(ENOMEM)?;
                    return Ok(false);
                }
                Err(at) => at,
            };
            let first = members.partition_point(|m| m.member.group() < (ns.0, group.0));
            let end = members.partition_point(|m| m.member.group() <= (ns.0, group.0));
            if end.wrapping_sub(first) >= MAX_QPS || members.len() >= MAX_MEMBERS {
                return Err(ENOMEM);
            }
            let first = Membership {
                member,
                attaches: 1,
            };
            if members.push_within_capacity(first).is_ok() {
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
fn move_last_to(members: &mut [Membership], at: usize) {
    let mut last = None;
    for member in members.get_mut(at..).unwrap_or(&mut []).iter_mut().rev() {
        if let Some(behind) = last.replace(member) {
            if let Some(here) = &mut last {
                core::mem::swap(behind, *here);
            }
        }
    }
}

/// What the end of an attach is.
pub enum Left {
    /// It was not attached.
    Nothing,
    /// Others are left.
    One,
    /// It was the last, and the member is none any more.
    Last,
}

/// Takes back an attach. Process context.
pub fn leave(member: Member) -> Left {
    let Some(tables) = tables::get() else {
        return Left::Nothing;
    };
    let mut emptied = KVec::new();
    let mut members = tables.groups.lock();
    let Ok(at) = members.binary_search_by_key(&member, |m| m.member) else {
        return Left::Nothing;
    };
    match members.get_mut(at) {
        Some(known) if known.attaches > 1 => {
            known.attaches = known.attaches.wrapping_sub(1);
            return Left::One;
        }
        _ => {}
    }
    let _ = members.remove(at);
    if members.is_empty() {
        // A static must not keep memory when the module goes.
        core::mem::swap(&mut *members, &mut emptied);
    }
    drop(members);
    Left::Last
}

/// Numbers of the queue pairs of a group. Any context.
pub(crate) fn members(ns: NamespaceId, group: &GidAddr, out: &mut [Qpn; MAX_QPS]) -> usize {
    let Some(tables) = tables::get() else {
        return 0;
    };
    let members = tables.groups.lock();
    let from = members.partition_point(|m| m.member.group() < (ns.0, group.0));
    let mut count = 0usize;
    for (to, found) in out.iter_mut().zip(members.get(from..).unwrap_or(&[])) {
        if found.member.group() != (ns.0, group.0) {
            break;
        }
        *to = found.member.qpn;
        count = count.wrapping_add(1);
    }
    count
}
