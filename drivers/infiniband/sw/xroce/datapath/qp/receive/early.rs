// SPDX-License-Identifier: GPL-2.0

//! Requests that came before an earlier one. The responder says which to keep; the packets wait in
//! [`WireQp::early`] until the earlier one has come, and count like those of a backlog.

use super::super::engine::{
    for_each,
    middles_from, //
};
use super::RecvSide;
use crate::prelude::*;
use crate::rx::Verified;
use rdma::work;
use roce::psn::Psn;

/// Kept requests that one run takes at most, beside those that come.
const KEPT_BURST: u32 = 128;

/// So much later than it is time, nanoseconds, a gap is reported even if packets come.
const PATIENCE_NS: u64 = 3_000_000;

/// The place of a packet among those that are kept, which are less than 2^15 numbers apart.
fn order(psn: Psn) -> u16 {
    psn.get() as u16
}

impl RecvSide {
    /// The beginning of a run: goes on with what an earlier run has left.
    pub(super) fn begin_early(&mut self, qp: &WireQp, now: u64) {
        self.io.kept_left = KEPT_BURST;
        if self.responder.is_next_kept() {
            work::step(|| self.take_kept(qp, now));
        }
    }

    /// Handles a request packet, or those of a train, and what waited for each.
    /// True if some of them are left in the backlog ([`for_each`]).
    pub(super) fn request(&mut self, qp: &WireQp, packet: Verified, now: u64) -> bool {
        if packet.count() > 1 {
            let mut by_one = false;
            return for_each(qp, &qp.requests, packet, |train, index| {
                // As in `take_packets`, nothing is executed any more.
                if qp.state().is_error() {
                    return 1;
                }
                let several = match by_one {
                    true => None,
                    false => middles_from(qp, self.path.av(), train, index),
                };
                if let Some((message, count)) = several {
                    let (responder, mut env) = self.split(qp);
                    if responder.take_middles(&message, count, &mut env) {
                        return count;
                    }
                    by_one = true;
                }
                if let Some(psn) = self.take_request(qp, train, index, false, now) {
                    self.on_early(qp, psn, || train.part(index), now);
                }
                self.take_kept(qp, now);
                1
            });
        }
        if let Some(psn) = self.take_request(qp, &packet, 0, false, now) {
            self.on_early(qp, psn, || Some(packet), now);
        }
        self.take_kept(qp, now);
        false
    }

    /// Handles the kept requests whose turn it is, as many as this run may take.
    fn take_kept(&mut self, qp: &WireQp, now: u64) {
        while let Some(packet) = self.next_kept(qp) {
            // The one that was expected is not early.
            let _ = self.take_request(qp, &packet, 0, true, now);
        }
    }

    /// The request with the number `psn` came before an earlier one. `packet` is it, if there is
    /// memory to keep it.
    fn on_early(
        &mut self,
        qp: &WireQp,
        psn: Psn,
        packet: impl FnOnce() -> Option<Verified>,
        now: u64,
    ) {
        self.drop_forgotten(qp);
        let kept = self.responder.should_keep(psn)
            && packet().is_some_and(|packet| qp.early.insert(packet, order(psn)).is_ok());
        self.io.keeps |= kept;
        let (responder, mut env) = self.split(qp);
        responder.on_early(psn, kept, now, &mut env);
    }

    /// The kept request whose turn it is, if this run may take one more.
    fn next_kept(&mut self, qp: &WireQp) -> Option<Verified> {
        if !self.responder.is_next_kept() || self.io.kept_left == 0 || work::has_waited() {
            return None;
        }
        self.io.kept_left = self.io.kept_left.wrapping_sub(1);
        let psn = self.responder.take_kept()?;
        // What was executed as a copy that came later is in front of it. Each turn takes one away.
        while let Some(packet) = qp.early.pop_until(order(psn)) {
            if packet.psn() == Some(psn) {
                return Some(packet);
            }
        }
        None
    }

    /// The end of a run: reports a gap if it is time, drops what is not waited for, and sees to the
    /// next run. True when requests are left for that.
    ///
    /// If packets came (`has_come`), the missing one may be right behind them, in another queue of
    /// the host. The timer runs after those. But who sends without a pause is told in the end.
    pub(super) fn end_early(&mut self, qp: &WireQp, has_come: bool, now: u64) -> bool {
        let latest = match has_come {
            true => now.saturating_sub(PATIENCE_NS),
            false => now,
        };
        if self.responder.next_deadline().is_some_and(|t| latest >= t) {
            let (responder, mut env) = self.split(qp);
            responder.handle_timeout(now, &mut env);
        }
        self.drop_forgotten(qp);
        if let Some(at) = self.responder.next_deadline() {
            qp.pace.start_at(at);
        }
        self.responder.is_next_kept()
    }

    /// Drops the packets, if none is waited for.
    fn drop_forgotten(&mut self, qp: &WireQp) {
        if self.io.keeps && !self.responder.has_kept() {
            self.io.keeps = false;
            qp.early.purge();
        }
    }
}
