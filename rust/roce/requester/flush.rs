// SPDX-License-Identifier: GPL-2.0

//! Errors, flushing and draining.

use core::ops::DerefMut;

use super::{
    Drain,
    Requester,
    RequesterEnv,
    State,
    Wqe, //
};
use crate::status::WcStatus;

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// QP to ERROR: completes everything in the queue with a flush error.
    /// Again after each push from then on.
    pub fn flush<E: RequesterEnv>(&mut self, env: &mut E) {
        self.state = State::Error;
        self.ack_deadline = None;
        self.rnr_until = None;
        self.local_slot = None;
        while self.count != 0 {
            self.pop(WcStatus::WrFlushErr, env);
        }
    }

    /// Ends the oldest work request with `status`, flushes the rest and calls
    /// [`RequesterEnv::fatal`]. Does nothing in the error state.
    pub fn fail<E: RequesterEnv>(&mut self, status: WcStatus, env: &mut E) {
        self.fail_oldest(status, env);
    }

    pub(super) fn fail_oldest<E: RequesterEnv>(&mut self, status: WcStatus, env: &mut E) {
        if self.state == State::Error {
            return;
        }
        self.state = State::Error;
        self.pop(status, env);
        self.flush(env);
        env.fatal();
    }

    /// SQE to RTS, unreliable services only: goes on with an empty queue after
    /// [`RequesterEnv::fatal`]. What is still queued is flushed.
    ///
    /// The next packet gets the number behind the last one that was polled. If
    /// that one was of the message that failed, it was not sent: the responder
    /// sees the gap and cannot take what follows for the rest of that message.
    pub fn resume<E: RequesterEnv>(&mut self, env: &mut E) {
        if self.state != State::Error || self.config.service.is_reliable() {
            return;
        }
        self.flush(env);
        self.una = self.next;
        self.max = self.next;
        self.assign = self.next;
        self.assigned = 0;
        self.sent = 0;
        self.sent_packets = 0;
        self.drain(Drain::End);
        self.state = State::Ready;
    }

    /// The payload of the packet just polled could not be gathered: the work
    /// request in `slot` fails with `status`, in order, that is once all
    /// earlier ones are done; nothing behind it is sent.
    pub fn local_fault<E: RequesterEnv>(&mut self, slot: u32, status: WcStatus, env: &mut E) {
        if self.state != State::Ready {
            return;
        }
        let Some(rel) = self.rel_of(slot) else {
            return;
        };
        let Some(wqe) = self.queue.get_mut(slot as usize) else {
            return;
        };
        wqe.fault = Some(status);
        let (psn, has_psn) = (wqe.psn, rel < self.assigned);
        if has_psn && self.sent >= rel {
            // Back to where this one begins. Should it be the oldest, it ends
            // here and now.
            self.sent = rel;
            self.sent_packets = 0;
            if rel != 0 {
                self.next = psn;
            }
            // Its packet may have been the one to ask for an ACK.
            self.unasked_packets = 1;
        }
        if !self.config.service.is_reliable() {
            self.retire_sent(env);
        }
        self.settle(env);
    }

    /// Begins or ends draining.
    pub fn drain(&mut self, drain: Drain) {
        self.draining = drain == Drain::Begin;
        self.drained = false;
    }

    /// Whether a draining queue has drained.
    pub fn is_drained(&self) -> bool {
        self.draining && self.drained
    }
}
