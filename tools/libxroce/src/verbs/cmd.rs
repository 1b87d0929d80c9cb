// SPDX-License-Identifier: GPL-2.0
//! Functions that libibverbs exports to its providers.
//!
//! The command functions take the kernel's own command and response as buffers that start with the
//! core's part and end with the driver's part. They fill the core's part themselves, so here it is
//! only [`Command`]'s first `N` bytes. `N` includes the header for commands; users assert it
//! against the kernel's uapi in [`size`].

use core::ffi::{
    c_char,
    c_int,
    c_void, //
};

use super::*;
use crate::layout::Layout;

/// A command (or response) buffer: `N` 32-bit words of the core's, then the
/// driver's.
#[repr(C)]
pub struct Buffer<const N: usize, D> {
    pub core: [u32; N],
    pub driver: D,
}

impl<const N: usize, D> Buffer<N, D> {
    /// A zeroed core part and the given driver part.
    pub fn new(driver: D) -> Self {
        // Otherwise padding would come between the two parts.
        const { assert!(core::mem::offset_of!(Self, driver) == 4 * N) };
        Self {
            core: [0; N],
            driver,
        }
    }

    /// For libibverbs.
    pub fn ptr(&mut self) -> *mut c_void {
        core::ptr::from_mut(self).cast()
    }

    /// Length of both parts in bytes.
    pub const SIZE: usize = core::mem::size_of::<Self>();
}

/// 32-bit words of the core's commands (with header) and responses.
pub mod size {
    pub const GET_CONTEXT: usize = 4;
    pub const GET_CONTEXT_RESP: usize = 2;
    pub const ALLOC_PD: usize = 4;
    pub const ALLOC_PD_RESP: usize = 1;
    pub const REG_MR: usize = 12;
    pub const REG_MR_RESP: usize = 3;
    pub const REREG_MR: usize = 14;
    pub const REREG_MR_RESP: usize = 2;
    pub const ALLOC_MW: usize = 6;
    pub const ALLOC_MW_RESP: usize = 2;
    pub const OPEN_XRCD: usize = 6;
    pub const OPEN_XRCD_RESP: usize = 1;
    pub const CREATE_CQ: usize = 10;
    pub const CREATE_CQ_RESP: usize = 2;
    pub const RESIZE_CQ: usize = 6;
    pub const RESIZE_CQ_RESP: usize = 2;
    pub const MODIFY_CQ: usize = 10;
    pub const CREATE_SRQ: usize = 10;
    pub const CREATE_XSRQ: usize = 14;
    pub const CREATE_SRQ_RESP: usize = 4;
    pub const MODIFY_SRQ: usize = 6;
    pub const QUERY_SRQ: usize = 6;
    pub const EX_CREATE_QP: usize = 22;
    pub const EX_CREATE_QP_RESP: usize = 10;
    pub const QUERY_QP: usize = 6;
    pub const MODIFY_QP: usize = 30;
    pub const CREATE_AH_RESP: usize = 1;
    pub const QUERY_PORT: usize = 6;
    pub const EX_QUERY_DEVICE_RESP: usize = 76;
}

type Ptr = *mut c_void;

