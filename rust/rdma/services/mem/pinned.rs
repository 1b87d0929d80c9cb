// SPDX-License-Identifier: GPL-2.0

//! Pinned pages of a process. The caller chooses how they are pinned.

use core::{
    ffi::c_void,
    marker::PhantomData,
    ptr::NonNull, //
};

use super::Region;
use crate::bindings;

/// Undoes the pinning of pages. The first argument stands for the pinning, and the second lists the
/// pages.
pub(crate) type Unpin = unsafe fn(NonNull<c_void>, &mut bindings::xrdma_mem);

/// A range of a process's memory that is pinned.
///
/// Dropped in process context. The function that pins the pages may set further conditions.
///
/// # Invariants
///
/// Until `unpin` is called with `pinning` and `mem`, the pages that `mem` lists stay where they
/// are, and may be written if `writable`. All of this is owned by this value.
pub struct Pinned {
    mem: bindings::xrdma_mem,
    writable: bool,
    pinning: NonNull<c_void>,
    unpin: Unpin,
}

// SAFETY: The pages are pinned whoever asks, and may be unpinned by any thread.
unsafe impl Send for Pinned {}

// SAFETY: A shared reference copies only.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Takes over pages that are pinned.
    ///
    /// # Safety
    ///
    /// The pages that `mem` lists are pinned, for writing if `writable`, until `unpin` is called
    /// with `pinning` and `mem`. That may be done once, in the process context of any thread.
    pub(crate) unsafe fn new(
        mem: bindings::xrdma_mem,
        writable: bool,
        pinning: NonNull<c_void>,
        unpin: Unpin,
    ) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            mem,
            writable,
            pinning,
            unpin,
        }
    }

    /// The view through which it is copied.
    #[inline]
    pub fn region(&self) -> Region<'_> {
        // INVARIANT: By the invariant of this type, as long as `self` is borrowed.
        Region {
            raw: bindings::xrdma_mem {
                pages: self.mem.pages,
                va: self.mem.va,
                first: self.mem.first,
                length: self.mem.length,
            },
            writable: self.writable,
            _owner: PhantomData,
        }
    }

    /// Whether the pages were pinned for writing.
    pub fn is_writable(&self) -> bool {
        self.writable
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody has a view any more.
        unsafe { (self.unpin)(self.pinning, &mut self.mem) };
    }
}
