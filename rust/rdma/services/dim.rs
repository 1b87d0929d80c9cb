// SPDX-License-Identifier: GPL-2.0

//! Adaptive moderation: how many completions an event of a completion queue should stand for under
//! the present load.
//!
//! C header: `include/linux/dim.h`; the C half is `dim.c`.
//!
//! ib_core does this for the queues of kernel users. For a process's queue less is known: not how
//! many completions have been polled, but how many have come since the last event.

use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kernel::prelude::*;

use crate::{
    bindings,
    work, //
};

/// What a level of moderation means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Completions that raise an event; 1: no moderation.
    pub count: u16,
    /// Microseconds after which there is an event with fewer.
    pub period: u16,
}

/// The levels of `rdma_dim()`, which knows their number: those of ib_core (`rdma_dim_prof` of
/// `drivers/infiniband/core/cq.c`).
const LEVELS: [Level; bindings::RDMA_DIM_PARAMS_NUM_PROFILES as usize] = {
    const fn level(count: u16, period: u16) -> Level {
        Level { count, period }
    }
    [
        level(1, 1),
        level(4, 1),
        level(4, 2),
        level(8, 2),
        level(8, 4),
        level(8, 16),
        level(16, 16),
        level(16, 32),
        level(32, 32),
    ]
};

/// Looks at the load of one queue and chooses its level.
///
/// # Invariants
///
/// `ptr` is a valid `xrdma_dim`, owned by this value.
pub struct Adaptive {
    ptr: NonNull<bindings::xrdma_dim>,
}

// SAFETY: Not tied to a thread.
unsafe impl Send for Adaptive {}

// SAFETY: A shared reference allows nothing.
unsafe impl Sync for Adaptive {}

impl Adaptive {
    /// Begins at level 0. When another one is due, `f(cookie)` is called in a kernel thread and is
    /// to take it from [`level`](Self::level); it finds the queue by its number in a
    /// [`Table`](crate::rcu::Table). Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also without [`Services`](work::Services).
    pub fn new(cookie: u64, f: fn(u64)) -> Result<Self> {
        // SAFETY: `work::call` takes its pointer argument for the `fn(u64)` that it is here.
        let ptr = unsafe { bindings::xrdma_dim_alloc(Some(work::call), f as *mut c_void, cookie) };
        // INVARIANT: Just allocated.
        Ok(Self {
            ptr: NonNull::new(ptr).ok_or(ENOMEM)?,
        })
    }

    /// There is an event; `completions` have come since the one before. Any context but NMI, under
    /// the lock of the queue.
    pub fn event(&mut self, completions: u32) {
        // SAFETY: By the type invariant; the reference is exclusive.
        unsafe { bindings::xrdma_dim_event(self.ptr.as_ptr(), u64::from(completions)) };
    }

    /// The level that is due, and its number. Until this is asked for no other is looked for. Any
    /// context.
    pub fn level(&mut self) -> (u8, Level) {
        // SAFETY: By the type invariant; the reference is exclusive.
        let level = unsafe { bindings::xrdma_dim_level(self.ptr.as_ptr()) };
        // What is no level of ours, none.
        let none = Level {
            count: 1,
            period: 1,
        };
        (
            level,
            LEVELS.get(usize::from(level)).copied().unwrap_or(none),
        )
    }
}

impl Drop for Adaptive {
    /// Waits for the function that [`Adaptive::new`] was given. Process context, sleeps; without
    /// the lock of the queue, and not from that function.
    fn drop(&mut self) {
        // SAFETY: By the type invariant; there are no more events, since nobody has a reference.
        unsafe { bindings::xrdma_dim_free(self.ptr.as_ptr()) };
    }
}
