// SPDX-License-Identifier: GPL-2.0

//! Operations on a matching list: ibv_post_srq_ops(3).

use super::{
    Body,
    Inner,
    TagSge, //
};
use crate::limits;
use crate::prelude::*;
use crate::qp::ring::CorruptRing;
use crate::wr::{
    self,
    u16_at,
    u32_at,
    u64_at,
    u8_at, //
};
use abi::tm_op_slot as at;
use roce::tm::{
    list::index_of,
    AddError, //
};

/// Operations that are executed before somebody else gets the lock.
pub(super) const BURST: u32 = 64;

/// Why an operation failed: one of `enum xroce_tm_error`.
#[derive(Clone, Copy)]
struct Failed(u32);

impl From<AddError> for Failed {
    fn from(e: AddError) -> Self {
        Failed(match e {
            AddError::BadHandle | AddError::InUse => abi::XROCE_TM_ERR_HANDLE,
            AddError::TooManyMasks => abi::XROCE_TM_ERR_MASKS,
        })
    }
}

/// A slot, copied from the ring.
type Slot = [u8; abi::TM_OP_SIZE];

impl Inner {
    /// How many operations stand in the ring. Under the lock.
    pub(super) fn waiting(&mut self) -> Result<u32, CorruptRing> {
        if self.corrupt {
            return Err(CorruptRing);
        }
        let waiting = self.ring.available();
        self.corrupt = waiting.is_err();
        waiting
    }

    /// Executes operations, `max` at most. True when there may be more. Under the lock.
    pub(super) fn run(&mut self, max: u32, cq: &WireCq) -> Result<bool, CorruptRing> {
        if self.corrupt {
            return Err(CorruptRing);
        }
        let result = self.run_until(max, cq);
        self.corrupt = result.is_err();
        self.ring.publish(self.ring.next());
        result
    }

    fn run_until(&mut self, max: u32, cq: &WireCq) -> Result<bool, CorruptRing> {
        for _ in 0..max {
            if self.ring.available()? == 0 {
                return Ok(false);
            }
            let mut slot: Slot = [0; abi::TM_OP_SIZE];
            self.ring.copy(0, &mut slot)?;
            self.ring.advance();
            self.execute(&slot, cq);
        }
        Ok(true)
    }

    /// Notes that a receive direction runs, which looks at the ring before each message and once
    /// more before it rests.
    pub(super) fn wake(&mut self) {
        if self.runners == 0 || self.owed.take().is_some() {
            self.ring.set_awake();
        }
        self.runners = self.runners.saturating_add(1);
    }

    /// Executes one operation. A failure always completes.
    fn execute(&mut self, slot: &Slot, cq: &WireCq) {
        let flags = u8_at(slot, at::FLAGS);
        let (opcode, result) = match u32::from(u8_at(slot, at::OPCODE)) {
            _ if flags & !(abi::TM_SIGNALED | abi::TM_COUNT) != 0 => {
                (wr::WC_TM_SYNC, Err(Failed(abi::XROCE_TM_ERR_OPCODE)))
            }
            abi::XROCE_TM_ADD => (wr::WC_TM_ADD, self.add(slot, flags)),
            abi::XROCE_TM_DEL => (wr::WC_TM_DEL, self.delete(slot, flags)),
            abi::XROCE_TM_SYNC => (wr::WC_TM_SYNC, self.sync(slot)),
            _ => (wr::WC_TM_SYNC, Err(Failed(abi::XROCE_TM_ERR_OPCODE))),
        };
        if result.is_ok() && flags & abi::TM_SIGNALED == 0 {
            return;
        }
        let mut completion = Completion {
            wr_id: u64_at(slot, at::WR_ID),
            opcode,
            ..Completion::default()
        };
        if let Err(Failed(why)) = result {
            completion.status = WcStatus::TmErr;
            completion.vendor_err = why;
        }
        if !self.matcher.is_in_step() {
            completion.wc_flags = wr::WC_TM_SYNC_REQ;
        }
        // The next message finds out: the list itself has no queue pair.
        let _ = cq.post_from(&completion, None);
    }

    /// Takes over the count of messages that software has handled, if there is one.
    fn count(&mut self, slot: &Slot, flags: u8) -> Result<(), Failed> {
        if flags & abi::TM_COUNT != 0 {
            return self.sync(slot);
        }
        Ok(())
    }

    fn sync(&mut self, slot: &Slot) -> Result<(), Failed> {
        self.matcher
            .sync(u32_at(slot, at::UNEXPECTED_CNT))
            .map_err(|_| Failed(abi::XROCE_TM_ERR_COUNT))
    }

    fn add(&mut self, slot: &Slot, flags: u8) -> Result<(), Failed> {
        let handle = u32_at(slot, at::HANDLE);
        let result = self.count(slot, flags).and_then(|()| self.insert(slot));
        if result.is_err() && self.matcher.is_free(handle) {
            self.freed.push(handle);
        }
        result
    }

    fn insert(&mut self, slot: &Slot) -> Result<(), Failed> {
        let handle = u32_at(slot, at::HANDLE);
        let num_sge = u16_at(slot, at::NUM_SGE);
        if u32::from(num_sge) > limits::MAX_TM_SGE {
            return Err(Failed(abi::XROCE_TM_ERR_SGE));
        }
        self.matcher
            .add(handle, u64_at(slot, at::TAG), u64_at(slot, at::MASK))?;
        let mut body = Body {
            recv_wr_id: u64_at(slot, at::RECV_WR_ID),
            num_sge: u32::from(num_sge),
            ..Body::default()
        };
        let mut from = at::SGE;
        for sge in &mut body.sges {
            *sge = TagSge {
                addr: u64_at(slot, from.wrapping_add(abi::sge::ADDR)),
                len: u32_at(slot, from.wrapping_add(abi::sge::LENGTH)),
                lkey: Key::new(u32_at(slot, from.wrapping_add(abi::sge::LKEY))),
            };
            from = from.wrapping_add(abi::SGE_SIZE);
        }
        if let Some(to) = self.bodies.get_mut(index_of(handle) as usize) {
            *to = body;
        }
        Ok(())
    }

    /// The tag goes first, then the count: with that, it might match once more.
    fn delete(&mut self, slot: &Slot, flags: u8) -> Result<(), Failed> {
        let count = u32_at(slot, at::UNEXPECTED_CNT);
        if flags & abi::TM_COUNT != 0 && !self.matcher.has_been(count) {
            return Err(Failed(abi::XROCE_TM_ERR_COUNT));
        }
        let handle = u32_at(slot, at::HANDLE);
        let deleted = self.matcher.delete(handle);
        self.count(slot, flags)?;
        deleted.ok_or(Failed(abi::XROCE_TM_ERR_HANDLE))?;
        self.freed.push(handle);
        Ok(())
    }
}
