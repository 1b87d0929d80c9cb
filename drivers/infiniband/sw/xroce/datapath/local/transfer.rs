// SPDX-License-Identifier: GPL-2.0

//! The steps of a transfer: the peer's responder is asked, chunks are copied, the responder
//! finishes.

use super::chunk::{
    copy_chunk,
    ChunkFault,
    Copied, //
};
use super::copy::Until;
use super::data::Data;
use super::head::Head;
use super::peer::{
    listens,
    partner, //
};
use super::waiter::{
    kick_receive_of,
    wait_for, //
};
use crate::prelude::*;
use crate::qp::receive::RecvSide;
use crate::qp::send::{
    SendIo,
    SendSide, //
};
use rdma::work;
use roce::requester::{
    LocalError,
    LocalMessage,
    LocalOk,
    SendOp, //
};
use roce::responder::{
    LocalOutcome,
    LocalPlan, //
};

/// The next message to be opened at a responder; 0 is none.
static NEXT_TOKEN: Atomic<u64> = Atomic::new(1);

/// A message on its way.
pub(super) struct Transfer {
    pub(super) message: LocalMessage,
    /// What it begins with, if the peer matches tags.
    head: Option<Result<Head, Fault>>,
    /// What the responder asks for; `None` before it was asked.
    plan: Option<LocalPlan>,
    /// What the responder's side knows the message by, once there is a plan.
    token: u64,
    /// Bytes copied.
    pub(super) done: u32,
    /// How often memory was looked for in vain since the last of them.
    pub(super) tries: u32,
    /// What is left of a FLUSH, see [`flush_rest`](crate::qp::receive::RecvEnv::flush_rest).
    flush_rest: Option<(u64, u64)>,
}

/// How a step of a transfer ended.
pub(super) enum Step {
    /// The responder is done with the message, or refused it.
    Finished(Result<LocalOk, LocalError>),
    /// There is more to copy.
    More,
}

impl Transfer {
    /// A message of which nothing is known to the peer.
    pub(super) fn new(message: LocalMessage, head: Option<Result<Head, Fault>>) -> Self {
        Transfer {
            message,
            head,
            plan: None,
            token: 0,
            done: 0,
            tries: 0,
            flush_rest: None,
        }
    }

    /// How far it has come.
    pub(super) fn progress(&self) -> (u32, Option<(u64, u64)>) {
        (self.done, self.flush_rest)
    }
}

/// Both ends of a transfer, which the caller has: the sender's send side, the peer's receive side.
pub(super) struct Ends<'a> {
    pub(super) side: &'a SendSide,
    pub(super) qp: &'a WireQp,
    pub(super) peer: &'a WireQp,
    pub(super) recv: &'a mut RecvSide,
}

