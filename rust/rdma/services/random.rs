// SPDX-License-Identifier: GPL-2.0

//! Random numbers.
//!
//! C header: `include/linux/random.h`.

use crate::bindings;

/// A random number that nobody can guess. Any context.
pub fn random_u64() -> u64 {
    // SAFETY: No requirements.
    unsafe { bindings::xrdma_random_u64() }
}
