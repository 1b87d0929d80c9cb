// SPDX-License-Identifier: GPL-2.0
//! The functions that this library exports to programs: `<infiniband/xroce_dv.h>`.
//!
//! Most are for receive QPs by number. The kernel keeps all state of these QPs; the functions here
//! only translate.

use core::ffi::c_int;
use std::sync::{
    Mutex,
    PoisonError, //
};

use crate::abi::{
    self,
    RcvQpAttr,
    RcvQpDest, //
};
use crate::context::Context;
use crate::ioctl::{
    call,
    Attr, //
};
use crate::layout;
use crate::register;
use crate::srq;
use crate::sys::{
    status,
    Result,
    EEXIST,
    EINVAL,
    EOPNOTSUPP, //
};
use crate::verbs::*;

/// From finding a registration to its end nobody else may end it, or its handle
/// could be another's by then.
static UNREG: Mutex<()> = Mutex::new(());

/// A domain of one of our devices: the descriptor of its context, its handle.
#[derive(Clone, Copy)]
struct Domain {
    fd: c_int,
    handle: u32,
}

impl Domain {
    /// # Safety
    ///
    /// `xrcd` must be null or a live domain of any device.
    unsafe fn of(xrcd: *mut IbvXrcd) -> Result<Self> {
        if xrcd.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: a live domain belongs to an open context of a device.
        unsafe {
            let context = (*xrcd).context;
            if !is_ours((*context).device) {
                return Err(EOPNOTSUPP);
            }
            Ok(Self {
                fd: Context::fd(context),
                handle: (*xrcd.cast::<VerbsXrcd>()).handle,
            })
        }
    }

    fn attr(self) -> Attr {
        Attr::handle(abi::ATTR_RCV_QP_XRCD, self.handle)
    }
}

/// # Safety
///
/// `device` must be a live device of libibverbs.
unsafe fn is_ours(device: *mut IbvDevice) -> bool {
    // SAFETY: libibverbs makes every device as the start of a `verbs_device`,
    // whose layout is known when libibverbs was recognised.
    layout::get().is_some() && unsafe { register::is_ours(device.cast()) }
}

fn qpn(number: u32) -> Attr {
    Attr::number(abi::ATTR_RCV_QP_QPN, number)
}

/// To the kernel's structure. Masks with bits that it has no room for are
/// refused there.
fn to_kernel(attr: &IbvQpAttr, mask: c_int) -> RcvQpAttr {
    let ah = &attr.ah_attr;
    RcvQpAttr {
        attr_mask: mask as u32,
        dest_qp_num: attr.dest_qp_num,
        rq_psn: attr.rq_psn,
        sq_psn: attr.sq_psn,
        qkey: attr.qkey,
        qp_access_flags: attr.qp_access_flags,
        pkey_index: attr.pkey_index,
        qp_state: byte(attr.qp_state),
        cur_qp_state: byte(attr.cur_qp_state),
        path_mtu: byte(attr.path_mtu),
        path_mig_state: byte(attr.path_mig_state),
        max_dest_rd_atomic: attr.max_dest_rd_atomic,
        min_rnr_timer: attr.min_rnr_timer,
        timeout: attr.timeout,
        retry_cnt: attr.retry_cnt,
        rnr_retry: attr.rnr_retry,
        max_rd_atomic: attr.max_rd_atomic,
        en_sqd_async_notify: attr.en_sqd_async_notify,
        port_num: attr.port_num,
        reserved: [0; 2],
        dest: RcvQpDest {
            dgid: ah.grh.dgid,
            flow_label: ah.grh.flow_label,
            sgid_index: ah.grh.sgid_index,
            hop_limit: ah.grh.hop_limit,
            traffic_class: ah.grh.traffic_class,
            sl: ah.sl,
            is_global: ah.is_global,
            static_rate: ah.static_rate,
            port_num: ah.port_num,
            reserved: 0,
        },
    }
}

/// An enumeration's value; one that is none stays none.
fn byte(value: c_int) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

