// SPDX-License-Identifier: GPL-2.0
//! The `ibv_wr_*` interface: requests are built in the ring, and wr_complete makes them visible to
//! the kernel.
//!
//! wr_start takes the queue's lock; wr_complete and wr_abort release it. If an error occurs in
//! between, wr_complete reports the first one and posts nothing.

use core::ffi::{
    c_int,
    c_void, //
};
use core::mem::{
    offset_of,
    size_of, //
};

use super::encode::may_inline;
use super::{
    Kind,
    Qp,
    SendQueue, //
};
use crate::abi::{
    self,
    SendBind,
    SendBody,
    SendFlush,
    SendRdma,
    SendSlot,
    SendUd,
    Sge,
    SEND_SLOT_HDR, //
};
use crate::ah::Ah;
use crate::sys::{
    status,
    Errno,
    Result,
    EINVAL,
    EIO,
    ENOMEM, //
};
use crate::verbs::*;

/// `enum ibv_qp_create_send_ops_flags` of opcodes, in the order of its bits.
const FLAGS: [(u64, u8); 12] = [
    (1 << 0, abi::WR_RDMA_WRITE),
    (1 << 1, abi::WR_RDMA_WRITE_IMM),
    (1 << 2, abi::WR_SEND),
    (1 << 3, abi::WR_SEND_IMM),
    (1 << 4, abi::WR_RDMA_READ),
    (1 << 5, abi::WR_ATOMIC_CMP_SWAP),
    (1 << 6, abi::WR_ATOMIC_FETCH_ADD),
    (1 << 7, abi::WR_LOCAL_INV),
    (1 << 8, abi::WR_BIND_MW),
    (1 << 9, abi::WR_SEND_INV),
    (1 << 11, abi::WR_FLUSH),
    (1 << 12, abi::WR_ATOMIC_WRITE),
];

/// Opcodes of the functions that an old libibverbs lacks, the newest first.
const NEWEST: [u8; 2] = [abi::WR_FLUSH, abi::WR_ATOMIC_WRITE];

/// `send_ops_flags` that a QP can be created with, with a libibverbs that lacks the `absent` newest
/// functions.
pub(super) fn supported(kind: Kind, absent: usize) -> u64 {
    FLAGS
        .iter()
        .filter(|&&(_, opcode)| kind.allows(opcode.into()))
        .filter(|(_, opcode)| !NEWEST.iter().take(absent).any(|o| o == opcode))
        .fold(0, |flags, &(flag, _)| flags | flag)
}

type Ex = *mut IbvQpEx;

/// The queue of a QP between wr_start and wr_complete.
///
/// # Safety
///
/// `qp` must be ours, live for `'a`, and have been started by this thread,
/// which lets the reference go before it asks for another.
unsafe fn queue<'a>(qp: Ex) -> Option<&'a mut SendQueue> {
    // SAFETY: as the caller says.
    let send = unsafe { Qp::get(qp.cast()) }.send.as_ref()?;
    // SAFETY: wr_start took the lock for the caller.
    Some(unsafe { send.held() })
}

impl SendQueue {
    fn fail(&mut self, e: Errno) {
        self.error.get_or_insert(e);
    }

    /// Starts the next request.
    fn begin(&mut self, wr_id: u64, wr_flags: u32, opcode: u8, imm: u32, body: SendBody) -> Result {
        if self.error.is_some() {
            return Ok(());
        }
        if !self.limits.kind.allows(opcode.into()) {
            return Err(EINVAL);
        }
        // Inline data has a setter; the flag alone means nothing.
        let known = abi::SEND_FENCE | abi::SEND_SIGNALED | abi::SEND_SOLICITED;
        let mut flags = wr_flags as u8 & known;
        if self.limits.signal_all {
            flags |= abi::SEND_SIGNALED;
        }
        let slot = self.ring.free_slot().ok_or(ENOMEM)?;
        let header = SendSlot {
            wr_id,
            opcode,
            flags,
            count: 0,
            imm,
            body,
        };
        self.ring.put(slot, 0, &header);
        self.ring.advance();
        self.current = slot;
        self.opcode = opcode;
        self.flags = flags;
        Ok(())
    }

    /// Sets the number of elements or inline bytes, and with bytes the flag.
    fn set_count(&mut self, count: u16, inline: bool) {
        let slot = self.current;
        self.ring.put(slot, offset_of!(SendSlot, count), &count);
        let mut flags = self.flags & !abi::SEND_INLINE;
        if inline {
            flags |= abi::SEND_INLINE;
        }
        self.flags = flags;
        self.ring.put(slot, offset_of!(SendSlot, flags), &flags);
    }

