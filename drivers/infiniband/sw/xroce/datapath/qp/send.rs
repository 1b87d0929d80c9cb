// SPDX-License-Identifier: GPL-2.0

//! The send direction of a connected queue pair: it takes work requests, sends packets and
//! completes requests.
//!
//! `send/io.rs` fetches work requests, `send/data.rs` finds their data, `send/env.rs` does what the
//! requester asks of the kernel, `send/outgoing.rs` hands packets over.

mod data;
mod env;
mod io;
mod outgoing;

pub(crate) use self::env::{
    complete,
    SendEnv, //
};
pub(crate) use self::io::{
    Failure,
    Fetched,
    SendIo,
    SendQueue,
    SendWqe,
    Slots, //
};
use self::outgoing::Outgoing;
use super::engine::{
    content_from,
    for_each,
    middles_from,
    take_packets,
    Budget,
    ALL_TOLD,
    UNDER_WAY,
    UNTOLD, //
};
use super::hot::LARGE;
use super::request::SendOp;
use super::ring::CorruptRing;
use super::steer::MAX_SMALL;
use super::BACKLOG;
use crate::prelude::*;
use crate::rx::Verified;
use crate::tm::rendezvous;
use crate::tx::{
    self,
    Av,
    BuildError,
    Path,
    Planned, //
};
use crate::{
    limits,
    local,
    ud, //
};
use rdma::work;
use roce::opcode::Family;
use roce::requester::{
    Requester,
    RequesterConfig,
    SendWr,
    Wqe, //
};
use roce::wire::Content;

/// The most work requests of a queue pair that are under way at a time; the others wait in the
/// ring.
const MAX_UNDER_WAY: u32 = 128;

/// The most packets in flight, unless the configuration says otherwise: the softnet queue that they
/// pass on a virtual link holds 1000, for all connections together.
const MAX_WINDOW_PACKETS: u32 = 384;

/// Work requests that one run flushes at most.
const FLUSH_BURST: u32 = 128;

/// The send direction, as its owner sees it.
pub(crate) struct SendSide {
    pub(crate) requester: Requester<KVVec<Wqe>>,
    /// QP number of the peer.
    pub(crate) dest_qpn: Qpn,
    pub(crate) path: Path,
    /// Runs in a row that sent all there was, and that was not much.
    small_runs: u8,
    pub(crate) io: KBox<SendIo>,
}

/// Work requests under way for which a send side has room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// None: a datagram is done before the next one is fetched.
    Datagrams,
    /// One. A process may have thousands of connections and use a few: the other slots come with
    /// the first doorbell, see [`WireQp::make_slots`].
    One,
    /// All.
    All,
}

/// The most work requests of a queue with `entries` that are under way at a time.
fn most_under_way(entries: u32) -> usize {
    entries.clamp(1, MAX_UNDER_WAY) as usize
}

impl SendSide {
    /// Makes the send side of a QP. `entries` is the depth of its send queue; `device` has the
    /// requests of the device itself, for which there must be room for all. Process context.
    pub(crate) fn new(
        queue: SendQueue,
        room: Room,
        entries: u32,
        max_sge: u32,
        max_inline: u32,
        device: Option<Arc<rendezvous::Queue>>,
    ) -> Result<Self> {
        let (entries, max_sge) = match device {
            Some(_) => (
                entries.max(rendezvous::UNDER_WAY),
                max_sge.max(limits::MAX_TM_SGE),
            ),
            None => (entries, max_sge),
        };
        let count = match (&queue, room) {
            (SendQueue::None, _) | (_, Room::Datagrams) => 0,
            (_, Room::One) => 1,
            (_, Room::All) => most_under_way(entries),
        };
        let max_sge = max_sge as usize;
        let slots = Slots::new(count, max_sge)?;
        Ok(SendSide {
            requester: Requester::new(slots.requester),
            dest_qpn: Qpn::default(),
            path: Path::default(),
            small_runs: 0,
            io: KBox::new(
                SendIo::new(queue, device, slots.wqes, slots.sges, max_sge, max_inline)?,
                GFP_ACCOUNT,
            )?,
        })
    }

    /// Takes more slots instead of those that it has. Returns what it does not need.
    fn grow(&mut self, slots: Slots) -> Slots {
        let Slots {
            requester,
            wqes,
            sges,
        } = slots;
        match self.requester.grow(requester) {
            Ok(requester) => {
                let (wqes, sges) = self.io.grow(wqes, sges);
                Slots {
                    requester,
                    wqes,
                    sges,
                }
            }
            Err(requester) => Slots {
                requester,
                wqes,
                sges,
            },
        }
    }

