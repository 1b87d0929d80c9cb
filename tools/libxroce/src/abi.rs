// SPDX-License-Identifier: GPL-2.0
//! Mirror of `include/uapi/rdma/xroce-abi.h`, which explains every field.
//!
//! Everything that the macros here define is compared with the header whenever the library is
//! built: `abi/assertions.rs` prints [`CLAIMS`] as C, and `abi/assertions.c` includes that and the
//! header.

#![allow(
    dead_code,
    reason = "the mirror is whole; abi/assertions.rs uses all of it"
)]

use core::mem::{
    offset_of,
    size_of, //
};

/// An expression of C, and the value that it must have.
pub type Claim = (&'static str, u64);

/// Everything that must be true of the header.
pub const CLAIMS: [&[Claim]; 3] = [CONSTANTS, STRUCTURES, OTHERS];

/// Makes constants. The header has them under the same names with `XROCE_` in front.
macro_rules! constants {
    ($($(#[$attribute:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$attribute])* pub const $name: $type = $value;)*

        const CONSTANTS: &[Claim] = &[
            $((concat!("XROCE_", stringify!($name)), $name as u64),)*
        ];
    };
}

/// Makes structures without padding. The string is the type in C, and fields have the same names
/// there, unless another follows `=`. A structure ends where that of C ends, or where its field
/// after `..` begins.
macro_rules! structures {
    ($(
        $(#[$attribute:meta])*
        $name:ident = $c:literal {
            $($field:ident $(= $other:ident)?: $type:ty,)*
            $(.. $rest:ident)?
        }
    )*) => {
        $(
            $(#[$attribute])*
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name {
                $(pub $field: $type,)*
            }

            const _: () = assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())*);
        )*

        const STRUCTURES: &[Claim] = &[$(
            (end!($c $(, $rest)?), size_of::<$name>() as u64),
            $(
                (
                    concat!("offsetof(", $c, ", ", last!($field $($other)?), ")"),
                    offset_of!($name, $field) as u64,
                ),
                (
                    concat!("sizeof(((", $c, " *)0)->", last!($field $($other)?), ")"),
                    size_of::<$type>() as u64,
                ),
            )*
        )*];
    };
}

macro_rules! end {
    ($c:literal) => {
        concat!("sizeof(", $c, ")")
    };
    ($c:literal, $rest:ident) => {
        concat!("offsetof(", $c, ", ", stringify!($rest), ")")
    };
}

macro_rules! last {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $other:ident) => {
        stringify!($other)
    };
}

constants! {
    DRIVER_ID: u32 = 0x5852_4f43;
    UVERBS_ABI_VERSION: u32 = 3;
    ABI_VERSION: u32 = 1;

    FEATURE_SHARED_ARM: u64 = 1 << 0;
    FEATURE_AWAKE: u64 = 1 << 1;
    FEATURE_ONE_MAPPING: u64 = 1 << 2;

    QP_ONE_MAPPING: u32 = 1 << 0;

    RING_HDR_SIZE: usize = 256;
    RING_AWAKE: u32 = 1 << 0;
    RING_DEAD: u32 = 1 << 1;
    RING_OVERRUN: u32 = 1 << 2;
    RING_FLUSH: u32 = 1 << 3;

    ARM_NONE: u32 = 0;
    ARM_SOLICITED: u32 = 1;
    ARM_NEXT: u32 = 2;

    WR_RDMA_WRITE: u8 = 0;
    WR_RDMA_WRITE_IMM: u8 = 1;
    WR_SEND: u8 = 2;
    WR_SEND_IMM: u8 = 3;
    WR_RDMA_READ: u8 = 4;
    WR_ATOMIC_CMP_SWAP: u8 = 5;
    WR_ATOMIC_FETCH_ADD: u8 = 6;
    WR_LOCAL_INV: u8 = 7;
    WR_BIND_MW: u8 = 8;
    WR_SEND_INV: u8 = 9;
    WR_FLUSH: u8 = 14;
    WR_ATOMIC_WRITE: u8 = 15;

    SEND_FENCE: u8 = 1 << 0;
    SEND_SIGNALED: u8 = 1 << 1;
    SEND_SOLICITED: u8 = 1 << 2;
    SEND_INLINE: u8 = 1 << 3;

    SEND_SLOT_HDR: usize = 48;
    RECV_SLOT_HDR: usize = 16;

    WC_TM_RECV: u32 = 133;
    WC_TM_NO_TAG: u32 = 134;

    TM_INDEX_BITS: u32 = 20;
    TM_FREED_SIZE: usize = 8;

    TM_ADD: u8 = 0;
    TM_DEL: u8 = 1;
    TM_SYNC: u8 = 2;

    TM_SIGNALED: u8 = 1 << 0;
    TM_COUNT: u8 = 1 << 1;

    TGT_OPEN: u32 = 0x0054_4754;

    /// Where the mmap offsets of device memory begin.
    DM_MMAP_BASE: u64 = 1 << 43;
    /// Bytes of device memory that one allocation can have.
    DM_MAX_SIZE: u64 = 1 << 20;

    /// What is the driver's own among ids of uverbs.
    ID_DRIVER_NS: u16 = 1 << 12;
    METHOD_RCV_QP_CREATE: u16 = ID_DRIVER_NS;
    METHOD_RCV_QP_REG: u16 = ID_DRIVER_NS + 1;
    METHOD_RCV_QP_UNREG: u16 = ID_DRIVER_NS + 2;
    METHOD_RCV_QP_MODIFY: u16 = ID_DRIVER_NS + 3;
    METHOD_RCV_QP_QUERY: u16 = ID_DRIVER_NS + 4;

    ATTR_RCV_QP_XRCD: u16 = ID_DRIVER_NS;
    ATTR_RCV_QP_HANDLE: u16 = ID_DRIVER_NS + 1;
    ATTR_RCV_QP_QPN: u16 = ID_DRIVER_NS + 2;
    ATTR_RCV_QP_ATTR: u16 = ID_DRIVER_NS + 3;
    ATTR_RCV_QP_FLAGS: u16 = ID_DRIVER_NS + 4;

    RCV_QP_PERSISTENT: u32 = 1 << 0;
}

structures! {
    #[derive(Default)]
    AllocUcontextReq = "struct xroce_alloc_ucontext_req" {
        abi_version: u32,
        reserved: u32,
        features: u64,
    }

    #[derive(Default)]
    AllocUcontextResp = "struct xroce_alloc_ucontext_resp" {
        abi_version: u32,
        max_inline: u32,
        features: u64,
    }

    #[derive(Default, Debug)]
    RingInfo = "struct xroce_ring_info" {
        offset: u64,
        size: u32,
        entries: u32,
        stride: u32,
        reserved: u32,
    }

    RingHdr = "struct xroce_ring_hdr" {
        user_index: u32,
        arm: u32,
        user_pad: [u32; 30],
        kernel_index: u32,
        kernel_flags: u32,
        kernel_pad: [u32; 30],
    }

    #[derive(Default)]
    Sge = "struct xroce_sge" {
        addr: u64,
        length: u32,
        lkey: u32,
    }

    /// The header of `struct xroce_send_slot`; SGEs or inline bytes follow.
    SendSlot = "struct xroce_send_slot" {
        wr_id: u64,
        opcode: u8,
        flags: u8,
        count: u16,
        imm: u32,
        body = rdma: SendBody,
        ..data
    }

    #[derive(Default)]
    SendRdma = "PART(rdma)" {
        remote_addr: u64,
        rkey: u32,
        srqn: u32,
        compare_add: u64,
        swap: u64,
    }

    #[derive(Default)]
    SendUd = "PART(ud)" {
        ah: u32,
        remote_qpn: u32,
        remote_qkey: u32,
        pkey_index: u32,
        reserved: [u64; 2],
    }

    #[derive(Default)]
    SendBind = "PART(bind)" {
        addr: u64,
        length: u64,
        mr_lkey: u32,
        mw_rkey: u32,
        access: u32,
        new_rkey: u32,
    }

    #[derive(Default)]
    SendFlush = "PART(flush)" {
        remote_addr: u64,
        rkey: u32,
        srqn: u32,
        length: u32,
        kind = type: u8,
        level: u8,
        reserved0: u16,
        reserved1: u64,
    }

    /// The header of `struct xroce_recv_slot`; SGEs follow.
    #[derive(Default)]
    RecvSlot = "struct xroce_recv_slot" {
        wr_id: u64,
        num_sge: u32,
        reserved: u32,
        ..sge
    }

    #[derive(Default, Debug, PartialEq)]
    Cqe = "struct xroce_cqe" {
        wr_id: u64,
        status: u32,
        opcode: u32,
        vendor_err: u32,
        byte_len: u32,
        imm: u32,
        qp_num: u32,
        src_qp: u32,
        wc_flags: u32,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
        flags: u16,
        timestamp: u64,
        tm_tag: u64,
    }

    #[derive(Default)]
    CreateCqReq = "struct xroce_create_cq_req" {
        flags: u32,
        reserved: u32,
    }

    #[derive(Default)]
    CreateCqResp = "struct xroce_create_cq_resp" {
        ring: RingInfo,
    }

    #[derive(Default)]
    CreateSrqResp = "struct xroce_create_srq_resp" {
        ring: RingInfo,
        srqn: u32,
        reserved: u32,
    }

    #[derive(Default)]
    ModifySrqReq = "struct xroce_modify_srq_req" {
        ring_addr: u64,
    }

    #[derive(Default)]
    CreateTmSrqReq = "struct xroce_create_tm_srq_req" {
        max_ops: u32,
        reserved: u32,
    }

    #[derive(Default)]
    CreateTmSrqResp = "struct xroce_create_tm_srq_resp" {
        srq: CreateSrqResp,
        ops: RingInfo,
        freed: RingInfo,
        max_sge: u32,
        max_masks: u32,
    }

    /// The header of `struct xroce_tm_op_slot`; SGEs follow.
    #[derive(Default)]
    TmOpSlot = "struct xroce_tm_op_slot" {
        wr_id: u64,
        opcode: u8,
        flags: u8,
        num_sge: u16,
        unexpected_cnt: u32,
        handle: u32,
        reserved: u32,
        recv_wr_id: u64,
        tag: u64,
        mask: u64,
        ..sge
    }

    #[derive(Default)]
    CreateQpReq = "struct xroce_create_qp_req" {
        flags: u32,
        reserved: u32,
    }

    #[derive(Default)]
    CreateQpResp = "struct xroce_create_qp_resp" {
        sq: RingInfo,
        rq: RingInfo,
        max_inline: u32,
        reserved: u32,
    }

    #[derive(Default)]
    CreateAhResp = "struct xroce_create_ah_resp" {
        ah: u32,
        reserved: u32,
    }

    #[derive(Default)]
    RcvQpDest = "struct xroce_rcv_qp_dest" {
        dgid: [u8; 16],
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        sl: u8,
        is_global: u8,
        static_rate: u8,
        port_num: u8,
        reserved: u8,
    }

    #[derive(Default)]
    RcvQpAttr = "struct xroce_rcv_qp_attr" {
        attr_mask: u32,
        dest_qp_num: u32,
        rq_psn: u32,
        sq_psn: u32,
        qkey: u32,
        qp_access_flags: u32,
        pkey_index: u16,
        qp_state: u8,
        cur_qp_state: u8,
        path_mtu: u8,
        path_mig_state: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        max_rd_atomic: u8,
        en_sqd_async_notify: u8,
        port_num: u8,
        reserved: [u8; 2],
        dest: RcvQpDest,
    }
}

/// The union in `struct xroce_send_slot`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union SendBody {
    pub rdma: SendRdma,
    pub ud: SendUd,
    pub bind: SendBind,
    pub flush: SendFlush,
}

/// A slot of the ring of free handles.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct TmFreed {
    pub handle: u32,
    pub reserved: u32,
}

