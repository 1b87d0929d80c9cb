// SPDX-License-Identifier: GPL-2.0

//! The environment of the state machines under fuzzing.

use roce::key::Key;
use roce::number::Srqn;
use roce::opcode::Family;
use roce::psn::Psn;
use roce::requester::{
    RequesterEnv,
    SendCompletion, //
};
use roce::responder::{
    AccessKind,
    AtomicOp,
    CompletionLost,
    Flush,
    QpEvent,
    ReceiveError,
    RecvCompletion,
    RemoteAccess,
    ResponderEnv,
    ScatterError, //
};
use roce::status::{
    Fault,
    WcStatus, //
};
use roce::wire::{
    HeaderBuf,
    Packet,
    Syndrome, //
};

/// What was met on the way: inputs that meet something new are kept.
#[derive(Default)]
pub struct Trace(pub u128);

impl Trace {
    pub(super) fn note(&mut self, what: u32) {
        self.0 |= 1 << (what % 128);
    }
}

/// An environment that refuses as the input says and checks what it is told.
pub(super) struct Env<'a> {
    pub(super) refusals: &'a [u8],
    pub(super) next_refusal: usize,
    pub(super) trace: Trace,
    // Requester.
    pub(super) lengths: Vec<u32>,
    pub(super) queue: std::collections::VecDeque<(u32, u64)>,
    pub(super) send_fatal: u32,
    // Responder.
    pub(super) current: Option<u64>,
    pub(super) checked: Vec<(AccessKind, Key, u64, u32)>,
    pub(super) recv_fatal: u32,
    /// What was acknowledged.
    pub(super) acks: Vec<Psn>,
    pub(super) calls: u64,
}

impl Env<'_> {
    fn refuses(&mut self) -> u8 {
        self.calls += 1;
        if self.refusals.is_empty() {
            return 0;
        }
        self.next_refusal = (self.next_refusal + 1) % self.refusals.len();
        self.refusals[self.next_refusal]
    }

    pub(super) fn note_ack(&mut self, p: &Packet<'_>) {
        let is_ack = p
            .aeth
            .is_some_and(|a| matches!(a.syndrome, Syndrome::Ack(_)));
        if is_ack && p.opcode.family() == Family::Ack {
            self.acks.push(p.bth.psn);
        }
    }

    pub(super) fn is_checked(&self, kind: AccessKind, rkey: Key, va: u64, len: u64) -> bool {
        self.checked.iter().any(|(k, key, base, size)| {
            let at = va.wrapping_sub(*base);
            *k == kind && *key == rkey && at.saturating_add(len) <= u64::from(*size)
        })
    }
}

impl RequesterEnv for Env<'_> {
    fn scatter(&mut self, slot: u32, offset: u32, data: &[u8]) -> Result<(), Fault> {
        let end = u64::from(offset) + data.len() as u64;
        assert!(
            end <= u64::from(self.lengths[slot as usize]),
            "scatter beyond the work request"
        );
        if self.refuses() & 0x0f == 1 {
            return Err(Fault);
        }
        Ok(())
    }

    fn complete(&mut self, c: &SendCompletion) {
        let (slot, id) = self.queue.pop_front().expect("completion of nothing");
        assert_eq!((c.slot, c.wr_id), (slot, id), "completions out of order");
        self.trace.note(c.status as u32);
    }

    fn local(&mut self, _slot: u32) -> Result<(), WcStatus> {
        if self.refuses() & 0x0f == 2 {
            return Err(WcStatus::MwBindErr);
        }
        Ok(())
    }

    fn fatal(&mut self) {
        self.send_fatal += 1;
        self.trace.note(32);
    }

    fn sq_drained(&mut self) {
        self.trace.note(33);
    }
}

