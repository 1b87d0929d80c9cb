// SPDX-License-Identifier: GPL-2.0

//! The receive direction of a queue pair: request packets in, memory written, answers out.

use super::engine::{from_peer, Budget, BACKLOG_BURST};
use super::request::{filled, KernelQueue, RecvHead, Sge, MAX_SGE};
use super::ring::{CorruptRing, RingReader};
use crate::prelude::*;
use crate::srq::Taken;
use crate::tx::{self, Av, BuildError, Path};
use crate::{access, mr, tables, ud, wr};
use roce::responder::{
    AtomicOp, QpEvent as ResponderEvent, ReceiveError, RecvCompletion, RecvOp, RemoteAccess,
    Resource, Responder, ResponderConfig, ResponderEnv, ResponderStats, Response, ScatterError,
};
use roce::wire::{HeaderBuf, Packet};

/// Receives that one run flushes at most.
const FLUSH_BURST: u32 = 128;

/// Where receive work requests come from.
pub(crate) enum RecvQueue {
    /// From an SRQ, or from nowhere (XRC_INI).
    None,
    /// The ring of a user.
    User(RingReader),
    /// Posts of a kernel user.
    Kernel(Arc<KernelQueue<RecvHead>>),
}

/// The receive work request that the present message fills.
pub(crate) struct Current {
    /// There is one.
    pub(crate) active: bool,
    pub(crate) head: RecvHead,
    sges: KVVec<Sge>,
    /// Protection domain of its local keys.
    pub(crate) pd: u64,
    /// The XRC SRQ that it came from.
    srq: Option<Ref<WireSrq>>,
}

impl Current {
    /// The scatter list.
    pub(crate) fn list(&self) -> &[Sge] {
        self.sges.get(..self.head.num_sge as usize).unwrap_or(&[])
    }

    /// The XRC SRQ that it came from was destroyed: its buffers are the user's again.
    pub(crate) fn is_orphan(&self) -> bool {
        self.srq.as_ref().is_some_and(|srq| srq.is_dead())
    }
}

/// The receive direction, as its owner sees it.
pub(crate) struct RecvSide {
    pub(crate) responder: Responder<KVVec<Resource>>,
    pub(crate) path: Path,
    pub(crate) io: RecvIo,
}

/// Everything of the receive direction but the protocol.
pub(crate) struct RecvIo {
    queue: RecvQueue,
    pub(crate) current: Current,
    /// Answers of the present run.
    replies: TxBatch,
    /// Number of them.
    reply_count: u32,
    /// What was counted already.
    seen: ResponderStats,
    /// The responder failed: the QP is to go to the error state.
    failed: bool,
    /// The receive that was in progress is flushed.
    flushed: bool,
    /// The last event for an SRQ user was raised.
    last_wqe: bool,
    /// The ring said something impossible: nothing is taken from it until it is forgotten.
    corrupt: bool,
    /// Names the local message that is open here, see [`crate::local`]; 0: none.
    pub(crate) local_token: u64,
}

impl RecvIo {
    /// Makes the next receive work request the current one.
    pub(crate) fn take(&mut self, qp: &WireQp, srqn: Option<u32>) -> Result<(), ReceiveError> {
        let current = &mut self.current;
        let result = if let Some(srqn) = srqn {
            let srq = xrc_srq(qp, srqn)?;
            let result = taken(srq.take(&mut current.head, &mut current.sges));
            current.pd = srq.pd;
            current.srq = Some(srq);
            result
        } else if let Some(srq) = &qp.srq {
            current.pd = srq.pd;
            taken(srq.take(&mut current.head, &mut current.sges))
        } else {
            current.pd = qp.pd;
            match &mut self.queue {
                RecvQueue::None => Err(ReceiveError::Empty),
                RecvQueue::User(_) if self.corrupt => Err(ReceiveError::Empty),
                RecvQueue::User(ring) => take_user(ring, current, &mut self.corrupt),
                RecvQueue::Kernel(queue) => {
                    if queue.take(&mut current.head, &mut current.sges) {
                        queue.retire(1);
                        Ok(())
                    } else {
                        Err(ReceiveError::Empty)
                    }
                }
            }
        };
        match result {
            Ok(()) => current.active = true,
            // It counts as taken, and completes with an error.
            Err(ReceiveError::Fault) => {
                current.active = true;
                current.head.num_sge = 0;
                // Told once: ib_core queues events without a limit until the user reads them.
                if !qp.state().is_error() {
                    qp.event(QpEvent::Fatal);
                }
            }
            Err(_) => current.srq = None,
        }
        result
    }

