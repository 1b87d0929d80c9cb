// SPDX-License-Identifier: GPL-2.0

//! Send work requests, and the state that the requester keeps for each.

use crate::key::Key;
use crate::mtu::{
    Mtu,
    MAX_MESSAGE, //
};
use crate::number::Srqn;
use crate::opcode::{
    Operation,
    Position, //
};
use crate::psn::Psn;
use crate::requester::Service;
use crate::status::WcStatus;
use crate::wire::pad;

/// What a send work request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SendOp {
    /// SEND.
    #[default]
    Send,
    /// SEND with immediate data.
    SendImm,
    /// SEND with invalidation of a remote key.
    SendInv,
    /// RDMA WRITE.
    Write,
    /// RDMA WRITE with immediate data.
    WriteImm,
    /// RDMA READ.
    Read,
    /// Atomic compare and swap of 8 bytes.
    CmpSwap,
    /// Atomic fetch and add of 8 bytes.
    FetchAdd,
    /// Atomic write of 8 bytes; the value is gathered as payload.
    AtomicWrite,
    /// FLUSH of remote memory.
    Flush,
    /// Work of the local host (bind, invalidate, register): takes its turn in
    /// the queue, puts nothing on the wire; [`super::RequesterEnv::local`] does
    /// it.
    Local,
}

impl SendOp {
    /// Whether the responder answers with more than an ACK: such requests count
    /// against `max_rd_atomic`, and a FENCE waits for them.
    #[inline]
    pub const fn has_response(self) -> bool {
        matches!(
            self,
            Self::Read | Self::CmpSwap | Self::FetchAdd | Self::AtomicWrite | Self::Flush
        )
    }

    /// Whether a READ, or one of the others with a response of one packet.
    #[inline]
    pub const fn is_atomic_like(self) -> bool {
        self.has_response() && !matches!(self, Self::Read)
    }

    /// Whether `service` knows it.
    #[inline]
    pub const fn is_valid_for(self, service: Service) -> bool {
        match service {
            Service::Rc | Service::XrcIni => true,
            Service::Uc => !self.has_response() && !matches!(self, Self::SendInv),
        }
    }

    /// The operation of the packet of a message at `position`.
    #[inline]
    pub(crate) const fn operation(self, position: Position) -> Operation {
        use Operation::*;
        use Position::*;
        match (self, position) {
            (Self::Send | Self::SendImm | Self::SendInv, First) => SendFirst,
            (Self::Send | Self::SendImm | Self::SendInv, Middle) => SendMiddle,
            (Self::Send, Last) => SendLast,
            (Self::SendImm, Last) => SendLastImm,
            (Self::SendInv, Last) => SendLastInv,
            (Self::Send, Only) => SendOnly,
            (Self::SendImm, Only) => SendOnlyImm,
            (Self::SendInv, Only) => SendOnlyInv,
            (Self::Write | Self::WriteImm, First) => WriteFirst,
            (Self::Write | Self::WriteImm, Middle) => WriteMiddle,
            (Self::Write, Last) => WriteLast,
            (Self::WriteImm, Last) => WriteLastImm,
            (Self::Write, Only) => WriteOnly,
            (Self::WriteImm, Only) => WriteOnlyImm,
            (Self::Read, _) => ReadRequest,
            (Self::CmpSwap, _) => CmpSwap,
            (Self::FetchAdd, _) => FetchAdd,
            (Self::AtomicWrite, _) => AtomicWrite,
            (Self::Flush, _) => Flush,
            // Never on the wire.
            (Self::Local, _) => SendOnly,
        }
    }
}

/// A send work request.
#[derive(Clone, Copy, Default, Debug)]
pub struct SendWr {
    /// Given back in the completion.
    pub wr_id: u64,
    /// The operation.
    pub op: SendOp,
    /// The caller wants a completion on success, too.
    pub signaled: bool,
    /// Solicited event at the responder.
    pub solicited: bool,
    /// Wait for all earlier READs and atomics first.
    pub fence: bool,
    /// Bytes of the message, at most 2^31. Ignored for atomics (always 8). For
    /// [`SendOp::Flush`] the bytes to flush.
    pub length: u32,
    /// Immediate data, the bits as the verbs carry them (big endian in memory).
    pub imm: u32,
    /// Remote key to invalidate ([`SendOp::SendInv`]).
    pub invalidate_rkey: Key,
    /// Remote virtual address.
    pub remote_addr: u64,
    /// Remote key.
    pub rkey: Key,
    /// Remote XRC SRQ number.
    pub srqn: Srqn,
    /// Atomics: value to compare with, or to add.
    pub compare_add: u64,
    /// Atomics: value to swap in.
    pub swap: u64,
    /// [`SendOp::Flush`]: placement type bits.
    pub flush_placement: u8,
    /// [`SendOp::Flush`]: selectivity level.
    pub flush_level: u8,
    /// Not looked at; for the caller's own use.
    pub cookie: u32,
}

impl SendWr {
    /// Bytes that travel: to the responder (SEND, WRITE, ATOMIC WRITE) or back
    /// (READ, atomics).
    #[inline]
    pub const fn data_len(&self) -> u32 {
        match self.op {
            SendOp::CmpSwap | SendOp::FetchAdd | SendOp::AtomicWrite => 8,
            SendOp::Flush | SendOp::Local => 0,
            _ => self.length,
        }
    }

