// SPDX-License-Identifier: GPL-2.0

//! Requests that were executed before (IBTA 9.7.5.1.4).

use core::ops::DerefMut;

use super::{
    Resource,
    Responder,
    ResponderEnv, //
};
use crate::opcode::{
    Family,
    Operation, //
};
use crate::psn::Psn;
use crate::wire::Packet;

/// An ACK for repeated packets that did not ask for one is not said again for this time,
/// nanoseconds: less than any requester waits, see [`crate::retry::MIN_TIMEOUT_NS`].
const ONCE_NS: u64 = 100_000;

/// The last ACK for repeated packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeated {
    /// It said that everything before this number is done.
    end: Psn,
    /// When.
    at: u64,
}

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    /// SEND and WRITE are acknowledged again, with all that was executed behind
    /// them up to the first READ or atomic: the requester goes on to repeat that,
    /// and an ACK from behind it would say that its answer was lost. A READ is
    /// read again, the result of an atomic is sent again. What is no longer known
    /// gets no answer.
    pub(super) fn handle_duplicate<E: ResponderEnv>(
        &mut self,
        packet: &Packet<'_>,
        now: u64,
        env: &mut E,
    ) {
        self.stats.duplicates = self.stats.duplicates.wrapping_add(1);
        let psn = packet.bth.psn;
        let operation = packet.opcode.operation;
        match packet.opcode.family() {
            Family::Send | Family::Write => {
                let end = self.answered_end(psn);
                // A whole window comes again, packet by packet. The first ACK tells its sender to
                // stop; the last packet asks again, should that be lost.
                let is_said = self
                    .repeated
                    .is_some_and(|r| r.end == end && now.saturating_sub(r.at) < ONCE_NS);
                if packet.bth.ack_req || !is_said {
                    self.repeated = Some(Repeated { end, at: now });
                    self.owe_ack(end);
                }
            }
            Family::Read => {
                let Some(reth) = packet.reth.filter(|_| packet.payload.is_empty()) else {
                    return;
                };
                let mtu = self.config.mtu;
                self.with_resource(psn, |r| {
                    if r.operation == Operation::ReadRequest {
                        r.run_part(psn, &reth, mtu)
                    } else {
                        None
                    }
                });
            }
            _ => {
                self.with_resource(psn, |r| (r.operation == operation).then(|| r.run_all()));
                self.answer_atomic_now(env);
            }
        }
    }
}
