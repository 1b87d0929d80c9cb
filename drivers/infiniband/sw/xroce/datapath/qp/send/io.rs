// SPDX-License-Identifier: GPL-2.0

//! Fetching send work requests, finding their data, and releasing their slots.

use super::super::request::{filled, KernelQueue, Origin, SendHead, SendOp, Sge};
use super::super::ring::{CorruptRing, RingReader};
use crate::prelude::*;
use crate::tm::rendezvous;
use crate::{access, local, mr, mw, wr};
use roce::requester::{RequesterEnv, RequesterStats, SendCompletion};

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

/// Everything of the send direction but the protocol.
pub(crate) struct SendIo {
    pub(crate) queue: SendQueue,
    /// What the device itself wants to be sent; it goes first.
    device: Option<Arc<rendezvous::Queue>>,
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
    /// The queue cannot go on; looked at when the run ends.
    pub(super) failure: Option<Failure>,
    /// Everything is flushed.
    pub(super) flushed: bool,
    /// An event is to tell when the queue has drained (`en_sqd_async_notify`).
    pub(crate) notify_drained: bool,
    /// Requests that were executed without a packet, and that no budget was charged for.
    executed: u32,
    /// PSN of the next datagram.
    psn: u32,
    /// What was counted already.
    seen: RequesterStats,
    /// Same-host delivery.
    pub(crate) local: local::Sender,
}

/// Why the send queue cannot go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A request failed. That ends a reliable QP; an unreliable one is in SQE.
    Request,
    /// The ring is corrupt: that ends every QP.
    Ring,
}

/// What a fetch found.
pub(crate) enum Fetched {
    Nothing,
    One,
}

impl SendIo {
    /// For a QP with up to `slots` work requests under way. Process context.
    pub(super) fn new(
        queue: SendQueue,
        device: Option<Arc<rendezvous::Queue>>,
        slots: usize,
        max_sge: usize,
        max_inline: u32,
    ) -> Result<Self> {
        let lists = slots.checked_mul(max_sge).ok_or(EINVAL)?;
        Ok(SendIo {
            queue,
            device,
            wqes: filled(slots)?,
            sges: filled(lists)?,
            max_sge,
            max_inline,
            retired: 0,
            unreported: 0,
            scratch: filled(max_sge)?,
            awake: false,
            failure: None,
            flushed: false,
            notify_drained: false,
            executed: 0,
            psn: 0,
            seen: RequesterStats::default(),
            local: local::Sender::default(),
        })
    }

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
        if let Some(device) = &self.device {
            if device.take(&mut wqe.head, &mut self.scratch) {
                device.retire(1);
                return Ok(Fetched::One);
            }
        }
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
    pub(super) fn store(&mut self, slot: u32, wqe: &SendWqe) {
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
        if wqe.head.origin == Origin::Fin {
            let notice = rendezvous::notice(&wqe.head);
            let from = notice.get(offset as usize..).ok_or(Fault)?;
            out.copy_from_slice(from.get(..out.len()).ok_or(Fault)?);
            return Ok(());
        }
        match (wqe.head.inline_at, &self.queue) {
            (Some(at), SendQueue::User(ring)) => read_inline(ring, wqe, at, offset, out),
            (Some(_), _) => Err(Fault),
            (None, _) => access::gather(pd, self.list(slot), offset, out),
        }
    }

    /// Whether the data of work request `slot` are in its slot, or nowhere but in this structure.
    pub(crate) fn is_inline(&self, slot: u32) -> bool {
        self.wqes
            .get(slot as usize)
            .is_some_and(|wqe| wqe.head.inline_at.is_some())
            || self.is_notice(slot)
    }

    /// Whether work request `slot` tells a sender that its data were fetched.
    pub(crate) fn is_notice(&self, slot: u32) -> bool {
        self.wqes
            .get(slot as usize)
            .is_some_and(|wqe| wqe.head.origin == Origin::Fin)
    }