    /// Sets the scatter/gather list.
    ///
    /// # Safety
    ///
    /// `list` must be valid for `n` elements.
    unsafe fn set_sges(&mut self, n: usize, list: *const IbvSge) -> Result {
        if n > self.limits.max_sge as usize {
            return Err(EINVAL);
        }
        // SAFETY: the caller's list, with the layout of `Sge`; slots were
        // mapped for `max_sge` elements.
        unsafe {
            self.ring.put_bytes(
                self.current,
                SEND_SLOT_HDR,
                list.cast(),
                n * size_of::<Sge>(),
            )
        };
        self.set_count(n as u16, false);
        Ok(())
    }

    /// Sets inline data from buffers.
    ///
    /// # Safety
    ///
    /// The buffers must be valid.
    unsafe fn set_inline(&mut self, buffers: &[IbvDataBuf]) -> Result {
        if !may_inline(self.opcode) {
            return Err(EINVAL);
        }
        let mut done = 0;
        for b in buffers {
            if b.length > self.limits.max_inline as usize - done {
                return Err(EINVAL);
            }
            // SAFETY: a buffer of the caller's; it fits (checked above).
            unsafe {
                self.ring.put_bytes(
                    self.current,
                    SEND_SLOT_HDR + done,
                    b.addr.cast_const().cast(),
                    b.length,
                )
            };
            done += b.length;
        }
        self.set_count(u16::try_from(done).map_err(|_| EINVAL)?, true);
        Ok(())
    }
}

/// Starts a request in the queue of `qp`.
///
/// # Safety
///
/// As [`queue`].
unsafe fn begin(qp: Ex, opcode: u8, imm: u32, body: SendBody) {
    // SAFETY: as the caller says; programs set these before each request.
    let (q, wr_id, flags) = unsafe { (queue(qp), (*qp).wr_id, (*qp).wr_flags) };
    if let Some(q) = q {
        if let Err(e) = q.begin(wr_id, flags, opcode, imm, body) {
            q.fail(e);
        }
    }
}

/// Changes the request that was started last, unless something failed.
///
/// # Safety
///
/// As [`queue`].
unsafe fn change(qp: Ex, f: impl FnOnce(&mut SendQueue) -> Result) {
    // SAFETY: as the caller says.
    if let Some(q) = unsafe { queue(qp) } {
        if q.error.is_none() {
            if let Err(e) = f(q) {
                q.fail(e);
            }
        }
    }
}

fn rdma(rkey: u32, remote_addr: u64) -> SendBody {
    SendBody {
        rdma: SendRdma {
            remote_addr,
            rkey,
            ..SendRdma::default()
        },
    }
}

fn nothing() -> SendBody {
    rdma(0, 0)
}

// SAFETY (all functions below): libibverbs' inline functions call them with
// the QP that they were set on, between wr_start and wr_complete.

unsafe extern "C" fn wr_start(qp: Ex) {
    // SAFETY: a live QP of ours.
    let this = unsafe { Qp::get(qp.cast()) };
    if let Some(send) = &this.send {
        send.hold();
        // SAFETY: taken in the line above.
        let q = unsafe { send.held() };
        q.error = match this.accepts_sends() {
            false => Some(EINVAL),
            true => q.dead().then_some(EIO),
        };
    }
}

unsafe extern "C" fn wr_complete(qp: Ex) -> c_int {
    // SAFETY: a live QP of ours.
    let this = unsafe { Qp::get(qp.cast()) };
    let Some(send) = &this.send else {
        return status(Err(EINVAL));
    };
    let result = {
        // SAFETY: wr_start took the lock for the caller.
        let q = unsafe { send.held() };
        match q.error.take() {
            None => Ok(q.publish()),
            Some(e) => {
                q.ring.rollback();
                Err(e)
            }
        }
    };
    // SAFETY: as above, and no reference is left.
    unsafe { send.release() };
    status(result.and_then(|asleep| match asleep {
        true => this.doorbell(),
        false => Ok(()),
    }))
}

unsafe extern "C" fn wr_abort(qp: Ex) {
    // SAFETY: a live QP of ours.
    if let Some(send) = &unsafe { Qp::get(qp.cast()) }.send {
        // SAFETY: wr_start took the lock for the caller; the reference ends
        // before it is released.
        unsafe {
            let q = send.held();
            q.ring.rollback();
            q.error = None;
            send.release();
        }
    }
}

