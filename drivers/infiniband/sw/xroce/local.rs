// SPDX-License-Identifier: GPL-2.0

//! Delivery between queue pairs of one host.
//!
//! A peer whose address is local in the sender's own network namespace is served by copying from
//! memory region to memory region: no packet, no CRC. Everything else is as on the wire: order,
//! errors, RNR. A message is the unit of the protocol here; long ones are copied in several runs of
//! the sender, and the receiver's side is set aside for them meanwhile.
//!
//! The sender owns its own send side and takes the peer's receive side only if nobody has it. If
//! somebody has, it leaves its number there and is run again when that side is free.

mod copy;

use self::copy::{copy, CopyFault, End, Until};
use crate::access;
use crate::prelude::*;
use crate::qp::engine::Budget;
use crate::qp::receive::{remote_pd, RecvSide};
use crate::qp::send::{fill, idle, SendEnv, SendIo, SendSide};
use crate::qp::QpKind;
use crate::{mr, tables};
use roce::requester::{LocalError, LocalMessage, LocalOk};
use roce::responder::{LocalOutcome, LocalPlan};

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

/// Decides whether the messages of `side` are copied from now on. The answer may change whenever
/// nothing is under way.
fn is_on(side: &mut SendSide, qp: &WireQp) -> bool {
    crate::local_copy() && qp.kind.is_reliable() && side.path.is_local(qp.device.tunnel())
}

