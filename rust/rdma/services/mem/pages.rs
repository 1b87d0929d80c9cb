// SPDX-License-Identifier: GPL-2.0

//! Pages that a kernel user registers with `ib_map_mr_sg()`.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

use super::{
    Region,
    Usage, //
};
use crate::bindings;

/// A list of whole pages of the kernel, with room for a fixed number, seen as one range.
///
/// # Invariants
///
/// `pages` is an array of `capacity`, owned by this value, whose first `count` entries are pages
/// that stay as long as `first` and `length` name them.
pub struct PageList {
    pages: NonNull<*mut kernel::bindings::page>,
    capacity: usize,
    count: usize,
    first: u64,
    length: u64,
    writable: bool,
}

// SAFETY: Pages are not tied to a thread.
unsafe impl Send for PageList {}

// SAFETY: A shared reference copies only.
unsafe impl Sync for PageList {}

impl PageList {
    /// An empty list with room for `capacity` pages. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for none; `ENOMEM`.
    pub fn new(capacity: usize) -> Result<Self> {
        if capacity == 0 {
            return Err(EINVAL);
        }
        // SAFETY: Process context.
        let pages = unsafe { bindings::xrdma_page_array_alloc(capacity) };
        // INVARIANT: Just made, with no page named.
        Ok(Self {
            pages: NonNull::new(pages.cast()).ok_or(ENOMEM)?,
            capacity,
            count: 0,
            first: 0,
            length: 0,
            writable: false,
        })
    }

    /// Forgets all pages. Any context.
    pub fn clear(&mut self) {
        self.count = 0;
        self.first = 0;
        self.length = 0;
    }

    /// Appends the page at a kernel address, which is rounded down to one. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when the list is full; `EINVAL` when no page is there.
    ///
    /// # Safety
    ///
    /// A kernel user has passed this page to the device and keeps it until it invalidates or frees
    /// the region, whereupon the list is cleared or dropped.
    pub unsafe fn push(&mut self, addr: u64) -> Result {
        if self.count >= self.capacity {
            return Err(ENOMEM);
        }
        // SAFETY: By the safety requirement.
        let page = unsafe { bindings::xrdma_kernel_page(addr) };
        if page.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: Inside the array, as just checked.
        unsafe { self.pages.as_ptr().add(self.count).write(page.cast()) };
        self.count = self.count.wrapping_add(1);
        Ok(())
    }

    /// Names the range: `length` bytes from byte `first` of the pages on, for `usage`.
    ///
    /// # Errors
    ///
    /// `EINVAL` when that is not inside the pages.
    pub fn set_range(&mut self, first: u64, length: u64, usage: Usage) -> Result {
        let end = first.checked_add(length).ok_or(EINVAL)?;
        let room = (self.count as u64)
            .checked_mul(PAGE_SIZE as u64)
            .ok_or(EINVAL)?;
        if end > room {
            return Err(EINVAL);
        }
        self.first = first;
        self.length = length;
        self.writable = usage.writes();
        Ok(())
    }

    /// The view through which it is copied.
    #[inline]
    pub fn region(&self) -> Region<'_> {
        // INVARIANT: By the invariant of this type, as long as `self` is borrowed.
        Region {
            raw: bindings::xrdma_mem {
                pages: self.pages.as_ptr().cast(),
                va: core::ptr::null_mut(),
                first: self.first,
                length: self.length,
            },
            writable: self.writable,
            _owner: PhantomData,
        }
    }
}

impl Drop for PageList {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody has a view any more.
        unsafe { bindings::xrdma_page_array_free(self.pages.as_ptr().cast()) };
    }
}
