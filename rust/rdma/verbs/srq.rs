// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    bindings,
    cq::Cq,
    events::SrqHandle,
    object::object,
    pd::Pd,
    provider::Provider,
    xrcd::Xrcd, //
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

object! {
    /// A shared receive queue: `struct ib_srq` and the provider's data.
    pub struct Srq<P: Provider>(ib_srq, P::Srq) {
        handle: SrqHandle,
        user: bool,
    }
}

impl<P: Provider> Srq<P> {
    /// Raises the events of the queue.
    pub fn handle(&self) -> &SrqHandle {
        &self.handle
    }

    /// Tells whether a process made the queue, rather than a kernel user.
    pub fn is_user(&self) -> bool {
        self.user
    }

    /// The protection domain that its receives are checked against.
    pub fn pd(&self) -> &Pd<P> {
        // SAFETY: ib_core sets `pd` before the create operation and keeps the PD until the queue
        // is destroyed (`pd->usecnt`).
        unsafe { Pd::from_raw((*self.as_raw()).pd) }
    }
}

/// Type of a shared receive queue (`enum ib_srq_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SrqType {
    /// For QPs that name it when they are created.
    Basic,
    /// Named by number in each packet, within an XRC domain.
    Xrc,
    /// With tag matching.
    TagMatching,
}

impl SrqType {
    /// Fails with `EOPNOTSUPP` for a type that there is not: the core takes any number.
    pub(crate) fn from_raw(raw: bindings::ib_srq_type) -> Result<Self> {
        match raw {
            bindings::ib_srq_type_IB_SRQT_BASIC => Ok(Self::Basic),
            bindings::ib_srq_type_IB_SRQT_XRC => Ok(Self::Xrc),
            bindings::ib_srq_type_IB_SRQT_TM => Ok(Self::TagMatching),
            _ => Err(crate::errno::eopnotsupp()),
        }
    }
}

/// Size and limit of a shared receive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SrqAttr {
    /// Receives it holds.
    pub max_wr: u32,
    /// Scatter elements of one receive.
    pub max_sge: u32,
    /// Fewer receives than this raise the limit event, once; 0: none.
    pub limit: u32,
}

/// Which parts of an [`SrqAttr`] a modify operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrqAttrMask {
    /// [`SrqAttr::max_wr`]: resize.
    pub max_wr: bool,
    /// [`SrqAttr::limit`]: arm the limit event.
    pub limit: bool,
}

/// What the user of a new shared receive queue asks for.
pub struct SrqInitAttr<'a, P: Provider> {
    /// Type of the queue.
    pub srq_type: SrqType,
    /// Size and limit; the provider puts in what the queue really has.
    pub attr: SrqAttr,
    /// Protection domain.
    pub pd: &'a Pd<P>,
    /// XRC and tag matching: where receive completions go.
    pub cq: Option<&'a Cq<P>>,
    /// XRC: the domain.
    pub xrcd: Option<&'a Xrcd<P>>,
    /// Tag matching: number of tags.
    pub max_num_tags: u32,
}

/// A queue that was made.
pub struct CreatedSrq<T> {
    /// The provider's data.
    pub data: T,
    /// SRQ number (24 bits), which XRC senders put into their packets.
    pub srq_num: u32,
}
