// SPDX-License-Identifier: GPL-2.0

//! A node: requester, responder, buffers, memory, queues.

use std::collections::{
    HashMap,
    VecDeque, //
};

use roce::key::Key;
use roce::number::Srqn;
use roce::psn::Psn;
use roce::requester::{
    Requester,
    RequesterEnv,
    SendCompletion,
    Wqe, //
};
use roce::responder::{
    AccessKind,
    AtomicOp,
    CompletionLost,
    Flush,
    QpEvent,
    ReceiveError,
    RecvCompletion,
    RecvOp,
    RemoteAccess,
    Resource,
    Responder,
    ResponderEnv,
    ScatterError, //
};
use roce::status::{
    Fault,
    WcStatus, //
};
use roce::wire::HeaderBuf;

use super::rng::content;
use super::workload::*;

/// Buffers and completions of the send side.
#[derive(Default)]
pub struct SendSide {
    pub work: Vec<Work>,
    /// Work requests posted so far; their indices are their `wr_id`s.
    pub posted: usize,
    /// By slot: index of the work request.
    pub slots: Vec<usize>,
    /// By work request: what was scattered.
    pub buffers: Vec<Vec<u8>>,
    pub locals: Vec<usize>,
    pub completions: Vec<SendCompletion>,
    pub fatal: u32,
    pub drained: u32,
    /// Others ask so much that this end may not.
    pub refuses_to_ask: bool,
}

impl RequesterEnv for SendSide {
    fn scatter(&mut self, slot: u32, offset: u32, data: &[u8]) -> Result<(), Fault> {
        let buffer = &mut self.buffers[self.slots[slot as usize]];
        let end = offset as usize + data.len();
        if buffer.len() < end {
            buffer.resize(end, 0);
        }
        buffer[offset as usize..end].copy_from_slice(data);
        Ok(())
    }

    fn complete(&mut self, completion: &SendCompletion) {
        self.completions.push(*completion);
    }

    fn local(&mut self, slot: u32) -> Result<(), WcStatus> {
        self.locals.push(self.slots[slot as usize]);
        Ok(())
    }

    fn fatal(&mut self) {
        self.fatal += 1;
    }

    fn sq_drained(&mut self) {
        self.drained += 1;
    }

    fn may_ask(&mut self) -> bool {
        !self.refuses_to_ask
    }
}

/// Memory, receive queues and what came out of them.
pub struct RecvSide {
    pub memory: Memory,
    pub srqs: u32,
    /// One queue for all, or one for each SRQ.
    pub posted: Vec<VecDeque<u32>>,
    pub current: Option<(Option<Srqn>, Vec<u8>)>,
    pub taken: u64,
    pub received: Vec<Received>,
    pub errors: Vec<RecvCompletion>,
    pub flushes: Vec<Flush>,
    pub events: Vec<QpEvent>,
    pub fatal: u32,
    pub replies: Vec<Vec<u8>>,
    /// What goes wrong on this host.
    pub trouble: Trouble,
}

/// Faults of the receiving host.
#[derive(Clone, Copy, Default)]
pub struct Trouble {
    /// Receives are malformed.
    pub receive: bool,
    /// Receives hold so many bytes.
    pub capacity: Option<usize>,
    /// The buffers of receives cannot be written.
    pub protection: bool,
    /// Keys cannot be invalidated.
    pub invalidate: bool,
    /// SRQs are there, but of another domain.
    pub domain: bool,
    /// Memory has gone since it was checked.
    pub write: bool,
    /// The receive queue is broken.
    pub broken: bool,
    /// The completion queue is full.
    pub overrun: bool,
}

impl RecvSide {
    pub fn new(srqs: u32) -> Self {
        Self {
            memory: Memory::new(),
            srqs,
            posted: (0..srqs.max(1)).map(|_| VecDeque::new()).collect(),
            current: None,
            taken: 0,
            received: Vec::new(),
            errors: Vec::new(),
            flushes: Vec::new(),
            events: Vec::new(),
            fatal: 0,
            replies: Vec::new(),
            trouble: Trouble::default(),
        }
    }

