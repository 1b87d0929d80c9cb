// SPDX-License-Identifier: GPL-2.0

//! Rings that a process maps through its uverbs file.
//!
//! C header: `include/rdma/ib_verbs.h` (`rdma_user_mmap_entry`).
//!
//! A mapping consists of plain reference-counted pages and has no VMA operations of the module. It
//! may outlive the object, the device and the module; it is useless then.

use crate::{
    bindings,
    growth::make_room,
    ring::RingMem, //
};
use core::{
    ops::RangeInclusive,
    ptr::NonNull, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// What ib_core's table of offsets points to.
///
/// Freed by the `mmap_free` operation, when the driver has removed the entry and no `mmap` call
/// looks at it any more.
#[repr(C)]
struct Entry {
    ib: bindings::rdma_user_mmap_entry,
    ring: Arc<RingMem>,
}

/// The offsets that one user context has given out.
///
/// The verbs objects own their mappings, but safe code may keep one for longer than the user
/// context, whose table ib_core frees. So both know this: the context empties it when it goes, and
/// a mapping that is dropped later finds nothing to do.
#[pin_data]
pub(crate) struct Offsets {
    #[pin]
    inner: Mutex<Inner>,
}

struct Inner {
    /// Cleared when the user context goes.
    context: Option<NonNull<bindings::ib_ucontext>>,
    entries: KVec<NonNull<Entry>>,
}

// SAFETY: The pointers are used under the mutex only, for functions that may run in any thread.
unsafe impl Send for Inner {}

impl Offsets {
    /// Makes the table of a context.
    ///
    /// # Safety
    ///
    /// [`Offsets::close`] must be called before ib_core frees `context`.
    pub(crate) unsafe fn new(context: *mut bindings::ib_ucontext) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                inner <- new_mutex!(Inner {
                    context: NonNull::new(context),
                    entries: KVec::new(),
                }),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Removes every offset: the context goes. Process context.
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.context = None;
        while let Some(entry) = inner.entries.pop() {
            // SAFETY: In the table, hence not removed yet, and the context still exists. The
            // pointer is not used again.
            unsafe { bindings::rdma_user_mmap_entry_remove(entry.as_ptr().cast()) };
        }
    }

    /// Gives `ring` an offset among `pages`. Page 0 is to be left out, so that no offset
    /// is 0. `ENOMEM` when there is no room. ib_core looks at where the range begins only: what is
    /// in use there may push the offset on, and beyond the range.
    pub(crate) fn insert(
        this: &Arc<Self>,
        ring: Arc<RingMem>,
        pages: RangeInclusive<u32>,
    ) -> Result<RingMapping> {
        let len = ring.len();
        let entry = KBox::new(
            Entry {
                ib: bindings::rdma_user_mmap_entry::default(),
                ring,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        let mut inner = this.inner.lock();
        let context = inner.context.ok_or(ENODEV)?;
        make_room(&mut inner.entries, GFP_KERNEL_ACCOUNT)?;
        let entry = NonNull::from(KBox::leak(entry));
        // SAFETY: `context` is set, so the context exists. `entry` is ours and pinned on the heap;
        // ib_core initialises its part and keeps it until `mmap_free`.
        let ret = unsafe {
            bindings::rdma_user_mmap_entry_insert_range(
                context.as_ptr(),
                entry.as_ptr().cast(),
                len,
                *pages.start(),
                *pages.end(),
            )
        };
        if ret != 0 {
            // SAFETY: ib_core did not take the entry, so it is still ours alone.
            drop(unsafe { KBox::from_raw(entry.as_ptr()) });
            return Err(Error::from_errno(ret));
        }
        // SAFETY: The entry is in ib_core's table; `start_pgoff` does not change any more.
        let page = unsafe { (*entry.as_ptr()).ib.start_pgoff };
        if inner.entries.push_within_capacity(entry).is_err() {
            // Cannot be: capacity was reserved under this lock.
            // SAFETY: As in `close`.
            unsafe { bindings::rdma_user_mmap_entry_remove(entry.as_ptr().cast()) };
            return Err(ENOMEM);
        }
        drop(inner);
        Ok(RingMapping {
            offsets: this.clone(),
            entry,
            offset: (page as u64) << kernel::page::PAGE_SHIFT,
        })
    }

    fn remove(&self, entry: NonNull<Entry>) {
        let mut inner = self.inner.lock();
        let Some(at) = inner.entries.iter().position(|e| *e == entry) else {
            return;
        };
        if let Ok(entry) = inner.entries.remove(at) {
            // SAFETY: In the table, hence not removed yet, and the context exists as long as it
            // is in the table. The pointer is not used again.
            unsafe { bindings::rdma_user_mmap_entry_remove(entry.as_ptr().cast()) };
        }
    }
}

/// An `mmap` offset under which a process finds a ring. Dropping it ends the offset, not the
/// mappings that exist. Process context.
pub struct RingMapping {
    offsets: Arc<Offsets>,
    entry: NonNull<Entry>,
    offset: u64,
}

// SAFETY: The pointer is only compared and passed to `Offsets::remove`, which takes the mutex.
unsafe impl Send for RingMapping {}

// SAFETY: As above.
unsafe impl Sync for RingMapping {}

impl RingMapping {
    /// The offset in bytes, for the response to user space.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Drop for RingMapping {
    fn drop(&mut self) {
        self.offsets.remove(self.entry);
    }
}

/// The `mmap` operation.
///
/// # Safety
///
/// `context` must be a context whose entries were all made by [`Offsets::insert`], `vma` an area
/// that is being set up by the `mmap` call that runs.
pub(crate) unsafe fn mmap(
    context: *mut bindings::ib_ucontext,
    vma: *mut kernel::bindings::vm_area_struct,
) -> Result {
    // SAFETY: Both valid by contract. Fails unless the area is shared and exactly as long as the
    // entry.
    let entry = unsafe { bindings::rdma_user_mmap_entry_get(context, vma) };
    if entry.is_null() {
        return Err(EINVAL);
    }
    // CAST: All entries are the first field of an `Entry` (contract).
    // SAFETY: The reference just taken keeps the entry; `vma` is being set up.
    let ret = unsafe { (*entry.cast::<Entry>()).ring.map_into(vma) };
    // SAFETY: Gives back the reference taken above. The pages have references of their own.
    unsafe { bindings::rdma_user_mmap_entry_put(entry) };
    ret
}

/// The `mmap_free` operation.
///
/// # Safety
///
/// `entry` must have been made by [`Offsets::insert`]; it is not used any more.
pub(crate) unsafe fn mmap_free(entry: *mut bindings::rdma_user_mmap_entry) {
    // SAFETY: Leaked by `Offsets::insert`; the last reference is gone (contract).
    drop(unsafe { KBox::from_raw(entry.cast::<Entry>()) });
}