    /// Counts what the responder did since the last call.
    fn count(&mut self, qp: &WireQp, stats: &ResponderStats) {
        let seen = &mut self.seen;
        for (now, before, counter) in [
            (
                stats.duplicates,
                &mut seen.duplicates,
                Counter::DuplicateRequest,
            ),
            (
                stats.out_of_sequence,
                &mut seen.out_of_sequence,
                Counter::OutOfSequence,
            ),
            (stats.rnr_naks, &mut seen.rnr_naks, Counter::RnrSent),
        ] {
            let delta = now.wrapping_sub(*before);
            if delta != 0 {
                *before = now;
                qp.device.count(counter, u64::from(delta));
            }
        }
    }

    /// Has the QP go to the error state at the end of this run.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// Ends the current receive with a completion.
    pub(crate) fn finish(&mut self, qp: &WireQp, mut completion: Completion) {
        let current = &mut self.current;
        if !current.active {
            return;
        }
        current.active = false;
        // A local message that is still open has lost its receive.
        self.local_token = 0;
        completion.wr_id = current.head.wr_id;
        completion.qp_num = qp.wire_qpn();
        let srq = current.srq.take();
        let cq = srq
            .as_ref()
            .and_then(|srq| srq.cq.as_ref())
            .or(qp.recv_cq.as_ref());
        if let Some(cq) = cq {
            cq.post_from(&completion, qp.handle());
        }
    }

    /// Forgets all that was posted.
    fn forget(&mut self) {
        match &mut self.queue {
            RecvQueue::None => {}
            RecvQueue::User(ring) => {
                ring.forget();
                ring.clear_flush();
            }
            RecvQueue::Kernel(queue) => queue.forget(),
        }
        self.current.active = false;
        self.current.srq = None;
        self.failed = false;
        self.flushed = false;
        self.last_wqe = false;
        self.corrupt = false;
        self.local_token = 0;
    }
}

fn taken(result: Result<(), Taken>) -> Result<(), ReceiveError> {
    result.map_err(|e| match e {
        Taken::Empty => ReceiveError::Empty,
        Taken::Corrupt => ReceiveError::Fault,
        Taken::Dead => ReceiveError::InvalidSrq,
    })
}

fn take_user(
    ring: &mut RingReader,
    current: &mut Current,
    corrupt: &mut bool,
) -> Result<(), ReceiveError> {
    match ring.available() {
        Ok(0) => return Err(ReceiveError::Empty),
        Ok(_) => {}
        Err(CorruptRing) => {
            *corrupt = true;
            return Err(ReceiveError::Fault);
        }
    }
    let decoded = wr::copy_recv(ring, &mut current.head, &mut current.sges);
    ring.advance();
    ring.publish(ring.next());
    decoded.map_err(|_| ReceiveError::Fault)
}

/// The XRC SRQ `srqn`, if the QP's domain may use it.
fn xrc_srq(qp: &WireQp, srqn: u32) -> Result<Ref<WireSrq>, ReceiveError> {
    let Some(srq) = tables::get().and_then(|t| t.srqs.get(srqn)) else {
        qp.device.count(Counter::XrcViolation, 1);
        return Err(ReceiveError::InvalidSrq);
    };
    check_srq(qp, &srq)?;
    Ok(srq)
}

fn check_srq(qp: &WireQp, srq: &WireSrq) -> Result<(), ReceiveError> {
    let error = if !srq.is_xrc() || srq.is_dead() {
        ReceiveError::InvalidSrq
    } else if srq.domain != qp.domain {
        ReceiveError::WrongDomain
    } else {
        return Ok(());
    };
    qp.device.count(Counter::XrcViolation, 1);
    Err(error)
}

