// SPDX-License-Identifier: GPL-2.0
//! Memory windows.

use core::ffi::c_int;

use crate::qp;
use crate::sys::{
    check,
    object,
    set_errno,
    Errno,
    EINVAL, //
};
use crate::verbs::cmd::{
    self,
    size,
    Buffer, //
};
use crate::verbs::*;

/// ibv_alloc_mw(3)
///
/// # Safety
///
/// Called with a live PD.
pub unsafe extern "C" fn alloc_mw(pd: *mut IbvPd, mw_type: c_int) -> *mut IbvMw {
    // SAFETY: integers and raw pointers: all zero is valid.
    let mw: IbvMw = unsafe { core::mem::zeroed() };
    let mw = Box::into_raw(Box::new(mw));
    let mut cmd = Buffer::<{ size::ALLOC_MW }, ()>::new(());
    let mut resp = Buffer::<{ size::ALLOC_MW_RESP }, ()>::new(());
    // SAFETY: `mw` is ours; the buffers have the sizes given.
    let ret = unsafe {
        cmd::ibv_cmd_alloc_mw(
            pd,
            mw_type,
            mw,
            cmd.ptr(),
            4 * size::ALLOC_MW,
            resp.ptr(),
            4 * size::ALLOC_MW_RESP,
        )
    };
    object(check(ret).map(|()| mw).inspect_err(|_| {
        // SAFETY: made above, and nobody else knows it.
        drop(unsafe { Box::from_raw(mw) });
    }))
}

/// ibv_dealloc_mw(3)
///
/// # Safety
///
/// Called with a window from [`alloc_mw`].
pub unsafe extern "C" fn dealloc_mw(mw: *mut IbvMw) -> c_int {
    // SAFETY: a live window.
    let ret = unsafe { cmd::ibv_cmd_dealloc_mw(mw) };
    if ret == 0 {
        // SAFETY: `alloc_mw` made it with Box; it may not be used again.
        drop(unsafe { Box::from_raw(mw) });
    }
    ret
}

/// The key after this one: the low byte counts.
fn next_key(rkey: u32) -> u32 {
    (rkey & !0xff) | (rkey.wrapping_add(1) & 0xff)
}

/// ibv_bind_mw(3): a type 1 window; its new key is valid once the bind has
/// completed.
///
/// # Safety
///
/// Called with live objects and a valid description.
pub unsafe extern "C" fn bind_mw(qp: *mut IbvQp, mw: *mut IbvMw, bind: *mut IbvMwBind) -> c_int {
    // SAFETY: the caller's structure is valid.
    let bind = unsafe { &*bind };
    if bind.bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED != 0 {
        set_errno(EINVAL);
        return EINVAL.0;
    }
    // SAFETY: a live window.
    let rkey = next_key(unsafe { (*mw).rkey });
    let mut wr = IbvSendWr {
        wr_id: bind.wr_id,
        next: core::ptr::null_mut(),
        sg_list: core::ptr::null_mut(),
        num_sge: 0,
        opcode: crate::abi::WR_BIND_MW.into(),
        send_flags: bind.send_flags,
        imm: 0,
        wr: WrAddress {
            rdma: WrRdma {
                remote_addr: 0,
                rkey: 0,
            },
        },
        remote_srqn: 0,
        tail: WrTail {
            bind_mw: WrBindMw {
                mw,
                rkey,
                bind_info: bind.bind_info,
            },
        },
    };
    let mut bad = core::ptr::null_mut();
    // SAFETY: a live QP and the request above.
    let ret = unsafe { qp::post_send(qp, &mut wr, &mut bad) };
    if ret != 0 {
        set_errno(Errno(ret));
        return ret;
    }
    // SAFETY: a live window, which the program may not bind twice at a time.
    unsafe { (*mw).rkey = rkey };
    0
}

#[cfg(test)]
mod tests {
    #[test]
    fn keys_count_in_the_low_byte() {
        assert_eq!(super::next_key(0x1234_0001), 0x1234_0002);
        assert_eq!(super::next_key(0x1234_00ff), 0x1234_0000);
    }
}
