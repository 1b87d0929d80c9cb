// SPDX-License-Identifier: GPL-2.0

//! The send direction of a connected queue pair: work requests in, packets out, completions.

use super::engine::{from_peer, Budget, BACKLOG_BURST};
use super::request::{filled, KernelQueue, SendHead, SendOp, Sge};
use super::ring::{CorruptRing, RingReader};
use crate::prelude::*;
use crate::tx::{self, Av, BuildError, Path};
use crate::{access, local, ud, wr};
use roce::requester::{
    Requester, RequesterConfig, RequesterEnv, RequesterStats, SendCompletion, SendWr, Transmit, Wqe,
};
use roce::wire::Packet;

/// The most work requests of a queue pair that are under way at a time; the others wait in the ring.
const MAX_UNDER_WAY: u32 = 128;

/// The most packets in flight, unless the configuration says otherwise: the softnet queue that they
/// pass on a virtual link holds 1000, for all connections together.
const MAX_WINDOW_PACKETS: u32 = 384;

/// Packets that are handed to the stack at a time. On a virtual link, what a process hands over is
/// received by its peer in the same breath; with larger bursts that takes longer than softirqs may,
/// and the rest waits for a thread that has to compete for the CPU.
const BURST: usize = 16;

/// Work requests that one run flushes at most.
const FLUSH_BURST: u32 = 128;

/// Where send work requests come from.
pub(crate) enum SendQueue {
    /// Nowhere: an XRC_TGT, or a QP without send queue.
    None,
    /// The ring of a user.
    User(RingReader),
    /// Posts of a kernel user.
    Kernel(Arc<KernelQueue<SendHead>>),
}

/// A work request under way.
#[derive(Clone, Copy, Default)]
pub(crate) struct SendWqe {
    pub(crate) head: SendHead,
    /// Ring index of its slot.
    pub(crate) index: u32,
    /// What is wrong with it, found when it was decoded.
    pub(crate) broken: Option<WcStatus>,
}

/// The send direction, as its owner sees it.
pub(crate) struct SendSide {
    pub(crate) requester: Requester<KVVec<Wqe>>,
    /// QP number of the peer.
    pub(crate) dest_qpn: u32,
    pub(crate) path: Path,
    pub(crate) io: SendIo,
}

/// Everything of the send direction but the protocol.
pub(crate) struct SendIo {
    pub(crate) queue: SendQueue,
    pub(crate) wqes: KVVec<SendWqe>,
    pub(crate) sges: KVVec<Sge>,
    pub(crate) max_sge: usize,
    pub(crate) max_inline: u32,
    /// Ring index behind the last work request that was completed.
    pub(crate) retired: u32,
    /// Requests retired since the kernel queue was told.
    unreported: u32,
    /// Scratch for decoding.
    scratch: KVVec<Sge>,
    /// User space was told that no doorbell is needed.
    awake: bool,
    /// The requester failed: the QP is to go to the error state.
    failed: bool,
    /// Everything is flushed.
    flushed: bool,
    /// PSN of the next datagram.
    psn: u32,
    /// What was counted already.
    seen: RequesterStats,
    /// Same-host delivery.
    pub(crate) local: local::Sender,
}

/// What a fetch found.
pub(crate) enum Fetched {
    Nothing,
    One,
}

impl SendIo {
    /// The gather list of work request `slot`.
    pub(crate) fn list(&self, slot: u32) -> &[Sge] {
        let slot = slot as usize;
        let count = self.wqes.get(slot).map_or(0, |w| w.head.num_sge) as usize;
        let from = slot.wrapping_mul(self.max_sge);
        self.sges.get(from..from.wrapping_add(count)).unwrap_or(&[])
    }

