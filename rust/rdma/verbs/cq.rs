// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    bindings,
    events::CqHandle,
    object::object,
    provider::Provider, //
};
use kernel::types::Opaque;

object! {
    /// A completion queue: `struct ib_cq` and the provider's data.
    pub struct Cq<P: Provider>(ib_cq, P::Cq) {
        handle: CqHandle,
        user: bool,
    }
}

impl<P: Provider> Cq<P> {
    /// Raises the events of the queue.
    pub fn handle(&self) -> &CqHandle {
        &self.handle
    }

    /// Tells whether a process made the queue, rather than a kernel user.
    pub fn is_user(&self) -> bool {
        self.user
    }

    /// `rdma res` is not to say any more that the moderation of the queue is adaptive, if a process
    /// made it. Any context.
    pub fn show_not_adaptive(&self) {
        if self.user {
            // SAFETY: The queue exists, and is not a kernel user's: ib_core does not look behind
            // the pointer.
            unsafe { bindings::xrdma_ib_show_adaptive(self.as_raw(), false) };
        }
    }
}

/// What the user of a new completion queue asks for.
#[derive(Clone, Copy, Debug)]
pub struct CqInitAttr {
    /// Completions it has to hold; at least 1, otherwise unchecked.
    pub cqe: u32,
    /// Completion vector: one of the device's.
    pub comp_vector: u32,
    /// `IB_UVERBS_CQ_FLAGS_*`; refuse those that are not supported with `EOPNOTSUPP`.
    pub flags: u32,
}

/// A queue that was made.
pub struct CreatedCq<T> {
    /// The provider's data.
    pub data: T,
    /// Completions it holds.
    pub cqe: u32,
    /// Whether its moderation is adaptive, if a process made it: what `rdma res` says.
    pub adaptive: bool,
}

/// What `ib_req_notify_cq` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notify {
    /// Only the next solicited or failed completion raises the event.
    pub solicited_only: bool,
    /// The answer matters: say whether completions wait already.
    pub report_missed: bool,
}

impl Notify {
    pub(crate) fn from_raw(flags: bindings::ib_cq_notify_flags) -> Self {
        Self {
            solicited_only: flags & bindings::ib_cq_notify_flags_IB_CQ_SOLICITED_MASK
                == bindings::ib_cq_notify_flags_IB_CQ_SOLICITED,
            report_missed: flags & bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS != 0,
        }
    }
}
