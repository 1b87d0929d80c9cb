// SPDX-License-Identifier: GPL-2.0

//! Operations on objects with keys other than plain regions: re-registration, fast registration,
//! memory windows.

use super::Ops;
use crate::{
    bindings,
    mr::{
        Advice,
        AdvisedRange,
        Mr,
        Rereg,
        SgList,
        UserRegion, //
    },
    mw::{
        Mw,
        MwType, //
    },
    pd::Pd,
    provider::Provider,
    uverbs::udata::Udata, //
};
use core::ptr;
use kernel::{
    error::from_result,
    ffi::{
        c_int,
        c_uint, //
    },
    prelude::*, //
};

impl<P: Provider> Ops<P> {
    /// # Safety
    ///
    /// See the parent module. `pd` is the one that the region belongs to afterwards.
    pub(super) unsafe extern "C" fn rereg_user_mr(
        mr: *mut bindings::ib_mr,
        flags: c_int,
        start: u64,
        length: u64,
        iova: u64,
        access: c_int,
        pd: *mut bindings::ib_pd,
        _udata: *mut bindings::ib_udata,
    ) -> *mut bindings::ib_mr {
        let has = |flag: u32| flags as u32 & flag != 0;
        // SAFETY: Created, not yet destroyed: its uobject is locked.
        let owner = unsafe { Pd::<P>::from_raw(pd) };
        let access = has(bindings::ib_mr_rereg_flags_IB_MR_REREG_ACCESS).then_some(access as u32);
        let change = Rereg {
            memory: has(bindings::ib_mr_rereg_flags_IB_MR_REREG_TRANS).then_some(UserRegion {
                start,
                length,
                iova,
                access: access.unwrap_or(0),
            }),
            pd: has(bindings::ib_mr_rereg_flags_IB_MR_REREG_PD).then_some(owner),
            access,
            owner,
        };
        // SAFETY: Created, not yet destroyed: its uobject is locked for writing.
        match P::rereg_user_mr(unsafe { Mr::<P>::from_raw(mr) }, &change) {
            // The region stays the same object.
            Ok(()) => ptr::null_mut(),
            Err(e) => ptr::without_provenance_mut(e.to_errno() as isize as usize),
        }
    }

    /// # Safety
    ///
    /// See the parent module. `list` has `count` elements.
    pub(super) unsafe extern "C" fn advise_mr(
        pd: *mut bindings::ib_pd,
        advice: bindings::ib_uverbs_advise_mr_advice,
        flags: u32,
        list: *mut bindings::ib_sge,
        count: u32,
        _attrs: *mut bindings::uverbs_attr_bundle,
    ) -> c_int {
        from_result(|| {
            let advice = Advice::from_raw(advice)?;
            let mut ranges = KVec::with_capacity(count as usize, GFP_KERNEL)?;
            for i in 0..count as usize {
                // SAFETY: Inside the list (contract).
                let sge = unsafe { &*list.add(i) };
                // There is room for all of them.
                let _ = ranges.push_within_capacity(AdvisedRange {
                    addr: sge.addr,
                    length: sge.length,
                    lkey: sge.lkey,
                });
            }
            let wait =
                flags & bindings::ib_uverbs_advise_mr_flag_IB_UVERBS_ADVISE_MR_FLAG_FLUSH != 0;
            // SAFETY: Created, not yet destroyed: its uobject is locked.
            P::advise_mr(unsafe { Pd::<P>::from_raw(pd) }, advice, wait, &ranges).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn alloc_mr(
        pd: *mut bindings::ib_pd,
        mr_type: bindings::ib_mr_type,
        max_num_sg: u32,
    ) -> *mut bindings::ib_mr {
        // SAFETY: A kernel user's, not yet destroyed.
        let pd = unsafe { Pd::<P>::from_raw(pd) };
        Self::new_mr(pd.device().as_raw(), || {
            if mr_type != bindings::ib_mr_type_IB_MR_TYPE_MEM_REG {
                return Err(EINVAL);
            }
            P::alloc_mr(pd, max_num_sg)
        })
    }

    /// # Safety
    ///
    /// See the parent module. The list is mapped for the device, and its pages stay until the user
    /// invalidates or frees the region; `offset` is null or lent.
    pub(super) unsafe extern "C" fn map_mr_sg(
        mr: *mut bindings::ib_mr,
        sg: *mut kernel::bindings::scatterlist,
        count: c_int,
        offset: *mut c_uint,
    ) -> c_int {
        // SAFETY: Created, not yet destroyed.
        let mr = unsafe { Mr::<P>::from_raw(mr) };
        from_result(|| {
            // SAFETY: By contract.
            let mapped = P::map_mr_sg(mr, unsafe { SgList::new(mr, sg, count, offset) })?;
            // At most `count`.
            Ok(mapped as c_int)
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn alloc_mw(
        mw: *mut bindings::ib_mw,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Both were set before the call and stay during it.
            let (pd, mw_type) = unsafe { (Pd::<P>::from_raw((*mw).pd), (*mw).type_) };
            // SAFETY: Null or of the command that runs.
            let mut udata = unsafe { Udata::from_raw(udata) };
            let created = P::alloc_mw(pd, MwType::from_raw(mw_type)?, udata.as_mut())?;
            // SAFETY: The object being created.
            unsafe {
                (*mw).rkey = created.rkey;
                Mw::<P>::place(mw, created.data);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn dealloc_mw(mw: *mut bindings::ib_mw) -> c_int {
        // SAFETY: Created, not yet destroyed.
        P::dealloc_mw(unsafe { Mw::from_raw(mw) });
        // SAFETY: The object being destroyed; no reference is left.
        unsafe { Mw::<P>::unplace(mw) };
        0
    }
}
