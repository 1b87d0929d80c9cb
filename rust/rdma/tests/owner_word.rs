// SPDX-License-Identifier: GPL-2.0

//! Walks through every interleaving of a few users of an `Owner` and checks the guarantees of this
//! type.
//!
//! This is a host test: `cargo test -p rdma-models --test owner_word`. The transitions are
//! the code of the module. The steps of `kick`, `lock` and `try_lock` are modelled here, with one
//! atomic operation per step.

#[path = "../services/owner/word.rs"]
#[expect(dead_code, reason = "the model does not need all of it")]
mod word;

use std::collections::HashSet;
use word::{
    Run,
    Word,
    OWNED, //
};

/// As `MAX_ROUNDS` of the kernel, but smaller, so that the bound is met.
const ROUNDS: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    /// New work appears, for instance a packet in the backlog.
    Produce,
    Mark,
    Take(u8),
    /// `take` failed: is it because nothing is left?
    LookIdle,
    Run(u8),
    Release(u8),
    ReleaseMore,
    EnterWait,
    TakeWaited,
    TryTake,
    Locked,
    Unlock,
    End,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Thread {
    step: Step,
    /// Runs that will end with "again" before one ends with "idle".
    more: u8,
}

const fn kicker(more: u8) -> Thread {
    Thread {
        step: Step::Produce,
        more,
    }
}

const LOCKER: Thread = Thread {
    step: Step::EnterWait,
    more: 0,
};

const TRYER: Thread = Thread {
    step: Step::TryTake,
    more: 0,
};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State<const N: usize> {
    word: Word,
    produced: u8,
    served: u8,
    inside: u8,
    threads: [Thread; N],
}

impl<const N: usize> State<N> {
    fn new(threads: [Thread; N]) -> Self {
        Self {
            word: Word(0),
            produced: 0,
            served: 0,
            inside: 0,
            threads,
        }
    }

    /// What follows if thread `i` makes one step; `None` if it has ended or sleeps.
    fn step(mut self, i: usize) -> Option<Self> {
        let thread = self.threads[i];
        let mut next = thread;
        next.step = match thread.step {
            Step::Produce => {
                self.produced += 1;
                Step::Mark
            }
            Step::Mark => {
                self.word = self.word.mark();
                Step::Take(0)
            }
            // The caller's work item kicks again.
            Step::Take(ROUNDS) => Step::Mark,
            Step::Take(round) => match self.word.take() {
                Some(word) => {
                    self.word = word;
                    self.inside += 1;
                    Step::Run(round)
                }
                None => Step::LookIdle,
            },
            Step::LookIdle => Step::End,
            Step::Run(round) => {
                if thread.more > 0 {
                    next.more -= 1;
                    Step::ReleaseMore
                } else {
                    self.served = self.produced;
                    Step::Release(round)
                }
            }
            Step::Release(round) => {
                self.inside -= 1;
                self.word = self.word.release(Run::Idle);
                if self.word.is_marked() {
                    Step::Take(round + 1)
                } else {
                    Step::End
                }
            }
            Step::ReleaseMore => {
                self.inside -= 1;
                self.word = self.word.release(Run::Again);
                Step::Mark
            }
            Step::EnterWait => {
                self.word = self.word.enter_wait();
                Step::TakeWaited
            }
            Step::TakeWaited => match self.word.take_waited() {
                Some(word) => {
                    self.word = word;
                    self.inside += 1;
                    Step::Locked
                }
                // Sleeps until the bit that it waits for is clear.
                None => {
                    assert_ne!(self.word.0 & OWNED, 0);
                    return None;
                }
            },
            Step::TryTake => match self.word.try_take() {
                Some(word) => {
                    self.word = word;
                    self.inside += 1;
                    Step::Locked
                }
                None => Step::End,
            },
            Step::Locked => Step::Unlock,
            Step::Unlock => {
                self.inside -= 1;
                self.word = self.word.release(Run::Idle);
                // Whoever drops a guard kicks.
                Step::Mark
            }
            Step::End => return None,
        };
        self.threads[i] = next;
        Some(self)
    }

    fn check(&self) {
        assert!(self.inside <= 1, "two owners: {self:?}");
        assert_eq!(self.inside == 1, self.word.is_owned(), "{self:?}");
    }

    fn check_end(&self) {
        assert!(
            self.threads.iter().all(|t| t.step == Step::End),
            "stuck: {self:?}"
        );
        assert_eq!(self.word, Word(0), "left over: {self:?}");
        assert_eq!(self.served, self.produced, "a kick was lost: {self:?}");
    }
}

/// Visits all states; returns how many there are.
fn explore<const N: usize>(threads: [Thread; N]) -> usize {
    let first = State::new(threads);
    let mut seen = HashSet::from([first]);
    let mut todo = vec![first];
    while let Some(state) = todo.pop() {
        state.check();
        let mut moved = false;
        for i in 0..N {
            if let Some(next) = state.step(i) {
                moved = true;
                if seen.insert(next) {
                    todo.push(next);
                }
            }
        }
        if !moved {
            state.check_end();
        }
    }
    seen.len()
}

#[test]
fn kickers_serve_each_other() {
    assert!(explore([kicker(0), kicker(0), kicker(0), kicker(0)]) > 1000);
}

#[test]
fn a_budget_ends_runs_and_nothing_is_lost() {
    assert!(explore([kicker(2), kicker(1), kicker(0)]) > 1000);
}

#[test]
fn a_sleeper_gets_the_data_among_kickers() {
    assert!(explore([kicker(1), LOCKER, kicker(0)]) > 1000);
    assert!(explore([kicker(0), LOCKER, kicker(0), kicker(0)]) > 1000);
}

#[test]
fn sleepers_and_tryers() {
    assert!(explore([LOCKER, LOCKER, kicker(0), TRYER]) > 1000);
    assert!(explore([LOCKER, TRYER, kicker(1)]) > 1000);
}

/// The bound on the wait: from any state in which a sleeper waits, no run begins before it has the
/// data.
#[test]
fn no_run_begins_while_somebody_waits() {
    let threads = [kicker(0), LOCKER, kicker(0)];
    let first = State::new(threads);
    let mut seen = HashSet::from([first]);
    let mut todo = vec![first];
    while let Some(state) = todo.pop() {
        for i in 0..threads.len() {
            let Some(next) = state.step(i) else { continue };
            let began = matches!(state.threads[i].step, Step::Take(_))
                && matches!(next.threads[i].step, Step::Run(_));
            assert!(!(began && state.word.has_waiters()), "{state:?}");
            if seen.insert(next) {
                todo.push(next);
            }
        }
    }
}