    /// Prepares for the RTS state, or changes what may be changed later.
    pub(crate) fn configure(&mut self, config: &RequesterConfig, av: Av) {
        let mut config = *config;
        if config.max_window == 0 {
            config.max_window = config.mtu.bytes().saturating_mul(MAX_WINDOW_PACKETS);
        }
        self.requester.configure(&config);
        self.dest_qpn = config.dest_qpn;
        self.path.set(av);
    }

    /// Back to the state of a new QP; nothing completes. Process context.
    pub(crate) fn reset(&mut self, qp: &WireQp) {
        local::abandon_wait(self, qp);
        self.requester.reset();
        self.path = Path::default();
        qp.hot.stop_timed();
        self.io.forget();
        qp.copies.store(0, Relaxed);
        qp.last_run.store(UNDER_WAY, Relaxed);
        qp.send_home.leave();
    }

    /// One run: everything that can be done now, within a budget.
    pub(crate) fn run(&mut self, qp: &WireQp, packet: Option<Verified>) -> Run {
        let again = match qp.state() {
            // What was begun is done: a datagram is, when its run ends.
            QpState::Sqd if qp.kind.is_datagram() => Run::Idle,
            QpState::Rts | QpState::Sqd => {
                if qp.kind.is_datagram() {
                    ud::run_send(qp, &mut self.io)
                } else {
                    self.run_connected(qp, packet)
                }
            }
            QpState::Sqe | QpState::Err => self.flush(qp),
            // A response that comes too early or too late.
            QpState::Reset | QpState::Init | QpState::Rtr => {
                qp.responses.purge();
                // A thread or a doorbell may have made it so after the reset, before this run.
                qp.hot.stop_timed();
                Run::Idle
            }
        };
        self.io.publish();
        self.io.count(qp, self.requester.stats());
        let Some(failure) = self.io.failure.take() else {
            return again;
        };
        // A request of an unreliable QP that failed has taken it to SQE: its receive queue goes on.
        if failure == Failure::Ring || qp.kind.is_reliable() {
            qp.set_error();
            qp.schedule_receive();
        }
        // The flush is the next round.
        Run::Again
    }

    fn run_connected(&mut self, qp: &WireQp, packet: Option<Verified>) -> Run {
        let now = rdma::timer::now_ns();
        let mut budget = Budget::new();
        let more = take_packets(qp, &qp.responses, packet, |packet| {
            self.responses(qp, packet, now)
        });
        // An answer that waits may be the one that is missed.
        if !more && self.requester.next_deadline().is_some_and(|d| now >= d) {
            let mut env = SendEnv {
                qp,
                io: &mut self.io,
            };
            self.requester.handle_timeout(now, &mut env);
        }
        let again = match local::run(self, qp, now, &mut budget) {
            Some(again) => again,
            None => self.transmit(qp, now, &mut budget),
        };
        if let Some(deadline) = self.requester.next_deadline() {
            qp.timer.start_at(deadline);
        }
        // Requests that send no packet, such as BIND_MW, do not wait for the peer.
        let last_run = match (self.requester.in_flight(), self.io.is_untold) {
            (true, _) => UNDER_WAY,
            (false, false) => ALL_TOLD,
            (false, true) => UNTOLD,
        };
        if qp.last_run.load(Relaxed) != last_run {
            qp.last_run.store(last_run, Relaxed);
        }
        if more {
            Run::Again
        } else {
            again
        }
    }

    /// Handles a response packet, or those of a train. True if some of them are left in the backlog
    /// ([`for_each`]).
    fn responses(&mut self, qp: &WireQp, packet: Verified, now: u64) -> bool {
        let mut by_one = false;
        for_each(qp, &qp.responses, packet, |packet, index| {
            let several = match by_one {
                true => None,
                false => middles_from(qp, self.path.av(), packet, index),
            };
            if let Some((message, count)) = several {
                let mut env = SendEnv {
                    qp,
                    io: &mut self.io,
                };
                if self
                    .requester
                    .handle_middles(&message, count, now, &mut env)
                {
                    return count;
                }
                by_one = true;
            }
            self.response(qp, packet, index, now);
            1
        })
    }

