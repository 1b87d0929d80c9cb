// SPDX-License-Identifier: GPL-2.0

//! When an XRC target dies.
//!
//! Pure counting, apart from everything that counts.

/// The life of one target: who has it open, and whether somebody asked for its end.
///
/// - An explicit destroy condemns it; a condemned target dies with its last view.
/// - A view that goes because its process does (exit, kill, device closed) condemns nothing: the
///   target stays, findable by its number, until it is condemned or its domain goes.
/// - With its domain it dies in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Life {
    views: u32,
    condemned: bool,
    dead: bool,
}

/// What follows from the end of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The target lives on.
    Lives,
    /// The target is dead: the caller, and no other, ends it.
    Dies,
}

impl Life {
    /// A target without a view.
    pub const fn new() -> Self {
        Self {
            views: 0,
            condemned: false,
            dead: false,
        }
    }

    /// One more view. False when the target is dead already, or has as many views as it can.
    #[must_use]
    pub fn open(&mut self) -> bool {
        match self.views.checked_add(1) {
            Some(views) if !self.dead => {
                self.views = views;
                true
            }
            _ => false,
        }
    }

    /// One view less. `explicit`: its user destroyed it, rather than its process ending.
    pub fn close(&mut self, explicit: bool) -> Outcome {
        self.views = self.views.saturating_sub(1);
        self.condemned |= explicit;
        if self.views == 0 && self.condemned {
            self.die()
        } else {
            Outcome::Lives
        }
    }

    /// The domain goes.
    pub fn domain_gone(&mut self) -> Outcome {
        self.die()
    }

    /// Views.
    pub const fn views(&self) -> u32 {
        self.views
    }

    fn die(&mut self) -> Outcome {
        if self.dead {
            return Outcome::Lives;
        }
        self.dead = true;
        Outcome::Dies
    }
}
