// SPDX-License-Identifier: GPL-2.0

//! RDMA WRITE, with immediate data.

use core::ops::DerefMut;

use super::nak::Refused;
use super::{
    AccessKind,
    Message,
    RecvCompletion,
    RecvOp,
    Resource,
    Responder,
    ResponderEnv, //
};
use crate::mtu::MAX_MESSAGE;
use crate::opcode::Position;
use crate::status::WcStatus;
use crate::wire::Packet;
use crate::xrc::srqn_of;

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    #[inline]
    pub(super) fn execute_write<E: ResponderEnv>(
        &mut self,
        packet: &Packet<'_>,
        env: &mut E,
    ) -> Result<(), Refused> {
        let position = packet.opcode.position();
        let len = packet.payload_len();
        self.check_length(position, len)?;
        let srqn = srqn_of(packet);
        let (received, total, va, rkey) = match self.message {
            Message::Write {
                received,
                total,
                va,
                rkey,
                srqn: of,
            } => {
                if of != srqn {
                    return Err(Refused::SRQ);
                }
                (received, total, va, rkey)
            }
            _ => {
                let reth = packet.reth.ok_or(Refused::INVALID)?;
                if !self.config.access.remote_write || reth.len > MAX_MESSAGE {
                    return Err(Refused::INVALID);
                }
                (0, reth.len, reth.va, reth.rkey)
            }
        };
        // All announced bytes must come, and no others.
        let sum = received.saturating_add(len);
        let fits = match position {
            Position::First | Position::Middle => sum < total,
            Position::Last | Position::Only => sum == total,
        };
        if !fits {
            return Err(Refused::INVALID);
        }
        if position.begins() {
            self.check_srqn(srqn, env)?;
            self.check_range(AccessKind::Write, srqn, rkey, va, total, env)?;
        }
        if len != 0 {
            let at = va.wrapping_add(u64::from(received));
            env.remote_write(srqn, rkey, at, packet.payload)
                .map_err(|_| Refused::ACCESS)?;
        }
        if position.ends() {
            if let Some(imm) = packet.immdt {
                // Should there be none, the packet comes again, data included.
                self.take_receive(srqn, env)?;
                self.finish_write_imm(total, imm.raw, packet.bth.solicited, env)?;
            }
            self.message = Message::None;
            self.count_message();
        } else {
            self.message = Message::Write {
                received: sum,
                total,
                va,
                rkey,
                srqn,
            };
        }
        self.advance(1);
        Ok(())
    }

    /// Completes the receive that a WRITE with immediate data consumes.
    pub(super) fn finish_write_imm<E: ResponderEnv>(
        &mut self,
        byte_len: u32,
        imm: u32,
        solicited: bool,
        env: &mut E,
    ) -> Result<(), Refused> {
        self.complete(
            &RecvCompletion {
                op: RecvOp::WriteImm,
                status: WcStatus::Success,
                byte_len,
                imm: Some(imm),
                invalidated: None,
                solicited,
            },
            env,
        )
    }
}
