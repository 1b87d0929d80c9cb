// SPDX-License-Identifier: GPL-2.0

//! Delivery between queue pairs of one host.
//!
//! A peer whose address is local in the sender's own network namespace is served by copying from
//! memory region to memory region: no packet, no CRC. Everything else is as on the wire: order,
//! errors, RNR. A message is the unit of the protocol here; long ones are copied in several runs of
//! the sender, and the receiver's side is set aside for them meanwhile.
//!
//! The sender owns its own send side and takes the peer's receive side only if nobody has it. If
//! somebody has, it leaves its number there and is run again when that side is free. It does neither
//! unless the peer's user has connected it to the sender: the number of the peer is the sender's to
//! choose, so it may be anybody's. And while a process has the side of another, softirq is off, so
//! that it is not preempted: the other has more to do than to wait for this one to get a CPU. Where
//! memory may have to be waited for that is not possible; there the runs are a kernel thread's, which
//! gets one.

mod copy;

use self::copy::{copy, CopyFault, End, Until};
use crate::access::{self, ScatterError};
use crate::prelude::*;
use crate::qp::engine::Budget;
use crate::qp::receive::{remote_pd, RecvSide};
use crate::qp::request::Sge;
use crate::qp::send::{fill, idle, Filled, SendEnv, SendIo, SendSide};
use crate::qp::QpKind;
use crate::tm::receive::{Source, Whole};
use crate::{mr, tables};
use roce::requester::{LocalError, LocalMessage, LocalOk, SendOp};
use roce::responder::{LocalOutcome, LocalPlan};
use roce::tm::RNDV_LEN;

/// The most bytes that are copied without looking around.
const CHUNK: u32 = 256 << 10;

/// How long one run may keep the peer's receive side while it waits for memory, ns: the peer's owner
/// may want to destroy it, and is not to pay for the pages of another.
const MAX_HOLD_NS: u64 = 10_000_000;

/// When a sender tries again that could not leave its number with the peer, ns.
const RETRY_NS: u64 = 100_000;

/// The next message to be opened at a responder; 0 is none.
static NEXT_TOKEN: Atomic<u64> = Atomic::new(1);

/// The sender's part of the state.
#[derive(Default)]
pub(crate) struct Sender {
    /// Messages are copied, not sent.
    on: bool,
    /// The message that is being copied.
    transfer: Option<Transfer>,
}

/// A message on its way.
struct Transfer {
    message: LocalMessage,
    /// What it begins with, if the peer matches tags.
    head: Option<Result<Head, Fault>>,
    /// What the responder asks for; `None` before it was asked.
    plan: Option<LocalPlan>,
    /// What the responder's side knows the message by, once there is a plan.
    token: u64,
    /// Bytes copied.
    done: u32,
}

/// How a step of a transfer ended.
enum Step {
    /// The responder is done with the message, or refused it.
    Finished(Result<LocalOk, LocalError>),
    /// There is more to copy.
    More,
}

/// The receive side of the peer, as a sender has taken it.
struct Held<'a> {
    // Dropped first.
    recv: OwnerGuard<'a, RecvSide>,
    _softirq: Option<NoSoftirq>,
}

impl<'a> Held<'a> {
    /// Takes the receive side of `peer` for `qp`, unless somebody has it.
    fn take(peer: &'a WireQp, qp: &WireQp) -> Option<Self> {
        let softirq = NoSoftirq::new();
        // With softirq off this is an RCU reader: memory that may have to be waited for, if there is none
        // now, is registered when it is over.
        let sleeps = qp.sleeps() || peer.sleeps();
        Some(Held {
            recv: peer.recv.try_lock()?,
            _softirq: (!sleeps).then_some(softirq),
        })
    }
}

/// Decides whether the messages of `side` are copied from now on. The answer may change whenever
/// nothing is under way.
fn is_on(side: &mut SendSide, qp: &WireQp) -> bool {
    crate::params::local_copy() && qp.kind.is_reliable() && side.path.is_local(qp.device.tunnel())
}

