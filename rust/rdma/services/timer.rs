// SPDX-License-Identifier: GPL-2.0

//! High-resolution timers that fire in softirq.
//!
//! C header: `include/linux/hrtimer.h`.

use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kernel::prelude::*;

use crate::{
    bindings,
    work, //
};

/// Nanoseconds of `CLOCK_MONOTONIC`. Any context.
#[inline]
pub fn now_ns() -> u64 {
    // SAFETY: No requirements.
    unsafe { bindings::xrdma_now_ns() }
}

/// Nanoseconds of `CLOCK_MONOTONIC_RAW`, which no one adjusts: for time stamps. Any context.
#[inline]
pub fn now_raw_ns() -> u64 {
    // SAFETY: No requirements.
    unsafe { bindings::xrdma_now_raw_ns() }
}

/// A one-shot timer.
///
/// It is meant for deadlines that mostly move away before they are met: to arm it for a time after
/// the one it is armed for is cheap and does nothing. So it may fire early; its function compares
/// the time with the deadline as it is then, and arms the timer again if need be.
///
/// The function runs in softirq and gets a number, by which it finds its object in a
/// [`Table`](crate::rcu::Table).
///
/// # Invariants
///
/// `ptr` is a valid `xrdma_timer`, owned by this value.
pub struct Timer {
    ptr: NonNull<bindings::xrdma_timer>,
}

// SAFETY: The timer is not tied to a thread.
unsafe impl Send for Timer {}

// SAFETY: Starting and cancelling are serialised by the timer base's lock in C.
unsafe impl Sync for Timer {}

impl Timer {
    /// A timer that calls `f(cookie)`. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also without [`Services`](work::Services).
    pub fn new(cookie: u64, f: fn(u64)) -> Result<Self> {
        // SAFETY: `work::call` takes its pointer argument for the `fn(u64)` that it is here.
        let ptr =
            unsafe { bindings::xrdma_timer_alloc(Some(work::call), f as *mut c_void, cookie) };
        // INVARIANT: Just allocated.
        Ok(Self {
            ptr: NonNull::new(ptr).ok_or(ENOMEM)?,
        })
    }

    /// Has it fire at `ns` ([`now_ns`]'s clock), or when it was to fire before, if that is sooner;
    /// not at all once the [`Services`](work::Services) have ended. Any context but NMI.
    #[inline]
    pub fn start_at(&self, ns: u64) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_timer_start(self.ptr.as_ptr(), ns) };
    }

    /// As [`start_at`](Self::start_at), `ns` from now.
    #[inline]
    pub fn start_in(&self, ns: u64) {
        self.start_at(now_ns().saturating_add(ns));
    }

    /// Disarms it and waits for a function that is running. Process context; not from the function.
    pub fn cancel(&self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_timer_cancel(self.ptr.as_ptr()) };
    }
}

impl Drop for Timer {
    /// Cancels, see [`Timer::cancel`].
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody can start it any more, having no reference.
        unsafe { bindings::xrdma_timer_free(self.ptr.as_ptr()) };
    }
}
