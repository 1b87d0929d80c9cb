// SPDX-License-Identifier: GPL-2.0

//! The slots of a send ring (`struct xroce_send_slot`).

use super::slot::{
    align,
    copy_rest,
    read_list,
    u16_at,
    u32_at,
    u64_at,
    u8_at, //
};
use crate::limits;
use crate::prelude::*;
use crate::qp::request::{
    BindPart,
    FlushPart,
    RdmaPart,
    SendHead,
    SendOp,
    Sge,
    UdPart,
    MAX_SGE, //
};
use crate::qp::ring::{
    CorruptRing,
    RingReader, //
};
use crate::qp::QpKind;
use abi::send_slot as at;

/// Bytes of the largest send slot.
const MAX_SEND_SLOT: usize = abi::SEND_SLOT_HDR + MAX_SGE * abi::SGE_SIZE + 16;

/// Bytes of a send slot to copy first; they say how many more matter.
const SEND_SLOT_FIRST: usize = abi::SEND_SLOT_ALIGN as usize;

/// Bytes of a send slot that matter, judged by its first [`SEND_SLOT_FIRST`] bytes. Never more than
/// [`MAX_SEND_SLOT`]; inline data are not among them.
fn send_slot_len(slot: &[u8], max_sge: usize) -> usize {
    if u8_at(slot, at::FLAGS) & abi::SEND_INLINE != 0 {
        return SEND_SLOT_FIRST;
    }
    let count = usize::from(u16_at(slot, at::COUNT)).min(max_sge.min(MAX_SGE));
    abi::SEND_SLOT_HDR
        .wrapping_add(count.wrapping_mul(abi::SGE_SIZE))
        .max(SEND_SLOT_FIRST)
}

/// What a user may ask a queue pair of some type for.
pub fn is_allowed(kind: QpKind, op: SendOp) -> bool {
    match op {
        SendOp::Send | SendOp::SendImm => true,
        SendOp::Write | SendOp::WriteImm | SendOp::BindMw | SendOp::LocalInv | SendOp::RegMr => {
            !kind.is_datagram()
        }
        SendOp::SendInv
        | SendOp::Read
        | SendOp::CmpSwap
        | SendOp::FetchAdd
        | SendOp::AtomicWrite
        | SendOp::Flush => kind.is_reliable(),
    }
}

fn opcode(raw: u8) -> Option<SendOp> {
    Some(match u32::from(raw) {
        abi::XROCE_WR_RDMA_WRITE => SendOp::Write,
        abi::XROCE_WR_RDMA_WRITE_IMM => SendOp::WriteImm,
        abi::XROCE_WR_SEND => SendOp::Send,
        abi::XROCE_WR_SEND_IMM => SendOp::SendImm,
        abi::XROCE_WR_RDMA_READ => SendOp::Read,
        abi::XROCE_WR_ATOMIC_CMP_SWAP => SendOp::CmpSwap,
        abi::XROCE_WR_ATOMIC_FETCH_ADD => SendOp::FetchAdd,
        abi::XROCE_WR_SEND_INV => SendOp::SendInv,
        abi::XROCE_WR_LOCAL_INV => SendOp::LocalInv,
        abi::XROCE_WR_BIND_MW => SendOp::BindMw,
        abi::XROCE_WR_FLUSH => SendOp::Flush,
        abi::XROCE_WR_ATOMIC_WRITE => SendOp::AtomicWrite,
        _ => return None,
    })
}

/// Copies the next send slot of the ring of a QP of type `kind` and decodes it. `list` has as many
/// elements as the QP has send SGEs. The inner error is the status of a request that makes no
/// sense; `head` then holds what its completion needs.
///
/// # Errors
///
/// [`CorruptRing`] for a slot that is not inside the ring.
pub(crate) fn copy_send(
    ring: &RingReader,
    kind: QpKind,
    max_inline: u32,
    head: &mut SendHead,
    list: &mut [Sge],
) -> Result<Result<(), WcStatus>, CorruptRing> {
    let mut first = [0u8; SEND_SLOT_FIRST];
    ring.copy(0, &mut first)?;
    let len = send_slot_len(&first, list.len());
    if len > SEND_SLOT_FIRST {
        return copy_rest::<MAX_SEND_SLOT, _>(ring, &first, len, |slot| {
            decode_send(kind, slot, max_inline, head, list)
        });
    }
    Ok(decode_send(kind, &first, max_inline, head, list))
}

