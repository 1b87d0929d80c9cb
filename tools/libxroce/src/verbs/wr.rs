// SPDX-License-Identifier: GPL-2.0
//! Work requests as programs give them.

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
    IbvMr,
    IbvMw, //
};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct IbvSge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrRdma {
    pub remote_addr: u64,
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrAtomic {
    pub remote_addr: u64,
    pub compare_add: u64,
    pub swap: u64,
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrUd {
    pub ah: *mut IbvAh,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union WrAddress {
    pub rdma: WrRdma,
    pub atomic: WrAtomic,
    pub ud: WrUd,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct IbvMwBindInfo {
    pub mr: *mut IbvMr,
    pub addr: u64,
    pub length: u64,
    pub mw_access_flags: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrBindMw {
    pub mw: *mut IbvMw,
    pub rkey: u32,
    pub bind_info: IbvMwBindInfo,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct WrTso {
    pub hdr: *mut c_void,
    pub hdr_sz: u16,
    pub mss: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union WrTail {
    pub bind_mw: WrBindMw,
    pub tso: WrTso,
}

#[repr(C)]
pub struct IbvSendWr {
    pub wr_id: u64,
    pub next: *mut IbvSendWr,
    pub sg_list: *mut IbvSge,
    pub num_sge: c_int,
    pub opcode: u32,
    pub send_flags: u32,
    /// Immediate data, big endian, or the key to invalidate.
    pub imm: u32,
    pub wr: WrAddress,
    /// `qp_type.xrc.remote_srqn`
    pub remote_srqn: u32,
    pub tail: WrTail,
}

#[repr(C)]
pub struct IbvRecvWr {
    pub wr_id: u64,
    pub next: *mut IbvRecvWr,
    pub sg_list: *mut IbvSge,
    pub num_sge: c_int,
}

#[repr(C)]
pub struct IbvOpsWr {
    pub wr_id: u64,
    pub next: *mut IbvOpsWr,
    pub opcode: u32,
    pub flags: u32,
    pub unexpected_cnt: u32,
    pub handle: u32,
    pub recv_wr_id: u64,
    pub sg_list: *mut IbvSge,
    pub num_sge: c_int,
    pub tag: u64,
    pub mask: u64,
}

pub const IBV_WR_TAG_ADD: u32 = 0;
pub const IBV_WR_TAG_DEL: u32 = 1;
pub const IBV_WR_TAG_SYNC: u32 = 2;

pub const IBV_OPS_SIGNALED: u32 = 1 << 0;
pub const IBV_OPS_TM_SYNC: u32 = 1 << 1;

#[repr(C)]
pub struct IbvMwBind {
    pub wr_id: u64,
    pub send_flags: u32,
    pub bind_info: IbvMwBindInfo,
}

pub const IBV_ACCESS_ZERO_BASED: u32 = 1 << 5;

const _: () = {
    assert!(size_of::<IbvSge>() == 16);
    assert!(size_of::<IbvSendWr>() == 128);
    assert!(offset_of!(IbvSendWr, remote_srqn) == 72);
    assert!(offset_of!(IbvSendWr, tail) == 80);
    assert!(size_of::<IbvRecvWr>() == 32);
    assert!(size_of::<IbvOpsWr>() == 72);
    assert!(offset_of!(IbvOpsWr, handle) == 28);
    assert!(offset_of!(IbvOpsWr, tag) == 56);
    assert!(size_of::<IbvMwBindInfo>() == 32);
    assert!(size_of::<IbvMwBind>() == 48);
};
