// SPDX-License-Identifier: GPL-2.0
//! `struct ibv_cq_ex`: the extended polling interface, and `struct ibv_wc`.

use core::ffi::{
    c_int,
    c_void, //
};
use core::mem::{
    offset_of,
    size_of, //
};

use super::{
    IbvCompChannel,
    IbvCq,
    IbvPd,
    MUTEX_EXTRA, //
};

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct IbvWc {
    pub wr_id: u64,
    pub status: u32,
    pub opcode: u32,
    pub vendor_err: u32,
    pub byte_len: u32,
    pub imm: u32,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: u32,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
}

#[repr(C)]
pub struct IbvWcTmInfo {
    pub tag: u64,
    /// `priv`
    pub app_ctx: u32,
}

#[repr(C)]
pub struct IbvPollCqAttr {
    pub comp_mask: u32,
}

type Ex = *mut IbvCqEx;

#[repr(C)]
pub struct IbvCqEx {
    /// The start of `struct ibv_cq_ex` is a `struct ibv_cq`.
    pub cq: IbvCq,
    pub comp_mask: u32,
    pub status: u32,
    pub wr_id: u64,
    pub start_poll: Option<unsafe extern "C" fn(Ex, *mut IbvPollCqAttr) -> c_int>,
    pub next_poll: Option<unsafe extern "C" fn(Ex) -> c_int>,
    pub end_poll: Option<unsafe extern "C" fn(Ex)>,
    pub read_opcode: Option<unsafe extern "C" fn(Ex) -> u32>,
    pub read_vendor_err: Option<unsafe extern "C" fn(Ex) -> u32>,
    pub read_byte_len: Option<unsafe extern "C" fn(Ex) -> u32>,
    pub read_imm_data: Option<unsafe extern "C" fn(Ex) -> u32>,
    pub read_qp_num: Option<unsafe extern "C" fn(Ex) -> u32>,
    pub read_src_qp: Option<unsafe extern "C" fn(Ex) -> u32>,
    pub read_wc_flags: Option<unsafe extern "C" fn(Ex) -> u32>,
    pub read_slid: Option<unsafe extern "C" fn(Ex) -> u32>,
    pub read_sl: Option<unsafe extern "C" fn(Ex) -> u8>,
    pub read_dlid_path_bits: Option<unsafe extern "C" fn(Ex) -> u8>,
    pub read_completion_ts: Option<unsafe extern "C" fn(Ex) -> u64>,
    pub read_cvlan: Option<unsafe extern "C" fn(Ex) -> u16>,
    pub read_flow_tag: Option<unsafe extern "C" fn(Ex) -> u32>,
    pub read_tm_info: Option<unsafe extern "C" fn(Ex, *mut IbvWcTmInfo)>,
    pub read_completion_wallclock_ns: Option<unsafe extern "C" fn(Ex) -> u64>,
}

#[repr(C)]
pub struct IbvCqInitAttrEx {
    pub cqe: u32,
    pub cq_context: *mut c_void,
    pub channel: *mut IbvCompChannel,
    pub comp_vector: u32,
    pub wc_flags: u64,
    pub comp_mask: u32,
    pub flags: u32,
    pub parent_domain: *mut IbvPd,
}

pub const IBV_CQ_INIT_ATTR_MASK_FLAGS: u32 = 1 << 0;
pub const IBV_CQ_INIT_ATTR_MASK_PD: u32 = 1 << 1;
pub const IBV_CREATE_CQ_ATTR_SINGLE_THREADED: u32 = 1 << 0;

/// `IBV_WC_STANDARD_FLAGS`: byte_len to dlid_path_bits.
pub const IBV_WC_STANDARD_FLAGS: u64 = 0x7f;
pub const IBV_WC_EX_WITH_COMPLETION_TIMESTAMP: u64 = 1 << 7;
pub const IBV_WC_EX_WITH_TM_INFO: u64 = 1 << 10;
pub const IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK: u64 = 1 << 11;

const _: () = {
    assert!(size_of::<IbvWc>() == 48);
    assert!(size_of::<IbvWcTmInfo>() == 16);
    assert!(size_of::<IbvCqEx>() == 288 + MUTEX_EXTRA);
    assert!(offset_of!(IbvCqEx, start_poll) == 144 + MUTEX_EXTRA);
    assert!(size_of::<IbvCqInitAttrEx>() == 56);
};
