// SPDX-License-Identifier: GPL-2.0

//! The rules for the end of an XRC target.
//!
//! This file contains only the counting. The counted objects are elsewhere.

/// The life of one target: who has it open, who is registered for it, and whether somebody asked
/// for its end.
///
/// - The explicit destroy of its first view, the one that it was made with, condemns it. A
///   condemned target dies with its last view or registration, whichever goes later.
/// - The explicit destroy of a view that only opened it condemns it if nobody else holds it then,
///   as ib_core ends a shared queue pair with its last handle. Otherwise only the view goes.
/// - A view that goes because its process does (exit, kill, device closed) condemns nothing: the
///   target stays, findable by its number, until it is condemned or its domain goes.
/// - A registration holds it as a view does. A target that was made by number is condemned when its
///   last registration goes, however that goes; any other is not.
/// - Nothing condemns a persistent target, which is made by number as well.
/// - With its domain it dies in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Life {
    views: u32,
    registrations: u32,
    made: Made,
    condemned: bool,
    dead: bool,
}

/// How a target was made, which decides what condemns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Made {
    /// With a view.
    #[default]
    WithView,
    /// By number, with a registration.
    ByNumber,
    /// By number, with a registration, to stay until its domain goes.
    Persistent,
}

/// How a view goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewEnd {
    /// Its user destroyed the view that the target was made with.
    DestroyedFirst,
    /// Its user destroyed a view that only opened the target.
    DestroyedOther,
    /// Its process ended or closed the device, or the device is going.
    FileClosing,
}

/// What follows from the end of a view or a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The target lives on.
    Lives,
    /// The target is dead: the caller, and no other, ends it.
    Dies,
}

impl Life {
    /// A target without a view or registration; what it is made with comes next.
    pub const fn new(made: Made) -> Self {
        Self {
            views: 0,
            registrations: 0,
            made,
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

    /// One view less.
    pub fn close(&mut self, end: ViewEnd) -> Outcome {
        self.views = self.views.saturating_sub(1);
        self.condemned |= match end {
            ViewEnd::DestroyedFirst => true,
            ViewEnd::DestroyedOther => self.made != Made::Persistent && !self.is_held(),
            ViewEnd::FileClosing => false,
        };
        self.look()
    }

    /// One more registration. False when the target is dead already, or has as many as it can.
    #[must_use]
    pub fn register(&mut self) -> bool {
        match self.registrations.checked_add(1) {
            Some(registrations) if !self.dead => {
                self.registrations = registrations;
                true
            }
            _ => false,
        }
    }

    /// One registration less, whatever the reason.
    pub fn unregister(&mut self) -> Outcome {
        self.registrations = self.registrations.saturating_sub(1);
        self.condemned |= self.made == Made::ByNumber && self.registrations == 0;
        self.look()
    }

    /// The domain goes.
    pub fn domain_gone(&mut self) -> Outcome {
        self.die()
    }

    /// Views.
    pub const fn views(&self) -> u32 {
        self.views
    }

    /// Registrations.
    pub const fn registrations(&self) -> u32 {
        self.registrations
    }

    /// Whether anybody has it open or is registered for it.
    const fn is_held(&self) -> bool {
        self.views != 0 || self.registrations != 0
    }

    fn look(&mut self) -> Outcome {
        if self.condemned && !self.is_held() {
            self.die()
        } else {
            Outcome::Lives
        }
    }

    fn die(&mut self) -> Outcome {
        if self.dead {
            return Outcome::Lives;
        }
        self.dead = true;
        Outcome::Dies
    }
}
