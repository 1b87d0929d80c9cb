// SPDX-License-Identifier: GPL-2.0

//! Walks through every interleaving of a user who arms, polls and waits with a kernel that posts
//! completions into the shared ring, with moderation and a resize. Checks the guarantees of arming:
//! no event is lost, and one arm gives at most one event.
//!
//! Other sides do not see a store at once: each side has a buffer of stores, and a fence or an
//! exchange waits until it is empty. The decisions are the code of crate roce. The steps of the
//! plug-in's `arm` and of the module's `push_user` are modelled here, with one memory access per
//! step.

use roce::event::{
    Act,
    Arm,
    Moderation, //
};
use std::collections::{
    HashSet,
    VecDeque, //
};

/// Words of the rings in use, two for the sake of a resize.
const INDEX: [usize; 2] = [0, 3];
const ARM: [usize; 2] = [1, 4];
const CONSUMER: [usize; 2] = [2, 5];
const PERIOD_US: u32 = 1;
/// When a period that began at 0 is over.
const OVER: u64 = 1000;

/// Memory with a buffer of stores for each side.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Memory {
    words: [u8; 6],
    buffers: [VecDeque<(usize, u8)>; 2],
}

const KERNEL: usize = 0;
const USER: usize = 1;

impl Memory {
    fn load(&self, side: usize, word: usize) -> u8 {
        let own = self.buffers[side].iter().rev().find(|s| s.0 == word);
        own.map_or(self.words[word], |s| s.1)
    }

    fn store(&mut self, side: usize, word: usize, value: u8) {
        self.buffers[side].push_back((word, value));
    }

    /// The oldest store of a side becomes visible.
    fn drain_one(&mut self, side: usize) -> bool {
        match self.buffers[side].pop_front() {
            Some((word, value)) => {
                self.words[word] = value;
                true
            }
            None => false,
        }
    }

    /// A fence, an exchange or the end of a critical section can take place.
    fn is_drained(&self, side: usize) -> bool {
        self.buffers[side].is_empty()
    }

    fn swap(&mut self, side: usize, word: usize, value: u8) -> u8 {
        assert!(self.is_drained(side));
        std::mem::replace(&mut self.words[word], value)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kernel {
    Store,
    Fence,
    LookAtArm,
    TakeArm,
    Unlock,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum User {
    LoadArm,
    Exchange(u8),
    ArmFence,
    Poll,
    Wait,
}

/// Somebody else's part: arms once more, or resizes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Other {
    Arm,
    Resize,
    Done,
}

/// What is tried.
#[derive(Clone, Copy)]
struct Setup {
    /// Completions: true ones are solicited.
    completions: &'static [bool],
    /// What the user arms for, each time; it ends with its last arm.
    arms: &'static [Arm],
    moderation: u32,
    other: Other,
    /// Leave this out, to see that it matters.
    kernel_fence: bool,
    user_fence: bool,
}

const PLAIN: Setup = Setup {
    completions: &[false, false, false],
    arms: &[Arm::Next, Arm::Next, Arm::Next],
    moderation: 0,
    other: Other::Done,
    kernel_fence: true,
    user_fence: true,
};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    memory: Memory,
    ring: usize,
    /// Completions of the old ring that were moved are counted from its start again.
    base: u8,
    kernel: Kernel,
    /// The lock of the queue: the poster has it, or nobody.
    locked: bool,
    posted: u8,
    moderation: Moderation,
    timer: Option<u64>,
    early: u8,
    user: User,
    armed: usize,
    consumed: u8,
    other: Other,
    /// Events raised, events the user has got, and arms that took effect.
    events: u8,
    taken: u8,
    effective: u8,
}

impl State {
    fn new(setup: &Setup) -> Self {
        Self {
            memory: Memory::default(),
            ring: 0,
            base: 0,
            kernel: Kernel::Store,
            locked: false,
            posted: 0,
            moderation: Moderation::new(setup.moderation, PERIOD_US),
            timer: None,
            early: 1,
            user: User::LoadArm,
            armed: 0,
            consumed: 0,
            other: setup.other,
            events: 0,
            taken: 0,
            effective: 0,
        }
    }

    fn act(&mut self, act: Act) -> Kernel {
        match act {
            Act::Nothing => Kernel::Unlock,
            Act::Raise => Kernel::TakeArm,
            Act::Wait(at) => {
                self.timer = Some(self.timer.map_or(at, |t| t.min(at)));
                Kernel::Unlock
            }
        }
    }

    fn waiting(&self, side: usize) -> bool {
        let posted = self.memory.load(side, INDEX[self.ring]);
        posted != self.memory.load(side, CONSUMER[self.ring])
    }