unsafe extern "C" fn wr_send(qp: Ex) {
    // SAFETY: see above.
    unsafe { begin(qp, abi::WR_SEND, 0, nothing()) }
}

unsafe extern "C" fn wr_send_imm(qp: Ex, imm: u32) {
    // SAFETY: see above.
    unsafe { begin(qp, abi::WR_SEND_IMM, imm, nothing()) }
}

unsafe extern "C" fn wr_send_inv(qp: Ex, rkey: u32) {
    // SAFETY: see above.
    unsafe { begin(qp, abi::WR_SEND_INV, rkey, nothing()) }
}

unsafe extern "C" fn wr_local_inv(qp: Ex, rkey: u32) {
    // SAFETY: see above.
    unsafe { begin(qp, abi::WR_LOCAL_INV, rkey, nothing()) }
}

unsafe extern "C" fn wr_rdma_read(qp: Ex, rkey: u32, addr: u64) {
    // SAFETY: see above.
    unsafe { begin(qp, abi::WR_RDMA_READ, 0, rdma(rkey, addr)) }
}

unsafe extern "C" fn wr_rdma_write(qp: Ex, rkey: u32, addr: u64) {
    // SAFETY: see above.
    unsafe { begin(qp, abi::WR_RDMA_WRITE, 0, rdma(rkey, addr)) }
}

unsafe extern "C" fn wr_rdma_write_imm(qp: Ex, rkey: u32, addr: u64, imm: u32) {
    // SAFETY: see above.
    unsafe { begin(qp, abi::WR_RDMA_WRITE_IMM, imm, rdma(rkey, addr)) }
}

/// # Safety
///
/// As [`queue`].
unsafe fn atomic(qp: Ex, opcode: u8, rkey: u32, remote_addr: u64, compare_add: u64, swap: u64) {
    let body = SendBody {
        rdma: SendRdma {
            remote_addr,
            rkey,
            srqn: 0,
            compare_add,
            swap,
        },
    };
    // SAFETY: as the caller says.
    unsafe { begin(qp, opcode, 0, body) }
}

unsafe extern "C" fn wr_atomic_cmp_swp(qp: Ex, rkey: u32, addr: u64, compare: u64, swap: u64) {
    // SAFETY: see above.
    unsafe { atomic(qp, abi::WR_ATOMIC_CMP_SWAP, rkey, addr, compare, swap) }
}

unsafe extern "C" fn wr_atomic_fetch_add(qp: Ex, rkey: u32, addr: u64, add: u64) {
    // SAFETY: see above.
    unsafe { atomic(qp, abi::WR_ATOMIC_FETCH_ADD, rkey, addr, add, 0) }
}

/// The eight bytes to write travel inline.
unsafe extern "C" fn wr_atomic_write(qp: Ex, rkey: u32, addr: u64, value: *const c_void) {
    let buffer = IbvDataBuf {
        addr: value.cast_mut(),
        length: 8,
    };
    // SAFETY: see above; the caller's value has eight bytes.
    unsafe {
        begin(qp, abi::WR_ATOMIC_WRITE, 0, rdma(rkey, addr));
        change(qp, |q| q.set_inline(&[buffer]));
    }
}

unsafe extern "C" fn wr_flush(qp: Ex, rkey: u32, addr: u64, len: usize, kind: u8, level: u8) {
    let body = |length| SendBody {
        flush: SendFlush {
            remote_addr: addr,
            rkey,
            length,
            kind,
            level,
            ..SendFlush::default()
        },
    };
    // SAFETY: see above.
    unsafe {
        match u32::try_from(len) {
            Ok(length) => begin(qp, abi::WR_FLUSH, 0, body(length)),
            Err(_) => change(qp, |_| Err(EINVAL)),
        }
    }
}

unsafe extern "C" fn wr_bind_mw(qp: Ex, mw: *mut IbvMw, new_rkey: u32, info: *const IbvMwBindInfo) {
    // SAFETY: the caller's window and description are valid.
    let (info, mw_rkey) = unsafe { (&*info, (*mw).rkey) };
    let mr_lkey = match info.mr.is_null() {
        true => 0,
        // SAFETY: a live region.
        false => unsafe { (*info.mr).lkey },
    };
    let body = SendBody {
        bind: SendBind {
            addr: info.addr,
            length: info.length,
            mr_lkey,
            mw_rkey,
            access: info.mw_access_flags,
            new_rkey,
        },
    };
    // SAFETY: see above.
    unsafe { begin(qp, abi::WR_BIND_MW, 0, body) }
}

