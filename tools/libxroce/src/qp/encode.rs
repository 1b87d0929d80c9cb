// SPDX-License-Identifier: GPL-2.0
//! From `struct ibv_send_wr` to a slot of the send ring.

use core::mem::size_of;

use super::{
    Kind,
    Limits,
    SendQueue, //
};
use crate::abi::{
    self,
    SendBind,
    SendBody,
    SendRdma,
    SendSlot,
    SendUd,
    Sge, //
};
use crate::ah::Ah;
use crate::ring::Producer;
use crate::sys::{
    Result,
    EINVAL,
    ENOMEM, //
};
use crate::verbs::{
    IbvSendWr,
    IbvSge, //
};

/// `enum ibv_send_flags` that mean something here; they have the slot's values.
const FLAGS: u32 =
    (abi::SEND_FENCE | abi::SEND_SIGNALED | abi::SEND_SOLICITED | abi::SEND_INLINE) as u32;

impl Kind {
    /// Whether requests with this opcode can be posted.
    pub(super) fn allows(self, opcode: u32) -> bool {
        opcode < u32::BITS && self.opcodes() & 1 << opcode != 0
    }

    /// Opcodes, as bits, that the module takes from a QP of this type: it
    /// would complete any other with an error, here it is refused at once.
    const fn opcodes(self) -> u32 {
        const SENDS: u32 = 1 << abi::WR_SEND | 1 << abi::WR_SEND_IMM;
        const CONNECTED: u32 = SENDS
            | 1 << abi::WR_RDMA_WRITE
            | 1 << abi::WR_RDMA_WRITE_IMM
            | 1 << abi::WR_LOCAL_INV
            | 1 << abi::WR_BIND_MW;
        const RELIABLE: u32 = CONNECTED
            | 1 << abi::WR_SEND_INV
            | 1 << abi::WR_RDMA_READ
            | 1 << abi::WR_ATOMIC_CMP_SWAP
            | 1 << abi::WR_ATOMIC_FETCH_ADD
            | 1 << abi::WR_FLUSH
            | 1 << abi::WR_ATOMIC_WRITE;
        match self {
            Self::Rc | Self::XrcSend => RELIABLE,
            Self::Uc => CONNECTED,
            Self::Ud => SENDS,
            Self::XrcRecv => 0,
        }
    }
}

/// Whether a request with this opcode carries data of ours outwards, so that
/// the data may be inline.
pub(super) fn may_inline(opcode: u8) -> bool {
    matches!(
        opcode,
        abi::WR_RDMA_WRITE
            | abi::WR_RDMA_WRITE_IMM
            | abi::WR_SEND
            | abi::WR_SEND_IMM
            | abi::WR_SEND_INV
            | abi::WR_ATOMIC_WRITE
    )
}

/// The part of the slot that depends on the opcode.
///
/// # Safety
///
/// The request must be valid: objects that its opcode refers to are alive.
unsafe fn body(kind: Kind, wr: &IbvSendWr) -> Result<SendBody> {
    if kind == Kind::Ud {
        // SAFETY: requests of a UD QP carry an address.
        let ud = unsafe { wr.wr.ud };
        if ud.ah.is_null() {
            return Err(EINVAL);
        }
        return Ok(SendBody {
            ud: SendUd {
                // SAFETY: a live handle of ours.
                ah: unsafe { Ah::number(ud.ah) },
                remote_qpn: ud.remote_qpn,
                remote_qkey: ud.remote_qkey,
                ..SendUd::default()
            },
        });
    }
    let srqn = match kind {
        Kind::XrcSend if wr.remote_srqn > abi::MAX_SRQN => return Err(EINVAL),
        Kind::XrcSend => wr.remote_srqn,
        _ => 0,
    };
    let rdma = match wr.opcode as u8 {
        abi::WR_ATOMIC_CMP_SWAP | abi::WR_ATOMIC_FETCH_ADD => {
            // SAFETY: the member that belongs to the opcode.
            let a = unsafe { wr.wr.atomic };
            SendRdma {
                remote_addr: a.remote_addr,
                rkey: a.rkey,
                srqn,
                compare_add: a.compare_add,
                swap: a.swap,
            }
        }
        abi::WR_RDMA_WRITE | abi::WR_RDMA_WRITE_IMM | abi::WR_RDMA_READ | abi::WR_ATOMIC_WRITE => {
            // SAFETY: the member that belongs to the opcode.
            let r = unsafe { wr.wr.rdma };
            SendRdma {
                remote_addr: r.remote_addr,
                rkey: r.rkey,
                srqn,
                ..SendRdma::default()
            }
        }
        // SAFETY: the member that belongs to the opcode, as the caller says.
        abi::WR_BIND_MW => return unsafe { bind(wr) },
        // A flush has parameters that only ibv_wr_flush can give.
        abi::WR_FLUSH => return Err(EINVAL),
        _ => SendRdma {
            srqn,
            ..SendRdma::default()
        },
    };
    Ok(SendBody { rdma })
}

