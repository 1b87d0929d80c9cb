// SPDX-License-Identifier: GPL-2.0

//! The limits of a device, and how much of each is in use.
//!
//! The memory of an object is charged to the memory cgroup of the process that creates it. The
//! numbers here limit how much of the module's number spaces one device may use.

use crate::prelude::*;

/// Queue pairs.
pub const MAX_QP: u32 = 1 << 18;
/// Work requests of a send or receive queue.
pub const MAX_QP_WR: u32 = 1 << 14;
/// Elements of a gather or scatter list.
pub const MAX_SGE: u32 = 32;
/// Bytes of inline data: what as many elements would take in a slot.
pub const MAX_INLINE: u32 = 512;
/// READs and atomics of the peer that a queue pair may have to answer.
pub const MAX_RD_ATOMIC: u8 = 64;
/// READs and atomics that a QP may have outstanding at its peer: what crate `roce` keeps track of.
pub const MAX_INIT_RD_ATOMIC: u8 = roce::requester::MAX_RD_ATOMIC;
/// What `ibv_modify_qp` accepts for that number. The connection manager passes on what the peer
/// offers, which for rxe is up to 128; the requester has no more than [`MAX_INIT_RD_ATOMIC`]
/// outstanding.
pub const MAX_OFFERED_RD_ATOMIC: u8 = 128;
/// Completion queues.
pub const MAX_CQ: u32 = 1 << 16;
/// Completions of a queue.
pub const MAX_CQE: u32 = 1 << 19;
/// Completions that an event may be held back for.
pub const MAX_CQ_MODERATION_COUNT: u16 = 1 << 14;
/// Microseconds that an event may be held back.
pub const MAX_CQ_MODERATION_PERIOD: u16 = 1 << 14;
/// Shared receive queues.
pub const MAX_SRQ: u32 = 1 << 16;
/// Receives of a shared receive queue.
pub const MAX_SRQ_WR: u32 = 1 << 15;
/// Tags in the matching list of a shared receive queue.
pub const MAX_TM_TAGS: u32 = 1 << 17;
/// Operations in the ring of a matching list: they may all be executed in softirq, before one
/// message.
pub const MAX_TM_OPS: u32 = 1 << 13;
/// Elements of a tag's scatter list.
pub const MAX_TM_SGE: u32 = 4;
/// Bytes of a rendezvous request.
pub const MAX_RNDV_HDR: u32 = 64;
/// Memory regions.
pub const MAX_MR: u32 = 1 << 19;
/// Memory windows.
pub const MAX_MW: u32 = 1 << 19;
/// Pages of a fast registration.
pub const MAX_FAST_PAGES: u32 = 512;
/// Bytes of a memory region.
pub const MAX_MR_SIZE: u64 = 1 << 40;
/// Allocations of device memory.
pub const MAX_DM: u32 = 1 << 12;
/// Bytes of one of them.
pub const MAX_DM_SIZE: u64 = abi::XROCE_DM_MAX_SIZE as u64;
/// Protection domains.
pub const MAX_PD: u32 = 1 << 16;
/// Address handles.
pub const MAX_AH: u32 = 1 << 16;
/// XRC domains.
pub const MAX_XRCD: u32 = 1 << 14;
/// XRC target QPs of one domain.
pub const MAX_TGT_PER_DOMAIN: usize = 1 << 16;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Queue pairs, and views of XRC targets.
    Qp,
    /// Completion queues.
    Cq,
    /// Shared receive queues.
    Srq,
    /// Memory regions.
    Mr,
    /// Memory windows.
    Mw,
    /// Allocations of device memory.
    Dm,
    /// Protection domains.
    Pd,
    /// Address handles.
    Ah,
    /// XRC domains.
    Xrcd,
}

const KINDS: usize = 9;

impl Kind {
    fn max(self) -> u32 {
        match self {
            Kind::Qp => MAX_QP,
            Kind::Cq => MAX_CQ,
            Kind::Srq => MAX_SRQ,
            Kind::Mr => MAX_MR,
            Kind::Mw => MAX_MW,
            Kind::Dm => MAX_DM,
            Kind::Pd => MAX_PD,
            Kind::Ah => MAX_AH,
            Kind::Xrcd => MAX_XRCD,
        }
    }
}

/// Objects in use, by kind.
pub(crate) struct Used([Atomic<u32>; KINDS]);

impl Used {
    pub(crate) fn new() -> Self {
        Used([const { Atomic::new(0) }; KINDS])
    }

    fn of(&self, kind: Kind) -> Option<&Atomic<u32>> {
        self.0.get(kind as usize)
    }
}

/// One object counts against the limits of its device for as long as this lives.
pub struct Charge {
    device: Arc<WireDevice>,
    kind: Kind,
}

impl Charge {
    /// Counts one more object. Fails with ENOMEM when the device has as many as it can. Any
    /// context.
    ///
    /// # Errors
    ///
    /// ENOMEM when the device has as many as it can.
    pub fn new(device: &Arc<WireDevice>, kind: Kind) -> Result<Self> {
        let used = device.used().of(kind).ok_or(EINVAL)?;
        // Adds first: two racing charges at the limit may both fail, never both succeed.
        if used.fetch_add(1, Relaxed) >= kind.max() {
            used.fetch_sub(1, Relaxed);
            return Err(ENOMEM);
        }
        Ok(Charge {
            device: device.clone(),
            kind,
        })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(used) = self.device.used().of(self.kind) {
            used.fetch_sub(1, Relaxed);
        }
    }
}