unsafe extern "C" fn wr_set_ud_addr(qp: Ex, ah: *mut IbvAh, remote_qpn: u32, remote_qkey: u32) {
    // SAFETY: see above.
    unsafe {
        change(qp, |q| {
            if ah.is_null() {
                return Err(EINVAL);
            }
            let address = SendUd {
                // A live handle of ours.
                ah: Ah::number(ah),
                remote_qpn,
                remote_qkey,
                ..SendUd::default()
            };
            q.ring.put(q.current, offset_of!(SendSlot, body), &address);
            Ok(())
        })
    }
}

unsafe extern "C" fn wr_set_xrc_srqn(qp: Ex, srqn: u32) {
    const AT: usize = offset_of!(SendSlot, body) + offset_of!(SendRdma, srqn);
    // SAFETY: see above.
    unsafe {
        change(qp, |q| {
            if srqn > abi::MAX_SRQN {
                return Err(EINVAL);
            }
            q.ring.put(q.current, AT, &srqn);
            Ok(())
        })
    }
}

unsafe extern "C" fn wr_set_sge(qp: Ex, lkey: u32, addr: u64, length: u32) {
    let sge = IbvSge { addr, length, lkey };
    // SAFETY: see above.
    unsafe { change(qp, |q| q.set_sges(1, &sge)) }
}

unsafe extern "C" fn wr_set_sge_list(qp: Ex, n: usize, list: *const IbvSge) {
    // SAFETY: see above; the caller's list.
    unsafe { change(qp, |q| q.set_sges(n, list)) }
}

unsafe extern "C" fn wr_set_inline_data(qp: Ex, addr: *mut c_void, length: usize) {
    // SAFETY: see above; the caller's buffer.
    unsafe { change(qp, |q| q.set_inline(&[IbvDataBuf { addr, length }])) }
}

unsafe extern "C" fn wr_set_inline_data_list(qp: Ex, n: usize, list: *const IbvDataBuf) {
    let buffers = match n {
        0 => &[],
        // SAFETY: the caller's list.
        _ => unsafe { core::slice::from_raw_parts(list, n) },
    };
    // SAFETY: see above; the caller's buffers.
    unsafe { change(qp, |q| q.set_inline(buffers)) }
}

/// Sets the functions of a new QP: all that its type has, whether or not they
/// were asked for; but for the last `absent`, which this libibverbs does not
/// have ([`crate::layout::Layout::absent_builders`]).
pub(super) fn fill(kind: Kind, base: &mut VerbsQp, absent: usize) {
    let mask_at = offset_of!(VerbsQp, comp_mask) - absent.min(2) * size_of::<usize>();
    // SAFETY: `mask_at` is the offset of a word in the structure, be it that of a
    // function; the reference is exclusive.
    unsafe { *core::ptr::from_mut(base).byte_add(mask_at).cast::<u32>() |= VERBS_QP_EX };
    let qp = &mut base.qp;
    qp.wr_start = Some(wr_start);
    qp.wr_complete = Some(wr_complete);
    qp.wr_abort = Some(wr_abort);
    qp.wr_set_sge = Some(wr_set_sge);
    qp.wr_set_sge_list = Some(wr_set_sge_list);
    qp.wr_set_inline_data = Some(wr_set_inline_data);
    qp.wr_set_inline_data_list = Some(wr_set_inline_data_list);
    match kind {
        Kind::Ud => qp.wr_set_ud_addr = Some(wr_set_ud_addr),
        Kind::XrcSend => qp.wr_set_xrc_srqn = Some(wr_set_xrc_srqn),
        _ => {}
    }
    // The builders of opcodes that the type lacks fail in wr_complete.
    qp.wr_send = Some(wr_send);
    qp.wr_send_imm = Some(wr_send_imm);
    qp.wr_send_inv = Some(wr_send_inv);
    qp.wr_local_inv = Some(wr_local_inv);
    qp.wr_bind_mw = Some(wr_bind_mw);
    qp.wr_rdma_read = Some(wr_rdma_read);
    qp.wr_rdma_write = Some(wr_rdma_write);
    qp.wr_rdma_write_imm = Some(wr_rdma_write_imm);
    qp.wr_atomic_cmp_swp = Some(wr_atomic_cmp_swp);
    qp.wr_atomic_fetch_add = Some(wr_atomic_fetch_add);
    if absent < 2 {
        qp.wr_atomic_write = Some(wr_atomic_write);
    }
    if absent < 1 {
        qp.wr_flush = Some(wr_flush);
    }
}

#[cfg(test)]
mod tests;
