// SPDX-License-Identifier: GPL-2.0

//! Memory regions.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    bindings,
    mem::{
        PageList,
        Pinned,
        Usage, //
    },
    object::object,
    pd::Pd,
    provider::Provider,
    verbs::umem, //
};
use core::{
    ffi::{
        c_int,
        c_uint, //
    },
    ptr,
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    },
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    types::Opaque, //
};

object! {
    /// A memory region: `struct ib_mr` and the provider's data.
    ///
    /// Unlike the other objects it is allocated by this crate.
    pub struct Mr<P: Provider>(ib_mr, P::Mr) {
        // The list that `SgList::collect` fills, while it does.
        filling: AtomicPtr<PageList>,
    }
}

impl<P: Provider> Mr<P> {
    /// The local key.
    pub fn lkey(&self) -> u32 {
        // SAFETY: Written once, before the object was shown to anybody.
        unsafe { (*self.as_raw()).lkey }
    }
}

/// What a process advises about regions (`enum ib_uverbs_advise_mr_advice`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Fault pages in to be read.
    Prefetch,
    /// Fault pages in to be written.
    PrefetchWrite,
    /// Take over what is there, fault nothing in.
    PrefetchNoFault,
}

impl Advice {
    pub(crate) fn from_raw(raw: bindings::ib_uverbs_advise_mr_advice) -> Result<Self> {
        match raw {
            bindings::ib_uverbs_advise_mr_advice_IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH => {
                Ok(Self::Prefetch)
            }
            bindings::ib_uverbs_advise_mr_advice_IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE => {
                Ok(Self::PrefetchWrite)
            }
            bindings::ib_uverbs_advise_mr_advice_IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT => {
                Ok(Self::PrefetchNoFault)
            }
            _ => Err(crate::errno::eopnotsupp()),
        }
    }
}

/// A range that an advice is about.
#[derive(Clone, Copy, Debug)]
pub struct AdvisedRange {
    /// First byte, as the region is addressed.
    pub addr: u64,
    /// Bytes.
    pub length: u32,
    /// Local key.
    pub lkey: u32,
}

/// What a re-registration changes; what is `None` stays.
pub struct Rereg<'a, P: Provider> {
    /// Other memory. Its `access` is the new one when that changes as well, else 0.
    pub memory: Option<UserRegion>,
    /// Another protection domain.
    pub pd: Option<&'a Pd<P>>,
    /// Other access, `IB_ACCESS_*` flags.
    pub access: Option<u32>,
    /// The protection domain from now on, changed or not.
    pub owner: &'a Pd<P>,
}

/// A scatterlist that a kernel user maps to a fast registered region: `ib_map_mr_sg()`.
pub struct SgList<'a, P: Provider> {
    mr: &'a Mr<P>,
    sg: *mut kernel::bindings::scatterlist,
    count: c_int,
    offset: *mut c_uint,
}

impl<'a, P: Provider> SgList<'a, P> {
    /// Wraps the arguments of the operation.
    ///
    /// # Safety
    ///
    /// `sg` must be a list of `count` elements, mapped for the device of `mr`, whose pages the user
    /// keeps until it invalidates or frees the region; `offset` is null or lent. The user does not
    /// map the same region twice at a time. The provider that gets it uses the pages no longer.
    pub(crate) unsafe fn new(
        mr: &'a Mr<P>,
        sg: *mut kernel::bindings::scatterlist,
        count: c_int,
        offset: *mut c_uint,
    ) -> Self {
        Self {
            mr,
            sg,
            count,
            offset,
        }
    }

    /// Puts the pages of the list, as far as they fit, into `pages` instead of what was there, and
    /// returns how many elements fit. The address and length that ib_core knows the region by are
    /// set. `pages` must not be used any more when the region's invalidation completes or it is
    /// freed: see [`KernelAddr`](crate::mem::KernelAddr). Any context.
    ///
    /// # Errors
    ///
    /// Those of `ib_sg_to_pages()`; `EINVAL` when the range does not fit the pages, and when the
    /// user maps pieces that are smaller than a page of this kernel (NVMe over Fabrics maps 4 KiB,
    /// which is less than a page on some kernels of arm64): the list has whole pages only.
    pub fn collect(self, pages: &mut PageList) -> Result<u32> {
        pages.clear();
        let raw = self.mr.as_raw();
        // SAFETY: Written by `ib_map_mr_sg()`, which calls this, before.
        if (unsafe { (*raw).page_size } as usize) < PAGE_SIZE {
            return Err(EINVAL);
        }
        self.mr
            .filling
            .store(ptr::from_mut(pages), Ordering::Relaxed);
        // SAFETY: The list is good by the contract of `new`; `add_page` is called during the call
        // only, when `filling` names the list, which is ours alone meanwhile.
        let mapped = unsafe {
            bindings::ib_sg_to_pages(raw, self.sg, self.count, self.offset, Some(add_page::<P>))
        };
        self.mr.filling.store(ptr::null_mut(), Ordering::Relaxed);
        let mapped = kernel::error::to_result(mapped).map(|()| mapped as u32)?;
        // SAFETY: Written by the call above; the user does not map it twice at a time.
        let (iova, length) = unsafe { ((*raw).iova, (*raw).length) };
        // The first page begins where one of the region's pages does, which may be larger.
        // SAFETY: As above.
        let first = iova & u64::from(unsafe { (*raw).page_size }).wrapping_sub(1);
        pages.set_range(first, length, Usage::Write)?;
        Ok(mapped)
    }
}

