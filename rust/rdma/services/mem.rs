// SPDX-License-Identifier: GPL-2.0

//! The memory that keys refer to: the source and destination of the data in packets.
//!
//! The owner of the memory may change it while the kernel copies. Therefore C code moves the bytes,
//! and Rust never borrows them. All copies and atomic operations are possible in any context.
//! Offsets are in bytes from the start of the registered range.

mod kernel_addr;
mod on_demand;
mod pages;
mod persistent;
mod pinned;
mod ring_slice;

use core::marker::PhantomData;
use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::bindings;

pub use {
    kernel_addr::KernelAddr,
    on_demand::OnDemand,
    pages::PageList,
    persistent::HAS_WRITE_BACK,
    pinned::Pinned,
    ring_slice::RingSlice, //
};

/// What memory is accessed for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Usage {
    /// It is only read.
    Read,
    /// It is written, and may be read as well.
    Write,
}

impl Usage {
    /// Whether the memory is written.
    #[inline]
    pub(crate) const fn writes(self) -> bool {
        matches!(self, Self::Write)
    }
}

/// The access is outside the memory, misaligned for an atomic operation, or writes what may only be
/// read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault;

impl From<Fault> for Error {
    fn from(_: Fault) -> Self {
        EFAULT
    }
}

/// A view of memory that can be copied, for as long as its owner is borrowed.
///
/// # Invariants
///
/// During `'a`, every byte that `raw` describes may be read, and written if `writable`, through the
/// kernel's mapping.
pub struct Region<'a> {
    raw: bindings::xrdma_mem,
    writable: bool,
    _owner: PhantomData<&'a ()>,
}

impl Region<'_> {
    /// Bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        self.raw.length
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.raw.length == 0
    }

    #[inline]
    fn check(&self, off: u64, len: usize) -> Result<(), Fault> {
        let end = off.checked_add(len as u64).ok_or(Fault)?;
        if end > self.raw.length {
            return Err(Fault);
        }
        Ok(())
    }

    #[inline]
    fn check_write(&self, off: u64, len: usize) -> Result<(), Fault> {
        if !self.writable {
            return Err(Fault);
        }
        self.check(off, len)
    }

    /// Copies `to.len()` bytes from `off` on.
    ///
    /// # Errors
    ///
    /// [`Fault`].
    #[inline]
    pub fn read(&self, off: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.check(off, to.len())?;
        // SAFETY: By the type invariant and the check; `to` is ours.
        unsafe { bindings::xrdma_mem_read(&self.raw, off, to.as_mut_ptr().cast(), to.len()) };
        Ok(())
    }

    /// Copies `from` to `off`.
    ///
    /// # Errors
    ///
    /// [`Fault`].
    #[inline]
    pub fn write(&self, off: u64, from: &[u8]) -> Result<(), Fault> {
        self.check_write(off, from.len())?;
        // SAFETY: By the type invariant and the check.
        unsafe { bindings::xrdma_mem_write(&self.raw, off, from.as_ptr().cast(), from.len()) };
        Ok(())
    }

    /// Stores `swap` in the 8 bytes at `off` if they are `compare`, atomically towards every CPU
    /// and user space; returns what was there. Host byte order.
    ///
    /// # Errors
    ///
    /// [`Fault`].
    pub fn cmp_swap(&self, off: u64, compare: u64, swap: u64) -> Result<u64, Fault> {
        self.check_write(off, 8)?;
        let mut original = 0;
        // SAFETY: By the type invariant and the check.
        to_result(unsafe {
            bindings::xrdma_mem_cmpxchg64(&self.raw, off, compare, swap, &mut original)
        })
        .map_err(|_| Fault)?;
        Ok(original)
    }

    /// Adds `add`, wrapping, to the 8 bytes at `off`, as [`cmp_swap`](Self::cmp_swap); returns what
    /// was there.
    ///
    /// # Errors
    ///
    /// [`Fault`].
    pub fn fetch_add(&self, off: u64, add: u64) -> Result<u64, Fault> {
        self.check_write(off, 8)?;
        let mut original = 0;
        // SAFETY: By the type invariant and the check.
        to_result(unsafe { bindings::xrdma_mem_fetch_add64(&self.raw, off, add, &mut original) })
            .map_err(|_| Fault)?;
        Ok(original)
    }

    /// Stores the 8 bytes at `off` in one piece, after all earlier writes of this CPU.
    ///
    /// # Errors
    ///
    /// [`Fault`].
    pub fn write_u64(&self, off: u64, value: u64) -> Result<(), Fault> {
        self.check_write(off, 8)?;
        // SAFETY: By the type invariant and the check.
        to_result(unsafe { bindings::xrdma_mem_store64(&self.raw, off, value) }).map_err(|_| Fault)
    }

    /// Copies `len` bytes to `to`. The two may overlap, and may be the same; then each page run is
    /// moved as by `memmove`.
    ///
    /// # Errors
    ///
    /// [`Fault`], of either memory.
    #[inline]
    pub fn copy_to(&self, off: u64, to: &Region<'_>, to_off: u64, len: usize) -> Result<(), Fault> {
        self.check(off, len)?;
        to.check_write(to_off, len)?;
        // SAFETY: By the type invariants and the checks.
        unsafe { bindings::xrdma_mem_copy(&self.raw, off, &to.raw, to_off, len) };
        Ok(())
    }
}

