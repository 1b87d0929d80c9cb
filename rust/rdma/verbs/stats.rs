// SPDX-License-Identifier: GPL-2.0

//! Hardware counters of a port, as `rdma statistic` and sysfs show them.
//!
//! C header: `include/rdma/ib_verbs.h` (`struct rdma_hw_stats`).

use crate::bindings;
use kernel::prelude::*;

/// The name of a counter.
#[repr(transparent)]
pub struct CounterDesc(bindings::rdma_stat_desc);

// SAFETY: Immutable; its pointer is to a `'static` string.
unsafe impl Sync for CounterDesc {}

// SAFETY: As above.
unsafe impl Send for CounterDesc {}

impl CounterDesc {
    /// Names a counter.
    pub const fn new(name: &'static CStr) -> Self {
        Self(bindings::rdma_stat_desc {
            name: kernel::str::as_char_ptr_in_const_context(name),
            flags: 0,
            priv_: core::ptr::null(),
        })
    }
}
