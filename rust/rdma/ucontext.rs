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
    /// Gives a ring an `mmap` offset in this context. May sleep.
    pub fn map_ring(&self, ring: Arc<RingMem>) -> Result<RingMapping> {
        Offsets::insert(&self.offsets, ring)
    }
}
