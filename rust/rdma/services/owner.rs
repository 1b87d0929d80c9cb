// SPDX-License-Identifier: GPL-2.0

//! Exclusive use of data without waiting for it.
//!
//! Any context that has a reason to do so works on a direction of a queue pair: the process that
//! rings the doorbell, the softirq that received an acknowledgement, or a timer. With a lock,
//! softirq would spin while a process copies. Instead, a context that comes second leaves a mark
//! and returns, and the first one makes another run.

pub mod word;

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{
        Deref,
        DerefMut, //
    },
    sync::atomic::{
        AtomicU32,
        Ordering, //
    },
};

pub use self::word::Run;
use self::word::Word;
use crate::{
    bindings,
    sync::NoSoftirq, //
};

/// What became of a [`kick`](Owner::kick).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Kick {
    /// It is done: a run that began after the kick has ended with [`Run::Idle`].
    Ran,
    /// Another owner has the data and will run once more, or its holder will kick.
    Busy,
    /// There is more to do: the caller sees to it that somebody kicks again, from a work item.
    Again,
}

/// How many runs one kick makes when others keep marking.
const MAX_ROUNDS: u32 = 8;

/// Data with one user at a time, see the [module](self).
///
/// Two ways to use it:
///
/// - [`kick`](Self::kick), from any context but NMI, never waits. All who kick one `Owner` pass
///   closures that do the same, because the one that runs may be another's.
/// - [`lock`](Self::lock), from process context, sleeps until it has the data. While somebody waits
///   so, no new kick starts a run. **Whoever drops a guard kicks afterwards**: kicks may have come
///   meanwhile, and their marks are only left.
///
/// The owner of the moment may be a softirq on another CPU or an interrupted process on this one.
///
/// # Examples
///
/// ```ignore
/// use core::sync::atomic::{AtomicU32, Ordering};
/// use rdma::owner::{Kick, Owner, Run};
///
/// struct Meter {
///     /// Where everybody leaves what there is to do.
///     inbox: AtomicU32,
///     total: Owner<u64>,
/// }
///
/// impl Meter {
///     /// Any context but NMI. On [`Kick::Again`] the caller has a work item kick again.
///     fn add(&self, n: u32) -> Kick {
///         self.inbox.fetch_add(n, Ordering::Relaxed);
///         self.kick()
///     }
///
///     /// All kicks do the same: the one that runs may be another's.
///     fn kick(&self) -> Kick {
///         self.total.kick(|total| {
///             let n = self.inbox.swap(0, Ordering::Relaxed);
///             *total = total.wrapping_add(u64::from(n));
///             Run::Idle
///         })
///     }
///
///     /// Process context, sleeps. Kicks after it has given the data back, as above.
///     fn reset(&self) -> Kick {
///         *self.total.lock() = 0;
///         self.kick()
///     }
/// }
/// ```
pub struct Owner<T> {
    state: AtomicU32,
    data: UnsafeCell<T>,
}

// The state is an atomic of `core`: nothing in C looks at it but the wait below, which reads it
// with READ_ONCE(), and in a kernel built by GCC the kernel crate's atomics are calls out of line.
// All its operations are sequentially consistent read-modify-writes, which are full barriers on
// x86; where they are not, `full` adds one, because runs read memory that user space writes and
// that protocol needs the fence between the end of one look and the beginning of the next.

// SAFETY: It hands out `&mut T` to one thread at a time, so it moves `T` between threads.
unsafe impl<T: Send> Sync for Owner<T> {}

impl<T> Owner<T> {
    /// Data that nobody uses, with no mark.
    pub const fn new(data: T) -> Self {
        Self {
            state: AtomicU32::new(0),
            data: UnsafeCell::new(data),
        }
    }

