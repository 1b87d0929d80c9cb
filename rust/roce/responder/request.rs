// SPDX-License-Identifier: GPL-2.0

//! Requests: sequence, duplicates, the order of operations.

use core::ops::DerefMut;

use super::nak::{
    Gap,
    Refused, //
};
use super::{
    Message,
    QpEvent,
    Resource,
    Responder,
    ResponderEnv,
    State, //
};
use crate::mtu::MAX_MESSAGE;
use crate::opcode::{
    Family,
    Position, //
};
use crate::ud::pkey_matches;
use crate::wire::Packet;
use crate::xrc::srqn_of;

/// UC: a packet that comes so few numbers late is a copy, or was overtaken.
const STALE: u32 = 4096;

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    /// Takes a packet from the requester; anything else is ignored. One that comes too early is
    /// dropped.
    #[inline]
    pub fn handle_request<E: ResponderEnv>(&mut self, packet: &Packet<'_>, now: u64, env: &mut E) {
        if self.take_request(packet, now, env) {
            self.on_early(packet.bth.psn, false, now, env);
        }
    }

    /// Takes a packet from the requester; anything else is ignored. True when it came too early:
    /// then the caller keeps it if it [should](Responder::should_keep) and can, and says in
    /// [`Responder::on_early`] whether it does.
    #[inline]
    #[must_use]
    pub fn take_request<E: ResponderEnv>(
        &mut self,
        packet: &Packet<'_>,
        now: u64,
        env: &mut E,
    ) -> bool {
        let service = self.config.service;
        if self.state != State::Ready
            || self.is_local_open
            || packet.opcode.transport != service.transport()
            || packet.opcode.is_response()
            || !pkey_matches(packet.bth.pkey, self.config.pkey)
        {
            self.stats.ignored = self.stats.ignored.wrapping_add(1);
            return false;
        }
        let is_fresh = core::mem::replace(&mut self.is_fresh, false);
        if is_fresh {
            env.event(QpEvent::CommEst);
        }
        if !service.is_reliable() {
            if is_fresh {
                // Whatever was agreed, this is where the requester is.
                self.epsn = packet.bth.psn;
            }
            self.handle_unreliable(packet, env);
            return false;
        }
        let psn = packet.bth.psn;
        let gap = self.gap;
        match psn.distance(self.epsn) {
            0 => match self.execute(packet, env) {
                Ok(()) => {
                    self.on_filled(gap, psn, now);
                    let family = packet.opcode.family();
                    // The requester sends again what an ACK names, so that is to be what is missing
                    // next, although nobody has asked.
                    let is_due = packet.bth.ack_req || self.gap != Gap::None;
                    if is_due && matches!(family, Family::Send | Family::Write) {
                        self.owe_ack(self.epsn);
                    }
                    self.answer_atomic_now(env);
                }
                Err(refused) => self.refuse(refused, now, env),
            },
            d if d > 0 => return true,
            _ => {
                // An empty WRITE may be a question of one who waits, and no copy.
                if packet.payload_len() != 0 || packet.opcode.family() != Family::Write {
                    self.on_copy(psn);
                }
                self.handle_duplicate(packet, now, env);
            }
        }
        false
    }

    /// Takes `count` Middle packets of a SEND or a WRITE at once. `packet` is the first of them,
    /// but for its payload, which is that of all, one behind the other, and for its AckReq bit,
    /// which is that of the last.
    ///
    /// False, and nothing is done but that some of the payload may have been stored, unless these
    /// are what is expected next, all of it can be stored, and nothing is kept: then each of them
    /// is to be [taken](Self::take_request) by itself.
    #[must_use]
    pub fn take_middles<E: ResponderEnv>(
        &mut self,
        packet: &Packet<'_>,
        count: u32,
        env: &mut E,
    ) -> bool {
        let (service, len) = (self.config.service, packet.payload_len());
        if self.state != State::Ready
            || self.is_local_open
            || packet.opcode.transport != service.transport()
            || packet.opcode.position() != Position::Middle
            || !service.is_reliable()
            || !pkey_matches(packet.bth.pkey, self.config.pkey)
            || packet.bth.psn != self.epsn
            || self.gap != Gap::None
            || self.early.is_busy()
            || count == 0
            || self.config.mtu.bytes().checked_mul(count) != Some(len)
        {
            return false;
        }
        let srqn = srqn_of(packet);
        let message = match (packet.opcode.family(), self.message) {
            (Family::Send, Message::Send { received, srqn: of }) if of == srqn => {
                let total = received.saturating_add(len);
                if total > MAX_MESSAGE || env.scatter(received, packet.payload).is_err() {
                    return false;
                }
                Message::Send {
                    received: total,
                    srqn,
                }
            }
            (
                Family::Write,
                Message::Write {
                    received,
                    total,
                    va,
                    rkey,
                    srqn: of,
                },
            ) if of == srqn => {
                let sum = received.saturating_add(len);
                let at = va.wrapping_add(u64::from(received));
                // The last byte is in the last packet.
                if sum >= total || env.remote_write(srqn, rkey, at, packet.payload).is_err() {
                    return false;
                }
                Message::Write {
                    received: sum,
                    total,
                    va,
                    rkey,
                    srqn,
                }
            }
            _ => return false,
        };
        self.message = message;
        self.advance(count);
        self.early.on_new();
        if packet.bth.ack_req {
            self.owe_ack(self.epsn);
        }
        self.answer_atomic_now(env);
        true
    }

    /// UC: nobody is told, nothing comes again; what is left of a broken
    /// message is dropped, its receive kept for the next one.
    fn handle_unreliable<E: ResponderEnv>(&mut self, packet: &Packet<'_>, env: &mut E) {
        let psn = packet.bth.psn;
        let begins = packet.opcode.position().begins();
        let behind = self.epsn.since(psn);
        if behind != 0 && behind <= STALE {
            self.stats.duplicates = self.stats.duplicates.wrapping_add(1);
            return;
        }
        if psn != self.epsn || begins {
            self.message = Message::None;
        }
        self.epsn = psn;
        if self.message == Message::None && !begins {
            self.stats.out_of_sequence = self.stats.out_of_sequence.wrapping_add(1);
            self.epsn = psn.next();
            return;
        }
        if let Err(refused) = self.execute(packet, env) {
            self.message = Message::None;
            self.epsn = psn.next();
            if let Refused::Nak { is_ours: true, .. } = refused {
                self.close(refused, env);
            }
        }
    }

    /// Executes the request with the expected sequence number, or changes
    /// nothing and says why not.
    #[inline]
    fn execute<E: ResponderEnv>(
        &mut self,
        packet: &Packet<'_>,
        env: &mut E,
    ) -> Result<(), Refused> {
        let family = packet.opcode.family();
        let begins = packet.opcode.position().begins();
        // A message must end before another begins, and must begin at all.
        let fits = match self.message {
            Message::None => begins,
            Message::Send { .. } => !begins && family == Family::Send,
            Message::Write { .. } => !begins && family == Family::Write,
        };
        if !fits {
            return Err(Refused::INVALID);
        }
        match family {
            Family::Send => self.execute_send(packet, env),
            Family::Write => self.execute_write(packet, env),
            Family::Read => self.execute_read(packet, env),
            Family::Atomic | Family::AtomicWrite | Family::Flush => {
                self.execute_atomic(packet, env)
            }
            _ => Err(Refused::INVALID),
        }
    }

    /// Whether a payload of `len` bytes is right at `position`, whatever the
    /// message (IBTA 9.7.4.1.6: all but the last packet are full).
    #[inline]
    pub(super) fn check_length(&self, position: Position, len: u32) -> Result<(), Refused> {
        let mtu = self.config.mtu.bytes();
        let fits = match position {
            Position::First | Position::Middle => len == mtu,
            Position::Last => len != 0 && len <= mtu,
            Position::Only => len <= mtu,
        };
        if fits {
            Ok(())
        } else {
            Err(Refused::INVALID)
        }
    }
}
