// SPDX-License-Identifier: GPL-2.0

//! Moving bytes between packets and the memory that work requests name.

use crate::mr;
use crate::prelude::*;
use crate::qp::request::Sge;

/// Why a scatter failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScatterError {
    /// The list is shorter than the data.
    TooLong,
    /// A key, an address or an access right is wrong.
    Protection,
}

/// A piece of one element of a list.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    /// Index of the element.
    pub(crate) index: usize,
    /// First byte inside the element.
    pub(crate) skip: u32,
    /// Bytes, from there to the end of the element at most.
    pub(crate) len: u32,
}

/// Finds the piece of `sges` that holds byte `offset` of the list.
pub(crate) fn locate(sges: &[Sge], offset: u32) -> Option<Piece> {
    let mut skip = offset;
    for (index, sge) in sges.iter().enumerate() {
        if skip < sge.len {
            return Some(Piece {
                index,
                skip,
                len: sge.len.wrapping_sub(skip),
            });
        }
        skip = skip.wrapping_sub(sge.len);
    }
    None
}

/// Total length of a list, at most `u32::MAX`.
pub(crate) fn total(sges: &[Sge]) -> u32 {
    sges.iter()
        .fold(0u32, |sum, sge| sum.saturating_add(sge.len))
}

/// Whether a list contains on-demand memory, so that a context that uses it must be able to sleep.
pub(crate) fn sleeps(sges: &[Sge]) -> bool {
    sges.iter()
        .any(|sge| sge.kernel.is_none() && mr::sleeps(sge.lkey))
}

/// Runs `f` on the memory under `len` bytes at `skip` of `sge`, with the offset to hand to it.
/// Any context; `f` must not sleep.
pub(crate) fn with_sge<R>(
    pd: PdId,
    sge: &Sge,
    skip: u32,
    len: u32,
    usage: Usage,
    f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let addr = sge.addr.checked_add(u64::from(skip)).ok_or(Fault)?;
    mr::with_local(sge.lkey, pd, addr, u64::from(len), usage, f)
}

/// Whether the memory of `sge` may be read, without reading it. On-demand memory is faulted in page
/// by page, so only its ends are touched. Any context that [`with_sge`] may be called from.
pub(crate) fn check_source(pd: PdId, sge: &Sge) -> Result<(), Fault> {
    // A kernel user's memory was checked when it was posted.
    let (None, Some(last)) = (&sge.kernel, sge.len.checked_sub(1)) else {
        return Ok(());
    };
    if !mr::sleeps(sge.lkey) {
        return with_sge(pd, sge, 0, sge.len, Usage::Read, |_, _| Ok(()));
    }
    with_sge(pd, sge, 0, 1, Usage::Read, |_, _| Ok(()))?;
    with_sge(pd, sge, last, 1, Usage::Read, |_, _| Ok(()))
}

/// Fills `out` with the bytes of the list from `offset` on.
pub(crate) fn gather(pd: PdId, sges: &[Sge], offset: u32, out: &mut [u8]) -> Result<(), Fault> {
    let mut offset = offset;
    let mut out = out;
    while !out.is_empty() {
        let piece = locate(sges, offset).ok_or(Fault)?;
        let sge = sges.get(piece.index).ok_or(Fault)?;
        let len = (piece.len as usize).min(out.len());
        let (now, rest) = out.split_at_mut_checked(len).ok_or(Fault)?;
        match &sge.kernel {
            Some(kernel) => kernel.region().read(u64::from(piece.skip), now)?,
            None => with_sge(
                pd,
                sge,
                piece.skip,
                len as u32,
                Usage::Read,
                |memory, at| memory.read(at, now),
            )?,
        }
        offset = offset.checked_add(len as u32).ok_or(Fault)?;
        out = rest;
    }
    Ok(())
}

/// Stores `data` in the list from `offset` on.
pub(crate) fn scatter(
    pd: PdId,
    sges: &[Sge],
    offset: u32,
    data: &[u8],
) -> Result<(), ScatterError> {
    let mut offset = offset;
    let mut data = data;
    while !data.is_empty() {
        let piece = locate(sges, offset).ok_or(ScatterError::TooLong)?;
        let sge = sges.get(piece.index).ok_or(ScatterError::TooLong)?;
        let len = (piece.len as usize).min(data.len());
        let (now, rest) = data.split_at_checked(len).ok_or(ScatterError::TooLong)?;
        match &sge.kernel {
            Some(kernel) => kernel.region().write(u64::from(piece.skip), now),
            None => with_sge(
                pd,
                sge,
                piece.skip,
                len as u32,
                Usage::Write,
                |memory, at| memory.write(at, now),
            ),
        }
        .map_err(|_| ScatterError::Protection)?;
        offset = offset
            .checked_add(len as u32)
            .ok_or(ScatterError::TooLong)?;
        data = rest;
    }
    Ok(())
}
