// SPDX-License-Identifier: GPL-2.0

//! The environment of the responder in the kernel: receives, memory, completions, responses,
//! events.

use super::addressing::{
    remote_pd,
    with_srq, //
};
use super::io::RecvIo;
use crate::cq::Overrun;
use crate::prelude::*;
use crate::tm::receive::Source;
use crate::tx::{
    self,
    Path, //
};
use crate::{
    access,
    mr,
    wr, //
};
use rdma::mr::AccessFlags;
use rdma::work;
use roce::responder::{
    AtomicOp,
    CompletionLost,
    Flush,
    QpEvent as ResponderEvent,
    ReceiveError,
    RecvCompletion,
    RecvOp,
    RemoteAccess,
    ResponderEnv,
    ScatterError, //
};
use roce::wire::HeaderBuf;

/// What the responder sees of the kernel.
pub(crate) struct RecvEnv<'a> {
    pub(crate) qp: &'a WireQp,
    pub(crate) path: &'a mut Path,
    pub(crate) io: &'a mut RecvIo,
    /// The message that may begin now, for a tag-matching queue.
    pub(crate) source: Option<Source<'a>>,
    /// Who asks, if it is of this host: its own run is what executes the request.
    pub(crate) sender: Option<&'a WireQp>,
    /// Address and length of what is left of its FLUSH, the rest of which an earlier run has done.
    pub(crate) flush_rest: Option<(u64, u64)>,
    /// The connection of `qp` was ended in the midst of a request: nobody is told anything.
    pub(crate) is_cut_off: bool,
}

impl RecvEnv<'_> {
    /// Runs `f` on the memory that a remote key names.
    pub(crate) fn with_remote<R>(
        &self,
        srqn: Option<Srqn>,
        rkey: Key,
        va: u64,
        len: u64,
        access: AccessFlags,
        f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let pd = remote_pd(self.qp, srqn)?;
        mr::with_remote(rkey, pd, self.qp.qpn, va, len, access, f)
    }
}

impl RecvEnv<'_> {
    /// Nobody is told of a fault that came of a reset, which does not wait for memory.
    fn noted<T, E>(&mut self, result: Result<T, E>) -> Result<T, E> {
        self.is_cut_off |= result.is_err() && self.qp.state() == QpState::Reset;
        result
    }
}

type WireFault = roce::status::Fault;

fn wire_fault(_: Fault) -> WireFault {
    roce::status::Fault
}

