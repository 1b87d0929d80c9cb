// SPDX-License-Identifier: GPL-2.0

//! What computes the ICRC of packets that were handed over without one.

use core::slice;

/// Knows what the ICRC of a packet is.
pub trait Icrc: 'static {
    /// The ICRC, which the packet has in little-endian order. `headers`: IP header and UDP header.
    /// `covered`: from the base transport header to the last pad byte. Any context.
    fn icrc(headers: &[u8], covered: &[u8]) -> u32;
}

/// # Safety
///
/// `headers` and `covered` are valid for reads of so many bytes, which nobody writes to during the
/// call.
pub(crate) unsafe extern "C" fn compute<I: Icrc>(
    headers: *const u8,
    headers_len: u32,
    covered: *const u8,
    len: u32,
) -> u32 {
    // SAFETY: By the safety requirement.
    let (headers, covered) = unsafe {
        (
            slice::from_raw_parts(headers, headers_len as usize),
            slice::from_raw_parts(covered, len as usize),
        )
    };
    I::icrc(headers, covered)
}
