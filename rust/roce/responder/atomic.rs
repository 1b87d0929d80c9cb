// SPDX-License-Identifier: GPL-2.0

//! Operations on 8 bytes, and FLUSH: executed once, answered as often as they are repeated.

use core::ops::DerefMut;

use super::nak::Refused;
use super::{
    AtomicOp,
    Flush,
    Placement,
    Resource,
    Responder,
    ResponderEnv, //
};
use crate::key::Key;
use crate::number::Srqn;
use crate::opcode::{
    Family,
    Operation, //
};
use crate::wire::{
    Feth,
    Packet, //
};
use crate::xrc::srqn_of;

/// Placement type bit of FLUSH: be seen by everybody.
const PLACEMENT_GLOBAL: u8 = 1 << 0;
/// Placement type bit of FLUSH: reach persistence.
const PLACEMENT_PERSISTENT: u8 = 1 << 1;
/// Selectivity level of FLUSH: the whole memory region.
const LEVEL_REGION: u8 = 1;

/// What to execute.
#[derive(Clone, Copy)]
pub(super) enum Request {
    Atomic { rkey: Key, va: u64, op: AtomicOp },
    Flush(Flush),
}

impl Request {
    /// A FLUSH of `len` bytes at `va`. One that names no placement is for
    /// global visibility.
    pub(super) fn flush(rkey: Key, va: u64, len: u32, feth: Feth) -> Self {
        let persistent = feth.placement & PLACEMENT_PERSISTENT != 0;
        Self::Flush(Flush {
            rkey,
            va,
            len,
            placement: Placement {
                global: feth.placement & PLACEMENT_GLOBAL != 0 || !persistent,
                persistent,
            },
            whole_region: feth.level == LEVEL_REGION,
        })
    }
}

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    pub(super) fn execute_atomic<E: ResponderEnv>(
        &mut self,
        packet: &Packet<'_>,
        env: &mut E,
    ) -> Result<(), Refused> {
        let request = Self::atomic_request(packet).ok_or(Refused::INVALID)?;
        self.check_atomic(&request)?;
        self.check_resource().map_err(|_| Refused::INVALID)?;
        let srqn = srqn_of(packet);
        self.check_srqn(srqn, env)?;
        let original = self.do_atomic(srqn, &request, env)?;
        self.count_message();
        let psn = self.epsn;
        self.advance(1);
        let mut resource = Resource {
            operation: packet.opcode.operation,
            psn,
            packets: 1,
            msn: self.msn,
            srqn,
            original,
            ..Resource::default()
        };
        resource.run_all();
        self.push_resource(resource);
        Ok(())
    }

    /// The request in `packet`; `None` when it is malformed.
    fn atomic_request(packet: &Packet<'_>) -> Option<Request> {
        if packet.opcode.family() == Family::Atomic {
            let h = packet.atomiceth.filter(|_| packet.payload.is_empty())?;
            let op = if packet.opcode.operation == Operation::CmpSwap {
                AtomicOp::CmpSwap {
                    compare: h.compare,
                    swap: h.swap_add,
                }
            } else {
                AtomicOp::FetchAdd { add: h.swap_add }
            };
            return Some(Request::Atomic {
                rkey: h.rkey,
                va: h.va,
                op,
            });
        }
        let reth = packet.reth?;
        if let Some(feth) = packet.feth {
            let request = Request::flush(reth.rkey, reth.va, reth.len, feth);
            return packet.payload.is_empty().then_some(request);
        }
        let bytes: &[u8; 8] = packet.payload.try_into().ok()?;
        (reth.len == 8).then_some(Request::Atomic {
            rkey: reth.rkey,
            va: reth.va,
            op: AtomicOp::Write {
                value: u64::from_ne_bytes(*bytes),
            },
        })
    }

    /// The rights of the QP, and the alignment.
    pub(super) fn check_atomic(&self, request: &Request) -> Result<(), Refused> {
        let access = &self.config.access;
        let is_permitted = match request {
            Request::Atomic { va, .. } if va & 7 != 0 => false,
            Request::Atomic {
                op: AtomicOp::Write { .. },
                ..
            } => access.remote_write,
            Request::Atomic { .. } => access.remote_atomic,
            Request::Flush(Flush { placement, .. }) => {
                (access.flush_global || !placement.global)
                    && (access.flush_persistent || !placement.persistent)
            }
        };
        if is_permitted {
            Ok(())
        } else {
            Err(Refused::INVALID)
        }
    }

    /// Executes; returns what the memory held.
    pub(super) fn do_atomic<E: ResponderEnv>(
        &mut self,
        srqn: Option<Srqn>,
        request: &Request,
        env: &mut E,
    ) -> Result<u64, Refused> {
        match *request {
            Request::Atomic { rkey, va, op } => env.atomic(srqn, rkey, va, op),
            Request::Flush(ref flush) => env.flush(srqn, flush).map(|()| 0),
        }
        .map_err(|_| Refused::ACCESS)
    }

    /// The result of an atomic need not wait when nothing else does.
    #[inline]
    pub(super) fn answer_atomic_now<E: ResponderEnv>(&mut self, env: &mut E) {
        if self.pending != 1 {
            return;
        }
        let Some(index) = self.oldest_pending() else {
            return;
        };
        let Some(resource) = self.resources.get(index as usize) else {
            return;
        };
        if resource.operation == Operation::ReadRequest {
            return;
        }
        if let Some(response) = self.poll_response(0) {
            env.reply(&response.header);
        }
    }
}
