// SPDX-License-Identifier: GPL-2.0
//! Memory regions.

use core::ffi::{
    c_int,
    c_void, //
};

use crate::sys::{
    check,
    object,
    set_errno,
    Errno, //
};
use crate::verbs::cmd::{
    self,
    size,
    Buffer, //
};
use crate::verbs::{
    IbvMr,
    IbvPd,
    IbvSge,
    VerbsMr, //
};

/// `IBV_REREG_MR_ERR_CMD`: the kernel refused; the region may be lost.
const REREG_ERR_CMD: c_int = -4;

/// A place for a region.
pub fn new() -> *mut VerbsMr {
    // SAFETY: integers and raw pointers only: all zero is valid.
    let mr: VerbsMr = unsafe { core::mem::zeroed() };
    Box::into_raw(Box::new(mr))
}

/// Result of a registration: the region, or NULL with errno set.
pub fn finish(mr: *mut VerbsMr, ret: c_int) -> *mut IbvMr {
    object(check(ret).map(|()| mr.cast()).inspect_err(|_| {
        // SAFETY: from `new`, and nobody else knows it.
        drop(unsafe { Box::from_raw(mr) });
    }))
}

/// ibv_reg_mr(3) and ibv_reg_mr_iova(3)
///
/// # Safety
///
/// Called by libibverbs with a live PD.
pub unsafe extern "C" fn reg_mr(
    pd: *mut IbvPd,
    addr: *mut c_void,
    length: usize,
    hca_va: u64,
    access: c_int,
) -> *mut IbvMr {
    let mr = new();
    let mut cmd = Buffer::<{ size::REG_MR }, ()>::new(());
    let mut resp = Buffer::<{ size::REG_MR_RESP }, ()>::new(());
    // SAFETY: `mr` is ours; the buffers have the sizes given.
    let ret = unsafe {
        cmd::ibv_cmd_reg_mr(
            pd,
            addr,
            length,
            hca_va,
            access,
            mr,
            cmd.ptr(),
            4 * size::REG_MR,
            resp.ptr(),
            4 * size::REG_MR_RESP,
        )
    };
    finish(mr, ret)
}

/// ibv_reg_dmabuf_mr(3)
///
/// # Safety
///
/// Called by libibverbs with a live PD.
pub unsafe extern "C" fn reg_dmabuf_mr(
    pd: *mut IbvPd,
    offset: u64,
    length: usize,
    iova: u64,
    fd: c_int,
    access: c_int,
) -> *mut IbvMr {
    let mr = new();
    // SAFETY: `mr` is ours; no driver attributes.
    let ret = unsafe {
        cmd::ibv_cmd_reg_dmabuf_mr(
            pd,
            offset,
            length,
            iova,
            fd,
            access,
            mr,
            core::ptr::null_mut(),
        )
    };
    finish(mr, ret)
}

/// ibv_rereg_mr(3)
///
/// # Safety
///
/// Called by libibverbs with a live region, and a live PD when it changes.
pub unsafe extern "C" fn rereg_mr(
    mr: *mut VerbsMr,
    flags: c_int,
    pd: *mut IbvPd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> c_int {
    let mut cmd = Buffer::<{ size::REREG_MR }, ()>::new(());
    let mut resp = Buffer::<{ size::REREG_MR_RESP }, ()>::new(());
    // SAFETY: a live region; the buffers have the sizes given.
    let ret = unsafe {
        cmd::ibv_cmd_rereg_mr(
            mr,
            flags as u32,
            addr,
            length,
            addr as u64,
            access,
            pd,
            cmd.ptr(),
            4 * size::REREG_MR,
            resp.ptr(),
            4 * size::REREG_MR_RESP,
        )
    };
    if ret == 0 {
        return 0;
    }
    if ret > 0 {
        set_errno(Errno(ret));
    }
    REREG_ERR_CMD
}

/// ibv_dereg_mr(3)
///
/// # Safety
///
/// Called by libibverbs with a region from this file.
pub unsafe extern "C" fn dereg_mr(mr: *mut VerbsMr) -> c_int {
    // SAFETY: a live region.
    let ret = unsafe { cmd::ibv_cmd_dereg_mr(mr) };
    if ret == 0 {
        // SAFETY: from `new`; the caller may not use it again.
        drop(unsafe { Box::from_raw(mr) });
    }
    ret
}

/// ibv_import_mr(3)
///
/// # Safety
///
/// Called by libibverbs with a live PD of an imported context.
pub unsafe extern "C" fn import_mr(pd: *mut IbvPd, handle: u32) -> *mut IbvMr {
    let mr = new();
    // SAFETY: `mr` is ours.
    let ret = unsafe { cmd::ibv_cmd_query_mr(pd, mr, handle) };
    finish(mr, ret)
}

/// ibv_unimport_mr(3)
///
/// # Safety
///
/// Called by libibverbs with a region from [`import_mr`].
pub unsafe extern "C" fn unimport_mr(mr: *mut IbvMr) {
    // SAFETY: from `new`; the caller may not use it again.
    drop(unsafe { Box::from_raw(mr.cast::<VerbsMr>()) });
}

/// ibv_advise_mr(3)
///
/// # Safety
///
/// Called by libibverbs with a live PD and a valid list.
pub unsafe extern "C" fn advise_mr(
    pd: *mut IbvPd,
    advice: c_int,
    flags: u32,
    sg_list: *mut IbvSge,
    num_sge: u32,
) -> c_int {
    // SAFETY: passed on.
    unsafe { cmd::ibv_cmd_advise_mr(pd, advice, flags, sg_list, num_sge) }
}
