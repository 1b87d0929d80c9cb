// SPDX-License-Identifier: GPL-2.0

//! Methods of XRC domains on targets that processes know by their number.

use super::Ops;
use crate::{
    bindings,
    provider::Provider,
    uverbs::{
        file::{
            FileId,
            OwnedFileEvents, //
        },
        rcv_qp::{
            RcvQpAttr,
            RcvQpEnd,
            Registration, //
        },
    },
    xrcd::Xrcd, //
};
use core::ffi::c_void;
use kernel::{
    error::from_result,
    ffi::c_int,
    prelude::*, //
};

impl<P: Provider> Ops<P> {
    /// What the methods call.
    pub(crate) const RCV_QP: bindings::xrdma_rcv_qp_ops = bindings::xrdma_rcv_qp_ops {
        create: Some(Self::create_rcv_qp),
        reg: Some(Self::register_rcv_qp),
        unreg: Some(Self::unregister_rcv_qp),
        modify: Some(Self::modify_rcv_qp),
        query: Some(Self::query_rcv_qp),
        find: Some(Self::find_rcv_qp),
    };

    /// Gives an object that is being made what it refers to.
    ///
    /// # Safety
    ///
    /// `uobject` must be a registration that is being made by the command that runs.
    unsafe fn place_registration(
        uobject: *mut bindings::ib_uobject,
        make: impl FnOnce(&OwnedFileEvents) -> Result<P::RcvQp>,
    ) -> Result {
        // SAFETY: By contract; `unregister_rcv_qp` or an error drops it.
        let events = unsafe { OwnedFileEvents::new(uobject, P::RCV_QP_EVENT)? };
        let registration = Registration::<P> {
            _data: make(&events)?,
            _events: events,
        };
        let registration = KBox::new(registration, GFP_KERNEL_ACCOUNT)?;
        // SAFETY: By contract.
        unsafe { (*uobject).object = KBox::into_raw(registration).cast() };
        Ok(())
    }

    /// # Safety
    ///
    /// See the parent module. `uobject` is a registration that is being made; `attr` is lent, zero
    /// where `mask` says nothing; `qpn` is lent for writing.
    unsafe extern "C" fn create_rcv_qp(
        xrcd: *mut bindings::ib_xrcd,
        uobject: *mut bindings::ib_uobject,
        attr: *mut bindings::ib_qp_attr,
        mask: u32,
        persistent: bool,
        udata: *mut bindings::ib_udata,
        qpn: *mut u32,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Created, not yet destroyed: the command has locked its object.
            let xrcd = unsafe { Xrcd::<P>::from_raw(xrcd) };
            // SAFETY: By contract.
            let mut attr =
                unsafe { RcvQpAttr::from_raw(xrcd.device().as_raw(), attr, mask, udata) };
            let end = if persistent {
                RcvQpEnd::Domain
            } else {
                RcvQpEnd::LastRegistration
            };
            // SAFETY: By contract.
            unsafe {
                Self::place_registration(uobject, |events| {
                    let (number, data) =
                        P::create_rcv_qp(xrcd, (**events).clone(), &mut attr, end)?;
                    qpn.write(number);
                    Ok(data)
                })?;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module. `uobject` is a registration that is being made.
    unsafe extern "C" fn register_rcv_qp(
        xrcd: *mut bindings::ib_xrcd,
        uobject: *mut bindings::ib_uobject,
        qpn: u32,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Created, not yet destroyed: the command has locked its object.
            let xrcd = unsafe { Xrcd::<P>::from_raw(xrcd) };
            // SAFETY: By contract.
            unsafe {
                Self::place_registration(uobject, |events| {
                    P::register_rcv_qp(xrcd, qpn, (**events).clone())
                })?;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module. `object` is what [`Self::place_registration`] gave to an object that
    /// is being destroyed.
    unsafe extern "C" fn unregister_rcv_qp(object: *mut c_void) {
        // SAFETY: By contract, and nobody looks at it any more.
        drop(unsafe { KBox::from_raw(object.cast::<Registration<P>>()) });
    }

    /// # Safety
    ///
    /// See the parent module. `attr` is lent, zero where `mask` says nothing.
    unsafe extern "C" fn modify_rcv_qp(
        xrcd: *mut bindings::ib_xrcd,
        qpn: u32,
        attr: *mut bindings::ib_qp_attr,
        mask: u32,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Created, not yet destroyed: the command has locked its object.
            let xrcd = unsafe { Xrcd::<P>::from_raw(xrcd) };
            // SAFETY: By contract.
            let mut attr =
                unsafe { RcvQpAttr::from_raw(xrcd.device().as_raw(), attr, mask, udata) };
            P::modify_rcv_qp(xrcd, qpn, &mut attr).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// See the parent module. `attr` is zeroed and lent for writing.
    unsafe extern "C" fn query_rcv_qp(
        xrcd: *mut bindings::ib_xrcd,
        qpn: u32,
        attr: *mut bindings::ib_qp_attr,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Created, not yet destroyed: the command has locked its object.
            let found = P::query_rcv_qp(unsafe { Xrcd::from_raw(xrcd) }, qpn)?;
            // SAFETY: Lent by the caller.
            found.to_raw(unsafe { &mut *attr });
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module. `handle` is lent for writing.
    unsafe extern "C" fn find_rcv_qp(
        xrcd: *mut bindings::ib_xrcd,
        file: *mut bindings::ib_uverbs_file,
        qpn: u32,
        handle: *mut u32,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Created, not yet destroyed: the command has locked its object.
            let xrcd = unsafe { Xrcd::<P>::from_raw(xrcd) };
            let found = P::rcv_qp_registration(xrcd, qpn, FileId::of(file))?;
            // SAFETY: Lent by the caller.
            unsafe { handle.write(found) };
            Ok(0)
        })
    }
}
