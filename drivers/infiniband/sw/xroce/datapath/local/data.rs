// SPDX-License-Identifier: GPL-2.0

//! The data of the sender's work request, as one end of a copy.

use super::copy::{
    copy,
    CopyFault,
    End,
    Until, //
};
use crate::access;
use crate::mr;
use crate::prelude::*;
use crate::qp::send::SendIo;

/// The data of a work request: memory that its gather list names, or inline.
#[derive(Clone, Copy)]
pub(super) struct Data<'a> {
    io: &'a SendIo,
    /// Protection domain of the keys in the list.
    pd: PdId,
    slot: u32,
}

impl<'a> Data<'a> {
    /// The data of the request in `slot` of `qp`, whose send side is `io`.
    pub(super) fn new(io: &'a SendIo, qp: &WireQp, slot: u32) -> Self {
        Data {
            io,
            pd: io.list_pd(qp, slot),
            slot,
        }
    }

    /// The memory that the list names.
    pub(super) fn list(&self) -> End<'a> {
        End::List {
            pd: self.pd,
            sges: self.io.list(self.slot),
            skip: 0,
        }
    }

    /// Whether some of it is on-demand memory.
    pub(super) fn sleeps(&self) -> bool {
        !self.io.is_inline(self.slot) && access::sleeps(self.io.list(self.slot))
    }

    /// Checks that the keys of the list allow the memory to be read. It may wait for memory.
    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.io.is_inline(self.slot) {
            return Ok(());
        }
        self.io
            .list(self.slot)
            .iter()
            .try_for_each(|sge| access::check_source(self.pd, sge))
    }

    /// Fills `out` with the bytes at `offset`.
    pub(super) fn read(&self, offset: u32, out: &mut [u8]) -> Result<(), Fault> {
        self.io.gather(self.pd, self.slot, offset, out)
    }

    /// Copies `len` bytes at offset `at` to the same offset of `to`, or fewer when time is up; how
    /// many.
    pub(super) fn copy_to(
        &self,
        to: &End<'_>,
        at: u32,
        len: u32,
        until: Until,
    ) -> Result<u32, CopyFault> {
        if self.io.is_inline(self.slot) {
            return self.copy_inline(to, at, len, until);
        }
        copy(&self.list(), to, at, len, mr::REMOTE_WRITE, until)
    }

    fn copy_inline(&self, to: &End<'_>, at: u32, len: u32, until: Until) -> Result<u32, CopyFault> {
        let mut buffer = [0u8; 256];
        let mut done = 0;
        while done < len {
            let part = len.wrapping_sub(done).min(buffer.len() as u32);
            let piece = buffer.get_mut(..part as usize).ok_or(CopyFault::Source)?;
            let offset = at.wrapping_add(done);
            self.read(offset, piece).map_err(|_| CopyFault::Source)?;
            match to.store(offset, piece, mr::REMOTE_WRITE) {
                Ok(stored) => done = done.wrapping_add(stored.max(1)),
                // As in `copy`.
                Err(_) if done > 0 => break,
                Err(_) => return Err(CopyFault::Destination),
            }
            if until.is_over() {
                break;
            }
        }
        Ok(done)
    }

    /// Stores the 8 bytes of an ATOMIC WRITE at once.
    pub(super) fn write_at_once(&self, to: &End<'_>) -> Result<(), CopyFault> {
        let mut value = [0u8; 8];
        self.read(0, &mut value).map_err(|_| CopyFault::Source)?;
        to.store_u64(u64::from_ne_bytes(value), mr::REMOTE_WRITE)
            .map_err(|_| CopyFault::Destination)
    }
}
