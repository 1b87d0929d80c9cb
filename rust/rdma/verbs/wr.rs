// SPDX-License-Identifier: GPL-2.0

//! Work requests and completions of kernel users.
//!
//! C header: `include/rdma/ib_verbs.h`.
//!
//! A request is valid only during the call that posts it: copy the data that is needed later.

use crate::{
    ah::Ah,
    bindings,
    events::QpHandle,
    mem::KernelAddr,
    mr::Mr,
    provider::Provider, //
};
use core::{
    marker::PhantomData,
    slice, //
};
use kernel::prelude::*;

/// Operation of a send work request (`enum ib_wr_opcode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SendOpcode {
    /// RDMA WRITE
    RdmaWrite = bindings::ib_wr_opcode_IB_WR_RDMA_WRITE,
    /// RDMA WRITE with immediate data
    RdmaWriteImm = bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM,
    /// SEND
    Send = bindings::ib_wr_opcode_IB_WR_SEND,
    /// SEND with immediate data
    SendImm = bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM,
    /// SEND that invalidates a remote key
    SendInv = bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV,
    /// RDMA READ
    RdmaRead = bindings::ib_wr_opcode_IB_WR_RDMA_READ,
    /// Compare and swap
    AtomicCmpSwap = bindings::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP,
    /// Fetch and add
    AtomicFetchAdd = bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD,
    /// Invalidate a local key
    LocalInv = bindings::ib_wr_opcode_IB_WR_LOCAL_INV,
    /// Fast registration
    RegMr = bindings::ib_wr_opcode_IB_WR_REG_MR,
}

impl SendOpcode {
    fn from_raw(raw: bindings::ib_wr_opcode) -> Option<Self> {
        Some(match raw {
            bindings::ib_wr_opcode_IB_WR_RDMA_WRITE => Self::RdmaWrite,
            bindings::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM => Self::RdmaWriteImm,
            bindings::ib_wr_opcode_IB_WR_SEND => Self::Send,
            bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM => Self::SendImm,
            bindings::ib_wr_opcode_IB_WR_SEND_WITH_INV => Self::SendInv,
            bindings::ib_wr_opcode_IB_WR_RDMA_READ => Self::RdmaRead,
            bindings::ib_wr_opcode_IB_WR_ATOMIC_CMP_AND_SWP => Self::AtomicCmpSwap,
            bindings::ib_wr_opcode_IB_WR_ATOMIC_FETCH_AND_ADD => Self::AtomicFetchAdd,
            bindings::ib_wr_opcode_IB_WR_LOCAL_INV => Self::LocalInv,
            bindings::ib_wr_opcode_IB_WR_REG_MR => Self::RegMr,
            _ => return None,
        })
    }
}

/// An element of a kernel user's scatter or gather list.
///
/// The devices of this crate are virtual for the DMA layer, so the address is a kernel address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSge {
    addr: u64,
    /// Bytes.
    pub length: u32,
    /// Local key that the user gave.
    pub lkey: u32,
}

impl KernelSge {
    /// The address as a number.
    pub fn address(&self) -> u64 {
        self.addr
    }

    /// The memory: valid until the work request completes, which the user promises who posted it.
    /// It must not be used afterwards, nor written for a send.
    pub fn memory(&self) -> KernelAddr {
        // SAFETY: Only made from requests of kernel users, who keep the memory mapped for the
        // device until the request completes. The provider, which gets both, completes it when it
        // has used the memory for the last time: that is all we have, see `KernelAddr`.
        unsafe { KernelAddr::new(self.addr, self.length as usize) }
    }
}

/// Reads a list of a request.
///
/// # Safety
///
/// `list` must point to `count` elements, for all of `'a`, when `count` is positive.
unsafe fn sges<'a>(
    list: *const bindings::ib_sge,
    count: core::ffi::c_int,
) -> impl ExactSizeIterator<Item = KernelSge> + 'a {
    let raw: &'a [bindings::ib_sge] = match usize::try_from(count) {
        // SAFETY: By contract.
        Ok(count) if count > 0 && !list.is_null() => unsafe { slice::from_raw_parts(list, count) },
        _ => &[],
    };
    raw.iter().map(|sge| KernelSge {
        addr: sge.addr,
        length: sge.length,
        lkey: sge.lkey,
    })
}

/// Remote part of an RDMA request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaPart {
    /// Remote address.
    pub remote_addr: u64,
    /// Remote key.
    pub rkey: u32,
}