/// Appends one page of a region's page size to the list that is being filled.
///
/// # Safety
///
/// Called by `ib_sg_to_pages` from [`SgList::collect`].
unsafe extern "C" fn add_page<P: Provider>(mr: *mut bindings::ib_mr, addr: u64) -> c_int {
    // SAFETY: Created, not yet destroyed: it is being mapped.
    let (this, size) = unsafe { (Mr::<P>::from_raw(mr), u64::from((*mr).page_size)) };
    let list = this.filling.load(Ordering::Relaxed);
    // SAFETY: Set by `collect`, which has the only reference and does not use it during the call.
    let Some(list) = (unsafe { list.as_mut() }) else {
        return EINVAL.to_errno();
    };
    let mut at = 0;
    while at < size {
        // SAFETY: Part of the user's list, see `SgList::new`. What is behind the end of the list in
        // the last page is not named by the range.
        if let Err(e) = unsafe { list.push(addr.wrapping_add(at)) } {
            return e.to_errno();
        }
        at = at.wrapping_add(PAGE_SIZE as u64);
    }
    0
}

impl<P: Provider> Mr<P> {
    /// The address that the next fast registration gives the first byte.
    pub(crate) fn iova(&self) -> u64 {
        // SAFETY: Written by the user, who does not map the region while it posts it.
        unsafe { (*self.as_raw()).iova }
    }
}

/// Memory that a process asks to register.
#[derive(Clone, Copy, Debug)]
pub struct UserRegion {
    /// First byte, in the address space of the calling process.
    pub start: u64,
    /// Bytes; unchecked, 0 included.
    pub length: u64,
    /// Address by which work requests and peers name the first byte.
    pub iova: u64,
    /// `IB_ACCESS_*` flags. ib_core has refused unknown ones and remote write or atomics without
    /// local write.
    pub access: u32,
}

impl UserRegion {
    /// Pins the memory, on behalf of the calling process: it counts against RLIMIT_MEMLOCK. May
    /// sleep.
    ///
    /// # Errors
    ///
    /// `EFAULT` for memory that is not there, `ENOMEM` beyond the limit, `EPERM`.
    pub fn pin<P: Provider>(&self, pd: &Pd<P>) -> Result<Pinned> {
        // SAFETY: A PD's device is initialised; the memory of the device stays as long as the
        // result, which holds a reference.
        unsafe { umem::pin(pd.device().as_raw(), self.start, self.length, self.access) }
    }
}

/// A region that was made.
pub struct CreatedMr<T> {
    /// The provider's data.
    pub data: T,
    /// Local key.
    pub lkey: u32,
    /// Remote key.
    pub rkey: u32,
}

kernel::impl_flags!(
    /// What a region, a window or a queue pair may be used for: a set of [`AccessFlag`].
    ///
    /// A process gives bare numbers. [`AccessFlags::parse`] makes a set of a number only if it has
    /// no bits that nobody knows.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct AccessFlags(u32);

    /// A bit of access flags (`enum ib_access_flags`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum AccessFlag {
        /// The device may write by local key.
        LocalWrite = bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE,
        /// Peers may write.
        RemoteWrite = bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE,
        /// Peers may read.
        RemoteRead = bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
        /// Peers may do atomic operations.
        RemoteAtomic = bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC,
        /// Memory windows may be bound.
        MwBind = bindings::ib_access_flags_IB_ACCESS_MW_BIND,
        /// Addresses count from 0.
        ZeroBased = bindings::ib_access_flags_IB_ZERO_BASED,
        /// On-demand paging: the pages are not pinned.
        OnDemand = bindings::ib_access_flags_IB_ACCESS_ON_DEMAND,
        /// Peers may flush to global visibility.
        FlushGlobal = bindings::ib_access_flags_IB_ACCESS_FLUSH_GLOBAL,
        /// Peers may flush to persistence: all of the memory is persistent.
        FlushPersistent = bindings::ib_access_flags_IB_ACCESS_FLUSH_PERSISTENT,
        /// The memory is made of huge pages.
        HugeTlb = bindings::ib_access_flags_IB_ACCESS_HUGETLB,
    }
);

// The operators that the macro makes are no `const fn`, so constants are made by `with` and
// `union`.
impl AccessFlags {
    /// The flags in `raw`; `None` if there are others among them than `supported` and those that a
    /// provider may ignore (`IB_ACCESS_OPTIONAL`). The latter are left out.
    #[inline]
    pub const fn parse(raw: u32, supported: Self) -> Option<Self> {
        let counted = raw & !bindings::ib_access_flags_IB_ACCESS_OPTIONAL;
        if counted & !supported.0 == 0 {
            Some(Self(counted))
        } else {
            None
        }
    }

    /// The flags in `raw` that have a name here; others are left out.
    #[inline]
    pub const fn known(raw: u32) -> Self {
        Self(raw & Self::all_bits())
    }

    /// The number, as the verbs have it.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// These flags and `flag`.
    #[inline]
    pub const fn with(self, flag: AccessFlag) -> Self {
        Self(self.0 | flag as u32)
    }

    /// These flags and `others`.
    #[inline]
    pub const fn union(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether memory with such rights is pinned to be written.
    #[inline]
    pub const fn is_writing(self) -> bool {
        const WRITING: AccessFlags = AccessFlags::empty()
            .with(AccessFlag::LocalWrite)
            .with(AccessFlag::RemoteWrite)
            .with(AccessFlag::RemoteAtomic)
            .with(AccessFlag::MwBind);
        self.0 & WRITING.0 != 0
    }
}
