// SPDX-License-Identifier: GPL-2.0

//! Responses without payload, and refusals (NAKs).

use core::ops::DerefMut;

use super::{
    QpEvent,
    Resource,
    Responder,
    ResponderEnv,
    State, //
};
use crate::opcode::{
    Opcode,
    Operation, //
};
use crate::psn::Psn;
use crate::rnr;
use crate::status::WcStatus;
use crate::wire::aeth::CREDITS_UNLIMITED;
use crate::wire::{
    Aeth,
    AtomicAckEth,
    Bth,
    HeaderBuf,
    NakCode,
    Syndrome, //
};

/// What was said about the gap before packets that came too early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gap {
    /// Nothing; there is none as far as we know.
    None,
    /// Nothing; until then it may be closed by a packet that is only late.
    Waiting(u64),
    /// It was reported: once is enough.
    Reported,
    /// The expected request was told to come back at that time; what was sent
    /// right behind it is dropped.
    NotReady(u64),
}

/// Why a request is not executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// No receive is posted: try again.
    Rnr,
    /// Never.
    Nak {
        /// For the requester.
        code: NakCode,
        /// For the owner of the current receive, if there is one.
        status: WcStatus,
        /// For the owner of the QP, if there is no current receive.
        event: QpEvent,
        /// The fault is with this host, so that even UC must stop.
        is_ours: bool,
    },
}