/// Runs the send side of a QP with a peer on this host. `None`: the peer is elsewhere, so packets
/// must be sent.
pub(crate) fn run(side: &mut SendSide, qp: &WireQp, now: u64, budget: &mut Budget) -> Option<Run> {
    if side.io.local.transfer.is_none() && !side.requester.in_flight() {
        let on = is_on(side, qp);
        if side.io.local.on != on {
            side.io.local.on = on;
            qp.copies.store(on.into(), Relaxed);
        }
    }
    if !side.io.local.on {
        return None;
    }
    // Who is not connected to this QP is not even touched.
    let peer =
        tables::get().and_then(|t| t.qps.get_if(side.dest_qpn, |peer| accepts(peer, side, qp)));
    if peer.as_ref().is_some_and(|peer| peer.sleeps()) && !qp.sleeps() {
        // From now on this side runs where it may sleep as well.
        qp.peer_sleeps.store(1, Relaxed);
        side.io.blocked();
        qp.schedule_send();
        return Some(Run::Idle);
    }
    let until = Until(qp.sleeps().then(|| now.saturating_add(MAX_HOLD_NS)));
    let mut held: Option<Held<'_>> = None;
    let again = loop {
        let filled = fill(&mut side.requester, &mut side.io, qp);
        if filled == Filled::Corrupt {
            break Run::Idle;
        }
        if side.io.local.transfer.is_none() {
            let mut env = SendEnv {
                qp,
                io: &mut side.io,
            };
            let next = side.requester.local_next(now, &mut env);
            budget.spend_requests(side.io.take_executed());
            match next {
                Some(message) => {
                    let head = match &peer {
                        Some(peer) if peer.tags().is_some() => head(&side.io, qp, &message),
                        _ => None,
                    };
                    side.io.local.transfer = Some(Transfer {
                        message,
                        head,
                        plan: None,
                        token: 0,
                        done: 0,
                    })
                }
                None if idle(filled, &side.requester, &mut side.io) => break Run::Idle,
                None if budget.is_empty() => {
                    side.io.blocked();
                    break Run::Again;
                }
                None => continue,
            }
        }
        if let Some(peer) = &peer {
            // Also when the peer's side is still held from the READ before.
            let slot = side.io.local.transfer.as_ref().map(|t| t.message.slot);
            // A QP connected to itself runs its send side here, and its request is completed.
            if slot.is_some_and(|slot| side.io.is_notice(slot))
                && peer.qpn != qp.qpn
                && is_sending(peer, qp)
            {
                side.io.blocked();
                break Run::Idle;
            }
            if held.is_none() {
                held = Held::take(peer, qp);
                if held.is_none() {
                    wait_for(peer, qp);
                    side.io.blocked();
                    break Run::Idle;
                }
            }
        }
        let Some(mut transfer) = side.io.local.transfer.take() else {
            break Run::Idle;
        };
        let before = transfer.done;
        let step = match (&peer, &mut held) {
            (Some(peer), Some(held)) => {
                advance(side, qp, peer, &mut held.recv, &mut transfer, now, until)
            }
            _ => {
                // The user of the peer may have given it another address during the message.
                leave(&transfer, side, qp);
                Step::Finished(Err(LocalError::Silent))
            }
        };
        budget.spend(transfer.done.wrapping_sub(before));
        match step {
            Step::More => side.io.local.transfer = Some(transfer),
            Step::Finished(result) => {
                if result.is_ok() {
                    qp.device.count(Counter::LocalMessages, 1);
                    qp.device
                        .count(Counter::LocalBytes, u64::from(transfer.done));
                }
                let mut env = SendEnv {
                    qp,
                    io: &mut side.io,
                };
                side.requester.local_done(result, now, &mut env);
            }
        }
        // The next message's head is read without the peer's side.
        let is_slow = qp.sleeps() && peer.as_ref().is_some_and(|peer| peer.tags().is_some());
        if budget.is_empty() || until.is_over() || is_slow {
            side.io.blocked();
            break Run::Again;
        }
    };
    let took = held.is_some();
    let fetch = held.as_mut().is_some_and(|held| held.recv.io.take_fetch());
    drop(held);
    if let (true, Some(peer)) = (took, &peer) {
        // What came for the peer meanwhile.
        kick_receive_of(peer);
        // The peer wants data of ours, and its notice comes after our completions: when this run is
        // over.
        if fetch && !note(qp, peer) {
            peer.schedule_send();
        }
    }
    Some(again)
}

