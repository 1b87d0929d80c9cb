// SPDX-License-Identifier: GPL-2.0

//! Which shared receive queue an XRC packet names, and which memory it may access through it.

use crate::prelude::*;
use crate::tables;
use roce::responder::ReceiveError;
use roce::xrc::{
    check_domain,
    Found, //
};

/// The XRC SRQ `srqn`, if the QP's domain may use it. Any context.
pub(super) fn srq(qp: &WireQp, srqn: Srqn) -> Result<Ref<WireSrq>, ReceiveError> {
    let mut checked = None;
    let srq = tables::get().and_then(|t| {
        // The sender of the packet chose the number: what is another domain's is not even held.
        t.srqs.get_if(srqn.get(), |srq| {
            checked.insert(check(qp, Some(srq))).is_ok()
        })
    });
    checked.unwrap_or_else(|| check(qp, None))?;
    srq.ok_or(ReceiveError::InvalidSrq)
}

/// Runs `f` on the XRC SRQ `srqn`, if the QP's domain may use it. Any context.
pub(super) fn with_srq<R>(
    qp: &WireQp,
    srqn: Srqn,
    f: impl FnOnce(&WireSrq) -> R,
) -> Result<R, ReceiveError> {
    tables::get()
        .and_then(|t| {
            t.srqs
                .with(srqn.get(), |srq| check(qp, Some(srq)).map(|()| f(srq)))
        })
        .unwrap_or_else(|| check(qp, None).and(Err(ReceiveError::InvalidSrq)))
}

/// The protection domain that remote keys must belong to: the QP's, or for XRC that of the SRQ that
/// the packet names. Any context.
pub(crate) fn remote_pd(qp: &WireQp, srqn: Option<Srqn>) -> Result<PdId, Fault> {
    match srqn {
        None => Ok(qp.pd),
        Some(srqn) => with_srq(qp, srqn, |srq| srq.pd).map_err(|_| Fault),
    }
}

/// Asks the rules of XRC about what was found under an SRQ number; counts what they forbid. A queue
/// that is broken is there, and still says whose memory it is.
fn check(qp: &WireQp, srq: Option<&WireSrq>) -> Result<(), ReceiveError> {
    let found = srq
        .filter(|srq| !srq.is_gone())
        .and_then(|srq| srq.domain)
        .map_or(Found::Nothing, Found::Domain);
    let result = match qp.domain {
        Some(own) => check_domain(found, own),
        None => Err(ReceiveError::InvalidSrq),
    };
    if result.is_err() {
        qp.device.count(Counter::XrcViolation, 1);
    }
    result
}
