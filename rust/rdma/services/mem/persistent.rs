// SPDX-License-Identifier: GPL-2.0

//! Persistent memory: data written there survives a loss of power once it has left the CPU caches.
//!
//! C headers: `include/linux/libnvdimm.h`, `include/linux/ioport.h`.

use super::{
    Fault,
    Memory,
    Region,
    Usage, //
};
use crate::bindings;

/// Whether the architecture has a way to write its CPU caches back.
pub const HAS_WRITE_BACK: bool = cfg!(CONFIG_ARCH_HAS_PMEM_API);

impl Region<'_> {
    /// Whether all of it is persistent memory. Process context, sleeps.
    fn is_persistent(&self) -> bool {
        // SAFETY: By the type invariant the pages are there; callers are in process context.
        unsafe { bindings::xrdma_mem_is_persistent(&self.raw) }
    }

    /// Writes the CPU caches of `len` bytes at `off` back. Any context.
    fn write_back(&self, off: u64, len: usize) -> Result<(), Fault> {
        self.check(off, len)?;
        if self.raw.pages.is_null() {
            return Err(Fault);
        }
        // SAFETY: By the type invariant and the checks.
        unsafe { bindings::xrdma_mem_write_back(&self.raw, off, len) };
        Ok(())
    }
}

impl Memory {
    /// Whether it may be registered as persistent: it is, or each use tells, since other pages may
    /// be there every time. Process context, sleeps.
    pub fn may_persist(&self) -> bool {
        match self {
            Memory::User(pinned) => pinned.region().is_persistent(),
            Memory::OnDemand(_) => true,
            // Nobody has asked whether a kernel user's pages are.
            Memory::Kernel(_) | Memory::Pages(_) | Memory::Device(_) => false,
        }
    }

    /// Makes what was written to `len` bytes at `off` persistent; memory of which that cannot be
    /// said is a fault. Any context but where the memory sleeps.
    ///
    /// Whoever calls this has found that pinned memory [may persist](Self::may_persist).
    ///
    /// # Errors
    ///
    /// [`Fault`] when the memory is not known to be persistent.
    pub fn write_back(&self, off: u64, len: usize) -> Result<(), Fault> {
        match self {
            Memory::User(pinned) => pinned.region().write_back(off, len),
            // To be written back, pages need not be writable.
            Memory::OnDemand(memory) => memory.with(off, len, Usage::Read, |region| {
                if !region.is_persistent() {
                    return Err(Fault);
                }
                region.write_back(0, len)
            }),
            Memory::Kernel(_) | Memory::Pages(_) | Memory::Device(_) => Err(Fault),
        }
    }
}
