// SPDX-License-Identifier: GPL-2.0

//! Complete messages from a requester on the same host, without packets.

use core::ops::DerefMut;

use super::atomic::Request;
use super::nak::Refused;
use super::{
    AccessKind,
    AtomicOp,
    Message,
    QpEvent,
    RemoteSlice,
    Resource,
    Responder,
    ResponderEnv,
    Service,
    State, //
};
use crate::mtu::MAX_MESSAGE;
use crate::number::Srqn;
use crate::requester::{
    LocalError,
    LocalMessage,
    SendOp, //
};
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

impl LocalPlan {
    /// The plan for a message of `len` bytes: none of them means that there is nothing to copy.
    fn unless_empty(self, len: u32) -> Self {
        match len {
            0 => Self::Nothing,
            _ => self,
        }
    }
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

    /// Checks what the message asks for, and begins it: takes the receive, executes the atomic.
    fn plan<E: ResponderEnv>(
        &mut self,
        message: &LocalMessage,
        env: &mut E,
    ) -> Result<LocalPlan, Refused> {
        let wr = &message.wr;
        if wr.data_len() > MAX_MESSAGE {
            return Err(Refused::INVALID);
        }
        let slice = RemoteSlice {
            rkey: wr.rkey,
            va: wr.remote_addr,
            len: wr.data_len(),
            srqn: (self.config.service == Service::XrcTgt).then_some(wr.srqn),
        };
        match wr.op {
            SendOp::Send | SendOp::SendImm | SendOp::SendInv => self.plan_send(&slice, env),
            SendOp::Write => self.plan_write(&slice, env),
            SendOp::WriteImm => {
                let plan = self.plan_write(&slice, env)?;
                self.take_receive(slice.srqn, env)?;
                Ok(plan)
            }
            SendOp::Read => self.plan_read(&slice, env),
            SendOp::AtomicWrite => self.plan_atomic_write(&slice, env),
            SendOp::CmpSwap => {
                let op = AtomicOp::CmpSwap {
                    compare: wr.compare_add,
                    swap: wr.swap,
                };
                self.plan_atomic(&slice, op, env)
            }
            SendOp::FetchAdd => {
                let op = AtomicOp::FetchAdd {
                    add: wr.compare_add,
                };
                self.plan_atomic(&slice, op, env)
            }
            SendOp::Flush => {
                let feth = Feth {
                    placement: wr.flush_placement,
                    level: wr.flush_level,
                };
                let request = Request::flush(wr.rkey, wr.remote_addr, wr.length, feth);
                self.execute_local(slice.srqn, &request, env)?;
                Ok(LocalPlan::Nothing)
            }
            SendOp::Local => Err(Refused::INVALID),
        }
    }

    fn plan_send<E: ResponderEnv>(
        &mut self,
        slice: &RemoteSlice,
        env: &mut E,
    ) -> Result<LocalPlan, Refused> {
        self.take_receive(slice.srqn, env)?;
        Ok(LocalPlan::Receive.unless_empty(slice.len))
    }

    fn plan_write<E: ResponderEnv>(
        &mut self,
        slice: &RemoteSlice,
        env: &mut E,
    ) -> Result<LocalPlan, Refused> {
        if !self.config.access.remote_write {
            return Err(Refused::INVALID);
        }
        self.check_slice(AccessKind::Write, slice, env)?;
        Ok(LocalPlan::Write(*slice).unless_empty(slice.len))
    }

    fn plan_read<E: ResponderEnv>(
        &mut self,
        slice: &RemoteSlice,
        env: &mut E,
    ) -> Result<LocalPlan, Refused> {
        if !self.config.access.remote_read {
            return Err(Refused::INVALID);
        }
        self.check_responses()?;
        self.check_slice(AccessKind::Read, slice, env)?;
        Ok(LocalPlan::Read(*slice).unless_empty(slice.len))
    }

    fn plan_atomic_write<E: ResponderEnv>(
        &mut self,
        slice: &RemoteSlice,
        env: &mut E,
    ) -> Result<LocalPlan, Refused> {
        if !self.config.access.remote_write || slice.va & 7 != 0 {
            return Err(Refused::INVALID);
        }
        self.check_responses()?;
        self.check_slice(AccessKind::Write, slice, env)?;
        Ok(LocalPlan::AtomicWrite(*slice))
    }

    fn plan_atomic<E: ResponderEnv>(
        &mut self,
        slice: &RemoteSlice,
        op: AtomicOp,
        env: &mut E,
    ) -> Result<LocalPlan, Refused> {
        let request = Request::Atomic {
            rkey: slice.rkey,
            va: slice.va,
            op,
        };
        let original = self.execute_local(slice.srqn, &request, env)?;
        Ok(LocalPlan::Atomic { original })
    }

    /// Checks and executes an atomic or a FLUSH; returns what the memory held.
    fn execute_local<E: ResponderEnv>(
        &mut self,
        srqn: Option<Srqn>,
        request: &Request,
        env: &mut E,
    ) -> Result<u64, Refused> {
        self.check_atomic(request)?;
        self.check_responses()?;
        self.check_srqn(srqn, env)?;
        self.do_atomic(srqn, request, env)
    }

    /// Refuses requests that have a response where `max_dest_rd_atomic` is 0. One message at a time
    /// is executed here, so any other number is enough.
    fn check_responses(&self) -> Result<(), Refused> {
        match self.config.max_dest_rd_atomic {
            0 => Err(Refused::INVALID),
            _ => Ok(()),
        }
    }

    /// Checks the SRQ number and the memory that a READ or a WRITE names.
    fn check_slice<E: ResponderEnv>(
        &mut self,
        kind: AccessKind,
        slice: &RemoteSlice,
        env: &mut E,
    ) -> Result<(), Refused> {
        self.check_srqn(slice.srqn, env)?;
        self.check_range(kind, slice.srqn, slice.rkey, slice.va, slice.len, env)
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