    fn queue(&mut self, srqn: Option<Srqn>) -> Option<&mut VecDeque<u32>> {
        match srqn {
            None => self.posted.get_mut(0),
            Some(n) => self
                .posted
                .get_mut(n.get().checked_sub(0x80_0000)? as usize),
        }
    }

    /// Reads remote memory for a READ response.
    pub fn fetch(&self, rkey: Key, va: u64, len: u32) -> Result<Vec<u8>, Fault> {
        if rkey.get() == RKEY_BACK {
            let at = va.wrapping_sub(VA_WRITE) as usize;
            let end = at.saturating_add(len as usize);
            return Ok(self.memory.write.get(at..end).ok_or(Fault)?.to_vec());
        }
        let at = va.wrapping_sub(VA_READ);
        if rkey.get() != RKEY_READ || at.saturating_add(u64::from(len)) > READ_LEN {
            return Err(Fault);
        }
        Ok((at..at + u64::from(len))
            .map(|a| content(READ_SEED, a))
            .collect())
    }
}

impl ResponderEnv for RecvSide {
    fn take_receive(&mut self, srqn: Option<Srqn>) -> Result<(), ReceiveError> {
        assert!(self.current.is_none(), "two current receives");
        let trouble = self.trouble;
        let queue = self.queue(srqn).ok_or(ReceiveError::InvalidSrq)?;
        if trouble.domain {
            return Err(ReceiveError::WrongDomain);
        }
        if trouble.broken {
            return Err(ReceiveError::Broken);
        }
        queue.pop_front().ok_or(ReceiveError::Empty)?;
        self.taken += 1;
        self.current = Some((srqn, Vec::new()));
        if trouble.receive {
            return Err(ReceiveError::Fault);
        }
        Ok(())
    }

    fn can_complete(&mut self) -> bool {
        !self.trouble.overrun
    }

    fn check_xrc(&mut self, srqn: Srqn) -> Result<(), ReceiveError> {
        self.queue(Some(srqn)).ok_or(ReceiveError::InvalidSrq)?;
        if self.trouble.domain {
            return Err(ReceiveError::WrongDomain);
        }
        Ok(())
    }

    fn scatter(&mut self, offset: u32, data: &[u8]) -> Result<(), ScatterError> {
        if self.trouble.protection {
            return Err(ScatterError::Protection);
        }
        let end = offset as usize + data.len();
        if self.trouble.capacity.is_some_and(|c| end > c) {
            return Err(ScatterError::TooLong);
        }
        let (_, buffer) = self.current.as_mut().expect("no current receive");
        buffer.resize(offset as usize, 0);
        buffer.extend_from_slice(data);
        Ok(())
    }

    fn complete_receive(&mut self, c: &RecvCompletion) -> Result<(), CompletionLost> {
        if self.trouble.overrun && c.status == WcStatus::Success {
            return Err(CompletionLost);
        }
        let (srqn, mut data) = self.current.take().expect("no current receive");
        // UC: behind the message there may be remains of a broken one.
        data.truncate(match c.op {
            RecvOp::Send => c.byte_len as usize,
            RecvOp::WriteImm => 0,
        });
        if c.status != WcStatus::Success {
            self.errors.push(*c);
            return Ok(());
        }
        self.received.push(Received {
            srqn,
            is_write: c.op == RecvOp::WriteImm,
            len: c.byte_len,
            data,
            imm: c.imm,
            invalidated: c.invalidated,
            solicited: c.solicited,
        });
        Ok(())
    }

    fn check_remote(&mut self, a: &RemoteAccess) -> Result<(), Fault> {
        let (rkey, base, size) = match a.kind {
            AccessKind::Read if a.rkey.get() == RKEY_BACK => {
                (RKEY_BACK, VA_WRITE, WRITE_LEN as u64)
            }
            AccessKind::Read => (RKEY_READ, VA_READ, READ_LEN),
            AccessKind::Write => (RKEY_WRITE, VA_WRITE, WRITE_LEN as u64),
        };
        let at = a.va.wrapping_sub(base);
        if a.rkey.get() == RKEY_ATOMIC && a.len == 8 {
            return Ok(());
        }
        if a.rkey.get() != rkey || at.saturating_add(u64::from(a.len)) > size {
            return Err(Fault);
        }
        Ok(())
    }