    /// Copies the next work request into `slot`'s arrays. A request that makes no sense comes back
    /// as a broken one, so that it completes in its turn.
    pub(crate) fn fetch(&mut self, qp: &WireQp, wqe: &mut SendWqe) -> Result<Fetched, CorruptRing> {
        *wqe = SendWqe::default();
        match &mut self.queue {
            SendQueue::None => return Ok(Fetched::Nothing),
            SendQueue::User(ring) => {
                if ring.available()? == 0 {
                    return Ok(Fetched::Nothing);
                }
                let mut slot = [0u8; wr::MAX_SEND_SLOT];
                let first = wr::SEND_SLOT_FIRST;
                ring.copy(0, slot.get_mut(..first).ok_or(CorruptRing)?)?;
                let len = wr::send_slot_len(&slot, self.max_sge);
                if len > first {
                    ring.copy(first, slot.get_mut(first..len).ok_or(CorruptRing)?)?;
                }
                wqe.index = ring.next();
                ring.advance();
                if let Err(status) = wr::decode_send(
                    qp.kind,
                    &slot,
                    self.max_inline,
                    &mut wqe.head,
                    &mut self.scratch,
                ) {
                    wqe.broken = Some(status);
                }
            }
            SendQueue::Kernel(queue) => {
                if !queue.take(&mut wqe.head, &mut self.scratch) {
                    return Ok(Fetched::Nothing);
                }
            }
        }
        if qp.sq_sig_all {
            wqe.head.signaled = true;
        }
        Ok(Fetched::One)
    }

    /// Stores a fetched request under the slot that the requester gave it.
    fn store(&mut self, slot: u32, wqe: &SendWqe) {
        let from = (slot as usize).wrapping_mul(self.max_sge);
        let count = wqe.head.num_sge as usize;
        if let (Some(to), Some(list)) = (
            self.sges.get_mut(from..from.wrapping_add(count)),
            self.scratch.get(..count),
        ) {
            to.copy_from_slice(list);
        }
        if let Some(to) = self.wqes.get_mut(slot as usize) {
            *to = *wqe;
        }
    }

    /// Fills `out` from work request `slot`, wherever its data are.
    pub(crate) fn gather(
        &self,
        pd: u64,
        slot: u32,
        offset: u32,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        let wqe = self.wqes.get(slot as usize).ok_or(Fault)?;
        match (wqe.head.inline_at, &self.queue) {
            (Some(at), SendQueue::User(ring)) => read_inline(ring, wqe, at, offset, out),
            (Some(_), _) => Err(Fault),
            (None, _) => access::gather(pd, self.list(slot), offset, out),
        }
    }

    /// Whether the data of work request `slot` are in its slot.
    pub(crate) fn is_inline(&self, slot: u32) -> bool {
        self.wqes
            .get(slot as usize)
            .is_some_and(|wqe| wqe.head.inline_at.is_some())
    }

    /// Fills `out` with all the data of the request that was fetched last.
    pub(crate) fn gather_fetched(
        &self,
        pd: u64,
        wqe: &SendWqe,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        match (wqe.head.inline_at, &self.queue) {
            (Some(at), SendQueue::User(ring)) => read_inline(ring, wqe, at, 0, out),
            (Some(_), _) => Err(Fault),
            (None, _) => {
                let list = self.scratch.get(..wqe.head.num_sge as usize).ok_or(Fault)?;
                access::gather(pd, list, 0, out)
            }
        }
    }

    /// Counts what the requester did since the last call.
    fn count(&mut self, qp: &WireQp, stats: &RequesterStats) {
        let seen = &mut self.seen;
        for (now, before, counter) in [
            (
                stats.retransmitted,
                &mut seen.retransmitted,
                Counter::Retransmit,
            ),
            (
                stats.sequence_naks,
                &mut seen.sequence_naks,
                Counter::SequenceNak,
            ),
            (stats.rnr_naks, &mut seen.rnr_naks, Counter::RnrReceived),
        ] {
            let delta = now.wrapping_sub(*before);
            if delta != 0 {
                *before = now;
                qp.device.count(counter, u64::from(delta));
            }
        }
    }

    /// The PSN of the next datagram.
    pub(crate) fn next_datagram_psn(&mut self) -> u32 {
        let psn = self.psn;
        self.psn = psn.wrapping_add(1) & 0x00ff_ffff;
        psn
    }

    /// Has the QP go to the error state at the end of this run.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// Notes that a request is done with its slot.
    pub(crate) fn retire(&mut self, index: u32) {
        self.retired = index.wrapping_add(1);
        self.unreported = self.unreported.wrapping_add(1);
    }

