// SPDX-License-Identifier: GPL-2.0

//! Delivery between queue pairs of one host.
//!
//! A peer whose address is local in the sender's own network namespace is served by copying from
//! memory region to memory region, without packets and CRCs. Order, errors and RNR are as on the
//! wire. The unit of the protocol is a message here. A long message is copied in several runs of
//! the sender, and the receiver's side is set aside for it meanwhile.
//!
//! The sender owns its own send side and takes the peer's receive side only if nobody has it. If
//! somebody has it, the sender leaves its number there and is run again when that side is free. It
//! does neither unless the peer's user has connected the peer to the sender: the sender chooses the
//! number of its peer, so the number may be anybody's. While a process holds the side of another
//! process's QP, softirqs are disabled so that it is not preempted: the other process must not have
//! to wait until this one gets a CPU. This is not possible where memory may have to be waited for;
//! such runs are made by a kernel thread.
//!
//! This file has the run of a sender. `local/transfer.rs` has the steps of a message,
//! `local/chunk.rs` copies a chunk of it, `local/data.rs` is the sender's end of the copy,
//! `local/copy.rs` the copy itself. `local/peer.rs` finds the peer and holds its receive side,
//! `local/waiter.rs` waits for a side that is taken, `local/head.rs` shows the beginning of a
//! message to a matching list.

mod chunk;
mod copy;
mod data;
mod head;
mod peer;
mod transfer;
mod waiter;

pub(crate) use self::head::Payload;
pub(crate) use self::transfer::{
    abandon,
    abandon_wait, //
};
pub(crate) use self::waiter::wake_waiter;

use self::copy::Until;
use self::data::Data;
use self::head::Head;
use self::peer::Held;
use self::transfer::{
    leave,
    Ends,
    Step,
    Transfer, //
};
use self::waiter::{
    is_sending,
    kick_receive_of,
    note,
    wait_for, //
};
use crate::prelude::*;
use crate::qp::engine::Budget;
use crate::qp::send::{
    fill,
    idle,
    Filled,
    SendEnv,
    SendSide, //
};
use core::ops::ControlFlow;
use rdma::work;
use roce::requester::{
    LocalError,
    LocalOk, //
};

/// How long one run may keep the peer's receive side while it waits for memory, ns; the try that is
/// under way then is the last. The peer's owner must not wait for the pages of another process. If
/// they are the peer's, other runs of this process must not wait for the thread that this one has.
const MAX_HOLD_NS: u64 = 10_000_000;

/// A longer message is one of bulk data, bytes: the process that posts it makes the copy.
const BULK: u32 = 64 << 10;

/// The sender's part of the state.
pub(crate) struct Sender {
    /// Messages are copied, not sent.
    on: bool,
    /// The message that is being copied; a run takes it out. In memory of its own, because it is
    /// large: a queue pair is to fit in 2 KiB.
    transfer: KBox<Option<Transfer>>,
}

impl Sender {
    /// Without a message. Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM.
    pub(crate) fn new() -> Result<Self> {
        Ok(Sender {
            on: false,
            transfer: KBox::new(None, GFP_ACCOUNT)?,
        })
    }

    /// Forgets the message.
    pub(crate) fn reset(&mut self) {
        self.on = false;
        *self.transfer = None;
    }
}

/// Decides, whenever nothing is under way, whether the messages of `side` are copied from now on.
fn choose(side: &mut SendSide, qp: &WireQp) {
    if side.io.local.transfer.is_some() || side.requester.in_flight() {
        return;
    }
    let on = crate::params::local_copy()
        && qp.kind.is_reliable()
        && side.path.is_local(qp.device.tunnel());
    if side.io.local.on != on {
        side.io.local.on = on;
        qp.copies.store(on.into(), Relaxed);
    }
}