/// Whether somebody runs the send side of `peer` right now: what it sent may not be completed yet, and
/// must be before the answer arrives. If so, the send side of `qp` runs again after that.
fn is_sending(peer: &WireQp, qp: &WireQp) -> bool {
    if !peer.send.is_owned() {
        return false;
    }
    if !note(peer, qp) {
        qp.timer.start_in(RETRY_NS);
        return true;
    }
    full_fence();
    // Either the owner sees the note when it has let go, or this sees that it has.
    peer.send.is_owned()
}

/// Leaves word with `owner` that the send side of `waiter` is to run when its own rests. False when
/// another has: any QP of the host may name this one, and its note must not be lost.
fn note(owner: &WireQp, waiter: &WireQp) -> bool {
    match owner.send_waiter.cmpxchg(0, waiter.qpn, Full) {
        Ok(_) => true,
        Err(other) => other == waiter.qpn,
    }
}

/// Leaves word with `peer` that the send side of `qp` waits for its receive side.
fn wait_for(peer: &WireQp, qp: &WireQp) {
    if let Err(other) = peer.local_waiter.cmpxchg(0, qp.qpn, Full) {
        if other != qp.qpn {
            // Any QP of the host may name this peer: another's note must not be lost for ours.
            qp.timer.start_in(RETRY_NS);
        }
    }
    full_fence();
    // Either the owner runs once more and sees the note, or this run does.
    kick_receive_of(peer);
}

/// Runs the receive side of another process's QP here, unless somebody else does.
fn kick_receive_of(peer: &WireQp) {
    let softirq = NoSoftirq::new();
    peer.kick_receive();
    drop(softirq);
}

/// The receive side of `qp` is about to be free: runs the sender that waits for it. Called by the
/// owner, so the sender is only scheduled.
pub(crate) fn wake_waiter(qp: &WireQp) {
    if qp.local_waiter.load(Relaxed) == 0 {
        return;
    }
    let waiter = qp.local_waiter.xchg(0, Full);
    if let (1.., Some(tables)) = (waiter, tables::get()) {
        tables.qps.with(waiter, |sender| sender.schedule_send());
    }
}

/// Gives up the message that is being copied, if there is one: the peer's responder must not wait for
/// the rest. False when that has to wait for the peer's owner, who will have this side run again.
pub(crate) fn abandon(side: &mut SendSide, qp: &WireQp) -> bool {
    let Some(transfer) = &side.io.local.transfer else {
        return true;
    };
    if transfer.plan.is_some() {
        if let Some(peer) = partner(side, qp) {
            let softirq = NoSoftirq::new();
            let Some(mut recv) = peer.recv.try_lock() else {
                drop(softirq);
                wait_for(&peer, qp);
                return false;
            };
            abandon_at(transfer, &peer, &mut recv);
            drop(recv);
            drop(softirq);
            kick_receive_of(&peer);
        }
    }
    side.io.local.transfer = None;
    true
}

/// Ends `transfer` at a peer that does not answer any more: its responder must not wait for the rest.
/// If somebody has the receive side of the peer, the responder is left as it is, and the sender's
/// retries end the connection.
fn leave(transfer: &Transfer, side: &SendSide, qp: &WireQp) {
    if transfer.plan.is_none() {
        return;
    }
    let Some(peer) = partner(side, qp) else {
        return;
    };
    let softirq = NoSoftirq::new();
    if let Some(mut recv) = peer.recv.try_lock() {
        abandon_at(transfer, &peer, &mut recv);
    }
    drop(softirq);
    kick_receive_of(&peer);
}

/// As [`abandon`], but waits. Process context.
pub(crate) fn abandon_wait(side: &mut SendSide, qp: &WireQp) {
    let Some(transfer) = side.io.local.transfer.take() else {
        return;
    };
    if transfer.plan.is_none() {
        return;
    }
    if let Some(peer) = partner(side, qp) {
        abandon_at(&transfer, &peer, &mut peer.recv.lock_bh());
        kick_receive_of(&peer);
    }
}

/// The peer, as long as it is connected to `qp`: whose user has connected it to another since has made
/// it forget what `qp` began.
fn partner(side: &SendSide, qp: &WireQp) -> Option<Ref<WireQp>> {
    let is_ours = |peer: &WireQp| peer.recv_connection.is_to(qp.qpn);
    tables::get()?.qps.get_if(side.dest_qpn, is_ours)
}

