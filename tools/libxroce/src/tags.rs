// SPDX-License-Identifier: GPL-2.0
//! Operations on the matching list of an SRQ: ibv_post_srq_ops(3).
//!
//! Operations are written to a ring, which the kernel reads before it matches the next message. So
//! most operations need no system call. A system call wakes the kernel only if a caller waits for a
//! completion or has filled much of the ring.
//!
//! This library allocates the handles. Through another ring, the kernel returns handles that are
//! free again.

mod masks;

use core::mem::size_of;

use self::masks::Masks;
use crate::abi::{
    self,
    CreateTmSrqResp,
    Sge,
    TmFreed,
    TmOpSlot, //
};
use crate::doorbell;
use crate::ring::{
    Consumer,
    Producer,
    Ring, //
};
use crate::sys::{
    Result,
    EINVAL,
    EIO,
    ENOMEM,
    EPROTO, //
};
use crate::verbs::*;

/// The bits of a handle that name an entry of the list.
const INDEX_MASK: u32 = (1 << abi::TM_INDEX_BITS) - 1;

/// Where the doorbell of a queue is.
#[derive(Clone, Copy)]
pub struct Bell {
    fd: i32,
    srq: u32,
}

impl Bell {
    /// Has the kernel execute what is in the ring.
    ///
    /// # Errors
    ///
    /// Those of [`doorbell::ring`].
    pub fn ring(self) -> Result {
        doorbell::ring(self.fd, doorbell::Bell::Srq, self.srq)
    }
}

/// The rings of a matching list.
pub struct TagQueue {
    ops: Producer,
    freed: Consumer,
    /// Handles that no tag has.
    free: Vec<u32>,
    masks: Masks,
    max_num_tags: u32,
    max_sge: u32,
    bell: Bell,
}

impl TagQueue {
    /// Maps what the kernel made.
    ///
    /// # Errors
    ///
    /// EPROTO when a ring is missing or makes no sense; the error of `mmap()`.
    pub fn map(fd: i32, srq: u32, max_num_tags: u32, resp: &CreateTmSrqResp) -> Result<Self> {
        let slot = abi::TM_OP_SLOT_HDR + resp.max_sge as usize * size_of::<Sge>();
        let ops = Ring::map(fd, &resp.ops, slot)?.ok_or(EPROTO)?;
        let freed = Ring::map(fd, &resp.freed, size_of::<TmFreed>())?.ok_or(EPROTO)?;
        let bell = Bell { fd, srq };
        let masks = Masks::new(resp.max_masks, max_num_tags);
        Ok(Self::new(
            ops,
            freed,
            masks,
            max_num_tags,
            resp.max_sge,
            bell,
        ))
    }

    fn new(
        ops: Ring,
        freed: Ring,
        masks: Masks,
        max_num_tags: u32,
        max_sge: u32,
        bell: Bell,
    ) -> Self {
        Self {
            ops: Producer::new(ops),
            freed: Consumer::new(freed),
            free: (0..max_num_tags.min(INDEX_MASK)).rev().collect(),
            masks,
            max_num_tags,
            max_sge,
            bell,
        }
    }

    /// Distinct masks that its tags may have at a time.
    pub fn max_masks(&self) -> u32 {
        self.masks.max()
    }

    /// Takes back the handles that are free again. The next tag at the same entry
    /// gets another handle, so that an old one names nothing.
    fn reclaim(&mut self) {
        while let Some(TmFreed { handle, .. }) = self.freed.take() {
            if handle & INDEX_MASK < self.max_num_tags
                && self.free.len() < self.max_num_tags as usize
            {
                self.masks.remove(handle & INDEX_MASK);
                self.free.push(handle.wrapping_add(INDEX_MASK + 1));
            }
        }
        self.freed.publish();
    }

    /// Has the kernel execute what was posted so far, if there is anything.
    fn settle(&mut self) {
        self.ops.publish();
        if self.ops.unconsumed() != 0 {
            // If it fails, what was waited for does not happen.
            let _ = self.bell.ring();
        }
    }

    /// A handle for a new tag; ENOMEM when the list is full.
    fn handle(&mut self) -> Result<u32> {
        if self.free.is_empty() {
            self.reclaim();
        }
        if self.free.is_empty() {
            self.settle();
            self.reclaim();
        }
        self.free.pop().ok_or(ENOMEM)
    }

    /// A place for the mask of a new tag; ENOMEM when too many others are in use.
    fn mask_place(&mut self, mask: u64) -> Result<usize> {
        if self.masks.place(mask).is_none() {
            self.reclaim();
        }
        if self.masks.place(mask).is_none() {
            self.settle();
            self.reclaim();
        }
        self.masks.place(mask).ok_or(ENOMEM)
    }

