// SPDX-License-Identifier: GPL-2.0

//! Work requests and completions in the formats of their users.
//!
//! This is the one place that knows how a ring slot looks: it turns bytes that were copied out of a
//! ring, or a kernel user's request, into the module's own work request, and refuses what makes no
//! sense for the queue pair. What it returns is safe to use; keys are checked when memory is used.

use crate::cq::KernelCompletion;
use crate::limits;
use crate::prelude::*;
use crate::provider::Xroce;
use crate::qp::request::{
    BindPart,
    FlushPart,
    KernelQueue,
    RdmaPart,
    RecvHead,
    RegPart,
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
use rdma::uverbs::mmap::RingMapping;
use rdma::wr::{
    self as verbs,
    RecvWr,
    SendOpcode,
    SendWr,
    Wc,
    WcBuf, //
};
use roce::mtu::MAX_MESSAGE;

/// Bytes of the largest send slot.
pub(crate) const MAX_SEND_SLOT: usize = abi::SEND_SLOT_HDR + MAX_SGE * abi::SGE_SIZE + 16;
/// Bytes of a send slot to copy first; they say how many more matter.
pub(crate) const SEND_SLOT_FIRST: usize = abi::SEND_SLOT_ALIGN as usize;
/// Bytes of the largest receive slot.
pub(crate) const MAX_RECV_SLOT: usize = abi::RECV_SLOT_HDR + MAX_SGE * abi::SGE_SIZE + 16;
const _: () = assert!(MAX_RECV_SLOT % abi::RECV_SLOT_ALIGN as usize == 0);
/// Bytes of a receive slot to copy first.
pub(crate) const RECV_SLOT_FIRST: usize = abi::RECV_SLOT_ALIGN as usize;

// `enum ibv_wc_opcode`
/// SEND
pub(crate) const WC_SEND: u32 = 0;
/// RDMA WRITE
pub(crate) const WC_RDMA_WRITE: u32 = 1;
/// RDMA READ
pub(crate) const WC_RDMA_READ: u32 = 2;
/// Compare and swap
pub(crate) const WC_COMP_SWAP: u32 = 3;
/// Fetch and add
pub(crate) const WC_FETCH_ADD: u32 = 4;
/// Bind of a memory window
pub(crate) const WC_BIND_MW: u32 = 5;
/// Local invalidate
pub(crate) const WC_LOCAL_INV: u32 = 6;
/// FLUSH
pub(crate) const WC_FLUSH: u32 = 8;
/// Atomic write
pub(crate) const WC_ATOMIC_WRITE: u32 = 9;
/// Message received
pub(crate) const WC_RECV: u32 = 128;
/// RDMA WRITE with immediate data received
pub(crate) const WC_RECV_RDMA_WITH_IMM: u32 = 129;

/// Tag added to a matching list
pub(crate) const WC_TM_ADD: u32 = 130;
/// Tag taken back
pub(crate) const WC_TM_DEL: u32 = 131;
/// Count of unexpected messages taken over
pub(crate) const WC_TM_SYNC: u32 = 132;
/// Message with a tag received
pub(crate) const WC_TM_RECV: u32 = 133;
/// Message without a tag received by a tag-matching queue
pub(crate) const WC_TM_NO_TAG: u32 = 134;

// `enum ibv_wc_flags`
/// 40 bytes of header are in front of the data.
pub(crate) const WC_GRH: u32 = 1 << 0;
/// The completion has immediate data.
pub(crate) const WC_WITH_IMM: u32 = 1 << 1;
/// The completion has an invalidated key.
pub(crate) const WC_WITH_INV: u32 = 1 << 3;

/// Software is to report the unexpected messages that it has handled.
pub(crate) const WC_TM_SYNC_REQ: u32 = 1 << 4;
/// The message took a tag.
pub(crate) const WC_TM_MATCH: u32 = 1 << 5;
/// The data of the message are there.
pub(crate) const WC_TM_DATA_VALID: u32 = 1 << 6;

/// The opcode in the completion of a send work request.
pub(crate) fn completion_opcode(op: SendOp) -> u32 {
    match op {
        SendOp::Send | SendOp::SendImm | SendOp::SendInv => WC_SEND,
        SendOp::Write | SendOp::WriteImm => WC_RDMA_WRITE,
        SendOp::Read => WC_RDMA_READ,
        SendOp::CmpSwap => WC_COMP_SWAP,
        SendOp::FetchAdd => WC_FETCH_ADD,
        SendOp::AtomicWrite => WC_ATOMIC_WRITE,
        SendOp::Flush => WC_FLUSH,
        SendOp::BindMw => WC_BIND_MW,
        SendOp::LocalInv => WC_LOCAL_INV,
        SendOp::RegMr => verbs::wc_opcode::REG_MR,
    }
}

pub(crate) fn bytes<const N: usize>(slot: &[u8], at: usize) -> [u8; N] {
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
        addr: u64_at(slot, at),
        len: u32_at(slot, at.wrapping_add(8)),
        lkey: u32_at(slot, at.wrapping_add(12)),
        kernel: None,
    }
}

