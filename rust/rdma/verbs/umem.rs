// SPDX-License-Identifier: GPL-2.0

//! User memory that ib_core pins, for as long as it is registered.
//!
//! C header: `include/rdma/ib_umem.h`; the C half is `umem.c`.

use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kernel::{
    error::from_err_ptr,
    prelude::*, //
};

use crate::{
    bindings,
    mem::Pinned, //
};

/// Pins `length` bytes at `addr` of the current process, counted against its `RLIMIT_MEMLOCK`.
/// Process context, sleeps.
///
/// `access` is the bits of `enum ib_access_flags`, of which any that lets somebody write makes
/// the memory writable. The result is dropped at the latest when the device is unregistered:
/// ib_core wants it to be released before its device goes.
///
/// # Errors
///
/// `EINVAL` for a range that is empty or wraps, and in a kernel thread, `EFAULT` for one that is
/// not all mapped so, `ENOMEM` also for more than `RLIMIT_MEMLOCK`, `EPERM`, `EOPNOTSUPP` for
/// on-demand paging.
///
/// # Safety
///
/// `device` is an initialised `ib_device` that outlives the result.
pub(crate) unsafe fn pin(
    device: *mut bindings::ib_device,
    addr: u64,
    length: u64,
    access: u32,
) -> Result<Pinned> {
    let access = i32::try_from(access).map_err(|_| EINVAL)?;
    let mut mem = bindings::xrdma_mem {
        pages: core::ptr::null_mut(),
        va: core::ptr::null_mut(),
        first: 0,
        length: 0,
    };
    // SAFETY: By the safety requirement; `mem` is filled when the call succeeds.
    let umem =
        from_err_ptr(unsafe { bindings::xrdma_umem_pin(device, addr, length, access, &mut mem) })?;
    let umem = NonNull::new(umem).ok_or(EINVAL)?;
    // SAFETY: Valid since the call succeeded.
    let writable = unsafe { bindings::xrdma_umem_writable(umem.as_ptr()) };
    // SAFETY: Just pinned, until `unpin`. Releasing the pages takes the owner's mm from the umem.
    Ok(unsafe { Pinned::new(mem, writable, umem.cast(), unpin) })
}

/// Ends what [`pin`] began.
///
/// # Safety
///
/// `umem` and `mem` are from one call of [`pin`], and are used no more. Process context.
unsafe fn unpin(umem: NonNull<c_void>, mem: &mut bindings::xrdma_mem) {
    // SAFETY: By the safety requirement.
    unsafe { bindings::xrdma_umem_unpin(umem.cast().as_ptr(), mem) };
}
