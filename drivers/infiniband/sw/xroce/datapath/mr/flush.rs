// SPDX-License-Identifier: GPL-2.0

//! FLUSH: makes data that a peer wrote visible to everybody, or persistent.

use super::{
    with_remote,
    Region,
    WireMr, //
};
use crate::mw;
use crate::prelude::*;
use crate::tables;
use rdma::mr::{
    AccessFlag,
    AccessFlags, //
};
use rdma::work;
use roce::responder::{
    Flush,
    Placement, //
};

/// Bytes that are written back without looking around: on-demand memory holds as many at once.
const STEP: u64 = 256 << 10;

/// The rights that a FLUSH needs.
fn needed(placement: Placement) -> AccessFlags {
    let mut needed = AccessFlags::empty();
    if placement.global {
        needed |= AccessFlag::FlushGlobal;
    }
    if placement.persistent {
        needed |= AccessFlag::FlushPersistent;
    }
    needed
}

impl WireMr {
    /// Address and length of all of it, if the key fits and it may be used so.
    fn whole(&self, key: Key, pd: PdId, needed: AccessFlags) -> Result<(u64, u64), Fault> {
        // The gate is for those who may come in.
        if self.pd != pd {
            return Err(Fault);
        }
        let (addr, len) = match &self.kind {
            Region::Fixed(r) => (r.iova, r.length),
            Region::Fast(fast) => fast.read(|r| (r.iova, r.memory.len())).ok_or(Fault)?,
        };
        self.with(key, pd, addr, len, needed, |_, _| Ok((addr, len)))
    }
}

/// The range that a FLUSH from the peer of `qp` is about, if it is permitted.
fn range(qp: &WireQp, pd: PdId, flush: &Flush) -> Result<(u64, u64), Fault> {
    let needed = needed(flush.placement);
    let (rkey, qpn) = (flush.rkey, qp.qpn);
    if !flush.whole_region {
        let range = (flush.va, u64::from(flush.len));
        return with_remote(rkey, pd, qpn, range.0, range.1, needed, |_, _| Ok(range));
    }
    if mw::is_window(rkey) {
        return mw::whole(rkey, pd, qpn, needed);
    }
    tables::get()
        .and_then(|tables| {
            tables
                .mrs
                .with(rkey.index(), |mr| mr.whole(rkey, pd, needed))
        })
        .unwrap_or(Err(Fault))
}

/// Executes a FLUSH from the peer of `qp` on memory of protection domain `pd`.
///
/// What this host wrote is seen by all its CPUs and devices after a fence. To persistence, the CPU
/// caches of the range are written back, which takes its time: queue pairs that may meet such
/// memory run in a thread. The key is checked again at each step. It ends before its last step with
/// a fault when `qp` is not connected any more; and without one when `sender` is not, the one of
/// this host in whose run this is done, if there is one: it has to see to it that its request does
/// not pass for done. So it has when the run pauses for memory: `left` is what remains then, to be
/// given to the next call.
pub(crate) fn flush(
    qp: &WireQp,
    sender: Option<&WireQp>,
    pd: PdId,
    flush: &Flush,
    left: &mut Option<(u64, u64)>,
) -> Result<(), Fault> {
    let (mut at, mut rest) = match left.take() {
        Some(left) => left,
        None => range(qp, pd, flush)?,
    };
    full_fence();
    if !flush.placement.persistent {
        return Ok(());
    }
    while rest > 0 {
        let now = rest.min(STEP);
        let needed = AccessFlag::FlushPersistent.into();
        let done = with_remote(flush.rkey, pd, qp.qpn, at, now, needed, |memory, offset| {
            memory.write_back(offset, now as usize)
        });
        if done.is_err() && work::is_paused() {
            *left = Some((at, rest));
            return Ok(());
        }
        // The reset of the sender has cut the wait for memory short.
        if done.is_err() && sender.is_some_and(|sender| sender.state() == QpState::Reset) {
            return Ok(());
        }
        done?;
        at = at.wrapping_add(now);
        rest = rest.wrapping_sub(now);
        if rest == 0 {
            break;
        }
        if sender.is_some_and(|sender| !sender.state().is_connected()) {
            return Ok(());
        }
        if !qp.state().is_connected() {
            return Err(Fault);
        }
        if work::may_sleep() {
            work::cond_resched();
        }
    }
    Ok(())
}
