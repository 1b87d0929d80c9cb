// SPDX-License-Identifier: GPL-2.0

//! Which shared receive queue an XRC packet names, and which memory it may access through it. Crate
//! `xrc` has the rules.

use crate::prelude::*;
use crate::tables::{
    self,
    Tables, //
};
use roce::responder::ReceiveError;

/// The XRC SRQ `srqn`, if the QP's domain may use it. Any context.
pub(super) fn srq(qp: &WireQp, srqn: Srqn) -> Result<Ref<WireSrq>, ReceiveError> {
    look_up(qp, |tables, domain| tables.srqs.get(srqn, domain))
}

/// Runs `f` on the XRC SRQ `srqn`, if the QP's domain may use it. Any context.
pub(super) fn with_srq<R>(
    qp: &WireQp,
    srqn: Srqn,
    f: impl FnOnce(&WireSrq) -> R,
) -> Result<R, ReceiveError> {
    look_up(qp, |tables, domain| tables.srqs.with(srqn, domain, f))
}

/// The protection domain that remote keys must belong to: the QP's, or for XRC that of the SRQ that
/// the packet names. Any context.
pub(crate) fn remote_pd(qp: &WireQp, srqn: Option<Srqn>) -> Result<PdId, Fault> {
    match srqn {
        None => Ok(qp.pd),
        Some(srqn) => with_srq(qp, srqn, |srq| srq.pd).map_err(|_| Fault),
    }
}

/// Looks for an SRQ that the QP's domain may use; counts what that does not allow.
fn look_up<R>(
    qp: &WireQp,
    find: impl FnOnce(&Tables, u64) -> Result<R, ReceiveError>,
) -> Result<R, ReceiveError> {
    let result = match (tables::get(), qp.domain) {
        (Some(tables), Some(own)) => find(tables, own),
        _ => Err(ReceiveError::InvalidSrq),
    };
    if result.is_err() {
        qp.device.count(Counter::XrcViolation, 1);
    }
    result
}
