// SPDX-License-Identifier: GPL-2.0

//! Memory that the kernel and a process share.
//!
//! The process can write to it at any time. Therefore it is never borrowed: words are read and
//! written atomically, and everything else is copied out once and examined in the copy.

use core::{
    ptr::{
        self,
        NonNull, //
    },
    sync::atomic::{
        AtomicU32,
        AtomicU64,
        AtomicU8,
        Ordering, //
    },
};
use kernel::{
    error::to_result,
    page::PAGE_SIZE,
    prelude::*, //
};

use crate::bindings;

/// Zeroed pages, mapped into the kernel, that can be mapped into a process as well.
///
/// Each page is counted on its own: a mapping keeps its pages when the ring is dropped, and the
/// process then looks at memory that nobody writes to any more. The pages are charged to the memory
/// cgroup of whoever makes the ring. It is dropped in process context.
///
/// All offsets are in bytes from the start; an access that is not inside, or a word that is not
/// aligned, is `EINVAL`. Accesses are possible in any context. They use `core`'s atomics because
/// the other side is user space and because they are inline.
///
/// # Invariants
///
/// `base` is a kernel mapping of `npages` pages, which `pages` lists; all owned by this value.
pub struct RingMem {
    base: NonNull<u8>,
    pages: NonNull<*mut kernel::bindings::page>,
    npages: usize,
}

// SAFETY: The memory is not tied to a thread.
unsafe impl Send for RingMem {}

// SAFETY: All accesses through a shared reference are atomic.
unsafe impl Sync for RingMem {}

impl RingMem {
    /// At least `size` bytes, rounded up to pages. Process context, sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` for no bytes or more than 2 GiB; `ENOMEM`.
    pub fn new(size: usize) -> Result<Self> {
        const MAX: usize = 1 << 31;

        if size == 0 || size > MAX {
            return Err(EINVAL);
        }
        let npages = size.div_ceil(PAGE_SIZE);
        let mut pages = ptr::null_mut();
        // SAFETY: Process context; `pages` is written when the result is not null.
        let base = unsafe { bindings::xrdma_ring_alloc(npages, &mut pages) };
        // INVARIANT: Just made.
        Ok(Self {
            base: NonNull::new(base.cast()).ok_or(ENOMEM)?,
            pages: NonNull::new(pages.cast()).ok_or(ENOMEM)?,
            npages,
        })
    }

    /// Bytes, a multiple of the page size.
    #[inline]
    pub fn len(&self) -> usize {
        // It was at most 2 GiB, rounded up to pages.
        self.npages.wrapping_mul(PAGE_SIZE)
    }

    /// The first byte in the kernel's mapping.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Never; a ring has at least a page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The address of `len` bytes at `off`, if they are inside.
    #[inline]
    fn at(&self, off: usize, len: usize) -> Result<*mut u8> {
        let end = off.checked_add(len).ok_or(EINVAL)?;
        if end > self.len() {
            return Err(EINVAL);
        }
        // SAFETY: Inside the mapping, as just checked.
        Ok(unsafe { self.base.as_ptr().add(off) })
    }

    #[inline]
    fn word(&self, off: usize) -> Result<&AtomicU32> {
        if off % 4 != 0 {
            return Err(EINVAL);
        }
        let at = self.at(off, 4)?;
        // SAFETY: Inside the mapping, which lives as long as `self`, and aligned. The kernel's side
        // accesses it atomically only.
        Ok(unsafe { AtomicU32::from_ptr(at.cast()) })
    }

    /// Reads a word; later accesses stay after it.
    ///
    /// # Errors
    ///
    /// `EINVAL` when `off` is outside the ring or not a multiple of 4.
    #[inline]
    pub fn load_acquire(&self, off: usize) -> Result<u32> {
        Ok(self.word(off)?.load(Ordering::Acquire))
    }

