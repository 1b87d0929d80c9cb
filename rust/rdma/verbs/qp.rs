// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    ah::AhAttr,
    bindings,
    cq::Cq,
    events::QpHandle,
    object::object,
    pd::Pd,
    provider::Provider,
    srq::Srq,
    xrcd::Xrcd, //
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

object! {
    /// A queue pair: `struct ib_qp` and the provider's data.
    pub struct Qp<P: Provider>(ib_qp, P::Qp) {
        handle: QpHandle,
        user: bool,
    }
}

impl<P: Provider> Qp<P> {
    /// Raises the events of the queue pair.
    pub fn handle(&self) -> &QpHandle {
        &self.handle
    }

    /// Tells whether a process posts to the queue pair, through shared rings. An XRC target, to
    /// which nobody posts, counts as a kernel user's.
    pub fn is_user(&self) -> bool {
        self.user
    }

    /// Number of the queue pair.
    pub fn qp_num(&self) -> u32 {
        // SAFETY: Written once, before the object was shown to anybody.
        unsafe { (*self.as_raw()).qp_num }
    }
}

/// Type of a queue pair (`enum ib_qp_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum QpType {
    /// General services: QP 1, of the connection manager.
    Gsi = bindings::ib_qp_type_IB_QPT_GSI,
    /// Reliable connection.
    Rc = bindings::ib_qp_type_IB_QPT_RC,
    /// Unreliable connection.
    Uc = bindings::ib_qp_type_IB_QPT_UC,
    /// Unreliable datagram.
    Ud = bindings::ib_qp_type_IB_QPT_UD,
    /// Extended reliable connection, the sending end.
    XrcIni = bindings::ib_qp_type_IB_QPT_XRC_INI,
    /// Extended reliable connection, the receiving end.
    XrcTgt = bindings::ib_qp_type_IB_QPT_XRC_TGT,
}

impl QpType {
    /// Fails with `EOPNOTSUPP` for the types that no provider of this crate has.
    pub(crate) fn from_raw(raw: bindings::ib_qp_type) -> Result<Self> {
        match raw {
            bindings::ib_qp_type_IB_QPT_GSI => Ok(Self::Gsi),
            bindings::ib_qp_type_IB_QPT_RC => Ok(Self::Rc),
            bindings::ib_qp_type_IB_QPT_UC => Ok(Self::Uc),
            bindings::ib_qp_type_IB_QPT_UD => Ok(Self::Ud),
            bindings::ib_qp_type_IB_QPT_XRC_INI => Ok(Self::XrcIni),
            bindings::ib_qp_type_IB_QPT_XRC_TGT => Ok(Self::XrcTgt),
            _ => Err(crate::errno::eopnotsupp()),
        }
    }
}

/// State of a queue pair (`enum ib_qp_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum QpState {
    /// Just made, or reset.
    #[default]
    Reset = bindings::ib_qp_state_IB_QPS_RESET,
    /// Receives may be posted.
    Init = bindings::ib_qp_state_IB_QPS_INIT,
    /// Ready to receive.
    Rtr = bindings::ib_qp_state_IB_QPS_RTR,
    /// Ready to send.
    Rts = bindings::ib_qp_state_IB_QPS_RTS,
    /// The send queue is draining or has drained.
    Sqd = bindings::ib_qp_state_IB_QPS_SQD,
    /// The send queue is in error.
    Sqe = bindings::ib_qp_state_IB_QPS_SQE,
    /// Everything posted is flushed.
    Error = bindings::ib_qp_state_IB_QPS_ERR,
}

impl QpState {
    /// Reads `enum ib_qp_state`.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a number that is not a state.
    pub fn from_raw(raw: u32) -> Result<Self> {
        match raw {
            bindings::ib_qp_state_IB_QPS_RESET => Ok(Self::Reset),
            bindings::ib_qp_state_IB_QPS_INIT => Ok(Self::Init),
            bindings::ib_qp_state_IB_QPS_RTR => Ok(Self::Rtr),
            bindings::ib_qp_state_IB_QPS_RTS => Ok(Self::Rts),
            bindings::ib_qp_state_IB_QPS_SQD => Ok(Self::Sqd),
            bindings::ib_qp_state_IB_QPS_SQE => Ok(Self::Sqe),
            bindings::ib_qp_state_IB_QPS_ERR => Ok(Self::Error),
            _ => Err(EINVAL),
        }
    }
}

/// Tells whether the verbs allow to go from `current` to `next` with the attributes of `mask`.
pub fn modify_qp_is_ok(current: QpState, next: QpState, qp_type: QpType, mask: QpAttrMask) -> bool {
    // SAFETY: A look into a table; all arguments are values of their enumerations.
    unsafe {
        bindings::ib_modify_qp_is_ok(current as u32, next as u32, qp_type as u32, mask.bits())
    }
}