/// What the responder sees of the kernel.
pub(crate) struct RecvEnv<'a> {
    pub(crate) qp: &'a WireQp,
    pub(crate) path: &'a mut Path,
    pub(crate) io: &'a mut RecvIo,
}

/// The protection domain that remote keys must belong to: the QP's, or for XRC that of the SRQ that
/// the packet names.
pub(crate) fn remote_pd(qp: &WireQp, srqn: Option<u32>) -> Result<u64, Fault> {
    let Some(srqn) = srqn else {
        return Ok(qp.pd);
    };
    tables::get()
        .and_then(|t| t.srqs.with(srqn, |srq| check_srq(qp, srq).map(|()| srq.pd)))
        .and_then(|pd| pd.ok())
        .ok_or(Fault)
}

impl RecvEnv<'_> {
    /// Runs `f` on the memory that a remote key names.
    pub(crate) fn with_remote<R>(
        &self,
        srqn: Option<u32>,
        rkey: u32,
        va: u64,
        len: u64,
        access: u32,
        f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let pd = remote_pd(self.qp, srqn)?;
        mr::with_remote(rkey, pd, self.qp.qpn, va, len, access, f)
    }
}

type WireFault = roce::status::Fault;

fn wire_fault(_: Fault) -> WireFault {
    roce::status::Fault
}

impl ResponderEnv for RecvEnv<'_> {
    fn take_receive(&mut self, srqn: Option<u32>) -> Result<(), ReceiveError> {
        self.io.take(self.qp, srqn)
    }

    fn check_xrc(&mut self, srqn: u32) -> Result<(), ReceiveError> {
        tables::get()
            .and_then(|t| t.srqs.with(srqn, |srq| check_srq(self.qp, srq)))
            .unwrap_or(Err(ReceiveError::InvalidSrq))
    }

    fn scatter(&mut self, offset: u32, data: &[u8]) -> Result<(), ScatterError> {
        let current = &self.io.current;
        if current.is_orphan() {
            return Err(ScatterError::Protection);
        }
        access::scatter(current.pd, current.list(), offset, data).map_err(|e| match e {
            access::ScatterError::TooLong => ScatterError::TooLong,
            access::ScatterError::Protection => ScatterError::Protection,
        })
    }

    fn complete_receive(&mut self, done: &RecvCompletion) {
        self.io.finish(self.qp, recv_completion(done));
    }

    fn check_remote(&mut self, a: &RemoteAccess) -> Result<(), WireFault> {
        self.with_remote(
            a.srqn,
            a.rkey,
            a.va,
            u64::from(a.len),
            mr::access_of(a.kind),
            |_, _| Ok(()),
        )
        .map_err(wire_fault)
    }

    fn remote_write(
        &mut self,
        srqn: Option<u32>,
        rkey: u32,
        va: u64,
        data: &[u8],
    ) -> Result<(), WireFault> {
        self.with_remote(
            srqn,
            rkey,
            va,
            data.len() as u64,
            mr::REMOTE_WRITE,
            |memory, at| memory.write(at, data),
        )
        .map_err(wire_fault)
    }

    fn atomic(
        &mut self,
        srqn: Option<u32>,
        rkey: u32,
        va: u64,
        op: AtomicOp,
    ) -> Result<u64, WireFault> {
        let access = match op {
            AtomicOp::Write { .. } => mr::REMOTE_WRITE,
            AtomicOp::CmpSwap { .. } | AtomicOp::FetchAdd { .. } => mr::REMOTE_ATOMIC,
        };
        self.with_remote(srqn, rkey, va, 8, access, |memory, at| match op {
            AtomicOp::CmpSwap { compare, swap } => memory.cmp_swap(at, compare, swap),
            AtomicOp::FetchAdd { add } => memory.fetch_add(at, add),
            AtomicOp::Write { value } => memory.write_u64(at, value).map(|()| 0),
        })
        .map_err(wire_fault)
    }

    fn invalidate(&mut self, rkey: u32) -> Result<(), WireFault> {
        mr::remote_invalidate(self.qp, rkey).map_err(wire_fault)
    }

    fn reply(&mut self, header: &HeaderBuf) {
        let Ok(route) = self.path.route(self.qp.device.tunnel()) else {
            return;
        };
        if let Ok(skb) = tx::build(route, header.as_slice(), 0, 0, |_| Ok(())) {
            self.io.replies.push(skb);
            self.io.reply_count = self.io.reply_count.wrapping_add(1);
        }
    }

    fn event(&mut self, event: ResponderEvent) {
        match event {
            // News only to a QP that waits to be told that it may send.
            ResponderEvent::CommEst if self.qp.state() == QpState::Rtr => {
                self.qp.event(QpEvent::CommunicationEstablished)
            }
            ResponderEvent::CommEst => {}
            ResponderEvent::AccessErr => self.qp.event(QpEvent::AccessError),
            ResponderEvent::ReqErr => self.qp.event(QpEvent::RequestError),
        }
    }

    fn fatal(&mut self) {
        self.io.failed = true;
    }
}

