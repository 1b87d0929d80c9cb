// SPDX-License-Identifier: GPL-2.0

//! The state word of an [`Owner`](super::Owner) and its transitions, without the data.
//!
//! These are pure functions, so that a host test can walk through every interleaving of them.

/// Somebody has the data.
pub const OWNED: u32 = 1 << 0;

/// A run is wanted that has not begun.
pub const MARKED: u32 = 1 << 1;

/// One sleeper that waits for the data; the bits from here up count them.
pub const WAITER: u32 = 1 << 2;

/// What a run says when it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Run {
    /// Nothing is left that this run knows of.
    Idle,
    /// There is more to do, but the run has used up its budget.
    Again,
}

/// A value of the state word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Word(
    /// The bits.
    pub u32,
);

impl Word {
    /// Whether somebody has the data.
    pub const fn is_owned(self) -> bool {
        self.0 & OWNED != 0
    }

    /// Whether a run is wanted.
    pub const fn is_marked(self) -> bool {
        self.0 & MARKED != 0
    }

    /// Whether somebody sleeps until the data is free.
    pub const fn has_waiters(self) -> bool {
        self.0 >= WAITER
    }

    /// Whether nobody has the data and nobody wants a run.
    pub const fn is_idle(self) -> bool {
        self.0 & (OWNED | MARKED) == 0
    }

    /// Wants a run.
    pub const fn mark(self) -> Self {
        Self(self.0 | MARKED)
    }

    /// Begins a run, which serves all marks so far. Not while somebody has the data; not without a
    /// mark; and not while somebody waits, who would starve: whoever waits will kick.
    pub const fn take(self) -> Option<Self> {
        if self.0 & (OWNED | MARKED) == MARKED && !self.has_waiters() {
            Some(Self(self.0 & !MARKED | OWNED))
        } else {
            None
        }
    }

    /// Takes the data without waiting; a mark stays.
    pub const fn try_take(self) -> Option<Self> {
        if self.is_owned() || self.has_waiters() {
            None
        } else {
            Some(Self(self.0 | OWNED))
        }
    }

    /// Begins to wait. There are fewer tasks than the count has room for.
    pub const fn enter_wait(self) -> Self {
        Self(self.0.wrapping_add(WAITER))
    }

    /// Ends the wait with ownership; a mark stays.
    pub const fn take_waited(self) -> Option<Self> {
        if self.is_owned() {
            None
        } else {
            Some(Self(self.0.wrapping_sub(WAITER) | OWNED))
        }
    }

    /// Gives up ownership; [`Run::Again`] wants another run.
    pub const fn release(self, run: Run) -> Self {
        let word = self.0 & !OWNED;
        match run {
            Run::Again => Self(word | MARKED),
            Run::Idle => Self(word),
        }
    }
}
