// SPDX-License-Identifier: GPL-2.0

//! The peer of a sender: which queue pair it is, and its receive side while the sender holds it.

use crate::prelude::*;
use crate::qp::receive::RecvSide;
use crate::qp::send::SendSide;
use crate::qp::QpKind;
use crate::tables;

/// The QP that takes what `qp` sends. A QP that is not connected to `qp` is not even touched.
pub(super) fn find(side: &SendSide, qp: &WireQp) -> Option<Ref<WireQp>> {
    tables::get()?
        .qps
        .get_if(side.dest_qpn.get(), |peer| accepts(peer, side, qp))
}

/// The peer, as long as it is connected to `qp`: when its user has connected it to another since,
/// it has forgotten what `qp` began.
pub(super) fn partner(side: &SendSide, qp: &WireQp) -> Option<Ref<WireQp>> {
    let is_ours = |peer: &WireQp| peer.recv_connection.is_to(qp.qpn);
    tables::get()?.qps.get_if(side.dest_qpn.get(), is_ours)
}

/// Whether `peer` is connected to `qp`, by what it shows to everybody. Any context.
fn accepts(peer: &WireQp, side: &SendSide, qp: &WireQp) -> bool {
    peer.ns() == qp.ns()
        && answers(peer.kind, qp.kind)
        && peer.state().is_connected()
        && peer.recv_connection.joins(qp.qpn, side.path.av())
}

/// Whether a QP of type `responder` takes requests of one of type `requester`.
fn answers(responder: QpKind, requester: QpKind) -> bool {
    match requester {
        QpKind::XrcIni => responder == QpKind::XrcTgt,
        _ => responder == requester,
    }
}

/// Whether `peer` is connected to `qp` and would take its packets from the wire. The caller has
/// both sides, so it stays so.
pub(super) fn listens(peer: &WireQp, recv: &RecvSide, side: &SendSide, qp: &WireQp) -> bool {
    let av = side.path.av();
    let theirs = recv.path.av();
    peer.state().is_connected()
        && recv.responder.dest_qpn() == qp.qpn
        && theirs.src == av.dst
        && theirs.dst == av.src
}

/// The receive side of the peer, as a sender has taken it.
pub(super) struct Held<'a> {
    // Dropped first.
    pub(super) recv: OwnerGuard<'a, RecvSide>,
    _softirq: Option<NoSoftirq>,
}

impl<'a> Held<'a> {
    /// Takes the receive side of `peer` for `qp`, unless somebody has it.
    pub(super) fn take(peer: &'a WireQp, qp: &WireQp) -> Option<Self> {
        let softirq = NoSoftirq::new();
        // With softirq off this is an RCU reader: memory that may have to be waited for, if there
        // is none now, is registered when it is over.
        let sleeps = qp.sleeps() || peer.sleeps();
        Some(Held {
            recv: peer.recv.try_lock()?,
            _softirq: (!sleeps).then_some(softirq),
        })
    }
}