/// # Safety
///
/// The request must be a valid bind.
unsafe fn bind(wr: &IbvSendWr) -> Result<SendBody> {
    // SAFETY: as the caller says.
    let b = unsafe { wr.tail.bind_mw };
    if b.mw.is_null() || (b.bind_info.mr.is_null() && b.bind_info.length != 0) {
        return Err(EINVAL);
    }
    let mr_lkey = match b.bind_info.mr.is_null() {
        true => 0,
        // SAFETY: a live region.
        false => unsafe { (*b.bind_info.mr).lkey },
    };
    Ok(SendBody {
        bind: SendBind {
            addr: b.bind_info.addr,
            length: b.bind_info.length,
            mr_lkey,
            // SAFETY: a live window.
            mw_rkey: unsafe { (*b.mw).rkey },
            access: b.bind_info.mw_access_flags,
            new_rkey: b.rkey,
        },
    })
}

/// Copies the buffers of a list into a slot; the number of bytes.
///
/// # Safety
///
/// The list and the buffers must be valid, and the slot must have room for
/// `max` bytes.
unsafe fn copy_inline(ring: &mut Producer, slot: u32, list: &[IbvSge], max: u32) -> Result<u16> {
    let mut done = 0usize;
    for sge in list {
        let len = sge.length as usize;
        if len > max as usize - done {
            return Err(EINVAL);
        }
        // SAFETY: a buffer of the caller's; it fits (checked above).
        unsafe { ring.put_bytes(slot, abi::SEND_SLOT_HDR + done, sge.addr as *const u8, len) };
        done += len;
    }
    u16::try_from(done).map_err(|_| EINVAL)
}

impl SendQueue {
    pub(super) fn new(ring: Producer, limits: Limits) -> Self {
        Self {
            ring,
            limits,
            error: None,
            current: 0,
            opcode: 0,
            flags: 0,
        }
    }

    /// Fills the next slot from a request.
    ///
    /// # Safety
    ///
    /// The request must be valid: its list, inline buffers and objects.
    pub(super) unsafe fn fill(&mut self, wr: &IbvSendWr) -> Result {
        let Limits {
            kind,
            max_sge,
            max_inline,
            signal_all,
        } = self.limits;
        if !kind.allows(wr.opcode) || wr.send_flags & !FLAGS != 0 {
            return Err(EINVAL);
        }
        let num_sge = u32::try_from(wr.num_sge).map_err(|_| EINVAL)?;
        if num_sge > max_sge && wr.send_flags as u8 & abi::SEND_INLINE == 0 {
            return Err(EINVAL);
        }
        let opcode = wr.opcode as u8;
        let mut flags = wr.send_flags as u8;
        if flags & abi::SEND_INLINE != 0 && !may_inline(opcode) {
            return Err(EINVAL);
        }
        if signal_all {
            flags |= abi::SEND_SIGNALED;
        }
        // SAFETY: as the caller says.
        let body = unsafe { body(kind, wr) }?;
        let slot = self.ring.free_slot().ok_or(ENOMEM)?;
        let count = if num_sge == 0 {
            0
        } else if flags & abi::SEND_INLINE != 0 {
            // SAFETY: the caller's list and buffers; slots were mapped for
            // `max_inline` bytes.
            unsafe {
                let list = core::slice::from_raw_parts(wr.sg_list, num_sge as usize);
                copy_inline(&mut self.ring, slot, list, max_inline)?
            }
        } else {
            // SAFETY: the caller's list, whose elements have the layout of
            // `Sge`; slots were mapped for `max_sge` of them.
            unsafe {
                self.ring.put_bytes(
                    slot,
                    abi::SEND_SLOT_HDR,
                    wr.sg_list.cast(),
                    num_sge as usize * size_of::<Sge>(),
                )
            };
            num_sge as u16
        };
        self.ring.put(
            slot,
            0,
            &SendSlot {
                wr_id: wr.wr_id,
                opcode,
                flags,
                count,
                imm: wr.imm,
                body,
            },
        );
        self.ring.advance();
        Ok(())
    }

    /// Shows the kernel what was filled. True when it sleeps and must be told.
    pub(super) fn publish(&mut self) -> bool {
        self.ring
            .publish()
            .is_some_and(|f| f & abi::RING_AWAKE == 0)
    }

