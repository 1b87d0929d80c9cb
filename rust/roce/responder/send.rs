// SPDX-License-Identifier: GPL-2.0

//! SEND, with immediate data, with invalidate.

use core::ops::DerefMut;

use super::nak::Refused;
use super::{
    CompletionLost,
    Message,
    Receive,
    RecvCompletion,
    RecvOp,
    Resource,
    Responder,
    ResponderEnv,
    ScatterError, //
};
use crate::key::Key;
use crate::mtu::MAX_MESSAGE;
use crate::status::WcStatus;
use crate::wire::Packet;
use crate::xrc::srqn_of;

impl From<ScatterError> for Refused {
    fn from(e: ScatterError) -> Self {
        match e {
            ScatterError::TooLong => Self::TOO_LONG,
            ScatterError::Protection => Self::PROTECTION,
        }
    }
}

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    #[inline]
    pub(super) fn execute_send<E: ResponderEnv>(
        &mut self,
        packet: &Packet<'_>,
        env: &mut E,
    ) -> Result<(), Refused> {
        let position = packet.opcode.position();
        let len = packet.payload_len();
        self.check_length(position, len)?;
        let srqn = srqn_of(packet);
        let received = match self.message {
            Message::Send { received, srqn: of } => {
                if of != srqn {
                    return Err(Refused::SRQ);
                }
                received
            }
            _ => {
                self.take_receive(srqn, env)?;
                0
            }
        };
        let total = received.saturating_add(len);
        if total > MAX_MESSAGE {
            return Err(Refused::INVALID);
        }
        if len != 0 {
            env.scatter(received, packet.payload)?;
        }
        if position.ends() {
            let invalidated = packet.ieth.map(|h| h.rkey);
            self.finish_send(
                total,
                packet.immdt.map(|h| h.raw),
                invalidated,
                packet.bth.solicited,
                env,
            )?;
        } else {
            self.message = Message::Send {
                received: total,
                srqn,
            };
        }
        self.advance(1);
        Ok(())
    }

    /// The last byte of a SEND was placed.
    pub(super) fn finish_send<E: ResponderEnv>(
        &mut self,
        byte_len: u32,
        imm: Option<u32>,
        invalidated: Option<Key>,
        solicited: bool,
        env: &mut E,
    ) -> Result<(), Refused> {
        if let Some(rkey) = invalidated {
            env.invalidate(rkey).map_err(|_| Refused::ACCESS)?;
        }
        self.complete(
            &RecvCompletion {
                op: RecvOp::Send,
                status: WcStatus::Success,
                byte_len,
                imm,
                invalidated,
                solicited,
            },
            env,
        )?;
        self.message = Message::None;
        self.count_message();
        Ok(())
    }

    /// Completes the current receive; or leaves all as it was, so that an XRC sender
    /// may send its last packet again.
    #[inline]
    pub(super) fn complete<E: ResponderEnv>(
        &mut self,
        completion: &RecvCompletion,
        env: &mut E,
    ) -> Result<(), Refused> {
        if self.receive != Receive::None {
            if let Err(CompletionLost) = env.complete_receive(completion) {
                return Err(self.broken());
            }
            self.receive = Receive::None;
        }
        Ok(())
    }
}
