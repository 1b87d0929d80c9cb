// SPDX-License-Identifier: GPL-2.0

//! Operations on user contexts.

use super::Ops;
use crate::{
    bindings,
    device::Device,
    provider::Provider,
    ucontext::UContext,
    uverbs::{
        mmap::{
            self,
            Offsets, //
        },
        udata::Payload,
    }, //
};
use kernel::{
    error::from_result,
    ffi::c_int,
    prelude::*,
    types::ScopeGuard, //
};

impl<P: Provider> Ops<P> {
    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn alloc_ucontext(
        context: *mut bindings::ib_ucontext,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Set before the call; the device stays registered during a command.
            let device = unsafe { Device::<P>::from_raw((*context).device) };
            // SAFETY: Of the command that runs.
            let mut udata = unsafe { Payload::from_raw(udata) }.ok_or(EINVAL)?;
            // SAFETY: Closed below on failure, else in `dealloc_ucontext`.
            let offsets = unsafe { Offsets::new(context)? };
            let undo_offsets = ScopeGuard::new(|| offsets.close());
            device.context_opens()?;
            let undo_open = ScopeGuard::new(|| device.context_closed(context));
            let data = P::alloc_ucontext(device, &mut udata)?;
            undo_open.dismiss();
            undo_offsets.dismiss();
            // SAFETY: The object being created.
            unsafe { UContext::<P>::place(context, offsets.clone(), data) };
            Ok(0)
        })
    }

    /// A context is imported: ib_core has said all there is to say.
    ///
    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn query_ucontext(
        _context: *mut bindings::ib_ucontext,
        _attrs: *mut bindings::uverbs_attr_bundle,
    ) -> c_int {
        0
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn dealloc_ucontext(context: *mut bindings::ib_ucontext) {
        {
            // SAFETY: Created, not yet destroyed.
            let ctx = unsafe { UContext::<P>::from_raw(context) };
            if P::HAS_DEALLOC_UCONTEXT {
                P::dealloc_ucontext(ctx);
            }
            ctx.offsets.close();
            ctx.device().context_closed(context);
        }
        // SAFETY: The object being destroyed; the reference above is gone.
        unsafe { UContext::<P>::unplace(context) };
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn disassociate_ucontext(context: *mut bindings::ib_ucontext) {
        if P::HAS_DISASSOCIATE_UCONTEXT {
            // SAFETY: Created, not yet destroyed.
            P::disassociate_ucontext(unsafe { UContext::<P>::from_raw(context) });
        }
    }

    /// # Safety
    ///
    /// See the parent module. ib_core holds `hw_destroy_rwsem` of the file for writing, and the
    /// file has a context.
    pub(super) unsafe extern "C" fn ufile_hw_cleanup(ufile: *mut bindings::ib_uverbs_file) {
        // SAFETY: By contract.
        let context = unsafe { (*ufile).ucontext };
        // SAFETY: Created, not yet destroyed.
        let ctx = unsafe { UContext::<P>::from_raw(context) };
        ctx.device().context_closes(context);
    }

    /// # Safety
    ///
    /// See the parent module. `vma` is being set up by the running `mmap` call.
    pub(super) unsafe extern "C" fn mmap(
        context: *mut bindings::ib_ucontext,
        vma: *mut kernel::bindings::vm_area_struct,
    ) -> c_int {
        // SAFETY: All entries of a context of ours are made by `Offsets`; `vma` by contract.
        from_result(|| unsafe { mmap::mmap(context, vma) }.map(|()| 0))
    }

    /// # Safety
    ///
    /// See the parent module. ib_core dropped the last reference on the entry.
    pub(super) unsafe extern "C" fn mmap_free(entry: *mut bindings::rdma_user_mmap_entry) {
        // SAFETY: All entries of a context of ours are made by `Offsets`.
        unsafe { mmap::mmap_free(entry) };
    }
}
