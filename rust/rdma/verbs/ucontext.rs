// SPDX-License-Identifier: GPL-2.0

//! User contexts: one for each open of the device by a process.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    object::object,
    provider::Provider,
    ring::RingMem,
    uverbs::mmap::{
        Offsets,
        RingMapping, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

object! {
    /// A user context: `struct ib_ucontext` and the provider's data.
    pub struct UContext<P: Provider>(ib_ucontext, P::UContext) {
        offsets: Arc<Offsets>,
    }
}

impl<P: Provider> UContext<P> {
    /// Pages from here on are given out by [`UContext::map_ring_at`] only.
    const FIRST_FIXED_PAGE: u32 = {
        let page = P::FIXED_MMAP_BASE >> kernel::page::PAGE_SHIFT;
        assert!(page > 1 && page <= u32::MAX as u64);
        page as u32
    };

    /// Gives a ring an `mmap` offset in this context. May sleep.
    ///
    /// # Errors
    ///
    /// `ENODEV` when the context is closed; `ENOMEM`, also when no offset is free.
    pub fn map_ring(&self, ring: Arc<RingMem>) -> Result<RingMapping> {
        Offsets::insert(&self.offsets, ring, 1..=Self::FIRST_FIXED_PAGE - 1)
    }

    /// As [`Self::map_ring`], at a given offset, which is [`Provider::FIXED_MMAP_BASE`] or more and
    /// a multiple of the page size.
    ///
    /// # Errors
    ///
    /// `EINVAL` for another offset; `ENODEV` when the context is closed; `ENOMEM` when it is taken,
    /// if only by a mapping whose ring has lost its offset.
    pub fn map_ring_at(&self, ring: Arc<RingMem>, offset: u64) -> Result<RingMapping> {
        let page = offset >> kernel::page::PAGE_SHIFT;
        let last = page
            .checked_add((ring.len() >> kernel::page::PAGE_SHIFT) as u64)
            .and_then(|end| end.checked_sub(1))
            .ok_or(EINVAL)?;
        if page < u64::from(Self::FIRST_FIXED_PAGE) || page << kernel::page::PAGE_SHIFT != offset {
            return Err(EINVAL);
        }
        let (page, last) = (u32::try_from(page), u32::try_from(last));
        match (page, last) {
            (Ok(page), Ok(last)) => {
                let mapping = Offsets::insert(&self.offsets, ring, page..=last)?;
                (mapping.offset() == offset)
                    .then_some(mapping)
                    .ok_or(ENOMEM)
            }
            _ => Err(EINVAL),
        }
    }
}
