// SPDX-License-Identifier: GPL-2.0

//! Completions: opcodes and flags of `struct xroce_cqe`, and the completion entry of a kernel user.

use crate::abi;
use crate::cq::KernelCompletion;
use crate::qp::request::SendOp;
use rdma::wr::{
    self as verbs,
    Wc,
    WcBuf, //
};

// `enum xroce_wc_opcode`
/// SEND
pub(crate) const WC_SEND: u32 = abi::XROCE_WC_SEND;
/// RDMA WRITE
pub(crate) const WC_RDMA_WRITE: u32 = abi::XROCE_WC_RDMA_WRITE;
/// RDMA READ
pub(crate) const WC_RDMA_READ: u32 = abi::XROCE_WC_RDMA_READ;
/// Compare and swap
pub(crate) const WC_COMP_SWAP: u32 = abi::XROCE_WC_COMP_SWAP;
/// Fetch and add
pub(crate) const WC_FETCH_ADD: u32 = abi::XROCE_WC_FETCH_ADD;
/// Bind of a memory window
pub(crate) const WC_BIND_MW: u32 = abi::XROCE_WC_BIND_MW;
/// Local invalidate
pub(crate) const WC_LOCAL_INV: u32 = abi::XROCE_WC_LOCAL_INV;
/// FLUSH
pub(crate) const WC_FLUSH: u32 = abi::XROCE_WC_FLUSH;
/// Atomic write
pub(crate) const WC_ATOMIC_WRITE: u32 = abi::XROCE_WC_ATOMIC_WRITE;
/// Message received
pub(crate) const WC_RECV: u32 = abi::XROCE_WC_RECV;
/// RDMA WRITE with immediate data received
pub(crate) const WC_RECV_RDMA_WITH_IMM: u32 = abi::XROCE_WC_RECV_RDMA_WITH_IMM;

/// Tag added to a matching list
pub(crate) const WC_TM_ADD: u32 = abi::XROCE_WC_TM_ADD;
/// Tag taken back
pub(crate) const WC_TM_DEL: u32 = abi::XROCE_WC_TM_DEL;
/// Count of unexpected messages taken over
pub(crate) const WC_TM_SYNC: u32 = abi::XROCE_WC_TM_SYNC;
/// Message with a tag received
pub(crate) const WC_TM_RECV: u32 = abi::XROCE_WC_TM_RECV;
/// Message without a tag received by a tag-matching queue
pub(crate) const WC_TM_NO_TAG: u32 = abi::XROCE_WC_TM_NO_TAG;

// `enum xroce_wc_flags`
/// 40 bytes of header are in front of the data.
pub(crate) const WC_GRH: u32 = abi::XROCE_WC_GRH;
/// The completion has immediate data.
pub(crate) const WC_WITH_IMM: u32 = abi::XROCE_WC_WITH_IMM;
/// The completion has an invalidated key.
pub(crate) const WC_WITH_INV: u32 = abi::XROCE_WC_WITH_INV;

/// Software is to report the unexpected messages that it has handled.
pub(crate) const WC_TM_SYNC_REQ: u32 = abi::XROCE_WC_TM_SYNC_REQ;
/// The message took a tag.
pub(crate) const WC_TM_MATCH: u32 = abi::XROCE_WC_TM_MATCH;
/// The data of the message are there.
pub(crate) const WC_TM_DATA_VALID: u32 = abi::XROCE_WC_TM_DATA_VALID;

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
