// SPDX-License-Identifier: GPL-2.0
//! Creating queue pairs, and opening XRC receive QPs of other processes.

use core::cell::UnsafeCell;
use core::mem::size_of;

use super::{
    wr,
    Kind,
    Limits,
    Qp,
    SendQueue, //
};
use crate::abi::{
    self,
    CreateQpReq,
    CreateQpResp, //
};
use crate::context::Context;
use crate::layout;
use crate::lock::Locked;
use crate::recv::{
    self,
    RecvQueue, //
};
use crate::ring::{
    Producer,
    Ring, //
};
use crate::sys::{
    check,
    object,
    Result,
    EINVAL,
    EOPNOTSUPP,
    EPROTO, //
};
use crate::verbs::cmd::{
    self,
    log_error,
    size,
    Buffer, //
};
use crate::verbs::*;

const COMP_MASK: u32 = IBV_QP_INIT_ATTR_PD
    | IBV_QP_INIT_ATTR_XRCD
    | IBV_QP_INIT_ATTR_CREATE_FLAGS
    | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

impl Kind {
    fn of(qp_type: i32) -> Result<Self> {
        match qp_type {
            IBV_QPT_RC => Ok(Self::Rc),
            IBV_QPT_UC => Ok(Self::Uc),
            IBV_QPT_UD => Ok(Self::Ud),
            IBV_QPT_XRC_SEND => Ok(Self::XrcSend),
            IBV_QPT_XRC_RECV => Ok(Self::XrcRecv),
            _ => Err(EOPNOTSUPP),
        }
    }
}

/// Functions that the loaded libibverbs lacks.
fn absent_builders() -> usize {
    layout::get().map_or(0, |l| l.absent_builders)
}

/// Refuses what libibverbs' command would follow blindly or the device does
/// not have.
fn validate(attr: &IbvQpInitAttrEx) -> Result<Kind> {
    let kind = Kind::of(attr.qp_type)?;
    if attr.comp_mask & !COMP_MASK != 0 {
        return Err(EOPNOTSUPP);
    }
    if attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS != 0 && attr.create_flags != 0 {
        return Err(EOPNOTSUPP);
    }
    if attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS != 0
        && attr.send_ops_flags & !wr::supported(kind, absent_builders()) != 0
    {
        return Err(EOPNOTSUPP);
    }
    let complete = if kind == Kind::XrcRecv {
        attr.comp_mask & IBV_QP_INIT_ATTR_XRCD != 0 && !attr.xrcd.is_null()
    } else {
        attr.comp_mask & IBV_QP_INIT_ATTR_PD != 0
            && !attr.pd.is_null()
            && !attr.send_cq.is_null()
            && (kind == Kind::XrcSend || !attr.recv_cq.is_null())
    };
    if complete {
        Ok(kind)
    } else {
        Err(EINVAL)
    }
}

/// Bytes of a send slot that requests within the limits fill.
fn send_slot_len(limits: &Limits) -> usize {
    let sges = limits.max_sge as usize * size_of::<abi::Sge>();
    abi::SEND_SLOT_HDR + sges.max(limits.max_inline as usize)
}

/// Maps the rings that the kernel made.
fn map(
    fd: i32,
    limits: Limits,
    max_recv_sge: u32,
    resp: &CreateQpResp,
) -> Result<(Option<SendQueue>, Option<RecvQueue>)> {
    let sq = (&resp.sq, send_slot_len(&limits));
    let rq = (&resp.rq, recv::slot_len(max_recv_sge));
    let (send, recv) = Ring::map_pair(fd, sq, rq)?;
    let send = send.map(|ring| SendQueue::new(Producer::new(ring), limits));
    let recv = recv.map(|ring| RecvQueue::new(Producer::new(ring), max_recv_sge));
    Ok((send, recv))
}

