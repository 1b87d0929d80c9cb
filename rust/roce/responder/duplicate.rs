// SPDX-License-Identifier: GPL-2.0

//! Requests that were executed before (IBTA 9.7.5.1.4).

use core::ops::DerefMut;

use super::{Resource, Responder, ResponderEnv};
use crate::opcode::{Family, Operation};
use crate::wire::Packet;

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    /// SEND and WRITE are acknowledged again, with all that was executed behind
    /// them up to the first READ or atomic: the requester goes on to repeat that,
    /// and an ACK from behind it would say that its answer was lost. A READ is
    /// read again, the result of an atomic is sent again. What is no longer known
    /// gets no answer.
    pub(super) fn handle_duplicate<E: ResponderEnv>(&mut self, packet: &Packet<'_>, env: &mut E) {
        self.stats.duplicates = self.stats.duplicates.wrapping_add(1);
        let psn = packet.bth.psn;
        let operation = packet.opcode.operation;
        match packet.opcode.family() {
            Family::Send | Family::Write => {
                self.owe_ack(self.answered_end(psn));
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
