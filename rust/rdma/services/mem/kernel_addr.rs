// SPDX-License-Identifier: GPL-2.0

//! Memory that a kernel user of the device names by its address.

use core::marker::PhantomData;

use super::Region;
use crate::bindings;

/// One piece of kernel memory: what an element of a kernel user's scatter list names, on a device
/// whose DMA addresses are kernel addresses (`CONFIG_INFINIBAND_VIRT_DMA`).
///
/// Not bound by a lifetime: it waits in queues as long as the request does. That it is not used
/// longer is up to the provider, in whose hands it is; of all that this crate exports only this
/// memory and that of a [`PageList`](super::PageList) depend on such a promise of safe code.
///
/// # Invariants
///
/// The bytes may be read and written as long as the value is in use, if the provider uses it as
/// above.
#[derive(Clone, Copy)]
pub struct KernelAddr {
    addr: u64,
    length: u64,
}

impl KernelAddr {
    /// `length` bytes at `addr`, which may be zero bytes anywhere.
    ///
    /// # Safety
    ///
    /// A kernel user has passed this range to the device and keeps it until the work request that
    /// names it completes. The value goes to the provider only, which does not use it longer, and
    /// does not write to what a work request sends.
    pub unsafe fn new(addr: u64, length: usize) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            addr,
            length: length as u64,
        }
    }

    /// All of the kernel's memory, the offset being the address: a region of `ib_get_dma_mr()`,
    /// which trusts its users with exactly that.
    ///
    /// # Safety
    ///
    /// Offsets come from kernel users only, or from those that a kernel user has given a global
    /// key.
    pub unsafe fn everything() -> Self {
        // INVARIANT: By the safety requirement on all offsets.
        Self {
            addr: 0,
            length: u64::MAX,
        }
    }

    /// The view through which it is copied.
    #[inline]
    pub fn region(&self) -> Region<'_> {
        // INVARIANT: By the invariant of this type.
        Region {
            raw: bindings::xrdma_mem {
                pages: core::ptr::null_mut(),
                va: self.addr as usize as *mut u8,
                first: 0,
                length: self.length,
            },
            writable: true,
            _owner: PhantomData,
        }
    }
}