/// Has the kernel create a QP at its final address. `attr` comes back with
/// the actual capabilities.
///
/// # Safety
///
/// `context` must be open, and objects in `attr` alive.
unsafe fn create(context: *mut IbvContext, attr: &mut IbvQpInitAttrEx) -> Result<*mut Qp> {
    type Cmd = Buffer<{ size::EX_CREATE_QP }, CreateQpReq>;
    type Resp = Buffer<{ size::EX_CREATE_QP_RESP }, CreateQpResp>;
    let layout = layout::get().ok_or(EPROTO)?;
    let kind = validate(attr)?;
    let signal_all = attr.sq_sig_all != 0;
    // SAFETY: an open context.
    let packs = unsafe { Context::features(context) } & abi::FEATURE_ONE_MAPPING != 0;
    let mut cmd = Cmd::new(CreateQpReq {
        flags: if packs { abi::QP_ONE_MAPPING } else { 0 },
        reserved: 0,
    });
    let mut resp = Resp::new(CreateQpResp::default());
    let (cmd_size, resp_size) = match kind {
        // The kernel gives the driver no data of a target QP.
        Kind::XrcRecv => (4 * size::EX_CREATE_QP, 4 * size::EX_CREATE_QP_RESP),
        _ => (Cmd::SIZE, Resp::SIZE),
    };
    let qp = Box::into_raw(Box::new(Qp {
        // SAFETY: integers, raw pointers and optional functions: all zero is
        // valid.
        base: UnsafeCell::new(unsafe { core::mem::zeroed() }),
        kind,
        // SAFETY: an open context.
        fd: unsafe { Context::fd(context) },
        send: None,
        recv: None,
    }));
    // SAFETY: `qp` is ours; the buffers have at least the sizes given.
    let made = check(unsafe {
        cmd::create_qp(
            layout,
            context,
            qp.cast(),
            attr,
            (cmd.ptr(), cmd_size),
            (resp.ptr(), resp_size),
        )
    });
    if let Err(e) = made {
        // SAFETY: made above, and nobody else knows it.
        drop(unsafe { Box::from_raw(qp) });
        return Err(e);
    }
    if kind == Kind::XrcRecv {
        return Ok(qp);
    }
    let limits = Limits {
        kind,
        max_sge: attr.cap.max_send_sge,
        max_inline: resp.driver.max_inline,
        signal_all,
    };
    // SAFETY: still known to nobody else; the kernel only keeps its address.
    let this = unsafe { &mut *qp };
    let mapped = map(this.fd, limits, attr.cap.max_recv_sge, &resp.driver);
    match mapped {
        Ok((Some(send), recv)) => {
            this.send = Some(Locked::new(send));
            this.recv = recv.map(Locked::new);
            attr.cap.max_inline_data = limits.max_inline;
            Ok(qp)
        }
        failed => {
            // SAFETY: created above; nobody else knows it.
            unsafe {
                log_error(context, "cannot map the rings of a new QP");
                cmd::ibv_cmd_destroy_qp(qp.cast());
                drop(Box::from_raw(qp));
            }
            Err(failed.err().unwrap_or(EPROTO))
        }
    }
}

/// As [`create`], for a target QP with what the kernel shall read in `cap`;
/// the caller's own capabilities mean nothing and come back zero.
///
/// # Safety
///
/// As [`create`].
unsafe fn create_target(
    context: *mut IbvContext,
    attr: &mut IbvQpInitAttrEx,
    cap: IbvQpCap,
) -> Result<*mut Qp> {
    let mut copy = IbvQpInitAttrEx {
        cap,
        send_cq: core::ptr::null_mut(),
        recv_cq: core::ptr::null_mut(),
        srq: core::ptr::null_mut(),
        ..*attr
    };
    // SAFETY: as the caller says.
    let qp = unsafe { create(context, &mut copy) }?;
    attr.cap = IbvQpCap::default();
    Ok(qp)
}