    /// Handles one response packet, the one with this index in a train.
    fn response(&mut self, qp: &WireQp, packet: &Verified, index: u32, now: u64) {
        let message = match content_from(qp, self.path.av(), packet, index) {
            Some(Content::Message(message)) => message,
            Some(Content::Cnp) => {
                self.requester.on_congestion();
                qp.congested.store(1, Relaxed);
                return;
            }
            None => return,
        };
        if packet.is_marked(index) {
            // What a READ asks for at a time is bounded by the window.
            if message.opcode.family() == Family::ReadResponse {
                self.requester.on_congestion();
            }
            self.notify(qp, now);
        }
        let mut env = SendEnv {
            qp,
            io: &mut self.io,
        };
        self.requester.handle_response(&message, now, &mut env);
    }

    /// An answer came marked.
    fn notify(&mut self, qp: &WireQp, now: u64) {
        qp.device.count(Counter::EcnMarked, 1);
        if !self.io.notifier.on_congestion(now) {
            return;
        }
        let Some(skb) = tx::notice(
            qp.device.tunnel(),
            &qp.sender,
            &mut self.path,
            self.dest_qpn,
        ) else {
            return;
        };
        qp.device.count(Counter::CnpSent, 1);
        let mut outgoing = Outgoing::new();
        outgoing.push(skb);
        outgoing.finish(qp, None);
    }

    /// Builds and sends packets until the requester has none, or the budget is spent.
    fn transmit(&mut self, qp: &WireQp, now: u64, budget: &mut Budget) -> Run {
        let mut outgoing = Outgoing::new();
        let mut route = None;
        let (mut train_room, mut largest) = (0, 0u32);
        let again = loop {
            let filled = fill(&mut self.requester, &mut self.io, qp);
            if filled == Filled::Corrupt {
                break Run::Idle;
            }
            // Whoever resets or destroys the queue pair waits for this run. What was posted in the
            // error state, and fetched just now, is flushed.
            if matches!(qp.state(), QpState::Reset | QpState::Err) {
                break Run::Again;
            }
            let mut env = SendEnv {
                qp,
                io: &mut self.io,
            };
            let transmit = self.requester.poll_transmit(now, &mut env);
            budget.spend_requests(self.io.take_executed());
            let Some(transmit) = transmit else {
                if idle(qp, filled, &self.requester, &mut self.io) {
                    break Run::Idle;
                }
                if budget.is_empty() {
                    self.io.blocked();
                    break Run::Again;
                }
                continue;
            };
            if route.is_none() {
                route = self.path.route(qp.device.tunnel()).ok();
                let mtu = self.requester.mtu().bytes();
                train_room = route.as_ref().map_or(0, |route| tx::train_room(route, mtu));
                self.requester.set_trains(train_room);
            }
            let len = transmit.payload.as_ref().map_or(0, |p| p.len);
            let joining = tx::joining(qp.kind.is_reliable() && !transmit.again);
            let most = budget.packets().saturating_sub(1);
            let followers = transmit.followers.min(most);
            let packet = Planned {
                header: &transmit.header,
                len: len as usize,
                pad: transmit.pad,
                joining,
                followers,
                others: transmit.others.min(most.saturating_sub(followers)),
            };
            let (mut packets, mut bytes) = (1, len);
            let built = match &mut route {
                Some(route) => work::step(|| {
                    let joins =
                        outgoing.add(qp, route, &packet, |out| match &transmit.payload {
                            Some(p) => self.io.gather(qp.pd, p.slot, p.offset, out),
                            None => Ok(()),
                        })?;
                    if joins {
                        self.requester.joins_train();
                    }
                    // What follows in the same train, all at once; but memory that may have to be
                    // waited for is gathered packet by packet.
                    let room = outgoing.room().min(packet.followers);
                    let (Some(p), false) = (transmit.payload, qp.sleeps()) else {
                        return Ok(());
                    };
                    let middles = self.requester.poll_middles(room, now);
                    if middles.count == 0 {
                        return Ok(());
                    }
                    packets = middles.count.saturating_add(1);
                    bytes = packets.saturating_mul(len);
                    let from = p.offset.saturating_add(len);
                    outgoing.extend(qp, route, middles, len, |before, out| {
                        let at = from.saturating_add(before);
                        self.io.gather(qp.pd, p.slot, at, out)
                    })
                }),
                // Without a route the packet is lost, and the retry timer decides.
                None => Err(BuildError::NoMemory),
            };
            match built {
                Ok(()) => {}
                Err(BuildError::NoMemory) => qp.device.count(Counter::SendError, 1),
                Err(BuildError::Fault) => {
                    let slot = transmit.payload.map_or(0, |p| p.slot);
                    let mut env = SendEnv {
                        qp,
                        io: &mut self.io,
                    };
                    // It ends when what was sent before it has ended: poll on.
                    self.requester
                        .local_fault(slot, WcStatus::LocProtErr, &mut env);
                    continue;
                }
            }
            budget.spend_packets(packets, bytes);
            largest = largest.max(len);
            if outgoing.take_ended() {
                budget.end_with_train(train_room);
            }
            if budget.is_empty() || work::has_waited() {
                self.io.blocked();
                break Run::Again;
            }
        };
        outgoing.finish(qp, route);
        self.note_sent(qp, budget.moved(), largest, &again);
        again
    }