/// Reads `count` elements that begin at `at`; the total of their lengths. `None` when there are too
/// many, or when they are longer than a message can be.
fn read_list(slot: &[u8], at: usize, count: usize, list: &mut [Sge]) -> Option<u32> {
    let list = list.get_mut(..count)?;
    let mut total = 0u64;
    for (i, to) in list.iter_mut().enumerate() {
        *to = sge_at(slot, at.wrapping_add(i.wrapping_mul(abi::SGE_SIZE)));
        total = total.wrapping_add(u64::from(to.len));
    }
    u32::try_from(total).ok().filter(|&t| t <= MAX_MESSAGE)
}

/// Bytes of a send slot that matter, judged by its first [`SEND_SLOT_FIRST`] bytes. Never more than
/// [`MAX_SEND_SLOT`]; inline data are not among them.
pub(crate) fn send_slot_len(slot: &[u8], max_sge: usize) -> usize {
    if u8_at(slot, abi::send_slot::FLAGS) & abi::SEND_INLINE != 0 {
        return SEND_SLOT_FIRST;
    }
    let count = usize::from(u16_at(slot, abi::send_slot::COUNT)).min(max_sge.min(MAX_SGE));
    abi::SEND_SLOT_HDR
        .wrapping_add(count.wrapping_mul(abi::SGE_SIZE))
        .max(SEND_SLOT_FIRST)
}