impl Refused {
    /// The request makes no sense.
    pub(super) const INVALID: Self = Self::Nak {
        code: NakCode::InvalidRequest,
        status: WcStatus::RemInvReqErr,
        event: QpEvent::ReqErr,
        is_ours: false,
    };
    /// A key, address or right does not admit it.
    pub(super) const ACCESS: Self = Self::Nak {
        code: NakCode::RemoteAccess,
        status: WcStatus::LocAccessErr,
        event: QpEvent::AccessErr,
        is_ours: false,
    };
    /// The SRQ number is wrong.
    pub(super) const SRQ: Self = Self::Nak {
        code: NakCode::InvalidRequest,
        status: WcStatus::RemInvReqErr,
        event: QpEvent::AccessErr,
        is_ours: false,
    };
    /// The receive work request is malformed.
    pub(super) const OPERATION: Self = Self::Nak {
        code: NakCode::RemoteOperational,
        status: WcStatus::LocQpOpErr,
        event: QpEvent::ReqErr,
        is_ours: true,
    };
    /// The receive queue cannot be used, or what came of a receive cannot be told,
    /// as its completion queue has overflowed. IBTA has the QP go to the error
    /// state then (class G), and no word for the peer; this one spares it its
    /// retries.
    pub(super) const BROKEN: Self = Self::Nak {
        code: NakCode::RemoteOperational,
        status: WcStatus::LocQpOpErr,
        event: QpEvent::Fatal,
        is_ours: true,
    };
    /// The receive's buffers cannot be written.
    pub(super) const PROTECTION: Self = Self::Nak {
        code: NakCode::RemoteOperational,
        status: WcStatus::LocProtErr,
        event: QpEvent::AccessErr,
        is_ours: true,
    };
    /// The message is longer than the receive.
    pub(super) const TOO_LONG: Self = Self::Nak {
        code: NakCode::InvalidRequest,
        status: WcStatus::LocLenErr,
        event: QpEvent::ReqErr,
        is_ours: true,
    };
}

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    /// Starts a packet to the requester.
    #[inline]
    pub(super) fn begin(&self, operation: Operation, psn: Psn, pad: u8) -> HeaderBuf {
        let mut header = HeaderBuf::new();
        Bth {
            opcode: Opcode::new(self.config.service.transport(), operation).to_byte(),
            mig_req: true,
            pad,
            pkey: self.config.pkey,
            dest_qpn: self.config.dest_qpn,
            psn,
            ..Bth::default()
        }
        .emit(&mut header);
        header
    }

    /// A positive acknowledgement with unlimited credits.
    #[inline]
    pub(super) const fn positive(msn: u32) -> Aeth {
        Aeth {
            syndrome: Syndrome::Ack(CREDITS_UNLIMITED),
            msn,
        }
    }

    /// An ACK or NAK packet.
    pub(super) fn answer(&self, psn: Psn, syndrome: Syndrome) -> HeaderBuf {
        let mut header = self.begin(Operation::Acknowledge, psn, 0);
        Aeth {
            syndrome,
            msn: self.msn,
        }
        .emit(&mut header);
        header
    }

    /// The response of an atomic (or ATOMIC WRITE, FLUSH).
    pub(super) fn atomic_answer(&self, resource: &Resource) -> HeaderBuf {
        let is_atomic = matches!(resource.operation, Operation::CmpSwap | Operation::FetchAdd);
        let operation = if is_atomic {
            Operation::AtomicAcknowledge
        } else {
            Operation::ReadResponseOnly
        };
        let mut header = self.begin(operation, resource.psn, 0);
        Self::positive(resource.msn).emit(&mut header);
        if is_atomic {
            AtomicAckEth {
                original: resource.original,
            }
            .emit(&mut header);
        }
        header
    }

    /// No further packet is at hand: sends the ACK that is due, unless READ
    /// data must go first.
    #[inline]
    pub fn end_of_run<E: ResponderEnv>(&mut self, env: &mut E) {
        if self.ack_owed.is_none() {
            return;
        }
        if self.pending == 0 && self.nak_owed.is_none() {
            if let Some(header) = self.take_ack() {
                env.reply(&header);
            }
        } else {
            self.ack_released = true;
            self.stats.acks_deferred = self.stats.acks_deferred.wrapping_add(1);
        }
    }

    /// An ACK for everything before `end` is due, at the end of the run.
    #[inline]
    pub(super) fn owe_ack(&mut self, end: Psn) {
        if self.ack_owed.is_none_or(|owed| self.is_later(end, owed)) {
            self.ack_owed = Some(end);
        }
        self.ack_released = false;
    }

    /// `count` sequence numbers, half the space at most, are about to be counted
    /// as executed: drops an ACK that would be half the space or more behind
    /// them, which no requester waits for.
    #[inline]
    pub(super) fn expire_ack(&mut self, count: u32) {
        if let Some(end) = self.ack_owed {
            if self.behind(end).saturating_add(count) >= Psn::HALF {
                self.ack_owed = None;
            }
        }
    }

    /// The ACK that is due.
    #[inline]
    fn take_ack(&mut self) -> Option<HeaderBuf> {
        let end = self.ack_owed.take()?;
        self.ack_released = false;
        Some(self.answer(end.prev(), Syndrome::Ack(CREDITS_UNLIMITED)))
    }

    /// The ACK or NAK that waited for READ data.
    pub(super) fn poll_answer(&mut self) -> Option<HeaderBuf> {
        if let Some(syndrome) = self.nak_owed.take() {
            self.ack_owed = None;
            return Some(self.answer(self.epsn, syndrome));
        }
        if self.ack_released {
            return self.take_ack();
        }
        None
    }

    /// Sends a NAK for the expected sequence number, now or behind READ data.
    pub(super) fn send_nak<E: ResponderEnv>(&mut self, syndrome: Syndrome, env: &mut E) {
        // It acknowledges everything before.
        self.ack_owed = None;
        if self.pending == 0 {
            let header = self.answer(self.epsn, syndrome);
            env.reply(&header);
        } else {
            self.nak_owed = Some(syndrome);
        }
    }

    /// The expected request is not executed: says so on the wire.
    pub(super) fn refuse<E: ResponderEnv>(&mut self, refused: Refused, now: u64, env: &mut E) {
        match refused {
            Refused::Rnr => {
                let timer = self.config.min_rnr_timer;
                self.stats.rnr_naks = self.stats.rnr_naks.wrapping_add(1);
                self.early.on_not_ready();
                self.gap = Gap::NotReady(now.saturating_add(rnr::delay_ns(timer)));
                self.send_nak(Syndrome::Rnr(timer), env);
            }
            Refused::Nak { code, .. } => {
                self.send_nak(Syndrome::Nak(code), env);
                self.close(refused, env);
            }
        }
    }

    /// Ends the connection on this side.
    pub(super) fn close<E: ResponderEnv>(&mut self, refused: Refused, env: &mut E) {
        let Refused::Nak { status, event, .. } = refused else {
            return;
        };
        self.stats.refused = self.stats.refused.wrapping_add(1);
        self.state = State::Closing;
        self.early.drop_all();
        self.message = super::Message::None;
        self.is_local_open = false;
        // A wrong SRQ number is an event even if the message had a receive, and so is a
        // receive whose completion nobody can see.
        let had_receive = self.drop_receive(status, env);
        if !had_receive || matches!(refused, Refused::SRQ | Refused::BROKEN) {
            env.event(event);
        }
        env.fatal();
    }
}