/// Remote part and operands of an atomic request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicPart {
    /// Remote address.
    pub remote_addr: u64,
    /// Remote key.
    pub rkey: u32,
    /// Value to compare with, or to add.
    pub compare_add: u64,
    /// Value to store if equal.
    pub swap: u64,
}

/// A fast registration.
pub struct RegPart<'a, P: Provider> {
    /// The region, with its pages.
    pub mr: &'a Mr<P>,
    /// Address that the first byte gets.
    pub iova: u64,
    /// The key from now on.
    pub key: u32,
    /// `IB_ACCESS_*` flags.
    pub access: u32,
}

/// Destination of a datagram.
pub struct UdPart<'a, P: Provider> {
    /// Address handle.
    pub ah: &'a Ah<P>,
    /// QP number of the receiver.
    pub remote_qpn: u32,
    /// Queue key.
    pub remote_qkey: u32,
    /// GSI: index of the partition key.
    pub pkey_index: u16,
}

/// A send work request of a kernel user (`struct ib_send_wr`).
pub struct SendWr<'a, P: Provider> {
    raw: &'a bindings::ib_send_wr,
    datagram: bool,
    _provider: PhantomData<P>,
}

impl<'a, P: Provider> SendWr<'a, P> {
    /// Wraps a request.
    ///
    /// # Safety
    ///
    /// `raw` must be a request that a kernel user posts to a queue pair of provider `P`, well
    /// formed as `ib_post_send` asks: embedded in the structure that goes with its opcode, or, if
    /// `datagram`, in a `struct ib_ud_wr` with an address handle of the same device.
    pub(crate) unsafe fn from_raw(raw: &'a bindings::ib_send_wr, datagram: bool) -> Self {
        Self {
            raw,
            datagram,
            _provider: PhantomData,
        }
    }

    /// What the completion gives back.
    pub fn wr_id(&self) -> u64 {
        // SAFETY: A number or a pointer, both 64 plain bits.
        unsafe { *self.raw.__bindgen_anon_1.wr_id.as_ref() }
    }

    /// The operation; `None` for one that this crate does not know.
    pub fn opcode(&self) -> Option<SendOpcode> {
        SendOpcode::from_raw(self.raw.opcode)
    }

    /// A completion is wanted even on success.
    pub fn signaled(&self) -> bool {
        self.flag(bindings::ib_send_flags_IB_SEND_SIGNALED as u32)
    }

    /// The receiver's completion raises a solicited event.
    pub fn solicited(&self) -> bool {
        self.flag(bindings::ib_send_flags_IB_SEND_SOLICITED as u32)
    }

    /// Earlier READs and atomics must be done first.
    pub fn fence(&self) -> bool {
        self.flag(bindings::ib_send_flags_IB_SEND_FENCE as u32)
    }

    /// The data must be copied before the post returns; keys do not matter.
    pub fn inline(&self) -> bool {
        self.flag(bindings::ib_send_flags_IB_SEND_INLINE as u32)
    }

    fn flag(&self, flag: u32) -> bool {
        self.raw.send_flags as u32 & flag != 0
    }

    /// Immediate data (bits as they stand in memory, big-endian), or the key to invalidate.
    pub fn imm_or_key(&self) -> u32 {
        // SAFETY: Both members are 32 plain bits.
        unsafe { *self.raw.ex.invalidate_rkey.as_ref() }
    }