impl ResponderEnv for Env<'_> {
    fn take_receive(&mut self, _srqn: Option<Srqn>) -> Result<(), ReceiveError> {
        assert!(self.current.is_none(), "two current receives");
        self.trace.note(40);
        match self.refuses() & 0x1f {
            3 => Err(ReceiveError::Empty),
            4 => Err(ReceiveError::InvalidSrq),
            5 => Err(ReceiveError::WrongDomain),
            14 => Err(ReceiveError::Broken),
            6 => {
                self.current = Some(0);
                Err(ReceiveError::Fault)
            }
            _ => {
                self.current = Some(0);
                Ok(())
            }
        }
    }

    fn can_complete(&mut self) -> bool {
        assert!(self.current.is_some(), "no current receive");
        self.trace.note(58);
        self.refuses() & 0x1f != 15
    }

    fn check_xrc(&mut self, srqn: Srqn) -> Result<(), ReceiveError> {
        assert!(srqn.get() >> 24 == 0);
        self.trace.note(41);
        if self.refuses() & 0x1f == 7 {
            return Err(ReceiveError::InvalidSrq);
        }
        Ok(())
    }

    fn scatter(&mut self, offset: u32, data: &[u8]) -> Result<(), ScatterError> {
        let at = self.current.expect("no current receive");
        // The last packet comes again when its message could not be completed.
        assert!(u64::from(offset) <= at, "bytes left out");
        self.current = Some(u64::from(offset) + data.len() as u64);
        assert!(self.current <= Some(0x8000_0000));
        self.trace.note(42);
        match self.refuses() & 0x3f {
            8 => Err(ScatterError::TooLong),
            9 => Err(ScatterError::Protection),
            _ => Ok(()),
        }
    }

    fn complete_receive(&mut self, c: &RecvCompletion) -> Result<(), CompletionLost> {
        assert!(self.current.is_some(), "no current receive");
        if c.status == WcStatus::Success && self.refuses() & 0x1f == 15 {
            return Err(CompletionLost);
        }
        self.current = None;
        self.trace.note(64 + c.status as u32);
        Ok(())
    }

    fn check_remote(&mut self, a: &RemoteAccess) -> Result<(), Fault> {
        self.trace.note(43);
        if self.refuses() & 0x1f == 10 {
            return Err(Fault);
        }
        self.checked.push((a.kind, a.rkey, a.va, a.len));
        Ok(())
    }

    fn remote_write(
        &mut self,
        _srqn: Option<Srqn>,
        rkey: Key,
        va: u64,
        data: &[u8],
    ) -> Result<(), Fault> {
        assert!(
            self.is_checked(AccessKind::Write, rkey, va, data.len() as u64),
            "write to what was not checked"
        );
        self.trace.note(44);
        if self.refuses() & 0x1f == 11 {
            return Err(Fault);
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        _srqn: Option<Srqn>,
        _rkey: Key,
        va: u64,
        _op: AtomicOp,
    ) -> Result<u64, Fault> {
        assert_eq!(va & 7, 0, "unaligned atomic");
        self.trace.note(45);
        if self.refuses() & 0x1f == 12 {
            return Err(Fault);
        }
        Ok(va)
    }

    fn flush(&mut self, _srqn: Option<Srqn>, _flush: &Flush) -> Result<(), Fault> {
        self.trace.note(48);
        if self.refuses() & 0x1f == 10 {
            return Err(Fault);
        }
        Ok(())
    }

    fn invalidate(&mut self, _rkey: Key) -> Result<(), Fault> {
        self.trace.note(46);
        if self.refuses() & 0x1f == 13 {
            return Err(Fault);
        }
        Ok(())
    }

    fn reply(&mut self, header: &HeaderBuf) {
        let p = Packet::parse(header.as_slice()).expect("malformed reply");
        assert!(p.opcode.is_response());
        self.note_ack(&p);
        self.trace.note(47);
        if let Some(a) = p.aeth {
            self.trace.note(96 + u32::from(a.syndrome.to_byte() >> 5));
        }
    }

    fn event(&mut self, event: QpEvent) {
        self.trace.note(104 + event as u32);
    }

    fn fatal(&mut self) {
        self.recv_fatal += 1;
        self.trace.note(48);
    }
}