/// What a user may ask a queue pair of some type for.
fn is_allowed(kind: QpKind, op: SendOp) -> bool {
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

/// Decodes a send slot that was copied out of the ring of a QP of type `kind`. `list` has as many
/// elements as the QP has send SGEs. On an error `head` holds what the completion needs.
pub(crate) fn decode_send(
    kind: QpKind,
    slot: &[u8],
    max_inline: u32,
    head: &mut SendHead,
    list: &mut [Sge],
) -> Result<(), WcStatus> {
    use abi::send_slot as at;

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
        head.ud = UdPart {
            ah: u32_at(slot, at::AH),
            remote_qpn: u32_at(slot, at::REMOTE_QPN),
            remote_qkey: u32_at(slot, at::REMOTE_QKEY),
        };
    } else {
        head.rdma = RdmaPart {
            remote_addr: u64_at(slot, at::REMOTE_ADDR),
            rkey: u32_at(slot, at::RKEY),
            srqn: u32_at(slot, at::SRQN),
            compare_add: u64_at(slot, at::COMPARE_ADD),
            swap: u64_at(slot, at::SWAP),
        };
    }
    match head.op {
        SendOp::BindMw => {
            head.rdma = RdmaPart::from_bind(&BindPart {
                addr: u64_at(slot, at::BIND_ADDR),
                length: u64_at(slot, at::BIND_LENGTH),
                mr_lkey: u32_at(slot, at::BIND_MR_LKEY),
                mw_rkey: u32_at(slot, at::BIND_MW_RKEY),
                access: u32_at(slot, at::BIND_ACCESS),
                new_rkey: u32_at(slot, at::BIND_NEW_RKEY),
            });
            return no_data(slot);
        }
        SendOp::LocalInv => return no_data(slot),
        _ => {}
    }
    if kind == QpKind::XrcIni && !roce::xrc::is_srqn(head.rdma.srqn) {
        return Err(WcStatus::LocQpOpErr);
    }
    if head.op == SendOp::Flush {
        head.rdma.set_flush(FlushPart {
            placement: u8_at(slot, at::FLUSH_TYPE),
            level: u8_at(slot, at::FLUSH_LEVEL),
        });
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

/// Requests that carry nothing have neither list nor inline data.
fn no_data(slot: &[u8]) -> Result<(), WcStatus> {
    let inline = u8_at(slot, abi::send_slot::FLAGS) & abi::SEND_INLINE != 0;
    if inline || u16_at(slot, abi::send_slot::COUNT) != 0 {
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
fn check_length(head: &SendHead) -> Result<(), WcStatus> {
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

/// Bytes of a receive slot that matter, judged by its first [`RECV_SLOT_FIRST`] bytes.
pub(crate) fn recv_slot_len(slot: &[u8], max_sge: usize) -> usize {
    let count = (u32_at(slot, abi::recv_slot::NUM_SGE) as usize).min(max_sge.min(MAX_SGE));
    abi::RECV_SLOT_HDR
        .wrapping_add(count.wrapping_mul(abi::SGE_SIZE))
        .max(RECV_SLOT_FIRST)
}

/// Decodes a receive slot. `list` has as many elements as the queue has receive SGEs.
pub(crate) fn decode_recv(
    slot: &[u8],
    head: &mut RecvHead,
    list: &mut [Sge],
) -> Result<(), WcStatus> {
    *head = RecvHead {
        wr_id: u64_at(slot, abi::recv_slot::WR_ID),
        num_sge: 0,
    };
    let count = u32_at(slot, abi::recv_slot::NUM_SGE);
    if count as usize > list.len() {
        return Err(WcStatus::LocQpOpErr);
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
    let mut slot = [0u8; MAX_RECV_SLOT];
    let first = slot.get_mut(..RECV_SLOT_FIRST).ok_or(CorruptRing)?;
    ring.copy(0, first)?;
    let len = recv_slot_len(&slot, list.len());
    if len > RECV_SLOT_FIRST {
        let rest = slot.get_mut(RECV_SLOT_FIRST..len).ok_or(CorruptRing)?;
        ring.copy(RECV_SLOT_FIRST, rest)?;
    }
    decode_recv(&slot, head, list).map_err(|_| CorruptRing)
}

/// Distance between the slots of a send ring.
pub(crate) fn send_stride(max_sge: u32, max_inline: u32) -> u32 {
    let data = max_sge.saturating_mul(abi::SGE_SIZE as u32).max(max_inline);
    align(
        (abi::SEND_SLOT_HDR as u32).saturating_add(data),
        abi::SEND_SLOT_ALIGN,
    )
}

/// Distance between the slots of a receive ring.
pub(crate) fn recv_stride(max_sge: u32) -> u32 {
    let data = max_sge.saturating_mul(abi::SGE_SIZE as u32);
    align(
        (abi::RECV_SLOT_HDR as u32).saturating_add(data),
        abi::RECV_SLOT_ALIGN,
    )
}

/// Inline bytes that slots of a send ring with that stride have room for.
pub(crate) fn inline_room(stride: u32) -> u32 {
    stride
        .saturating_sub(abi::SEND_SLOT_HDR as u32)
        .min(limits::MAX_INLINE)
}

fn align(n: u32, to: u32) -> u32 {
    n.saturating_add(to.wrapping_sub(1)) & !to.wrapping_sub(1)
}

/// Makes the memory of a ring. Process context.
pub(crate) fn new_ring(entries: u32, stride: u32) -> Result<Arc<RingMem>> {
    let size = (entries as usize)
        .checked_mul(stride as usize)
        .and_then(|slots| slots.checked_add(abi::RING_HDR_SIZE))
        .ok_or(EINVAL)?;
    Ok(Arc::new(RingMem::new(size)?, GFP_ACCOUNT)?)
}

/// Describes a ring for user space.
pub(crate) fn ring_info(
    mem: &RingMem,
    mapping: &RingMapping,
    entries: u32,
    stride: u32,
) -> abi::xroce_ring_info {
    abi::xroce_ring_info {
        offset: mapping.offset(),
        size: u32::try_from(mem.len()).unwrap_or(0),
        entries,
        stride,
        reserved: 0,
    }
}

/// Takes the elements of a kernel user's list.
fn kernel_list(
    sges: impl ExactSizeIterator<Item = verbs::KernelSge>,
    list: &mut [Sge; MAX_SGE],
) -> Result<(u32, u32)> {
    let count = sges.len();
    let mut total = 0u64;
    for (from, to) in sges.zip(list.get_mut(..count).ok_or(EINVAL)?) {
        *to = Sge {
            addr: from.address(),
            len: from.length,
            lkey: from.lkey,
            // The one key that stands for all kernel memory needs no look-up.
            kernel: (from.lkey == crate::mr::LOCAL_DMA_LKEY).then(|| from.memory()),
        };
        total = total.wrapping_add(u64::from(from.length));
    }
    let total = u32::try_from(total).map_err(|_| EINVAL)?;
    if total > MAX_MESSAGE {
        return Err(EINVAL);
    }
    Ok((count as u32, total))
}

/// Puts a kernel user's receive into its queue. ENOMEM when that is full. Any context.
pub(crate) fn post_recv(queue: &KernelQueue<RecvHead>, wr: &RecvWr<'_>) -> Result {
    let mut list = [Sge::default(); MAX_SGE];
    let (num_sge, _) = kernel_list(wr.sges(), &mut list)?;
    queue.post(
        &RecvHead {
            wr_id: wr.wr_id(),
            num_sge,
        },
        list.get(..num_sge as usize).ok_or(EINVAL)?,
    )
}

/// Puts a kernel user's send into its queue. ENOMEM when that is full. Any context.
pub(crate) fn post_send(
    kind: QpKind,
    queue: &KernelQueue<SendHead>,
    wr: &SendWr<'_, Xroce>,
    is_error: bool,
) -> Result {
    let mut list = [Sge::default(); MAX_SGE];
    let op = match wr.opcode().ok_or(EINVAL)? {
        SendOpcode::Send => SendOp::Send,
        SendOpcode::SendImm => SendOp::SendImm,
        SendOpcode::SendInv => SendOp::SendInv,
        SendOpcode::RdmaWrite => SendOp::Write,
        SendOpcode::RdmaWriteImm => SendOp::WriteImm,
        SendOpcode::RdmaRead => SendOp::Read,
        SendOpcode::AtomicCmpSwap => SendOp::CmpSwap,
        SendOpcode::AtomicFetchAdd => SendOp::FetchAdd,
        SendOpcode::LocalInv => SendOp::LocalInv,
        SendOpcode::RegMr => SendOp::RegMr,
    };
    // It will be flushed, whatever it is: `ib_drain_sq()` posts an RDMA WRITE to any queue pair.
    if is_error && !is_allowed(kind, op) {
        let head = SendHead {
            wr_id: wr.wr_id(),
            op,
            ..SendHead::default()
        };
        return queue.post(&head, &[]);
    }
    // Inline data of a kernel user would have to be copied now; the device says it has none.
    if !is_allowed(kind, op) || wr.inline() {
        return Err(EINVAL);
    }
    let (num_sge, length) = kernel_list(wr.sges(), &mut list)?;
    let mut head = SendHead {
        wr_id: wr.wr_id(),
        op,
        signaled: wr.signaled(),
        solicited: wr.solicited(),
        fence: wr.fence(),
        imm: wr.imm_or_key(),
        num_sge,
        length,
        ..SendHead::default()
    };
    if let Some(rdma) = wr.rdma() {
        head.rdma.remote_addr = rdma.remote_addr;
        head.rdma.rkey = rdma.rkey;
    }
    if let Some(atomic) = wr.atomic() {
        head.rdma = RdmaPart {
            remote_addr: atomic.remote_addr,
            rkey: atomic.rkey,
            srqn: 0,
            compare_add: atomic.compare_add,
            swap: atomic.swap,
        };
    }
    if op == SendOp::RegMr {
        let reg = wr.reg().ok_or(EINVAL)?;
        if reg.mr.data().number() != reg.key >> 8 {
            return Err(EINVAL);
        }
        head.rdma = RdmaPart::from_reg(&RegPart {
            iova: reg.iova,
            key: reg.key,
            access: reg.access,
        });
    }
    if kind.is_datagram() {
        let ud = wr.ud().ok_or(EINVAL)?;
        head.ud = UdPart {
            ah: ud.ah.data().number(),
            remote_qpn: ud.remote_qpn,
            remote_qkey: ud.remote_qkey,
        };
    }
    check_length(&head).map_err(|_| EINVAL)?;
    queue.post(&head, list.get(..num_sge as usize).ok_or(EINVAL)?)
}

/// Puts a completion into a kernel user's array.
pub(crate) fn fill_wc(wcs: &mut WcBuf<'_>, from: &KernelCompletion) {
    let c = &from.completion;
    let mut flags = 0;
    for (ours, theirs) in [
        (WC_GRH, verbs::wc_flags::GRH),
        (WC_WITH_IMM, verbs::wc_flags::WITH_IMM),
        (WC_WITH_INV, verbs::wc_flags::WITH_INVALIDATE),
    ] {
        if c.wc_flags & ours != 0 {
            flags |= theirs;
        }
    }
    let mut network_hdr_type = 0;
    if c.wc_flags & WC_GRH != 0 {
        flags |= verbs::wc_flags::WITH_NETWORK_HDR_TYPE;
        network_hdr_type = if c.is_v6 {
            verbs::network_hdr_type::IPV6
        } else {
            verbs::network_hdr_type::IPV4
        };
    }
    if c.smac.is_some() {
        flags |= verbs::wc_flags::WITH_SMAC;
    }
    if c.vlan.is_some() {
        flags |= verbs::wc_flags::WITH_VLAN;
    }
    // There is room: the caller asked.
    let _ = wcs.push(&Wc {
        wr_id: c.wr_id,
        status: c.status as u32,
        opcode: c.opcode,
        byte_len: c.byte_len,
        qp: from.qp.as_ref(),
        imm_or_key: c.imm,
        src_qp: c.src_qp,
        flags,
        pkey_index: c.pkey_index,
        port: 1,
        smac: c.smac.unwrap_or_default(),
        vlan: c.vlan.unwrap_or(0xffff),
        network_hdr_type,
        ..Wc::default()
    });
}