    /// Writes one operation.
    ///
    /// # Safety
    ///
    /// The operation's list must be valid.
    unsafe fn fill(&mut self, wr: &mut IbvOpsWr) -> Result {
        if wr.flags & !(IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC) != 0 {
            return Err(EINVAL);
        }
        let mut num_sge = 0;
        let opcode = match wr.opcode {
            IBV_WR_TAG_ADD => {
                num_sge = u32::try_from(wr.num_sge).map_err(|_| EINVAL)?;
                if num_sge > self.max_sge {
                    return Err(EINVAL);
                }
                abi::TM_ADD
            }
            IBV_WR_TAG_DEL if wr.handle & INDEX_MASK < self.max_num_tags => abi::TM_DEL,
            IBV_WR_TAG_SYNC => abi::TM_SYNC,
            _ => return Err(EINVAL),
        };
        let mut slot = self.ops.free_slot();
        if slot.is_none() {
            self.settle();
            slot = self.ops.free_slot();
        }
        let slot = slot.ok_or(ENOMEM)?;
        if opcode == abi::TM_ADD {
            let place = self.mask_place(wr.mask)?;
            wr.handle = self.handle()?;
            self.masks.add(wr.handle & INDEX_MASK, place, wr.mask);
        }
        let mut flags = 0;
        if wr.flags & IBV_OPS_SIGNALED != 0 {
            flags |= abi::TM_SIGNALED;
        }
        if wr.flags & IBV_OPS_TM_SYNC != 0 {
            flags |= abi::TM_COUNT;
        }
        let header = TmOpSlot {
            wr_id: wr.wr_id,
            opcode,
            flags,
            num_sge: num_sge as u16,
            unexpected_cnt: wr.unexpected_cnt,
            handle: wr.handle,
            reserved: 0,
            recv_wr_id: wr.recv_wr_id,
            tag: wr.tag,
            mask: wr.mask,
        };
        self.ops.put(slot, 0, &header);
        // SAFETY: the list is valid for `num_sge` elements, which have the
        // layout of `Sge`; the slot has room for `max_sge` of them.
        unsafe {
            self.ops.put_bytes(
                slot,
                abi::TM_OP_SLOT_HDR,
                wr.sg_list.cast(),
                num_sge as usize * size_of::<Sge>(),
            )
        };
        self.ops.advance();
        Ok(())
    }

