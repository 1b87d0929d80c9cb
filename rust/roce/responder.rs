// SPDX-License-Identifier: GPL-2.0

//! The responder: executes requests and answers them.
//!
//! There is one responder per QP with a receive side (RC, UC, XRC target). The caller lends
//! [`Resource`]s, as many as READs and atomics may be outstanding.
//!
//! # How to drive it
//!
//! - Call [`Responder::handle_request`] for each packet from the requester. When no further packet
//!   is available, call [`Responder::end_of_run`], which sends the ACK for all of them.
//! - Call [`Responder::poll_response`] until it returns `None`, or for as long as the budget lasts.
//!   It returns READ data, and responses that have to wait for this data. When the memory cannot be
//!   read, call [`Responder::response_fault`] and drop the packet.
//! - Or call [`Responder::take_request`] for each packet, keep those that came too early, tell
//!   [`Responder::on_early`], and hand them in again when [`Responder::take_kept`] names them; then
//!   call [`Responder::handle_timeout`] when [`Responder::next_deadline`] has come.
//! - Call [`Responder::abort`] when the QP goes to the error state for another reason.
//!
//! The *current receive* is a work request that the caller takes off a receive queue when the
//! responder asks for it ([`ResponderEnv::take_receive`]). The caller keeps it until
//! [`ResponderEnv::complete_receive`].
//!
//! # Same host
//!
//! [`Responder::local_request`] checks and prepares a complete message, and
//! [`Responder::local_finish`] ends it. Packets that arrive in between are dropped, as if lost.

mod atomic;
mod config;
mod duplicate;
mod early;
mod env;
mod local;
mod nak;
mod read;
mod request;
mod resource;
mod send;
mod write;

pub use config::{
    Access,
    ResponderConfig,
    Service, //
};
pub use early::{
    KEPT,
    MAX_KEPT_NS,
    MAX_WAIT_NS,
    SURE_NS, //
};
pub use env::{
    AccessKind,
    AtomicOp,
    CompletionLost,
    Flush,
    Placement,
    QpEvent,
    ReceiveError,
    RecvCompletion,
    RecvOp,
    RemoteAccess,
    ResponderEnv,
    ScatterError, //
};
pub use local::{
    LocalOutcome,
    LocalPlan, //
};
pub use read::{
    RemoteSlice,
    Response, //
};
pub use resource::Resource;

use core::ops::DerefMut;

use self::duplicate::Repeated;
use self::early::Early;
use self::nak::{
    Gap,
    Refused, //
};
use crate::key::Key;
use crate::number::{
    Qpn,
    Srqn, //
};
use crate::psn::Psn;
use crate::status::WcStatus;
use crate::wire::Syndrome;

/// Counts of what happened, for statistics; all wrap.
#[derive(Clone, Copy, Default, Debug)]
pub struct ResponderStats {
    /// Requests that had been executed before.
    pub duplicates: u32,
    /// Requests that came too early.
    pub out_of_sequence: u32,
    /// RNR NAKs sent.
    pub rnr_naks: u32,
    /// Requests refused for good.
    pub refused: u32,
    /// Packets not for this responder, or in no state to take them.
    pub ignored: u32,
    /// ACKs put off because READ data goes first.
    pub acks_deferred: u32,
    /// Of those that came too early: kept until it was their turn.
    pub early_kept: u32,
    /// Of those that came too early: dropped.
    pub early_dropped: u32,
    /// Gaps that were reported and closed by themselves.
    pub wrong_naks: u32,
}

/// The life of a responder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not configured.
    Reset,
    /// Executing requests.
    Ready,
    /// Refused a request: sends what is still to be sent, takes nothing.
    Closing,
}

/// Whether there is a current receive, and whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Receive {
    /// There is none.
    #[default]
    None,
    /// It comes from where all receives of the QP come from.
    Own,
    /// It comes from the XRC SRQ with this number.
    Xrc(Srqn),
}

impl Receive {
    /// The receive that a request takes which names `srqn`; only those of XRC name one.
    const fn of(srqn: Option<Srqn>) -> Self {
        match srqn {
            None => Self::Own,
            Some(srqn) => Self::Xrc(srqn),
        }
    }
}