    /// Writes a word; earlier accesses stay before it.
    ///
    /// # Errors
    ///
    /// `EINVAL` when `off` is outside the ring or not a multiple of 4.
    #[inline]
    pub fn store_release(&self, off: usize, value: u32) -> Result {
        self.word(off)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Reads a word, in no order.
    ///
    /// # Errors
    ///
    /// `EINVAL` when `off` is outside the ring or not a multiple of 4.
    #[inline]
    pub fn load(&self, off: usize) -> Result<u32> {
        Ok(self.word(off)?.load(Ordering::Relaxed))
    }

    /// Writes a word, in no order.
    ///
    /// # Errors
    ///
    /// `EINVAL` when `off` is outside the ring or not a multiple of 4.
    #[inline]
    pub fn store(&self, off: usize, value: u32) -> Result {
        self.word(off)?.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Exchanges a word, fully ordered; returns what was there.
    ///
    /// # Errors
    ///
    /// `EINVAL` when `off` is outside the ring or not a multiple of 4.
    #[inline]
    pub fn swap(&self, off: usize, value: u32) -> Result<u32> {
        Ok(self.word(off)?.swap(value, Ordering::SeqCst))
    }

    /// Sets bits of a word, fully ordered; returns what was there.
    ///
    /// # Errors
    ///
    /// `EINVAL` when `off` is outside the ring or not a multiple of 4.
    #[inline]
    pub fn fetch_or(&self, off: usize, bits: u32) -> Result<u32> {
        Ok(self.word(off)?.fetch_or(bits, Ordering::SeqCst))
    }

    /// Keeps only these bits of a word, fully ordered; returns what was there.
    ///
    /// # Errors
    ///
    /// `EINVAL` when `off` is outside the ring or not a multiple of 4.
    #[inline]
    pub fn fetch_and(&self, off: usize, bits: u32) -> Result<u32> {
        Ok(self.word(off)?.fetch_and(bits, Ordering::SeqCst))
    }

    /// Copies `to.len()` bytes from `off` on. The process may write meanwhile: the copy may mix old
    /// and new, but it is then the caller's alone.
    ///
    /// # Errors
    ///
    /// `EINVAL` when that is not inside the ring.
    #[inline]
    pub fn copy_out(&self, off: usize, to: &mut [u8]) -> Result {
        let from = self.at(off, to.len())?;
        // Slots are aligned and whole words long; only what is not goes byte by byte.
        let words = if off % 8 == 0 { to.len() / 8 } else { 0 };
        let (head, tail) = to.split_at_mut(words.wrapping_mul(8));
        for (i, chunk) in head.chunks_exact_mut(8).enumerate() {
            // SAFETY: Inside the mapping, and aligned because `off` is and the mapping is.
            let word = unsafe { AtomicU64::from_ptr(from.cast::<u64>().add(i)) };
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        let skip = head.len();
        for (i, byte) in tail.iter_mut().enumerate() {
            // SAFETY: Inside the mapping.
            let from = unsafe { AtomicU8::from_ptr(from.add(skip).add(i)) };
            *byte = from.load(Ordering::Relaxed);
        }
        Ok(())
    }

    /// Copies `from` to `off`. Publish it with [`store_release`](Self::store_release) of an index.
    ///
    /// # Errors
    ///
    /// `EINVAL` when that is not inside the ring.
    #[inline]
    pub fn copy_in(&self, off: usize, from: &[u8]) -> Result {
        let to = self.at(off, from.len())?;
        let words = if off % 8 == 0 { from.len() / 8 } else { 0 };
        let (head, tail) = from.split_at(words.wrapping_mul(8));
        for (i, chunk) in head.chunks_exact(8).enumerate() {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(chunk);
            // SAFETY: Inside the mapping, and aligned because `off` is and the mapping is.
            let word = unsafe { AtomicU64::from_ptr(to.cast::<u64>().add(i)) };
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        for (i, byte) in tail.iter().enumerate() {
            // SAFETY: Inside the mapping.
            let to = unsafe { AtomicU8::from_ptr(to.add(head.len()).add(i)) };
            to.store(*byte, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Maps the ring from its start into a VMA, whose pages then live on their own. Process
    /// context, in the `mmap` of a file.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a private, executable or too long mapping; `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `vma` is the VMA that the running `mmap` operation sets up, locked for writing.
    pub unsafe fn map_into(&self, vma: *mut kernel::bindings::vm_area_struct) -> Result {
        // SAFETY: By the safety requirement, and by the type invariant.
        to_result(unsafe { bindings::xrdma_ring_map(vma, self.pages.as_ptr(), self.npages) })
    }
}

impl Drop for RingMem {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody has a reference any more, and mappings have their
        // own counts on the pages.
        unsafe {
            bindings::xrdma_ring_free(self.base.as_ptr().cast(), self.pages.as_ptr(), self.npages)
        };
    }
}