/// Runs the send side of a QP with a peer on this host. `None`: the peer is elsewhere, so packets
/// must be sent.
pub(crate) fn run(side: &mut SendSide, qp: &WireQp, now: u64, budget: &mut Budget) -> Option<Run> {
    choose(side, qp);
    if !side.io.local.on {
        return None;
    }
    let peer = peer::find(side, qp);
    if peer.as_ref().is_some_and(|peer| peer.sleeps()) && !qp.sleeps() {
        // From now on this side runs where it may sleep as well.
        qp.peer_sleeps.store(1, Relaxed);
        side.io.blocked();
        qp.schedule_send();
        return Some(Run::Idle);
    }
    let mut run = SenderRun {
        qp,
        peer: peer.as_deref(),
        held: None,
        transfer: None,
        now,
        // From now on: before, answers may have waited for memory, without the peer's side.
        until: Until(qp.sleeps().then(|| now_ns().saturating_add(MAX_HOLD_NS))),
    };
    if side.io.local.transfer.is_some() {
        run.transfer = side.io.local.transfer.take();
    }
    let again = loop {
        if let ControlFlow::Break(again) = run.step(side, budget) {
            break again;
        }
    };
    run.end(side);
    Some(again)
}

/// One run of a sender: message after message, a chunk of one at a time.
struct SenderRun<'a> {
    qp: &'a WireQp,
    /// `None` if no QP is connected to this one.
    peer: Option<&'a WireQp>,
    /// The peer's receive side, once it was taken; it is kept until the run ends.
    held: Option<Held<'a>>,
    /// The message that is being copied. The send side has it between runs; it is large, so it is
    /// not moved there and back for each message.
    transfer: Option<Transfer>,
    now: u64,
    until: Until,
}

