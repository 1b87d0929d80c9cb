// SPDX-License-Identifier: GPL-2.0

//! The requester: turns work requests into packets, and responses into completions.
//!
//! There is one requester per QP with a send side (RC, UC, XRC initiator). The caller lends the
//! queue, a slice of [`Wqe`]s. A *slot* is an index into this slice, so that the caller can keep
//! arrays of its own (scatter/gather lists) beside it. The caller may begin with a queue of one
//! slot and lend a larger one later ([`Requester::grow`]).
//!
//! # How to drive it
//!
//! - [`Requester::push`] work requests while there is [`Requester::room`].
//! - Call [`Requester::poll_transmit`] until it returns `None`, or for as long as the caller's
//!   budget lasts. Build each packet at once. When its payload cannot be gathered, call
//!   [`Requester::local_fault`] and drop the packet. A packet that cannot be sent for other reasons
//!   counts as lost.
//! - Call [`Requester::handle_response`] for each packet from the responder, then poll again.
//! - Call [`Requester::handle_timeout`] when [`Requester::next_deadline`] has come (early and
//!   spurious calls do nothing), then poll again.
//! - After [`RequesterEnv::fatal`], [`Requester::flush`] all requests that are pushed. An
//!   unreliable requester can continue ([`Requester::resume`]).
//!
//! # Same host
//!
//! Instead of using `poll_transmit`, the caller may take complete messages with
//! [`Requester::local_next`], process them with the responder's `local_request` and `local_finish`,
//! and report the result with [`Requester::local_done`]. Sequence numbers advance as on the wire.
//! The two methods can alternate at any message that begins with nothing in flight.

mod asking;
mod config;
mod early;
mod echo;
mod flush;
mod local;
mod outstanding;
mod pace;
mod queue;
mod recovery;
mod repeat;
mod response;
mod timeout;
mod trains;
mod transmit;
mod wqe;

pub use config::{
    RequesterConfig,
    Service, //
};
pub use local::{
    LocalError,
    LocalMessage,
    LocalOk, //
};
pub use transmit::{
    Middles,
    Payload,
    Transmit, //
};
pub use wqe::{
    SendOp,
    SendWr,
    Wqe, //
};

use core::ops::DerefMut;

use self::early::Early;
use self::outstanding::Outstanding;
use self::pace::Pace;
use self::recovery::Recovery;
use self::timeout::Probe;
use crate::bandwidth::Bandwidth;
use crate::losses::Losses;
use crate::psn::Psn;
use crate::retry::Retry;
use crate::rnr::RnrRetry;
use crate::rtt::Rtt;
use crate::status::{
    Fault,
    WcStatus, //
};
use crate::window::Window;

/// The most READs and atomics that are outstanding: a larger
/// [`RequesterConfig::max_rd_atomic`] counts as this.
pub const MAX_RD_ATOMIC: u8 = 64;

/// The send queue has no free slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueFull;

/// The end of a send work request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendCompletion {
    /// Its slot, free again when the call returns.
    pub slot: u32,
    /// Its `wr_id`.
    pub wr_id: u64,
    /// Its operation.
    pub op: SendOp,
    /// How it ended.
    pub status: WcStatus,
    /// Bytes of the message; 8 for atomics.
    pub byte_len: u32,
    /// Whether a completion is wanted on success, too.
    pub signaled: bool,
    /// Its `cookie`.
    pub cookie: u32,
}

/// What a requester does to the world.
pub trait RequesterEnv {
    /// Places `data` at byte `offset` of the scatter list of `slot`: part of a
    /// READ response, or the 8 bytes (host byte order) of an atomic.
    ///
    /// # Errors
    ///
    /// [`Fault`] when the scatter list does not admit it; the request fails.
    fn scatter(&mut self, slot: u32, offset: u32, data: &[u8]) -> Result<(), Fault>;

    /// A work request has ended. Called for each, in order; a completion queue
    /// entry is due when it was signaled or failed.
    fn complete(&mut self, completion: &SendCompletion);

    /// Does the local work of `slot`.
    ///
    /// # Errors
    ///
    /// The status with which the request fails, and the send queue with it.
    fn local(&mut self, slot: u32) -> Result<(), WcStatus>;