/// Memory that a key names.
pub enum Memory {
    /// A process's, pinned.
    User(Pinned),
    /// On-demand memory of a process. Only process context may use it.
    OnDemand(OnDemand),
    /// One piece of kernel memory.
    Kernel(KernelAddr),
    /// Pages that a kernel user registered.
    Pages(PageList),
    /// Memory of the device's own.
    Device(RingSlice),
}

impl Memory {
    /// Runs `f` on a view of `len` bytes at `off`, with their offset in the view. Sleeps if the
    /// memory does.
    #[inline]
    fn with<R>(
        &self,
        off: u64,
        len: usize,
        usage: Usage,
        f: impl FnOnce(&Region<'_>, u64) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        match self {
            Memory::User(pinned) => f(&pinned.region(), off),
            Memory::OnDemand(memory) => memory.with(off, len, usage, |region| f(region, 0)),
            Memory::Kernel(addr) => f(&addr.region(), off),
            Memory::Pages(pages) => f(&pages.region(), off),
            Memory::Device(slice) => f(&slice.region(), off),
        }
    }

    /// Bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Memory::User(pinned) => pinned.region().len(),
            Memory::OnDemand(memory) => memory.len(),
            Memory::Kernel(addr) => addr.region().len(),
            Memory::Pages(pages) => pages.region().len(),
            Memory::Device(slice) => slice.region().len(),
        }
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it may be written at all.
    pub fn is_writable(&self) -> bool {
        match self {
            Memory::User(pinned) => pinned.is_writable(),
            Memory::OnDemand(memory) => memory.is_writable(),
            Memory::Pages(pages) => pages.region().writable,
            Memory::Kernel(_) | Memory::Device(_) => true,
        }
    }

    /// See [`Region::read`].
    ///
    /// # Errors
    ///
    /// [`Fault`].
    #[inline]
    pub fn read(&self, off: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.with(off, to.len(), Usage::Read, |region, at| region.read(at, to))
    }

    /// See [`Region::write`].
    ///
    /// # Errors
    ///
    /// [`Fault`].
    #[inline]
    pub fn write(&self, off: u64, from: &[u8]) -> Result<(), Fault> {
        self.with(off, from.len(), Usage::Write, |region, at| {
            region.write(at, from)
        })
    }

    /// See [`Region::cmp_swap`].
    ///
    /// # Errors
    ///
    /// [`Fault`].
    pub fn cmp_swap(&self, off: u64, compare: u64, swap: u64) -> Result<u64, Fault> {
        self.with(off, 8, Usage::Write, |region, at| {
            region.cmp_swap(at, compare, swap)
        })
    }

    /// See [`Region::fetch_add`].
    ///
    /// # Errors
    ///
    /// [`Fault`].
    pub fn fetch_add(&self, off: u64, add: u64) -> Result<u64, Fault> {
        self.with(off, 8, Usage::Write, |region, at| region.fetch_add(at, add))
    }

    /// See [`Region::write_u64`].
    ///
    /// # Errors
    ///
    /// [`Fault`].
    pub fn write_u64(&self, off: u64, value: u64) -> Result<(), Fault> {
        self.with(off, 8, Usage::Write, |region, at| {
            region.write_u64(at, value)
        })
    }
}

/// Copies from memory to memory; see [`Region::copy_to`].
///
/// # Errors
///
/// [`Fault`], of either memory.
#[inline]
pub fn copy(
    from: &Memory,
    from_off: u64,
    to: &Memory,
    to_off: u64,
    len: usize,
) -> Result<(), Fault> {
    from.with(from_off, len, Usage::Read, |from, from_off| {
        to.with(to_off, len, Usage::Write, |to, to_off| {
            from.copy_to(from_off, to, to_off, len)
        })
    })
}
