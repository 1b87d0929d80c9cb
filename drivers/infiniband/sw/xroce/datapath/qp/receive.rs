// SPDX-License-Identifier: GPL-2.0

//! The receive direction of a queue pair: it takes request packets, writes memory and sends
//! responses.

mod addressing;
mod early;
mod env;
mod io;

pub(crate) use self::addressing::remote_pd;
pub(crate) use self::env::RecvEnv;
pub(crate) use self::io::{
    Current,
    RecvIo,
    RecvQueue, //
};
use super::engine::{
    content_from,
    take_packets,
    Budget, //
};
use super::request::MAX_SGE;
use super::steer::MAX_SMALL;
use super::QpKind;
use crate::prelude::*;
use crate::rx::Verified;
use crate::tm::receive as tags;
use crate::tx::{
    self,
    Assembly,
    Av,
    BuildError,
    Path,
    Planned, //
};
use crate::{
    mr,
    ud,
    wr, //
};
use rdma::work;
use roce::congestion::Notifier;
use roce::psn::Psn;
use roce::requester::Middles;
use roce::responder::{
    ReceiveError,
    Resource,
    Responder,
    ResponderConfig,
    Response, //
};
use roce::wire::Content;

/// Receives that one run flushes at most.
const FLUSH_BURST: u32 = 128;

/// The receive direction, as its owner sees it.
pub(crate) struct RecvSide {
    pub(crate) responder: Responder<KVVec<Resource>>,
    /// Where answers go; by itself, so that [`WireQp`] does not grow.
    pub(crate) path: KBox<Path>,
    /// When the peer is told that its requests met congestion.
    notifier: Notifier,
    /// Runs in a row that handled requests or sent READ data, but not in bulk.
    small_runs: u8,
    pub(crate) io: KBox<RecvIo>,
}

/// READ data wait while the packets of the same process that have not left the host's queues take
/// more memory than this, bytes.
const TX_LIMIT: u64 = 1 << 20;

/// The first of those waits, ns; each that follows is twice as long, up to 32 times.
const PACE_NS: u64 = 100_000;

/// So many waits in a row, about 50 ms, and a burst goes all the same: the queue that is full may
/// be another net device's, which does not move at all.
const MAX_WAITS: u32 = 20;

impl RecvSide {
    /// Makes the receive side of a QP, which cannot replay READs and atomics before there are
    /// [resources](WireQp::make_resources) for them. `max_sge` is that of its own queue, and
    /// ignored with an SRQ. Process context.
    pub(crate) fn new(queue: RecvQueue, max_sge: u32) -> Result<Self> {
        let max_sge = match queue {
            RecvQueue::None => MAX_SGE,
            _ => (max_sge as usize).min(MAX_SGE),
        };
        Ok(RecvSide {
            responder: Responder::new(KVVec::new()),
            path: KBox::new(Path::default(), GFP_ACCOUNT)?,
            notifier: Notifier::default(),
            small_runs: 0,
            io: KBox::new(RecvIo::new(queue, max_sge)?, GFP_ACCOUNT)?,
        })
    }

    /// Prepares for the RTR state.
    pub(crate) fn configure(&mut self, config: &ResponderConfig, av: Av) {
        self.responder.configure(config);
        self.path.set(av);
    }

    /// Back to the state of a new QP; nothing completes.
    pub(crate) fn reset(&mut self, qp: &WireQp) {
        self.responder.reset();
        *self.path = Path::default();
        self.io.forget(qp);
        qp.recv_home.leave();
    }

