// SPDX-License-Identifier: GPL-2.0

//! A part of the memory that the kernel shares with a process, to which keys can refer.

use core::marker::PhantomData;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::Region;
use crate::{
    bindings,
    ring::RingMem, //
};

/// Bytes of shared pages; keeps them.
///
/// # Invariants
///
/// `length` bytes at `offset` are inside `mem`.
pub struct RingSlice {
    mem: Arc<RingMem>,
    offset: usize,
    length: u64,
}

impl RingSlice {
    /// `length` bytes at `offset` of `mem`.
    ///
    /// # Errors
    ///
    /// `EINVAL` when they are not inside.
    pub fn new(mem: Arc<RingMem>, offset: u64, length: u64) -> Result<Self> {
        let end = offset.checked_add(length).ok_or(EINVAL)?;
        if end > mem.len() as u64 {
            return Err(EINVAL);
        }
        // INVARIANT: Just checked; an offset inside memory fits.
        Ok(Self {
            mem,
            offset: offset as usize,
            length,
        })
    }

    /// The view through which it is copied.
    #[inline]
    pub fn region(&self) -> Region<'_> {
        // INVARIANT: By the invariant of this type, as long as `self` is borrowed: the pages are
        // mapped into the kernel, and both sides expect the other to write at any time.
        Region {
            raw: bindings::xrdma_mem {
                pages: core::ptr::null_mut(),
                va: self.mem.base().wrapping_add(self.offset),
                first: 0,
                length: self.length,
            },
            writable: true,
            _owner: PhantomData,
        }
    }
}
