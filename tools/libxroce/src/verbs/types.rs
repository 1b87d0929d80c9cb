// SPDX-License-Identifier: GPL-2.0
//! Objects of libibverbs.

use core::ffi::{
    c_int,
    c_void, //
};
use core::mem::{
    offset_of,
    size_of, //
};

/// `pthread_mutex_t`, only ever touched by libibverbs.
#[repr(C)]
pub struct PthreadMutex([u64; MUTEX_WORDS]);

/// `pthread_cond_t`, only ever touched by libibverbs.
#[repr(C)]
pub struct PthreadCond([u64; 6]);

#[cfg(target_arch = "aarch64")]
const MUTEX_WORDS: usize = 6;
#[cfg(not(target_arch = "aarch64"))]
const MUTEX_WORDS: usize = 5;

/// Bytes by which members behind one mutex move on this architecture. Used by
/// assertions only.
#[allow(dead_code, reason = "older compilers do not count assertions")]
pub const MUTEX_EXTRA: usize = size_of::<PthreadMutex>() - 40;

#[repr(C)]
pub struct IbvContext {
    pub device: *mut IbvDevice,
    /// `struct ibv_context_ops`: filled by libibverbs.
    ops: [usize; 32],
    pub cmd_fd: c_int,
    pub async_fd: c_int,
    pub num_comp_vectors: c_int,
    mutex: PthreadMutex,
    abi_compat: *mut c_void,
}

#[repr(C)]
pub struct IbvDevice {
    dummy: [usize; 2],
    node_type: c_int,
    transport_type: c_int,
    name: [u8; 64],
    dev_name: [u8; 64],
    dev_path: [u8; 256],
    ibdev_path: [u8; 256],
}

#[repr(C)]
pub struct IbvPd {
    pub context: *mut IbvContext,
    pub handle: u32,
}