    /// This run has sent `bytes` bytes of payload, up to `largest` in a packet: where this side has
    /// its home, and whether it still needs one.
    fn note_sent(&mut self, qp: &WireQp, bytes: u32, largest: u32, again: &Run) {
        // A thread that may sleep runs anywhere.
        if !qp.sleeps() && qp.send_home.note_sent(bytes, largest >= LARGE) {
            self.small_runs = 0;
            qp.hot.note_bulk(largest);
            return;
        }
        // What the window holds back is sent in small portions, too.
        if bytes > 0 && matches!(again, Run::Idle) && !self.requester.has_unsent() {
            self.small_runs = self.small_runs.saturating_add(1);
        }
        if self.small_runs > MAX_SMALL || !self.requester.in_flight() {
            qp.send_home.leave();
        }
    }

    /// The QP is in an error state: everything completes with a flush error, in order.
    fn flush(&mut self, qp: &WireQp) -> Run {
        if !self.io.flushed && !qp.kind.is_datagram() {
            // What was answered before the error has been done. The answer may have met this side
            // in a run that it interrupted, and the error followed it: a bad READ of what was just
            // sent.
            let now = rdma::timer::now_ns();
            while self.io.drained < BACKLOG {
                let mut taken = 0u32;
                let more = take_packets(qp, &qp.responses, None, |packet| {
                    taken = taken.saturating_add(1);
                    self.responses(qp, packet, now)
                });
                if !more {
                    break;
                }
                if work::has_waited() {
                    // For memory: only a packet, or a part of a train, was taken. The run goes on
                    // in its turn.
                    self.io.drained_slowly = self.io.drained_slowly.saturating_add(1);
                    if self.io.drained_slowly < BACKLOG {
                        return Run::Again;
                    }
                    break;
                }
                self.io.drained = self.io.drained.saturating_add(taken.max(1));
            }
        }
        qp.responses.purge();
        if !local::abandon(self, qp) {
            return Run::Idle;
        }
        if !self.io.flushed {
            self.io.flushed = true;
            let mut env = SendEnv {
                qp,
                io: &mut self.io,
            };
            self.requester.flush(&mut env);
            self.io.failure = None;
        }
        match self.flush_ring(qp, FLUSH_BURST) {
            Ok(Fetched::Nothing) => return Run::Idle,
            Ok(Fetched::One) => {}
            Err(CorruptRing) => {
                // That is more than a failed request.
                if qp.state() == QpState::Sqe {
                    qp.event(QpEvent::Fatal);
                    self.io.failure = Some(Failure::Ring);
                }
                return Run::Idle;
            }
        }
        if qp.send_cq.as_ref().is_some_and(|cq| cq.is_dead()) {
            return Run::Idle;
        }
        Run::Again
    }

    /// Completes up to `count` posted requests with a flush error; says whether more may be there.
    fn flush_ring(&mut self, qp: &WireQp, count: u32) -> Result<Fetched, CorruptRing> {
        for _ in 0..count {
            let mut wqe = SendWqe::default();
            match self.io.fetch(qp, &mut wqe)? {
                Fetched::One => {
                    self.io.retire(&wqe);
                    self.io.publish();
                    complete(qp, &wqe.head, WcStatus::WrFlushErr, 0);
                }
                Fetched::Nothing => {
                    if self.io.asleep() {
                        return Ok(Fetched::Nothing);
                    }
                }
            }
        }
        Ok(Fetched::One)
    }