/// Which attributes a modify or query operation is about (`enum ib_qp_attr_mask`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpAttrMask(u32);

impl QpAttrMask {
    /// [`QpAttr::state`]
    pub const STATE: Self = Self(bindings::ib_qp_attr_mask_IB_QP_STATE);
    /// [`QpAttr::cur_state`]
    pub const CUR_STATE: Self = Self(bindings::ib_qp_attr_mask_IB_QP_CUR_STATE);
    /// [`QpAttr::sqd_async_notify`]
    pub const EN_SQD_ASYNC_NOTIFY: Self = Self(bindings::ib_qp_attr_mask_IB_QP_EN_SQD_ASYNC_NOTIFY);
    /// [`QpAttr::access`]
    pub const ACCESS_FLAGS: Self = Self(bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS);
    /// [`QpAttr::pkey_index`]
    pub const PKEY_INDEX: Self = Self(bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX);
    /// [`QpAttr::port`]
    pub const PORT: Self = Self(bindings::ib_qp_attr_mask_IB_QP_PORT);
    /// [`QpAttr::qkey`]
    pub const QKEY: Self = Self(bindings::ib_qp_attr_mask_IB_QP_QKEY);
    /// [`QpAttr::ah`]
    pub const AV: Self = Self(bindings::ib_qp_attr_mask_IB_QP_AV);
    /// [`QpAttr::path_mtu`]
    pub const PATH_MTU: Self = Self(bindings::ib_qp_attr_mask_IB_QP_PATH_MTU);
    /// [`QpAttr::timeout`]
    pub const TIMEOUT: Self = Self(bindings::ib_qp_attr_mask_IB_QP_TIMEOUT);
    /// [`QpAttr::retry_cnt`]
    pub const RETRY_CNT: Self = Self(bindings::ib_qp_attr_mask_IB_QP_RETRY_CNT);
    /// [`QpAttr::rnr_retry`]
    pub const RNR_RETRY: Self = Self(bindings::ib_qp_attr_mask_IB_QP_RNR_RETRY);
    /// [`QpAttr::rq_psn`]
    pub const RQ_PSN: Self = Self(bindings::ib_qp_attr_mask_IB_QP_RQ_PSN);
    /// [`QpAttr::max_rd_atomic`]
    pub const MAX_QP_RD_ATOMIC: Self = Self(bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC);
    /// Attributes of the alternate path, which ib_core refuses on RoCE
    pub const ALT_PATH: Self = Self(bindings::ib_qp_attr_mask_IB_QP_ALT_PATH);
    /// [`QpAttr::min_rnr_timer`]
    pub const MIN_RNR_TIMER: Self = Self(bindings::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER);
    /// [`QpAttr::sq_psn`]
    pub const SQ_PSN: Self = Self(bindings::ib_qp_attr_mask_IB_QP_SQ_PSN);
    /// [`QpAttr::max_dest_rd_atomic`]
    pub const MAX_DEST_RD_ATOMIC: Self = Self(bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC);
    /// [`QpAttr::path_mig_state`]
    pub const PATH_MIG_STATE: Self = Self(bindings::ib_qp_attr_mask_IB_QP_PATH_MIG_STATE);
    /// [`QpAttr::cap`]
    pub const CAP: Self = Self(bindings::ib_qp_attr_mask_IB_QP_CAP);
    /// [`QpAttr::dest_qp_num`]
    pub const DEST_QPN: Self = Self(bindings::ib_qp_attr_mask_IB_QP_DEST_QPN);
    /// [`QpAttr::rate_limit`]
    pub const RATE_LIMIT: Self = Self(bindings::ib_qp_attr_mask_IB_QP_RATE_LIMIT);
    /// Everything that the verbs define.
    pub const STANDARD: Self = Self(bindings::ib_qp_attr_mask_IB_QP_ATTR_STANDARD_BITS);

    /// Takes the bits of `enum ib_qp_attr_mask`.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The bits of `enum ib_qp_attr_mask`.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Tells whether all of `other` is in the mask.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both masks together.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl core::ops::BitOr for QpAttrMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// Capacities of a queue pair (`struct ib_qp_cap`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QpCap {
    /// Send work requests.
    pub max_send_wr: u32,
    /// Receive work requests.
    pub max_recv_wr: u32,
    /// Gather elements of a send.
    pub max_send_sge: u32,
    /// Scatter elements of a receive.
    pub max_recv_sge: u32,
    /// Bytes of inline data in a send.
    pub max_inline_data: u32,
}

