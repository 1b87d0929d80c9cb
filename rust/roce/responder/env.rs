// SPDX-License-Identifier: GPL-2.0

//! The environment of a responder: what it requests from its caller.

use crate::key::Key;
use crate::number::Srqn;
use crate::status::{
    Fault,
    WcStatus, //
};
use crate::wire::HeaderBuf;

/// Why there is no receive work request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveError {
    /// None is posted.
    Empty,
    /// No XRC shared receive queue has that number.
    InvalidSrq,
    /// The shared receive queue belongs to another XRC domain.
    WrongDomain,
    /// A work request was there but makes no sense. It counts as taken.
    Fault,
    /// The queue is in error, or its completions have nowhere to go: nothing is
    /// taken from it any more.
    Broken,
}

/// The completion queue has overflowed: the completion is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompletionLost;

/// Why bytes could not be placed in the current receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScatterError {
    /// The scatter list ends before the message.
    TooLong,
    /// A local key does not admit the access.
    Protection,
}

/// The message that a receive was for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RecvOp {
    /// SEND in any form.
    #[default]
    Send,
    /// WRITE with immediate data.
    WriteImm,
}

/// The end of the current receive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RecvCompletion {
    /// What it was consumed by.
    pub op: RecvOp,
    /// How it ended.
    pub status: WcStatus,
    /// Bytes of the message (of a WRITE with immediate data, too).
    pub byte_len: u32,
    /// Immediate data, the bits as the verbs carry them.
    pub imm: Option<u32>,
    /// The key that was invalidated.
    pub invalidated: Option<Key>,
    /// The sender wants an event to be raised.
    pub solicited: bool,
}

/// What a remote operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// WRITE.
    Write,
    /// READ.
    Read,
}

/// A range of memory that a remote operation names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteAccess {
    /// Remote key (ours, as the requester names it).
    pub rkey: Key,
    /// Virtual address; with `len` it may run past the end of the address
    /// space: check.
    pub va: u64,
    /// Bytes.
    pub len: u32,
    /// What for.
    pub kind: AccessKind,
    /// XRC: the shared receive queue whose protection domain counts.
    pub srqn: Option<Srqn>,
}

/// An operation on 8 aligned bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicOp {
    /// Stores `swap` if the memory holds `compare`.
    CmpSwap {
        /// Value to compare with, host byte order.
        compare: u64,
        /// Value to store, host byte order.
        swap: u64,
    },
    /// Adds.
    FetchAdd {
        /// Value to add, host byte order.
        add: u64,
    },
    /// Stores 8 bytes at once; the value returned does not count. Needs the
    /// right to write, not the right to atomics.
    Write {
        /// The bytes as they shall lie in memory, read as a host integer.
        value: u64,
    },
}

/// How far a FLUSH brings data: one of the two, or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Everybody sees them.
    pub global: bool,
    /// They are in persistent memory.
    pub persistent: bool,
}

/// A FLUSH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flush {
    /// Remote key (ours, as the requester names it).
    pub rkey: Key,
    /// Virtual address; with `len` it may run past the end of the address
    /// space: check.
    pub va: u64,
    /// Bytes; may be 0.
    pub len: u32,
    /// How far the data must get.
    pub placement: Placement,
    /// All that the key names, whatever the range.
    pub whole_region: bool,
}

/// Affiliated asynchronous events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QpEvent {
    /// The first request has arrived (`IB_EVENT_COMM_EST`); only due while the
    /// QP is in RTR.
    CommEst,
    /// A remote access was refused, or an SRQ number (`IB_EVENT_QP_ACCESS_ERR`).
    AccessErr,
    /// An invalid request has arrived (`IB_EVENT_QP_REQ_ERR`).
    ReqErr,
    /// The receive queue cannot go on (`IB_EVENT_QP_FATAL`).
    Fatal,
}

/// What a responder does to the world.
pub trait ResponderEnv {
    /// Takes a receive work request (of XRC SRQ `srqn`) and makes it the
    /// current one. There is no current one at that moment.
    ///
    /// # Errors
    ///
    /// Why there is no receive: each variant of [`ReceiveError`] has an answer of its own.
    fn take_receive(&mut self, srqn: Option<Srqn>) -> Result<(), ReceiveError>;

    /// Whether the completion of the current receive can be posted: a message for a receive that
    /// was kept is refused before its data are placed, however often it is sent again.
    fn can_complete(&mut self) -> bool;

    /// XRC requests that take no receive: whether `srqn` is an XRC SRQ of the
    /// domain. Only what is wrong with the number counts.
    ///
    /// # Errors
    ///
    /// [`ReceiveError::InvalidSrq`] or [`ReceiveError::WrongDomain`]; the request is refused.
    fn check_xrc(&mut self, srqn: Srqn) -> Result<(), ReceiveError>;

    /// Places `data` at byte `offset` of the current receive.
    ///
    /// # Errors
    ///
    /// [`ScatterError`]; the request is refused.
    fn scatter(&mut self, offset: u32, data: &[u8]) -> Result<(), ScatterError>;

    /// The current receive has ended; there is none afterwards, unless that fails.
    ///
    /// # Errors
    ///
    /// [`CompletionLost`] when the completion queue has overflowed. Only the completion of a
    /// success fails so, and then the receive is still the current one.
    fn complete_receive(&mut self, completion: &RecvCompletion) -> Result<(), CompletionLost>;

    /// Whether the range may be accessed. Asked once a message, at its start;
    /// never for ranges of length 0.
    ///
    /// # Errors
    ///
    /// [`Fault`] when the key does not admit it; the request is refused.
    fn check_remote(&mut self, access: &RemoteAccess) -> Result<(), Fault>;

    /// Writes `data` (part of a range that was checked: check again, keys can
    /// go at any time).
    ///
    /// # Errors
    ///
    /// [`Fault`] when the key does not admit it; the request is refused.
    fn remote_write(
        &mut self,
        srqn: Option<Srqn>,
        rkey: Key,
        va: u64,
        data: &[u8],
    ) -> Result<(), Fault>;

    /// Checks and executes an atomic at `va`, a multiple of eight; returns what
    /// the memory held.
    ///
    /// # Errors
    ///
    /// [`Fault`] when the key does not admit it; the request is refused.
    fn atomic(
        &mut self,
        srqn: Option<Srqn>,
        rkey: Key,
        va: u64,
        op: AtomicOp,
    ) -> Result<u64, Fault>;

    /// Checks and executes a FLUSH.
    ///
    /// # Errors
    ///
    /// [`Fault`] when the key does not admit it, or the data cannot be flushed; the request is
    /// refused.
    fn flush(&mut self, srqn: Option<Srqn>, flush: &Flush) -> Result<(), Fault>;

    /// Invalidates a key of ours on behalf of the remote side.
    ///
    /// # Errors
    ///
    /// [`Fault`] when the key does not admit it; the request is refused.
    fn invalidate(&mut self, rkey: Key) -> Result<(), Fault>;

    /// Sends a packet that consists of `header` only.
    fn reply(&mut self, header: &HeaderBuf);

    /// Raises an event.
    fn event(&mut self, event: QpEvent);

    /// The QP must go to the error state. Called once. What
    /// [`super::Responder::poll_response`] still returns must be sent: it ends
    /// with the refusal.
    fn fatal(&mut self);
}
