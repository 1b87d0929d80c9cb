// SPDX-License-Identifier: GPL-2.0
//! A lock for the data path.
//!
//! Posting and polling take a lock for some tens of nanoseconds. `ibv_wr_start`/`ibv_wr_complete`
//! and `ibv_start_poll`/`ibv_end_poll` take and release their lock in different calls, which a
//! guard cannot express. Therefore this is a plain spin lock. It spins a little and then yields,
//! because the holder may have lost its CPU.

use core::cell::UnsafeCell;
use core::ops::{
    Deref,
    DerefMut, //
};
use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

const SPINS: u32 = 100;

/// A value behind a spin lock.
pub struct Locked<T> {
    taken: AtomicBool,
    /// False when the owner of the object promised to use it from one thread.
    shared: bool,
    value: UnsafeCell<T>,
}

impl<T> Locked<T> {
    /// A value for any number of threads.
    pub fn new(value: T) -> Self {
        Self::with_sharing(value, true)
    }

    /// With `shared` false no lock is taken: the caller of the verbs promised
    /// (`IBV_CREATE_CQ_ATTR_SINGLE_THREADED`) never to enter twice at a time.
    pub fn with_sharing(value: T, shared: bool) -> Self {
        Self {
            taken: AtomicBool::new(false),
            shared,
            value: UnsafeCell::new(value),
        }
    }

    fn acquire(&self) {
        if !self.shared {
            return;
        }
        let mut spins = 0;
        while self
            .taken
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            if spins < SPINS {
                spins += 1;
                core::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Takes the lock until the guard goes.
    pub fn lock(&self) -> Guard<'_, T> {
        self.acquire();
        Guard { owner: self }
    }

    /// Takes the lock until [`Self::release`].
    pub fn hold(&self) {
        self.acquire();
    }

    /// Whether somebody holds the lock.
    #[cfg(test)]
    pub fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The caller must hold the lock through [`Self::hold`] and must use no
    /// reference from [`Self::held`] after this.
    pub unsafe fn release(&self) {
        if self.shared {
            self.taken.store(false, Ordering::Release);
        }
    }

    /// The value, for the holder of the lock.
    ///
    /// # Safety
    ///
    /// The caller must hold the lock through [`Self::hold`] and must let the
    /// reference go before it asks for another.
    #[expect(clippy::mut_from_ref, reason = "the lock is what makes it exclusive")]
    pub unsafe fn held(&self) -> &mut T {
        // SAFETY: the caller holds the lock, so nobody else has a reference.
        unsafe { &mut *self.value.get() }
    }
}

// SAFETY: the lock hands the value to one thread at a time.
unsafe impl<T: Send> Sync for Locked<T> {}

/// Access to a locked value.
pub struct Guard<'a, T> {
    owner: &'a Locked<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: a guard exists only while its lock is held.
        unsafe { &*self.owner.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: a guard exists only while its lock is held, and it is
        // borrowed mutably.
        unsafe { &mut *self.owner.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: a guard exists only while its lock is held; it ends here.
        unsafe { self.owner.release() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excludes() {
        let n = Locked::new(0u64);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..20_000 {
                        *n.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*n.lock(), 80_000);
    }

    #[test]
    fn held_across_calls() {
        let n = Locked::new(1);
        n.hold();
        // SAFETY: held in the line above.
        unsafe { *n.held() += 1 };
        // SAFETY: held, and no reference is left.
        unsafe { n.release() };
        assert_eq!(*n.lock(), 2);
    }
}
