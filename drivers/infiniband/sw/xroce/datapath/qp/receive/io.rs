// SPDX-License-Identifier: GPL-2.0

//! Taking receive work requests from their queue, and completing them.

use super::super::request::{
    filled,
    KernelQueue,
    RecvHead,
    Sge, //
};
use super::super::ring::{
    CorruptRing,
    RingReader, //
};
use super::addressing;
use crate::cq::Overrun;
use crate::prelude::*;
use crate::srq::Taken;
use crate::tm::receive::{
    self as tags,
    Source,
    Tagged, //
};
use crate::wr;
use roce::congestion::Brake;
use roce::responder::{
    ReceiveError,
    ResponderStats, //
};

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
    pub(crate) sges: KVVec<Sge>,
    /// Protection domain of its local keys.
    pub(crate) pd: PdId,
    /// The XRC SRQ that it came from.
    srq: Option<Ref<WireSrq>>,
    /// What a tag-matching queue knows of the message.
    pub(crate) tagged: Option<Tagged>,
    /// Messages came whose data the send direction has to fetch.
    pub(crate) fetch: bool,
}

impl Current {
    /// The scatter list.
    pub(crate) fn list(&self) -> &[Sge] {
        self.sges.get(..self.head.num_sge as usize).unwrap_or(&[])
    }

    /// The XRC SRQ that it came from was destroyed: its buffers are the user's again.
    pub(crate) fn is_orphan(&self) -> bool {
        self.srq.as_ref().is_some_and(|srq| srq.is_gone())
    }

    /// Calls `f`, which writes to its buffers; `None` when those are the user's again. The
    /// destruction of the XRC SRQ that it came from waits for `f`, which therefore waits for memory
    /// no longer than that.
    pub(crate) fn with_buffers<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let Some(srq) = &self.srq else {
            return Some(f());
        };
        let inside = srq.enter()?;
        let result = rdma::work::unless(&|| srq.is_gone(), f);
        drop(inside);
        Some(result)
    }

    /// Posts its completion where those of its queue go.
    fn post(&self, qp: &WireQp, completion: &Completion) -> Result<(), Overrun> {
        if let (Some(tagged), Some((_, tm))) = (&self.tagged, qp.tags()) {
            return tm.finish(tagged, completion);
        }
        let _inside = match &self.srq {
            // It was destroyed: its user has freed what `wr_id` stands for.
            Some(srq) => match srq.enter() {
                Some(inside) if !srq.is_gone() => Some(inside),
                _ => return Ok(()),
            },
            None => None,
        };
        self.cq(qp)
            .map_or(Ok(()), |cq| cq.post_from(completion, qp.handle()))
    }

    /// Where its completion goes, unless it was matched by its tag.
    fn cq<'a>(&'a self, qp: &'a WireQp) -> Option<&'a Ref<WireCq>> {
        self.srq
            .as_ref()
            .or(qp.srq.as_ref())
            .and_then(|srq| srq.cq.as_ref())
            .or(qp.recv_cq.as_ref())
    }

    /// Whether its completion can be posted: the queue for it has not overflowed.
    pub(super) fn can_complete(&self, qp: &WireQp) -> bool {
        let cq = match (&self.tagged, qp.tags()) {
            (Some(_), Some((_, tm))) => Some(&tm.cq),
            _ => self.cq(qp),
        };
        cq.is_none_or(|cq| !cq.is_dead())
    }
}

/// Everything of the receive direction but the protocol.
pub(crate) struct RecvIo {
    pub(super) queue: RecvQueue,
    pub(crate) current: Current,
    /// Answers of the present run.
    pub(super) replies: TxBatch,
    /// When READ data may go on that wait for the queues of the host; the timer is armed.
    pub(super) resume_at: u64,
    /// How often they have waited so far.
    pub(super) waits: u32,
    /// Slows READ data down when the network is congested.
    pub(super) brake: Brake,
    /// Number of the answers.
    pub(super) reply_count: u32,
    /// Early requests were kept since there was none.
    pub(super) keeps: bool,
    /// Kept requests that this run may still take.
    pub(super) kept_left: u32,
    /// What was counted already.
    seen: ResponderStats,
    /// The responder failed: the QP is to go to the error state.
    pub(super) failed: bool,
    /// The receive that was in progress is flushed.
    pub(super) flushed: bool,
    /// The last event for an SRQ user was raised.
    pub(super) last_wqe: bool,
    /// The ring said something impossible: nothing is taken from it until it is forgotten.
    corrupt: bool,
    /// Names the local message that is open here, see [`crate::local`]; 0: none.
    pub(crate) local_token: u64,
    /// The matching list of the SRQ knows that this side runs.
    awake: bool,
}

impl RecvIo {
    /// For a queue with up to `max_sge` elements a receive. Process context.
    pub(super) fn new(queue: RecvQueue, max_sge: usize) -> Result<Self> {
        Ok(RecvIo {
            queue,
            current: Current {
                active: false,
                head: RecvHead::default(),
                sges: filled(max_sge)?,
                pd: PdId::NONE,
                srq: None,
                tagged: None,
                fetch: false,
            },
            replies: TxBatch::new(),
            resume_at: 0,
            waits: 0,
            brake: Brake::default(),
            reply_count: 0,
            keeps: false,
            kept_left: 0,
            seen: ResponderStats::default(),
            failed: false,
            flushed: false,
            last_wqe: false,
            corrupt: false,
            local_token: 0,
            awake: false,
        })
    }