/// A message of several packets of which some have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Message {
    /// Between messages.
    None,
    /// A SEND; so many bytes have come.
    Send { received: u32, srqn: Option<Srqn> },
    /// A WRITE.
    Write {
        received: u32,
        total: u32,
        va: u64,
        rkey: Key,
        srqn: Option<Srqn>,
    },
}

/// The responder of a QP. See the module's documentation.
///
/// # Examples
///
/// A SEND of 8 bytes arrives in a receive and is acknowledged:
///
/// ```
/// # use roce::key::Key;
/// use roce::number::{Qpn, Srqn};
/// use roce::responder::{ReceiveError, Resource, Responder, ResponderConfig, ResponderEnv};
/// # use roce::responder::{AtomicOp, CompletionLost, Flush, QpEvent, RecvCompletion};
/// # use roce::responder::{RemoteAccess, ScatterError};
/// # use roce::status::Fault;
/// use roce::wire::{HeaderBuf, Packet};
///
/// #[derive(Default)]
/// struct Env {
///     memory: [u8; 8],
///     sent: Vec<HeaderBuf>,
/// }
///
/// impl ResponderEnv for Env {
///     fn take_receive(&mut self, _srqn: Option<Srqn>) -> Result<(), ReceiveError> {
///         Ok(()) // One is always posted.
///     }
///     fn scatter(&mut self, offset: u32, data: &[u8]) -> Result<(), ScatterError> {
///         let room = self.memory.get_mut(offset as usize..).ok_or(ScatterError::TooLong)?;
///         room.get_mut(..data.len()).ok_or(ScatterError::TooLong)?.copy_from_slice(data);
///         Ok(())
///     }
///     fn reply(&mut self, header: &HeaderBuf) {
///         self.sent.push(*header);
///     }
///     // ...
/// #   fn can_complete(&mut self) -> bool {
/// #       true
/// #   }
/// #   fn check_xrc(&mut self, _: Srqn) -> Result<(), ReceiveError> {
/// #       Ok(())
/// #   }
/// #   fn complete_receive(&mut self, _: &RecvCompletion) -> Result<(), CompletionLost> {
/// #       Ok(())
/// #   }
/// #   fn check_remote(&mut self, _: &RemoteAccess) -> Result<(), Fault> {
/// #       Ok(())
/// #   }
/// #   fn remote_write(&mut self, _: Option<Srqn>, _: Key, _: u64, _: &[u8]) -> Result<(), Fault> {
/// #       Ok(())
/// #   }
/// #   fn atomic(&mut self, _: Option<Srqn>, _: Key, _: u64, _: AtomicOp) -> Result<u64, Fault> {
/// #       Ok(0)
/// #   }
/// #   fn flush(&mut self, _: Option<Srqn>, _: &Flush) -> Result<(), Fault> {
/// #       Ok(())
/// #   }
/// #   fn invalidate(&mut self, _: Key) -> Result<(), Fault> {
/// #       Ok(())
/// #   }
/// #   fn event(&mut self, _: QpEvent) {}
/// #   fn fatal(&mut self) {}
/// }
///
/// let mut env = Env::default();
/// let mut responder = Responder::new(vec![Resource::default(); 4]);
/// responder.configure(&ResponderConfig {
///     dest_qpn: Qpn::new(3),
///     pkey: 0xffff,
///     ..ResponderConfig::default()
/// });
///
/// // SEND Only that asks for an ACK: a BTH and the payload.
/// let now = 0;
/// let send = *b"\x04\0\xff\xff\0\0\0\x11\x80\0\0\0a packet";
/// let send = Packet::parse(&send).expect("it is a packet");
/// responder.handle_request(&send, now, &mut env);
/// responder.end_of_run(&mut env);
/// assert_eq!(&env.memory, b"a packet");
/// let ack = Packet::parse(env.sent[0].as_slice()).expect("it is a packet");
/// assert_eq!(ack.bth.opcode, 0x11);
/// ```
pub struct Responder<R> {
    resources: R,
    state: State,
    config: ResponderConfig,
    /// The sequence number expected next.
    epsn: Psn,
    /// Messages completed, modulo 2^24.
    msn: u32,
    message: Message,
    receive: Receive,
    /// Whether the gap before the expected number was reported.
    gap: Gap,
    /// What came too early.
    early: Early,
    /// An ACK for everything before this number is due. What comes before it is
    /// never a READ or an atomic: those have answers of their own, and no
    /// requester may take an ACK for one (rxe does: `check_ack` in
    /// `rxe_comp.c`). Only the answer to an echo ([`crate::requester`]) may end
    /// with the READ that the echo lies in; who sends echoes knows better.
    ack_owed: Option<Psn>,
    /// That ACK may go as soon as nothing is pending.
    ack_released: bool,
    /// The last ACK for packets that had been executed before.
    repeated: Option<Repeated>,
    /// A NAK that waits behind READ data.
    nak_owed: Option<Syndrome>,
    /// Not one request has come so far.
    is_fresh: bool,
    /// A message is with the caller (same host).
    is_local_open: bool,
    /// The oldest resource, how many there are, how many have packets to send,
    /// and the one being sent.
    oldest_resource: u32,
    resource_count: u32,
    pending: u32,
    current_resource: Option<u32>,
    /// Of the packet polled last.
    last_response: Psn,
    /// The response just polled repeats one that was sent whole before.
    is_repeat: bool,
    stats: ResponderStats,
}

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    /// A responder in reset.
    pub fn new(resources: R) -> Self {
        Self {
            resources,
            state: State::Reset,
            config: ResponderConfig::default(),
            epsn: Psn::new(0),
            msn: 0,
            message: Message::None,
            receive: Receive::None,
            gap: Gap::None,
            early: Early::default(),
            ack_owed: None,
            ack_released: false,
            repeated: None,
            nak_owed: None,
            is_fresh: false,
            is_local_open: false,
            oldest_resource: 0,
            resource_count: 0,
            pending: 0,
            current_resource: None,
            last_response: Psn::new(0),
            is_repeat: false,
            stats: ResponderStats::default(),
        }
    }

    /// QP to RESET: forgets everything, the current receive included (the
    /// caller drops it without completion).
    pub fn reset(&mut self) {
        self.state = State::Reset;
        self.msn = 0;
        self.message = Message::None;
        self.receive = Receive::None;
        self.gap = Gap::None;
        self.early = Early::default();
        self.ack_owed = None;
        self.ack_released = false;
        self.repeated = None;
        self.nak_owed = None;
        self.is_fresh = false;
        self.is_local_open = false;
        self.clear_resources();
    }

    /// QP to RTR.
    pub fn configure(&mut self, config: &ResponderConfig) {
        self.reset();
        self.config = *config;
        self.epsn = config.rq_psn;
        self.is_fresh = true;
        self.state = State::Ready;
    }

    /// Takes over the rights of the remote side, the RNR timer and the number of
    /// READs and atomics that may be outstanding; nothing else changes once the
    /// QP is connected.
    pub fn update(&mut self, access: Access, min_rnr_timer: u8, max_dest_rd_atomic: u8) {
        self.config.access = access;
        self.config.min_rnr_timer = min_rnr_timer;
        self.config.max_dest_rd_atomic = max_dest_rd_atomic;
    }

    /// Between messages, with nothing to send.
    pub fn is_idle(&self) -> bool {
        self.message == Message::None
            && self.pending == 0
            && self.nak_owed.is_none()
            && self.ack_owed.is_none()
            && !self.is_local_open
    }

    /// Whether requests are executed.
    #[cfg(not(kernel))]
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Whether [`Responder::poll_response`] has something.
    #[inline]
    pub fn has_response(&self) -> bool {
        self.pending != 0
            || self.nak_owed.is_some()
            || (self.ack_owed.is_some() && self.ack_released)
    }

    /// Whether there is a current receive.
    #[cfg(not(kernel))]
    pub fn has_receive(&self) -> bool {
        self.receive != Receive::None
    }

    /// The sequence number expected next, for QP queries (`rq_psn`).
    #[cfg(not(kernel))]
    pub fn rq_psn(&self) -> Psn {
        self.epsn
    }

    /// Passes `count` sequence numbers, 2^23 at most, as so many packets of
    /// finished WRITEs do.
    #[cfg(not(kernel))]
    pub fn skip(&mut self, count: u32) {
        self.advance(count);
    }

    /// QP number of the requester that it is connected to.
    pub fn dest_qpn(&self) -> Qpn {
        self.config.dest_qpn
    }

    /// What happened so far.
    pub fn stats(&self) -> &ResponderStats {
        &self.stats
    }

    /// QP to ERROR from outside: drops what is under way. The current receive
    /// ends with a flush error; the rest of the queue is the caller's.
    pub fn abort<E: ResponderEnv>(&mut self, env: &mut E) {
        self.state = State::Closing;
        self.message = Message::None;
        self.is_local_open = false;
        self.early.drop_all();
        self.ack_owed = None;
        self.nak_owed = None;
        self.clear_resources();
        self.drop_receive(WcStatus::WrFlushErr, env);
    }

    /// Ends the current receive, if there is one, without a message.
    fn drop_receive<E: ResponderEnv>(&mut self, status: WcStatus, env: &mut E) -> bool {
        if core::mem::take(&mut self.receive) == Receive::None {
            return false;
        }
        // Only that of a success can fail.
        let _ = env.complete_receive(&RecvCompletion {
            status,
            ..RecvCompletion::default()
        });
        true
    }

    /// Why a request is not executed for want of a queue that works. The target of an XRC domain
    /// belongs to others as well, who go on: the sender is told to wait, as for a queue that is
    /// empty.
    fn broken(&self) -> Refused {
        match self.config.service {
            Service::XrcTgt => Refused::Rnr,
            Service::Rc | Service::Uc => Refused::BROKEN,
        }
    }

    /// Makes sure that there is a current receive of the right queue.
    fn take_receive<E: ResponderEnv>(
        &mut self,
        srqn: Option<Srqn>,
        env: &mut E,
    ) -> Result<(), Refused> {
        let receive = Receive::of(srqn);
        match self.receive {
            Receive::None => {}
            // Kept from a message that broke off.
            kept if kept == receive => {
                return match env.can_complete() {
                    true => Ok(()),
                    false => Err(self.broken()),
                };
            }
            _ => {
                self.drop_receive(WcStatus::WrFlushErr, env);
            }
        }
        match env.take_receive(srqn) {
            Ok(()) => {
                self.receive = receive;
                Ok(())
            }
            Err(ReceiveError::Empty) => Err(Refused::Rnr),
            Err(ReceiveError::Broken) => Err(self.broken()),
            Err(ReceiveError::Fault) => {
                self.receive = receive;
                Err(Refused::OPERATION)
            }
            Err(ReceiveError::InvalidSrq | ReceiveError::WrongDomain) => Err(Refused::SRQ),
        }
    }

    /// XRC: the SRQ number of a request that takes no receive.
    fn check_srqn<E: ResponderEnv>(
        &mut self,
        srqn: Option<Srqn>,
        env: &mut E,
    ) -> Result<(), Refused> {
        match srqn {
            Some(n) if env.check_xrc(n).is_err() => Err(Refused::SRQ),
            _ => Ok(()),
        }
    }

    /// Checks the whole range that a READ or a WRITE names; an empty one is not checked.
    fn check_range<E: ResponderEnv>(
        &self,
        kind: AccessKind,
        srqn: Option<Srqn>,
        rkey: Key,
        va: u64,
        len: u32,
        env: &mut E,
    ) -> Result<(), Refused> {
        if len == 0 {
            return Ok(());
        }
        env.check_remote(&RemoteAccess {
            rkey,
            va,
            len,
            kind,
            srqn,
        })
        .map_err(|_| Refused::ACCESS)
    }

    /// How many places before the expected number `psn` lies.
    #[inline]
    fn behind(&self, psn: Psn) -> u32 {
        self.epsn.since(psn)
    }

    /// Whether `a` lies after `b`, for numbers less than a whole space behind
    /// the expected one. Unlike [`Psn::is_after`] it also orders numbers that
    /// are half the space apart or more.
    #[inline]
    fn is_later(&self, a: Psn, b: Psn) -> bool {
        self.behind(a) < self.behind(b)
    }

    /// `count` sequence numbers, half the space at most, were executed. What is
    /// kept with its sequence number leaves here, long before that number comes
    /// round.
    #[inline]
    fn advance(&mut self, count: u32) {
        self.expire_resources(count);
        self.expire_ack(count);
        self.early.pass(self.epsn, count);
        self.epsn = self.epsn.add(count);
        self.gap = Gap::None;
        self.nak_owed = None;
    }

    /// A message was completed.
    #[inline]
    fn count_message(&mut self) {
        self.msn = self.msn.wrapping_add(1) & Psn::MASK;
    }
}