fn from_kernel(found: &RcvQpAttr) -> IbvQpAttr {
    let dest = &found.dest;
    IbvQpAttr {
        qp_state: found.qp_state.into(),
        cur_qp_state: found.cur_qp_state.into(),
        path_mtu: found.path_mtu.into(),
        path_mig_state: found.path_mig_state.into(),
        rq_psn: found.rq_psn,
        dest_qp_num: found.dest_qp_num,
        qp_access_flags: found.qp_access_flags,
        ah_attr: IbvAhAttr {
            grh: IbvGlobalRoute {
                dgid: dest.dgid,
                flow_label: dest.flow_label,
                sgid_index: dest.sgid_index,
                hop_limit: dest.hop_limit,
                traffic_class: dest.traffic_class,
            },
            sl: dest.sl,
            static_rate: dest.static_rate,
            is_global: dest.is_global,
            port_num: dest.port_num,
            ..IbvAhAttr::default()
        },
        pkey_index: found.pkey_index,
        max_dest_rd_atomic: found.max_dest_rd_atomic,
        min_rnr_timer: found.min_rnr_timer,
        port_num: found.port_num,
        timeout: found.timeout,
        ..IbvQpAttr::default()
    }
}

/// xroce_dv_is_supported(3)
///
/// # Safety
///
/// `device` must be null or a live device of libibverbs.
#[no_mangle]
pub unsafe extern "C" fn xroce_dv_is_supported(device: *mut IbvDevice) -> bool {
    // SAFETY: as the caller says.
    !device.is_null() && unsafe { is_ours(device) }
}

/// xroce_dv_query_tm_masks(3)
///
/// # Safety
///
/// `srq` must be null or a live SRQ of any device, `max_masks` null or valid.
#[no_mangle]
pub unsafe extern "C" fn xroce_dv_query_tm_masks(srq: *mut IbvSrq, max_masks: *mut u32) -> c_int {
    if srq.is_null() || max_masks.is_null() {
        return status(Err(EINVAL));
    }
    // SAFETY: a live SRQ belongs to an open context of a device; one of ours is from `srq.rs`.
    let max = unsafe {
        match is_ours((*(*srq).context).device) {
            true => srq::max_tag_masks(srq).ok_or(EINVAL),
            false => Err(EOPNOTSUPP),
        }
    };
    // SAFETY: not null, so valid.
    status(max.map(|max| unsafe { *max_masks = max }))
}

/// xroce_dv_create_xrc_rcv_qp(3)
///
/// # Safety
///
/// `xrcd` must be null or a live domain; `attr` and `number` null or valid.
#[no_mangle]
pub unsafe extern "C" fn xroce_dv_create_xrc_rcv_qp(
    xrcd: *mut IbvXrcd,
    attr: *const IbvQpAttr,
    attr_mask: c_int,
    number: *mut u32,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe { xroce_dv_create_xrc_rcv_qp_ex(xrcd, attr, attr_mask, 0, number) }
}

/// xroce_dv_create_xrc_rcv_qp_ex(3)
///
/// # Safety
///
/// As for [`xroce_dv_create_xrc_rcv_qp`].
#[no_mangle]
pub unsafe extern "C" fn xroce_dv_create_xrc_rcv_qp_ex(
    xrcd: *mut IbvXrcd,
    attr: *const IbvQpAttr,
    attr_mask: c_int,
    flags: u32,
    number: *mut u32,
) -> c_int {
    // SAFETY: as the caller says.
    let made = unsafe { Domain::of(xrcd) }.and_then(|domain| {
        if attr.is_null() || number.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: not null, so valid.
        let attr = to_kernel(unsafe { &*attr }, attr_mask);
        let mut made = 0;
        // SAFETY: the method's attributes; what they point to lives here.
        unsafe {
            call(
                domain.fd,
                abi::OBJECT_XRCD,
                abi::METHOD_RCV_QP_CREATE,
                [
                    domain.attr(),
                    Attr::handle(abi::ATTR_RCV_QP_HANDLE, 0),
                    Attr::output(abi::ATTR_RCV_QP_QPN, &mut made),
                    Attr::input(abi::ATTR_RCV_QP_ATTR, &attr),
                    Attr::number(abi::ATTR_RCV_QP_FLAGS, flags),
                ],
            )?;
            *number = made;
        }
        Ok(())
    });
    status(made)
}