impl ResponderEnv for RecvEnv<'_> {
    fn take_receive(&mut self, srqn: Option<Srqn>) -> Result<(), ReceiveError> {
        match &self.source {
            Some(source) => self.io.take_tagged(self.qp, source),
            None => self.io.take(self.qp, srqn),
        }
    }

    fn can_complete(&mut self) -> bool {
        self.io.current.can_complete(self.qp)
    }

    fn check_xrc(&mut self, srqn: Srqn) -> Result<(), ReceiveError> {
        with_srq(self.qp, srqn, |_| ())
    }

    fn scatter(&mut self, offset: u32, data: &[u8]) -> Result<(), ScatterError> {
        let current = &self.io.current;
        let stored = current
            .with_buffers(|| match &current.tagged {
                Some(tagged) => tagged.scatter(current.pd, current.list(), offset, data),
                None => access::scatter(current.pd, current.list(), offset, data),
            })
            .unwrap_or(Err(access::ScatterError::Protection));
        self.noted(stored).map_err(|e| match e {
            access::ScatterError::TooLong => ScatterError::TooLong,
            access::ScatterError::Protection => ScatterError::Protection,
        })
    }

    fn complete_receive(&mut self, done: &RecvCompletion) -> Result<(), CompletionLost> {
        let mut completion = recv_completion(done);
        if self.is_cut_off {
            completion.status = WcStatus::WrFlushErr;
        }
        let is_success = completion.status == WcStatus::Success;
        match self.io.finish(self.qp, completion) {
            Err(Overrun) if is_success => Err(CompletionLost),
            // The QP ends anyway.
            _ => Ok(()),
        }
    }

    fn check_remote(&mut self, a: &RemoteAccess) -> Result<(), WireFault> {
        let access = mr::access_of(a.kind);
        let len = u64::from(a.len);
        self.with_remote(a.srqn, a.rkey, a.va, len, access, |_, _| Ok(()))
            .map_err(wire_fault)
    }

    fn remote_write(
        &mut self,
        srqn: Option<Srqn>,
        rkey: Key,
        va: u64,
        data: &[u8],
    ) -> Result<(), WireFault> {
        let written = self.with_remote(
            srqn,
            rkey,
            va,
            data.len() as u64,
            mr::REMOTE_WRITE,
            |memory, at| memory.write(at, data),
        );
        self.noted(written).map_err(wire_fault)
    }

    fn atomic(
        &mut self,
        srqn: Option<Srqn>,
        rkey: Key,
        va: u64,
        op: AtomicOp,
    ) -> Result<u64, WireFault> {
        let access = match op {
            AtomicOp::Write { .. } => mr::REMOTE_WRITE,
            AtomicOp::CmpSwap { .. } | AtomicOp::FetchAdd { .. } => mr::REMOTE_ATOMIC,
        };
        let done = self.with_remote(srqn, rkey, va, 8, access, |memory, at| match op {
            AtomicOp::CmpSwap { compare, swap } => memory.cmp_swap(at, compare, swap),
            AtomicOp::FetchAdd { add } => memory.fetch_add(at, add),
            AtomicOp::Write { value } => memory.write_u64(at, value).map(|()| 0),
        });
        // The wait for memory was cut short, by the reset of a sender on this host or for others to
        // have their turn: the run of the sender gives the message up, or asks again. This queue
        // pair is not at fault.
        let is_reset = self.sender.is_some_and(|s| s.state() == QpState::Reset);
        if done.is_err() && (is_reset || work::is_paused()) {
            return Ok(0);
        }
        self.noted(done).map_err(wire_fault)
    }

    fn flush(&mut self, srqn: Option<Srqn>, flush: &Flush) -> Result<(), WireFault> {
        let (qp, sender, rest) = (self.qp, self.sender, &mut self.flush_rest);
        let done = remote_pd(qp, srqn).and_then(|pd| mr::flush(qp, sender, pd, flush, rest));
        self.is_cut_off = done.is_err() && !self.qp.state().is_connected();
        done.map_err(wire_fault)
    }

    fn invalidate(&mut self, rkey: Key) -> Result<(), WireFault> {
        mr::remote_invalidate(self.qp, rkey).map_err(wire_fault)
    }

    fn reply(&mut self, header: &HeaderBuf) {
        if self.is_cut_off {
            return;
        }
        let Ok(route) = self.path.route(self.qp.device.tunnel()) else {
            return;
        };
        let (sender, header, alone) = (&self.qp.sender, header.as_slice(), Joining::Alone);
        match tx::build(route, sender, header, 0, 0, alone, |_| Ok(())) {
            Ok(skb) => {
                self.io.replies.push(skb, alone);
                self.io.reply_count = self.io.reply_count.wrapping_add(1);
            }
            Err(_) => self.qp.device.count(Counter::SendError, 1),
        }
    }

    fn event(&mut self, event: ResponderEvent) {
        if self.is_cut_off {
            return;
        }
        match event {
            // News only to a QP that waits to be told that it may send.
            ResponderEvent::CommEst if self.qp.state() == QpState::Rtr => {
                self.qp.event(QpEvent::CommunicationEstablished)
            }
            ResponderEvent::CommEst => {}
            ResponderEvent::AccessErr => self.qp.event(QpEvent::AccessError),
            ResponderEvent::ReqErr => self.qp.event(QpEvent::RequestError),
            ResponderEvent::Fatal => self.qp.event(QpEvent::Fatal),
        }
    }

    fn fatal(&mut self) {
        self.io.failed |= !self.is_cut_off;
    }
}

/// The completion queue's view of a finished receive.
fn recv_completion(done: &RecvCompletion) -> Completion {
    let mut flags = 0;
    let mut imm = 0;
    if let Some(data) = done.imm {
        flags |= wr::WC_WITH_IMM;
        imm = data;
    }
    if let Some(rkey) = done.invalidated {
        flags |= wr::WC_WITH_INV;
        imm = rkey.get();
    }
    Completion {
        status: done.status,
        opcode: match done.op {
            RecvOp::Send => wr::WC_RECV,
            RecvOp::WriteImm => wr::WC_RECV_RDMA_WITH_IMM,
        },
        byte_len: done.byte_len,
        imm,
        wc_flags: flags,
        solicited: done.solicited,
        ..Completion::default()
    }
}
