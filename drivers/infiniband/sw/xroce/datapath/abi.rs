// SPDX-License-Identifier: GPL-2.0

//! Layout of the rings and of their slots, as numbers.
//!
//! The rings are memory that user space can write at any time. Therefore the kernel never accesses
//! them through a Rust type: it copies bytes out and takes the fields from the copy. C header:
//! `include/uapi/rdma/xroce-abi.h`.

use core::mem::{
    offset_of,
    size_of, //
};
pub use rdma::abi::*;

/// Bytes of the header of every ring.
pub const RING_HDR_SIZE: usize = 256;
/// Offset of the index that user space writes.
pub const RING_USER_INDEX: usize = offset_of!(xroce_ring_hdr, user_index);
/// Offset of the arm word of a completion ring.
pub const RING_ARM: usize = offset_of!(xroce_ring_hdr, arm);
/// Offset of the index that the kernel writes.
pub const RING_KERNEL_INDEX: usize = offset_of!(xroce_ring_hdr, kernel_index);
/// Offset of the kernel's flags.
pub const RING_KERNEL_FLAGS: usize = offset_of!(xroce_ring_hdr, kernel_flags);

/// The kernel will look at the producer index again.
pub const RING_AWAKE: u32 = 1 << 0;
/// The object behind the ring is gone.
pub const RING_DEAD: u32 = 1 << 1;
/// A completion was lost.
pub const RING_OVERRUN: u32 = 1 << 2;
/// Receives posted now need a doorbell to be flushed.
pub const RING_FLUSH: u32 = 1 << 3;

/// No event wanted.
pub const ARM_NONE: u32 = 0;
/// Event at the next solicited or failed completion.
pub const ARM_SOLICITED: u32 = 1;
/// Event at the next completion.
pub const ARM_NEXT: u32 = 2;

/// Bytes of a scatter/gather element.
pub const SGE_SIZE: usize = size_of::<xroce_sge>();

/// Bytes of a send slot in front of its elements or inline data.
pub const SEND_SLOT_HDR: usize = 48;
/// What the stride of a send ring is a multiple of.
pub const SEND_SLOT_ALIGN: u32 = 64;
/// Bytes of a receive slot in front of its elements.
pub const RECV_SLOT_HDR: usize = 16;
/// What the stride of a receive ring is a multiple of.
pub const RECV_SLOT_ALIGN: u32 = 32;
/// Bytes of a completion.
pub const CQE_SIZE: usize = size_of::<xroce_cqe>();

// xroce_send_slot.flags
/// Wait for earlier READs and atomics.
pub const SEND_FENCE: u8 = 1 << 0;
/// Completion wanted.
pub const SEND_SIGNALED: u8 = 1 << 1;
/// Solicited event at the receiver.
pub const SEND_SOLICITED: u8 = 1 << 2;
/// The data is in the slot.
pub const SEND_INLINE: u8 = 1 << 3;

/// Offsets in a send slot (`struct xroce_send_slot`).
pub(crate) mod send_slot {
    pub(crate) const WR_ID: usize = 0;
    pub(crate) const OPCODE: usize = 8;
    pub(crate) const FLAGS: usize = 9;
    pub(crate) const COUNT: usize = 10;
    pub(crate) const IMM: usize = 12;

    pub(crate) const REMOTE_ADDR: usize = 16;
    pub(crate) const RKEY: usize = 24;
    pub(crate) const SRQN: usize = 28;
    pub(crate) const COMPARE_ADD: usize = 32;
    pub(crate) const SWAP: usize = 40;

    // A bind.
    pub(crate) const BIND_ADDR: usize = 16;
    pub(crate) const BIND_LENGTH: usize = 24;
    pub(crate) const BIND_MR_LKEY: usize = 32;
    pub(crate) const BIND_MW_RKEY: usize = 36;
    pub(crate) const BIND_ACCESS: usize = 40;
    pub(crate) const BIND_NEW_RKEY: usize = 44;

    // A FLUSH, besides REMOTE_ADDR, RKEY and SRQN.
    pub(crate) const FLUSH_LENGTH: usize = 32;
    pub(crate) const FLUSH_TYPE: usize = 36;
    pub(crate) const FLUSH_LEVEL: usize = 37;

    pub(crate) const AH: usize = 16;
    pub(crate) const REMOTE_QPN: usize = 20;
    pub(crate) const REMOTE_QKEY: usize = 24;
}

/// Offsets in a receive slot (`struct xroce_recv_slot`).
pub(crate) mod recv_slot {
    pub(crate) const WR_ID: usize = 0;
    pub(crate) const NUM_SGE: usize = 8;
}

/// Bytes of an operation on a matching list.
pub const TM_OP_SIZE: usize = size_of::<xroce_tm_op_slot>();
/// Distance between the slots of the ring of operations: two cache lines.
pub const TM_OP_STRIDE: u32 = 128;
/// Bytes of a slot in the ring of free handles.
pub const TM_FREED_SIZE: usize = 8;

// xroce_tm_op_slot.flags
/// Completion wanted.
pub const TM_SIGNALED: u8 = 1 << 0;
/// The operation carries a count of unexpected messages.
pub const TM_COUNT: u8 = 1 << 1;

/// Offsets in an operation on a matching list (`struct xroce_tm_op_slot`).
pub(crate) mod tm_op_slot {
    pub(crate) const WR_ID: usize = 0;
    pub(crate) const OPCODE: usize = 8;
    pub(crate) const FLAGS: usize = 9;
    pub(crate) const NUM_SGE: usize = 10;
    pub(crate) const UNEXPECTED_CNT: usize = 12;
    pub(crate) const HANDLE: usize = 16;
    pub(crate) const RECV_WR_ID: usize = 24;
    pub(crate) const TAG: usize = 32;
    pub(crate) const MASK: usize = 40;
    pub(crate) const SGE: usize = 48;
}

const _: () = {
    assert!(TM_OP_SIZE == 112 && TM_OP_SIZE <= TM_OP_STRIDE as usize);
    assert!(TM_FREED_SIZE == XROCE_TM_FREED_SIZE as usize);
    assert!(offset_of!(xroce_tm_op_slot, handle) == tm_op_slot::HANDLE);
    assert!(offset_of!(xroce_tm_op_slot, mask) == tm_op_slot::MASK);
    assert!(offset_of!(xroce_tm_op_slot, sge) == tm_op_slot::SGE);
    assert!(1 << XROCE_TM_INDEX_BITS == roce::tm::MAX_TAGS);
    assert!(TM_SIGNALED as u32 == XROCE_TM_SIGNALED && TM_COUNT as u32 == XROCE_TM_COUNT);
};

const _: () = {
    assert!(RING_HDR_SIZE == size_of::<xroce_ring_hdr>());
    assert!(SGE_SIZE == 16 && CQE_SIZE == 64);
    assert!(SEND_SLOT_HDR == XROCE_SEND_SLOT_HDR as usize);
    assert!(SEND_SLOT_ALIGN == XROCE_SEND_SLOT_ALIGN);
    assert!(RECV_SLOT_HDR == XROCE_RECV_SLOT_HDR as usize);
    assert!(RECV_SLOT_ALIGN == XROCE_RECV_SLOT_ALIGN);
    assert!(RING_AWAKE == XROCE_RING_AWAKE && RING_DEAD == XROCE_RING_DEAD);
    assert!(ARM_SOLICITED == XROCE_ARM_SOLICITED && ARM_NEXT == XROCE_ARM_NEXT);
};