// The functions below are declared as libibverbs 65 has them; two had an
// argument less before, see the ends of this file and of `Layout`.
extern "C" {
    #[link_name = env!("XROCE_REGISTER")]
    pub fn verbs_register_driver(ops: *const VerbsDeviceOps);
    pub fn _verbs_init_and_alloc_context(
        device: *mut IbvDevice,
        cmd_fd: c_int,
        alloc_size: usize,
        context_offset: *mut VerbsContext,
        driver_id: u32,
    ) -> *mut c_void;
    pub fn verbs_uninit_context(context: *mut VerbsContext);
    pub fn verbs_set_ops(context: *mut VerbsContext, ops: *const c_void);
    pub fn __verbs_log(context: *mut VerbsContext, level: u32, fmt: *const c_char, ...);

    fn ibv_cmd_get_context(
        context: *mut VerbsContext,
        cmd: Ptr,
        cmd_size: usize,
        fd_arr: *mut c_void,
        resp: Ptr,
        resp_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_query_device_any(
        context: *mut IbvContext,
        input: *const IbvQueryDeviceExInput,
        attr: *mut IbvDeviceAttrEx,
        attr_size: usize,
        resp: Ptr,
        resp_size: *mut usize,
    ) -> c_int;
    pub fn ibv_cmd_query_port(
        context: *mut IbvContext,
        port: u8,
        attr: *mut IbvPortAttr,
        cmd: Ptr,
        cmd_size: usize,
    ) -> c_int;

    pub fn ibv_cmd_alloc_pd(
        context: *mut IbvContext,
        pd: *mut IbvPd,
        cmd: Ptr,
        cmd_size: usize,
        resp: Ptr,
        resp_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_dealloc_pd(pd: *mut IbvPd) -> c_int;

    pub fn ibv_cmd_reg_mr(
        pd: *mut IbvPd,
        addr: *mut c_void,
        length: usize,
        hca_va: u64,
        access: c_int,
        mr: *mut VerbsMr,
        cmd: Ptr,
        cmd_size: usize,
        resp: Ptr,
        resp_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_rereg_mr(
        mr: *mut VerbsMr,
        flags: u32,
        addr: *mut c_void,
        length: usize,
        hca_va: u64,
        access: c_int,
        pd: *mut IbvPd,
        cmd: Ptr,
        cmd_size: usize,
        resp: Ptr,
        resp_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_dereg_mr(mr: *mut VerbsMr) -> c_int;
    pub fn ibv_cmd_reg_dmabuf_mr(
        pd: *mut IbvPd,
        offset: u64,
        length: usize,
        iova: u64,
        fd: c_int,
        access: c_int,
        mr: *mut VerbsMr,
        driver: *mut c_void,
    ) -> c_int;
    pub fn ibv_cmd_advise_mr(
        pd: *mut IbvPd,
        advice: c_int,
        flags: u32,
        sg_list: *mut IbvSge,
        num_sge: u32,
    ) -> c_int;
    pub fn ibv_cmd_query_mr(pd: *mut IbvPd, mr: *mut VerbsMr, handle: u32) -> c_int;
    pub fn ibv_cmd_query_context(context: *mut IbvContext, driver: *mut c_void) -> c_int;
    pub fn ibv_cmd_alloc_dm(
        context: *mut IbvContext,
        attr: *const IbvAllocDmAttr,
        dm: *mut VerbsDm,
        driver: *mut c_void,
    ) -> c_int;
    pub fn ibv_cmd_free_dm(dm: *mut VerbsDm) -> c_int;
    pub fn ibv_cmd_reg_dm_mr(
        pd: *mut IbvPd,
        dm: *mut VerbsDm,
        offset: u64,
        length: usize,
        access: u32,
        mr: *mut VerbsMr,
        driver: *mut c_void,
    ) -> c_int;
    pub fn ibv_cmd_alloc_mw(
        pd: *mut IbvPd,
        mw_type: c_int,
        mw: *mut IbvMw,
        cmd: Ptr,
        cmd_size: usize,
        resp: Ptr,
        resp_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_dealloc_mw(mw: *mut IbvMw) -> c_int;

    pub fn ibv_cmd_open_xrcd(
        context: *mut IbvContext,
        xrcd: *mut VerbsXrcd,
        vxrcd_size: c_int,
        attr: *mut IbvXrcdInitAttr,
        cmd: Ptr,
        cmd_size: usize,
        resp: Ptr,
        resp_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_close_xrcd(xrcd: *mut VerbsXrcd) -> c_int;

    pub fn ibv_cmd_create_cq(
        context: *mut IbvContext,
        cqe: c_int,
        channel: *mut IbvCompChannel,
        comp_vector: c_int,
        cq: *mut IbvCq,
        cmd: Ptr,
        cmd_size: usize,
        resp: Ptr,
        resp_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_resize_cq(
        cq: *mut IbvCq,
        cqe: c_int,
        cmd: Ptr,
        cmd_size: usize,
        resp: Ptr,
        resp_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_modify_cq(cq: *mut IbvCq, attr: Ptr, cmd: Ptr, cmd_size: usize) -> c_int;
    pub fn ibv_cmd_req_notify_cq(cq: *mut IbvCq, solicited_only: c_int) -> c_int;
    pub fn ibv_cmd_destroy_cq(cq: *mut IbvCq) -> c_int;

    pub fn ibv_cmd_create_srq(
        pd: *mut IbvPd,
        srq: *mut IbvSrq,
        attr: *mut IbvSrqInitAttr,
        cmd: Ptr,
        cmd_size: usize,
        resp: Ptr,
        resp_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_create_srq_ex(
        context: *mut IbvContext,
        srq: *mut VerbsSrq,
        attr: *mut IbvSrqInitAttrEx,
        cmd: Ptr,
        cmd_size: usize,
        resp: Ptr,
        resp_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_modify_srq(
        srq: *mut IbvSrq,
        attr: *mut IbvSrqAttr,
        mask: c_int,
        cmd: Ptr,
        cmd_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_query_srq(
        srq: *mut IbvSrq,
        attr: *mut IbvSrqAttr,
        cmd: Ptr,
        cmd_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_destroy_srq(srq: *mut IbvSrq) -> c_int;

    fn ibv_cmd_create_qp_ex2(
        context: *mut IbvContext,
        qp: *mut VerbsQp,
        attr: *mut IbvQpInitAttrEx,
        cmd: Ptr,
        cmd_size: usize,
        resp: Ptr,
        resp_size: usize,
        driver: *mut c_void,
    ) -> c_int;
    pub fn ibv_cmd_query_qp(
        qp: *mut IbvQp,
        attr: *mut IbvQpAttr,
        mask: c_int,
        init_attr: *mut IbvQpInitAttr,
        cmd: Ptr,
        cmd_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_modify_qp(
        qp: *mut IbvQp,
        attr: *mut IbvQpAttr,
        mask: c_int,
        cmd: Ptr,
        cmd_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_destroy_qp(qp: *mut IbvQp) -> c_int;

    pub fn ibv_cmd_create_ah(
        pd: *mut IbvPd,
        ah: *mut IbvAh,
        attr: *mut IbvAhAttr,
        resp: Ptr,
        resp_size: usize,
    ) -> c_int;
    pub fn ibv_cmd_destroy_ah(ah: *mut IbvAh) -> c_int;
    pub fn ibv_cmd_attach_mcast(qp: *mut IbvQp, gid: *const IbvGid, lid: u16) -> c_int;
    pub fn ibv_cmd_detach_mcast(qp: *mut IbvQp, gid: *const IbvGid, lid: u16) -> c_int;
}

type ShortGetContext = unsafe extern "C" fn(*mut VerbsContext, Ptr, usize, Ptr, usize) -> c_int;

/// `ibv_cmd_get_context` of any known version.
///
/// # Safety
///
/// As libibverbs' function: `context` initialised, the buffers of their sizes.
pub unsafe fn get_context(
    layout: &Layout,
    context: *mut VerbsContext,
    cmd: (Ptr, usize),
    resp: (Ptr, usize),
) -> c_int {
    if layout.get_context_has_fds {
        let none = core::ptr::null_mut();
        // SAFETY: passed on; no descriptors.
        return unsafe { ibv_cmd_get_context(context, cmd.0, cmd.1, none, resp.0, resp.1) };
    }
    // SAFETY: so the older versions declare it.
    let short: ShortGetContext = unsafe { core::mem::transmute(ibv_cmd_get_context as *const ()) };
    // SAFETY: passed on.
    unsafe { short(context, cmd.0, cmd.1, resp.0, resp.1) }
}

type ShortCreateQp = unsafe extern "C" fn(
    *mut IbvContext,
    *mut VerbsQp,
    *mut IbvQpInitAttrEx,
    Ptr,
    usize,
    Ptr,
    usize,
) -> c_int;

/// `ibv_cmd_create_qp_ex2` of any known version.
///
/// # Safety
///
/// As libibverbs' function: live objects, the buffers of their sizes.
pub unsafe fn create_qp(
    layout: &Layout,
    context: *mut IbvContext,
    qp: *mut VerbsQp,
    attr: *mut IbvQpInitAttrEx,
    cmd: (Ptr, usize),
    resp: (Ptr, usize),
) -> c_int {
    if layout.create_qp_has_driver {
        let none = core::ptr::null_mut();
        // SAFETY: passed on; no driver attributes.
        return unsafe {
            ibv_cmd_create_qp_ex2(context, qp, attr, cmd.0, cmd.1, resp.0, resp.1, none)
        };
    }
    // SAFETY: so the older versions declare it.
    let short: ShortCreateQp = unsafe { core::mem::transmute(ibv_cmd_create_qp_ex2 as *const ()) };
    // SAFETY: passed on.
    unsafe { short(context, qp, attr, cmd.0, cmd.1, resp.0, resp.1) }
}

type QueryPortSpeed = unsafe extern "C" fn(*mut IbvContext, u32, *mut u64) -> c_int;

/// `ibv_cmd_query_port_speed`, which libibverbs has since 62; `None` before.
pub fn query_port_speed() -> Option<QueryPortSpeed> {
    let address = crate::sys::symbol(c"ibv_cmd_query_port_speed");
    // SAFETY: so libibverbs declares the function of that name; a null
    // function pointer is `None`.
    unsafe { core::mem::transmute::<usize, Option<QueryPortSpeed>>(address) }
}

/// A line in libibverbs' log, at its error level (`VERBS_LOG_LEVEL=1`).
///
/// # Safety
///
/// `context` must be alive.
pub unsafe fn log_error(context: *mut IbvContext, line: &str) {
    const LEVEL_ERROR: u32 = 1;
    let errno = crate::sys::errno();
    if let Ok(text) = std::ffi::CString::new(line) {
        // SAFETY: the caller's context is one of ours, so its verbs_context
        // stands in front of it; "%s" takes one C string.
        unsafe {
            __verbs_log(
                crate::layout::verbs_context(context),
                LEVEL_ERROR,
                c"libxroce: %s\n".as_ptr(),
                text.as_ptr(),
            )
        };
    }
    crate::sys::set_errno(errno);
}