    /// The send queue has failed: the QP must go to the error state, one of an
    /// unreliable service to SQE. Called once, after the completion of the
    /// culprit and of everything else in the queue.
    fn fatal(&mut self);

    /// The send queue has drained ([`Requester::drain`]).
    fn sq_drained(&mut self);

    /// Whether one more packet may be sent that only asks a silent peer for an answer. Where many
    /// connections do so at a time, those that may not ask rarely from then on.
    fn may_ask(&mut self) -> bool {
        true
    }
}

/// Counts of what happened, for statistics; all wrap.
#[derive(Clone, Copy, Default, Debug)]
pub struct RequesterStats {
    /// Packets sent again, without [`Self::probes`].
    pub retransmitted: u32,
    /// Timeouts.
    pub timeouts: u32,
    /// NAKs for a gap in the sequence.
    pub sequence_naks: u32,
    /// RNR NAKs.
    pub rnr_naks: u32,
    /// ACKs that showed that a response was lost.
    pub implied_naks: u32,
    /// Responses that were not expected (duplicates, stale ones).
    pub ignored: u32,
    /// Packets sent again because an answer took long, before the timeout ([`crate::rtt`]): one
    /// or two at a time; and echoes, which are empty.
    pub probes: u32,
    /// Packets sent again because neither they nor those before them had asked for an answer.
    pub tails: u32,
    /// Packets of READ responses that came before an earlier one, and were placed.
    pub early_kept: u32,
    /// Those that came too long before it, and were dropped.
    pub early_dropped: u32,
    /// Times that this answer came so soon that it must have been on its way.
    pub early_probes: u32,
}

/// The life of a requester.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not configured: nothing moves.
    Reset,
    /// Sending.
    Ready,
    /// Failed: only flushes. Unreliable services can leave it.
    Error,
}

/// What [`Requester::drain`] is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drain {
    /// RTS to SQD: work requests not yet begun wait. [`RequesterEnv::sq_drained`] is called when
    /// all others are done, at the earliest by the next [`Requester::poll_transmit`].
    Begin,
    /// SQD to RTS: goes on.
    End,
}