/// The completion queue's view of a finished receive.
fn recv_completion(done: &RecvCompletion) -> Completion {
    let mut flags = 0;
    let mut imm = 0;
    if let Some(data) = done.imm {
        flags |= wr::WC_WITH_IMM;
        imm = data;
    }
    if let Some(rkey) = done.invalidated {
        flags |= wr::WC_WITH_INV;
        imm = rkey;
    }
    Completion {
        status: done.status,
        opcode: match done.op {
            RecvOp::Send => wr::WC_RECV,
            RecvOp::WriteImm => wr::WC_RECV_RDMA_WITH_IMM,
        },
        byte_len: done.byte_len,
        imm,
        wc_flags: flags,
        solicited: done.solicited,
        ..Completion::default()
    }
}

impl RecvSide {
    /// Makes the receive side of a QP. `max_sge` is that of its own queue, and ignored with an SRQ;
    /// `resources` is the number of READs and atomics that may be replayed. Process context.
    pub(crate) fn new(queue: RecvQueue, max_sge: u32, resources: u32) -> Result<Self> {
        let max_sge = match queue {
            RecvQueue::None => MAX_SGE,
            _ => (max_sge as usize).min(MAX_SGE),
        };
        Ok(RecvSide {
            responder: Responder::new(filled(resources as usize)?),
            path: Path::default(),
            io: RecvIo {
                queue,
                current: Current {
                    active: false,
                    head: RecvHead::default(),
                    sges: filled(max_sge)?,
                    pd: 0,
                    srq: None,
                },
                replies: TxBatch::new(),
                reply_count: 0,
                seen: ResponderStats::default(),
                failed: false,
                flushed: false,
                last_wqe: false,
                corrupt: false,
                local_token: 0,
            },
        })
    }

    /// Prepares for the RTR state.
    pub(crate) fn configure(&mut self, config: &ResponderConfig, av: Av) {
        self.responder.configure(config);
        self.path.set(av);
    }

