// SPDX-License-Identifier: GPL-2.0

//! Operations that create, change and destroy completion queues, shared receive queues and queue
//! pairs.

use super::Ops;
use crate::{
    bindings,
    cq::{
        Cq,
        CqInitAttr, //
    },
    device::Device,
    events::{
        CqHandle,
        Listener,
        QpHandle,
        SrqHandle, //
    },
    pd::Pd,
    provider::Provider,
    qp::{
        DestroyCause,
        Qp,
        QpAttr,
        QpAttrMask,
        QpCap,
        QpInitAttr,
        QpType, //
    },
    srq::{
        Srq,
        SrqAttr,
        SrqAttrMask,
        SrqInitAttr,
        SrqType, //
    },
    uverbs::udata::Udata,
    xrcd::Xrcd, //
};
use kernel::{
    error::from_result,
    ffi::c_int,
    prelude::*, //
};

impl<P: Provider> Ops<P> {
    /// # Safety
    ///
    /// See the parent module. `attrs` is null for a kernel user.
    pub(super) unsafe extern "C" fn create_cq(
        cq: *mut bindings::ib_cq,
        attr: *const bindings::ib_cq_init_attr,
        attrs: *mut bindings::uverbs_attr_bundle,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Set before the call; the device stays registered during it.
            let device = unsafe { Device::<P>::from_raw((*cq).device) };
            // SAFETY: Lent by the caller.
            let init = unsafe {
                CqInitAttr {
                    cqe: (*attr).cqe,
                    comp_vector: (*attr).comp_vector,
                    flags: (*attr).flags,
                }
            };
            // SAFETY: Null, or the bundle of the command that runs.
            let mut udata = unsafe { Udata::from_raw(bindings::xrdma_ib_attrs_udata(attrs)) };
            let user = udata.is_some();
            let vector = device.vectors().get(init.comp_vector).ok_or(EINVAL)?;
            // SAFETY: Revoked below on failure, else in `destroy_cq`. The vector is the device's.
            let handle = unsafe { CqHandle::new(cq, vector.clone())? };
            let created = match P::create_cq(device, &init, handle.clone(), udata.as_mut()) {
                Ok(created) => created,
                Err(e) => {
                    handle.revoke();
                    return Err(e);
                }
            };
            // SAFETY: The object being created.
            unsafe {
                (*cq).cqe = i32::try_from(created.cqe).unwrap_or(i32::MAX);
                Cq::<P>::place(cq, handle.clone(), user, created.data);
                if user {
                    bindings::xrdma_ib_show_adaptive(cq, created.adaptive);
                } else {
                    bindings::xrdma_ib_choose_polling(cq);
                }
            }
            handle.enable();
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn resize_cq(
        cq: *mut bindings::ib_cq,
        cqe: core::ffi::c_uint,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Of the command that runs.
            let mut udata = unsafe { Udata::from_raw(udata) }.ok_or(EINVAL)?;
            // SAFETY: Created, not yet destroyed.
            let cqe = P::resize_cq(unsafe { Cq::from_raw(cq) }, cqe, &mut udata)?;
            // SAFETY: As above. Two resizes may race for the number only, which goes nowhere but
            // to the user.
            unsafe { (*cq).cqe = i32::try_from(cqe).unwrap_or(i32::MAX) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn modify_cq(
        cq: *mut bindings::ib_cq,
        count: u16,
        period: u16,
    ) -> c_int {
        // SAFETY: Created, not yet destroyed.
        from_result(|| P::modify_cq(unsafe { Cq::from_raw(cq) }, count, period).map(|()| 0))
    }

    /// A kernel user frees a queue: ib_core is about to end the polling that events start, so they
    /// must end before, and the polling itself, of which ib_core does not see the end. `destroy_cq`
    /// follows.
    ///
    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn pre_destroy_cq(cq: *mut bindings::ib_cq) -> c_int {
        // SAFETY: Created, not yet destroyed.
        unsafe { Cq::<P>::from_raw(cq) }.handle.revoke();
        // SAFETY: As above. ib_core has set up what polls it, and the handle, through which alone
        // anybody else starts that, is revoked.
        unsafe { bindings::xrdma_ib_end_polling(cq) };
        0
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn destroy_cq(
        cq: *mut bindings::ib_cq,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        {
            // SAFETY: Created, not yet destroyed.
            let this = unsafe { Cq::<P>::from_raw(cq) };
            if P::HAS_DESTROY_CQ {
                P::destroy_cq(this);
            }
            this.handle.revoke();
        }
        // SAFETY: The object being destroyed; the reference above is gone.
        unsafe { Cq::<P>::unplace(cq) };
        0
    }

    /// What a create call asks for. `EOPNOTSUPP` for a type that the verbs here do not have.
    ///
    /// # Safety
    ///
    /// `attr` must be that of a create call, for whose time the references are used.
    unsafe fn srq_init_attr<'a>(
        pd: &'a Pd<P>,
        attr: &bindings::ib_srq_init_attr,
    ) -> Result<SrqInitAttr<'a, P>> {
        let srq_type = SrqType::from_raw(attr.srq_type)?;
        let cq = match srq_type {
            SrqType::Basic => None,
            SrqType::Xrc | SrqType::TagMatching => {
                // SAFETY: Checked for null; ib_core counts a reference on it for the SRQ.
                (!attr.ext.cq.is_null()).then(|| unsafe { Cq::<P>::from_raw(attr.ext.cq) })
            }
        };
        let xrcd = match srq_type {
            SrqType::Xrc => {
                // SAFETY: The member of the union that goes with the type.
                let xrcd = unsafe { attr.ext.__bindgen_anon_1.xrc.as_ref() }.xrcd;
                // SAFETY: Checked for null; ib_core counts a reference on it for the SRQ.
                (!xrcd.is_null()).then(|| unsafe { Xrcd::<P>::from_raw(xrcd) })
            }
            SrqType::Basic | SrqType::TagMatching => None,
        };
        let max_num_tags = match srq_type {
            SrqType::TagMatching => {
                // SAFETY: The member of the union that goes with the type.
                unsafe { attr.ext.__bindgen_anon_1.tag_matching.as_ref() }.max_num_tags
            }
            SrqType::Basic | SrqType::Xrc => 0,
        };
        Ok(SrqInitAttr {
            srq_type,
            attr: SrqAttr {
                max_wr: attr.attr.max_wr,
                max_sge: attr.attr.max_sge,
                limit: attr.attr.srq_limit,
            },
            pd,
            cq,
            xrcd,
            max_num_tags,
        })
    }

    /// # Safety
    ///
    /// See the parent module. `attr` is lent.
    pub(super) unsafe extern "C" fn create_srq(
        srq: *mut bindings::ib_srq,
        attr: *mut bindings::ib_srq_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Lent by the caller.
            let attr = unsafe { &mut *attr };
            // SAFETY: Set before the call and kept during it.
            let pd = unsafe { Pd::<P>::from_raw((*srq).pd) };
            // SAFETY: Of the create call that runs.
            let mut init = unsafe { Self::srq_init_attr(pd, attr)? };
            // SAFETY: Null or of the command that runs.
            let mut udata = unsafe { Udata::from_raw(udata) };
            let user = udata.is_some();
            // SAFETY: Revoked below on failure, else in `destroy_srq`.
            let handle = unsafe { SrqHandle::new(srq)? };
            let created = match P::create_srq(pd, &mut init, handle.clone(), udata.as_mut()) {
                Ok(created) => created,
                Err(e) => {
                    handle.revoke();
                    return Err(e);
                }
            };
            attr.attr.max_wr = init.attr.max_wr;
            attr.attr.max_sge = init.attr.max_sge;
            attr.attr.srq_limit = init.attr.limit;
            // SAFETY: The object being created; `xrc` is the member that XRC SRQs use.
            unsafe {
                if init.srq_type == SrqType::Xrc {
                    (*srq).ext.__bindgen_anon_1.xrc.as_mut().srq_num = created.srq_num;
                }
                Srq::<P>::place(srq, handle.clone(), user, created.data);
            }
            handle.enable();
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module. `attr` is lent.
    pub(super) unsafe extern "C" fn modify_srq(
        srq: *mut bindings::ib_srq,
        attr: *mut bindings::ib_srq_attr,
        mask: bindings::ib_srq_attr_mask,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            let known =
                bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR | bindings::ib_srq_attr_mask_IB_SRQ_LIMIT;
            if mask & !known != 0 {
                return Err(EINVAL);
            }
            // SAFETY: Lent by the caller.
            let attr = unsafe {
                SrqAttr {
                    max_wr: (*attr).max_wr,
                    max_sge: (*attr).max_sge,
                    limit: (*attr).srq_limit,
                }
            };
            let mask = SrqAttrMask {
                max_wr: mask & bindings::ib_srq_attr_mask_IB_SRQ_MAX_WR != 0,
                limit: mask & bindings::ib_srq_attr_mask_IB_SRQ_LIMIT != 0,
            };
            // SAFETY: Null or of the command that runs.
            let mut udata = unsafe { Udata::from_raw(udata) };
            // SAFETY: Created, not yet destroyed.
            P::modify_srq(unsafe { Srq::from_raw(srq) }, &attr, mask, udata.as_mut()).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// See the parent module. `attr` is lent for writing.
    pub(super) unsafe extern "C" fn query_srq(
        srq: *mut bindings::ib_srq,
        attr: *mut bindings::ib_srq_attr,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Created, not yet destroyed.
            let found = P::query_srq(unsafe { Srq::from_raw(srq) })?;
            // SAFETY: Lent by the caller.
            unsafe {
                (*attr).max_wr = found.max_wr;
                (*attr).max_sge = found.max_sge;
                (*attr).srq_limit = found.limit;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn destroy_srq(
        srq: *mut bindings::ib_srq,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        {
            // SAFETY: Created, not yet destroyed.
            let this = unsafe { Srq::<P>::from_raw(srq) };
            if P::HAS_DESTROY_SRQ {
                P::destroy_srq(this);
            }
            this.handle.revoke();
        }
        // SAFETY: The object being destroyed; the reference above is gone.
        unsafe { Srq::<P>::unplace(srq) };
        0
    }

    /// # Safety
    ///
    /// See the parent module. `attr` is lent.
    pub(super) unsafe extern "C" fn create_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Lent by the caller.
            let attr = unsafe { &mut *attr };
            let qp_type = QpType::from_raw(attr.qp_type)?;
            if !attr.rwq_ind_tbl.is_null() {
                return Err(crate::errno::eopnotsupp());
            }
            // SAFETY: Set before the call; the device stays registered during it.
            let device = unsafe { Device::<P>::from_raw((*qp).device) };
            // SAFETY: Each is null, or an object that ib_core keeps for the queue pair: it holds
            // the locks of their uobjects and counts a reference on success.
            let mut init = unsafe {
                QpInitAttr::<P> {
                    qp_type,
                    cap: QpCap::from_raw(&attr.cap),
                    signal_all: attr.sq_sig_type == bindings::ib_sig_type_IB_SIGNAL_ALL_WR,
                    create_flags: attr.create_flags,
                    port: attr.port_num,
                    pd: (!(*qp).pd.is_null()).then(|| Pd::from_raw((*qp).pd)),
                    send_cq: (!attr.send_cq.is_null()).then(|| Cq::from_raw(attr.send_cq)),
                    recv_cq: (!attr.recv_cq.is_null()).then(|| Cq::from_raw(attr.recv_cq)),
                    srq: (!attr.srq.is_null()).then(|| Srq::from_raw(attr.srq)),
                    xrcd: (!attr.xrcd.is_null()).then(|| Xrcd::from_raw(attr.xrcd)),
                }
            };
            // SAFETY: Null or of the command that runs.
            let mut udata = unsafe { Udata::from_raw(udata) };
            let user = udata.is_some();
            // A target has no udata, but its events go to uverbs, whose handlers do not sleep.
            let target = qp_type == QpType::XrcTgt;
            let listener = match (user, target) {
                (_, true) => Listener::Target,
                (true, false) => Listener::Uverbs,
                (false, false) => Listener::Kernel,
            };
            // SAFETY: Revoked below on failure, else in `destroy_qp`.
            let handle = unsafe { QpHandle::new(qp, listener)? };
            let created = match P::create_qp(device, &mut init, handle.clone(), udata.as_mut()) {
                Ok(created) => created,
                Err(e) => {
                    handle.revoke();
                    return Err(e);
                }
            };
            init.cap.to_raw(&mut attr.cap);
            // SAFETY: The object being created.
            unsafe {
                (*qp).qp_num = created.qp_num;
                if !created.tracked {
                    (*qp).res.set_no_track(1);
                }
                if target {
                    // uverbs compares it on the way to RTR with what the user says there. ib_core
                    // notes it on the way to INIT, which another view of the target may have gone.
                    // Devices have one port.
                    (*qp).port = 1;
                }
                Qp::<P>::place(qp, handle.clone(), user, created.data);
            }
            if target {
                // It may be a view of a target that is connected already.
                handle.enable();
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module. `attr` is lent; where `mask` names an address vector, ib_core has
    /// resolved its source and references it.
    pub(super) unsafe extern "C" fn modify_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_attr,
        mask: c_int,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            let mask = QpAttrMask::from_bits(mask as u32);
            // SAFETY: By contract.
            let new = unsafe { QpAttr::from_raw(attr, mask)? };
            // SAFETY: Null or of the command that runs.
            let mut udata = unsafe { Udata::from_raw(udata) };
            // SAFETY: Created, not yet destroyed.
            let qp = unsafe { Qp::<P>::from_raw(qp) };
            qp.handle.enable();
            let mut modify = || P::modify_qp(qp, &new, mask, udata.as_mut());
            let shown = if P::HAS_SHOWN_QP && mask.contains(QpAttrMask::AV) {
                P::shown_qp(qp)
            } else {
                None
            };
            match shown {
                // SAFETY: By contract.
                Some(shown) => unsafe {
                    let source = (*attr).ah_attr.grh.sgid_attr;
                    shown.modify_through(qp.device(), source, &mut modify)?
                },
                None => modify()?,
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module. `attr` and `init` are lent for writing.
    pub(super) unsafe extern "C" fn query_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_attr,
        mask: c_int,
        init: *mut bindings::ib_qp_init_attr,
    ) -> c_int {
        from_result(|| {
            let mask = QpAttrMask::from_bits(mask as u32);
            // SAFETY: Created, not yet destroyed.
            let found = P::query_qp(unsafe { Qp::from_raw(qp) }, mask)?;
            // SAFETY: Lent by the caller.
            let (attr, init) = unsafe { (&mut *attr, &mut *init) };
            found.attr.to_raw(attr);
            found.attr.cap.to_raw(&mut init.cap);
            init.sq_sig_type = if found.signal_all {
                bindings::ib_sig_type_IB_SIGNAL_ALL_WR
            } else {
                bindings::ib_sig_type_IB_SIGNAL_REQ_WR
            };
            // SAFETY: As above; these do not change.
            unsafe {
                init.qp_type = (*qp).qp_type;
                init.event_handler = (*qp).event_handler;
                init.qp_context = (*qp).qp_context;
                init.send_cq = (*qp).send_cq;
                init.recv_cq = (*qp).recv_cq;
                init.srq = (*qp).srq;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn destroy_qp(
        qp: *mut bindings::ib_qp,
        _udata: *mut bindings::ib_udata,
    ) -> c_int {
        {
            // SAFETY: Created, not yet destroyed.
            let this = unsafe { Qp::<P>::from_raw(qp) };
            let cause = if this.device().is_closing() {
                DestroyCause::FileClosing
            } else {
                DestroyCause::Explicit
            };
            P::destroy_qp(this, cause);
            this.handle.revoke();
        }
        // SAFETY: The object being destroyed; the reference above is gone.
        unsafe { Qp::<P>::unplace(qp) };
        0
    }

    /// # Safety
    ///
    /// See the parent module. `gid` is lent.
    pub(super) unsafe extern "C" fn attach_mcast(
        qp: *mut bindings::ib_qp,
        gid: *mut bindings::ib_gid,
        lid: u16,
    ) -> c_int {
        // SAFETY: `qp` is created, not yet destroyed; any member of `union ib_gid` is 16 bytes.
        let (qp, gid) = unsafe { (Qp::from_raw(qp), gid.cast::<[u8; 16]>().read()) };
        from_result(|| P::attach_mcast(qp, &gid, lid).map(|()| 0))
    }

    /// # Safety
    ///
    /// See the parent module. `gid` is lent.
    pub(super) unsafe extern "C" fn detach_mcast(
        qp: *mut bindings::ib_qp,
        gid: *mut bindings::ib_gid,
        lid: u16,
    ) -> c_int {
        // SAFETY: `qp` is created, not yet destroyed; any member of `union ib_gid` is 16 bytes.
        let (qp, gid) = unsafe { (Qp::from_raw(qp), gid.cast::<[u8; 16]>().read()) };
        from_result(|| P::detach_mcast(qp, &gid, lid).map(|()| 0))
    }
}