#[repr(C)]
pub struct IbvMr {
    pub context: *mut IbvContext,
    pub pd: *mut IbvPd,
    pub addr: *mut c_void,
    pub length: usize,
    pub handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

#[repr(C)]
pub struct VerbsMr {
    pub mr: IbvMr,
    pub mr_type: c_int,
    pub access: c_int,
}

#[repr(C)]
pub struct IbvMw {
    pub context: *mut IbvContext,
    pub pd: *mut IbvPd,
    pub rkey: u32,
    pub handle: u32,
    pub mw_type: c_int,
}

#[repr(C)]
pub struct IbvTd {
    pub context: *mut IbvContext,
}

#[repr(C)]
pub struct IbvDm {
    pub context: *mut IbvContext,
    pub memcpy_to_dm: Option<unsafe extern "C" fn(*mut IbvDm, u64, *const c_void, usize) -> c_int>,
    pub memcpy_from_dm: Option<unsafe extern "C" fn(*mut c_void, *mut IbvDm, u64, usize) -> c_int>,
    pub comp_mask: u32,
    pub handle: u32,
}

#[repr(C)]
pub struct VerbsDm {
    pub dm: IbvDm,
    pub handle: u32,
}

#[repr(C)]
pub struct IbvAh {
    pub context: *mut IbvContext,
    pub pd: *mut IbvPd,
    pub handle: u32,
}

#[repr(C)]
pub struct IbvXrcd {
    pub context: *mut IbvContext,
}

#[repr(C)]
pub struct VerbsXrcd {
    pub xrcd: IbvXrcd,
    pub comp_mask: u32,
    pub handle: u32,
}

#[repr(C)]
pub struct IbvCompChannel {
    pub context: *mut IbvContext,
    pub fd: c_int,
    pub refcnt: c_int,
}

#[repr(C)]
pub struct IbvCq {
    pub context: *mut IbvContext,
    pub channel: *mut IbvCompChannel,
    pub cq_context: *mut c_void,
    pub handle: u32,
    pub cqe: c_int,
    mutex: PthreadMutex,
    cond: PthreadCond,
    comp_events_completed: u32,
    async_events_completed: u32,
}

#[repr(C)]
pub struct IbvSrq {
    pub context: *mut IbvContext,
    pub srq_context: *mut c_void,
    pub pd: *mut IbvPd,
    pub handle: u32,
    mutex: PthreadMutex,
    cond: PthreadCond,
    events_completed: u32,
}

#[repr(C)]
pub struct VerbsSrq {
    pub srq: IbvSrq,
    pub srq_type: c_int,
    pub xrcd: *mut VerbsXrcd,
    pub cq: *mut IbvCq,
    pub srq_num: u32,
}

#[repr(C)]
pub struct IbvQp {
    pub context: *mut IbvContext,
    pub qp_context: *mut c_void,
    pub pd: *mut IbvPd,
    pub send_cq: *mut IbvCq,
    pub recv_cq: *mut IbvCq,
    pub srq: *mut IbvSrq,
    pub handle: u32,
    pub qp_num: u32,
    pub state: c_int,
    pub qp_type: c_int,
    mutex: PthreadMutex,
    cond: PthreadCond,
    events_completed: u32,
}

pub const IBV_QPS_RESET: c_int = 0;
pub const IBV_QPS_INIT: c_int = 1;
pub const IBV_QPS_RTR: c_int = 2;
pub const IBV_QPS_UNKNOWN: c_int = 7;

#[repr(C)]
pub struct VerbsQp {
    /// The start of it is an [`IbvQp`].
    pub qp: super::IbvQpEx,
    pub comp_mask: u32,
    pub xrcd: *mut VerbsXrcd,
}

pub const VERBS_QP_EX: u32 = 1 << 1;

/// `struct verbs_context`: its head differs from version to version, see
/// [`crate::layout`].
pub enum VerbsContext {}

/// `struct verbs_device`: zeroed by us, filled by libibverbs.
#[repr(C)]
pub struct VerbsDevice {
    device: IbvDevice,
    ops: usize,
    refcount: c_int,
    entry: [usize; 2],
    sysfs: usize,
    core_support: u64,
}

impl VerbsDevice {
    /// Whose device it is.
    pub fn ops(&self) -> *const VerbsDeviceOps {
        self.ops as *const VerbsDeviceOps
    }
}

/// `struct verbs_sysfs_dev`: never looked into.
pub enum VerbsSysfsDev {}

#[repr(C)]
pub struct VerbsMatchEnt {
    pub driver_data: usize,
    pub driver_id: u64,
    pub vendor: u16,
    pub device: u16,
    pub kind: u8,
}

pub const VERBS_MATCH_SENTINEL: u8 = 0;
pub const VERBS_MATCH_DRIVER_ID: u8 = 3;

#[repr(C)]
pub struct VerbsDeviceOps {
    pub name: *const core::ffi::c_char,
    pub match_min_abi_version: u32,
    pub match_max_abi_version: u32,
    pub match_table: *const VerbsMatchEnt,
    pub static_providers: usize,
    pub match_device: Option<unsafe extern "C" fn(*mut VerbsSysfsDev) -> bool>,
    pub alloc_context:
        Option<unsafe extern "C" fn(*mut IbvDevice, c_int, *mut c_void) -> *mut VerbsContext>,
    pub import_context: Option<unsafe extern "C" fn(*mut IbvDevice, c_int) -> *mut VerbsContext>,
    pub alloc_device: Option<unsafe extern "C" fn(*mut VerbsSysfsDev) -> *mut VerbsDevice>,
    pub uninit_device: Option<unsafe extern "C" fn(*mut VerbsDevice)>,
}

const _: () = {
    const X: usize = MUTEX_EXTRA;
    assert!(size_of::<IbvContext>() == 328 + X);
    assert!(offset_of!(IbvContext, cmd_fd) == 264);
    assert!(size_of::<IbvDevice>() == 664);
    assert!(size_of::<IbvPd>() == 16);
    assert!(size_of::<IbvMr>() == 48);
    assert!(size_of::<VerbsMr>() == 56);
    assert!(size_of::<IbvMw>() == 32);
    assert!(size_of::<IbvAh>() == 24);
    assert!(size_of::<IbvDm>() == 32);
    assert!(offset_of!(VerbsDm, handle) == 32);
    assert!(size_of::<VerbsXrcd>() == 16);
    assert!(size_of::<IbvCompChannel>() == 16);
    assert!(size_of::<IbvCq>() == 128 + X);
    assert!(size_of::<IbvSrq>() == 128 + X);
    assert!(size_of::<VerbsSrq>() == 160 + X);
    assert!(offset_of!(VerbsSrq, srq_num) == 152 + X);
    assert!(size_of::<IbvQp>() == 160 + X);
    assert!(size_of::<VerbsQp>() == 376 + X);
    assert!(offset_of!(VerbsQp, comp_mask) == 360 + X);
    assert!(size_of::<VerbsDevice>() == 712);
    assert!(offset_of!(VerbsDevice, ops) == 664);
    assert!(size_of::<VerbsMatchEnt>() == 24);
    assert!(size_of::<VerbsDeviceOps>() == 72);
};
