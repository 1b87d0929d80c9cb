// SPDX-License-Identifier: GPL-2.0

//! Receive QPs by number: targets for which no process has an object.
//!
//! This is the interface of 2007 ("make receiving XRC QP independent of any one user process") as
//! OFED 1.3 implemented it. A process creates a target, takes it to RTR in the same call or later,
//! and keeps only its number. Processes register for the target. The target ends with its last
//! registration or with its domain.

use crate::domain::{
    Domain,
    Target, //
};
use crate::life::Life;
use crate::provider::{
    Counted,
    NewTarget,
    RcvQpProvider,
    XrcProvider, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::qp::{
    QpAttr,
    QpAttrMask as Mask,
    QpState, //
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
use roce::number::Qpn;

/// A file's registration for a target; dropping it ends it. Process context.
pub struct Registration<T: Target> {
    domain: Arc<Domain<T>>,
    qpn: Qpn,
    id: u64,
}

impl<T: Target> Registration<T> {
    pub(crate) fn new(domain: Arc<Domain<T>>, qpn: Qpn, id: u64) -> Self {
        Self { domain, qpn, id }
    }
}

impl<T: Target> Drop for Registration<T> {
    fn drop(&mut self) {
        self.domain.close_user(self.qpn, self.id, Life::unregister);
    }
}

/// What the object of a registration holds, that of a process.
pub struct Registered<P: XrcProvider> {
    _registration: Registration<P::Target>,
    /// What a registration that did not make the target counts as.
    _charge: Option<P::Charge>,
}

/// `Provider::create_rcv_qp`: makes a target and takes it to RTR, or leaves it in RESET when the
/// mask is empty. Process context.
///
/// # Errors
///
/// `EINVAL` for another mask that is not the proposal's and for bad values; what a create and a
/// modify call fail with.
pub fn create<P: RcvQpProvider>(
    xrcd: &Xrcd<P>,
    events: FileEvents,
    attr: &mut RcvQpAttr<'_>,
    end: RcvQpEnd,
) -> Result<(u32, Registered<P>)> {
    let steps = create_masks(attr.mask())?;
    let device = xrcd.device();
    let domain = xrcd.data().domain();
    let NewTarget {
        qpn,
        number,
        target,
        views,
    } = NewTarget::<P>::new(device, domain)?;
    let made = (|| {
        let shown = P::shown(&target);
        if let Some((to_init, to_rtr)) = steps {
            shown.modify(device, attr, to_init, Some(QpState::Init))?;
            shown.modify(device, attr, to_rtr, Some(QpState::Rtr))?;
        }
        domain.insert_by_number(qpn, target.clone(), views, events, end)
    })();
    match made {
        Ok(registration) => {
            P::publish_target(number, &target);
            Ok((
                qpn.get(),
                Registered {
                    _registration: registration,
                    _charge: None,
                },
            ))
        }
        Err(e) => {
            // No packet can have found it and its number is only reserved, but it may be past
            // RESET.
            P::discard(&target);
            Err(e)
        }
    }
}

/// The number that a process gave.
fn checked(given: u32) -> Result<Qpn> {
    // The same error as for a number that no target has.
    Qpn::checked(given).ok_or(EINVAL)
}

/// `Provider::register_rcv_qp`: registers a process for a target of the domain, however that was
/// made. Process context.
///
/// # Errors
///
/// Those of [`Domain::register`]; `ENOMEM` beyond the limits of the device.
pub fn register<P: RcvQpProvider>(
    xrcd: &Xrcd<P>,
    qpn: u32,
    events: FileEvents,
) -> Result<Registered<P>> {
    let charge = P::charge(xrcd.device(), Counted::User)?;
    Ok(Registered {
        _registration: xrcd.data().domain().register(checked(qpn)?, events)?,
        _charge: Some(charge),
    })
}

/// `Provider::modify_rcv_qp`: changes a target of the domain, as `ibv_modify_qp` does for one that
/// is open. Process context.
///
/// # Errors
///
/// `EINVAL` when the domain has no target with that number, and where `ibv_modify_qp` has
/// `EOPNOTSUPP`; those of a modify call.
pub fn modify<P: RcvQpProvider>(xrcd: &Xrcd<P>, qpn: u32, attr: &mut RcvQpAttr<'_>) -> Result {
    let mask = modify_mask(attr.mask())?;
    let target = xrcd.data().domain().target(checked(qpn)?)?;
    P::shown(&target).modify(xrcd.device(), attr, mask, None)
}

/// `Provider::query_rcv_qp`: reads the attributes of a target of the domain. Process context.
///
/// # Errors
///
/// `EINVAL` when the domain has no target with that number.
pub fn query<P: RcvQpProvider>(xrcd: &Xrcd<P>, qpn: u32) -> Result<QpAttr> {
    let target = xrcd.data().domain().target(checked(qpn)?)?;
    Ok(P::attributes(&target))
}

/// `Provider::rcv_qp_registration`: the handle of a file's registration. Process context.
///
/// # Errors
///
/// `EINVAL` when there is none.
pub fn registration<P: RcvQpProvider>(xrcd: &Xrcd<P>, qpn: u32, file: FileId) -> Result<u32> {
    xrcd.data().domain().registration(checked(qpn)?, file)
}

/// Attributes that a create call must have for the step from RESET to INIT.
const TO_INIT: Mask = Mask::ACCESS_FLAGS.union(Mask::PKEY_INDEX).union(Mask::PORT);

/// Those for the step from INIT to RTR.
const TO_RTR: Mask = Mask::AV
    .union(Mask::PATH_MTU)
    .union(Mask::DEST_QPN)
    .union(Mask::RQ_PSN)
    .union(Mask::MIN_RNR_TIMER);

/// Cuts the mask of a create call in two: for INIT, and for RTR. As in the proposal of 2007, note
/// 4: all of the first kind, all of the second, `MAX_DEST_RD_ATOMIC` or not (0 then: only SENDs and
/// WRITEs), and nothing else. `None` for an empty mask: the target stays in RESET, as in OFED 1.3.
///
/// # Errors
///
/// `EINVAL` for any other mask.
fn create_masks(mask: Mask) -> Result<Option<(Mask, Mask)>> {
    if mask.bits() == 0 {
        return Ok(None);
    }
    let needed = TO_INIT | TO_RTR;
    let allowed = needed | Mask::MAX_DEST_RD_ATOMIC;
    if !mask.contains(needed) || !allowed.contains(mask) {
        return Err(EINVAL);
    }
    // ib_core wants it in any case.
    Ok(Some((TO_INIT, TO_RTR | Mask::MAX_DEST_RD_ATOMIC)))
}

/// The mask of a modify call: without what has no meaning for a target and uverbs leaves out of
/// `ibv_modify_qp` as well.
///
/// # Errors
///
/// `EINVAL` for what no queue pair can be told after its creation.
fn modify_mask(mask: Mask) -> Result<Mask> {
    if !Mask::STANDARD.contains(mask) || mask.contains(Mask::CAP) {
        return Err(EINVAL);
    }
    let ignored = Mask::MAX_QP_RD_ATOMIC | Mask::RETRY_CNT | Mask::RNR_RETRY;
    Ok(Mask::from_bits(mask.bits() & !ignored.bits()))
}
