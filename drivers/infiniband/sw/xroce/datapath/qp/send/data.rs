// SPDX-License-Identifier: GPL-2.0

//! Finding the data of send work requests.

use super::io::{
    SendIo,
    SendQueue,
    SendWqe, //
};
use crate::access;
use crate::prelude::*;
use crate::qp::request::{
    Origin,
    Sge, //
};
use crate::qp::ring::RingReader;
use crate::tm::rendezvous;

impl SendIo {
    /// The gather list of work request `slot`.
    pub(crate) fn list(&self, slot: u32) -> &[Sge] {
        let slot = slot as usize;
        let count = self.wqes.get(slot).map_or(0, |w| w.head.num_sge) as usize;
        let from = slot.wrapping_mul(self.max_sge);
        self.sges.get(from..from.wrapping_add(count)).unwrap_or(&[])
    }

    /// Fills `out` from work request `slot`, wherever its data are.
    pub(crate) fn gather(
        &self,
        pd: PdId,
        slot: u32,
        offset: u32,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        let wqe = self.wqes.get(slot as usize).ok_or(Fault)?;
        if wqe.head.origin == Origin::Fin {
            let notice = rendezvous::notice(&wqe.head);
            let from = notice.get(offset as usize..).ok_or(Fault)?;
            out.copy_from_slice(from.get(..out.len()).ok_or(Fault)?);
            return Ok(());
        }
        match (wqe.head.inline_at, &self.queue) {
            (Some(at), SendQueue::User(ring)) => read_inline(ring, wqe, at, offset, out),
            (Some(_), _) => Err(Fault),
            (None, _) => access::gather(pd, self.list(slot), offset, out),
        }
    }

    /// Whether the data of work request `slot` are in its slot, or nowhere but in this structure.
    pub(crate) fn is_inline(&self, slot: u32) -> bool {
        self.wqes
            .get(slot as usize)
            .is_some_and(|wqe| wqe.head.inline_at.is_some())
            || self.is_notice(slot)
    }

    /// Whether work request `slot` tells a sender that its data were fetched.
    pub(crate) fn is_notice(&self, slot: u32) -> bool {
        self.wqes
            .get(slot as usize)
            .is_some_and(|wqe| wqe.head.origin == Origin::Fin)
    }

    /// The protection domain of the local keys of work request `slot`: of the device's, the one of
    /// the SRQ whose tags they belong to.
    pub(crate) fn list_pd(&self, qp: &WireQp, slot: u32) -> PdId {
        let origin = self.wqes.get(slot as usize).map(|wqe| wqe.head.origin);
        match (origin, &qp.srq) {
            (Some(Origin::Fetch), Some(srq)) => srq.pd,
            _ => qp.pd,
        }
    }

    /// Fills `out` with all the data of the request that was fetched last.
    pub(crate) fn gather_fetched(
        &self,
        pd: PdId,
        wqe: &SendWqe,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        match (wqe.head.inline_at, &self.queue) {
            (Some(at), SendQueue::User(ring)) => read_inline(ring, wqe, at, 0, out),
            (Some(_), _) => Err(Fault),
            (None, _) => {
                let list = self.scratch.get(..wqe.head.num_sge as usize).ok_or(Fault)?;
                access::gather(pd, list, 0, out)
            }
        }
    }
}

/// Reads inline data from where they lie in the ring. The slot is in use until the request is
/// retired; a user who changes it meanwhile changes what is sent and nothing else.
fn read_inline(
    ring: &RingReader,
    wqe: &SendWqe,
    at: u32,
    offset: u32,
    out: &mut [u8],
) -> Result<(), Fault> {
    let end = (offset as usize).checked_add(out.len()).ok_or(Fault)?;
    if end > wqe.head.length as usize {
        return Err(Fault);
    }
    let from = ring
        .slot_offset(wqe.index)
        .wrapping_add(at as usize)
        .wrapping_add(offset as usize);
    ring.mem().copy_out(from, out).map_err(|_| Fault)
}