impl QpCap {
    pub(crate) fn from_raw(cap: &bindings::ib_qp_cap) -> Self {
        Self {
            max_send_wr: cap.max_send_wr,
            max_recv_wr: cap.max_recv_wr,
            max_send_sge: cap.max_send_sge,
            max_recv_sge: cap.max_recv_sge,
            max_inline_data: cap.max_inline_data,
        }
    }

    pub(crate) fn to_raw(self, cap: &mut bindings::ib_qp_cap) {
        cap.max_send_wr = self.max_send_wr;
        cap.max_recv_wr = self.max_recv_wr;
        cap.max_send_sge = self.max_send_sge;
        cap.max_recv_sge = self.max_recv_sge;
        cap.max_inline_data = self.max_inline_data;
    }
}

/// Attributes of a queue pair (`struct ib_qp_attr`).
///
/// In a modify operation only those that the mask names mean something, and ib_core has looked at
/// few of them: treat the numbers as user input.
#[derive(Clone, Copy, Debug, Default)]
pub struct QpAttr {
    /// State to go to, or that it is in.
    pub state: QpState,
    /// State that the user believes it is in.
    pub cur_state: QpState,
    /// Path MTU in bytes; 0 when the user's value is none of `enum ib_mtu`.
    pub path_mtu: u32,
    /// Path migration state (`enum ib_mig_state`).
    pub path_mig_state: u32,
    /// Queue key.
    pub qkey: u32,
    /// First PSN expected.
    pub rq_psn: u32,
    /// First PSN to send.
    pub sq_psn: u32,
    /// QP number of the peer.
    pub dest_qp_num: u32,
    /// What the peer may do (`IB_ACCESS_*`, see [`crate::mr::AccessFlags`]).
    pub access: u32,
    /// Capacities.
    pub cap: QpCap,
    /// Primary path.
    pub ah: AhAttr,
    /// Index into the partition key table.
    pub pkey_index: u16,
    /// Raise an event when the send queue has drained.
    pub sqd_async_notify: bool,
    /// The send queue is still draining (query).
    pub sq_draining: bool,
    /// READs and atomics in flight as requester.
    pub max_rd_atomic: u8,
    /// READs and atomics in flight as responder.
    pub max_dest_rd_atomic: u8,
    /// RNR timer code, 0 to 31, that the responder asks for.
    pub min_rnr_timer: u8,
    /// Port number, from 1.
    pub port: u32,
    /// ACK timeout: 4.096 µs times two to this power, 0 to 31; 0 is never.
    pub timeout: u8,
    /// Retries after timeouts and sequence errors, 0 to 7.
    pub retry_cnt: u8,
    /// Retries after RNR NAKs, 0 to 7; 7 is for ever.
    pub rnr_retry: u8,
    /// Rate limit in kbit/s.
    pub rate_limit: u32,
}

impl QpAttr {
    /// Reads an attribute structure.
    ///
    /// # Safety
    ///
    /// `attr` must be valid for reads, with the address vectors of `mask` filled in as ib_core
    /// does before it calls the modify operation (source GIDs referenced).
    pub(crate) unsafe fn from_raw(
        attr: *const bindings::ib_qp_attr,
        mask: QpAttrMask,
    ) -> Result<Self> {
        // SAFETY: Valid by contract.
        let raw = unsafe { &*attr };
        let mut this = Self {
            path_mtu: mtu_from_raw(raw.path_mtu),
            path_mig_state: raw.path_mig_state,
            qkey: raw.qkey,
            rq_psn: raw.rq_psn,
            sq_psn: raw.sq_psn,
            dest_qp_num: raw.dest_qp_num,
            access: raw.qp_access_flags as u32,
            cap: QpCap::from_raw(&raw.cap),
            pkey_index: raw.pkey_index,
            sqd_async_notify: raw.en_sqd_async_notify != 0,
            sq_draining: raw.sq_draining != 0,
            max_rd_atomic: raw.max_rd_atomic,
            max_dest_rd_atomic: raw.max_dest_rd_atomic,
            min_rnr_timer: raw.min_rnr_timer,
            port: raw.port_num,
            timeout: raw.timeout,
            retry_cnt: raw.retry_cnt,
            rnr_retry: raw.rnr_retry,
            rate_limit: raw.rate_limit,
            ..Self::default()
        };
        if mask.contains(QpAttrMask::STATE) {
            this.state = QpState::from_raw(raw.qp_state)?;
        }
        if mask.contains(QpAttrMask::CUR_STATE) {
            this.cur_state = QpState::from_raw(raw.cur_qp_state)?;
        }
        if mask.contains(QpAttrMask::AV) {
            // SAFETY: ib_core has resolved the source and references it (contract).
            this.ah = unsafe { AhAttr::from_raw(&raw.ah_attr) };
        }
        Ok(this)
    }

