// SPDX-License-Identifier: GPL-2.0

//! Device memory.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    object::object,
    provider::Provider,
    ucontext::UContext, //
};
use kernel::types::Opaque;

object! {
    /// Device memory: `struct ib_dm` and the provider's data.
    ///
    /// Unlike most objects it is allocated by this crate.
    pub struct Dm<P: Provider>(ib_dm, P::Dm) {}
}

/// Device memory that a process asks for.
pub struct DmAlloc<'a, P: Provider> {
    /// Bytes; unchecked.
    pub length: u64,
    /// Alignment as a power of two; unchecked.
    pub log_alignment: u32,
    /// Who asks.
    pub context: &'a UContext<P>,
    /// What the process will know it by.
    pub handle: u32,
}

/// Device memory that was made.
pub struct CreatedDm<T> {
    /// The provider's data.
    pub data: T,
}

/// Part of device memory that a process asks to register; addresses count from 0. ib_core has
/// checked that it is inside the length that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct DmRegion {
    /// First byte.
    pub offset: u64,
    /// Bytes; 0 included.
    pub length: u64,
    /// `IB_ACCESS_*` flags.
    pub access: u32,
}