    /// Whether the device is gone.
    pub(super) fn dead(&self) -> bool {
        self.ring.ring().flags() & abi::RING_DEAD != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::Ring;
    use crate::verbs::{
        WrAddress,
        WrRdma,
        WrTail,
        WrTso, //
    };

    fn queue(kind: Kind) -> SendQueue {
        let limits = Limits {
            kind,
            max_sge: 2,
            max_inline: 80,
            signal_all: false,
        };
        SendQueue::new(Producer::new(Ring::anonymous(2, 128)), limits)
    }

    fn request(opcode: u8, list: &mut [IbvSge]) -> IbvSendWr {
        IbvSendWr {
            wr_id: 77,
            next: core::ptr::null_mut(),
            sg_list: list.as_mut_ptr(),
            num_sge: list.len() as i32,
            opcode: opcode.into(),
            send_flags: 0,
            imm: 0x0102_0304,
            wr: WrAddress {
                rdma: WrRdma {
                    remote_addr: 0x1000,
                    rkey: 5,
                },
            },
            remote_srqn: 9,
            tail: WrTail {
                tso: WrTso {
                    hdr: core::ptr::null_mut(),
                    hdr_sz: 0,
                    mss: 0,
                },
            },
        }
    }

    fn sge(len: u32) -> IbvSge {
        static DATA: [u8; 256] = [7; 256];
        IbvSge {
            addr: DATA.as_ptr() as u64,
            length: len,
            lkey: 1,
        }
    }

    /// Posts and gives the result.
    fn post(q: &mut SendQueue, wr: &IbvSendWr) -> Result {
        // SAFETY: the tests' requests are valid.
        unsafe { q.fill(wr) }
    }

    #[test]
    fn limits_are_kept() {
        let q = &mut queue(Kind::Rc);
        let three = &mut [sge(1), sge(1), sge(1)];
        assert_eq!(post(q, &request(abi::WR_SEND, three)), Err(EINVAL));
        let mut wr = request(abi::WR_SEND, three);
        wr.send_flags = abi::SEND_INLINE.into();
        assert_eq!(post(q, &wr), Ok(()), "inline lists may be longer");
        let long = &mut [sge(80), sge(1)];
        let mut wr = request(abi::WR_SEND, long);
        wr.send_flags = abi::SEND_INLINE.into();
        assert_eq!(post(q, &wr), Err(EINVAL));
        let huge = &mut [sge(u32::MAX)];
        wr = request(abi::WR_SEND, huge);
        wr.send_flags = abi::SEND_INLINE.into();
        assert_eq!(post(q, &wr), Err(EINVAL));
        wr = request(abi::WR_RDMA_READ, &mut []);
        wr.send_flags = abi::SEND_INLINE.into();
        assert_eq!(post(q, &wr), Err(EINVAL), "nothing to read into");
        wr = request(abi::WR_SEND, &mut []);
        wr.num_sge = -1;
        assert_eq!(post(q, &wr), Err(EINVAL));
        wr = request(abi::WR_SEND, &mut []);
        wr.send_flags = 1 << 4;
        assert_eq!(post(q, &wr), Err(EINVAL), "no checksum offload");
        assert_eq!(post(q, &request(abi::WR_SEND, &mut [])), Ok(()));
        assert_eq!(post(q, &request(abi::WR_SEND, &mut [])), Err(ENOMEM));
    }

    #[test]
    fn opcodes_by_kind() {
        let can = |kind, op| post(&mut queue(kind), &request(op, &mut [])).is_ok();
        assert!(can(Kind::Rc, abi::WR_RDMA_READ));
        assert!(can(Kind::XrcSend, abi::WR_ATOMIC_CMP_SWAP));
        assert!(!can(Kind::Uc, abi::WR_RDMA_READ));
        assert!(!can(Kind::Ud, abi::WR_RDMA_WRITE));
        assert!(!can(Kind::XrcRecv, abi::WR_SEND));
        assert!(!can(Kind::Rc, 10), "TSO");
        assert!(!can(Kind::Rc, 200));
        assert!(!can(Kind::Rc, abi::WR_FLUSH));
    }

    #[test]
    fn xrc_carries_the_srq_number() {
        let q = &mut queue(Kind::XrcSend);
        let mut wr = request(abi::WR_SEND, &mut []);
        wr.remote_srqn = abi::MAX_SRQN + 1;
        assert_eq!(post(q, &wr), Err(EINVAL));
        wr.remote_srqn = abi::MAX_SRQN;
        assert_eq!(post(q, &wr), Ok(()));
        // SAFETY: the member that an XRC request has.
        let body = unsafe { body(Kind::XrcSend, &wr).map(|b| b.rdma.srqn) };
        assert_eq!(body, Ok(abi::MAX_SRQN));
        // SAFETY: as above.
        let body = unsafe { super::body(Kind::Rc, &wr).map(|b| b.rdma.srqn) };
        assert_eq!(body, Ok(0));
    }
}