/// ibv_create_qp(3)
///
/// # Safety
///
/// Called by libibverbs with a live PD and valid attributes.
pub unsafe extern "C" fn create_qp(pd: *mut IbvPd, attr: *mut IbvQpInitAttr) -> *mut IbvQp {
    // SAFETY: the caller's structure is valid.
    let attr = unsafe { &mut *attr };
    let mut ex = IbvQpInitAttrEx {
        qp_context: attr.qp_context,
        send_cq: attr.send_cq,
        recv_cq: attr.recv_cq,
        srq: attr.srq,
        cap: attr.cap,
        qp_type: attr.qp_type,
        sq_sig_all: attr.sq_sig_all,
        comp_mask: IBV_QP_INIT_ATTR_PD,
        pd,
        xrcd: core::ptr::null_mut(),
        create_flags: 0,
        max_tso_header: 0,
        rwq_ind_tbl: core::ptr::null_mut(),
        rx_hash_conf: [0; 3],
        source_qpn: 0,
        send_ops_flags: 0,
    };
    // SAFETY: a live PD names an open context; the rest is the caller's.
    let made = unsafe { create((*pd).context, &mut ex) };
    if made.is_ok() {
        attr.cap = ex.cap;
    }
    object(made).cast()
}

/// ibv_create_qp_ex(3)
///
/// # Safety
///
/// Called with an open context and valid attributes.
pub unsafe extern "C" fn create_qp_ex(
    context: *mut IbvContext,
    attr: *mut IbvQpInitAttrEx,
) -> *mut IbvQp {
    // SAFETY: the caller's structure is valid.
    let attr = unsafe { &mut *attr };
    // SAFETY: the caller's arguments.
    let made = unsafe {
        if attr.qp_type == IBV_QPT_XRC_RECV {
            create_target(context, attr, IbvQpCap::default())
        } else {
            create(context, attr)
        }
    };
    if let Ok(qp) = made {
        // SAFETY: nobody else knows it yet.
        let qp = unsafe { &mut *qp };
        if qp.send.is_some() {
            wr::fill(qp.kind, qp.base.get_mut(), absent_builders());
        }
    }
    object(made).cast()
}

/// ibv_open_qp(3): a handle of its own on a target QP of the domain, whoever
/// made that. It names the QP to the kernel in place of capabilities.
///
/// # Safety
///
/// Called with an open context and valid attributes.
pub unsafe extern "C" fn open_qp(context: *mut IbvContext, attr: *mut IbvQpOpenAttr) -> *mut IbvQp {
    const NEEDED: u32 = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    // SAFETY: the caller's structure is valid.
    let attr = unsafe { &*attr };
    if attr.comp_mask & !(NEEDED | IBV_QP_OPEN_ATTR_CONTEXT) != 0 {
        return object(Err(EOPNOTSUPP));
    }
    if attr.comp_mask & NEEDED != NEEDED || attr.qp_type != IBV_QPT_XRC_RECV || attr.xrcd.is_null()
    {
        return object(Err(EINVAL));
    }
    // SAFETY: integers and raw pointers: all zero is valid.
    let mut init: IbvQpInitAttrEx = unsafe { core::mem::zeroed() };
    init.qp_type = IBV_QPT_XRC_RECV;
    init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    init.xrcd = attr.xrcd;
    if attr.comp_mask & IBV_QP_OPEN_ATTR_CONTEXT != 0 {
        init.qp_context = attr.qp_context;
    }
    let name = IbvQpCap {
        max_send_wr: abi::TGT_OPEN,
        max_recv_wr: attr.qp_num,
        ..IbvQpCap::default()
    };
    // SAFETY: the caller's context and domain.
    let made = unsafe { create_target(context, &mut init, name) };
    if let Ok(qp) = made {
        // SAFETY: nobody else knows it yet.
        unsafe { (*qp).base.get_mut() }.qp.qp_base.state = IBV_QPS_UNKNOWN;
    }
    object(made).cast()
}
