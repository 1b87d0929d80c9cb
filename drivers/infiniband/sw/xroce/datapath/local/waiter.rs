// SPDX-License-Identifier: GPL-2.0

//! Waiting for a side of another queue pair: the waiter leaves its number there, and is run again
//! when the side is free.

use crate::prelude::*;
use crate::tables;

/// When a sender tries again that could not leave its number with the peer, ns.
const RETRY_NS: u64 = 100_000;

/// Whether somebody runs the send side of `peer` right now. What the peer sent may not be completed
/// yet, and must be before the answer arrives. If so, the send side of `qp` runs again after that.
pub(super) fn is_sending(peer: &WireQp, qp: &WireQp) -> bool {
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

/// Leaves a note with `owner`: the send side of `waiter` is to run when that of `owner` rests.
/// False when there is a note of another QP, which must not be lost: any QP of the host may name
/// `owner`.
pub(super) fn note(owner: &WireQp, waiter: &WireQp) -> bool {
    match owner.send_waiter.cmpxchg(0, waiter.qpn.get(), Full) {
        Ok(_) => true,
        Err(other) => other == waiter.qpn.get(),
    }
}

/// Leaves a note with `peer`: the send side of `qp` waits for its receive side.
pub(super) fn wait_for(peer: &WireQp, qp: &WireQp) {
    if let Err(other) = peer.local_waiter.cmpxchg(0, qp.qpn.get(), Full) {
        if other != qp.qpn.get() {
            // Any QP of the host may name this peer: another's note must not be lost for ours.
            qp.timer.start_in(RETRY_NS);
        }
    }
    full_fence();
    // Either the owner runs once more and sees the note, or this run does.
    kick_receive_of(peer);
}

/// Runs the receive side of another process's QP here, unless somebody else does.
pub(super) fn kick_receive_of(peer: &WireQp) {
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
