// SPDX-License-Identifier: GPL-2.0

//! Layout of the rings and of their slots, as numbers.
//!
//! The rings are memory that user space can write at any time. Therefore the kernel never accesses
//! them through a Rust type: it copies bytes out and takes the fields from the copy. All numbers
//! follow from bindgen's translation of `include/uapi/rdma/xroce-abi.h`, and what other code relies
//! on is asserted below.

mod header;

use crate::limits;
use core::mem::{
    offset_of,
    size_of, //
};
pub use header::*;
use roce::event::Arm;
use roce::status::WcStatus;

/// The offset of a field. The readers of slots copy as many bytes as the type has; that the field
/// has this type is checked here.
macro_rules! offset {
    ($structure:ty, $field:ident: $type:ty) => {{
        const _: fn(&$structure) -> &$type = |structure| &structure.$field;
        offset_of!($structure, $field)
    }};
}

/// A flag of a field of one byte.
const fn byte(flag: u32) -> u8 {
    assert!(flag <= u8::MAX as u32);
    flag as u8
}

/// Bytes of the header of every ring.
pub const RING_HDR_SIZE: usize = XROCE_RING_HDR_SIZE as usize;
/// Offset of the index that user space writes.
pub const RING_USER_INDEX: usize = offset!(xroce_ring_hdr, user_index: u32);
/// Offset of the arm word of a completion ring.
pub const RING_ARM: usize = offset!(xroce_ring_hdr, arm: u32);
/// Offset of the index that the kernel writes.
pub const RING_KERNEL_INDEX: usize = offset!(xroce_ring_hdr, kernel_index: u32);
/// Offset of the kernel's flags.
pub const RING_KERNEL_FLAGS: usize = offset!(xroce_ring_hdr, kernel_flags: u32);

/// The kernel will look at the producer index again.
pub const RING_AWAKE: u32 = XROCE_RING_AWAKE;
/// The object behind the ring is gone.
pub const RING_DEAD: u32 = XROCE_RING_DEAD;
/// A completion was lost.
pub const RING_OVERRUN: u32 = XROCE_RING_OVERRUN;
/// Receives posted now need a doorbell to be flushed.
pub const RING_FLUSH: u32 = XROCE_RING_FLUSH;

/// No event wanted.
pub const ARM_NONE: u32 = XROCE_ARM_NONE;
/// Event at the next solicited or failed completion.
pub const ARM_SOLICITED: u32 = XROCE_ARM_SOLICITED;
/// Event at the next completion.
pub const ARM_NEXT: u32 = XROCE_ARM_NEXT;

/// Bytes of a scatter/gather element.
pub const SGE_SIZE: usize = size_of::<xroce_sge>();

/// Bytes of a send slot in front of its elements or inline data.
pub const SEND_SLOT_HDR: usize = XROCE_SEND_SLOT_HDR as usize;
/// What the stride of a send ring is a multiple of.
pub const SEND_SLOT_ALIGN: u32 = XROCE_SEND_SLOT_ALIGN;
/// Bytes of a receive slot in front of its elements.
pub const RECV_SLOT_HDR: usize = XROCE_RECV_SLOT_HDR as usize;
/// What the stride of a receive ring is a multiple of.
pub const RECV_SLOT_ALIGN: u32 = XROCE_RECV_SLOT_ALIGN;
/// Bytes of a completion.
pub const CQE_SIZE: usize = size_of::<xroce_cqe>();

// xroce_send_slot.flags
/// Wait for earlier READs and atomics.
pub const SEND_FENCE: u8 = byte(XROCE_SEND_FENCE);
/// Completion wanted.
pub const SEND_SIGNALED: u8 = byte(XROCE_SEND_SIGNALED);
/// Solicited event at the receiver.
pub const SEND_SOLICITED: u8 = byte(XROCE_SEND_SOLICITED);
/// The data is in the slot.
pub const SEND_INLINE: u8 = byte(XROCE_SEND_INLINE);

/// Offsets in a scatter/gather element (`struct xroce_sge`).
pub(crate) mod sge {
    use super::*;

    pub(crate) const ADDR: usize = offset!(xroce_sge, addr: u64);
    pub(crate) const LENGTH: usize = offset!(xroce_sge, length: u32);
    pub(crate) const LKEY: usize = offset!(xroce_sge, lkey: u32);
}