impl Ends<'_> {
    /// Takes the transfer a step further: asks the responder, copies a chunk, finishes.
    pub(super) fn advance(&mut self, transfer: &mut Transfer, now: u64, until: Until) -> Step {
        if !listens(self.peer, self.recv, self.side, self.qp) {
            if transfer.plan.is_some() {
                abandon_at(transfer, self.peer, self.recv);
            }
            return Step::Finished(Err(LocalError::Silent));
        }
        let plan = match self.plan(transfer, now) {
            Ok(Some(plan)) => plan,
            Ok(None) => return Step::More,
            Err(error) => return Step::Finished(Err(error)),
        };
        // A FLUSH or an atomic may have ended early, with its sender. The peer does not hear of
        // that.
        let ended = match transfer.message.wr.op {
            SendOp::Flush => !self.qp.state().is_connected(),
            SendOp::CmpSwap | SendOp::FetchAdd => self.qp.state() == QpState::Reset,
            _ => false,
        };
        if ended {
            abandon_at(transfer, self.peer, self.recv);
            return Step::Finished(Err(LocalError::Silent));
        }
        let data = Data::new(&self.side.io, self.qp, transfer.message.slot);
        match copy_chunk(&data, self.peer, self.recv, transfer, plan, until) {
            Ok(Copied::Part) => Step::More,
            Ok(Copied::All) => {
                let finished = self.finish(transfer, LocalOutcome::Done, now);
                Step::Finished(finished.map(|()| match plan {
                    LocalPlan::Atomic { original } => LocalOk::Atomic(original),
                    _ => LocalOk::Done,
                }))
            }
            // Memory is not waited for any more, which is nobody's fault. Whoever resets the sender
            // gives the message up.
            Err(_) if self.qp.state() == QpState::Reset => Step::More,
            Err(_) if self.peer.state() == QpState::Reset => {
                abandon_at(transfer, self.peer, self.recv);
                Step::Finished(Err(LocalError::Silent))
            }
            // Nor is it waited for in this run any more.
            Err(_) if work::is_paused() => Step::More,
            Err(ChunkFault::Sender) => {
                abandon_at(transfer, self.peer, self.recv);
                Step::Finished(Err(LocalError::Local(WcStatus::LocProtErr)))
            }
            Err(ChunkFault::Peer(outcome)) => {
                let finished = self.finish(transfer, outcome, now);
                Step::Finished(finished.map(|()| LocalOk::Done))
            }
        }
    }

    /// What the responder has asked for; asks it when the transfer begins. `None`: it is to be
    /// asked again in another run.
    fn plan(&mut self, transfer: &mut Transfer, now: u64) -> Result<Option<LocalPlan>, LocalError> {
        match transfer.plan {
            // The peer was reset meanwhile: what is open there is another's message.
            Some(_) if self.recv.io.local_token != transfer.token => Err(LocalError::Silent),
            Some(plan) => Ok(Some(plan)),
            None => self.open(transfer, now),
        }
    }

    /// Opens the message at the responder, see [`Ends::plan`].
    fn open(&mut self, transfer: &mut Transfer, now: u64) -> Result<Option<LocalPlan>, LocalError> {
        let Ok(head) = transfer.head.transpose() else {
            return Err(LocalError::Local(WcStatus::LocProtErr));
        };
        let (io, message) = (&self.side.io, &transfer.message);
        let (responder, mut env) = self.recv.split(self.peer);
        env.source = head.as_ref().map(|head| head.source(io, self.qp, message));
        env.sender = Some(self.qp);
        env.flush_rest = transfer.flush_rest;
        match responder.local_request(message, now, &mut env) {
            // An atomic or a FLUSH waits for memory. The one was not executed, the other in part.
            Ok(_) if work::is_paused() => {
                transfer.flush_rest = env.flush_rest;
                responder.local_finish(message, LocalOutcome::Abandoned, now, &mut env)?;
                Ok(None)
            }
            Ok(plan) => {
                transfer.token = NEXT_TOKEN.fetch_add(1, Relaxed);
                self.recv.io.local_token = transfer.token;
                transfer.plan = Some(plan);
                Ok(transfer.plan)
            }
            // A message that would fail anyhow does not wait for the peer.
            Err(LocalError::Rnr { .. }) if !is_readable(io, self.qp, message) => {
                Err(LocalError::Local(WcStatus::LocProtErr))
            }
            Err(_) if env.is_cut_off => Err(LocalError::Silent),
            Err(error) => Err(error),
        }
    }

    /// Ends the message at the responder.
    fn finish(
        &mut self,
        transfer: &Transfer,
        outcome: LocalOutcome,
        now: u64,
    ) -> Result<(), LocalError> {
        self.recv.io.local_token = 0;
        let (responder, mut env) = self.recv.split(self.peer);
        responder.local_finish(&transfer.message, outcome, now, &mut env)
    }
}

/// Whether the keys of the sender allow its message, as far as that is known without waiting for
/// memory, since the peer's side is held.
fn is_readable(io: &SendIo, qp: &WireQp, message: &LocalMessage) -> bool {
    let data = Data::new(io, qp, message.slot);
    data.sleeps() || data.check().is_ok()
}

/// Gives up the message that is being copied, if there is one: the peer's responder must not wait
/// for the rest. False when this has to wait for the peer's owner, which will have this side run
/// again.
pub(crate) fn abandon(side: &mut SendSide, qp: &WireQp) -> bool {
    let Some(transfer) = &*side.io.local.transfer else {
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
    *side.io.local.transfer = None;
    true
}

/// Ends `transfer` at a peer that does not answer any more: its responder must not wait for the
/// rest. If somebody has the receive side of the peer, the responder is left as it is, and the
/// sender's retries end the connection.
pub(super) fn leave(transfer: &Transfer, side: &SendSide, qp: &WireQp) {
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

/// Gives up the message at the responder, if it is the one that is open there.
fn abandon_at(transfer: &Transfer, peer: &WireQp, recv: &mut RecvSide) {
    if recv.io.local_token != transfer.token {
        return;
    }
    recv.io.local_token = 0;
    // Another message must not go on in a receive that was found by the tag of this one. Messages
    // that take no such receive (WRITE, READ) leave the peer alone.
    if recv.io.current.tagged.is_some() {
        recv.io.fail();
    }
    let (responder, mut env) = recv.split(peer);
    // Nobody is left to hear how it went.
    let _ = responder.local_finish(
        &transfer.message,
        LocalOutcome::Abandoned,
        now_ns(),
        &mut env,
    );
}
