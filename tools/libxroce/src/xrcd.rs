// SPDX-License-Identifier: GPL-2.0
//! XRC domains.

use core::ffi::c_int;
use core::mem::size_of;

use crate::sys::{
    check,
    object, //
};
use crate::verbs::cmd::{
    self,
    size,
    Buffer, //
};
use crate::verbs::{
    IbvContext,
    IbvXrcd,
    IbvXrcdInitAttr,
    VerbsXrcd, //
};

/// ibv_open_xrcd(3). The kernel finds the domain by the inode behind the
/// descriptor; -1 makes a private one.
///
/// # Safety
///
/// Called with an open context and valid attributes.
pub unsafe extern "C" fn open_xrcd(
    context: *mut IbvContext,
    attr: *mut IbvXrcdInitAttr,
) -> *mut IbvXrcd {
    let xrcd = Box::into_raw(Box::new(VerbsXrcd {
        xrcd: IbvXrcd { context },
        comp_mask: 0,
        handle: 0,
    }));
    let mut cmd = Buffer::<{ size::OPEN_XRCD }, ()>::new(());
    let mut resp = Buffer::<{ size::OPEN_XRCD_RESP }, ()>::new(());
    // SAFETY: `xrcd` is ours; the buffers have the sizes given.
    let ret = unsafe {
        cmd::ibv_cmd_open_xrcd(
            context,
            xrcd,
            size_of::<VerbsXrcd>() as c_int,
            attr,
            cmd.ptr(),
            4 * size::OPEN_XRCD,
            resp.ptr(),
            4 * size::OPEN_XRCD_RESP,
        )
    };
    // Bad attributes come back without errno; `object` sets it.
    object(check(ret).map(|()| xrcd.cast()).inspect_err(|_| {
        // SAFETY: made above, and nobody else knows it.
        drop(unsafe { Box::from_raw(xrcd) });
    }))
}

/// ibv_close_xrcd(3)
///
/// # Safety
///
/// Called with a domain from [`open_xrcd`].
pub unsafe extern "C" fn close_xrcd(xrcd: *mut IbvXrcd) -> c_int {
    let xrcd = xrcd.cast::<VerbsXrcd>();
    // SAFETY: a live domain of ours, which starts with the public part.
    let ret = unsafe { cmd::ibv_cmd_close_xrcd(xrcd) };
    if ret == 0 {
        // SAFETY: `open_xrcd` made it with Box; it may not be used again.
        drop(unsafe { Box::from_raw(xrcd) });
    }
    ret
}