/// Offsets in a send slot (`struct xroce_send_slot`).
pub(crate) mod send_slot {
    use super::*;

    pub(crate) const WR_ID: usize = offset!(xroce_send_slot, wr_id: u64);
    pub(crate) const OPCODE: usize = offset!(xroce_send_slot, opcode: u8);
    pub(crate) const FLAGS: usize = offset!(xroce_send_slot, flags: u8);
    pub(crate) const COUNT: usize = offset!(xroce_send_slot, count: u16);
    pub(crate) const IMM: usize = offset!(xroce_send_slot, imm: u32);

    /// The union of what differs from opcode to opcode.
    const PART: usize = offset_of!(xroce_send_slot, __bindgen_anon_1);

    pub(crate) const REMOTE_ADDR: usize = PART + offset!(xroce_send_rdma, remote_addr: u64);
    pub(crate) const RKEY: usize = PART + offset!(xroce_send_rdma, rkey: u32);
    pub(crate) const SRQN: usize = PART + offset!(xroce_send_rdma, srqn: u32);
    pub(crate) const COMPARE_ADD: usize = PART + offset!(xroce_send_rdma, compare_add: u64);
    pub(crate) const SWAP: usize = PART + offset!(xroce_send_rdma, swap: u64);

    // A bind.
    pub(crate) const BIND_ADDR: usize = PART + offset!(xroce_send_bind, addr: u64);
    pub(crate) const BIND_LENGTH: usize = PART + offset!(xroce_send_bind, length: u64);
    pub(crate) const BIND_MR_LKEY: usize = PART + offset!(xroce_send_bind, mr_lkey: u32);
    pub(crate) const BIND_MW_RKEY: usize = PART + offset!(xroce_send_bind, mw_rkey: u32);
    pub(crate) const BIND_ACCESS: usize = PART + offset!(xroce_send_bind, access: u32);
    pub(crate) const BIND_NEW_RKEY: usize = PART + offset!(xroce_send_bind, new_rkey: u32);

    // A FLUSH, besides REMOTE_ADDR, RKEY and SRQN.
    pub(crate) const FLUSH_LENGTH: usize = PART + offset!(xroce_send_flush, length: u32);
    pub(crate) const FLUSH_TYPE: usize = PART + offset!(xroce_send_flush, type_: u8);
    pub(crate) const FLUSH_LEVEL: usize = PART + offset!(xroce_send_flush, level: u8);

    const _: () = {
        assert!(REMOTE_ADDR == PART + offset!(xroce_send_flush, remote_addr: u64));
        assert!(RKEY == PART + offset!(xroce_send_flush, rkey: u32));
        assert!(SRQN == PART + offset!(xroce_send_flush, srqn: u32));
    };

    pub(crate) const AH: usize = PART + offset!(xroce_send_ud, ah: u32);
    pub(crate) const REMOTE_QPN: usize = PART + offset!(xroce_send_ud, remote_qpn: u32);
    pub(crate) const REMOTE_QKEY: usize = PART + offset!(xroce_send_ud, remote_qkey: u32);
}

/// Offsets in a receive slot (`struct xroce_recv_slot`).
pub(crate) mod recv_slot {
    use super::*;

    pub(crate) const WR_ID: usize = offset!(xroce_recv_slot, wr_id: u64);
    pub(crate) const NUM_SGE: usize = offset!(xroce_recv_slot, num_sge: u32);
}

/// Bytes of an operation on a matching list.
pub const TM_OP_SIZE: usize = size_of::<xroce_tm_op_slot>();
/// Distance between the slots of the ring of operations: two cache lines.
pub const TM_OP_STRIDE: u32 = 128;
/// Bytes of a slot in the ring of free handles.
pub const TM_FREED_SIZE: usize = XROCE_TM_FREED_SIZE as usize;

// xroce_tm_op_slot.flags
/// Completion wanted.
pub const TM_SIGNALED: u8 = byte(XROCE_TM_SIGNALED);
/// The operation carries a count of unexpected messages.
pub const TM_COUNT: u8 = byte(XROCE_TM_COUNT);

/// Offsets in an operation on a matching list (`struct xroce_tm_op_slot`).
pub(crate) mod tm_op_slot {
    use super::*;