    /// The gather list; for READ and atomics, where the result goes.
    pub fn sges(&self) -> impl ExactSizeIterator<Item = KernelSge> + 'a {
        // SAFETY: Well formed by the contract of `from_raw`.
        unsafe { sges(self.raw.sg_list, self.raw.num_sge) }
    }

    /// The remote part of an RDMA request; `None` for other operations.
    pub fn rdma(&self) -> Option<RdmaPart> {
        match self.opcode()? {
            SendOpcode::RdmaWrite | SendOpcode::RdmaWriteImm | SendOpcode::RdmaRead
                if !self.datagram => {}
            _ => return None,
        }
        // CAST: `wr` is the first field of `struct ib_rdma_wr`.
        // SAFETY: The opcode says that the request is embedded in one (`from_raw`).
        let rdma = unsafe { &*core::ptr::from_ref(self.raw).cast::<bindings::ib_rdma_wr>() };
        Some(RdmaPart {
            remote_addr: rdma.remote_addr,
            rkey: rdma.rkey,
        })
    }

    /// The operands of an atomic request; `None` for other operations.
    pub fn atomic(&self) -> Option<AtomicPart> {
        match self.opcode()? {
            SendOpcode::AtomicCmpSwap | SendOpcode::AtomicFetchAdd if !self.datagram => {}
            _ => return None,
        }
        // CAST: `wr` is the first field of `struct ib_atomic_wr`.
        // SAFETY: The opcode says that the request is embedded in one (`from_raw`).
        let atomic = unsafe { &*core::ptr::from_ref(self.raw).cast::<bindings::ib_atomic_wr>() };
        Some(AtomicPart {
            remote_addr: atomic.remote_addr,
            rkey: atomic.rkey,
            compare_add: atomic.compare_add,
            swap: atomic.swap,
        })
    }

    /// The fast registration; `None` for other operations.
    pub fn reg(&self) -> Option<RegPart<'a, P>> {
        match self.opcode()? {
            SendOpcode::RegMr if !self.datagram => {}
            _ => return None,
        }
        // CAST: `wr` is the first field of `struct ib_reg_wr`.
        // SAFETY: The opcode says that the request is embedded in one (`from_raw`).
        let reg = unsafe { &*core::ptr::from_ref(self.raw).cast::<bindings::ib_reg_wr>() };
        if reg.mr.is_null() {
            return None;
        }
        // SAFETY: A region of the same device, which the user keeps at least until the request
        // completes.
        let mr = unsafe { Mr::<P>::from_raw(reg.mr) };
        Some(RegPart {
            mr,
            iova: mr.iova(),
            key: reg.key,
            access: reg.access as u32,
        })
    }

    /// The destination of a datagram; `None` on a connected queue pair.
    pub fn ud(&self) -> Option<UdPart<'a, P>> {
        if !self.datagram {
            return None;
        }
        // CAST: `wr` is the first field of `struct ib_ud_wr`.
        // SAFETY: Posted to a datagram queue pair, so it is embedded in one (`from_raw`).
        let ud = unsafe { &*core::ptr::from_ref(self.raw).cast::<bindings::ib_ud_wr>() };
        if ud.ah.is_null() {
            return None;
        }
        Some(UdPart {
            // SAFETY: The user keeps the handle at least until the post returns.
            ah: unsafe { Ah::from_raw(ud.ah) },
            remote_qpn: ud.remote_qpn,
            remote_qkey: ud.remote_qkey,
            pkey_index: ud.pkey_index,
        })
    }
}

/// A receive work request of a kernel user (`struct ib_recv_wr`).
pub struct RecvWr<'a> {
    raw: &'a bindings::ib_recv_wr,
}

impl<'a> RecvWr<'a> {
    /// Wraps a request.
    ///
    /// # Safety
    ///
    /// `raw` must be a request that a kernel user posts, with a well formed scatter list.
    pub(crate) unsafe fn from_raw(raw: &'a bindings::ib_recv_wr) -> Self {
        Self { raw }
    }

    /// What the completion gives back.
    pub fn wr_id(&self) -> u64 {
        // SAFETY: A number or a pointer, both 64 plain bits.
        unsafe { *self.raw.__bindgen_anon_1.wr_id.as_ref() }
    }

    /// The scatter list.
    pub fn sges(&self) -> impl ExactSizeIterator<Item = KernelSge> + 'a {
        // SAFETY: Well formed by the contract of `from_raw`.
        unsafe { sges(self.raw.sg_list, self.raw.num_sge) }
    }
}

/// A completion for a kernel user (`struct ib_wc`).
#[derive(Default)]
pub struct Wc<'a> {
    /// Of the work request.
    pub wr_id: u64,
    /// `enum ib_wc_status`.
    pub status: u32,
    /// `enum ib_wc_opcode`.
    pub opcode: u32,
    /// A hint for people.
    pub vendor_err: u32,
    /// Bytes received or read.
    pub byte_len: u32,
    /// The queue pair.
    pub qp: Option<&'a QpHandle>,
    /// Immediate data (bits as they stand in memory, big-endian) or the invalidated key.
    pub imm_or_key: u32,
    /// Datagram: QP number of the sender.
    pub src_qp: u32,
    /// `enum ib_wc_flags`, see [`wc_flags`].
    pub flags: u32,
    /// GSI: index of the partition key.
    pub pkey_index: u16,
    /// Service level.
    pub sl: u8,
    /// Port number, from 1.
    pub port: u32,
    /// Hardware address of the sender, with [`wc_flags::WITH_SMAC`].
    pub smac: [u8; 6],
    /// VLAN, with [`wc_flags::WITH_VLAN`].
    pub vlan: u16,
    /// `enum rdma_network_type`, with [`wc_flags::WITH_NETWORK_HDR_TYPE`].
    pub network_hdr_type: u8,
}

