// SPDX-License-Identifier: GPL-2.0

//! Memory windows: remote keys for parts of a region, bound and unbound by work requests.
//!
//! A window of type 1 serves every queue pair of its protection domain. A window of type 2 (2B)
//! serves the queue pair on which it was bound. The gate of a window is open while the window is
//! bound, so nobody uses the window any more when an unbind or invalidation completes. A window
//! names its region by key. The region counts its windows and cannot be deregistered before them.

use crate::mr;
use crate::prelude::*;
use crate::qp::request::BindPart;
use crate::tables::{
    self,
    FIRST_MW, //
};
use rdma::gated::{
    Entry,
    Gated, //
};
use rdma::mr::{
    AccessFlag,
    AccessFlags, //
};
use rdma::mw::MwType;

/// Rights that a window can give. Local write is the region's affair and means nothing here.
const RIGHTS: AccessFlags = mr::REMOTE_WRITE
    .union(mr::REMOTE_READ)
    .union(mr::REMOTE_ATOMIC)
    .union(mr::PERSISTENT)
    .with(AccessFlag::FlushGlobal);
/// What a bind may say, besides the optional flags, which are ignored.
const SUPPORTED: AccessFlags = RIGHTS
    .with(AccessFlag::LocalWrite)
    .with(AccessFlag::ZeroBased);

/// Whether a key is one of a window.
pub fn is_window(key: Key) -> bool {
    key.index() >= FIRST_MW
}

/// What a window is bound to.
///
/// A window of type 2 stays bound when its queue pair is destroyed. Another queue pair of the same
/// protection domain can use it only once the numbers have come round.
#[derive(Clone, Copy)]
struct Bound {
    /// Key of the region.
    mr: Key,
    /// Address of the first byte, as the region is addressed.
    addr: u64,
    /// The same, as the window is addressed.
    base: u64,
    length: u64,
    rights: AccessFlags,
    /// The queue pair (type 2).
    qpn: Qpn,
}

/// What changes in a window.
struct State {
    key: Key,
    bound: Option<Bound>,
}

/// A memory window, as work requests and packets see it.
pub struct WireMw {
    pd: PdId,
    mw_type: MwType,
    /// Open while it is bound.
    state: Gated<State>,
}

impl WireMw {
    /// Makes a window of protection domain `pd` that is not bound. Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM.
    pub fn new(pd: PdId, mw_type: MwType, key: Key) -> Result<Ref<Self>> {
        let state = Gated::new(State { key, bound: None });
        Ref::new(WireMw { pd, mw_type, state }, GFP_ACCOUNT)
    }

    /// It has left the table: when this returns, nobody uses the window any more. Process context.
    pub fn close(&self) {
        self.state.write(|state, _| {
            state.unbind();
            // Who found the window before may still want to bind it: no request has this key.
            state.key = Key::default();
            (Entry::Closed, ())
        });
    }
}

impl State {
    /// Lets go of the region.
    fn unbind(&mut self) {
        if let (Some(bound), Some(tables)) = (self.bound.take(), tables::get()) {
            tables.mrs.with(bound.mr.index(), |mr| mr.unbind());
        }
    }
}

impl Bound {
    fn admits(&self, addr: u64, len: u64, needed: AccessFlags) -> Option<u64> {
        if !self.rights.contains_all(needed) {
            return None;
        }
        let offset = addr.checked_sub(self.base)?;
        let end = offset.checked_add(len)?;
        if end > self.length {
            return None;
        }
        self.addr.checked_add(offset)
    }
}

/// Runs `f` on what the key of a window names in a packet that came to queue pair `qpn`.
fn with_bound<R>(
    rkey: Key,
    pd: PdId,
    qpn: Qpn,
    f: impl FnOnce(&Bound) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let tables = tables::get().ok_or(Fault)?;
    tables
        .mws
        .with(rkey.index(), |mw| {
            if mw.pd != pd {
                return Err(Fault);
            }
            mw.state
                .read(|state| {
                    let bound = state.bound.as_ref().ok_or(Fault)?;
                    if state.key != rkey || mw.mw_type == MwType::Two && bound.qpn != qpn {
                        return Err(Fault);
                    }
                    f(bound)
                })
                .unwrap_or(Err(Fault))
        })
        .unwrap_or(Err(Fault))
}

