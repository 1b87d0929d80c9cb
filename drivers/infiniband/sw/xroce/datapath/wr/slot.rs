// SPDX-License-Identifier: GPL-2.0

//! Common parts of the slots of all rings: fields at an offset, scatter/gather elements, size.

use crate::prelude::*;
use crate::qp::request::Sge;
use crate::qp::ring::{
    CorruptRing,
    RingReader, //
};
use roce::mtu::MAX_MESSAGE;

fn bytes<const N: usize>(slot: &[u8], at: usize) -> [u8; N] {
    let mut out = [0u8; N];
    if let Some(from) = at.checked_add(N).and_then(|end| slot.get(at..end)) {
        out.copy_from_slice(from);
    }
    out
}

pub(crate) fn u8_at(slot: &[u8], at: usize) -> u8 {
    slot.get(at).copied().unwrap_or(0)
}

pub(crate) fn u16_at(slot: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes(slot, at))
}

pub(crate) fn u32_at(slot: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes(slot, at))
}

pub(crate) fn u64_at(slot: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes(slot, at))
}

fn sge_at(slot: &[u8], at: usize) -> Sge {
    Sge {
        addr: u64_at(slot, at.wrapping_add(abi::sge::ADDR)),
        len: u32_at(slot, at.wrapping_add(abi::sge::LENGTH)),
        lkey: Key::new(u32_at(slot, at.wrapping_add(abi::sge::LKEY))),
        kernel: None,
    }
}

/// Reads `count` elements that begin at `at`; the total of their lengths. `None` when there are too
/// many, or when they are longer than a message can be.
pub(super) fn read_list(slot: &[u8], at: usize, count: usize, list: &mut [Sge]) -> Option<u32> {
    let list = list.get_mut(..count)?;
    let mut total = 0u64;
    for (i, to) in list.iter_mut().enumerate() {
        *to = sge_at(slot, at.wrapping_add(i.wrapping_mul(abi::SGE_SIZE)));
        total = total.wrapping_add(u64::from(to.len));
    }
    u32::try_from(total).ok().filter(|&t| t <= MAX_MESSAGE)
}

/// Copies what is missing of a slot of at most `MAX` bytes, of which `len` matter and `first` were
/// copied, and has it decoded. User space may write the slot meanwhile, so that nothing of it is
/// copied twice. Not inlined: most slots are short, and need not zero so much of the stack.
///
/// # Errors
///
/// [`CorruptRing`] for a slot that is not inside the ring, or longer than `MAX`.
#[inline(never)]
pub(super) fn copy_rest<const MAX: usize, R>(
    ring: &RingReader,
    first: &[u8],
    len: usize,
    decode: impl FnOnce(&[u8]) -> R,
) -> Result<R, CorruptRing> {
    let mut slot = [0u8; MAX];
    let (start, rest) = slot.split_at_mut_checked(first.len()).ok_or(CorruptRing)?;
    start.copy_from_slice(first);
    let rest_len = len.wrapping_sub(first.len());
    ring.copy(first.len(), rest.get_mut(..rest_len).ok_or(CorruptRing)?)?;
    Ok(decode(&slot))
}

pub(super) fn align(n: u32, to: u32) -> u32 {
    n.saturating_add(to.wrapping_sub(1)) & !to.wrapping_sub(1)
}

/// Bytes of a ring.
///
/// # Errors
///
/// EINVAL when the size overflows.
fn ring_size(entries: u32, stride: u32) -> Result<usize> {
    (entries as usize)
        .checked_mul(stride as usize)
        .and_then(|slots| slots.checked_add(abi::RING_HDR_SIZE))
        .ok_or(EINVAL)
}

/// Makes the memory of a ring. Process context.
///
/// # Errors
///
/// EINVAL when the size overflows; ENOMEM.
pub fn new_ring(entries: u32, stride: u32) -> Result<Arc<RingMem>> {
    let size = ring_size(entries, stride)?;
    Ok(Arc::new(RingMem::new(size)?, GFP_ACCOUNT)?)
}

/// Makes the memory of two rings, each given as its slots and their stride, one behind the other;
/// and says where the second begins. Process context.
///
/// # Errors
///
/// EINVAL when the size overflows; ENOMEM.
pub fn new_ring_pair(first: (u32, u32), second: (u32, u32)) -> Result<(Arc<RingMem>, usize)> {
    // The parts of a header that one side writes are so far apart, in order to be on different
    // cache lines.
    let at = ring_size(first.0, first.1)?
        .checked_next_multiple_of(abi::RING_KERNEL_INDEX)
        .ok_or(EINVAL)?;
    let size = ring_size(second.0, second.1)?
        .checked_add(at)
        .ok_or(EINVAL)?;
    Ok((Arc::new(RingMem::new(size)?, GFP_ACCOUNT)?, at))
}