    /// Sequence numbers that the message takes.
    #[inline]
    pub const fn packets(&self, mtu: Mtu) -> u32 {
        match self.op {
            SendOp::Local => 0,
            SendOp::CmpSwap | SendOp::FetchAdd | SendOp::AtomicWrite | SendOp::Flush => 1,
            _ => mtu.packets(self.length),
        }
    }

    /// What is wrong with the request on `service`, if anything.
    #[inline]
    pub(crate) const fn check(&self, service: Service, max_rd_atomic: u8) -> Result<(), WcStatus> {
        if !self.op.is_valid_for(service) {
            return Err(WcStatus::LocQpOpErr);
        }
        if self.op.has_response() && max_rd_atomic == 0 {
            return Err(WcStatus::LocQpOpErr);
        }
        if self.length > MAX_MESSAGE && !matches!(self.op, SendOp::Flush) {
            return Err(WcStatus::LocLenErr);
        }
        Ok(())
    }
}

/// A queue entry of the requester; the caller lends a slice of them.
#[derive(Clone, Copy, Default, Debug)]
pub struct Wqe {
    pub(crate) wr: SendWr,
    /// First sequence number, once assigned.
    pub(crate) psn: Psn,
    /// Sequence numbers that the message takes; 0 for local work.
    pub(crate) packets: u32,
    /// With a fence: how many requests with a response must be done before.
    pub(crate) fence_at: u32,
    /// Packets that began a train ([`Wqe::note_train`]).
    pub(crate) begins: u64,
    /// Local work: it ran.
    pub(crate) done: bool,
    /// The request cannot go on; completes so once it is the oldest.
    pub(crate) fault: Option<WcStatus>,
}

impl Wqe {
    /// Packets of a SEND or a WRITE behind the one with this index that can be in a train with it:
    /// not the Last packet if that has pad bytes or headers of its own.
    #[inline]
    pub(super) fn behind(&self, index: u32) -> u32 {
        let is_plain = matches!(self.wr.op, SendOp::Send | SendOp::Write);
        let end = match is_plain && pad(self.wr.length) == 0 {
            true => self.packets,
            false => self.packets.saturating_sub(1),
        };
        end.saturating_sub(index.saturating_add(1))
    }

    /// Whether the first packets of `next`, which is behind it in the queue, can be in a train with
    /// the last ones of this message: both are of several packets and of the same kind, and the
    /// last one is as long as the others.
    #[inline]
    pub(super) fn may_join(&self, next: &Wqe, mtu: Mtu) -> bool {
        let is_same = match self.wr.op {
            SendOp::Send => matches!(next.wr.op, SendOp::Send | SendOp::SendImm | SendOp::SendInv),
            SendOp::Write => matches!(next.wr.op, SendOp::Write | SendOp::WriteImm),
            _ => false,
        };
        is_same
            && self.packets > 1
            && self.wr.length & mtu.bytes().wrapping_sub(1) == 0
            && next.wr.length > mtu.bytes()
            && next.wr.length <= MAX_MESSAGE
            && next.wr.srqn == self.wr.srqn
            && !next.wr.fence
            && next.fault.is_none()
    }

    /// The work request.
    #[inline]
    pub const fn wr(&self) -> &SendWr {
        &self.wr
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_packets() {
        let wr = |op, length| SendWr {
            op,
            length,
            ..SendWr::default()
        };
        assert_eq!(wr(SendOp::Send, 0).packets(Mtu::M256), 1);
        assert_eq!(wr(SendOp::Read, 257).packets(Mtu::M256), 2);
        assert_eq!(wr(SendOp::FetchAdd, 9999).packets(Mtu::M256), 1);
        assert_eq!(wr(SendOp::FetchAdd, 9999).data_len(), 8);
        assert_eq!(wr(SendOp::Flush, 9999).data_len(), 0);
        assert_eq!(wr(SendOp::Local, 9999).packets(Mtu::M256), 0);
        assert_eq!(wr(SendOp::Write, MAX_MESSAGE).packets(Mtu::M256), 1 << 23);
    }

    #[test]
    fn bad_requests() {
        let check = |op, length, service, rd| {
            SendWr {
                op,
                length,
                ..SendWr::default()
            }
            .check(service, rd)
        };
        let bad_op = Err(WcStatus::LocQpOpErr);
        assert_eq!(check(SendOp::Read, 1, Service::Uc, 1), bad_op);
        assert_eq!(check(SendOp::SendInv, 1, Service::Uc, 1), bad_op);
        assert_eq!(check(SendOp::Write, 1, Service::Uc, 0), Ok(()));
        assert_eq!(check(SendOp::Read, 1, Service::Rc, 0), bad_op);
        assert_eq!(check(SendOp::Read, 1, Service::XrcIni, 1), Ok(()));
        assert_eq!(
            check(SendOp::Send, MAX_MESSAGE + 1, Service::Rc, 1),
            Err(WcStatus::LocLenErr)
        );
        assert_eq!(check(SendOp::Send, MAX_MESSAGE, Service::Rc, 1), Ok(()));
    }
}
