// SPDX-License-Identifier: GPL-2.0

//! Receive QPs by number: XRC targets for which no process has an object.

use super::xrc::{
    NewTarget,
    Tgt, //
};
use crate::prelude::*;
use crate::verbs::provider::Xroce;
use datapath::limits::{
    Charge,
    Kind, //
};
use rdma::qp::{
    QpAttr,
    QpState as VerbsState, //
};
use rdma::uverbs::{
    file::{
        FileEvents,
        FileId, //
    },
    rcv_qp::{
        RcvQpAttr,
        RcvQpEnd, //
    }, //
};
use rdma::xrcd::Xrcd;
use xrc::rcv_qp;

/// What a process' registration holds.
pub(crate) struct RcvQpData {
    _registration: xrc::Registration<Tgt>,
    /// What a registration that did not make the target counts as.
    _charge: Option<Charge>,
}

/// Makes a target and takes it to RTR, or leaves it in RESET when the mask is empty. EINVAL for
/// another mask that is not the proposal's and for bad values; what a create and a modify call fail
/// with.
pub(crate) fn create(
    xrcd: &Xrcd<Xroce>,
    events: FileEvents,
    attr: &mut RcvQpAttr<'_>,
    end: RcvQpEnd,
) -> Result<(u32, RcvQpData)> {
    let steps = rcv_qp::create_masks(attr.mask())?;
    let device = xrcd.device();
    let domain = xrcd.data().domain();
    let NewTarget {
        reservation,
        target,
        views,
    } = NewTarget::new(device, domain)?;
    let qpn = target.wire.qpn;
    let made = (|| {
        let shown = &target.shown;
        if let Some((to_init, to_rtr)) = steps {
            shown.modify(device, attr, to_init, Some(VerbsState::Init))?;
            shown.modify(device, attr, to_rtr, Some(VerbsState::Rtr))?;
        }
        domain.insert_by_number(qpn, target.clone(), views, events, end)
    })();
    match made {
        Ok(registration) => {
            reservation.publish(target.wire.clone());
            Ok((
                qpn.get(),
                RcvQpData {
                    _registration: registration,
                    _charge: None,
                },
            ))
        }
        Err(e) => {
            // No packet can have found it and its number is only reserved, but it may be past
            // RESET.
            target.wire.stop();
            Err(e)
        }
    }
}

/// The number that a process gave. EINVAL for one that no target can have, as for one that none
/// has.
fn number(given: u32) -> Result<Qpn> {
    Qpn::checked(given).ok_or(EINVAL)
}

/// Registers a process for a target of the domain, however that was made.
pub(crate) fn register(xrcd: &Xrcd<Xroce>, qpn: u32, events: FileEvents) -> Result<RcvQpData> {
    let charge = Charge::new(&xrcd.device().data().wire, Kind::Qp)?;
    Ok(RcvQpData {
        _registration: xrcd.data().domain().register(number(qpn)?, events)?,
        _charge: Some(charge),
    })
}

/// Changes a target of the domain, as `ibv_modify_qp` does for one that is open; EINVAL where that
/// has EOPNOTSUPP.
pub(crate) fn modify(xrcd: &Xrcd<Xroce>, qpn: u32, attr: &mut RcvQpAttr<'_>) -> Result {
    let mask = rcv_qp::modify_mask(attr.mask())?;
    let target = xrcd.data().domain().target(number(qpn)?)?;
    target.shown.modify(xrcd.device(), attr, mask, None)
}

/// Reads the attributes of a target of the domain.
pub(crate) fn query(xrcd: &Xrcd<Xroce>, qpn: u32) -> Result<QpAttr> {
    let target = xrcd.data().domain().target(number(qpn)?)?;
    Ok(target.wire.attributes())
}

/// The handle of a file's registration.
pub(crate) fn registration(xrcd: &Xrcd<Xroce>, qpn: u32, file: FileId) -> Result<u32> {
    xrcd.data().domain().registration(number(qpn)?, file)
}