/// Offsets of the words of the header of a ring.
pub const RING_USER_INDEX: usize = offset_of!(RingHdr, user_index);
pub const RING_ARM: usize = offset_of!(RingHdr, arm);
pub const RING_KERNEL_INDEX: usize = offset_of!(RingHdr, kernel_index);
pub const RING_KERNEL_FLAGS: usize = offset_of!(RingHdr, kernel_flags);

/// Bytes of an operation on a matching list in front of its elements.
pub const TM_OP_SLOT_HDR: usize = size_of::<TmOpSlot>();

/// Highest XRC SRQ number: they have 24 bits on the wire.
pub const MAX_SRQN: u32 = 0x00ff_ffff;

/// `UVERBS_OBJECT_XRCD`
pub const OBJECT_XRCD: u16 = 10;

/// What other headers say.
const OTHERS: &[Claim] = &[("UVERBS_OBJECT_XRCD", OBJECT_XRCD as u64)];

// What the header says twice, and members of the union that fill it.
const _: () = {
    assert!(RING_HDR_SIZE == size_of::<RingHdr>());
    assert!(SEND_SLOT_HDR == size_of::<SendSlot>());
    assert!(RECV_SLOT_HDR == size_of::<RecvSlot>());
    assert!(TM_FREED_SIZE == size_of::<TmFreed>());
    assert!(size_of::<SendBody>() == size_of::<SendRdma>());
    assert!(size_of::<SendBody>() == size_of::<SendUd>());
    assert!(size_of::<SendBody>() == size_of::<SendBind>());
    assert!(size_of::<SendBody>() == size_of::<SendFlush>());
};

/// Types that may lie in shared memory: no padding, no pointers, valid with
/// any bits.
///
/// # Safety
///
/// All of the above must hold.
pub unsafe trait Plain: Copy {}

// SAFETY: integers without padding; `SendSlot`'s union members all fill it.
unsafe impl Plain for SendSlot {}
// SAFETY: integers without padding.
unsafe impl Plain for RecvSlot {}
// SAFETY: integers without padding.
unsafe impl Plain for Sge {}
// SAFETY: integers without padding.
unsafe impl Plain for Cqe {}
// SAFETY: integers without padding.
unsafe impl Plain for SendUd {}
// SAFETY: integers without padding.
unsafe impl Plain for TmOpSlot {}
// SAFETY: integers without padding.
unsafe impl Plain for TmFreed {}
// SAFETY: an integer.
unsafe impl Plain for u8 {}
// SAFETY: an integer.
unsafe impl Plain for u16 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
