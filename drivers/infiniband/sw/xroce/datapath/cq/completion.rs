// SPDX-License-Identifier: GPL-2.0

//! Completions, as they are before they are put into a queue and in the ring of a process.

use crate::prelude::*;
use crate::wr;

/// A completion, before it is put into a ring.
#[derive(Clone, Copy, Default)]
pub struct Completion {
    /// Of the work request.
    pub wr_id: u64,
    /// How it went.
    pub status: WcStatus,
    /// `wr::WC_*` opcode.
    pub opcode: u32,
    /// Bytes received or read.
    pub byte_len: u32,
    /// Immediate data (big-endian bits) or the invalidated key.
    pub imm: u32,
    /// Local QP number.
    pub qp_num: Qpn,
    /// UD: remote QP number; tag matching: data of the application.
    pub src_qp: u32,
    /// `wr::WC_*` flags.
    pub wc_flags: u32,
    /// UD: index of the partition key.
    pub pkey_index: u16,
    /// A hint, with an error.
    pub vendor_err: u32,
    /// Tag matching: the tag of the message.
    pub tm_tag: u64,
    /// The sender asked for a solicited event.
    pub solicited: bool,
    /// GSI and kernel UD: source hardware address, when known.
    pub smac: Option<[u8; 6]>,
    /// GSI and kernel UD: the packet's VLAN.
    pub vlan: Option<u16>,
    /// UD: the packet came over IPv6.
    pub is_v6: bool,
}

impl Completion {
    /// The completion as it lies in a user's ring.
    pub(super) fn to_cqe(self, now: u64) -> abi::xroce_cqe {
        abi::xroce_cqe {
            wr_id: self.wr_id,
            status: self.status as u32,
            opcode: self.opcode,
            vendor_err: self.vendor_err,
            byte_len: self.byte_len,
            imm: self.imm,
            qp_num: self.qp_num.get(),
            src_qp: self.src_qp,
            wc_flags: self.wc_flags,
            pkey_index: self.pkey_index,
            slid: 0,
            sl: self.packet_type(),
            dlid_path_bits: 0,
            flags: 0,
            timestamp: now,
            tm_tag: self.tm_tag,
        }
    }

    /// The value that a process gets as service level, which RoCE does not have. IBTA A17.4.5.1
    /// requires a datagram's completion to say whether it came over IPv4 or IPv6, but `struct
    /// ibv_wc` has no field for that. mlx5 has it in this one (rdma-core's plug-in hands on the
    /// device's four bits): bit 3 says that there is a UDP header; the value below it is 1 for
    /// IPv6, 2 for IPv4. UCX relies on it, and otherwise takes what came over IPv4 for a
    /// stranger's. Kernel users have `network_hdr_type`.
    fn packet_type(&self) -> u8 {
        const UDP: u8 = 1 << 3;
        match (self.wc_flags & wr::WC_GRH != 0, self.is_v6) {
            (false, _) => 0,
            (true, true) => UDP | 1,
            (true, false) => UDP | 2,
        }
    }

    /// Completions with an error count as solicited.
    pub(super) fn is_solicited(&self) -> bool {
        self.solicited || self.status != WcStatus::Success
    }
}

/// A completion of a kernel user, with what `struct ib_wc` wants besides.
#[derive(Clone, Default)]
pub struct KernelCompletion {
    /// What a process would get.
    pub completion: Completion,
    /// The queue pair, as its user knows it.
    pub qp: Option<QpHandle>,
}