    /// Posts a list. The doorbell, when it must be rung. On an error, `bad` names
    /// the operation that failed and those before it are posted.
    ///
    /// # Safety
    ///
    /// The list must be valid, `bad` NULL or valid.
    pub unsafe fn post(
        &mut self,
        mut wr: *mut IbvOpsWr,
        bad: *mut *mut IbvOpsWr,
    ) -> (Option<Bell>, Result) {
        let mut result = Ok(());
        let mut signaled = false;
        if self.ops.ring().flags() & abi::RING_DEAD != 0 {
            result = Err(EIO);
        }
        while result.is_ok() && !wr.is_null() {
            // SAFETY: an element of the caller's list, in which ibv_post_srq_ops
            // returns the handle.
            let one = unsafe { &mut *wr };
            // SAFETY: the element's own list.
            result = unsafe { self.fill(one) };
            if result.is_ok() {
                signaled |= one.flags & IBV_OPS_SIGNALED != 0;
                wr = one.next;
            }
        }
        if result.is_err() && !bad.is_null() {
            // SAFETY: the caller's place for it.
            unsafe { *bad = wr };
        }
        let Some(flags) = self.ops.publish() else {
            // Perhaps some were published above, to make room for others.
            let wait = signaled && self.ops.unconsumed() != 0;
            return (wait.then_some(self.bell), result);
        };
        let full = self.ops.unconsumed() > self.ops.entries() / 2;
        let ring = (signaled || full) && flags & abi::RING_AWAKE == 0;
        (ring.then_some(self.bell), result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(tags: u32, ops: u32) -> TagQueue {
        let bell = Bell { fd: -1, srq: 0 };
        TagQueue::new(
            Ring::anonymous(ops, 128),
            Ring::anonymous(tags.next_power_of_two(), 8),
            Masks::new(2, tags),
            tags,
            4,
            bell,
        )
    }

    fn wr(opcode: u32, flags: u32) -> IbvOpsWr {
        // SAFETY: integers and raw pointers.
        let mut wr: IbvOpsWr = unsafe { core::mem::zeroed() };
        wr.opcode = opcode;
        wr.flags = flags;
        wr
    }

    fn post(q: &mut TagQueue, wr: &mut IbvOpsWr) -> (bool, Result, bool) {
        let mut bad = core::ptr::null_mut();
        // SAFETY: a list of one or more elements.
        let (bell, result) = unsafe { q.post(wr, &mut bad) };
        (bell.is_some(), result, !bad.is_null())
    }

    #[test]
    fn only_who_waits_rings() {
        let mut q = queue(8, 8);
        assert_eq!(post(&mut q, &mut wr(0, 0)), (false, Ok(()), false));
        assert_eq!(post(&mut q, &mut wr(0, 2)), (false, Ok(()), false));
        assert_eq!(post(&mut q, &mut wr(0, 1)), (true, Ok(()), false));
        assert_eq!(post(&mut q, &mut wr(2, 0)), (false, Ok(()), false));
        // More than half of the ring.
        assert_eq!(post(&mut q, &mut wr(2, 0)), (true, Ok(()), false));
    }

    #[test]
    fn nobody_rings_while_the_kernel_is_awake() {
        let mut q = queue(8, 8);
        q.ops.ring().set_flags(abi::RING_AWAKE);
        // Neither who waits nor who has filled the ring.
        for _ in 0..6 {
            assert_eq!(post(&mut q, &mut wr(2, 1)), (false, Ok(()), false));
        }
        assert_eq!(post(&mut q, &mut wr(2, 0)), (false, Ok(()), false));
        q.ops.ring().set_flags(0);
        assert_eq!(post(&mut q, &mut wr(2, 1)), (true, Ok(()), false));
    }

    #[test]
    fn handles_differ_until_the_list_is_full() {
        let mut q = queue(3, 8);
        let mut handles = Vec::new();
        for _ in 0..3 {
            let mut w = wr(0, 0);
            assert_eq!(post(&mut q, &mut w).1, Ok(()));
            handles.push(w.handle);
        }
        assert_eq!(handles, [0, 1, 2]);
        assert_eq!(post(&mut q, &mut wr(0, 0)), (false, Err(ENOMEM), true));
    }

    #[test]
    fn masks_may_be_few() {
        let mut q = queue(5, 16);
        let mut with = |mask| {
            let mut add = wr(0, 0);
            add.mask = mask;
            let result = post(&mut q, &mut add).1;
            (result, add.handle)
        };
        assert_eq!(with(1), (Ok(()), 0));
        assert_eq!(with(2), (Ok(()), 1));
        assert_eq!(with(2), (Ok(()), 2));
        assert_eq!(with(3).0, Err(ENOMEM));
        assert_eq!(with(1), (Ok(()), 3));
        // Both tags with a mask must be gone.
        q.masks.remove(1);
        assert_eq!(q.masks.place(3), None);
        q.masks.remove(2);
        assert_eq!(q.masks.place(3), Some(1));
    }

    /// Modules before the field had a meaning left it empty, and took sixteen.
    #[test]
    fn a_kernel_that_names_no_limit_takes_sixteen_masks() {
        assert_eq!(Masks::new(0, 4).max(), 16);
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let mut q = queue(3, 8);
        let mut list = [IbvSge {
            addr: 0,
            length: 0,
            lkey: 0,
        }; 5];
        let mut many = wr(0, 0);
        many.sg_list = list.as_mut_ptr();
        many.num_sge = 5;
        assert_eq!(post(&mut q, &mut many), (false, Err(EINVAL), true));
        many.num_sge = -1;
        assert_eq!(post(&mut q, &mut many), (false, Err(EINVAL), true));
        assert_eq!(post(&mut q, &mut wr(3, 0)), (false, Err(EINVAL), true));
        assert_eq!(post(&mut q, &mut wr(0, 4)), (false, Err(EINVAL), true));
        let mut foreign = wr(1, 0);
        foreign.handle = 3;
        assert_eq!(post(&mut q, &mut foreign), (false, Err(EINVAL), true));
    }

    #[test]
    fn the_bad_one_is_named() {
        let mut q = queue(3, 8);
        let mut third = wr(2, 0);
        let mut second = wr(7, 0);
        second.next = &mut third;
        let mut first = wr(0, 1);
        first.next = &mut second;
        let mut bad = core::ptr::null_mut();
        // SAFETY: the list above.
        let (bell, result) = unsafe { q.post(&mut first, &mut bad) };
        assert_eq!(result, Err(EINVAL));
        assert_eq!(bad, core::ptr::addr_of_mut!(second));
        assert!(bell.is_some(), "the first was posted");
        assert_eq!(q.ops.unconsumed(), 1);
    }
}