    /// Gives the slots of retired requests back.
    pub(crate) fn publish(&mut self) {
        if self.unreported == 0 {
            return;
        }
        match &mut self.queue {
            SendQueue::None => {}
            SendQueue::User(ring) => ring.publish(self.retired),
            SendQueue::Kernel(queue) => queue.retire(self.unreported),
        }
        self.unreported = 0;
    }

    /// Leaves a run that cannot go on before something else happens which runs this side again: no
    /// doorbell is needed until then.
    pub(crate) fn blocked(&mut self) {
        if let SendQueue::User(ring) = &self.queue {
            if !self.awake {
                self.awake = true;
                ring.set_awake();
            }
        }
    }

    /// Leaves a run with an empty queue. False when something was posted meanwhile.
    pub(crate) fn asleep(&mut self) -> bool {
        match &self.queue {
            SendQueue::User(ring) if self.awake => {
                self.awake = false;
                ring.clear_awake();
                !matches!(ring.available(), Ok(1..))
            }
            _ => true,
        }
    }

    /// Forgets all that was posted.
    fn forget(&mut self) {
        match &mut self.queue {
            SendQueue::None => {}
            SendQueue::User(ring) => {
                ring.forget();
                if self.awake {
                    // Else user space would never ring a doorbell again.
                    ring.clear_awake();
                }
            }
            SendQueue::Kernel(queue) => queue.forget(),
        }
        self.unreported = 0;
        self.awake = false;
        self.failed = false;
        self.flushed = false;
        self.local = local::Sender::default();
    }
}

/// Reads inline data from where they lie in the ring. The slot is in use until the request is
/// retired; a user who changes it meanwhile changes what is sent and nothing else.
fn read_inline(
    ring: &RingReader,
    wqe: &SendWqe,
    at: u32,
    offset: u32,
    out: &mut [u8],
) -> Result<(), Fault> {
    let end = (offset as usize).checked_add(out.len()).ok_or(Fault)?;
    if end > wqe.head.length as usize {
        return Err(Fault);
    }
    let from = ring
        .slot_offset(wqe.index)
        .wrapping_add(at as usize)
        .wrapping_add(offset as usize);
    ring.mem().copy_out(from, out).map_err(|_| Fault)
}

/// What the requester sees of the kernel.
pub(crate) struct SendEnv<'a> {
    pub(crate) qp: &'a WireQp,
    pub(crate) io: &'a mut SendIo,
}

impl RequesterEnv for SendEnv<'_> {
    fn scatter(&mut self, slot: u32, offset: u32, data: &[u8]) -> Result<(), roce::status::Fault> {
        access::scatter(self.qp.pd, self.io.list(slot), offset, data)
            .map_err(|_| roce::status::Fault)
    }

    fn complete(&mut self, done: &SendCompletion) {
        let Some(wqe) = self.io.wqes.get(done.slot as usize) else {
            return;
        };
        let (index, head) = (wqe.index, wqe.head);
        self.io.retire(index);
        if done.signaled || done.status != WcStatus::Success {
            // Whoever sees the completion may use the slots again.
            self.io.publish();
            complete(self.qp, &head, done.status, done.byte_len);
        }
        if done.status != WcStatus::Success {
            self.count_failure(done.status);
        }
    }

    fn local(&mut self, slot: u32) -> Result<(), WcStatus> {
        // Only broken requests are done locally: the device has no windows and no keys that could be
        // invalidated.
        let wqe = self.io.wqes.get(slot as usize);
        Err(wqe
            .and_then(|wqe| wqe.broken)
            .unwrap_or(WcStatus::LocQpOpErr))
    }

    fn fatal(&mut self) {
        self.io.failed = true;
    }

    fn sq_drained(&mut self) {
        self.qp.event(QpEvent::SendQueueDrained);
    }
}

impl SendEnv<'_> {
    fn count_failure(&self, status: WcStatus) {
        let counter = match status {
            WcStatus::RetryExcErr => Counter::RetryExceeded,
            WcStatus::RnrRetryExcErr => Counter::RnrRetryExceeded,
            _ => return,
        };
        self.qp.device.count(counter, 1);
    }
}

