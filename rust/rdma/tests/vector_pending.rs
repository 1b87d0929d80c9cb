// SPDX-License-Identifier: GPL-2.0

//! Walks through every interleaving of those who raise events of completion queues with the handler of
//! the vector that delivers them.
//!
//! A host test: `rustc --edition 2021 --test vector_pending.rs && ./vector_pending`. The transitions of
//! the count are the kernel's own; the steps of `CqHandle::completion` and of `Vector::handle` are
//! retold here, one atomic operation or critical section a step.

#[path = "../vector/pending.rs"]
mod pending;

use pending::Pending;
use std::collections::HashSet;

/// As `BATCH` of the kernel, but smaller, so that the bound is met.
const BATCH: u8 = 2;
/// Completion queues of the vector.
const SOURCES: usize = 2;

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
    Interrupt,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    pending: [Pending; SOURCES],
    raised: [u8; SOURCES],
    delivered: [u8; SOURCES],
    queue: Vec<usize>,
    interrupt: bool,
    handler: Handler,
    raisers: Vec<Raiser>,
}

impl State {
    fn new(raisers: &[usize]) -> Self {
        Self {
            pending: [Pending(0); SOURCES],
            raised: [0; SOURCES],
            delivered: [0; SOURCES],
            queue: Vec::new(),
            interrupt: false,
            handler: Handler::Idle,
            raisers: raisers.iter().map(|s| Raiser::Count(*s)).collect(),
        }
    }

    fn push(&mut self, source: usize) {
        assert!(!self.queue.contains(&source), "queued twice: {self:?}");
        self.queue.push(source);
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
                s.push(source);
                Raiser::Interrupt
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
                s.interrupt = false;
                Handler::Pop(0)
            }
            Handler::Pop(BATCH) => Handler::LookAgain,
            Handler::Pop(n) => match s.queue.is_empty() {
                true => Handler::Idle,
                false => Handler::Call(n, s.queue.remove(0)),
            },
            Handler::Call(n, source) => {
                s.delivered[source] += 1;
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
                s.push(source);
                Handler::Pop(n)
            }
            Handler::LookAgain if self.queue.is_empty() => Handler::Idle,
            Handler::LookAgain => Handler::Interrupt,
            Handler::Interrupt => {
                s.interrupt = true;
                Handler::Idle
            }
        };
        Some(s)
    }

    fn check(&self) {
        for i in 0..SOURCES {
            assert!(self.delivered[i] <= self.raised[i], "invented: {self:?}");
        }
    }

    fn check_end(&self) {
        assert_eq!(self.delivered, self.raised, "lost: {self:?}");
        assert!(self.queue.is_empty(), "left over: {self:?}");
        assert_eq!(self.pending, [Pending(0); SOURCES], "left over: {self:?}");
    }
}

/// Visits all states; returns how many there are.
fn explore(raisers: &[usize]) -> usize {
    let first = State::new(raisers);
    let mut seen = HashSet::from([first.clone()]);
    let mut todo = vec![first];
    while let Some(state) = todo.pop() {
        state.check();
        let moves: Vec<State> = (0..raisers.len())
            .filter_map(|i| state.raiser(i))
            .chain(state.handler())
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
    seen.len()
}

#[test]
fn each_event_is_delivered_once() {
    assert!(explore(&[0, 0, 0, 0]) > 100);
    assert!(explore(&[0, 0, 1, 1]) > 1000);
    assert!(explore(&[0, 0, 0, 1, 1]) > 1000);
}

#[test]
fn a_full_count_stays_full() {
    let full = Pending(i32::MAX);
    assert_eq!(full.raise(), (full, false));
    assert_eq!(full.deliver(), (Pending(i32::MAX - 1), true));
    assert_eq!(Pending(1).deliver(), (Pending(0), false));
}