    /// From SQE back to RTS; false if the QP went elsewhere meanwhile. Flushes what was posted so
    /// far, and no more than that, whatever is posted meanwhile. Process context.
    pub(crate) fn resume(&mut self, qp: &WireQp) -> Result<bool, CorruptRing> {
        let mut env = SendEnv {
            qp,
            io: &mut self.io,
        };
        self.requester.flush(&mut env);
        let posted = self.io.posted()?;
        self.flush_ring(qp, posted)?;
        self.io.failure = None;
        self.io.flushed = false;
        self.io.drained = 0;
        self.io.drained_slowly = 0;
        let is_back = qp.change_state(QpState::Sqe, QpState::Rts);
        // A datagram QP has no use for it.
        if is_back && !qp.kind.is_datagram() {
            let mut env = SendEnv {
                qp,
                io: &mut self.io,
            };
            self.requester.resume(&mut env);
        }
        Ok(is_back)
    }
}

impl WireQp {
    /// Gives the send side of a process that begins to post the rest of its slots. While there is
    /// no memory for them, one work request is under way at a time, and the next doorbell tries
    /// again. The caller kicks the send side afterwards. Process context, sleeps.
    pub(crate) fn make_slots(&self) {
        if self.has_slots.load(Relaxed) != 0 || self.state().is_error() {
            return;
        }
        let count = most_under_way(self.cap.max_send_wr);
        let Ok(slots) = Slots::new(count, self.cap.max_send_sge as usize) else {
            return;
        };
        let unused = self.send.lock().grow(slots);
        self.has_slots.store(1, Relaxed);
        drop(unused);
    }
}

/// How [`fill`] ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filled {
    /// All that was posted was fetched.
    All,
    /// There is no room for more, which may have been posted.
    Full,
    /// The ring is corrupt.
    Corrupt,
}

/// Fetches work requests as long as there is room for them.
pub(crate) fn fill(requester: &mut Requester<KVVec<Wqe>>, io: &mut SendIo, qp: &WireQp) -> Filled {
    while requester.room() > 0 {
        let mut wqe = SendWqe::default();
        match io.fetch(qp, &mut wqe) {
            Ok(Fetched::One) => {}
            Ok(Fetched::Nothing) => return Filled::All,
            Err(CorruptRing) => {
                io.fail(Failure::Ring);
                qp.event(QpEvent::Fatal);
                return Filled::Corrupt;
            }
        }
        match requester.push(to_requester(&wqe)) {
            Ok(slot) => io.store(slot, &wqe),
            // There was room.
            Err(_) => return Filled::Corrupt,
        }
    }
    Filled::Full
}

/// The requester, filled as `filled` says, has nothing to send now. False when there is something
/// to fetch after all.
pub(crate) fn idle(
    qp: &WireQp,
    filled: Filled,
    requester: &Requester<KVVec<Wqe>>,
    io: &mut SendIo,
) -> bool {
    if requester.room() == 0 || requester.has_unsent() {
        // Something is under way that runs this side again: an answer or a deadline.
        io.blocked();
        return true;
    }
    // Requests that need no packet have made room, and nobody rings for those that wait for it.
    if filled == Filled::Full {
        return false;
    }
    if qp.hot.is_polled() {
        io.ticks.stop();
        io.blocked();
        return true;
    }
    if let Some(ns) = qp.next_look(&mut io.ticks) {
        io.blocked();
        qp.timer.start_in(ns);
        return true;
    }
    io.asleep()
}

/// The requester's view of a work request.
fn to_requester(wqe: &SendWqe) -> SendWr {
    use roce::requester::SendOp as Op;
    let head = &wqe.head;
    let op = match head.op {
        _ if wqe.broken.is_some() => Op::Local,
        SendOp::Send => Op::Send,
        SendOp::SendImm => Op::SendImm,
        SendOp::SendInv => Op::SendInv,
        SendOp::Write => Op::Write,
        SendOp::WriteImm => Op::WriteImm,
        SendOp::Read => Op::Read,
        SendOp::CmpSwap => Op::CmpSwap,
        SendOp::FetchAdd => Op::FetchAdd,
        SendOp::AtomicWrite => Op::AtomicWrite,
        SendOp::Flush => Op::Flush,
        SendOp::BindMw | SendOp::LocalInv | SendOp::RegMr => Op::Local,
    };
    let flush = head.rdma.flush();
    SendWr {
        wr_id: head.wr_id,
        op,
        signaled: head.signaled,
        solicited: head.solicited,
        fence: head.fence,
        length: head.length,
        imm: head.imm,
        invalidate_rkey: Key::new(head.imm),
        remote_addr: head.rdma.remote_addr,
        rkey: head.rdma.rkey,
        srqn: Srqn::new(head.rdma.srqn),
        compare_add: head.rdma.compare_add,
        swap: head.rdma.swap,
        flush_placement: flush.placement,
        flush_level: flush.level,
        ..SendWr::default()
    }
}