fn abandon_at(transfer: &Transfer, peer: &WireQp, recv: &mut RecvSide) {
    if recv.io.local_token != transfer.token {
        return;
    }
    recv.io.local_token = 0;
    let_go(recv);
    let (responder, mut env) = recv.split(peer);
    // Nobody is left to hear how it went.
    let _ = responder.local_finish(
        &transfer.message,
        LocalOutcome::Abandoned,
        now_ns(),
        &mut env,
    );
}

/// A message that was begun does not come to its end: another must not go on in a receive that was
/// found by this one's tag. What takes no such receive (WRITE, READ) leaves the peer alone.
fn let_go(recv: &mut RecvSide) {
    if recv.io.current.tagged.is_some() {
        recv.io.fail();
    }
}

/// Whether a QP of type `responder` takes requests of one of type `requester`.
fn answers(responder: QpKind, requester: QpKind) -> bool {
    match requester {
        QpKind::XrcIni => responder == QpKind::XrcTgt,
        _ => responder == requester,
    }
}

/// Whether `peer` is connected to `qp`, by what it shows to everybody. Any context.
fn accepts(peer: &WireQp, side: &SendSide, qp: &WireQp) -> bool {
    peer.ns() == qp.ns()
        && answers(peer.kind, qp.kind)
        && peer.state().is_connected()
        && peer.recv_connection.joins(qp.qpn, side.path.av())
}

/// Whether `peer` is connected to `qp` and would take its packets from the wire; asked by who has both
/// sides, so that it stays so.
fn listens(peer: &WireQp, recv: &RecvSide, side: &SendSide, qp: &WireQp) -> bool {
    let av = side.path.av();
    let theirs = recv.path.av();
    peer.state().is_connected()
        && recv.responder.dest_qpn() == qp.qpn
        && theirs.src == av.dst
        && theirs.dst == av.src
}

/// Takes the transfer a step further: asks the responder, copies a chunk, finishes.
fn advance(
    side: &mut SendSide,
    qp: &WireQp,
    peer: &WireQp,
    recv: &mut RecvSide,
    transfer: &mut Transfer,
    now: u64,
    until: Until,
) -> Step {
    if !listens(peer, recv, side, qp) {
        if transfer.plan.is_some() {
            abandon_at(transfer, peer, recv);
        }
        return Step::Finished(Err(LocalError::Silent));
    }
    let plan = match transfer.plan {
        // The peer was reset meanwhile: what is open there is another's message.
        Some(_) if recv.io.local_token != transfer.token => {
            return Step::Finished(Err(LocalError::Silent));
        }
        Some(plan) => plan,
        None => {
            let Ok(head) = transfer.head.transpose() else {
                let fault = LocalError::Local(WcStatus::LocProtErr);
                return Step::Finished(Err(fault));
            };
            let (responder, mut env) = recv.split(peer);
            env.source = head
                .as_ref()
                .map(|head| head.source(&side.io, qp, &transfer.message));
            env.sender = Some(qp);
            match responder.local_request(&transfer.message, now, &mut env) {
                Ok(plan) => {
                    transfer.token = NEXT_TOKEN.fetch_add(1, Relaxed);
                    recv.io.local_token = transfer.token;
                    *transfer.plan.insert(plan)
                }
                // Who would fail anyhow does not wait for the peer.
                Err(LocalError::Rnr { .. }) if !is_readable(&side.io, qp, &transfer.message) => {
                    let fault = LocalError::Local(WcStatus::LocProtErr);
                    return Step::Finished(Err(fault));
                }
                Err(_) if env.is_cut_off => {
                    return Step::Finished(Err(LocalError::Silent));
                }
                Err(error) => {
                    return Step::Finished(Err(error));
                }
            }
        }
    };
    // It may have ended early, with its sender. The peer does not hear of that.
    if transfer.message.wr.op == SendOp::Flush && !qp.state().is_connected() {
        abandon_at(transfer, peer, recv);
        return Step::Finished(Err(LocalError::Silent));
    }
    let mut ok = LocalOk::Done;
    let (outcome, blame) = match copy_chunk(&side.io, qp, peer, recv, transfer, plan, until) {
        Ok(false) => return Step::More,
        Ok(true) => {
            if let LocalPlan::Atomic { original } = plan {
                ok = LocalOk::Atomic(original);
            }
            (LocalOutcome::Done, None)
        }
        Err((outcome, blame)) => (outcome, blame),
    };
    recv.io.local_token = 0;
    if matches!(outcome, LocalOutcome::Abandoned) {
        let_go(recv);
    }
    let (responder, mut env) = recv.split(peer);
    let finished = responder.local_finish(&transfer.message, outcome, now, &mut env);
    Step::Finished(match (blame, finished) {
        (Some(status), _) => Err(LocalError::Local(status)),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Ok(ok),
    })
}