    fn remote_write(
        &mut self,
        _srqn: Option<Srqn>,
        rkey: Key,
        va: u64,
        data: &[u8],
    ) -> Result<(), Fault> {
        let at = va.wrapping_sub(VA_WRITE);
        if self.trouble.write
            || rkey.get() != RKEY_WRITE
            || at.saturating_add(data.len() as u64) > WRITE_LEN as u64
        {
            return Err(Fault);
        }
        self.memory.write[at as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn atomic(
        &mut self,
        _srqn: Option<Srqn>,
        rkey: Key,
        va: u64,
        op: AtomicOp,
    ) -> Result<u64, Fault> {
        let cell = va.wrapping_sub(VA_ATOMIC) / 8;
        if rkey.get() != RKEY_ATOMIC || cell >= ATOMICS as u64 {
            return Err(Fault);
        }
        let cell = &mut self.memory.atomic[cell as usize];
        let before = *cell;
        *cell = match op {
            AtomicOp::CmpSwap { compare, swap } if compare == before => swap,
            AtomicOp::CmpSwap { .. } => before,
            AtomicOp::FetchAdd { add } => before.wrapping_add(add),
            AtomicOp::Write { value } => value,
        };
        Ok(before)
    }

    fn flush(&mut self, _srqn: Option<Srqn>, flush: &Flush) -> Result<(), Fault> {
        let at = flush.va.wrapping_sub(VA_WRITE);
        let is_inside = at.saturating_add(u64::from(flush.len)) <= WRITE_LEN as u64;
        if flush.rkey.get() != RKEY_WRITE || !(is_inside || flush.whole_region) {
            return Err(Fault);
        }
        self.flushes.push(*flush);
        Ok(())
    }

    fn invalidate(&mut self, _rkey: Key) -> Result<(), Fault> {
        if self.trouble.invalidate {
            return Err(Fault);
        }
        Ok(())
    }

    fn reply(&mut self, header: &HeaderBuf) {
        self.replies.push(header.as_slice().to_vec());
    }

    fn event(&mut self, event: QpEvent) {
        self.events.push(event);
    }

    fn fatal(&mut self) {
        self.fatal += 1;
    }
}

/// Both sides of a QP.
pub struct Node {
    pub requester: Requester<Vec<Wqe>>,
    pub responder: Responder<Vec<Resource>>,
    pub send: SendSide,
    pub recv: RecvSide,
    /// Requests that came early.
    pub kept: HashMap<Psn, Vec<u8>>,
    /// When the application posts receives next, and how many in all.
    pub next_post: u64,
    pub to_post: u64,
}

impl Node {
    pub fn new(depth: usize, resources: usize, srqs: u32, work: Vec<Work>) -> Self {
        let count = work.len();
        Self {
            requester: Requester::new(vec![Wqe::default(); depth]),
            responder: Responder::new(vec![Resource::default(); resources]),
            send: SendSide {
                work,
                slots: vec![0; depth],
                buffers: vec![Vec::new(); count],
                ..SendSide::default()
            },
            recv: RecvSide::new(srqs),
            kept: HashMap::new(),
            next_post: 0,
            to_post: 0,
        }
    }

    /// Posts work requests while there is room, at most `max`.
    pub fn post_sends(&mut self, max: usize) {
        for _ in 0..max {
            let Some(work) = self.send.work.get(self.send.posted) else {
                return;
            };
            match self.requester.push(work.wr) {
                Ok(slot) => {
                    self.send.slots[slot as usize] = self.send.posted;
                    self.send.posted += 1;
                }
                Err(_) => return,
            }
        }
    }
}