/// The requester of a QP. See the module's documentation.
///
/// # Examples
///
/// A SEND of 8 bytes, from the work request to its completion:
///
/// ```
/// use roce::number::Qpn;
/// use roce::requester::{Requester, RequesterConfig, RequesterEnv, SendCompletion, SendWr, Wqe};
/// use roce::status::{Fault, WcStatus};
/// use roce::wire::Packet;
///
/// #[derive(Default)]
/// struct Env(Vec<SendCompletion>);
///
/// impl RequesterEnv for Env {
///     fn complete(&mut self, completion: &SendCompletion) {
///         self.0.push(*completion);
///     }
///     // ...
/// #   fn scatter(&mut self, _: u32, _: u32, _: &[u8]) -> Result<(), Fault> {
/// #       Ok(())
/// #   }
/// #   fn local(&mut self, _: u32) -> Result<(), WcStatus> {
/// #       Ok(())
/// #   }
/// #   fn fatal(&mut self) {}
/// #   fn sq_drained(&mut self) {}
/// }
///
/// let mut env = Env::default();
/// let mut requester = Requester::new(vec![Wqe::default(); 16]);
/// requester.configure(&RequesterConfig {
///     dest_qpn: Qpn::new(17),
///     pkey: 0xffff,
///     ..RequesterConfig::default()
/// });
/// let wr = SendWr { wr_id: 1, length: 8, ..SendWr::default() };
/// let slot = requester.push(wr).expect("16 slots are free");
///
/// // To send: these headers, then 8 bytes from the gather list of the slot.
/// let now = 0;
/// let packet = requester.poll_transmit(now, &mut env).expect("one packet is due");
/// let payload = packet.payload.expect("it has a payload");
/// assert_eq!((payload.slot, payload.offset, payload.len), (slot, 0, 8));
/// assert!(requester.poll_transmit(now, &mut env).is_none());
///
/// // The responder acknowledges it: a BTH and an AETH.
/// let ack = [0x11, 0, 0xff, 0xff, 0, 0, 0, 3, 0, 0, 0, 0, 0x1f, 0, 0, 1];
/// let ack = Packet::parse(&ack).expect("it is a packet");
/// requester.handle_response(&ack, now, &mut env);
/// assert_eq!(env.0[0].wr_id, 1);
/// assert_eq!(env.0[0].status, WcStatus::Success);
/// ```
pub struct Requester<Q> {
    queue: Q,
    state: State,
    config: RequesterConfig,
    /// Slot of the oldest work request.
    head: u32,
    /// Work requests in the queue.
    count: u32,
    /// Of those, counted from the oldest: have sequence numbers.
    assigned: u32,
    /// Of those, counted from the oldest: completely transmitted (again).
    sent: u32,
    /// Of the next one: packets transmitted (again).
    sent_packets: u32,
    /// Oldest sequence number not acknowledged.
    una: Psn,
    /// Next one to transmit.
    next: Psn,
    /// Behind the last one ever transmitted; `una <= next <= max`.
    max: Psn,
    /// Next one to assign.
    assign: Psn,
    /// READs (on the wire) and atomics outstanding in this round.
    rd_atomic: Outstanding,
    /// Requests with a response: assigned and done so far, modulo 2^32.
    responses_due: u32,
    responses_done: u32,
    /// Packets and messages since the last request for an ACK.
    unasked_packets: u32,
    unasked_messages: u32,
    window: Window,
    retry: Retry,
    rnr_retry: RnrRetry,
    /// When the acknowledge timer expires.
    ack_deadline: Option<u64>,
    rtt: Rtt,
    bandwidth: Bandwidth,
    losses: Losses,
    pace: Pace,
    /// What is polled goes out in trains of so many packets ([`Requester::set_trains`]).
    train_room: u8,
    /// A number whose packet was sent once and asks for an answer, and when it was sent.
    timed: Option<(Psn, u64)>,
    probe: Probe,
    early: Early,
    recovery: Recovery,
    /// No packet before that time: the responder is not ready.
    rnr_until: Option<u64>,
    /// An implied NAK was already acted upon at this number.
    implied_nak_at: Option<Psn>,
    /// A message is with the caller (same host).
    local_slot: Option<u32>,
    /// Stop before the next work request; whether that was reported.
    draining: bool,
    drained: bool,
    stats: RequesterStats,
}

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// A requester in reset with `queue.len()` slots (at most 2^24 are used).
    pub fn new(queue: Q) -> Self {
        Self {
            queue,
            state: State::Reset,
            config: RequesterConfig::default(),
            head: 0,
            count: 0,
            assigned: 0,
            sent: 0,
            sent_packets: 0,
            una: Psn::new(0),
            next: Psn::new(0),
            max: Psn::new(0),
            assign: Psn::new(0),
            rd_atomic: Outstanding::new(),
            responses_due: 0,
            responses_done: 0,
            unasked_packets: 0,
            unasked_messages: 0,
            window: Window::default(),
            retry: Retry::default(),
            rnr_retry: RnrRetry::default(),
            ack_deadline: None,
            rtt: Rtt::default(),
            bandwidth: Bandwidth::default(),
            losses: Losses::default(),
            pace: Pace::default(),
            train_room: 0,
            timed: None,
            probe: Probe::default(),
            early: Early::default(),
            recovery: Recovery::default(),
            rnr_until: None,
            implied_nak_at: None,
            local_slot: None,
            draining: false,
            drained: false,
            stats: RequesterStats::default(),
        }
    }

    /// QP to RESET: forgets everything, work requests included, without
    /// completions. The queue stays; the next push takes slot 0.
    pub fn reset(&mut self) {
        self.state = State::Reset;
        self.head = 0;
        self.count = 0;
        self.assigned = 0;
        self.sent = 0;
        self.sent_packets = 0;
        self.una = Psn::new(0);
        self.next = self.una;
        self.max = self.una;
        self.assign = self.una;
        self.rd_atomic.clear();
        self.responses_due = 0;
        self.responses_done = 0;
        self.bandwidth = Bandwidth::default();
        self.losses = Losses::default();
        self.pace = Pace::default();
        self.unasked_packets = 0;
        self.unasked_messages = 0;
        self.ack_deadline = None;
        self.timed = None;
        self.probe = Probe::default();
        self.early = Early::default();
        self.recovery = Recovery::default();
        self.rnr_until = None;
        self.implied_nak_at = None;
        self.local_slot = None;
        self.draining = false;
        self.drained = false;
    }

    /// QP to RTS: starts with fresh sequence numbers. Work requests pushed
    /// before are kept and are sent now.
    pub fn configure(&mut self, config: &RequesterConfig) {
        self.una = config.sq_psn;
        self.next = self.una;
        self.max = self.una;
        self.assign = self.una;
        self.window = Window::new(config.mtu, config.max_window);
        self.rtt = Rtt::default();
        self.bandwidth = Bandwidth::default();
        self.losses = Losses::default();
        self.pace = Pace::default();
        self.timed = None;
        self.probe = Probe::default();
        self.early = Early::default();
        self.recovery = Recovery::default();
        self.state = State::Ready;
        self.update(config);
    }

    /// RTS to RTS, SQD to RTS: takes over the timeout, the retry counts and
    /// `max_rd_atomic`; nothing else changes once the QP is connected.
    pub fn update(&mut self, config: &RequesterConfig) {
        self.config = *config;
        self.retry = Retry::new(config.retry_cnt);
        self.rnr_retry = RnrRetry::new(config.rnr_retry);
    }

    /// Takes the larger `queue` instead of its own, which it returns. Each slot in use keeps its
    /// number.
    ///
    /// # Errors
    ///
    /// `queue`, when it is not larger, or when the work requests go round the end of the present
    /// queue, which is never so with one slot.
    pub fn grow(&mut self, mut queue: Q) -> Result<Q, Q> {
        let goes_round = self.head.saturating_add(self.count) > self.capacity();
        if goes_round || queue.len() <= self.queue.len() {
            return Err(queue);
        }
        for (to, from) in queue.iter_mut().zip(self.queue.iter()) {
            *to = *from;
        }
        Ok(core::mem::replace(&mut self.queue, queue))
    }

    /// Free slots.
    #[inline]
    pub fn room(&self) -> usize {
        self.capacity().saturating_sub(self.count) as usize
    }

    /// Queues a work request; returns its slot, below the queue's length.
    ///
    /// What is wrong with it shows as its completion status, in order.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] when no slot is free.
    #[inline]
    pub fn push(&mut self, wr: SendWr) -> Result<u32, QueueFull> {
        if self.count >= self.capacity() {
            return Err(QueueFull);
        }
        let slot = self.slot_at(self.count);
        let wqe = self.queue.get_mut(slot as usize).ok_or(QueueFull)?;
        *wqe = Wqe {
            wr,
            ..Wqe::default()
        };
        self.count = self.count.wrapping_add(1);
        Ok(slot)
    }

    /// Work requests in the queue, whatever became of them so far.
    #[cfg(not(kernel))]
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.count as usize
    }

    /// Whether there is something to transmit, blocked or not.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.sent < self.count || (!self.config.service.is_reliable() && self.count != 0)
    }

    /// Whether packets are on their way that were not answered yet.
    #[inline]
    pub fn in_flight(&self) -> bool {
        self.una != self.max
    }

    /// The work request in `slot`.
    #[inline]
    pub fn wqe(&self, slot: u32) -> Option<&Wqe> {
        self.queue.get(slot as usize)
    }

    /// The next sequence number to assign, for QP queries (`sq_psn`).
    #[cfg(not(kernel))]
    #[inline]
    pub fn sq_psn(&self) -> Psn {
        self.assign
    }

    /// Passes `count` sequence numbers, 2^23 at most, as so many packets of
    /// finished WRITEs do; only while no work request is in the queue.
    #[cfg(not(kernel))]
    pub fn skip(&mut self, count: u32) {
        if self.state != State::Ready || self.count != 0 || self.in_flight() {
            return;
        }
        self.una = self.una.add(count);
        self.next = self.una;
        self.max = self.una;
        self.assign = self.una;
        self.on_progress(count, 0);
    }

    /// What happened so far.
    #[inline]
    pub fn stats(&self) -> &RequesterStats {
        &self.stats
    }

    /// Whether it failed ([`RequesterEnv::fatal`] was called, or
    /// [`Requester::flush`]).
    #[inline]
    pub fn is_error(&self) -> bool {
        self.state == State::Error
    }
}