impl SenderRun<'_> {
    /// Takes the present message a step further. Breaks when the run is over.
    fn step(&mut self, side: &mut SendSide, budget: &mut Budget) -> ControlFlow<Run> {
        self.begin(side, budget)?;
        self.hold(side)?;
        let before = self.transfer.as_ref().map_or(0, |t| t.done);
        let step = self.advance(side);
        let Some(transfer) = &self.transfer else {
            return ControlFlow::Break(Run::Idle);
        };
        let (done, slot) = (transfer.done, transfer.message.slot);
        budget.spend(done.wrapping_sub(before));
        if done > BULK {
            self.qp.hot.note_bulk(done);
        }
        if let Step::Finished(result) = step {
            self.transfer = None;
            // The result of an atomic may have to wait for memory of this side: not with the
            // peer's.
            let waits = || Data::new(&side.io, self.qp, slot).sleeps();
            if matches!(result, Ok(LocalOk::Atomic(_))) && self.qp.sleeps() && waits() {
                self.release();
            }
            work::step(|| self.finish(side, done, result));
        }
        let is_reset = self.qp.state() == QpState::Reset;
        if budget.is_empty() || self.until.is_over() || self.reads_heads_slowly() || is_reset {
            side.io.blocked();
            return ControlFlow::Break(Run::Again);
        }
        ControlFlow::Continue(())
    }

    /// Has a message under way: the present one, or the next.
    fn begin(&mut self, side: &mut SendSide, budget: &mut Budget) -> ControlFlow<Run> {
        let qp = self.qp;
        loop {
            let filled = fill(&mut side.requester, &mut side.io, qp);
            if filled == Filled::Corrupt {
                return ControlFlow::Break(Run::Idle);
            }
            if self.transfer.is_some() {
                return ControlFlow::Continue(());
            }
            // What was posted in the error state, and fetched just now, is flushed.
            if qp.state().is_error() {
                return ControlFlow::Break(Run::Again);
            }
            let mut env = SendEnv {
                qp,
                io: &mut side.io,
            };
            let next = side.requester.local_next(self.now, &mut env);
            budget.spend_requests(side.io.take_executed());
            if let Some(message) = next {
                let head = match self.peer {
                    Some(peer) if peer.tags().is_some() => {
                        work::step(|| Head::read(&side.io, qp, &message))
                    }
                    _ => None,
                };
                self.transfer = Some(Transfer::new(message, head));
                return ControlFlow::Continue(());
            }
            if idle(qp, filled, &side.requester, &mut side.io) {
                return ControlFlow::Break(Run::Idle);
            }
            if budget.is_empty() {
                side.io.blocked();
                return ControlFlow::Break(Run::Again);
            }
        }
    }

    /// Takes the peer's receive side, unless it is held. The run is over when it has to be waited
    /// for, or when the message is an answer that must not overtake the completion of what it
    /// answers.
    fn hold(&mut self, side: &mut SendSide) -> ControlFlow<Run> {
        let qp = self.qp;
        let Some(peer) = self.peer else {
            return ControlFlow::Continue(());
        };
        // Also when the peer's side is still held from the READ before.
        let slot = self.transfer.as_ref().map(|t| t.message.slot);
        // A QP connected to itself runs its send side here, and its request is completed.
        if slot.is_some_and(|slot| side.io.is_notice(slot))
            && peer.qpn != qp.qpn
            && is_sending(peer, qp)
        {
            side.io.blocked();
            return ControlFlow::Break(Run::Idle);
        }
        if self.held.is_some() {
            return ControlFlow::Continue(());
        }
        self.held = Held::take(peer, qp);
        if self.held.is_none() {
            wait_for(peer, qp);
            side.io.blocked();
            return ControlFlow::Break(Run::Idle);
        }
        ControlFlow::Continue(())
    }

    /// Takes the transfer a step further. Without a peer, nobody answers.
    fn advance(&mut self, side: &SendSide) -> Step {
        let Some(transfer) = &mut self.transfer else {
            return Step::More;
        };
        let (Some(peer), Some(held)) = (self.peer, &mut self.held) else {
            // The user of the peer may have given it another address during the message.
            leave(transfer, side, self.qp);
            return Step::Finished(Err(LocalError::Silent));
        };
        let mut ends = Ends {
            side,
            qp: self.qp,
            peer,
            recv: &mut held.recv,
        };
        let (before, mut tries) = (transfer.progress(), transfer.tries);
        // Whoever resets the peer waits for its side. Others who need it, or this thread, do not
        // wait until memory is given up that does not come: the message goes on in another run.
        let step = work::unless(&|| peer.state() == QpState::Reset, || {
            work::part(&mut tries, &|| self.until.is_over(), || {
                ends.advance(transfer, self.now, self.until)
            })
        });
        // What is missing now is not what was missing before.
        transfer.tries = if transfer.progress() == before {
            tries
        } else {
            0
        };
        step
    }

    /// Ends a message, of which `done` bytes were copied, at the requester.
    fn finish(&self, side: &mut SendSide, done: u32, result: Result<LocalOk, LocalError>) {
        let qp = self.qp;
        if result.is_ok() {
            qp.device.count(Counter::LocalMessages, 1);
            qp.device.count(Counter::LocalBytes, u64::from(done));
        }
        let mut env = SendEnv {
            qp,
            io: &mut side.io,
        };
        side.requester.local_done(result, self.now, &mut env);
    }

    /// Whether reading the head of the next message may wait for memory: that is done without the
    /// peer's side.
    fn reads_heads_slowly(&self) -> bool {
        self.peer.is_some_and(|peer| peer.tags().is_some()) && self.qp.sleeps()
    }

    /// The run is over: gives the peer's receive side back, and the message to the send side.
    fn end(&mut self, side: &mut SendSide) {
        self.release();
        if self.transfer.is_some() {
            *side.io.local.transfer = self.transfer.take();
        }
    }

    /// Gives the peer's receive side back, if it is held.
    fn release(&mut self) {
        let (Some(peer), Some(mut held)) = (self.peer, self.held.take()) else {
            return;
        };
        let fetch = held.recv.io.take_fetch();
        drop(held);
        // What came for the peer meanwhile.
        kick_receive_of(peer);
        // The peer wants data of ours, and its notice comes after our completions: when this run is
        // over.
        if fetch && !note(self.qp, peer) {
            peer.schedule_send();
        }
    }
}
