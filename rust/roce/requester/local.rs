// SPDX-License-Identifier: GPL-2.0

//! Complete messages for a responder on the same host, without packets.

use core::ops::DerefMut;

use super::{
    Requester,
    RequesterEnv,
    SendOp,
    SendWr,
    State,
    Wqe, //
};
use crate::psn::Psn;
use crate::status::WcStatus;
use crate::wire::NakCode;

/// A message to be executed by the caller, who knows the responder.
#[derive(Clone, Copy, Debug)]
pub struct LocalMessage {
    /// Slot of the work request.
    pub slot: u32,
    /// The work request.
    pub wr: SendWr,
    /// First sequence number.
    pub psn: Psn,
    /// Sequence numbers that the message takes.
    pub packets: u32,
}

/// How a message ended well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalOk {
    /// Executed; for a READ the bytes are already in the requester's buffers.
    Done,
    /// Atomic executed: what the memory held before.
    Atomic(u64),
}

/// How a message ended badly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalError {
    /// No receive is posted: try again after this many nanoseconds.
    Rnr {
        /// The responder's RNR timer, nanoseconds.
        timer_ns: u64,
    },
    /// The responder refuses.
    Nak(NakCode),
    /// The responder would not have answered: wrong state, gone, busy. Counts
    /// as a lost packet.
    Silent,
    /// The requester's own buffers failed.
    Local(WcStatus),
}

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// The next message as a whole, if it can be started: nothing is in flight
    /// on the wire and no wait is on. [`Requester::local_done`] must follow;
    /// nothing else moves until then.
    pub fn local_next<E: RequesterEnv>(&mut self, now: u64, env: &mut E) -> Option<LocalMessage> {
        if self.state != State::Ready
            || self.local_slot.is_some()
            || !self.is_wait_over(now)
            || (self.config.service.is_reliable() && self.ack_deadline.is_some())
        {
            return None;
        }
        // Local work in between may run before packets in flight are answered;
        // so look at the wire first.
        if self.config.service.is_reliable() && self.una != self.max {
            return None;
        }
        let slot = self.next_request(env)?;
        if self.una != self.max || self.sent != 0 || self.sent_packets != 0 {
            return None;
        }
        let wqe = *self.wqe(slot)?;
        self.local_slot = Some(slot);
        Some(LocalMessage {
            slot,
            wr: wqe.wr,
            psn: wqe.psn,
            packets: wqe.packets,
        })
    }

    /// The message that [`Requester::local_next`] gave out has ended.
    pub fn local_done<E: RequesterEnv>(
        &mut self,
        result: Result<LocalOk, LocalError>,
        now: u64,
        env: &mut E,
    ) {
        let Some(slot) = self.local_slot.take() else {
            // Flushed in the meantime.
            return;
        };
        let is_reliable = self.config.service.is_reliable();
        let result = match result {
            Ok(ok) => Ok(ok),
            Err(LocalError::Local(status)) => Err(LocalError::Local(status)),
            // Nobody tells an unreliable requester.
            Err(_) if !is_reliable => Ok(LocalOk::Done),
            Err(e) => Err(e),
        };
        match result {
            Ok(ok) => {
                if let LocalOk::Atomic(original) = ok {
                    if env.scatter(slot, 0, &original.to_ne_bytes()).is_err() {
                        self.fail_oldest(WcStatus::LocProtErr, env);
                        return;
                    }
                }
                let Some(wqe) = self.oldest_assigned() else {
                    return;
                };
                let (end, packets) = (wqe.psn.add(wqe.packets), wqe.packets);
                self.pop(WcStatus::Success, env);
                self.una = end;
                self.next = end;
                self.max = end;
                self.on_progress(packets, now);
                self.settle(env);
            }
            Err(LocalError::Rnr { timer_ns }) => self.wait_not_ready(timer_ns, now, env),
            Err(LocalError::Silent | LocalError::Nak(NakCode::PsnSequence)) => {
                // As if the packet had been lost; with an infinite timeout that
                // is for ever.
                self.probe.stop();
                self.ack_deadline = Some(
                    self.timeout_ns()
                        .map_or(u64::MAX, |t| now.saturating_add(t)),
                );
            }
            Err(LocalError::Nak(code)) => {
                let status = match code {
                    NakCode::RemoteAccess => WcStatus::RemAccessErr,
                    NakCode::RemoteOperational => WcStatus::RemOpErr,
                    _ => WcStatus::RemInvReqErr,
                };
                self.fail_oldest(status, env);
            }
            Err(LocalError::Local(status)) => self.fail_oldest(status, env),
        }
    }

    /// Whether a message is with the caller.
    #[inline]
    pub fn is_local_open(&self) -> bool {
        self.local_slot.is_some()
    }
}

impl SendOp {
    /// Whether the message consumes a receive at the responder.
    #[cfg(not(kernel))]
    #[inline]
    pub const fn consumes_receive(self) -> bool {
        matches!(
            self,
            Self::Send | Self::SendImm | Self::SendInv | Self::WriteImm
        )
    }
}