    /// Applies a transition to the state until it sticks. Returns the state before, or `None` when
    /// the transition is not possible.
    #[inline]
    fn update(&self, f: impl Fn(Word) -> Option<Word>) -> Option<Word> {
        let old = self
            .state
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |s| {
                f(Word(s)).map(|w| w.0)
            });
        #[cfg(not(target_arch = "x86_64"))]
        crate::sync::full_fence();
        old.ok().map(Word)
    }

    /// Gives up ownership; [`Run::Again`] leaves a mark. Returns the state that others see now.
    #[inline]
    fn release(&self, run: Run) -> Word {
        let old = self.update(|w| Some(w.release(run)));
        // `release` is possible in any state.
        let now = old.map_or(Word(0), |w| w.release(run));
        if now.has_waiters() {
            // SAFETY: The word lives as long as `self`, which waiters borrow.
            unsafe { bindings::xrdma_wake_waiters(self.state.as_ptr()) };
        }
        now
    }

    /// Sees to it that `f` runs after this call began: here, or by the present owner. Any context
    /// but NMI; never waits. See the type for what `f` must be.
    ///
    /// `f` runs with the context of the caller and may be run several times, as long as others
    /// kick.
    #[inline]
    pub fn kick(&self, mut f: impl FnMut(&mut T) -> Run) -> Kick {
        self.update(|w| Some(w.mark()));
        for _ in 0..MAX_ROUNDS {
            match self.update(Word::take) {
                Some(_) => {}
                // Nobody owns it and no mark is left: somebody else has served ours meanwhile.
                None if self.word().is_idle() => return Kick::Ran,
                None => return Kick::Busy,
            }
            // SAFETY: We are the owner since `take`, until `release`: nobody else has a reference.
            let run = f(unsafe { &mut *self.data.get() });
            let now = self.release(run);
            if run == Run::Again {
                return Kick::Again;
            }
            if !now.is_marked() {
                return Kick::Ran;
            }
        }
        Kick::Again
    }

    fn word(&self) -> Word {
        Word(self.state.load(Ordering::SeqCst))
    }

    /// Waits until the data is free and takes it. Process context, sleeps.
    pub fn lock(&self) -> OwnerGuard<'_, T> {
        self.update(|w| Some(w.enter_wait()));
        while self.update(Word::take_waited).is_none() {
            // SAFETY: Process context, and the word lives as long as `self`.
            unsafe { bindings::xrdma_wait_bits_clear(self.state.as_ptr(), word::OWNED) };
        }
        OwnerGuard {
            owner: self,
            _data: PhantomData,
        }
    }

    /// As [`lock`](Self::lock), with softirq off from the moment that the data is taken until it is
    /// given back: the holder is not preempted, so the data is missed by others for no longer than
    /// it is used. For data that belongs to another process.
    pub fn lock_bh(&self) -> OwnerGuardBh<'_, T> {
        self.update(|w| Some(w.enter_wait()));
        loop {
            let softirq = NoSoftirq::new();
            if self.update(Word::take_waited).is_some() {
                return OwnerGuardBh {
                    guard: OwnerGuard {
                        owner: self,
                        _data: PhantomData,
                    },
                    _softirq: softirq,
                };
            }
            drop(softirq);
            // SAFETY: Process context, and the word lives as long as `self`.
            unsafe { bindings::xrdma_wait_bits_clear(self.state.as_ptr(), word::OWNED) };
        }
    }

    /// Takes the data if nobody has it or waits for it. Any context but NMI.
    pub fn try_lock(&self) -> Option<OwnerGuard<'_, T>> {
        self.update(Word::try_take)?;
        Some(OwnerGuard {
            owner: self,
            _data: PhantomData,
        })
    }

    /// Whether somebody has the data at this moment.
    pub fn is_owned(&self) -> bool {
        self.word().is_owned()
    }

    /// The data, of which this is the only user.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

/// Ownership taken by [`Owner::lock`] or [`Owner::try_lock`]. Kick after dropping it.
#[must_use]
pub struct OwnerGuard<'a, T> {
    owner: &'a Owner<T>,
    /// What it stands for, and may be shared and sent like: an `Owner` may be shared whenever `T`
    /// may be sent, while a shared guard gives `&T`, which is for threads only if `T` is `Sync`.
    _data: PhantomData<&'a mut T>,
}

impl<T> Deref for OwnerGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The guard is ownership, and lives as long as the reference.
        unsafe { &*self.owner.data.get() }
    }
}

impl<T> DerefMut for OwnerGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: The guard is ownership, and is borrowed mutably as long as the reference lives.
        unsafe { &mut *self.owner.data.get() }
    }
}

impl<T> Drop for OwnerGuard<'_, T> {
    fn drop(&mut self) {
        self.owner.release(Run::Idle);
    }
}

/// Ownership taken by [`Owner::lock_bh`]. Its holder must not sleep. Kick after dropping it.
#[must_use]
pub struct OwnerGuardBh<'a, T> {
    // Dropped first.
    guard: OwnerGuard<'a, T>,
    _softirq: NoSoftirq,
}

impl<T> Deref for OwnerGuardBh<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for OwnerGuardBh<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
