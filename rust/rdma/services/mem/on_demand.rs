// SPDX-License-Identifier: GPL-2.0

//! On-demand paging: registered memory of a process that is not pinned.
//!
//! A software device can use the page tables of the process itself. Each access looks its pages up,
//! faults in the missing pages, and holds the pages only for the duration of the copy. Therefore
//! the memory may be unmapped, mapped again, swapped and migrated as if nobody had registered it.

use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::to_result,
    new_mutex,
    page::{
        PAGE_SHIFT,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

use super::{
    Fault,
    Region,
    Usage, //
};
use crate::{
    bindings,
    rcu::GFP_ACCOUNT,
    work::{
        self,
        Tries, //
    }, //
};

/// Pages that one access holds at most.
const MAX_PAGES: usize = 66;

/// An address space, without its memory.
///
/// # Invariants
///
/// Owns a count of `mm_count`.
struct AddressSpace(NonNull<kernel::bindings::mm_struct>);

// SAFETY: Counted; its functions may be called from any thread.
unsafe impl Send for AddressSpace {}

// SAFETY: As above.
unsafe impl Sync for AddressSpace {}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_mm_drop(self.0.as_ptr().cast()) };
    }
}

#[pin_data]
struct Inner {
    space: Arc<AddressSpace>,
    start: u64,
    length: u64,
    writable: bool,
    /// Held during an access; true when there shall be none any more.
    #[pin]
    revoked: Mutex<bool>,
}

/// A range of a process's memory, used in process context only.
pub struct OnDemand(Arc<Inner>);

impl OnDemand {
    /// `length` bytes at `start` of the current process, which need not be there yet; to be written
    /// if `writable`. A range that is longer than the address space covers all of it. Process
    /// context.
    ///
    /// # Errors
    ///
    /// `EINVAL` without an address space; `ENOMEM`.
    pub fn new(start: u64, length: u64, writable: bool) -> Result<Self> {
        // SAFETY: Process context.
        let space = NonNull::new(unsafe { bindings::xrdma_mm_grab() }).ok_or(EINVAL)?;
        // INVARIANT: Just counted.
        let space = Arc::new(AddressSpace(space.cast()), GFP_ACCOUNT)?;
        Self::of(space, start, length, writable)
    }

    /// The same range of the same process once more, to be written if `writable`: the end of one is
    /// not that of the other. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn again(&self, writable: bool) -> Result<Self> {
        Self::of(self.0.space.clone(), self.0.start, self.0.length, writable)
    }

    fn of(space: Arc<AddressSpace>, start: u64, length: u64, writable: bool) -> Result<Self> {
        Ok(Self(Arc::pin_init(
            try_pin_init!(Inner {
                space,
                start,
                length,
                writable,
                revoked <- new_mutex!(false),
            }? Error),
            GFP_ACCOUNT,
        )?))
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.0.length
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.length == 0
    }

    /// Whether it may be written.
    pub fn is_writable(&self) -> bool {
        self.0.writable
    }

    /// Ends all use: waits for an access that is under way, refuses later ones. Sleeps.
    pub fn revoke(&self) {
        *self.0.revoked.lock() = true;
    }

    /// Runs `f` on `len` bytes at `offset`, which stay in memory meanwhile. Pages that are on their
    /// way are waited for: some seconds in all, see [`work::step`], or until [`work::unless`] or
    /// [`work::part`] ends it. For userfaultfd that is in vain, since its monitor is not told of
    /// faults that do not wait. Files of FUSE are not tried again: a fault there may wait for ever,
    /// so only pages that the process has are used.
    ///
    /// Sleeps; where that is not possible it is a fault: of the caller, or of who has put such
    /// memory behind a key while the key was in use.
    ///
    /// # Errors
    ///
    /// [`Fault`] outside the range, without the right to write, where sleeping is not possible,
    /// after [`revoke`](Self::revoke), and when the pages cannot be had; that of `f`.
    pub fn with<R>(
        &self,
        offset: u64,
        len: usize,
        usage: Usage,
        f: impl FnOnce(&Region<'_>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let inner = &*self.0;
        let end = offset.checked_add(len as u64).ok_or(Fault)?;
        if end > inner.length || usage.writes() && !inner.writable || !work::may_sleep() {
            return Err(Fault);
        }
        let addr = inner.start.checked_add(offset).ok_or(Fault)?;
        let first = addr & (PAGE_SIZE as u64).wrapping_sub(1);
        let count = first
            .checked_add(len as u64)
            .and_then(|n| n.checked_add((PAGE_SIZE as u64).wrapping_sub(1)))
            .ok_or(Fault)?
            >> PAGE_SHIFT;
        let count = usize::try_from(count).map_err(|_| Fault)?;
        if count > MAX_PAGES {
            return Err(Fault);
        }
        let mut pages = [ptr::null_mut::<kernel::bindings::page>(); MAX_PAGES];
        let mut tries = Tries::default();
        let revoked = loop {
            let revoked = inner.revoked.lock();
            if *revoked {
                return Err(Fault);
            }
            // SAFETY: The address space is counted by the type invariant, and the array has room.
            let held = to_result(unsafe {
                bindings::xrdma_mm_hold(
                    inner.space.0.as_ptr().cast(),
                    addr,
                    count,
                    usage.writes(),
                    pages.as_mut_ptr().cast(),
                )
            });
            match held {
                Ok(()) => break revoked,
                Err(e) if e == EAGAIN => {}
                Err(_) => return Err(Fault),
            }
            drop(revoked);
            let next = tries.again().ok_or(Fault)?;
            // SAFETY: Process context, without locks of ours.
            unsafe { bindings::xrdma_mm_wait(next) };
        };
        // INVARIANT: The pages are held until the end of this function, and `region` is only lent.
        let region = Region {
            raw: bindings::xrdma_mem {
                pages: pages.as_mut_ptr().cast(),
                va: ptr::null_mut(),
                first,
                length: len as u64,
            },
            writable: usage.writes(),
            _owner: PhantomData,
        };
        let result = f(&region);
        // SAFETY: Held above, released once.
        unsafe { bindings::xrdma_mm_release(pages.as_mut_ptr().cast(), count, usage.writes()) };
        drop(revoked);
        result
    }

    /// Faults `len` bytes at `offset` in, for `usage`, as long as `go_on` has no objection,
    /// which is asked every 64 pages. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINTR` for a signal, `EFAULT`, what `go_on` says.
    pub fn prefetch(
        &self,
        offset: u64,
        len: u64,
        usage: Usage,
        go_on: impl Fn() -> Result,
    ) -> Result {
        const STEP: u64 = 64 << PAGE_SHIFT;
        let mut at = offset;
        let mut rest = len;
        while rest > 0 {
            if work::signal_pending() {
                return Err(EINTR);
            }
            go_on()?;
            let now = rest.min(STEP);
            self.with(at, now as usize, usage, |_| Ok(()))?;
            at = at.wrapping_add(now);
            rest = rest.wrapping_sub(now);
            work::cond_resched();
        }
        Ok(())
    }
}