    fn poster(&self, setup: &Setup) -> Option<Self> {
        let mut s = self.clone();
        match self.kernel {
            Kernel::Store => {
                if usize::from(self.posted) == setup.completions.len() {
                    return None;
                }
                s.locked = true;
                s.posted += 1;
                let index = s.posted - s.base;
                s.memory.store(KERNEL, INDEX[s.ring], index);
                s.kernel = Kernel::Fence;
            }
            Kernel::Fence => {
                if setup.kernel_fence && !self.memory.is_drained(KERNEL) {
                    return None;
                }
                s.kernel = Kernel::LookAtArm;
            }
            Kernel::LookAtArm => {
                let arm = Arm::from_word(s.memory.load(KERNEL, ARM[s.ring]).into());
                let solicited = setup.completions[usize::from(s.posted) - 1];
                s.kernel = if arm.takes(solicited) {
                    let act = s.moderation.arrived(|| 0);
                    s.act(act)
                } else {
                    Kernel::Unlock
                };
            }
            Kernel::TakeArm => {
                if !self.memory.is_drained(KERNEL) {
                    return None;
                }
                if s.memory.swap(KERNEL, ARM[s.ring], 0) != 0 {
                    s.events += 1;
                }
                s.kernel = Kernel::Unlock;
            }
            // Others that take the lock see what was stored under it.
            Kernel::Unlock => {
                if !self.memory.is_drained(KERNEL) {
                    return None;
                }
                s.locked = false;
                s.kernel = Kernel::Store;
            }
        }
        Some(s)
    }

    /// The timer of the moderation, which may come too early once. Holds the lock.
    fn timer(&self, now: u64) -> Option<Self> {
        let at = self.timer?;
        if self.locked || (now < at && self.early == 0) {
            return None;
        }
        let mut s = self.clone();
        if now < at {
            s.early -= 1;
        }
        s.timer = None;
        let waiting = s.waiting(KERNEL);
        let act = s.moderation.due(now, waiting);
        if s.act(act) == Kernel::TakeArm && s.memory.swap(KERNEL, ARM[s.ring], 0) != 0 {
            s.events += 1;
        }
        Some(s)
    }

    fn user(&self, setup: &Setup) -> Option<Self> {
        let mut s = self.clone();
        match self.user {
            User::LoadArm => {
                let now = s.memory.load(USER, ARM[s.ring]);
                let wanted = setup.arms[s.armed] as u8;
                s.user = if now < wanted {
                    User::Exchange(now)
                } else {
                    User::ArmFence
                };
            }
            User::Exchange(now) => {
                // Without its fence the exchange is a plain store, as a careless plug-in's would
                // be.
                let wanted = setup.arms[s.armed] as u8;
                if setup.user_fence {
                    if !self.memory.is_drained(USER) {
                        return None;
                    }
                    let found = s.memory.load(USER, ARM[s.ring]);
                    if found != now {
                        s.user = User::LoadArm;
                        return Some(s);
                    }
                    s.memory.swap(USER, ARM[s.ring], wanted);
                } else {
                    s.memory.store(USER, ARM[s.ring], wanted);
                }
                s.effective += 1;
                s.user = User::ArmFence;
            }
            User::ArmFence => {
                if setup.user_fence && !self.memory.is_drained(USER) {
                    return None;
                }
                s.armed += 1;
                s.user = User::Poll;
            }
            User::Poll => {
                let index = s.memory.load(USER, INDEX[s.ring]);
                s.consumed = index + s.base;
                s.memory.store(USER, CONSUMER[s.ring], index);
                s.user = User::Wait;
            }
            User::Wait => {
                if self.taken == self.events || self.armed == setup.arms.len() {
                    return None;
                }
                s.taken += 1;
                s.user = User::LoadArm;
            }
        }
        Some(s)
    }

    fn other(&self) -> Option<Self> {
        let mut s = self.clone();
        match self.other {
            Other::Done => return None,
            // Another thread of the user's; with a lock of the plug-in it arms between the steps.
            Other::Arm => {
                if !matches!(self.user, User::LoadArm | User::Poll | User::Wait)
                    || !self.memory.is_drained(USER)
                {
                    return None;
                }
                if s.memory.load(USER, ARM[s.ring]) < Arm::Next as u8 {
                    s.memory.swap(USER, ARM[s.ring], Arm::Next as u8);
                    s.effective += 1;
                }
            }
            // The plug-in keeps the user out, the kernel holds its lock.
            Other::Resize => {
                if self.locked
                    || !matches!(self.user, User::LoadArm | User::Poll | User::Wait)
                    || !self.memory.is_drained(USER)
                {
                    return None;
                }
                let arm = s.memory.swap(KERNEL, ARM[0], 0);
                s.ring = 1;
                s.base = s.memory.words[CONSUMER[0]];
                s.memory.words[ARM[1]] = arm;
                s.memory.words[CONSUMER[1]] = 0;
                s.memory.words[INDEX[1]] = s.memory.words[INDEX[0]] - s.base;
            }
        }
        s.other = Other::Done;
        Some(s)
    }

