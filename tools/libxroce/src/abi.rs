// SPDX-License-Identifier: GPL-2.0
//! Mirror of `include/uapi/rdma/xroce-abi.h`, which explains every field.
//!
//! Sizes and offsets are asserted below, and the tests compile the header and
//! compare.

#![allow(dead_code, reason = "the mirror is whole; the tests use all of it")]

use core::mem::{
    offset_of,
    size_of, //
};

pub const DRIVER_ID: u32 = 0x5852_4f43;
pub const UVERBS_ABI_VERSION: u32 = 3;
pub const ABI_VERSION: u32 = 1;

pub const FEATURE_SHARED_ARM: u64 = 1 << 0;
pub const FEATURE_AWAKE: u64 = 1 << 1;

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct AllocUcontextReq {
    pub abi_version: u32,
    pub reserved: u32,
    pub features: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct AllocUcontextResp {
    pub abi_version: u32,
    pub max_inline: u32,
    pub features: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct RingInfo {
    pub offset: u64,
    pub size: u32,
    pub entries: u32,
    pub stride: u32,
    pub reserved: u32,
}

pub const RING_HDR_SIZE: usize = 256;

/// Offsets of the words of `struct xroce_ring_hdr`.
pub const RING_USER_INDEX: usize = 0;
pub const RING_ARM: usize = 4;
pub const RING_KERNEL_INDEX: usize = 128;
pub const RING_KERNEL_FLAGS: usize = 132;

pub const RING_AWAKE: u32 = 1 << 0;
pub const RING_DEAD: u32 = 1 << 1;
pub const RING_OVERRUN: u32 = 1 << 2;
pub const RING_FLUSH: u32 = 1 << 3;

pub const ARM_NONE: u32 = 0;
pub const ARM_SOLICITED: u32 = 1;
pub const ARM_NEXT: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Sge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}

pub const WR_RDMA_WRITE: u8 = 0;
pub const WR_RDMA_WRITE_IMM: u8 = 1;
pub const WR_SEND: u8 = 2;
pub const WR_SEND_IMM: u8 = 3;
pub const WR_RDMA_READ: u8 = 4;
pub const WR_ATOMIC_CMP_SWAP: u8 = 5;
pub const WR_ATOMIC_FETCH_ADD: u8 = 6;
pub const WR_LOCAL_INV: u8 = 7;
pub const WR_BIND_MW: u8 = 8;
pub const WR_SEND_INV: u8 = 9;
pub const WR_FLUSH: u8 = 14;
pub const WR_ATOMIC_WRITE: u8 = 15;

pub const SEND_FENCE: u8 = 1 << 0;
pub const SEND_SIGNALED: u8 = 1 << 1;
pub const SEND_SOLICITED: u8 = 1 << 2;
pub const SEND_INLINE: u8 = 1 << 3;

/// The header of `struct xroce_send_slot`; SGEs or inline bytes follow.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SendSlot {
    pub wr_id: u64,
    pub opcode: u8,
    pub flags: u8,
    pub count: u16,
    pub imm: u32,
    pub body: SendBody,
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

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SendRdma {
    pub remote_addr: u64,
    pub rkey: u32,
    pub srqn: u32,
    pub compare_add: u64,
    pub swap: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SendUd {
    pub ah: u32,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
    pub pkey_index: u32,
    pub reserved: [u64; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SendBind {
    pub addr: u64,
    pub length: u64,
    pub mr_lkey: u32,
    pub mw_rkey: u32,
    pub access: u32,
    pub new_rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SendFlush {
    pub remote_addr: u64,
    pub rkey: u32,
    pub srqn: u32,
    pub length: u32,
    pub kind: u8,
    pub level: u8,
    pub reserved0: u16,
    pub reserved1: u64,
}

pub const SEND_SLOT_HDR: usize = 48;

/// The header of `struct xroce_recv_slot`; SGEs follow.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RecvSlot {
    pub wr_id: u64,
    pub num_sge: u32,
    pub reserved: u32,
}

pub const RECV_SLOT_HDR: usize = 16;

#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Cqe {
    pub wr_id: u64,
    pub status: u32,
    pub opcode: u32,
    pub vendor_err: u32,
    pub byte_len: u32,
    pub imm: u32,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: u32,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
    pub flags: u16,
    pub timestamp: u64,
    pub tm_tag: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CreateCqReq {
    pub flags: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CreateCqResp {
    pub ring: RingInfo,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CreateSrqResp {
    pub ring: RingInfo,
    pub srqn: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ModifySrqReq {
    pub ring_addr: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CreateTmSrqReq {
    pub max_ops: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CreateTmSrqResp {
    pub srq: CreateSrqResp,
    pub ops: RingInfo,
    pub freed: RingInfo,
    pub max_sge: u32,
    pub reserved: u32,
}

pub const TM_INDEX_BITS: u32 = 20;

pub const TM_ADD: u8 = 0;
pub const TM_DEL: u8 = 1;
pub const TM_SYNC: u8 = 2;

pub const TM_SIGNALED: u8 = 1 << 0;
pub const TM_COUNT: u8 = 1 << 1;

/// The header of `struct xroce_tm_op_slot`; SGEs follow.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct TmOpSlot {
    pub wr_id: u64,
    pub opcode: u8,
    pub flags: u8,
    pub num_sge: u16,
    pub unexpected_cnt: u32,
    pub handle: u32,
    pub reserved: u32,
    pub recv_wr_id: u64,
    pub tag: u64,
    pub mask: u64,
}

pub const TM_OP_SLOT_HDR: usize = 48;

/// A slot of the ring of free handles.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct TmFreed {
    pub handle: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CreateQpReq {
    pub flags: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CreateQpResp {
    pub sq: RingInfo,
    pub rq: RingInfo,
    pub max_inline: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CreateAhResp {
    pub ah: u32,
    pub reserved: u32,
}

pub const TGT_OPEN: u32 = 0x0054_4754;

/// Where the mmap offsets of device memory begin.
pub const DM_MMAP_BASE: u64 = 1 << 43;
/// Bytes of device memory that one allocation can have.
pub const DM_MAX_SIZE: u64 = 1 << 20;

/// Highest XRC SRQ number: they have 24 bits on the wire.
pub const MAX_SRQN: u32 = 0x00ff_ffff;

/// `UVERBS_OBJECT_XRCD`
pub const OBJECT_XRCD: u16 = 10;
/// What is the driver's own among ids of uverbs.
pub const ID_DRIVER_NS: u16 = 1 << 12;

/// `enum xroce_xrcd_methods`
pub const METHOD_RCV_QP_CREATE: u16 = ID_DRIVER_NS;
pub const METHOD_RCV_QP_REG: u16 = ID_DRIVER_NS + 1;
pub const METHOD_RCV_QP_UNREG: u16 = ID_DRIVER_NS + 2;
pub const METHOD_RCV_QP_MODIFY: u16 = ID_DRIVER_NS + 3;
pub const METHOD_RCV_QP_QUERY: u16 = ID_DRIVER_NS + 4;

/// `enum xroce_rcv_qp_attrs`
pub const ATTR_RCV_QP_XRCD: u16 = ID_DRIVER_NS;
pub const ATTR_RCV_QP_HANDLE: u16 = ID_DRIVER_NS + 1;
pub const ATTR_RCV_QP_QPN: u16 = ID_DRIVER_NS + 2;
pub const ATTR_RCV_QP_ATTR: u16 = ID_DRIVER_NS + 3;

/// `struct xroce_rcv_qp_dest`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RcvQpDest {
    pub dgid: [u8; 16],
    pub flow_label: u32,
    pub sgid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub sl: u8,
    pub is_global: u8,
    pub static_rate: u8,
    pub port_num: u8,
    pub reserved: u8,
}

/// `struct xroce_rcv_qp_attr`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RcvQpAttr {
    pub attr_mask: u32,
    pub dest_qp_num: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub qkey: u32,
    pub qp_access_flags: u32,
    pub pkey_index: u16,
    pub qp_state: u8,
    pub cur_qp_state: u8,
    pub path_mtu: u8,
    pub path_mig_state: u8,
    pub max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub max_rd_atomic: u8,
    pub en_sqd_async_notify: u8,
    pub port_num: u8,
    pub reserved: [u8; 2],
    pub dest: RcvQpDest,
}

const _: () = {
    assert!(size_of::<AllocUcontextReq>() == 16);
    assert!(size_of::<AllocUcontextResp>() == 16);
    assert!(size_of::<RingInfo>() == 24);
    assert!(size_of::<Sge>() == 16);
    assert!(size_of::<SendBody>() == 32);
    assert!(size_of::<SendSlot>() == SEND_SLOT_HDR);
    assert!(offset_of!(SendSlot, flags) == 9);
    assert!(offset_of!(SendSlot, count) == 10);
    assert!(offset_of!(SendSlot, body) == 16);
    assert!(size_of::<RecvSlot>() == RECV_SLOT_HDR);
    assert!(size_of::<Cqe>() == 64);
    assert!(offset_of!(Cqe, timestamp) == 48);
    assert!(size_of::<CreateCqReq>() == 8);
    assert!(size_of::<CreateCqResp>() == 24);
    assert!(size_of::<CreateSrqResp>() == 32);
    assert!(size_of::<CreateTmSrqReq>() == 8);
    assert!(size_of::<CreateTmSrqResp>() == 88);
    assert!(size_of::<TmOpSlot>() == TM_OP_SLOT_HDR);
    assert!(size_of::<TmFreed>() == 8);
    assert!(size_of::<CreateQpReq>() == 8);
    assert!(size_of::<CreateQpResp>() == 56);
    assert!(size_of::<CreateAhResp>() == 8);
    assert!(size_of::<RcvQpDest>() == 28);
    assert!(size_of::<RcvQpAttr>() == 68);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles the kernel's header and compares it with this file.
    #[test]
    fn equals_header() {
        let pairs: &[(&str, u64)] = &[
            ("XROCE_DRIVER_ID", DRIVER_ID.into()),
            ("XROCE_UVERBS_ABI_VERSION", UVERBS_ABI_VERSION.into()),
            ("XROCE_ABI_VERSION", ABI_VERSION.into()),
            ("XROCE_FEATURE_SHARED_ARM", FEATURE_SHARED_ARM),
            ("XROCE_FEATURE_AWAKE", FEATURE_AWAKE),
            ("XROCE_RING_HDR_SIZE", RING_HDR_SIZE as u64),
            ("XROCE_RING_AWAKE", RING_AWAKE.into()),
            ("XROCE_RING_DEAD", RING_DEAD.into()),
            ("XROCE_RING_OVERRUN", RING_OVERRUN.into()),
            ("XROCE_RING_FLUSH", RING_FLUSH.into()),
            ("XROCE_ARM_NONE", ARM_NONE.into()),
            ("XROCE_ARM_SOLICITED", ARM_SOLICITED.into()),
            ("XROCE_ARM_NEXT", ARM_NEXT.into()),
            ("XROCE_WR_SEND_INV", WR_SEND_INV.into()),
            ("XROCE_WR_FLUSH", WR_FLUSH.into()),
            ("XROCE_WR_ATOMIC_WRITE", WR_ATOMIC_WRITE.into()),
            ("XROCE_WR_BIND_MW", WR_BIND_MW.into()),
            ("XROCE_WR_LOCAL_INV", WR_LOCAL_INV.into()),
            ("XROCE_WR_ATOMIC_FETCH_ADD", WR_ATOMIC_FETCH_ADD.into()),
            ("XROCE_SEND_INLINE", SEND_INLINE.into()),
            ("XROCE_SEND_SOLICITED", SEND_SOLICITED.into()),
            ("XROCE_SEND_SIGNALED", SEND_SIGNALED.into()),
            ("XROCE_SEND_FENCE", SEND_FENCE.into()),
            ("XROCE_SEND_SLOT_HDR", SEND_SLOT_HDR as u64),
            ("XROCE_RECV_SLOT_HDR", RECV_SLOT_HDR as u64),
            ("XROCE_TGT_OPEN", TGT_OPEN.into()),
            ("UVERBS_OBJECT_XRCD", OBJECT_XRCD.into()),
            ("XROCE_METHOD_RCV_QP_CREATE", METHOD_RCV_QP_CREATE.into()),
            ("XROCE_METHOD_RCV_QP_REG", METHOD_RCV_QP_REG.into()),
            ("XROCE_METHOD_RCV_QP_UNREG", METHOD_RCV_QP_UNREG.into()),
            ("XROCE_METHOD_RCV_QP_MODIFY", METHOD_RCV_QP_MODIFY.into()),
            ("XROCE_METHOD_RCV_QP_QUERY", METHOD_RCV_QP_QUERY.into()),
            ("XROCE_ATTR_RCV_QP_XRCD", ATTR_RCV_QP_XRCD.into()),
            ("XROCE_ATTR_RCV_QP_HANDLE", ATTR_RCV_QP_HANDLE.into()),
            ("XROCE_ATTR_RCV_QP_QPN", ATTR_RCV_QP_QPN.into()),
            ("XROCE_ATTR_RCV_QP_ATTR", ATTR_RCV_QP_ATTR.into()),
            ("Z(rcv_qp_attr)", size_of::<RcvQpAttr>() as u64),
            (
                "O(rcv_qp_attr, path_mtu)",
                offset_of!(RcvQpAttr, path_mtu) as u64,
            ),
            (
                "O(rcv_qp_attr, port_num)",
                offset_of!(RcvQpAttr, port_num) as u64,
            ),
            (
                "O(rcv_qp_attr, dest.port_num)",
                (offset_of!(RcvQpAttr, dest) + offset_of!(RcvQpDest, port_num)) as u64,
            ),
            ("XROCE_DM_MMAP_BASE", DM_MMAP_BASE),
            ("XROCE_DM_MAX_SIZE", DM_MAX_SIZE),
            ("XROCE_TM_INDEX_BITS", TM_INDEX_BITS.into()),
            ("XROCE_TM_ADD", TM_ADD.into()),
            ("XROCE_TM_DEL", TM_DEL.into()),
            ("XROCE_TM_SYNC", TM_SYNC.into()),
            ("XROCE_TM_SIGNALED", TM_SIGNALED.into()),
            ("XROCE_TM_COUNT", TM_COUNT.into()),
            ("XROCE_TM_FREED_SIZE", size_of::<TmFreed>() as u64),
            ("O(tm_op_slot, sge)", TM_OP_SLOT_HDR as u64),
            ("O(tm_op_slot, handle)", offset_of!(TmOpSlot, handle) as u64),
            ("O(tm_op_slot, mask)", offset_of!(TmOpSlot, mask) as u64),
            ("Z(create_tm_srq_resp)", size_of::<CreateTmSrqResp>() as u64),
            ("Z(create_tm_srq_req)", size_of::<CreateTmSrqReq>() as u64),
            ("H(user_index)", RING_USER_INDEX as u64),
            ("H(arm)", RING_ARM as u64),
            ("H(kernel_index)", RING_KERNEL_INDEX as u64),
            ("H(kernel_flags)", RING_KERNEL_FLAGS as u64),
            ("Z(ring_info)", size_of::<RingInfo>() as u64),
            ("Z(send_slot)", size_of::<SendSlot>() as u64),
            ("O(send_slot, imm)", offset_of!(SendSlot, imm) as u64),
            ("O(send_slot, count)", offset_of!(SendSlot, count) as u64),
            (
                "O(send_slot, rdma.srqn)",
                16 + offset_of!(SendRdma, srqn) as u64,
            ),
            (
                "O(send_slot, rdma.swap)",
                16 + offset_of!(SendRdma, swap) as u64,
            ),
            (
                "O(send_slot, ud.remote_qkey)",
                16 + offset_of!(SendUd, remote_qkey) as u64,
            ),
            (
                "O(send_slot, bind.new_rkey)",
                16 + offset_of!(SendBind, new_rkey) as u64,
            ),
            (
                "O(send_slot, flush.level)",
                16 + offset_of!(SendFlush, level) as u64,
            ),
            ("Z(cqe)", size_of::<Cqe>() as u64),
            ("O(cqe, wc_flags)", offset_of!(Cqe, wc_flags) as u64),
            ("O(cqe, sl)", offset_of!(Cqe, sl) as u64),
            ("O(cqe, tm_tag)", offset_of!(Cqe, tm_tag) as u64),
            ("Z(create_qp_resp)", size_of::<CreateQpResp>() as u64),
            ("Z(create_srq_resp)", size_of::<CreateSrqResp>() as u64),
            ("Z(modify_srq_req)", size_of::<ModifySrqReq>() as u64),
            ("Z(create_cq_req)", size_of::<CreateCqReq>() as u64),
            ("Z(create_ah_resp)", size_of::<CreateAhResp>() as u64),
            (
                "Z(alloc_ucontext_req)",
                size_of::<AllocUcontextReq>() as u64,
            ),
            (
                "Z(alloc_ucontext_resp)",
                size_of::<AllocUcontextResp>() as u64,
            ),
        ];
        let mut c = String::from(
            "#include <stddef.h>\n#include <rdma/ib_user_ioctl_cmds.h>\n\
             #include \"rdma/xroce-abi.h\"\n\
             #define Z(t) sizeof(struct xroce_##t)\n\
             #define O(t, f) offsetof(struct xroce_##t, f)\n\
             #define H(f) offsetof(struct xroce_ring_hdr, f)\n",
        );
        for (name, value) in pairs {
            c += &format!("_Static_assert({name} == {value}ULL, \"{name}\");\n");
        }
        let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include/uapi");
        let mut cc = std::process::Command::new("cc")
            .args(["-x", "c", "-fsyntax-only", "-I", include, "-"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a C compiler");
        use std::io::Write;
        cc.stdin
            .take()
            .expect("piped")
            .write_all(c.as_bytes())
            .expect("cc reads");
        assert!(cc.wait().expect("cc ends").success());
    }
}
