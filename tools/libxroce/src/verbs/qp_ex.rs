// SPDX-License-Identifier: GPL-2.0
//! `struct ibv_qp_ex`: the `ibv_wr_*` interface of a queue pair.

use core::ffi::{
    c_int,
    c_void, //
};
use core::mem::{
    offset_of,
    size_of, //
};

use super::{
    IbvAh,
    IbvMw,
    IbvMwBindInfo,
    IbvQp,
    IbvSge,
    MUTEX_EXTRA, //
};

/// `struct ibv_data_buf`
#[repr(C)]
pub struct IbvDataBuf {
    pub addr: *mut c_void,
    pub length: usize,
}

type Ex = *mut IbvQpEx;

#[repr(C)]
pub struct IbvQpEx {
    pub qp_base: IbvQp,
    pub comp_mask: u64,
    pub wr_id: u64,
    pub wr_flags: u32,
    pub wr_atomic_cmp_swp: Option<unsafe extern "C" fn(Ex, u32, u64, u64, u64)>,
    pub wr_atomic_fetch_add: Option<unsafe extern "C" fn(Ex, u32, u64, u64)>,
    pub wr_bind_mw: Option<unsafe extern "C" fn(Ex, *mut IbvMw, u32, *const IbvMwBindInfo)>,
    pub wr_local_inv: Option<unsafe extern "C" fn(Ex, u32)>,
    pub wr_rdma_read: Option<unsafe extern "C" fn(Ex, u32, u64)>,
    pub wr_rdma_write: Option<unsafe extern "C" fn(Ex, u32, u64)>,
    pub wr_rdma_write_imm: Option<unsafe extern "C" fn(Ex, u32, u64, u32)>,
    pub wr_send: Option<unsafe extern "C" fn(Ex)>,
    pub wr_send_imm: Option<unsafe extern "C" fn(Ex, u32)>,
    pub wr_send_inv: Option<unsafe extern "C" fn(Ex, u32)>,
    pub wr_send_tso: Option<unsafe extern "C" fn(Ex, *mut c_void, u16, u16)>,
    pub wr_set_ud_addr: Option<unsafe extern "C" fn(Ex, *mut IbvAh, u32, u32)>,
    pub wr_set_xrc_srqn: Option<unsafe extern "C" fn(Ex, u32)>,
    pub wr_set_inline_data: Option<unsafe extern "C" fn(Ex, *mut c_void, usize)>,
    pub wr_set_inline_data_list: Option<unsafe extern "C" fn(Ex, usize, *const IbvDataBuf)>,
    pub wr_set_sge: Option<unsafe extern "C" fn(Ex, u32, u64, u32)>,
    pub wr_set_sge_list: Option<unsafe extern "C" fn(Ex, usize, *const IbvSge)>,
    pub wr_start: Option<unsafe extern "C" fn(Ex)>,
    pub wr_complete: Option<unsafe extern "C" fn(Ex) -> c_int>,
    pub wr_abort: Option<unsafe extern "C" fn(Ex)>,
    pub wr_atomic_write: Option<unsafe extern "C" fn(Ex, u32, u64, *const c_void)>,
    pub wr_flush: Option<unsafe extern "C" fn(Ex, u32, u64, usize, u8, u8)>,
}

const _: () = {
    assert!(size_of::<IbvQpEx>() == 360 + MUTEX_EXTRA);
    assert!(offset_of!(IbvQpEx, wr_atomic_cmp_swp) == 184 + MUTEX_EXTRA);
};