    fn next(&self, setup: &Setup) -> Vec<Self> {
        let mut all = Vec::new();
        all.extend(self.poster(setup));
        all.extend(self.timer(0));
        all.extend(self.timer(OVER));
        all.extend(self.user(setup));
        all.extend(self.other());
        for side in [KERNEL, USER] {
            let mut s = self.clone();
            if s.memory.drain_one(side) {
                all.push(s);
            }
        }
        all
    }

    /// What must hold at all times.
    fn check(&self) -> Result<(), String> {
        if self.events > self.effective {
            return Err(format!("two events for one arm: {self:?}"));
        }
        if self.moderation.is_waiting() && self.timer.is_none() && !self.locked {
            return Err(format!("nobody ends the wait: {self:?}"));
        }
        Ok(())
    }

    /// What must hold when nothing moves any more: a user who sleeps has got all that it waits for.
    fn check_end(&self, setup: &Setup) -> Result<(), String> {
        if self.user != User::Wait || usize::from(self.posted) != setup.completions.len() {
            return Err(format!("stuck: {self:?}"));
        }
        let left = &setup.completions[usize::from(self.consumed)..];
        let wanted = setup.arms[self.armed - 1];
        let lost = left.iter().any(|solicited| wanted.takes(*solicited));
        if lost && self.taken == self.events {
            return Err(format!("an event was lost: {self:?}"));
        }
        Ok(())
    }
}

/// Visits all states; how many there are, or what is wrong in one.
fn explore(setup: &Setup) -> Result<usize, String> {
    let first = State::new(setup);
    let mut seen = HashSet::from([first.clone()]);
    let mut todo = vec![first];
    while let Some(state) = todo.pop() {
        state.check()?;
        let next = state.next(setup);
        if next.is_empty() {
            state.check_end(setup)?;
        }
        for state in next {
            if seen.insert(state.clone()) {
                todo.push(state);
            }
        }
    }
    Ok(seen.len())
}

fn holds(setup: Setup) {
    let states = explore(&setup).unwrap_or_else(|e| panic!("{e}"));
    assert!(states > 100, "{states} states only");
}

#[test]
fn an_arm_races_with_completions() {
    holds(PLAIN);
    holds(Setup {
        completions: &[false; 5],
        arms: &[Arm::Next; 5],
        ..PLAIN
    });
}

#[test]
fn solicited_arms_wait_for_their_kind() {
    for completions in [
        &[false, true, false] as &[bool],
        &[true, false, true],
        &[false, false, true],
        &[true, true, true],
    ] {
        for arms in [
            &[Arm::Solicited; 3] as &[Arm],
            &[Arm::Solicited, Arm::Next, Arm::Solicited],
            &[Arm::Next, Arm::Solicited],
        ] {
            holds(Setup {
                completions,
                arms,
                ..PLAIN
            });
        }
    }
}

#[test]
fn two_threads_arm() {
    for arms in [&[Arm::Next; 3] as &[Arm], &[Arm::Solicited; 3]] {
        holds(Setup {
            completions: &[true, false, true],
            arms,
            other: Other::Arm,
            ..PLAIN
        });
    }
}

#[test]
fn a_resize_takes_the_arm_along() {
    holds(Setup {
        other: Other::Resize,
        ..PLAIN
    });
    holds(Setup {
        completions: &[true, false, true],
        arms: &[Arm::Solicited; 3],
        other: Other::Resize,
        ..PLAIN
    });
}

#[test]
fn moderation_delays_and_loses_nothing() {
    for moderation in [2, 3, 10] {
        for other in [Other::Done, Other::Arm, Other::Resize] {
            holds(Setup {
                moderation,
                other,
                ..PLAIN
            });
            holds(Setup {
                completions: &[false, true, false, true],
                arms: &[Arm::Solicited, Arm::Next, Arm::Solicited],
                moderation,
                other,
                ..PLAIN
            });
        }
    }
}

/// The exploration sees what a missing fence does.
#[test]
fn fences_are_needed() {
    for broken in [
        Setup {
            kernel_fence: false,
            ..PLAIN
        },
        Setup {
            user_fence: false,
            ..PLAIN
        },
    ] {
        let error = explore(&broken).expect_err("nothing was found");
        assert!(error.starts_with("an event was lost"), "{error}");
    }
}
