// SPDX-License-Identifier: GPL-2.0

//! The acknowledge timer and the wait for a responder that was not ready.

use core::ops::DerefMut;

use super::{
    Requester,
    RequesterEnv,
    State,
    Wqe, //
};
use crate::status::WcStatus;

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// When [`Requester::handle_timeout`] wants to be called, if ever.
    #[inline]
    pub fn next_deadline(&self) -> Option<u64> {
        if self.state != State::Ready {
            return None;
        }
        self.rnr_until
            .or(self.ack_deadline)
            .filter(|t| *t != u64::MAX)
    }

    /// Time has passed: ends a wait that is over, or counts a missing answer as
    /// a loss and goes back. Harmless when nothing is due. Poll afterwards.
    pub fn handle_timeout<E: RequesterEnv>(&mut self, now: u64, env: &mut E) {
        if self.state != State::Ready || self.rnr_until.is_some() {
            self.is_wait_over(now);
            return;
        }
        match self.ack_deadline {
            Some(t) if now >= t => {}
            _ => return,
        }
        self.stats.timeouts = self.stats.timeouts.wrapping_add(1);
        if !self.retry.consume() {
            self.fail_oldest(WcStatus::RetryExcErr, env);
            return;
        }
        self.window.on_timeout(self.una, self.max);
        self.implied_nak_at = None;
        self.rewind();
        self.ack_deadline = None;
        if self.una != self.max {
            self.start_ack_timer(now);
        }
    }

    /// Whether the responder may be bothered (again).
    #[inline]
    pub(super) fn is_wait_over(&mut self, now: u64) -> bool {
        match self.rnr_until {
            Some(t) if now < t => false,
            _ => {
                self.rnr_until = None;
                true
            }
        }
    }

    /// (Re)starts the acknowledge timer.
    #[inline]
    pub(super) fn start_ack_timer(&mut self, now: u64) {
        self.ack_deadline = self.timeout_ns.map(|t| now.saturating_add(t));
    }
}