/// Values of [`Wc::opcode`] that user space does not have (`enum ib_wc_opcode`).
pub mod wc_opcode {
    /// Fast registration.
    pub const REG_MR: u32 = crate::bindings::ib_wc_opcode_IB_WC_REG_MR;
}

/// Bits of [`Wc::flags`] (`enum ib_wc_flags`). User space has other numbers.
pub mod wc_flags {
    use crate::bindings as b;

    /// The first 40 bytes of the receive buffer hold a GRH or IP header.
    pub const GRH: u32 = b::ib_wc_flags_IB_WC_GRH;
    /// Immediate data.
    pub const WITH_IMM: u32 = b::ib_wc_flags_IB_WC_WITH_IMM;
    /// An invalidated key.
    pub const WITH_INVALIDATE: u32 = b::ib_wc_flags_IB_WC_WITH_INVALIDATE;
    /// [`super::Wc::smac`]
    pub const WITH_SMAC: u32 = b::ib_wc_flags_IB_WC_WITH_SMAC;
    /// [`super::Wc::vlan`]
    pub const WITH_VLAN: u32 = b::ib_wc_flags_IB_WC_WITH_VLAN;
    /// [`super::Wc::network_hdr_type`]
    pub const WITH_NETWORK_HDR_TYPE: u32 = b::ib_wc_flags_IB_WC_WITH_NETWORK_HDR_TYPE;
}

/// Values of [`Wc::network_hdr_type`] (`enum rdma_network_type`).
pub mod network_hdr_type {
    use crate::bindings as b;

    /// RoCEv2 over IPv4: the IP header stands in the last 20 of the 40 bytes.
    pub const IPV4: u8 = b::rdma_network_type_RDMA_NETWORK_IPV4 as u8;
    /// RoCEv2 over IPv6.
    pub const IPV6: u8 = b::rdma_network_type_RDMA_NETWORK_IPV6 as u8;
}

/// Where a poll operation puts completions.
pub struct WcBuf<'a> {
    raw: *mut bindings::ib_wc,
    room: usize,
    len: usize,
    _lent: PhantomData<&'a mut bindings::ib_wc>,
}

impl WcBuf<'_> {
    /// Wraps the array that a kernel user lends.
    ///
    /// # Safety
    ///
    /// `raw` must point to `room` structures that may be written for all of the value's life.
    pub(crate) unsafe fn from_raw(raw: *mut bindings::ib_wc, room: usize) -> Self {
        Self {
            raw,
            room,
            len: 0,
            _lent: PhantomData,
        }
    }

    /// Completions that still fit.
    pub fn room(&self) -> usize {
        self.room.saturating_sub(self.len)
    }

    /// Completions that were put in.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Tells whether none was put in.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts a completion in.
    ///
    /// # Errors
    ///
    /// `ENOSPC` when there is no room.
    pub fn push(&mut self, wc: &Wc<'_>) -> Result {
        if self.len >= self.room {
            return Err(ENOSPC);
        }
        let mut raw = bindings::ib_wc {
            status: wc.status,
            opcode: wc.opcode,
            vendor_err: wc.vendor_err,
            byte_len: wc.byte_len,
            qp: wc.qp.map_or(core::ptr::null_mut(), QpHandle::raw_for_wc),
            src_qp: wc.src_qp,
            wc_flags: wc.flags as i32,
            pkey_index: wc.pkey_index,
            sl: wc.sl,
            port_num: wc.port,
            smac: wc.smac,
            vlan_id: wc.vlan,
            network_hdr_type: wc.network_hdr_type,
            ..Default::default()
        };
        // SAFETY: Both unions consist of plain bits of one size.
        unsafe {
            *raw.__bindgen_anon_1.wr_id.as_mut() = wc.wr_id;
            *raw.ex.invalidate_rkey.as_mut() = wc.imm_or_key;
        }
        // SAFETY: `len` is below `room`, so the element is in the array (`from_raw`).
        unsafe { self.raw.add(self.len).write(raw) };
        self.len = self.len.wrapping_add(1);
        Ok(())
    }
}