/// Runs the send side of a QP with a peer on this host. `None`: the peer is elsewhere, so packets
/// must be sent.
pub(crate) fn run(side: &mut SendSide, qp: &WireQp, now: u64, budget: &mut Budget) -> Option<Run> {
    if side.io.local.transfer.is_none() && !side.requester.in_flight() {
        side.io.local.on = is_on(side, qp);
    }
    if !side.io.local.on {
        return None;
    }
    // Who could never be connected to this QP is not even touched.
    let peer = tables::get()
        .and_then(|t| t.qps.get(side.dest_qpn))
        .filter(|peer| peer.ns() == qp.ns() && answers(peer.kind, qp.kind));
    if peer.as_ref().is_some_and(|peer| peer.sleeps()) && !qp.sleeps() {
        // From now on this side runs where it may sleep as well.
        qp.peer_sleeps.store(1, Relaxed);
        side.io.blocked();
        qp.schedule_send();
        return Some(Run::Idle);
    }
    let until = Until(qp.sleeps().then(|| now.saturating_add(MAX_HOLD_NS)));
    let mut held: Option<OwnerGuard<'_, RecvSide>> = None;
    let again = loop {
        if !fill(&mut side.requester, &mut side.io, qp) {
            break Run::Idle;
        }
        if side.io.local.transfer.is_none() {
            let mut env = SendEnv {
                qp,
                io: &mut side.io,
            };
            match side.requester.local_next(now, &mut env) {
                Some(message) => {
                    side.io.local.transfer = Some(Transfer {
                        message,
                        plan: None,
                        token: 0,
                        done: 0,
                    })
                }
                None if idle(&side.requester, &mut side.io) => break Run::Idle,
                None => continue,
            }
        }
        if held.is_none() {
            if let Some(peer) = &peer {
                held = peer.recv.try_lock();
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
            (Some(peer), Some(recv)) => advance(side, qp, peer, recv, &mut transfer, now, until),
            _ => Step::Finished(Err(LocalError::Silent)),
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
        if budget.is_empty() || until.is_over() {
            side.io.blocked();
            break Run::Again;
        }
    };
    let took = held.is_some();
    drop(held);
    if let (true, Some(peer)) = (took, &peer) {
        // What came for the peer meanwhile.
        peer.kick_receive();
    }
    Some(again)
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
    peer.kick_receive();
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
        if let Some(peer) = tables::get().and_then(|t| t.qps.get(side.dest_qpn)) {
            let Some(mut recv) = peer.recv.try_lock() else {
                wait_for(&peer, qp);
                return false;
            };
            abandon_at(transfer, &peer, &mut recv);
            drop(recv);
            peer.kick_receive();
        }
    }
    side.io.local.transfer = None;
    true
}

/// As [`abandon`], but waits. Process context.
pub(crate) fn abandon_wait(side: &mut SendSide) {
    let Some(transfer) = side.io.local.transfer.take() else {
        return;
    };
    if transfer.plan.is_none() {
        return;
    }
    if let Some(peer) = tables::get().and_then(|t| t.qps.get(side.dest_qpn)) {
        abandon_at(&transfer, &peer, &mut peer.recv.lock());
        peer.kick_receive();
    }
}

fn abandon_at(transfer: &Transfer, peer: &WireQp, recv: &mut RecvSide) {
    if recv.io.local_token != transfer.token {
        return;
    }
    recv.io.local_token = 0;
    let (responder, mut env) = recv.split(peer);
    // Nobody is left to hear how it went.
    let _ = responder.local_finish(
        &transfer.message,
        LocalOutcome::Abandoned,
        now_ns(),
        &mut env,
    );
}

/// Whether a QP of type `responder` takes requests of one of type `requester`.
fn answers(responder: QpKind, requester: QpKind) -> bool {
    match requester {
        QpKind::XrcIni => responder == QpKind::XrcTgt,
        _ => responder == requester,
    }
}

/// Whether `peer` is connected to `qp` and would take its packets from the wire.
fn listens(peer: &WireQp, recv: &RecvSide, side: &SendSide, qp: &WireQp) -> bool {
    let av = side.path.av();
    let theirs = recv.path.av();
    !matches!(peer.state(), QpState::Reset | QpState::Init | QpState::Err)
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
        return Step::Finished(Err(LocalError::Silent));
    }
    let plan = match transfer.plan {
        // The peer was reset meanwhile: what is open there is another's message.
        Some(_) if recv.io.local_token != transfer.token => {
            return Step::Finished(Err(LocalError::Silent));
        }
        Some(plan) => plan,
        None => {
            let (responder, mut env) = recv.split(peer);
            match responder.local_request(&transfer.message, now, &mut env) {
                Ok(plan) => {
                    transfer.token = NEXT_TOKEN.fetch_add(1, Relaxed);
                    recv.io.local_token = transfer.token;
                    *transfer.plan.insert(plan)
                }
                Err(error) => {
                    return Step::Finished(Err(error));
                }
            }
        }
    };
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
    let (responder, mut env) = recv.split(peer);
    let finished = responder.local_finish(&transfer.message, outcome, now, &mut env);
    Step::Finished(match (blame, finished) {
        (Some(status), _) => Err(LocalError::Local(status)),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Ok(ok),
    })
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
        pd: qp.pd,
        sges: io.list(slot),
    };
    let mine = |()| (LocalOutcome::Abandoned, Some(WcStatus::LocProtErr));
    let total = transfer.message.wr.data_len();
    let theirs = match plan {
        LocalPlan::Receive => {
            if recv.io.current.is_orphan() {
                return Err((LocalOutcome::ReceiveFault, None));
            }
            let list = recv.io.current.list();
            if total > access::total(list) {
                return Err((LocalOutcome::TooLong, None));
            }
            End::List {
                pd: recv.io.current.pd,
                sges: list,
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
    let len = total.wrapping_sub(transfer.done).min(CHUNK);
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
    Ok(transfer.done >= total)
}

/// Stores the 8 bytes of work request `slot` at once.
fn write_atomic(io: &SendIo, qp: &WireQp, slot: u32, to: &End<'_>) -> Result<(), CopyFault> {
    let mut value = [0u8; 8];
    io.gather(qp.pd, slot, 0, &mut value)
        .map_err(|_| CopyFault::Source)?;
    to.store_u64(u64::from_ne_bytes(value), mr::REMOTE_WRITE)
        .map_err(|_| CopyFault::Destination)
}

/// Copies inline data of work request `slot`, as [`copy`].
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
