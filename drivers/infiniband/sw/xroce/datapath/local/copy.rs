// SPDX-License-Identifier: GPL-2.0

//! Copying between two places that are named by keys.

use crate::access::{
    self,
    locate, //
};
use crate::mr;
use crate::prelude::*;
use crate::qp::request::Sge;
use core::cell::Cell;
use rdma::mr::AccessFlags;
use rdma::work;

/// One end of a copy.
pub(super) enum End<'a> {
    /// A gather or scatter list.
    List {
        /// Protection domain of its keys.
        pd: PdId,
        /// The list.
        sges: &'a [Sge],
        /// Bytes of the message in front of what the list holds.
        skip: u32,
    },
    /// Memory that a remote key names.
    Remote {
        /// Protection domain that the key must belong to.
        pd: PdId,
        /// QP that is asked for the access.
        qpn: Qpn,
        /// The key.
        rkey: Key,
        /// Address of the first byte.
        va: u64,
    },
}

/// Which end of a copy is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyFault {
    Source,
    Destination,
}

impl End<'_> {
    /// Runs `f` on the memory at `offset`: with the offset to use there, and the number of bytes,
    /// `len` at most. `usage` is what a list is asked for; `access` what is asked of a remote
    /// key.
    fn with<R>(
        &self,
        offset: u32,
        len: u32,
        usage: Usage,
        access: AccessFlags,
        f: impl FnOnce(&Memory, u64, u32) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        match *self {
            End::List { pd, sges, skip } => {
                let offset = offset.checked_sub(skip).ok_or(Fault)?;
                let piece = locate(sges, offset).ok_or(Fault)?;
                let sge = sges.get(piece.index).ok_or(Fault)?;
                let len = len.min(piece.len);
                match sge.kernel {
                    Some(kernel) => f(&Memory::Kernel(kernel), u64::from(piece.skip), len),
                    None => {
                        access::with_sge(pd, sge, piece.skip, len, usage, |m, at| f(m, at, len))
                    }
                }
            }
            End::Remote { pd, qpn, rkey, va } => {
                let va = va.checked_add(u64::from(offset)).ok_or(Fault)?;
                mr::with_remote(rkey, pd, qpn, va, u64::from(len), access, |m, at| {
                    f(m, at, len)
                })
            }
        }
    }

    /// Whether the memory at `offset` is not pinned.
    fn sleeps(&self, offset: u32) -> bool {
        let key = match *self {
            End::List { sges, skip, .. } => offset
                .checked_sub(skip)
                .and_then(|offset| locate(sges, offset))
                .and_then(|piece| sges.get(piece.index))
                .filter(|sge| sge.kernel.is_none())
                .map(|sge| sge.lkey),
            End::Remote { rkey, .. } => Some(rkey),
        };
        key.is_some_and(mr::sleeps)
    }

    /// Reads bytes at `offset`; how many.
    fn load(&self, offset: u32, out: &mut [u8], access: AccessFlags) -> Result<u32, Fault> {
        self.with(
            offset,
            out.len() as u32,
            Usage::Read,
            access,
            |memory, at, len| {
                memory.read(at, out.get_mut(..len as usize).ok_or(Fault)?)?;
                Ok(len)
            },
        )
    }

    /// Stores 8 bytes at once.
    pub(super) fn store_u64(&self, value: u64, access: AccessFlags) -> Result<(), Fault> {
        self.with(0, 8, Usage::Write, access, |memory, at, len| {
            if len < 8 {
                return Err(Fault);
            }
            memory.write_u64(at, value)
        })
    }

    /// Stores the first bytes of `data` at `offset`; how many. It waits for memory once at most.
    pub(super) fn store(
        &self,
        offset: u32,
        data: &[u8],
        access: AccessFlags,
    ) -> Result<u32, Fault> {
        self.with(
            offset,
            data.len() as u32,
            Usage::Write,
            access,
            |memory, at, len| {
                memory.write(at, data.get(..len as usize).ok_or(Fault)?)?;
                Ok(len)
            },
        )
    }
}

/// Until when a copy may go on, if it may take long: memory that is not pinned may have to be
/// waited for again and again.
#[derive(Clone, Copy)]
pub(super) struct Until(pub(super) Option<u64>);

impl Until {
    pub(super) fn is_over(self) -> bool {
        self.0.is_some_and(|end| now_ns() >= end)
    }
}

/// Copies some of `len` bytes at `offset` by way of a buffer; how many.
fn copy_by_buffer(
    from: &End<'_>,
    to: &End<'_>,
    offset: u32,
    len: u32,
    access: AccessFlags,
) -> Result<u32, CopyFault> {
    let mut buffer = [0u8; 512];
    let piece = buffer
        .get_mut(..(len as usize).min(512))
        .ok_or(CopyFault::Source)?;
    let loaded = from
        .load(offset, piece, access)
        .map_err(|_| CopyFault::Source)?;
    let piece = piece.get(..loaded as usize).ok_or(CopyFault::Source)?;
    to.store(offset, piece, access)
        .map_err(|_| CopyFault::Destination)
}

/// Copies `len` bytes at `offset` of `from` to the same offset of `to`, or fewer when time is up;
/// how many. `access` is what is asked of the end that is remote.
pub(super) fn copy(
    from: &End<'_>,
    to: &End<'_>,
    offset: u32,
    len: u32,
    access: AccessFlags,
    until: Until,
) -> Result<u32, CopyFault> {
    let mut done = 0u32;
    // Where nothing may sleep, on-demand memory cannot be used anyhow: two lookups less.
    let may_sleep = work::may_sleep();
    while done < len {
        let at = offset.wrapping_add(done);
        let rest = len.wrapping_sub(done);
        // Memory that is faulted in must not be used while other memory is.
        if may_sleep && (from.sleeps(at) || to.sleeps(at)) {
            match copy_by_buffer(from, to, at, rest, access) {
                Ok(n) => done = done.wrapping_add(n.max(1)),
                // What was copied is not copied again, and what is missing has tries of its own.
                Err(_) if done > 0 => break,
                Err(fault) => return Err(fault),
            }
            if until.is_over() {
                break;
            }
            continue;
        }
        let readable = Cell::new(false);
        let copied = from.with(at, rest, Usage::Read, access, |source, src, rest| {
            readable.set(true);
            to.with(at, rest, Usage::Write, access, |target, dst, rest| {
                rdma::mem::copy(source, src, target, dst, rest as usize)?;
                Ok(rest)
            })
        });
        match copied {
            Ok(n) => done = done.wrapping_add(n.max(1)),
            Err(_) if readable.get() => return Err(CopyFault::Destination),
            Err(_) => return Err(CopyFault::Source),
        }
    }
    Ok(done)
}
