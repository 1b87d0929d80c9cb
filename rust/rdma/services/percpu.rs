// SPDX-License-Identifier: GPL-2.0

//! Counters that do not share a cache line between CPUs.
//!
//! C header: `include/linux/percpu.h`.

use kernel::prelude::*;

use crate::bindings;

/// CPUs that there can be, whether they are there now or not; at least 1. Any context.
pub fn possible_cpus() -> u32 {
    // SAFETY: No requirements.
    unsafe { bindings::xrdma_possible_cpus() }
}

/// `N` counters, each a `u64` per CPU.
///
/// # Invariants
///
/// `handle` is a per-CPU allocation of `N` words, owned by this value.
pub struct PerCpu<const N: usize> {
    handle: usize,
}

impl<const N: usize> PerCpu<N> {
    /// All zero. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new() -> Result<Self> {
        // SAFETY: Process context.
        let handle = unsafe { bindings::xrdma_percpu_alloc(N) };
        if handle == 0 {
            return Err(ENOMEM);
        }
        // INVARIANT: Just allocated.
        Ok(Self { handle })
    }

    /// Adds `n` to counter `i`; does nothing if there is no such counter. Any context.
    #[inline]
    pub fn add(&self, i: usize, n: u64) {
        if i < N {
            // SAFETY: By the type invariant, and `i` is in range.
            unsafe { bindings::xrdma_percpu_add(self.handle, i, n) };
        }
    }

    /// The sum of counter `i` over all CPUs; 0 if there is no such counter. Any context.
    pub fn sum(&self, i: usize) -> u64 {
        if i >= N {
            return 0;
        }
        // SAFETY: By the type invariant, and `i` is in range.
        unsafe { bindings::xrdma_percpu_sum(self.handle, i) }
    }
}

impl<const N: usize> Drop for PerCpu<N> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody has a reference any more.
        unsafe { bindings::xrdma_percpu_free(self.handle) };
    }
}
