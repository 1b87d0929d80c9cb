// SPDX-License-Identifier: GPL-2.0
//! Multicast groups, which are handled entirely by the kernel.

use core::ffi::c_int;

use crate::verbs::cmd;
use crate::verbs::{
    IbvGid,
    IbvQp, //
};

/// ibv_attach_mcast(3)
///
/// # Safety
///
/// Called by libibverbs with a live QP and a valid GID.
pub unsafe extern "C" fn attach_mcast(qp: *mut IbvQp, gid: *const IbvGid, lid: u16) -> c_int {
    // SAFETY: passed on.
    unsafe { cmd::ibv_cmd_attach_mcast(qp, gid, lid) }
}

/// ibv_detach_mcast(3)
///
/// # Safety
///
/// Called by libibverbs with a live QP and a valid GID.
pub unsafe extern "C" fn detach_mcast(qp: *mut IbvQp, gid: *const IbvGid, lid: u16) -> c_int {
    // SAFETY: passed on.
    unsafe { cmd::ibv_cmd_detach_mcast(qp, gid, lid) }
}