/// Decodes a send slot, see [`copy_send`]. Bytes that are missing are read as zeroes.
fn decode_send(
    kind: QpKind,
    slot: &[u8],
    max_inline: u32,
    head: &mut SendHead,
    list: &mut [Sge],
) -> Result<(), WcStatus> {
    let flags = u8_at(slot, at::FLAGS);
    *head = SendHead {
        wr_id: u64_at(slot, at::WR_ID),
        signaled: flags & abi::SEND_SIGNALED != 0,
        solicited: flags & abi::SEND_SOLICITED != 0,
        fence: flags & abi::SEND_FENCE != 0,
        imm: u32_at(slot, at::IMM),
        ..SendHead::default()
    };
    head.op = opcode(u8_at(slot, at::OPCODE)).ok_or(WcStatus::LocQpOpErr)?;
    if !is_allowed(kind, head.op) {
        return Err(WcStatus::LocQpOpErr);
    }
    if kind.is_datagram() {
        head.ud = ud_part(slot);
    } else {
        head.rdma = rdma_part(slot);
    }
    match head.op {
        SendOp::BindMw => {
            head.rdma = RdmaPart::from_bind(&bind_part(slot));
            return no_data(slot);
        }
        SendOp::LocalInv => return no_data(slot),
        _ => {}
    }
    if kind == QpKind::XrcIni && Srqn::checked(head.rdma.srqn).is_none() {
        return Err(WcStatus::LocQpOpErr);
    }
    if head.op == SendOp::Flush {
        head.rdma.set_flush(flush_part(slot));
        head.length = u32_at(slot, at::FLUSH_LENGTH);
        return no_data(slot);
    }
    let count = u16_at(slot, at::COUNT);
    if flags & abi::SEND_INLINE != 0 {
        decode_inline(u32::from(count), max_inline, head)?;
    } else {
        decode_list(slot, usize::from(count), head, list)?;
    }
    check_length(head)
}

// The parts of a slot that differ from opcode to opcode; unchecked.

fn ud_part(slot: &[u8]) -> UdPart {
    UdPart {
        ah: u32_at(slot, at::AH),
        remote_qpn: Qpn::new(u32_at(slot, at::REMOTE_QPN)),
        remote_qkey: u32_at(slot, at::REMOTE_QKEY),
    }
}

fn rdma_part(slot: &[u8]) -> RdmaPart {
    RdmaPart {
        remote_addr: u64_at(slot, at::REMOTE_ADDR),
        rkey: Key::new(u32_at(slot, at::RKEY)),
        srqn: u32_at(slot, at::SRQN),
        compare_add: u64_at(slot, at::COMPARE_ADD),
        swap: u64_at(slot, at::SWAP),
    }
}

fn bind_part(slot: &[u8]) -> BindPart {
    BindPart {
        addr: u64_at(slot, at::BIND_ADDR),
        length: u64_at(slot, at::BIND_LENGTH),
        mr_lkey: Key::new(u32_at(slot, at::BIND_MR_LKEY)),
        mw_rkey: Key::new(u32_at(slot, at::BIND_MW_RKEY)),
        access: u32_at(slot, at::BIND_ACCESS),
        new_rkey: Key::new(u32_at(slot, at::BIND_NEW_RKEY)),
    }
}

fn flush_part(slot: &[u8]) -> FlushPart {
    FlushPart {
        placement: u8_at(slot, at::FLUSH_TYPE),
        level: u8_at(slot, at::FLUSH_LEVEL),
    }
}

/// Requests that carry nothing have neither list nor inline data.
fn no_data(slot: &[u8]) -> Result<(), WcStatus> {
    let inline = u8_at(slot, at::FLAGS) & abi::SEND_INLINE != 0;
    if inline || u16_at(slot, at::COUNT) != 0 {
        return Err(WcStatus::LocQpOpErr);
    }
    Ok(())
}

/// Inline data: of SENDs and WRITEs only, and no more than the slot has room for.
fn decode_inline(len: u32, max_inline: u32, head: &mut SendHead) -> Result<(), WcStatus> {
    match head.op {
        SendOp::Send
        | SendOp::SendImm
        | SendOp::SendInv
        | SendOp::Write
        | SendOp::WriteImm
        | SendOp::AtomicWrite => {}
        _ => return Err(WcStatus::LocQpOpErr),
    }
    if len > max_inline {
        return Err(WcStatus::LocLenErr);
    }
    head.length = len;
    head.inline_at = Some(abi::SEND_SLOT_HDR as u32);
    Ok(())
}

fn decode_list(
    slot: &[u8],
    count: usize,
    head: &mut SendHead,
    list: &mut [Sge],
) -> Result<(), WcStatus> {
    if count > list.len() {
        return Err(WcStatus::LocQpOpErr);
    }
    head.length = read_list(slot, abi::SEND_SLOT_HDR, count, list).ok_or(WcStatus::LocLenErr)?;
    head.num_sge = count as u32;
    Ok(())
}

/// Atomics return 8 bytes, from an 8-byte aligned remote address; an atomic write brings as many.
///
/// # Errors
///
/// `LocLenErr` for another length than 8 bytes; `RemInvReqErr` for an address that is not aligned.
pub fn check_length(head: &SendHead) -> Result<(), WcStatus> {
    if matches!(
        head.op,
        SendOp::CmpSwap | SendOp::FetchAdd | SendOp::AtomicWrite
    ) {
        if head.length != 8 {
            return Err(WcStatus::LocLenErr);
        }
        if head.rdma.remote_addr & 7 != 0 {
            return Err(WcStatus::RemInvReqErr);
        }
    }
    Ok(())
}

/// Distance between the slots of a send ring.
pub fn send_stride(max_sge: u32, max_inline: u32) -> u32 {
    let data = max_sge.saturating_mul(abi::SGE_SIZE as u32).max(max_inline);
    align(
        (abi::SEND_SLOT_HDR as u32).saturating_add(data),
        abi::SEND_SLOT_ALIGN,
    )
}

/// Inline bytes that slots of a send ring with that stride have room for.
pub fn inline_room(stride: u32) -> u32 {
    stride
        .saturating_sub(abi::SEND_SLOT_HDR as u32)
        .min(limits::MAX_INLINE)
}