/// Runs `f` on the memory that the key of a window names in a packet that came to queue pair `qpn`,
/// as [`mr::with_remote`].
pub(crate) fn with<R>(
    rkey: Key,
    pd: PdId,
    qpn: Qpn,
    addr: u64,
    len: u64,
    needed: AccessFlags,
    f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
) -> Result<R, Fault> {
    with_bound(rkey, pd, qpn, |bound| {
        let addr = bound.admits(addr, len, needed).ok_or(Fault)?;
        mr::with(bound.mr, pd, addr, len, AccessFlags::empty(), f)
    })
}

/// Address and length of all of a window, as it is addressed, if it may be used so.
pub(crate) fn whole(
    rkey: Key,
    pd: PdId,
    qpn: Qpn,
    needed: AccessFlags,
) -> Result<(u64, u64), Fault> {
    with_bound(rkey, pd, qpn, |bound| {
        let range = (bound.base, bound.length);
        bound.admits(range.0, range.1, needed).ok_or(Fault)?;
        Ok(range)
    })
}

/// A BIND_MW work request on `qp`.
pub(crate) fn bind(qp: &WireQp, bind: &BindPart) -> Result<(), WcStatus> {
    let error = WcStatus::MwBindErr;
    let number = bind.mw_rkey.index();
    if !is_window(bind.mw_rkey) || bind.new_rkey.index() != number {
        return Err(error);
    }
    let access = AccessFlags::parse(bind.access, SUPPORTED).ok_or(error)?;
    let tables = tables::get().ok_or(error)?;
    tables
        .mws
        .with(number, |mw| {
            if mw.pd != qp.pd || mw.mw_type == MwType::Two && bind.length == 0 {
                return Err(error);
            }
            // A window that is in use is closed only when that may be right.
            let stays = |state: &State| state.key != bind.mw_rkey || mw.mw_type == MwType::Two;
            if mw.state.read(stays) == Some(true) {
                return Err(error);
            }
            mw.state.write(|state, was| {
                if state.key != bind.mw_rkey || mw.mw_type == MwType::Two && was == Entry::Open {
                    return (was, Err(error));
                }
                if bind.length == 0 {
                    state.unbind();
                    state.key = bind.new_rkey;
                    return (Entry::Closed, Ok(()));
                }
                let rights = access & RIGHTS;
                // The window is addressed by numbers that do not wrap.
                let counted = bind
                    .addr
                    .checked_add(bind.length)
                    .and_then(|_| {
                        tables.mrs.with(bind.mr_lkey.index(), |mr| {
                            mr.bind(bind.mr_lkey, qp.pd, bind.addr, bind.length, rights)
                        })
                    })
                    .is_some_and(|counted| counted.is_ok());
                if !counted {
                    return (was, Err(error));
                }
                state.unbind();
                state.key = bind.new_rkey;
                state.bound = Some(Bound {
                    mr: bind.mr_lkey,
                    addr: bind.addr,
                    base: match access.contains(AccessFlag::ZeroBased) {
                        true => 0,
                        false => bind.addr,
                    },
                    length: bind.length,
                    rights,
                    qpn: qp.qpn,
                });
                (Entry::Open, Ok(()))
            })
        })
        .unwrap_or(Err(error))
}

/// Invalidates a window of type 2 that is bound on `qp`.
pub(crate) fn invalidate(qp: &WireQp, rkey: Key) -> Result<(), Fault> {
    tables::get()
        .and_then(|tables| {
            tables.mws.with(rkey.index(), |mw| {
                if mw.pd != qp.pd || mw.mw_type != MwType::Two {
                    return Err(Fault);
                }
                let fits = |state: &State| {
                    state.key == rkey && state.bound.is_some_and(|bound| bound.qpn == qp.qpn)
                };
                // As for a bind: closed only when that may be right.
                if mw.state.read(fits) == Some(false) {
                    return Err(Fault);
                }
                mw.state.write(|state, was| {
                    if !fits(state) {
                        return (was, Err(Fault));
                    }
                    state.unbind();
                    (Entry::Closed, Ok(()))
                })
            })
        })
        .unwrap_or(Err(Fault))
}