    /// Makes the next receive work request the current one. None is spent when nobody could learn
    /// what became of it.
    pub(crate) fn take(&mut self, qp: &WireQp, srqn: Option<Srqn>) -> Result<(), ReceiveError> {
        let current = &mut self.current;
        let result = if let Some(srqn) = srqn {
            let srq = addressing::srq(qp, srqn)?;
            let result = if has_overrun(&srq.cq) {
                Err(ReceiveError::Broken)
            } else {
                match srq.take(&mut current.head, &mut current.sges) {
                    // Its owner is told by an event of the queue; the target is not at fault.
                    Err(Taken::Corrupt) => Err(ReceiveError::Broken),
                    result => taken(result),
                }
            };
            current.pd = srq.pd;
            current.srq = Some(srq);
            result
        } else if has_overrun(&qp.recv_cq) {
            Err(ReceiveError::Broken)
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
        self.taken(qp, result)
    }

    /// As [`RecvIo::take`], for a message that begins as `source` shows, at a tag-matching queue.
    pub(super) fn take_tagged(
        &mut self,
        qp: &WireQp,
        source: &Source<'_>,
    ) -> Result<(), ReceiveError> {
        let Some((srq, tm)) = qp.tags() else {
            return self.take(qp, None);
        };
        let result = tags::take(qp, srq, tm, &mut self.current, &mut self.awake, source);
        if qp.sleeps() || source.sleeps {
            // Memory may keep this run waiting for long, and software its operations.
            self.rest(qp);
        }
        self.taken(qp, result)
    }

    /// Whether messages came whose data are to be fetched: the caller has the send direction run,
    /// when nobody holds this one for its sake any more.
    pub(crate) fn take_fetch(&mut self) -> bool {
        core::mem::take(&mut self.current.fetch)
    }

    /// The end of a run. True when there has to be another, with another end.
    pub(super) fn rest(&mut self, qp: &WireQp) -> bool {
        if self.awake {
            self.awake = qp.tags().is_some_and(|(_, tm)| tm.rest());
        }
        self.awake
    }

    fn taken(&mut self, qp: &WireQp, result: Result<(), ReceiveError>) -> Result<(), ReceiveError> {
        let current = &mut self.current;
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
    pub(super) fn count(&mut self, qp: &WireQp, stats: &ResponderStats) {
        let (device, seen) = (&qp.device, &mut self.seen);
        device.count_since(
            Counter::DuplicateRequest,
            &mut seen.duplicates,
            stats.duplicates,
        );
        device.count_since(
            Counter::OutOfSequence,
            &mut seen.out_of_sequence,
            stats.out_of_sequence,
        );
        device.count_since(
            Counter::EarlyRequest,
            &mut seen.early_kept,
            stats.early_kept,
        );
        device.count_since(
            Counter::EarlyRequestDropped,
            &mut seen.early_dropped,
            stats.early_dropped,
        );
        device.count_since(Counter::WrongNak, &mut seen.wrong_naks, stats.wrong_naks);
        device.count_since(Counter::RnrSent, &mut seen.rnr_naks, stats.rnr_naks);
    }

    /// Has the QP go to the error state at the end of this run.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// Ends the current receive with a completion. If that of a success is lost, the receive stays
    /// the current one.
    pub(crate) fn finish(
        &mut self,
        qp: &WireQp,
        mut completion: Completion,
    ) -> Result<(), Overrun> {
        let current = &mut self.current;
        // What fails when the QP is reset, since memory is not waited for any more, is forgotten
        // like everything else.
        let is_reset = completion.status != WcStatus::Success && qp.state() == QpState::Reset;
        if !current.active || is_reset {
            return Ok(());
        }
        // A local message that is still open has lost its receive.
        self.local_token = 0;
        completion.wr_id = current.head.wr_id;
        completion.qp_num = qp.wire_qpn();
        let posted = current.post(qp, &completion);
        if posted.is_ok() || completion.status != WcStatus::Success {
            current.active = false;
            current.tagged = None;
            current.srq = None;
        }
        posted
    }

    /// Forgets all that was posted.
    pub(super) fn forget(&mut self, qp: &WireQp) {
        if let (Some(tagged), Some((_, tm))) = (self.current.tagged.take(), qp.tags()) {
            tm.forget(&tagged);
        }
        // The run that would have said so does not come any more.
        if core::mem::take(&mut self.awake) {
            if let Some((_, tm)) = qp.tags() {
                tm.leave();
            }
        }
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
        self.resume_at = 0;
        self.waits = 0;
        self.brake = Brake::default();
    }
}

fn taken(result: Result<(), Taken>) -> Result<(), ReceiveError> {
    result.map_err(|e| match e {
        Taken::Empty => ReceiveError::Empty,
        Taken::Corrupt => ReceiveError::Fault,
        Taken::Broken => ReceiveError::Broken,
        Taken::Gone => ReceiveError::InvalidSrq,
    })
}

/// Completions of the queue are lost.
fn has_overrun(cq: &Option<Ref<WireCq>>) -> bool {
    cq.as_ref().is_some_and(|cq| cq.is_dead())
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
            // The one before has completed; which one fails now nobody knows.
            current.head = RecvHead::default();
            return Err(ReceiveError::Fault);
        }
    }
    let decoded = wr::copy_recv(ring, &mut current.head, &mut current.sges);
    ring.advance();
    ring.publish(ring.next());
    decoded.map_err(|_| ReceiveError::Fault)
}
