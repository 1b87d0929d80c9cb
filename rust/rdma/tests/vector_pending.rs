// SPDX-License-Identifier: GPL-2.0

//! Walks through every interleaving of contexts that raise events of completion queues with the
//! handler of the vector that delivers these events. Each event must be delivered once, each queue
//! must be served in turn, and the handler must deliver only a limited number of events before
//! other work gets the CPU.
//!
//! This is a host test: `cargo test -p rdma-models --test vector_pending`. The
//! transitions of the count and of the call are the code of the module. The steps of
//! `CqHandle::completion` and of `Vector::handle` are modelled here, with one atomic operation or
//! critical section per step.

#[path = "../verbs/vector/pending.rs"]
mod pending;

use pending::{
    Called,
    Pending, //
};
use std::collections::HashSet;

/// As `BATCH` of the kernel, but smaller, so that the bound is met.
const BATCH: u8 = 2;
/// Completion queues of the vector.
const SOURCES: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Raiser {
    Count(usize),
    Push(usize),
    Interrupt,
    End,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Handler {
    /// Waits for the interrupt.
    Idle,
    Pop(u8),
    Call(u8, usize),
    Count(u8, usize),
    Push(u8, usize),
    LookAgain,
    Later,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    pending: [Pending; SOURCES],
    raised: [u8; SOURCES],
    delivered: [u8; SOURCES],
    queue: Vec<usize>,
    called: Called,
    interrupt: bool,
    /// The handler has asked for a call from softirq.
    later: bool,
    handler: Handler,
    raisers: Vec<Raiser>,
    /// Calls of users since the handler began.
    calls: u8,
    /// `since[a][b]`: calls of the user of `b` while `a` waits in the queue.
    since: [[u8; SOURCES]; SOURCES],
}

impl State {
    fn new(raisers: &[usize]) -> Self {
        Self {
            pending: [Pending(0); SOURCES],
            raised: [0; SOURCES],
            delivered: [0; SOURCES],
            queue: Vec::new(),
            called: Called(false),
            interrupt: false,
            later: false,
            handler: Handler::Idle,
            raisers: raisers.iter().map(|s| Raiser::Count(*s)).collect(),
            calls: 0,
            since: [[0; SOURCES]; SOURCES],
        }
    }

    /// Queues a source; whether the handler has to be called.
    fn push(&mut self, source: usize) -> bool {
        assert!(!self.queue.contains(&source), "queued twice: {self:?}");
        self.queue.push(source);
        let (called, call) = self.called.queued();
        self.called = called;
        call
    }

    fn raiser(&self, i: usize) -> Option<Self> {
        let mut s = self.clone();
        s.raisers[i] = match self.raisers[i] {
            Raiser::Count(source) => {
                let (next, push) = s.pending[source].raise();
                s.pending[source] = next;
                s.raised[source] += 1;
                if push {
                    Raiser::Push(source)
                } else {
                    Raiser::End
                }
            }
            Raiser::Push(source) => {
                if s.push(source) {
                    Raiser::Interrupt
                } else {
                    Raiser::End
                }
            }
            Raiser::Interrupt => {
                s.interrupt = true;
                Raiser::End
            }
            Raiser::End => return None,
        };
        Some(s)
    }

    fn handler(&self) -> Option<Self> {
        let mut s = self.clone();
        s.handler = match self.handler {
            Handler::Idle => {
                if !self.interrupt {
                    return None;
                }
                assert!(!self.later, "it did not make way: {self:?}");
                s.interrupt = false;
                s.calls = 0;
                Handler::Pop(0)
            }
            Handler::Pop(BATCH) => Handler::LookAgain,
            Handler::Pop(n) => match s.queue.is_empty() {
                true => {
                    s.called = s.called.emptied();
                    Handler::Idle
                }
                false => {
                    let source = s.queue.remove(0);
                    s.since[source] = [0; SOURCES];
                    Handler::Call(n, source)
                }
            },
            Handler::Call(n, source) => {
                s.delivered[source] += 1;
                s.calls += 1;
                for waiting in &self.queue {
                    s.since[*waiting][source] += 1;
                }
                Handler::Count(n, source)
            }
            Handler::Count(n, source) => {
                let (next, more) = s.pending[source].deliver();
                s.pending[source] = next;
                if more {
                    Handler::Push(n + 1, source)
                } else {
                    Handler::Pop(n + 1)
                }
            }
            Handler::Push(n, source) => {
                assert!(!s.push(source), "the handler calls itself: {self:?}");
                Handler::Pop(n)
            }
            Handler::LookAgain if self.queue.is_empty() => {
                s.called = s.called.emptied();
                Handler::Idle
            }
            Handler::LookAgain => Handler::Later,
            Handler::Later => {
                s.later = true;
                Handler::Idle
            }
        };
        Some(s)
    }

    /// The work item in softirq.
    fn softirq(&self) -> Option<Self> {
        let mut s = self.clone();
        s.later = false;
        s.interrupt = true;
        self.later.then_some(s)
    }

    fn check(&self) {
        for i in 0..SOURCES {
            assert!(self.delivered[i] <= self.raised[i], "invented: {self:?}");
        }
        assert!(self.calls <= BATCH, "too much at a time: {self:?}");
        for (waiting, since) in self.since.iter().enumerate() {
            assert!(
                since.iter().all(|calls| *calls <= 1),
                "{waiting} was passed over: {self:?}"
            );
        }
    }

    fn check_end(&self) {
        assert_eq!(self.delivered, self.raised, "lost: {self:?}");
        assert!(self.queue.is_empty(), "left over: {self:?}");
        assert_eq!(self.pending, [Pending(0); SOURCES], "left over: {self:?}");
        assert_eq!(self.called, Called(false), "nobody will call: {self:?}");
    }
}

/// Visits all states; returns how many there are, and in how many the handler makes way.
fn explore(raisers: &[usize]) -> (usize, usize) {
    let first = State::new(raisers);
    let mut seen = HashSet::from([first.clone()]);
    let mut todo = vec![first];
    while let Some(state) = todo.pop() {
        state.check();
        let moves: Vec<State> = (0..raisers.len())
            .filter_map(|i| state.raiser(i))
            .chain(state.handler())
            .chain(state.softirq())
            .collect();
        if moves.is_empty() {
            state.check_end();
        }
        for next in moves {
            if seen.insert(next.clone()) {
                todo.push(next);
            }
        }
    }
    let later = seen.iter().filter(|s| s.later).count();
    (seen.len(), later)
}

#[test]
fn each_event_is_delivered_once_and_in_turn() {
    for raisers in [
        &[0, 0, 0, 0][..],
        &[0, 0, 1, 1],
        &[0, 0, 0, 1, 1],
        &[0, 0, 0, 1, 2],
        &[0, 0, 1, 1, 2],
    ] {
        let (states, later) = explore(raisers);
        println!("{raisers:?}: {states} states, {later} in which it has made way");
        assert!(states > 100 && later > 0);
    }
}

#[test]
fn a_full_count_stays_full() {
    let full = Pending(i32::MAX);
    assert_eq!(full.raise(), (full, false));
    assert_eq!(full.deliver(), (Pending(i32::MAX - 1), true));
    assert_eq!(Pending(1).deliver(), (Pending(0), false));
}