/// Makes the completion of a send work request.
pub(crate) fn complete(qp: &WireQp, head: &SendHead, status: WcStatus, byte_len: u32) {
    let Some(cq) = &qp.send_cq else {
        return;
    };
    cq.post_from(
        &Completion {
            wr_id: head.wr_id,
            status,
            opcode: wr::completion_opcode(head.op),
            byte_len,
            qp_num: qp.wire_qpn(),
            ..Completion::default()
        },
        qp.handle(),
    );
}

impl SendSide {
    /// Makes the send side of a QP. `entries` is the depth of its send queue. Process context.
    pub(crate) fn new(
        queue: SendQueue,
        entries: u32,
        max_sge: u32,
        max_inline: u32,
    ) -> Result<Self> {
        let slots = match queue {
            SendQueue::None => 0,
            _ => entries.clamp(1, MAX_UNDER_WAY) as usize,
        };
        let max_sge = max_sge as usize;
        let lists = slots.checked_mul(max_sge).ok_or(EINVAL)?;
        Ok(SendSide {
            requester: Requester::new(filled(slots)?),
            dest_qpn: 0,
            path: Path::default(),
            io: SendIo {
                queue,
                wqes: filled(slots)?,
                sges: filled(lists)?,
                max_sge,
                max_inline,
                retired: 0,
                unreported: 0,
                scratch: filled(max_sge)?,
                awake: false,
                failed: false,
                flushed: false,
                psn: 0,
                seen: RequesterStats::default(),
                local: local::Sender::default(),
            },
        })
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
    pub(crate) fn reset(&mut self) {
        local::abandon_wait(self);
        self.requester.reset();
        self.io.forget();
    }

    /// One run: everything that can be done now, within a budget.
    pub(crate) fn run(&mut self, qp: &WireQp, packet: Option<RxSkb>) -> Run {
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
                Run::Idle
            }
        };
        self.io.publish();
        self.io.count(qp, self.requester.stats());
        if self.io.failed {
            self.io.failed = false;
            qp.enter_error();
            // The flush is the next round.
            return Run::Again;
        }
        again
    }

    fn run_connected(&mut self, qp: &WireQp, packet: Option<RxSkb>) -> Run {
        let now = rdma::timer::now_ns();
        let mut budget = Budget::new();
        let more = self.responses(qp, packet, now);
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
        if more {
            Run::Again
        } else {
            again
        }
    }

    /// Handles the responses that wait, then `packet`. True when some are left for another run.
    fn responses(&mut self, qp: &WireQp, packet: Option<RxSkb>, now: u64) -> bool {
        for _ in 0..BACKLOG_BURST {
            match qp.responses.pop() {
                Some(skb) => self.response(qp, &skb, now),
                None => {
                    if let Some(skb) = packet {
                        self.response(qp, &skb, now);
                    }
                    return false;
                }
            }
        }
        if let Some(skb) = packet {
            if qp.responses.push(skb).is_err() {
                qp.device.count(Counter::Dropped, 1);
            }
        }
        true
    }

    /// Handles one response packet, which was verified.
    fn response(&mut self, qp: &WireQp, skb: &RxSkb, now: u64) {
        if !from_peer(self.path.av(), skb) {
            qp.device.count(Counter::Unknown, 1);
            return;
        }
        let Some(packet) = roce::wire::split_icrc(skb.payload())
            .and_then(|(covered, _)| Packet::parse(covered).ok())
        else {
            return;
        };
        let mut env = SendEnv {
            qp,
            io: &mut self.io,
        };
        self.requester.handle_response(&packet, now, &mut env);
    }

    /// Builds and sends packets until the requester has none, or the budget is spent.
    fn transmit(&mut self, qp: &WireQp, now: u64, budget: &mut Budget) -> Run {
        let mut batch = TxBatch::new();
        let mut dropped = 0u32;
        let mut packets = 0u64;
        let mut bytes = 0u64;
        let mut again = Run::Idle;
        let mut route = None;
        loop {
            if !fill(&mut self.requester, &mut self.io, qp) {
                break;
            }
            let mut env = SendEnv {
                qp,
                io: &mut self.io,
            };
            let Some(transmit) = self.requester.poll_transmit(now, &mut env) else {
                if idle(&self.requester, &mut self.io) {
                    break;
                }
                continue;
            };
            if route.is_none() {
                route = self.path.route(qp.device.tunnel()).ok();
            }
            let len = transmit.payload.as_ref().map_or(0, |p| p.len);
            packets = packets.wrapping_add(1);
            bytes = bytes.wrapping_add(u64::from(len));
            let built = match &mut route {
                Some(route) => build(&self.io, qp.pd, route, &transmit),
                // Without a route the packet is lost, and the retry timer decides.
                None => Err(BuildError::NoMemory),
            };
            match built {
                Ok(skb) => {
                    batch.push(skb);
                    if batch.len() >= BURST {
                        dropped = dropped.wrapping_add(batch.flush());
                    }
                }
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
            budget.spend(len);
            if budget.is_empty() {
                self.io.blocked();
                again = Run::Again;
                break;
            }
        }
        if packets > 0 {
            qp.device.count(Counter::SentPackets, packets);
            qp.device.count(Counter::SentBytes, bytes);
            dropped = dropped.wrapping_add(batch.flush());
            if dropped > 0 {
                qp.device.count(Counter::SendError, u64::from(dropped));
            }
        }
        again
    }

    /// The QP is in an error state: everything completes with a flush error, in order.
    fn flush(&mut self, qp: &WireQp) -> Run {
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
            self.io.failed = false;
        }
        for _ in 0..FLUSH_BURST {
            let mut wqe = SendWqe::default();
            match self.io.fetch(qp, &mut wqe) {
                Ok(Fetched::One) => {
                    self.io.retire(wqe.index);
                    self.io.publish();
                    complete(qp, &wqe.head, WcStatus::WrFlushErr, 0);
                }
                Ok(Fetched::Nothing) => {
                    if self.io.asleep() {
                        return Run::Idle;
                    }
                }
                Err(CorruptRing) => return Run::Idle,
            }
        }
        if qp.send_cq.as_ref().is_some_and(|cq| cq.is_dead()) {
            return Run::Idle;
        }
        Run::Again
    }
}