    /// The responder, and what it needs to see of the rest.
    pub(crate) fn split<'a>(
        &'a mut self,
        qp: &'a WireQp,
    ) -> (&'a mut Responder<KVVec<Resource>>, RecvEnv<'a>) {
        let RecvSide {
            responder,
            path,
            io,
            ..
        } = self;
        let env = RecvEnv {
            qp,
            path,
            io,
            source: None,
            sender: None,
            flush_rest: None,
            is_cut_off: false,
        };
        (responder, env)
    }

    /// One run: the packets that wait, then `packet`, then what is owed to the peer, within a
    /// budget.
    pub(crate) fn run(&mut self, qp: &WireQp, packet: Option<Verified>) -> Run {
        let mut again = match qp.state() {
            QpState::Rtr | QpState::Rts | QpState::Sqd | QpState::Sqe => {
                if qp.kind.is_datagram() {
                    ud::run_receive(qp, &mut self.io, packet)
                } else {
                    self.run_connected(qp, packet)
                }
            }
            QpState::Err => self.flush(qp),
            // Too early: as good as lost, so the peer asks again.
            QpState::Reset | QpState::Init => {
                qp.requests.purge();
                qp.early.purge();
                Run::Idle
            }
        };
        if self.io.rest(qp) {
            again = Run::Again;
        }
        self.send_replies(qp);
        self.io.count(qp, self.responder.stats());
        // What the peer is still owed ends with the refusal.
        if self.io.failed && !self.responder.has_response() {
            self.io.failed = false;
            qp.enter_error();
            // The flush is the next round.
            return Run::Again;
        }
        crate::local::wake_waiter(qp);
        again
    }

    fn run_connected(&mut self, qp: &WireQp, packet: Option<Verified>) -> Run {
        let now = rdma::timer::now_ns();
        // Requests come faster than this host handles them. UC has no window that could shrink.
        if qp.kind.is_reliable() && qp.kind.receives() && qp.requests.is_half_full() {
            self.notify(qp, now);
        }
        self.begin_early(qp, now);
        let mut has_taken = false;
        let mut more = take_packets(qp, &qp.requests, packet, |packet| {
            has_taken = true;
            self.request(qp, packet, now)
        });
        more |= self.end_early(qp, more || has_taken, now);
        more |= self.stream(qp, now, has_taken);
        // Also when packets are left: the sender may be faster than this side, and not go on
        // without an answer.
        let (responder, mut env) = self.split(qp);
        responder.end_of_run(&mut env);
        if more {
            Run::Again
        } else {
            Run::Idle
        }
    }

    /// Handles one request packet, the one with this index in a train, which may have been kept
    /// before. Returns its number if it came before an earlier one.
    fn take_request(
        &mut self,
        qp: &WireQp,
        packet: &Verified,
        index: u32,
        was_kept: bool,
        now: u64,
    ) -> Option<Psn> {
        let message = match content_from(qp, self.path.av(), packet, index) {
            Some(Content::Message(message)) => message,
            Some(Content::Cnp) => {
                qp.congested.store(1, Relaxed);
                return None;
            }
            None => return None,
        };
        if packet.is_marked(index) && !was_kept {
            qp.device.count(Counter::EcnMarked, 1);
            self.notify(qp, now);
        }
        let (responder, mut env) = self.split(qp);
        if qp.tags().is_some() {
            env.source = tags::source(&message);
        }
        let is_early = responder.take_request(&message, now, &mut env);
        if env.is_cut_off {
            // What is owed to the peer, a refusal above all, is not sent any more.
            responder.abort(&mut env);
        }
        is_early.then_some(message.bth.psn)
    }

    /// Requests meet congestion in the network or in this host. Their sender is told, but not
    /// again soon.
    fn notify(&mut self, qp: &WireQp, now: u64) {
        if !self.notifier.on_congestion(now) {
            return;
        }
        let dest_qpn = self.responder.dest_qpn();
        if let Some(skb) = tx::notice(qp.device.tunnel(), &qp.sender, &mut self.path, dest_qpn) {
            qp.device.count(Counter::CnpSent, 1);
            self.io.replies.push(skb, Joining::Alone);
            self.io.reply_count = self.io.reply_count.wrapping_add(1);
        }
    }

    /// Whether READ data wait, for the network or for the queues of the host: no ACK of the peer
    /// paces them, and a whole READ may be asked for at once. If so, a timer runs this side again.
    fn is_paced(&mut self, qp: &WireQp, now: u64) -> bool {
        let io = &mut self.io;
        if qp.congested.load(Relaxed) != 0 {
            qp.congested.store(0, Relaxed);
            io.brake.on_notified();
        }
        if now < io.resume_at {
            // The timer may have fired for an earlier wait, with this one set meanwhile.
            qp.pace.start_at(io.resume_at);
            return true;
        }
        if let Some(until) = io.brake.wait(now) {
            io.resume_at = until;
            qp.pace.start_at(until);
            return true;
        }
        if io.waits >= MAX_WAITS || qp.sender.in_flight() <= TX_LIMIT {
            io.waits = 0;
            return false;
        }
        io.resume_at = now.saturating_add(PACE_NS << io.waits.min(5));
        io.waits = io.waits.wrapping_add(1);
        qp.pace.start_at(io.resume_at);
        true
    }

    /// Sends READ responses, after requests were handled (`has_taken`) or not. True when some are
    /// left for another run.
    fn stream(&mut self, qp: &WireQp, now: u64, has_taken: bool) -> bool {
        if !self.responder.has_response() {
            return self.burst(qp, now, has_taken);
        }
        if self.is_paced(qp, now) {
            return false;
        }
        let more = self.burst(qp, now, has_taken);
        self.io.brake.on_burst(now);
        more
    }

    /// Sends the READ responses of one run. True when some are left.
    fn burst(&mut self, qp: &WireQp, now: u64, has_taken: bool) -> bool {
        let mut budget = Budget::new();
        let mut assembly = Assembly::new();
        let more = self.fill_burst(qp, now, &mut budget, &mut assembly);
        // The route is not looked up for anything else.
        let mut lost = 0;
        if assembly.len() > 0 {
            match self.path.route(qp.device.tunnel()) {
                Ok(route) => assembly.close(&mut self.io.replies, route, &qp.sender),
                Err(_) => lost = assembly.len() as u64,
            }
        }
        lost = u64::from(assembly.lost()).wrapping_add(lost);
        if lost > 0 {
            qp.device.count(Counter::SendError, lost);
        }
        // A thread that may sleep runs anywhere.
        if !qp.sleeps() && qp.recv_home.note_sent(budget.moved(), false) {
            self.small_runs = 0;
        } else if has_taken || budget.moved() > 0 {
            self.small_runs = self.small_runs.saturating_add(1);
            if self.small_runs > MAX_SMALL {
                qp.recv_home.leave();
            }
        }
        more
    }

    /// Builds them.
    fn fill_burst(
        &mut self,
        qp: &WireQp,
        now: u64,
        budget: &mut Budget,
        assembly: &mut Assembly,
    ) -> bool {
        loop {
            // Whoever resets or destroys the queue pair waits for this run.
            if qp.state() == QpState::Reset {
                return true;
            }
            let Some(response) = self.responder.poll_response(now) else {
                return false;
            };
            match work::step(|| self.build(qp, &response, budget, assembly)) {
                Ok(()) => {}
                Err(BuildError::NoMemory) => {
                    qp.device.count(Counter::SendError, 1);
                    budget.spend(response.payload.map_or(0, |slice| slice.len));
                }
                // It was cut short.
                Err(BuildError::Fault) if qp.state() == QpState::Reset => return true,
                Err(BuildError::Fault) => {
                    let (responder, mut env) = self.split(qp);
                    responder.response_fault(&mut env);
                    // A repeated READ ends here; what stands behind it goes on.
                    budget.spend(0);
                }
            }
            if budget.is_empty() || work::has_waited() {
                return true;
            }
        }
    }

    /// Builds a response, and what follows in the same train.
    fn build(
        &mut self,
        qp: &WireQp,
        response: &Response,
        budget: &mut Budget,
        assembly: &mut Assembly,
    ) -> Result<(), BuildError> {
        let route = self.path.route(qp.device.tunnel());
        let route = route.map_err(|_| BuildError::NoMemory)?;
        let slice = response.payload.filter(|slice| slice.len > 0);
        let len = slice.map_or(0, |slice| slice.len);
        let most = budget.packets().saturating_sub(1);
        let followers = response.followers.min(most);
        let packet = Planned {
            header: &response.header,
            len: len as usize,
            pad: response.pad,
            joining: tx::joining(!response.again),
            followers,
            others: response.others.min(most.saturating_sub(followers)),
        };
        // Reads the response from the byte `skip` on.
        let read = |skip: u32, out: &mut [u8]| {
            let Some(slice) = slice else {
                return Ok(());
            };
            mr::with_remote(
                slice.rkey,
                remote_pd(qp, slice.srqn)?,
                qp.qpn,
                slice.va.wrapping_add(skip.into()),
                out.len() as u64,
                mr::REMOTE_READ,
                |memory, at| memory.read(at, out),
            )
        };
        let io = &mut *self.io;
        let (replies, sender) = (&mut io.replies, &qp.sender);
        let mut count = |packets: u32| {
            let bytes = packets.saturating_mul(len);
            io.reply_count = io.reply_count.wrapping_add(packets);
            qp.device.count(Counter::SentBytes, u64::from(bytes));
            budget.spend_packets(packets, bytes);
        };
        assembly.add(replies, route, sender, &packet, |out| read(0, out))?;
        count(1);
        // Memory that may have to be waited for is read packet by packet.
        let room = match qp.sleeps() {
            true => 0,
            false => assembly.room().min(packet.followers),
        };
        let middles = Middles {
            count: self.responder.poll_middles(room),
            ack_req: false,
        };
        let added = match middles.count {
            0 => 0,
            _ => assembly.extend(replies, route, sender, middles, |before, out| {
                read(len.saturating_add(before), out)
            }),
        };
        count(added);
        if assembly.take_ended() {
            budget.end_with_train(tx::train_room(route, len));
        }
        if added < middles.count {
            // The first one that is missing is the one that is refused.
            let unread = middles.count.wrapping_sub(added).wrapping_sub(1);
            self.responder.unpoll(unread);
            return Err(BuildError::Fault);
        }
        Ok(())
    }

    /// Hands the answers of this run to the stack.
    fn send_replies(&mut self, qp: &WireQp) {
        if self.io.reply_count == 0 {
            return;
        }
        qp.device
            .count(Counter::SentPackets, u64::from(self.io.reply_count));
        self.io.reply_count = 0;
        tx::count_flushed(&qp.device, self.io.replies.flush());
    }

    /// The QP is in the error state: every receive completes with a flush error.
    fn flush(&mut self, qp: &WireQp) -> Run {
        qp.requests.purge();
        qp.early.purge();
        if !self.io.flushed {
            self.io.flushed = true;
            let (responder, mut env) = self.split(qp);
            responder.abort(&mut env);
            // Whether anybody hears of it makes no difference any more.
            let _ = self.io.finish(qp, flushed());
            if let RecvQueue::User(ring) = &self.io.queue {
                ring.set_flush();
            }
        }
        for _ in 0..FLUSH_BURST {
            let none = matches!(self.io.queue, RecvQueue::None);
            let taken = match none {
                true => Err(ReceiveError::Empty),
                false => self.io.take(qp, None),
            };
            // What is flushed to a queue that has overflowed nobody sees: it stays where it is.
            if matches!(taken, Err(ReceiveError::Empty | ReceiveError::Broken)) {
                let on_srq = qp.srq.is_some() || qp.kind == QpKind::XrcTgt;
                if on_srq && !self.io.last_wqe {
                    self.io.last_wqe = true;
                    qp.event(QpEvent::LastWqeReached);
                }
                return Run::Idle;
            }
            let _ = self.io.finish(qp, flushed());
        }
        Run::Again
    }
}

/// The completion of a receive that was not used.
fn flushed() -> Completion {
    Completion {
        status: WcStatus::WrFlushErr,
        opcode: wr::WC_RECV,
        ..Completion::default()
    }
}
