// SPDX-License-Identifier: GPL-2.0

//! XRC targets that processes know only by their number.
//!
//! The methods and their attributes belong to the ABI of the driver, which describes them to uverbs
//! in C (`xrdma_driver_methods`).

use crate::{
    bindings,
    provider::Provider,
    qp::QpAttrMask,
    uverbs::file::OwnedFileEvents, //
};
use core::marker::PhantomData;

/// The attributes that a process gave, to be applied by
/// [`TrackedQp::modify`](crate::restrack::TrackedQp::modify).
///
/// # Invariants
///
/// `attr` and `udata` are valid, the latter of the command that runs on `device`, for all of `'a`.
pub struct RcvQpAttr<'a> {
    pub(crate) device: *const bindings::ib_device,
    pub(crate) attr: *mut bindings::ib_qp_attr,
    pub(crate) udata: *mut bindings::ib_udata,
    mask: QpAttrMask,
    _lent: PhantomData<&'a mut bindings::ib_qp_attr>,
}

impl RcvQpAttr<'_> {
    /// Wraps what the method passes.
    ///
    /// # Safety
    ///
    /// `attr` must be lent for writing, zero where `mask` says nothing, and `udata` the
    /// `driver_udata` of the command that runs on `device`, both for all of the value's life.
    pub(crate) unsafe fn from_raw(
        device: *const bindings::ib_device,
        attr: *mut bindings::ib_qp_attr,
        mask: u32,
        udata: *mut bindings::ib_udata,
    ) -> Self {
        // INVARIANT: By contract.
        Self {
            device,
            attr,
            udata,
            mask: QpAttrMask::from_bits(mask),
            _lent: PhantomData,
        }
    }

    /// Which attributes the process gave. The others are zero.
    pub fn mask(&self) -> QpAttrMask {
        self.mask
    }
}

/// When a target that is made by number ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RcvQpEnd {
    /// When its last registration has ended, or with its domain.
    LastRegistration,
    /// With its domain.
    Domain,
}

/// What the object of a registration refers to. The order of the fields is the order of their end.
pub(crate) struct Registration<P: Provider> {
    pub(crate) _data: P::RcvQp,
    pub(crate) _events: OwnedFileEvents,
}
