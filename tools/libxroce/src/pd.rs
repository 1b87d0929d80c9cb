// SPDX-License-Identifier: GPL-2.0
//! Protection domains.

use core::ffi::c_int;

use crate::sys::{check, object};
use crate::verbs::cmd::{self, size, Buffer};
use crate::verbs::{IbvContext, IbvPd};

/// ibv_alloc_pd(3)
///
/// # Safety
///
/// Called by libibverbs with an open context.
pub unsafe extern "C" fn alloc_pd(context: *mut IbvContext) -> *mut IbvPd {
    let pd = Box::into_raw(Box::new(IbvPd { context, handle: 0 }));
    let mut cmd = Buffer::<{ size::ALLOC_PD }, ()>::new(());
    let mut resp = Buffer::<{ size::ALLOC_PD_RESP }, ()>::new(());
    // SAFETY: `pd` is ours; the buffers have the sizes given.
    let ret = unsafe {
        cmd::ibv_cmd_alloc_pd(
            context,
            pd,
            cmd.ptr(),
            4 * size::ALLOC_PD,
            resp.ptr(),
            4 * size::ALLOC_PD_RESP,
        )
    };
    object(check(ret).map(|()| pd).inspect_err(|_| {
        // SAFETY: made above, and nobody else knows it.
        drop(unsafe { Box::from_raw(pd) });
    }))
}

/// ibv_dealloc_pd(3)
///
/// # Safety
///
/// Called by libibverbs with a PD from [`alloc_pd`].
pub unsafe extern "C" fn dealloc_pd(pd: *mut IbvPd) -> c_int {
    // SAFETY: a live PD.
    let ret = unsafe { cmd::ibv_cmd_dealloc_pd(pd) };
    if ret == 0 {
        // SAFETY: `alloc_pd` made it with Box; the caller may not use it again.
        drop(unsafe { Box::from_raw(pd) });
    }
    ret
}
