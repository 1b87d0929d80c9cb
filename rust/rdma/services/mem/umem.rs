// SPDX-License-Identifier: GPL-2.0

//! User memory, pinned for as long as it is registered.
//!
//! C header: `include/rdma/ib_umem.h`.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::from_err_ptr,
    prelude::*, //
};

use super::Region;
use crate::bindings;

/// A range of a process's memory, pinned and counted against its `RLIMIT_MEMLOCK`.
///
/// Dropped in process context, at the latest when the device is unregistered: ib_core wants it to be
/// released before its device goes.
///
/// # Invariants
///
/// `umem` pins the pages that `mem` lists, for writing if `writable`; all owned by this value.
pub struct Umem {
    umem: NonNull<bindings::ib_umem>,
    mem: bindings::xrdma_mem,
    writable: bool,
}

// SAFETY: The pages are pinned whoever asks; releasing them takes the owner's mm from the umem.
unsafe impl Send for Umem {}

// SAFETY: A shared reference copies only.
unsafe impl Sync for Umem {}

impl Umem {
    /// Pins `length` bytes at `addr` of the current process. Process context, sleeps.
    ///
    /// `access` is the bits of `enum ib_access_flags`, of which any that lets somebody write makes
    /// the memory writable.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a range that is empty or wraps, and in a kernel thread, `EFAULT` for one that is not all mapped so,
    /// `ENOMEM` also for more than `RLIMIT_MEMLOCK`, `EPERM`, `EOPNOTSUPP` for on-demand paging.
    ///
    /// # Safety
    ///
    /// `device` is an initialised `ib_device` that outlives the result.
    pub unsafe fn pin_raw(
        device: *mut bindings::ib_device,
        addr: u64,
        length: u64,
        access: u32,
    ) -> Result<Self> {
        let access = i32::try_from(access).map_err(|_| EINVAL)?;
        let mut mem = bindings::xrdma_mem {
            pages: core::ptr::null_mut(),
            va: core::ptr::null_mut(),
            first: 0,
            length: 0,
        };
        // SAFETY: By the safety requirement; `mem` is filled when the call succeeds.
        let umem = from_err_ptr(unsafe {
            bindings::xrdma_umem_pin(device, addr, length, access, &mut mem)
        })?;
        let umem = NonNull::new(umem).ok_or(EINVAL)?;
        // SAFETY: Valid since the call succeeded.
        let writable = unsafe { bindings::xrdma_umem_writable(umem.as_ptr()) };
        // INVARIANT: Just pinned.
        Ok(Self {
            umem,
            mem,
            writable,
        })
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

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody has a view any more.
        unsafe { bindings::xrdma_umem_unpin(self.umem.as_ptr(), &mut self.mem) };
    }
}
