// SPDX-License-Identifier: GPL-2.0

//! When a completion raises an event: arming and moderation of completion queues (IBTA 11.4.2.2).
//!
//! A user arms a queue and then looks at the queue once more. The side that adds a completion
//! stores it and then reads the arm. With a full fence between the two steps on both sides, one
//! side sees the store of the other. The side that raises the event takes the arm, so one arm gives
//! one event. `tests/arming.rs` walks through every interleaving.

/// What a queue waits for. A stronger arm replaces a weaker one, never the reverse.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Arm {
    /// Nothing: no event is wanted.
    #[default]
    None,
    /// The next completion that was solicited or failed.
    Solicited,
    /// The next completion.
    Next,
}

impl Arm {
    /// From the word that a user shares with the kernel: 0, 1, and anything else means
    /// [`Arm::Next`].
    #[inline]
    pub const fn from_word(word: u32) -> Self {
        match word {
            0 => Self::None,
            1 => Self::Solicited,
            _ => Self::Next,
        }
    }

    /// Whether a completion is what it waits for.
    #[inline]
    pub const fn takes(self, solicited: bool) -> bool {
        match self {
            Self::None => false,
            Self::Solicited => solicited,
            Self::Next => true,
        }
    }
}

/// What to do about an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Nothing.
    Nothing,
    /// Take the arm and, if there was one, raise the event.
    Raise,
    /// Ask [`Moderation::due`] at this time, nanoseconds; earlier does no harm.
    Wait(u64),
}

/// Holds events back until a number of completions has come or the first of them has waited for
/// some time (`ibv_modify_cq`).
///
/// The arm stays while the event is held back. Used under the lock of the queue.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Moderation {
    /// Completions that raise an event; below 2: there is no moderation.
    count: u32,
    period_ns: u64,
    /// Completions since `since`.
    seen: u32,
    /// When the first completion came that has raised no event yet.
    since: Option<u64>,
}

impl Moderation {
    /// An event for `count` completions or after `period_us` microseconds, whichever comes first.
    /// None at all with a count below 2 or a period of 0: without an end to the wait an event might
    /// never come.
    pub const fn new(count: u32, period_us: u32) -> Self {
        Self {
            count: if period_us == 0 { 0 } else { count },
            // At most 2^32 * 1000.
            period_ns: (period_us as u64).wrapping_mul(1000),
            seen: 0,
            since: None,
        }
    }

    /// Completions that raise an event; below 2: there is no moderation.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Microseconds after which fewer raise one.
    pub const fn period_us(&self) -> u64 {
        self.period_ns / 1000
    }

    /// Whether events are held back at all.
    #[inline]
    pub const fn is_on(&self) -> bool {
        self.count > 1
    }

    /// Whether an event is held back now.
    #[inline]
    pub const fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    /// A completion has come that the arm takes. `now` reads the clock; it is called for the first
    /// completion of a period only, which is also the one that asks for the wait.
    #[inline]
    pub fn arrived(&mut self, now: impl FnOnce() -> u64) -> Act {
        if !self.is_on() {
            return Act::Raise;
        }
        self.seen = self.seen.saturating_add(1);
        if self.seen >= self.count {
            self.reset();
            return Act::Raise;
        }
        if self.since.is_some() {
            return Act::Nothing;
        }
        let now = now();
        self.since = Some(now);
        Act::Wait(now.saturating_add(self.period_ns))
    }

    /// The time that [`Act::Wait`] named has come, or another one. `waiting`: there are completions
    /// in the queue; if there are none, its user has found them without an event, and the arm
    /// stands for the next.
    pub fn due(&mut self, now: u64, waiting: bool) -> Act {
        let Some(since) = self.since else {
            return Act::Nothing;
        };
        let until = since.saturating_add(self.period_ns);
        if now < until {
            return Act::Wait(until);
        }
        self.reset();
        if waiting {
            Act::Raise
        } else {
            Act::Nothing
        }
    }

    /// Forgets an event that is held back: it was raised, or nobody waits for it any more.
    pub fn reset(&mut self) {
        self.seen = 0;
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the clock must not be read: that takes as long as adding a completion.
    fn no_clock() -> u64 {
        panic!("the clock was read");
    }

    #[test]
    fn arms() {
        assert!(!Arm::None.takes(true));
        assert!(Arm::Solicited.takes(true) && !Arm::Solicited.takes(false));
        assert!(Arm::Next.takes(true) && Arm::Next.takes(false));
        assert_eq!(Arm::from_word(0), Arm::None);
        assert_eq!(Arm::from_word(1), Arm::Solicited);
        assert_eq!(Arm::from_word(2), Arm::Next);
        assert_eq!(Arm::from_word(u32::MAX), Arm::Next);
        assert!(Arm::None < Arm::Solicited && Arm::Solicited < Arm::Next);
    }

    #[test]
    fn off() {
        for m in [(0, 0), (1, 100), (16, 0), (0, 100)] {
            let mut m = Moderation::new(m.0, m.1);
            assert!(!m.is_on());
            assert_eq!(m.arrived(no_clock), Act::Raise);
            assert_eq!(m.due(1 << 40, true), Act::Nothing);
        }
    }

    #[test]
    fn counts() {
        let mut m = Moderation::new(3, 10);
        for _ in 0..3 {
            assert_eq!(m.arrived(|| 100), Act::Wait(10_100));
            assert_eq!(m.arrived(no_clock), Act::Nothing);
            assert!(m.is_waiting());
            assert_eq!(m.arrived(no_clock), Act::Raise);
            assert!(!m.is_waiting());
        }
    }

    #[test]
    fn times() {
        let mut m = Moderation::new(3, 10);
        assert_eq!(m.arrived(|| 100), Act::Wait(10_100));
        assert_eq!(m.due(10_099, true), Act::Wait(10_100));
        assert_eq!(m.due(10_100, true), Act::Raise);
        assert_eq!(m.due(10_100, true), Act::Nothing);
        // The next period begins with the next completion.
        assert_eq!(m.arrived(|| 20_000), Act::Wait(30_000));
        assert_eq!(m.due(30_000, false), Act::Nothing);
        assert!(!m.is_waiting());
        let mut m = Moderation::new(u32::MAX, u32::MAX);
        assert_eq!(m.arrived(|| u64::MAX - 1), Act::Wait(u64::MAX));
    }
}
