// SPDX-License-Identifier: GPL-2.0

//! Completion status codes.

/// The status of a work completion; the discriminants are those of
/// `enum ib_wc_status` (and `enum ibv_wc_status`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WcStatus {
    /// Done.
    #[default]
    Success = 0,
    /// The message does not fit the local buffers.
    LocLenErr = 1,
    /// The work request makes no sense for this QP.
    LocQpOpErr = 2,
    /// A local key does not cover the local buffers.
    LocProtErr = 4,
    /// The QP went to the error state before this work request was done.
    WrFlushErr = 5,
    /// A memory window could not be bound.
    MwBindErr = 6,
    /// The responder answered something that was not asked for.
    BadRespErr = 7,
    /// A local buffer could not be accessed while a remote operation ran.
    LocAccessErr = 8,
    /// The responder found the request invalid.
    RemInvReqErr = 9,
    /// The responder's memory does not admit the access.
    RemAccessErr = 10,
    /// The responder failed on its own side.
    RemOpErr = 11,
    /// The responder did not answer, retries included.
    RetryExcErr = 12,
    /// The responder had no receive posted, retries included.
    RnrRetryExcErr = 13,
    /// The operation was aborted by the responder.
    RemAbortErr = 16,
    /// The device failed.
    FatalErr = 19,
    /// Anything else.
    GeneralErr = 21,
    /// An operation on a list of tags failed.
    TmErr = 22,
    /// A tag was matched, but its buffers do not hold the data of the rendezvous;
    /// they hold its headers.
    TmRndvIncomplete = 23,
}

/// A local or remote buffer cannot be accessed: bad key, bounds, access rights,
/// protection domain, or memory that has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault;