/// Fetches work requests as long as there is room for them. False when the ring is corrupt.
pub(crate) fn fill(requester: &mut Requester<KVVec<Wqe>>, io: &mut SendIo, qp: &WireQp) -> bool {
    while requester.room() > 0 {
        let mut wqe = SendWqe::default();
        match io.fetch(qp, &mut wqe) {
            Ok(Fetched::One) => {}
            Ok(Fetched::Nothing) => return true,
            Err(CorruptRing) => {
                io.failed = true;
                qp.event(QpEvent::Fatal);
                return false;
            }
        }
        match requester.push(to_requester(&wqe)) {
            Ok(slot) => io.store(slot, &wqe),
            // There was room.
            Err(_) => return false,
        }
    }
    true
}

/// The requester has nothing to send now. False when there is something to fetch after all.
pub(crate) fn idle(requester: &Requester<KVVec<Wqe>>, io: &mut SendIo) -> bool {
    if requester.room() == 0 || requester.has_unsent() {
        // Something is under way that runs this side again: an answer or a deadline.
        io.blocked();
        return true;
    }
    io.asleep()
}

/// Builds the packet that the requester described.
fn build(
    io: &SendIo,
    pd: u64,
    route: &mut Route,
    transmit: &Transmit,
) -> Result<TxSkb, BuildError> {
    let header = transmit.header.as_slice();
    let pad = usize::from(transmit.pad);
    match &transmit.payload {
        Some(p) => tx::build(route, header, p.len as usize, pad, |out| {
            io.gather(pd, p.slot, p.offset, out)
        }),
        None => tx::build(route, header, 0, pad, |_| Ok(())),
    }
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
    };
    SendWr {
        wr_id: head.wr_id,
        op,
        signaled: head.signaled,
        solicited: head.solicited,
        fence: head.fence,
        length: head.length,
        imm: head.imm,
        invalidate_rkey: head.imm,
        remote_addr: head.rdma.remote_addr,
        rkey: head.rdma.rkey,
        srqn: head.rdma.srqn,
        compare_add: head.rdma.compare_add,
        swap: head.rdma.swap,
        ..SendWr::default()
    }
}