    pub(crate) const WR_ID: usize = offset!(xroce_tm_op_slot, wr_id: u64);
    pub(crate) const OPCODE: usize = offset!(xroce_tm_op_slot, opcode: u8);
    pub(crate) const FLAGS: usize = offset!(xroce_tm_op_slot, flags: u8);
    pub(crate) const NUM_SGE: usize = offset!(xroce_tm_op_slot, num_sge: u16);
    pub(crate) const UNEXPECTED_CNT: usize = offset!(xroce_tm_op_slot, unexpected_cnt: u32);
    pub(crate) const HANDLE: usize = offset!(xroce_tm_op_slot, handle: u32);
    pub(crate) const RECV_WR_ID: usize = offset!(xroce_tm_op_slot, recv_wr_id: u64);
    pub(crate) const TAG: usize = offset!(xroce_tm_op_slot, tag: u64);
    pub(crate) const MASK: usize = offset!(xroce_tm_op_slot, mask: u64);
    pub(crate) const SGE: usize =
        offset!(xroce_tm_op_slot, sge: [xroce_sge; limits::MAX_TM_SGE as usize]);
}

// What the header says twice.
const _: () = {
    assert!(RING_HDR_SIZE == size_of::<xroce_ring_hdr>());
    assert!(SEND_SLOT_HDR == offset_of!(xroce_send_slot, data));
    assert!(RECV_SLOT_HDR == offset_of!(xroce_recv_slot, sge));
};

// Cache lines, as the header says. The first copy of a slot has one element, or none.
const _: () = {
    assert!(CQE_SIZE == 64 && SEND_SLOT_HDR + SGE_SIZE == SEND_SLOT_ALIGN as usize);
    assert!(RECV_SLOT_HDR + SGE_SIZE == RECV_SLOT_ALIGN as usize);
    assert!(TM_OP_SIZE <= TM_OP_STRIDE as usize);
};

// Crate roce, which does not know the header, has numbers of its own.
const _: () = {
    assert!(1 << XROCE_TM_INDEX_BITS == roce::tm::MAX_TAGS);
    assert!(matches!(Arm::from_word(ARM_NONE), Arm::None));
    assert!(matches!(Arm::from_word(ARM_SOLICITED), Arm::Solicited));
    assert!(matches!(Arm::from_word(ARM_NEXT), Arm::Next));
    assert!(WcStatus::Success as u32 == XROCE_WC_SUCCESS);
    assert!(WcStatus::LocLenErr as u32 == XROCE_WC_LOC_LEN_ERR);
    assert!(WcStatus::LocQpOpErr as u32 == XROCE_WC_LOC_QP_OP_ERR);
    assert!(WcStatus::LocProtErr as u32 == XROCE_WC_LOC_PROT_ERR);
    assert!(WcStatus::WrFlushErr as u32 == XROCE_WC_WR_FLUSH_ERR);
    assert!(WcStatus::MwBindErr as u32 == XROCE_WC_MW_BIND_ERR);
    assert!(WcStatus::BadRespErr as u32 == XROCE_WC_BAD_RESP_ERR);
    assert!(WcStatus::LocAccessErr as u32 == XROCE_WC_LOC_ACCESS_ERR);
    assert!(WcStatus::RemInvReqErr as u32 == XROCE_WC_REM_INV_REQ_ERR);
    assert!(WcStatus::RemAccessErr as u32 == XROCE_WC_REM_ACCESS_ERR);
    assert!(WcStatus::RemOpErr as u32 == XROCE_WC_REM_OP_ERR);
    assert!(WcStatus::RetryExcErr as u32 == XROCE_WC_RETRY_EXC_ERR);
    assert!(WcStatus::RnrRetryExcErr as u32 == XROCE_WC_RNR_RETRY_EXC_ERR);
    assert!(WcStatus::RemAbortErr as u32 == XROCE_WC_REM_ABORT_ERR);
    assert!(WcStatus::FatalErr as u32 == XROCE_WC_FATAL_ERR);
    assert!(WcStatus::GeneralErr as u32 == XROCE_WC_GENERAL_ERR);
    assert!(WcStatus::TmErr as u32 == XROCE_WC_TM_ERR);
    assert!(WcStatus::TmRndvIncomplete as u32 == XROCE_WC_TM_RNDV_INCOMPLETE);
};