    /// The protection domain of the local keys of work request `slot`: of the device's, the one of the
    /// SRQ whose tags they belong to.
    pub(crate) fn list_pd(&self, qp: &WireQp, slot: u32) -> u64 {
        let origin = self.wqes.get(slot as usize).map(|wqe| wqe.head.origin);
        match (origin, &qp.srq) {
            (Some(Origin::Fetch), Some(srq)) => srq.pd,
            _ => qp.pd,
        }
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
    pub(super) fn count(&mut self, qp: &WireQp, stats: &RequesterStats) {
        let (device, seen) = (&qp.device, &mut self.seen);
        device.count_since(
            Counter::Retransmit,
            &mut seen.retransmitted,
            stats.retransmitted,
        );
        device.count_since(
            Counter::SequenceNak,
            &mut seen.sequence_naks,
            stats.sequence_naks,
        );
        device.count_since(Counter::RnrReceived, &mut seen.rnr_naks, stats.rnr_naks);
    }

    /// The next datagram gets the number `psn`, 24 bits.
    pub(crate) fn start_datagrams(&mut self, psn: u32) {
        self.psn = psn;
    }

    /// The PSN of the next datagram.
    pub(crate) fn next_datagram_psn(&mut self) -> u32 {
        let psn = self.psn;
        self.psn = psn.wrapping_add(1) & 0x00ff_ffff;
        psn
    }

    /// How many requests were executed without a packet since the last call.
    pub(crate) fn take_executed(&mut self) -> u32 {
        core::mem::take(&mut self.executed)
    }

    /// Has the queue stop at the end of this run.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
    }

    /// Work requests that were posted and not fetched.
    pub(super) fn posted(&self) -> Result<u32, CorruptRing> {
        match &self.queue {
            SendQueue::None => Ok(0),
            SendQueue::User(ring) => ring.available(),
            SendQueue::Kernel(queue) => Ok(queue.available()),
        }
    }

    /// Notes that a request is done with its slot.
    pub(crate) fn retire(&mut self, wqe: &SendWqe) {
        if wqe.head.origin != Origin::User {
            return;
        }
        self.retired = wqe.index.wrapping_add(1);
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
    pub(super) fn forget(&mut self) {
        if let Some(device) = &self.device {
            device.forget();
        }
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
        self.failure = None;
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
        let pd = self.io.list_pd(self.qp, slot);
        access::scatter(pd, self.io.list(slot), offset, data).map_err(|_| roce::status::Fault)
    }

    fn complete(&mut self, done: &SendCompletion) {
        let Some(wqe) = self.io.wqes.get(done.slot as usize) else {
            return;
        };
        let wqe = *wqe;
        let head = &wqe.head;
        if !matches!(done.status, WcStatus::Success | WcStatus::WrFlushErr) {
            self.qp.set_send_error();
            self.io.failure.get_or_insert(Failure::Request);
        }
        self.io.retire(&wqe);
        if done.signaled || done.status != WcStatus::Success || head.origin != Origin::User {
            // Whoever sees the completion may use the slots again.
            self.io.publish();
            complete(self.qp, head, done.status, done.byte_len);
        }
        if done.status != WcStatus::Success {
            self.count_failure(done.status);
        }
    }

    fn local(&mut self, slot: u32) -> Result<(), WcStatus> {
        self.io.executed = self.io.executed.wrapping_add(1);
        let Some(wqe) = self.io.wqes.get(slot as usize) else {
            return Err(WcStatus::LocQpOpErr);
        };
        if let Some(status) = wqe.broken {
            return Err(status);
        }
        let head = &wqe.head;
        match head.op {
            SendOp::BindMw => mw::bind(self.qp, &head.rdma.bind()),
            SendOp::LocalInv => mr::local_invalidate(self.qp, head.imm),
            SendOp::RegMr => mr::fast_register(self.qp, &head.rdma.reg()),
            _ => Err(WcStatus::LocQpOpErr),
        }
    }

    fn fatal(&mut self) {
        // A ring that was found corrupt meanwhile is the worse.
        self.io.failure.get_or_insert(Failure::Request);
    }

    fn sq_drained(&mut self) {
        if self.io.notify_drained {
            self.qp.event(QpEvent::SendQueueDrained);
        }
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

/// Makes the completion of a send work request; one that is lost ends the QP.
pub(crate) fn complete(qp: &WireQp, head: &SendHead, status: WcStatus, byte_len: u32) {
    if head.origin != Origin::User {
        return rendezvous::complete(qp, head, status);
    }
    let Some(cq) = &qp.send_cq else {
        return;
    };
    let posted = cq.post_from(
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
    if posted.is_err() {
        qp.fail();
    }
}
