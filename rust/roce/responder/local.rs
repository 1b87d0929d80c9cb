// SPDX-License-Identifier: GPL-2.0

//! Complete messages from a requester on the same host, without packets.

use core::ops::DerefMut;

use super::atomic::Request;
use super::nak::Refused;
use super::{
    AccessKind, AtomicOp, Message, QpEvent, RemoteSlice, Resource, Responder, ResponderEnv,
    Service, State,
};
use crate::mtu::MAX_MESSAGE;
use crate::requester::{LocalError, LocalMessage, SendOp};
use crate::rnr;
use crate::wire::Feth;

/// What the caller has to do for a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalPlan {
    /// Copy the message to the current receive.
    Receive,
    /// Copy the message to this memory.
    Write(RemoteSlice),
    /// Copy this memory to the requester's buffers.
    Read(RemoteSlice),
    /// Nothing: the atomic was executed.
    Atomic {
        /// What the memory held before.
        original: u64,
    },
    /// Fetch the 8 bytes of an ATOMIC WRITE and store them at once here.
    AtomicWrite(RemoteSlice),
    /// Nothing.
    Nothing,
}

/// What became of the copying.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalOutcome {
    /// Done.
    Done,
    /// The current receive is shorter than the message.
    TooLong,
    /// The current receive's buffers cannot be accessed.
    ReceiveFault,
    /// The memory in the plan cannot be accessed.
    RemoteFault,
    /// The requester's buffers cannot be accessed, or it gave up: the
    /// responder takes it as a message that never came.
    Abandoned,
}

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    /// Checks a message and says what to do; [`Responder::local_finish`] must follow if it is `Ok`.
    ///
    /// # Errors
    ///
    /// What the requester is to be told by `local_done`.
    pub fn local_request<E: ResponderEnv>(
        &mut self,
        message: &LocalMessage,
        now: u64,
        env: &mut E,
    ) -> Result<LocalPlan, LocalError> {
        let is_reliable = self.config.service.is_reliable();
        if self.state != State::Ready || self.is_local_open {
            return Err(LocalError::Silent);
        }
        if is_reliable && (message.psn != self.epsn || self.message != Message::None) {
            return Err(LocalError::Silent);
        }
        if self.is_fresh {
            self.is_fresh = false;
            env.event(QpEvent::CommEst);
        }
        self.epsn = message.psn;
        self.message = Message::None;
        match self.plan(message, env) {
            Ok(plan) => {
                self.is_local_open = true;
                Ok(plan)
            }
            Err(refused) => Err(self.refuse_local(message, refused, now, env)),
        }
    }

    fn plan<E: ResponderEnv>(
        &mut self,
        message: &LocalMessage,
        env: &mut E,
    ) -> Result<LocalPlan, Refused> {
        let wr = &message.wr;
        let srqn = (self.config.service == Service::XrcTgt).then_some(wr.srqn);
        let access = self.config.access;
        let len = wr.data_len();
        if len > MAX_MESSAGE {
            return Err(Refused::INVALID);
        }
        let slice = RemoteSlice {
            rkey: wr.rkey,
            va: wr.remote_addr,
            len,
            srqn,
        };
        let need = |is_permitted| {
            if is_permitted {
                Ok(())
            } else {
                Err(Refused::INVALID)
            }
        };
        match wr.op {
            SendOp::Send | SendOp::SendImm | SendOp::SendInv => {
                self.take_receive(srqn, env)?;
                Ok(if len == 0 {
                    LocalPlan::Nothing
                } else {
                    LocalPlan::Receive
                })
            }
            SendOp::Write | SendOp::WriteImm => {
                need(access.remote_write)?;
                self.check_srqn(srqn, env)?;
                self.check_range(AccessKind::Write, srqn, wr.rkey, wr.remote_addr, len, env)?;
                if wr.op == SendOp::WriteImm {
                    self.take_receive(srqn, env)?;
                }
                Ok(if len == 0 {
                    LocalPlan::Nothing
                } else {
                    LocalPlan::Write(slice)
                })
            }
            SendOp::Read => {
                need(access.remote_read && self.config.max_dest_rd_atomic != 0)?;
                self.check_srqn(srqn, env)?;
                self.check_range(AccessKind::Read, srqn, wr.rkey, wr.remote_addr, len, env)?;
                Ok(if len == 0 {
                    LocalPlan::Nothing
                } else {
                    LocalPlan::Read(slice)
                })
            }
            SendOp::AtomicWrite => {
                need(
                    access.remote_write
                        && wr.remote_addr & 7 == 0
                        && self.config.max_dest_rd_atomic != 0,
                )?;
                self.check_srqn(srqn, env)?;
                self.check_range(AccessKind::Write, srqn, wr.rkey, wr.remote_addr, 8, env)?;
                Ok(LocalPlan::AtomicWrite(slice))
            }
            SendOp::CmpSwap | SendOp::FetchAdd | SendOp::Flush => {
                let (rkey, va) = (wr.rkey, wr.remote_addr);
                let request = match wr.op {
                    SendOp::Flush => Request::flush(
                        rkey,
                        va,
                        wr.length,
                        Feth {
                            placement: wr.flush_placement,
                            level: wr.flush_level,
                        },
                    ),
                    SendOp::CmpSwap => Request::Atomic {
                        rkey,
                        va,
                        op: AtomicOp::CmpSwap {
                            compare: wr.compare_add,
                            swap: wr.swap,
                        },
                    },
                    _ => Request::Atomic {
                        rkey,
                        va,
                        op: AtomicOp::FetchAdd {
                            add: wr.compare_add,
                        },
                    },
                };
                self.check_atomic(&request)?;
                need(self.config.max_dest_rd_atomic != 0)?;
                self.check_srqn(srqn, env)?;
                let original = self.do_atomic(srqn, &request, env)?;
                Ok(if wr.op == SendOp::Flush {
                    LocalPlan::Nothing
                } else {
                    LocalPlan::Atomic { original }
                })
            }
            SendOp::Local => Err(Refused::INVALID),
        }
    }

    /// The caller has done what the plan asked for, or not: ends the message.
    ///
    /// # Errors
    ///
    /// What the requester is to be told by `local_done`.
    pub fn local_finish<E: ResponderEnv>(
        &mut self,
        message: &LocalMessage,
        outcome: LocalOutcome,
        now: u64,
        env: &mut E,
    ) -> Result<(), LocalError> {
        if !self.is_local_open {
            // Aborted or reset in the meantime.
            return Err(LocalError::Silent);
        }
        self.is_local_open = false;
        let result = match outcome {
            LocalOutcome::Done => self.finish(message, env),
            LocalOutcome::TooLong => Err(Refused::TOO_LONG),
            LocalOutcome::ReceiveFault => Err(Refused::PROTECTION),
            LocalOutcome::RemoteFault => Err(Refused::ACCESS),
            LocalOutcome::Abandoned => return Ok(()),
        };
        result.map_err(|refused| self.refuse_local(message, refused, now, env))
    }

    fn finish<E: ResponderEnv>(
        &mut self,
        message: &LocalMessage,
        env: &mut E,
    ) -> Result<(), Refused> {
        let wr = &message.wr;
        match wr.op {
            SendOp::Send | SendOp::SendImm | SendOp::SendInv => {
                let imm = (wr.op == SendOp::SendImm).then_some(wr.imm);
                let invalidated = (wr.op == SendOp::SendInv).then_some(wr.invalidate_rkey);
                self.finish_send(wr.length, imm, invalidated, wr.solicited, env)?;
            }
            SendOp::WriteImm => {
                self.finish_write_imm(wr.length, wr.imm, wr.solicited, env)?;
                self.count_message();
            }
            _ => self.count_message(),
        }
        self.advance(message.packets);
        Ok(())
    }

    /// As [`Responder::refuse`], with the answer as a value.
    fn refuse_local<E: ResponderEnv>(
        &mut self,
        message: &LocalMessage,
        refused: Refused,
        now: u64,
        env: &mut E,
    ) -> LocalError {
        let is_reliable = self.config.service.is_reliable();
        if !is_reliable {
            self.epsn = message.psn.add(message.packets);
        }
        match refused {
            Refused::Rnr => {
                let timer_ns = rnr::delay_ns(self.config.min_rnr_timer);
                self.stats.rnr_naks = self.stats.rnr_naks.wrapping_add(1);
                if is_reliable {
                    self.gap = super::nak::Gap::NotReady(now.saturating_add(timer_ns));
                }
                LocalError::Rnr { timer_ns }
            }
            Refused::Nak { code, is_ours, .. } => {
                if is_reliable || is_ours {
                    self.close(refused, env);
                }
                LocalError::Nak(code)
            }
        }
    }
}
