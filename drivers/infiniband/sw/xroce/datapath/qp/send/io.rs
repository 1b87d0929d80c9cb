// SPDX-License-Identifier: GPL-2.0

//! Fetching send work requests, and releasing their slots.

use super::super::request::{
    filled,
    KernelQueue,
    Origin,
    SendHead,
    Sge, //
};
use super::super::ring::{
    CorruptRing,
    RingReader, //
};
use crate::prelude::*;
use crate::tm::rendezvous;
use crate::{
    local,
    wr, //
};
use core::mem::replace;
use roce::congestion::Notifier;
use roce::requester::{
    RequesterStats,
    Wqe, //
};
use roce::ticks::Ticks;

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

/// What is kept for each work request under way.
pub(crate) struct Slots {
    pub(super) requester: KVVec<Wqe>,
    pub(super) wqes: KVVec<SendWqe>,
    pub(super) sges: KVVec<Sge>,
}

impl Slots {
    /// For `count` requests of up to `max_sge` elements. Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM.
    pub(super) fn new(count: usize, max_sge: usize) -> Result<Self> {
        let lists = count.checked_mul(max_sge).ok_or(EINVAL)?;
        Ok(Slots {
            requester: filled(count)?,
            wqes: filled(count)?,
            sges: filled(lists)?,
        })
    }
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
    pub(super) scratch: KVVec<Sge>,
    /// User space was told that no doorbell is needed.
    awake: bool,
    /// The queue cannot go on; looked at when the run ends.
    pub(super) failure: Option<Failure>,
    /// Everything is flushed.
    pub(super) flushed: bool,
    /// Packets that the flush in progress has taken from the backlog; a train counts as one from
    /// the backlog.
    pub(super) drained: u32,
    /// Answers that it has taken one by one, because they waited for memory.
    pub(super) drained_slowly: u32,
    /// An event is to tell when the queue has drained (`en_sqd_async_notify`).
    pub(crate) notify_drained: bool,
    /// Requests that were executed without a packet, and that no budget was charged for.
    pub(super) executed: u32,
    /// PSN of the next datagram.
    psn: u32,
    /// The request that ended last did so without a completion: whoever posted it goes on without
    /// being told.
    pub(super) is_untold: bool,
    /// When a timer looks at the ring.
    pub(super) ticks: Ticks,
    /// When the peer is told that its answers met congestion.
    pub(super) notifier: Notifier,
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
    /// For a QP with up to as many work requests under way as there are `wqes`, and `max_sge`
    /// elements for each. Process context.
    pub(super) fn new(
        queue: SendQueue,
        device: Option<Arc<rendezvous::Queue>>,
        wqes: KVVec<SendWqe>,
        sges: KVVec<Sge>,
        max_sge: usize,
        max_inline: u32,
    ) -> Result<Self> {
        Ok(SendIo {
            queue,
            device,
            wqes,
            sges,
            max_sge,
            max_inline,
            retired: 0,
            unreported: 0,
            scratch: filled(max_sge)?,
            awake: false,
            failure: None,
            flushed: false,
            drained: 0,
            drained_slowly: 0,
            notify_drained: false,
            executed: 0,
            psn: 0,
            is_untold: false,
            ticks: Ticks::new(),
            notifier: Notifier::default(),
            seen: RequesterStats::default(),
            local: local::Sender::new()?,
        })
    }

    /// Takes larger arrays instead of its own, which it returns; a slot keeps its number.
    pub(super) fn grow(
        &mut self,
        mut wqes: KVVec<SendWqe>,
        mut sges: KVVec<Sge>,
    ) -> (KVVec<SendWqe>, KVVec<Sge>) {
        for (to, from) in wqes.iter_mut().zip(self.wqes.iter()) {
            *to = *from;
        }
        for (to, from) in sges.iter_mut().zip(self.sges.iter()) {
            *to = *from;
        }
        (replace(&mut self.wqes, wqes), replace(&mut self.sges, sges))
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
                let list = &mut self.scratch;
                let decoded = wr::copy_send(ring, qp.kind, self.max_inline, &mut wqe.head, list)?;
                wqe.broken = decoded.err();
                wqe.index = ring.next();
                ring.advance();
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
        device.count_since(Counter::TailProbe, &mut seen.probes, stats.probes);
        device.count_since(Counter::TailAsk, &mut seen.tails, stats.tails);
        device.count_since(
            Counter::EarlyProbe,
            &mut seen.early_probes,
            stats.early_probes,
        );
        device.count_since(
            Counter::EarlyResponse,
            &mut seen.early_kept,
            stats.early_kept,
        );
        device.count_since(
            Counter::EarlyDropped,
            &mut seen.early_dropped,
            stats.early_dropped,
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
        self.ticks.stop();
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
        self.drained = 0;
        self.drained_slowly = 0;
        self.local.reset();
    }
}
