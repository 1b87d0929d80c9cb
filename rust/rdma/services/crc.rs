// SPDX-License-Identifier: GPL-2.0

//! The CRC-32 of Ethernet, on which the ICRC of RoCE is based.
//!
//! C header: `include/linux/crc32.h`. The kernel's implementation uses vector instructions where
//! the CPU has them.

/// CRC-32, reflected polynomial 0xedb88320, with no inversion of `seed` or result. Any context.
#[inline]
pub fn crc32_le(seed: u32, data: &[u8]) -> u32 {
    // SAFETY: The slice is valid for reads of its length.
    unsafe { crate::bindings::xrdma_crc32_le(seed, data.as_ptr().cast(), data.len()) }
}