    /// Back to the state of a new QP; nothing completes.
    pub(crate) fn reset(&mut self) {
        self.responder.reset();
        self.io.forget();
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
        } = self;
        (responder, RecvEnv { qp, path, io })
    }

    /// One run: the packets that wait, then `packet`, then what is owed to the peer, within a
    /// budget.
    pub(crate) fn run(&mut self, qp: &WireQp, packet: Option<RxSkb>) -> Run {
        let again = match qp.state() {
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
                Run::Idle
            }
        };
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

    fn run_connected(&mut self, qp: &WireQp, packet: Option<RxSkb>) -> Run {
        let now = rdma::timer::now_ns();
        let more = self.requests(qp, packet, now);
        if self.stream(qp, now) || more {
            return Run::Again;
        }
        let (responder, mut env) = self.split(qp);
        responder.end_of_run(&mut env);
        Run::Idle
    }

    /// Handles the requests that wait, then `packet`. True when some are left for another run.
    fn requests(&mut self, qp: &WireQp, packet: Option<RxSkb>, now: u64) -> bool {
        for _ in 0..BACKLOG_BURST {
            match qp.requests.pop() {
                Some(skb) => self.request(qp, &skb, now),
                None => {
                    if let Some(skb) = packet {
                        self.request(qp, &skb, now);
                    }
                    return false;
                }
            }
        }
        if let Some(skb) = packet {
            if qp.requests.push(skb).is_err() {
                qp.device.count(Counter::Dropped, 1);
            }
        }
        true
    }

    /// Handles one request packet, which was verified.
    fn request(&mut self, qp: &WireQp, skb: &RxSkb, now: u64) {
        if !from_peer(self.path.av(), skb) {
            qp.device.count(Counter::Unknown, 1);
            return;
        }
        let Some(packet) = roce::wire::split_icrc(skb.payload())
            .and_then(|(covered, _)| Packet::parse(covered).ok())
        else {
            return;
        };
        let (responder, mut env) = self.split(qp);
        responder.handle_request(&packet, now, &mut env);
    }

    /// Sends READ responses. True when some are left for another run.
    fn stream(&mut self, qp: &WireQp, now: u64) -> bool {
        let mut budget = Budget::new();
        while let Some(response) = self.responder.poll_response(now) {
            match self.build(qp, &response) {
                Ok(skb) => {
                    self.io.replies.push(skb);
                    self.io.reply_count = self.io.reply_count.wrapping_add(1);
                }
                Err(BuildError::NoMemory) => qp.device.count(Counter::SendError, 1),
                Err(BuildError::Fault) => {
                    let (responder, mut env) = self.split(qp);
                    responder.response_fault(&mut env);
                    // A repeated READ ends here; what stands behind it goes on.
                    budget.spend(0);
                    if budget.is_empty() {
                        return true;
                    }
                    continue;
                }
            }
            let len = response.payload.map_or(0, |slice| slice.len);
            qp.device.count(Counter::SentBytes, u64::from(len));
            budget.spend(len);
            if budget.is_empty() {
                return true;
            }
        }
        false
    }

    fn build(&mut self, qp: &WireQp, response: &Response) -> Result<TxSkb, BuildError> {
        let Ok(route) = self.path.route(qp.device.tunnel()) else {
            return Err(BuildError::NoMemory);
        };
        let header = response.header.as_slice();
        let pad = usize::from(response.pad);
        let Some(slice) = response.payload.filter(|slice| slice.len > 0) else {
            return tx::build(route, header, 0, pad, |_| Ok(()));
        };
        let pd = remote_pd(qp, slice.srqn)?;
        tx::build(route, header, slice.len as usize, pad, |out| {
            mr::with_remote(
                slice.rkey,
                pd,
                qp.qpn,
                slice.va,
                u64::from(slice.len),
                mr::REMOTE_READ,
                |memory, at| memory.read(at, out),
            )
        })
    }

    /// Hands the answers of this run to the stack.
    fn send_replies(&mut self, qp: &WireQp) {
        if self.io.reply_count == 0 {
            return;
        }
        qp.device
            .count(Counter::SentPackets, u64::from(self.io.reply_count));
        self.io.reply_count = 0;
        let dropped = self.io.replies.flush();
        if dropped > 0 {
            qp.device.count(Counter::SendError, u64::from(dropped));
        }
    }

    /// The QP is in the error state: every receive completes with a flush error.
    fn flush(&mut self, qp: &WireQp) -> Run {
        qp.requests.purge();
        if !self.io.flushed {
            self.io.flushed = true;
            let (responder, mut env) = self.split(qp);
            responder.abort(&mut env);
            self.io.finish(qp, flushed());
            if let RecvQueue::User(ring) = &self.io.queue {
                ring.set_flush();
            }
        }
        for _ in 0..FLUSH_BURST {
            let none = matches!(self.io.queue, RecvQueue::None);
            if none || self.io.take(qp, None) == Err(ReceiveError::Empty) {
                if qp.srq.is_some() && !self.io.last_wqe {
                    self.io.last_wqe = true;
                    qp.event(QpEvent::LastWqeReached);
                }
                return Run::Idle;
            }
            self.io.finish(qp, flushed());
        }
        if qp.recv_cq.as_ref().is_some_and(|cq| cq.is_dead()) {
            return Run::Idle;
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
