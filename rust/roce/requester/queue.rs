// SPDX-License-Identifier: GPL-2.0

//! The queue: slots, the transmit cursor, going back for a retry, completing in order.

use core::ops::DerefMut;

use super::{
    Requester,
    RequesterEnv,
    SendCompletion,
    SendOp,
    State,
    Wqe, //
};
use crate::psn::Psn;
use crate::status::WcStatus;

/// More slots than that are not used.
const MAX_SLOTS: usize = 1 << 24;

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// Slots of the queue.
    #[inline]
    pub(super) fn capacity(&self) -> u32 {
        self.queue.len().min(MAX_SLOTS) as u32
    }

    /// The slot of the work request `rel` places behind the oldest.
    #[inline]
    pub(super) fn slot_at(&self, rel: u32) -> u32 {
        let capacity = self.capacity();
        let slot = self.head.wrapping_add(rel);
        if slot >= capacity {
            slot.wrapping_sub(capacity)
        } else {
            slot
        }
    }

    /// How many places behind the oldest work request `slot` is.
    #[inline]
    pub(super) fn rel_of(&self, slot: u32) -> Option<u32> {
        let capacity = self.capacity();
        if slot >= capacity {
            return None;
        }
        let rel = if slot >= self.head {
            slot.wrapping_sub(self.head)
        } else {
            slot.wrapping_add(capacity).wrapping_sub(self.head)
        };
        (rel < self.count).then_some(rel)
    }

    /// The oldest work request.
    #[inline]
    pub(super) fn oldest(&self) -> Option<&Wqe> {
        if self.count == 0 {
            return None;
        }
        self.queue.get(self.head as usize)
    }

    /// The oldest work request, if it has sequence numbers.
    #[inline]
    pub(super) fn oldest_assigned(&self) -> Option<&Wqe> {
        if self.assigned == 0 {
            return None;
        }
        self.oldest()
    }

    /// Takes the oldest work request off the queue and completes it.
    pub(super) fn pop<E: RequesterEnv>(&mut self, status: WcStatus, env: &mut E) {
        let slot = self.head;
        let Some(wqe) = self.oldest() else {
            return;
        };
        let wr = wqe.wr;
        self.head = self.slot_at(1);
        self.count = self.count.wrapping_sub(1);
        if self.assigned != 0 {
            self.assigned = self.assigned.wrapping_sub(1);
            if wr.op.has_response() {
                self.responses_done = self.responses_done.wrapping_add(1);
            }
        }
        if self.sent != 0 {
            self.sent = self.sent.wrapping_sub(1);
        } else {
            self.sent_packets = 0;
        }
        if self.local_slot == Some(slot) {
            self.local_slot = None;
        }
        env.complete(&SendCompletion {
            slot,
            wr_id: wr.wr_id,
            op: wr.op,
            status,
            byte_len: match wr.op {
                SendOp::Read | SendOp::CmpSwap | SendOp::FetchAdd => wr.data_len(),
                _ => wr.length,
            },
            signaled: wr.signaled,
            cookie: wr.cookie,
        });
    }

    /// Completes what needs no more than its turn: local work that ran, and
    /// the work request that cannot go on.
    pub(super) fn settle<E: RequesterEnv>(&mut self, env: &mut E) {
        while let Some(wqe) = self.oldest() {
            if let Some(status) = wqe.fault {
                self.fail_oldest(status, env);
                return;
            }
            if wqe.wr.op != SendOp::Local || !wqe.done {
                break;
            }
            self.pop(WcStatus::Success, env);
        }
        self.report_drained(env);
    }

    /// Says once that a draining queue has drained.
    pub(super) fn report_drained<E: RequesterEnv>(&mut self, env: &mut E) {
        if self.draining && !self.drained && self.assigned == 0 && self.state == State::Ready {
            self.drained = true;
            env.sq_drained();
        }
    }

    /// Moves the oldest unacknowledged number to `to`; work requests before it
    /// have been popped. The transmit cursor never lies behind.
    pub(super) fn advance_una(&mut self, to: Psn) {
        if to.since(self.una) > self.next.since(self.una) {
            // An answer to an earlier round: no need to send that again.
            if self.next == self.una && self.recovery.take_doubt(self.una) {
                // It came before anything was.
                self.losses.on_no_loss();
                self.window.on_no_loss(self.una);
            }
            self.next = to;
        }
        self.early.pass(self.una, to);
        self.una = to;
        if self.sent == 0 {
            if let Some(wqe) = self.oldest_assigned() {
                let done = to.since(wqe.psn);
                if wqe.packets != 0 && self.sent_packets < done {
                    self.sent_packets = done;
                }
            }
        }
    }

    /// Goes back to the oldest unacknowledged number: everything from there is
    /// transmitted again.
    pub(super) fn rewind(&mut self, now: u64) {
        // An answer could be one to either of two packets (Karn's rule).
        self.timed = None;
        self.probe.forget();
        self.probe.echo.renew(true, now, &self.rtt);
        self.early.on_rewind(self.max);
        self.recovery.stop();
        self.next = self.una;
        self.sent = 0;
        self.sent_packets = match self.oldest_assigned() {
            Some(wqe) if wqe.packets != 0 => self.una.since(wqe.psn),
            _ => 0,
        };
        self.rd_atomic.rewind();
        self.unasked_packets = 0;
        self.unasked_messages = 0;
    }

    /// After going back: leaves the oldest packet of a SEND or a WRITE out.
    pub(super) fn pass_oldest(&mut self) {
        let Some(wqe) = self.oldest_assigned() else {
            return;
        };
        if wqe.packets == 0 || wqe.wr.op.has_response() {
            return;
        }
        let index = self.sent_packets.wrapping_add(1);
        let is_last = index >= wqe.packets;
        self.next = self.next.next();
        self.sent = u32::from(is_last);
        self.sent_packets = if is_last { 0 } else { index };
    }

    /// Gives the work request at the transmit cursor its sequence numbers.
    pub(super) fn assign(&mut self, slot: u32) {
        let (service, mtu) = (self.config.service, self.config.mtu);
        let (max_rd_atomic, psn, due) =
            (self.config.max_rd_atomic, self.assign, self.responses_due);
        let Some(wqe) = self.queue.get_mut(slot as usize) else {
            return;
        };
        if wqe.fault.is_none() {
            wqe.fault = wqe.wr.check(service, max_rd_atomic).err();
        }
        wqe.psn = psn;
        wqe.packets = wqe.wr.packets(mtu);
        wqe.fence_at = due;
        self.assign = psn.add(wqe.packets);
        if wqe.wr.op.has_response() {
            self.responses_due = due.wrapping_add(1);
        }
        self.assigned = self.assigned.wrapping_add(1);
    }

    /// Whether `wqe` must wait for earlier READs and atomics.
    #[inline]
    pub(super) fn is_fenced(&self, wqe: &Wqe) -> bool {
        wqe.wr.fence && (self.responses_done.wrapping_sub(wqe.fence_at) as i32) < 0
    }
}