/// Whether the keys of the sender admit its message, as far as that is known without waiting for memory:
/// the peer's side is held.
fn is_readable(io: &SendIo, qp: &WireQp, message: &LocalMessage) -> bool {
    let slot = message.slot;
    let list = io.list(slot);
    let pd = io.list_pd(qp, slot);
    io.is_inline(slot)
        || access::sleeps(list)
        || list.iter().all(|sge| access::check_source(pd, sge).is_ok())
}

/// Copies the next chunk. True when the message is complete. An error says what to tell the
/// responder, and the status of the sender's work request when the fault is the sender's.
fn copy_chunk(
    io: &SendIo,
    qp: &WireQp,
    peer: &WireQp,
    recv: &RecvSide,
    transfer: &mut Transfer,
    plan: LocalPlan,
    until: Until,
) -> Result<bool, (LocalOutcome, Option<WcStatus>)> {
    let slot = transfer.message.slot;
    let own = End::List {
        pd: io.list_pd(qp, slot),
        sges: io.list(slot),
        skip: 0,
    };
    let mine = |()| (LocalOutcome::Abandoned, Some(WcStatus::LocProtErr));
    let total = transfer.message.wr.data_len();
    let mut end = total;
    let theirs = match plan {
        LocalPlan::Receive => {
            let current = &recv.io.current;
            if current.is_orphan() {
                return Err((LocalOutcome::ReceiveFault, None));
            }
            let list = current.list();
            let mut skip = 0;
            if let Some(tagged) = &current.tagged {
                (skip, end) = tagged.window(total);
                if let Some(placed) = tagged.placed() {
                    transfer.done = total;
                    return placed.map(|()| true).map_err(|e| match e {
                        ScatterError::TooLong => (LocalOutcome::TooLong, None),
                        ScatterError::Protection => (LocalOutcome::ReceiveFault, None),
                    });
                }
                transfer.done = transfer.done.max(skip);
            }
            if end.saturating_sub(skip) > access::total(list) {
                return Err((LocalOutcome::TooLong, None));
            }
            End::List {
                pd: current.pd,
                sges: list,
                skip,
            }
        }
        LocalPlan::Write(slice) | LocalPlan::Read(slice) | LocalPlan::AtomicWrite(slice) => {
            End::Remote {
                pd: remote_pd(peer, slice.srqn).map_err(|_| (LocalOutcome::RemoteFault, None))?,
                qpn: peer.qpn,
                rkey: slice.rkey,
                va: slice.va,
            }
        }
        LocalPlan::Atomic { .. } | LocalPlan::Nothing => return Ok(true),
    };
    let fault = match plan {
        LocalPlan::Receive => LocalOutcome::ReceiveFault,
        _ => LocalOutcome::RemoteFault,
    };
    let len = end.saturating_sub(transfer.done).min(CHUNK);
    let at = transfer.done;
    if len > 0 {
        let copied = if let LocalPlan::AtomicWrite(_) = plan {
            write_atomic(io, qp, slot, &theirs).map(|()| len)
        } else if let LocalPlan::Read(_) = plan {
            copy(&theirs, &own, at, len, mr::REMOTE_READ, until)
        } else if io.is_inline(slot) {
            copy_inline(io, slot, &theirs, at, len, until)
        } else {
            copy(&own, &theirs, at, len, mr::REMOTE_WRITE, until)
        }
        .map_err(|e| match (e, plan) {
            (CopyFault::Source, LocalPlan::Read(_)) => (fault, None),
            (CopyFault::Destination, LocalPlan::Read(_)) => mine(()),
            (CopyFault::Source, _) => mine(()),
            (CopyFault::Destination, _) => (fault, None),
        })?;
        transfer.done = at.wrapping_add(copied);
    }
    Ok(transfer.done >= end)
}

/// Stores the 8 bytes of work request `slot` at once.
fn write_atomic(io: &SendIo, qp: &WireQp, slot: u32, to: &End<'_>) -> Result<(), CopyFault> {
    let mut value = [0u8; 8];
    io.gather(qp.pd, slot, 0, &mut value)
        .map_err(|_| CopyFault::Source)?;
    to.store_u64(u64::from_ne_bytes(value), mr::REMOTE_WRITE)
        .map_err(|_| CopyFault::Destination)
}

