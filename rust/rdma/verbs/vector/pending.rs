// SPDX-License-Identifier: GPL-2.0

//! The number of events of a queue that its vector has yet to deliver, and the conditions for
//! calling the handler of the vector.
//!
//! These are pure functions, so that a host test can walk through every interleaving of them.

/// Events that were raised and not delivered.
///
/// As long as there are any, the source of the events is on its vector's queue or in the hands of
/// the vector's handler, once: whoever makes the count leave 0 puts it there, and the handler keeps
/// it there until the count is 0 again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Pending(
    /// The number.
    pub(crate) i32,
);

impl Pending {
    /// One more event. True: the source has to be put on the queue by the caller. A count that is
    /// full stays so: by then nobody can tell a few events more.
    pub(crate) const fn raise(self) -> (Self, bool) {
        (Self(self.0.saturating_add(1)), self.0 == 0)
    }

    /// One event was delivered. True: there are more, the source has to go on the queue again.
    pub(crate) const fn deliver(self) -> (Self, bool) {
        let left = self.0.saturating_sub(1);
        (Self(left), left != 0)
    }
}

/// Whether the handler of a vector was called, under the lock of the vector's queue.
///
/// It is from when a source comes to the empty queue until the handler finds the queue empty. Who
/// queues another meanwhile calls nobody: a handler that makes way with sources left stays away
/// until its own call, however fast they come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Called(
    /// It was.
    pub(crate) bool,
);

impl Called {
    /// A source was queued. True: whoever did that has to call the handler.
    pub(crate) const fn queued(self) -> (Self, bool) {
        (Self(true), !self.0)
    }

    /// The handler found the queue empty, and ends.
    pub(crate) const fn emptied(self) -> Self {
        Self(false)
    }
}
