// SPDX-License-Identifier: GPL-2.0

//! Operations that post and poll. They run in any context, also with interrupts disabled.

use super::Ops;
use crate::{
    bindings,
    cq::{
        Cq,
        Notify, //
    },
    provider::Provider,
    qp::Qp,
    srq::Srq,
    wr::{
        RecvWr,
        SendWr,
        WcBuf, //
    }, //
};
use kernel::{
    error::from_result,
    ffi::c_int,
    prelude::*, //
};

impl<P: Provider> Ops<P> {
    /// # Safety
    ///
    /// See the parent module. `wr` is null or a chain of requests, well formed if a kernel user
    /// posts it; `bad` is lent for writing.
    pub(super) unsafe extern "C" fn post_send(
        qp: *mut bindings::ib_qp,
        mut wr: *const bindings::ib_send_wr,
        bad: *mut *const bindings::ib_send_wr,
    ) -> c_int {
        // SAFETY: Created, not yet destroyed.
        let this = unsafe { Qp::<P>::from_raw(qp) };
        // SAFETY: Written once by ib_core, before the queue pair was created.
        let qp_type = unsafe { (*qp).qp_type };
        if this.user || qp_type == bindings::ib_qp_type_IB_QPT_XRC_TGT {
            // A process posts through its ring; the command without requests is the doorbell.
            // Requests in the command hold user addresses, and nobody sends on a target.
            if !wr.is_null() || !this.user {
                // SAFETY: Lent.
                unsafe { bad.write(wr) };
                return EINVAL.to_errno();
            }
            if !P::HAS_DOORBELL {
                return 0;
            }
            return from_result(|| P::doorbell(this).map(|()| 0));
        }

        let datagram = matches!(
            qp_type,
            bindings::ib_qp_type_IB_QPT_UD | bindings::ib_qp_type_IB_QPT_GSI
        );
        let mut posted = false;
        let mut ret = 0;
        // SAFETY: Null or an element of the chain.
        while let Some(raw) = unsafe { wr.as_ref() } {
            // SAFETY: A kernel user's, well formed (contract).
            let request = unsafe { SendWr::from_raw(raw, datagram) };
            if let Err(e) = P::post_send(this, &request) {
                // SAFETY: Lent.
                unsafe { bad.write(wr) };
                ret = e.to_errno();
                break;
            }
            posted = true;
            wr = raw.next;
        }
        if posted && P::HAS_POST_SEND_END {
            P::post_send_end(this);
        }
        ret
    }

    /// # Safety
    ///
    /// See the parent module. As [`Self::post_send`].
    pub(super) unsafe extern "C" fn post_recv(
        qp: *mut bindings::ib_qp,
        mut wr: *const bindings::ib_recv_wr,
        bad: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        // SAFETY: Created, not yet destroyed.
        let this = unsafe { Qp::<P>::from_raw(qp) };
        // SAFETY: Written once by ib_core, before the queue pair was created.
        let nobodys = unsafe { (*qp).qp_type } == bindings::ib_qp_type_IB_QPT_XRC_TGT;
        if this.user || nobodys {
            // SAFETY: Lent.
            unsafe { bad.write(wr) };
            return EINVAL.to_errno();
        }
        // SAFETY: Null or an element of the chain.
        while let Some(raw) = unsafe { wr.as_ref() } {
            // SAFETY: A kernel user's, well formed (contract).
            if let Err(e) = P::post_recv(this, &unsafe { RecvWr::from_raw(raw) }) {
                // SAFETY: Lent.
                unsafe { bad.write(wr) };
                return e.to_errno();
            }
            wr = raw.next;
        }
        0
    }

    /// # Safety
    ///
    /// See the parent module. As [`Self::post_send`].
    pub(super) unsafe extern "C" fn post_srq_recv(
        srq: *mut bindings::ib_srq,
        mut wr: *const bindings::ib_recv_wr,
        bad: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        // SAFETY: Created, not yet destroyed.
        let this = unsafe { Srq::<P>::from_raw(srq) };
        if this.user && wr.is_null() && P::HAS_SRQ_DOORBELL {
            return from_result(|| P::srq_doorbell(this).map(|()| 0));
        }
        if this.user {
            // SAFETY: Lent.
            unsafe { bad.write(wr) };
            return EINVAL.to_errno();
        }
        // SAFETY: Null or an element of the chain.
        while let Some(raw) = unsafe { wr.as_ref() } {
            // SAFETY: A kernel user's, well formed (contract).
            if let Err(e) = P::post_srq_recv(this, &unsafe { RecvWr::from_raw(raw) }) {
                // SAFETY: Lent.
                unsafe { bad.write(wr) };
                return e.to_errno();
            }
            wr = raw.next;
        }
        0
    }

    /// # Safety
    ///
    /// See the parent module. `wc` is an array of `count` elements, lent for writing.
    pub(super) unsafe extern "C" fn poll_cq(
        cq: *mut bindings::ib_cq,
        count: c_int,
        wc: *mut bindings::ib_wc,
    ) -> c_int {
        // SAFETY: Lent.
        let mut wcs = unsafe { WcBuf::from_raw(wc, usize::try_from(count).unwrap_or(0)) };
        from_result(|| {
            // SAFETY: Created, not yet destroyed.
            P::poll_cq(unsafe { Cq::from_raw(cq) }, &mut wcs)?;
            // At most `count`.
            Ok(wcs.len() as c_int)
        })
    }

    /// # Safety
    ///
    /// See the parent module.
    pub(super) unsafe extern "C" fn req_notify_cq(
        cq: *mut bindings::ib_cq,
        flags: bindings::ib_cq_notify_flags,
    ) -> c_int {
        let notify = Notify::from_raw(flags);
        from_result(|| {
            // SAFETY: Created, not yet destroyed.
            let waiting = P::req_notify_cq(unsafe { Cq::from_raw(cq) }, notify)?;
            Ok((waiting && notify.report_missed).into())
        })
    }
}
