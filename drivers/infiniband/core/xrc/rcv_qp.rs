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
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::qp::QpAttrMask as Mask;
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
pub fn create_masks(mask: Mask) -> Result<Option<(Mask, Mask)>> {
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
pub fn modify_mask(mask: Mask) -> Result<Mask> {
    if !Mask::STANDARD.contains(mask) || mask.contains(Mask::CAP) {
        return Err(EINVAL);
    }
    let ignored = Mask::MAX_QP_RD_ATOMIC | Mask::RETRY_CNT | Mask::RNR_RETRY;
    Ok(Mask::from_bits(mask.bits() & !ignored.bits()))
}