/// xroce_dv_modify_xrc_rcv_qp(3)
///
/// # Safety
///
/// `xrcd` must be null or a live domain; `attr` null or valid.
#[no_mangle]
pub unsafe extern "C" fn xroce_dv_modify_xrc_rcv_qp(
    xrcd: *mut IbvXrcd,
    number: u32,
    attr: *const IbvQpAttr,
    attr_mask: c_int,
) -> c_int {
    // SAFETY: as the caller says.
    status(unsafe { Domain::of(xrcd) }.and_then(|domain| {
        if attr.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: not null, so valid.
        let attr = to_kernel(unsafe { &*attr }, attr_mask);
        // SAFETY: the method's attributes; what they point to lives here.
        unsafe {
            call(
                domain.fd,
                abi::OBJECT_XRCD,
                abi::METHOD_RCV_QP_MODIFY,
                [
                    domain.attr(),
                    qpn(number),
                    Attr::input(abi::ATTR_RCV_QP_ATTR, &attr),
                ],
            )
        }
    }))
}

/// xroce_dv_query_xrc_rcv_qp(3). All attributes are reported, whatever the
/// mask, as ibv_query_qp(3) may do.
///
/// # Safety
///
/// `xrcd` must be null or a live domain; `attr` and `init_attr` null or valid.
#[no_mangle]
pub unsafe extern "C" fn xroce_dv_query_xrc_rcv_qp(
    xrcd: *mut IbvXrcd,
    number: u32,
    attr: *mut IbvQpAttr,
    _attr_mask: c_int,
    init_attr: *mut IbvQpInitAttr,
) -> c_int {
    // SAFETY: as the caller says.
    status(unsafe { Domain::of(xrcd) }.and_then(|domain| {
        if attr.is_null() {
            return Err(EINVAL);
        }
        let mut found = RcvQpAttr::default();
        // SAFETY: the method's attributes; what they point to lives here. What
        // the caller gave is valid when it is not null.
        unsafe {
            call(
                domain.fd,
                abi::OBJECT_XRCD,
                abi::METHOD_RCV_QP_QUERY,
                [
                    domain.attr(),
                    qpn(number),
                    Attr::output(abi::ATTR_RCV_QP_ATTR, &mut found),
                ],
            )?;
            *attr = from_kernel(&found);
            if !init_attr.is_null() {
                *init_attr = IbvQpInitAttr {
                    qp_context: core::ptr::null_mut(),
                    send_cq: core::ptr::null_mut(),
                    recv_cq: core::ptr::null_mut(),
                    srq: core::ptr::null_mut(),
                    cap: IbvQpCap::default(),
                    qp_type: IBV_QPT_XRC_RECV,
                    sq_sig_all: 0,
                };
            }
        }
        Ok(())
    }))
}

/// xroce_dv_reg_xrc_rcv_qp(3). Who is registered stays so.
///
/// # Safety
///
/// `xrcd` must be null or a live domain.
#[no_mangle]
pub unsafe extern "C" fn xroce_dv_reg_xrc_rcv_qp(xrcd: *mut IbvXrcd, number: u32) -> c_int {
    // SAFETY: as the caller says.
    let done = unsafe { Domain::of(xrcd) }.and_then(|domain| {
        // SAFETY: the method's attributes.
        unsafe {
            call(
                domain.fd,
                abi::OBJECT_XRCD,
                abi::METHOD_RCV_QP_REG,
                [
                    domain.attr(),
                    Attr::handle(abi::ATTR_RCV_QP_HANDLE, 0),
                    qpn(number),
                ],
            )
        }
    });
    match done {
        Err(EEXIST) => 0,
        done => status(done),
    }
}

/// xroce_dv_unreg_xrc_rcv_qp(3)
///
/// # Safety
///
/// `xrcd` must be null or a live domain.
#[no_mangle]
pub unsafe extern "C" fn xroce_dv_unreg_xrc_rcv_qp(xrcd: *mut IbvXrcd, number: u32) -> c_int {
    // SAFETY: as the caller says.
    status(unsafe { Domain::of(xrcd) }.and_then(|domain| {
        let _one = UNREG.lock().unwrap_or_else(PoisonError::into_inner);
        let mut handle = 0u32;
        // SAFETY: the methods' attributes; what they point to lives here.
        unsafe {
            call(
                domain.fd,
                abi::OBJECT_XRCD,
                abi::METHOD_RCV_QP_QUERY,
                [
                    domain.attr(),
                    qpn(number),
                    Attr::output(abi::ATTR_RCV_QP_HANDLE, &mut handle),
                ],
            )?;
            call(
                domain.fd,
                abi::OBJECT_XRCD,
                abi::METHOD_RCV_QP_UNREG,
                [Attr::handle(abi::ATTR_RCV_QP_HANDLE, handle)],
            )
        }
    }))
}
