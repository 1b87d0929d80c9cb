// SPDX-License-Identifier: GPL-2.0

//! Data that many users read from any context, and that can be taken away from all of them at once.
//!
//! When the invalidation of a key completes, the key must not be in use any more, because a kernel
//! user frees the pages then. With RCU, readers could finish after that. A lock would have to be
//! held while data are copied, and two locks if both ends of a copy are such keys.

#[cfg(CONFIG_PREEMPT_RT)]
mod sleeping;
#[cfg(not(CONFIG_PREEMPT_RT))]
mod spinning;

use core::{
    cell::UnsafeCell,
    sync::atomic::{
        fence,
        AtomicU32,
        Ordering, //
    },
};

#[cfg(CONFIG_PREEMPT_RT)]
use self::sleeping::Turns;
#[cfg(not(CONFIG_PREEMPT_RT))]
use self::spinning::Turns;
use crate::{
    bindings,
    sync::NoSoftirq, //
};

/// Of [`Gate`]: nobody is let in.
const CLOSED: u32 = 1 << 31;

/// A gate without data, which is closed once: whoever is inside may sleep there, and so does
/// whoever closes it.
pub struct Gate {
    /// How many are inside, and [`CLOSED`].
    state: AtomicU32,
}

/// The presence inside of a [`Gate`].
#[must_use]
pub struct Inside<'a>(&'a Gate);

impl Gate {
    /// An open gate.
    #[expect(clippy::new_without_default, reason = "part of an object")]
    pub const fn new() -> Self {
        Self {
            state: AtomicU32::new(0),
        }
    }

    /// Goes in, until the value is dropped; `None` once the gate is closed. Any context but NMI.
    #[inline]
    pub fn enter(&self) -> Option<Inside<'_>> {
        // There are fewer contexts than the count has room for.
        let before = self.state.fetch_add(1, Ordering::Acquire);
        let inside = Inside(self);
        (before & CLOSED == 0).then_some(inside)
    }

    /// Lets nobody in any more, and waits for those who are inside. Process context, sleeps; not
    /// from inside.
    pub fn close(&self) {
        self.state.fetch_or(CLOSED, Ordering::SeqCst);
        // SAFETY: Process context, and the word lives as long as `self`.
        unsafe { bindings::xrdma_wait_bits_clear(self.state.as_ptr(), !CLOSED) };
        // What those inside did is done.
        fence(Ordering::Acquire);
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        let state = &self.0.state;
        if state.fetch_sub(1, Ordering::SeqCst) == CLOSED | 1 {
            // SAFETY: The word lives as long as the gate, which is borrowed.
            unsafe { bindings::xrdma_wake_waiters(state.as_ptr()) };
        }
    }
}

/// Whether the gate of [`Gated`] data lets anybody in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// Readers may use the data.
    Open,
    /// Nobody but a writer may.
    Closed,
}

/// Data behind a gate.
///
/// [`read`](Self::read) may be nested, with the same or with other gates, and never waits.
/// [`write`](Self::write) closes the gate, and waits for those who are inside: they keep softirq
/// off their CPU, so they are on other CPUs, running, and soon done.
///
/// On a real-time kernel, a writer of higher priority could take the CPU from those inside, and
/// spin for ever. There it sleeps until they are done.
///
/// # Examples
///
/// ```ignore
/// use core::ops::Range;
/// use rdma::gated::{Entry, Gated};
///
/// /// What a key admits; closed until somebody grants it.
/// struct Key(Gated<Range<u64>>);
///
/// impl Key {
///     fn grant(&self, range: Range<u64>) {
///         self.0.write(|admitted, _was| {
///             *admitted = range;
///             (Entry::Open, ())
///         });
///     }
///
///     /// Runs `access`, which must not sleep, if the key admits `addr`.
///     fn with<R>(&self, addr: u64, access: impl FnOnce() -> R) -> Option<R> {
///         self.0
///             .read(|admitted| admitted.contains(&addr).then(access))
///             .flatten()
///     }
///
///     /// When this returns, no `access` is running and none begins. Whether it was granted.
///     fn revoke(&self) -> bool {
///         self.0.write(|_, was| (Entry::Closed, was == Entry::Open))
///     }
/// }
/// ```
pub struct Gated<T> {
    turns: Turns,
    data: UnsafeCell<T>,
}

// SAFETY: Readers share `&T` (whence `Sync`), a writer has `&mut T` (whence `Send`).
unsafe impl<T: Send + Sync> Sync for Gated<T> {}

impl<T> Gated<T> {
    /// Data behind a closed gate.
    pub fn new(data: T) -> Self {
        Self {
            turns: Turns::new(),
            data: UnsafeCell::new(data),
        }
    }

    /// Runs `f` on the data if the gate is open. Process context or softirq; `f` must not sleep,
    /// and must not write the same data.
    #[inline]
    pub fn read<R>(&self, f: impl FnOnce(&T) -> R) -> Option<R> {
        let softirq = NoSoftirq::new();
        let result = self.turns.begin_read().then(|| {
            // SAFETY: The gate was open when our turn began, and whoever closes it touches the
            // data only when no turn lasts that began so.
            let result = f(unsafe { &*self.data.get() });
            self.turns.end_read();
            result
        });
        drop(softirq);
        result
    }

    /// Closes the gate, waits for the readers, and runs `f` on the data; it is told whether the
    /// gate was open and says whether it shall be. Process context or softirq, not from within
    /// [`read`](Self::read) of any; `f` must not sleep, and not write other data.
    pub fn write<R>(&self, f: impl FnOnce(&mut T, Entry) -> (Entry, R)) -> R {
        let softirq = NoSoftirq::new();
        let was = self.turns.begin_write();
        // SAFETY: It is our turn to write: no other turn lasts, and none begins.
        let (entry, result) = f(unsafe { &mut *self.data.get() }, was);
        self.turns.end_write(entry);
        drop(softirq);
        result
    }
}