    /// Fills an attribute structure for a query.
    pub(crate) fn to_raw(self, raw: &mut bindings::ib_qp_attr) {
        raw.qp_state = self.state as u32;
        raw.cur_qp_state = self.cur_state as u32;
        raw.path_mtu = mtu_to_raw(self.path_mtu);
        raw.path_mig_state = self.path_mig_state;
        raw.qkey = self.qkey;
        raw.rq_psn = self.rq_psn;
        raw.sq_psn = self.sq_psn;
        raw.dest_qp_num = self.dest_qp_num;
        raw.qp_access_flags = self.access as i32;
        self.cap.to_raw(&mut raw.cap);
        self.ah.to_raw(&mut raw.ah_attr);
        // There is none; the memory is not zeroed.
        AhAttr::default().to_raw(&mut raw.alt_ah_attr);
        raw.pkey_index = self.pkey_index;
        raw.alt_pkey_index = 0;
        raw.en_sqd_async_notify = self.sqd_async_notify.into();
        raw.sq_draining = self.sq_draining.into();
        raw.max_rd_atomic = self.max_rd_atomic;
        raw.max_dest_rd_atomic = self.max_dest_rd_atomic;
        raw.min_rnr_timer = self.min_rnr_timer;
        raw.port_num = self.port;
        raw.timeout = self.timeout;
        raw.retry_cnt = self.retry_cnt;
        raw.rnr_retry = self.rnr_retry;
        raw.alt_port_num = 0;
        raw.alt_timeout = 0;
        raw.rate_limit = self.rate_limit;
    }
}

/// Bytes of an `enum ib_mtu`; 0 for a number that is none.
pub(crate) fn mtu_from_raw(raw: bindings::ib_mtu) -> u32 {
    match raw {
        bindings::ib_mtu_IB_MTU_256 => 256,
        bindings::ib_mtu_IB_MTU_512 => 512,
        bindings::ib_mtu_IB_MTU_1024 => 1024,
        bindings::ib_mtu_IB_MTU_2048 => 2048,
        bindings::ib_mtu_IB_MTU_4096 => 4096,
        _ => 0,
    }
}

/// The largest `enum ib_mtu` that is not above `bytes`; 256 below that.
pub(crate) fn mtu_to_raw(bytes: u32) -> bindings::ib_mtu {
    match bytes {
        4096.. => bindings::ib_mtu_IB_MTU_4096,
        2048.. => bindings::ib_mtu_IB_MTU_2048,
        1024.. => bindings::ib_mtu_IB_MTU_1024,
        512.. => bindings::ib_mtu_IB_MTU_512,
        _ => bindings::ib_mtu_IB_MTU_256,
    }
}

/// What the user of a new queue pair asks for.
pub struct QpInitAttr<'a, P: Provider> {
    /// Type.
    pub qp_type: QpType,
    /// Capacities; the provider puts in what the queue pair really has.
    pub cap: QpCap,
    /// Every send is signalled.
    pub signal_all: bool,
    /// `IB_QP_CREATE_*` flags; refuse those that are not supported with `EOPNOTSUPP`.
    pub create_flags: u32,
    /// GSI: port number, from 1.
    pub port: u32,
    /// Protection domain; `None` for an XRC target.
    pub pd: Option<&'a Pd<P>>,
    /// Where sends complete.
    pub send_cq: Option<&'a Cq<P>>,
    /// Where receives complete.
    pub recv_cq: Option<&'a Cq<P>>,
    /// Shared receive queue.
    pub srq: Option<&'a Srq<P>>,
    /// XRC target: the domain.
    pub xrcd: Option<&'a Xrcd<P>>,
}

/// A queue pair that was made.
pub struct CreatedQp<T> {
    /// The provider's data.
    pub data: T,
    /// Number of the queue pair (24 bits).
    pub qp_num: u32,
    /// Whether `rdma res` shows it. At most one queue pair with a number can be shown.
    pub tracked: bool,
}

/// What a query reports.
pub struct QpQuery {
    /// Attributes, with [`QpAttr::cap`].
    pub attr: QpAttr,
    /// Every send is signalled.
    pub signal_all: bool,
}

/// Why a queue pair is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestroyCause {
    /// Its user asked for it.
    Explicit,
    /// The process closed the device, exited or was killed, or the device is being removed.
    FileClosing,
}
