// SPDX-License-Identifier: GPL-2.0

//! The user ABI of xroce, as bindgen reads it from `include/uapi/rdma/xroce-abi.h`.
//!
//! Names are those of the header. The structures have no padding, and any bytes are a valid value
//! of them (checked by the derives of crate `zerocopy`), so they can be copied to and from user
//! space as bytes.

pub use crate::bindings::{
    xroce_alloc_ucontext_req,
    xroce_alloc_ucontext_resp,
    xroce_cqe,
    xroce_create_ah_resp,
    xroce_create_cq_req,
    xroce_create_cq_resp,
    xroce_create_qp_req,
    xroce_create_qp_resp,
    xroce_create_srq_resp,
    xroce_create_tm_srq_req,
    xroce_create_tm_srq_resp,
    xroce_modify_srq_req,
    xroce_ring_hdr,
    xroce_ring_info,
    xroce_sge,
    xroce_tm_op_slot,
    XROCE_ABI_VERSION,
    XROCE_DM_MAX_SIZE,
    XROCE_DM_MMAP_BASE,
    XROCE_DRIVER_ID,
    XROCE_RECV_SLOT_ALIGN,
    XROCE_RECV_SLOT_HDR,
    XROCE_RING_HDR_SIZE,
    XROCE_SEND_FENCE,
    XROCE_SEND_INLINE,
    XROCE_SEND_SIGNALED,
    XROCE_SEND_SLOT_ALIGN,
    XROCE_SEND_SLOT_HDR,
    XROCE_SEND_SOLICITED,
    XROCE_TGT_OPEN,
    XROCE_TM_ADD,
    XROCE_TM_COUNT,
    XROCE_TM_DEL,
    XROCE_TM_FREED_SIZE,
    XROCE_TM_INDEX_BITS,
    XROCE_TM_SIGNALED,
    XROCE_TM_SYNC,
    XROCE_UVERBS_ABI_VERSION, //
};

pub use crate::bindings::{
    xroce_cq_arm_XROCE_ARM_NEXT as XROCE_ARM_NEXT,
    xroce_cq_arm_XROCE_ARM_NONE as XROCE_ARM_NONE,
    xroce_cq_arm_XROCE_ARM_SOLICITED as XROCE_ARM_SOLICITED,
    xroce_features_XROCE_FEATURE_AWAKE as XROCE_FEATURE_AWAKE,
    xroce_features_XROCE_FEATURE_SHARED_ARM as XROCE_FEATURE_SHARED_ARM,
    xroce_ring_flags_XROCE_RING_AWAKE as XROCE_RING_AWAKE,
    xroce_ring_flags_XROCE_RING_DEAD as XROCE_RING_DEAD,
    xroce_ring_flags_XROCE_RING_OVERRUN as XROCE_RING_OVERRUN,
    xroce_send_opcode_XROCE_WR_ATOMIC_CMP_SWAP as XROCE_WR_ATOMIC_CMP_SWAP,
    xroce_send_opcode_XROCE_WR_ATOMIC_FETCH_ADD as XROCE_WR_ATOMIC_FETCH_ADD,
    xroce_send_opcode_XROCE_WR_ATOMIC_WRITE as XROCE_WR_ATOMIC_WRITE,
    xroce_send_opcode_XROCE_WR_BIND_MW as XROCE_WR_BIND_MW,
    xroce_send_opcode_XROCE_WR_FLUSH as XROCE_WR_FLUSH,
    xroce_send_opcode_XROCE_WR_LOCAL_INV as XROCE_WR_LOCAL_INV,
    xroce_send_opcode_XROCE_WR_RDMA_READ as XROCE_WR_RDMA_READ,
    xroce_send_opcode_XROCE_WR_RDMA_WRITE as XROCE_WR_RDMA_WRITE,
    xroce_send_opcode_XROCE_WR_RDMA_WRITE_IMM as XROCE_WR_RDMA_WRITE_IMM,
    xroce_send_opcode_XROCE_WR_SEND as XROCE_WR_SEND,
    xroce_send_opcode_XROCE_WR_SEND_IMM as XROCE_WR_SEND_IMM,
    xroce_send_opcode_XROCE_WR_SEND_INV as XROCE_WR_SEND_INV,
    xroce_tm_error_XROCE_TM_ERR_COUNT as XROCE_TM_ERR_COUNT,
    xroce_tm_error_XROCE_TM_ERR_HANDLE as XROCE_TM_ERR_HANDLE,
    xroce_tm_error_XROCE_TM_ERR_MASKS as XROCE_TM_ERR_MASKS,
    xroce_tm_error_XROCE_TM_ERR_OPCODE as XROCE_TM_ERR_OPCODE,
    xroce_tm_error_XROCE_TM_ERR_SGE as XROCE_TM_ERR_SGE, //
};
