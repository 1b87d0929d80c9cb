// SPDX-License-Identifier: GPL-2.0

//! Memory regions.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    mem::Umem,
    object::object,
    pd::Pd,
    provider::Provider, //
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

object! {
    /// A memory region: `struct ib_mr` and the provider's data.
    ///
    /// Unlike the other objects it is allocated by this crate.
    pub struct Mr<P: Provider>(ib_mr, P::Mr) {}
}

impl<P: Provider> Mr<P> {
    /// The local key.
    pub fn lkey(&self) -> u32 {
        // SAFETY: Written once, before the object was shown to anybody.
        unsafe { (*self.as_raw()).lkey }
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
    /// Pins the memory, on behalf of the calling process: it counts against RLIMIT_MEMLOCK. May sleep.
    ///
    /// Errors: `EFAULT` for memory that is not there, `ENOMEM` beyond the limit, `EPERM`.
    pub fn pin<P: Provider>(&self, pd: &Pd<P>) -> Result<Umem> {
        // SAFETY: A PD's device is initialised; the memory of the device stays as long as the result,
        // which holds a reference.
        unsafe { Umem::pin_raw(pd.device().as_raw(), self.start, self.length, self.access) }
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

/// Bits of access flags (`enum ib_access_flags`).
pub mod access {
    use crate::bindings as b;

    /// The device may write by local key.
    pub const LOCAL_WRITE: u32 = b::ib_access_flags_IB_ACCESS_LOCAL_WRITE;
    /// Peers may write.
    pub const REMOTE_WRITE: u32 = b::ib_access_flags_IB_ACCESS_REMOTE_WRITE;
    /// Peers may read.
    pub const REMOTE_READ: u32 = b::ib_access_flags_IB_ACCESS_REMOTE_READ;
    /// Peers may do atomic operations.
    pub const REMOTE_ATOMIC: u32 = b::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC;
    /// Memory windows may be bound.
    pub const MW_BIND: u32 = b::ib_access_flags_IB_ACCESS_MW_BIND;
    /// Addresses count from 0.
    pub const ZERO_BASED: u32 = b::ib_access_flags_IB_ZERO_BASED;
    /// Pages are not pinned.
    pub const ON_DEMAND: u32 = b::ib_access_flags_IB_ACCESS_ON_DEMAND;
    /// Peers may flush to global visibility.
    pub const FLUSH_GLOBAL: u32 = b::ib_access_flags_IB_ACCESS_FLUSH_GLOBAL;
    /// Peers may flush to persistence.
    pub const FLUSH_PERSISTENT: u32 = b::ib_access_flags_IB_ACCESS_FLUSH_PERSISTENT;
    /// Flags that a provider may ignore.
    pub const OPTIONAL: u32 = b::ib_access_flags_IB_ACCESS_OPTIONAL;
}
