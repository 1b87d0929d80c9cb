// SPDX-License-Identifier: GPL-2.0

//! Operations on device memory.

use super::Ops;
use crate::{
    bindings,
    device::Device,
    dm::{
        Dm,
        DmAlloc,
        DmRegion, //
    },
    pd::Pd,
    provider::Provider,
    ucontext::UContext, //
};
use core::{
    mem::MaybeUninit,
    ptr, //
};
use kernel::{
    ffi::c_int,
    prelude::*, //
};

impl<P: Provider> Ops<P> {
    /// # Safety
    ///
    /// See the parent module. `attr` is lent; `attrs` is the bundle of the command that runs, the
    /// uverbs method that allocates device memory.
    pub(super) unsafe extern "C" fn alloc_dm(
        device: *mut bindings::ib_device,
        context: *mut bindings::ib_ucontext,
        attr: *mut bindings::ib_dm_alloc_attr,
        attrs: *mut bindings::uverbs_attr_bundle,
    ) -> *mut bindings::ib_dm {
        // Evaluates the layout's assertions.
        let _size = Dm::<P>::SIZE;
        let dm = (|| {
            let memory = KBox::<MaybeUninit<Dm<P>>>::new_uninit(
                kernel::alloc::flags::GFP_KERNEL_ACCOUNT | kernel::alloc::flags::__GFP_ZERO,
            )?;
            // SAFETY: The command runs in this context, on this device, with these attributes.
            let (this, alloc) = unsafe {
                (
                    Device::<P>::from_raw(device),
                    DmAlloc {
                        length: (*attr).length,
                        log_alignment: (*attr).alignment,
                        context: UContext::<P>::from_raw(context),
                        handle: bindings::xrdma_ib_dm_handle(attrs),
                    },
                )
            };
            let created = P::alloc_dm(this, &alloc)?;
            let dm = KBox::into_raw(memory).cast::<bindings::ib_dm>();
            // SAFETY: Zeroed memory of the size of `Dm<P>`, ours alone.
            unsafe {
                (*dm).device = device;
                Dm::<P>::place(dm, created.data);
            }
            Ok::<_, Error>(dm)
        })();
        match dm {
            Ok(dm) => dm,
            // Errors are the last 4095 addresses, as `ERR_PTR` makes them.
            Err(e) => ptr::without_provenance_mut(e.to_errno() as isize as usize),
        }
    }

    /// # Safety
    ///
    /// See the parent module. No region of the memory is left (`usecnt`).
    pub(super) unsafe extern "C" fn dealloc_dm(
        dm: *mut bindings::ib_dm,
        _attrs: *mut bindings::uverbs_attr_bundle,
    ) -> c_int {
        // SAFETY: The object being destroyed; no reference is left, and ib_core does not touch it
        // afterwards. Allocated by `alloc_dm`.
        unsafe {
            Dm::<P>::unplace(dm);
            drop(KBox::from_raw(dm.cast::<MaybeUninit<Dm<P>>>()));
        }
        0
    }

    /// # Safety
    ///
    /// See the parent module. `attr` is lent.
    pub(super) unsafe extern "C" fn reg_dm_mr(
        pd: *mut bindings::ib_pd,
        dm: *mut bindings::ib_dm,
        attr: *mut bindings::ib_dm_mr_attr,
        _attrs: *mut bindings::uverbs_attr_bundle,
    ) -> *mut bindings::ib_mr {
        // SAFETY: Both created, not yet destroyed: their uobjects are locked.
        let (pd, dm) = unsafe { (Pd::<P>::from_raw(pd), Dm::<P>::from_raw(dm)) };
        // SAFETY: Lent.
        let region = unsafe {
            DmRegion {
                offset: (*attr).offset,
                length: (*attr).length,
                access: (*attr).access_flags,
            }
        };
        Self::new_mr(pd.device().as_raw(), || P::reg_dm_mr(pd, dm, &region))
    }
}
