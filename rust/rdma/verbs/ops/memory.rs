// SPDX-License-Identifier: GPL-2.0

//! Operations on protection domains, memory regions, XRC domains and address handles.

use super::Ops;
use crate::{
    ah::{
        Ah,
        AhAttr, //
    },
    bindings,
    device::Device,
    errno::eopnotsupp,
    mem::KernelAddr,
    mr::{
        CreatedMr,
        Mr,
        UserRegion, //
    },
    pd::Pd,
    provider::Provider,
    uverbs::udata::Udata,
    xrcd::Xrcd, //
};
use core::{
    mem::MaybeUninit,
    ptr,
    sync::atomic::AtomicPtr, //
};
use kernel::{
    error::from_result,
    ffi::c_int,
    prelude::*, //
};

impl<P: Provider> Ops<P> {
    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn alloc_pd(
        pd: *mut bindings::ib_pd,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Set before the call; the device stays registered during it.
            let device = unsafe { Device::<P>::from_raw((*pd).device) };
            // SAFETY: Null or of the command that runs.
            let mut udata = unsafe { Udata::from_raw(udata) };
            let data = P::alloc_pd(device, udata.as_mut())?;
            // SAFETY: The object being created.
            unsafe { Pd::<P>::place(pd, data) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn dealloc_pd(
        pd: *mut bindings::ib_pd,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        if P::HAS_DEALLOC_PD {
            // SAFETY: Created, not yet destroyed.
            P::dealloc_pd(unsafe { Pd::from_raw(pd) });
        }
        // SAFETY: The object being destroyed; no reference is left.
        unsafe { Pd::<P>::unplace(pd) };
        0
    }

    /// Puts a new region where ib_core can have it.
    pub(super) fn new_mr(
        device: *mut bindings::ib_device,
        make: impl FnOnce() -> Result<CreatedMr<P::Mr>>,
    ) -> *mut bindings::ib_mr {
        // Evaluates the layout's assertions.
        let _size = Mr::<P>::SIZE;
        let mr = (|| {
            let memory = KBox::<MaybeUninit<Mr<P>>>::new_uninit(
                kernel::alloc::flags::GFP_KERNEL_ACCOUNT | kernel::alloc::flags::__GFP_ZERO,
            )?;
            let created = make()?;
            let mr = KBox::into_raw(memory).cast::<bindings::ib_mr>();
            // SAFETY: Zeroed memory of the size of `Mr<P>`, ours alone.
            unsafe {
                (*mr).device = device;
                (*mr).lkey = created.lkey;
                (*mr).rkey = created.rkey;
                Mr::<P>::place(mr, AtomicPtr::new(ptr::null_mut()), created.data);
            }
            Ok::<_, Error>(mr)
        })();
        match mr {
            Ok(mr) => mr,
            // Errors are the last 4095 addresses, as `ERR_PTR` makes them.
            Err(e) => ptr::without_provenance_mut(e.to_errno() as isize as usize),
        }
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn reg_user_mr(
        pd: *mut bindings::ib_pd,
        start: u64,
        length: u64,
        iova: u64,
        access: c_int,
        dmah: *mut bindings::ib_dmah,
        udata: *mut bindings::ib_udata,
    ) -> *mut bindings::ib_mr {
        // SAFETY: Created, not yet destroyed: its uobject is locked.
        let pd = unsafe { Pd::<P>::from_raw(pd) };
        Self::new_mr(pd.device().as_raw(), || {
            if !dmah.is_null() {
                return Err(eopnotsupp());
            }
            let region = UserRegion {
                start,
                length,
                iova,
                access: access as u32,
            };
            // SAFETY: Null or of the command that runs.
            let mut udata = unsafe { Udata::from_raw(udata) };
            P::reg_user_mr(pd, &region, udata.as_mut())
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn get_dma_mr(
        pd: *mut bindings::ib_pd,
        access: c_int,
    ) -> *mut bindings::ib_mr {
        // SAFETY: ib_core calls it from `ib_alloc_pd`, when the PD was created.
        let pd = unsafe { Pd::<P>::from_raw(pd) };
        Self::new_mr(pd.device().as_raw(), || {
            // SAFETY: Asked for by a kernel user, who decides whom it tells the keys; the provider
            // uses no other offsets than those that holders of the keys give: its part, see
            // `KernelAddr`.
            let memory = unsafe { KernelAddr::everything() };
            P::get_dma_mr(pd, access as u32, memory)
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn dereg_mr(
        mr: *mut bindings::ib_mr,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: Created, not yet destroyed.
        if let Err(e) = P::dereg_mr(unsafe { Mr::<P>::from_raw(mr) }) {
            return e.to_errno();
        }
        // SAFETY: The object being destroyed; no reference is left, and ib_core does not touch it
        // after success.
        unsafe {
            Mr::<P>::unplace(mr);
            drop(KBox::from_raw(mr.cast::<MaybeUninit<Mr<P>>>()));
        }
        0
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn alloc_xrcd(
        xrcd: *mut bindings::ib_xrcd,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Set before the call; the device stays registered during it.
            let device = unsafe { Device::<P>::from_raw((*xrcd).device) };
            // SAFETY: Null or of the command that runs.
            let mut udata = unsafe { Udata::from_raw(udata) };
            let data = P::alloc_xrcd(device, udata.as_mut())?;
            // SAFETY: The object being created.
            unsafe { Xrcd::<P>::place(xrcd, data) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn dealloc_xrcd(
        xrcd: *mut bindings::ib_xrcd,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        if P::HAS_DEALLOC_XRCD {
            // SAFETY: Created, not yet destroyed.
            P::dealloc_xrcd(unsafe { Xrcd::from_raw(xrcd) });
        }
        // SAFETY: The object being destroyed; no reference is left.
        unsafe { Xrcd::<P>::unplace(xrcd) };
        0
    }

    /// # Safety
    ///
    /// See the parent module. `init` and the address in it are lent, the source GID referenced.
    pub(super) unsafe extern "C" fn create_ah(
        ah: *mut bindings::ib_ah,
        init: *mut bindings::rdma_ah_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The PD was set before the call and stays during it.
            let pd = unsafe { Pd::<P>::from_raw((*ah).pd) };
            // SAFETY: Lent, see above.
            let (attr, flags) = unsafe { (AhAttr::from_raw((*init).ah_attr), (*init).flags) };
            let sleepable = flags & bindings::rdma_create_ah_flags_RDMA_CREATE_AH_SLEEPABLE != 0;
            // SAFETY: Null or of the command that runs.
            let mut udata = unsafe { Udata::from_raw(udata) };
            let data = P::create_ah(pd, &attr, sleepable, udata.as_mut())?;
            // SAFETY: The object being created.
            unsafe { Ah::<P>::place(ah, data) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module. `attr` is lent, the source GID referenced.
    pub(super) unsafe extern "C" fn modify_ah(
        ah: *mut bindings::ib_ah,
        attr: *mut bindings::rdma_ah_attr,
    ) -> c_int {
        from_result(|| {
            // SAFETY: `ah` is created, not yet destroyed; `attr` by contract.
            let (ah, attr) = unsafe { (Ah::<P>::from_raw(ah), AhAttr::from_raw(attr)) };
            P::modify_ah(ah, &attr).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// See the parent module. `attr` is lent for writing.
    pub(super) unsafe extern "C" fn query_ah(
        ah: *mut bindings::ib_ah,
        attr: *mut bindings::rdma_ah_attr,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Created, not yet destroyed.
            let found = P::query_ah(unsafe { Ah::<P>::from_raw(ah) })?;
            // SAFETY: Lent by the caller.
            found.to_raw(unsafe { &mut *attr });
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module. May be called in atomic context.
    pub(super) unsafe extern "C" fn destroy_ah(ah: *mut bindings::ib_ah, _flags: u32) -> c_int {
        if P::HAS_DESTROY_AH {
            // SAFETY: Created, not yet destroyed.
            P::destroy_ah(unsafe { Ah::from_raw(ah) });
        }
        // SAFETY: The object being destroyed; no reference is left.
        unsafe { Ah::<P>::unplace(ah) };
        0
    }
}