/// Copies inline data of work request `slot`, as [`copy()`].
fn copy_inline(
    io: &SendIo,
    slot: u32,
    to: &End<'_>,
    at: u32,
    len: u32,
    until: Until,
) -> Result<u32, CopyFault> {
    let mut buffer = [0u8; 256];
    let mut done = 0;
    while done < len {
        let part = len.wrapping_sub(done).min(buffer.len() as u32);
        let piece = buffer.get_mut(..part as usize).ok_or(CopyFault::Source)?;
        let offset = at.wrapping_add(done);
        io.gather(0, slot, offset, piece)
            .map_err(|_| CopyFault::Source)?;
        let stored = to
            .store(offset, piece, mr::REMOTE_WRITE)
            .map_err(|_| CopyFault::Destination)?;
        done = done.wrapping_add(stored.max(1));
        if until.is_over() {
            break;
        }
    }
    Ok(done)
}

/// A message of one packet, in the buffers of its sender.
pub(crate) struct Payload<'a> {
    io: &'a SendIo,
    pd: u64,
    slot: u32,
    len: u32,
    sleeps: bool,
}

impl Payload<'_> {
    /// Bytes.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Some of the buffers are not pinned.
    pub(crate) fn sleeps(&self) -> bool {
        self.sleeps
    }

    /// Stores all but the first `skip` bytes, up to byte `end`, in a list. Any context.
    pub(crate) fn scatter(
        &self,
        pd: u64,
        list: &[Sge],
        skip: u32,
        end: u32,
    ) -> Result<(), ScatterError> {
        let len = end.saturating_sub(skip);
        if len > access::total(list) {
            return Err(ScatterError::TooLong);
        }
        if len == 0 {
            return Ok(());
        }
        let own = End::List {
            pd: self.pd,
            sges: self.io.list(self.slot),
            skip: 0,
        };
        let theirs = End::List {
            pd,
            sges: list,
            skip,
        };
        let copied = if self.io.is_inline(self.slot) {
            copy_inline(self.io, self.slot, &theirs, skip, len, Until(None))
        } else {
            copy(&own, &theirs, skip, len, mr::REMOTE_WRITE, Until(None))
        };
        copied.map(|_| ()).map_err(|_| ScatterError::Protection)
    }
}

/// What a message begins with.
#[derive(Clone, Copy)]
struct Head {
    bytes: [u8; RNDV_LEN],
    len: usize,
}

/// Reads what a message to a tag-matching queue begins with; `None` for other requests. A message that
/// the sender's keys do not admit must not take a tag. It may wait for memory, so the peer's side is not
/// held then.
fn head(io: &SendIo, qp: &WireQp, message: &LocalMessage) -> Option<Result<Head, Fault>> {
    let wr = &message.wr;
    matches!(wr.op, SendOp::Send | SendOp::SendImm | SendOp::SendInv).then(|| {
        let slot = message.slot;
        if !io.is_inline(slot) {
            for sge in io.list(slot) {
                access::check_source(qp.pd, sge)?;
            }
        }
        let mut head = Head {
            bytes: [0; RNDV_LEN],
            len: (wr.length as usize).min(RNDV_LEN),
        };
        if let Some(bytes @ [_, ..]) = head.bytes.get_mut(..head.len) {
            io.gather(qp.pd, slot, 0, bytes)?;
        }
        Ok(head)
    })
}

impl Head {
    /// What the peer is shown of the message.
    fn source<'a>(&'a self, io: &'a SendIo, qp: &WireQp, message: &LocalMessage) -> Source<'a> {
        let wr = &message.wr;
        let slot = message.slot;
        let whole = if message.packets <= 1 && wr.op != SendOp::SendInv {
            Whole::Local(Payload {
                io,
                pd: qp.pd,
                slot,
                len: wr.length,
                sleeps: qp.sleeps() && !io.is_inline(slot) && access::sleeps(io.list(slot)),
            })
        } else {
            Whole::No
        };
        Source {
            head: self.bytes.get(..self.len).unwrap_or(&[]),
            whole,
            imm: (wr.op == SendOp::SendImm).then_some(wr.imm),
            solicited: wr.solicited,
            sleeps: qp.sleeps(),
        }
    }
}
