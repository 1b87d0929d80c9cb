// SPDX-License-Identifier: GPL-2.0

//! The slots of a receive ring (`struct xroce_recv_slot`).

use super::slot::{
    align,
    copy_rest,
    read_list,
    u32_at,
    u64_at, //
};
use crate::prelude::*;
use crate::qp::request::{
    RecvHead,
    Sge,
    MAX_SGE, //
};
use crate::qp::ring::{
    CorruptRing,
    RingReader, //
};

/// Bytes of the largest receive slot.
pub(crate) const MAX_RECV_SLOT: usize = abi::RECV_SLOT_HDR + MAX_SGE * abi::SGE_SIZE + 16;

const _: () = assert!(MAX_RECV_SLOT % abi::RECV_SLOT_ALIGN as usize == 0);

/// Bytes of a receive slot to copy first.
const RECV_SLOT_FIRST: usize = abi::RECV_SLOT_ALIGN as usize;

/// Bytes of a receive slot that matter, judged by its first [`RECV_SLOT_FIRST`] bytes.
fn recv_slot_len(slot: &[u8], max_sge: usize) -> usize {
    let count = (u32_at(slot, abi::recv_slot::NUM_SGE) as usize).min(max_sge.min(MAX_SGE));
    abi::RECV_SLOT_HDR
        .wrapping_add(count.wrapping_mul(abi::SGE_SIZE))
        .max(RECV_SLOT_FIRST)
}

/// Decodes a receive slot. `list` has as many elements as the queue has receive SGEs.
fn decode_recv(slot: &[u8], head: &mut RecvHead, list: &mut [Sge]) -> Result<(), CorruptRing> {
    *head = RecvHead {
        wr_id: u64_at(slot, abi::recv_slot::WR_ID),
        num_sge: 0,
    };
    let count = u32_at(slot, abi::recv_slot::NUM_SGE);
    if count as usize > list.len() {
        return Err(CorruptRing);
    }
    // A list may be longer than a message; a message never is.
    let _ = read_list(slot, abi::RECV_SLOT_HDR, count as usize, list);
    head.num_sge = count;
    Ok(())
}

/// Copies the next receive slot of a ring and decodes it.
pub(crate) fn copy_recv(
    ring: &RingReader,
    head: &mut RecvHead,
    list: &mut [Sge],
) -> Result<(), CorruptRing> {
    let mut first = [0u8; RECV_SLOT_FIRST];
    ring.copy(0, &mut first)?;
    let len = recv_slot_len(&first, list.len());
    if len > RECV_SLOT_FIRST {
        return copy_rest::<MAX_RECV_SLOT, _>(ring, &first, len, |slot| {
            decode_recv(slot, head, list)
        })?;
    }
    decode_recv(&first, head, list)
}

/// Distance between the slots of a receive ring.
pub fn recv_stride(max_sge: u32) -> u32 {
    let data = max_sge.saturating_mul(abi::SGE_SIZE as u32);
    align(
        (abi::RECV_SLOT_HDR as u32).saturating_add(data),
        abi::RECV_SLOT_ALIGN,
    )
}
