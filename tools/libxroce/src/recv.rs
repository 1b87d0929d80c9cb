// SPDX-License-Identifier: GPL-2.0
//! Posting receives, to a QP's own queue or to an SRQ.

use core::mem::size_of;

use crate::abi::{
    self,
    RecvSlot,
    Sge, //
};
use crate::ring::Producer;
use crate::sys::{
    Result,
    EINVAL,
    EIO,
    ENOMEM, //
};
use crate::verbs::IbvRecvWr;

/// A receive ring.
pub struct RecvQueue {
    ring: Producer,
    max_sge: u32,
}

/// Bytes of a slot with that many elements.
pub fn slot_len(max_sge: u32) -> usize {
    abi::RECV_SLOT_HDR + max_sge as usize * size_of::<Sge>()
}

impl RecvQueue {
    /// Takes a ring whose slots were mapped with [`slot_len`]`(max_sge)`.
    pub fn new(ring: Producer, max_sge: u32) -> Self {
        Self { ring, max_sge }
    }

    /// Goes on with another ring, which holds what the old one held.
    pub fn replace(&mut self, ring: Producer) {
        self.ring = ring;
    }

    /// Elements that a request may have.
    pub fn max_sge(&self) -> u32 {
        self.max_sge
    }

    /// Fills one slot.
    ///
    /// # Safety
    ///
    /// The request's list must be valid.
    unsafe fn fill(&mut self, wr: &IbvRecvWr) -> Result {
        let num_sge = u32::try_from(wr.num_sge).map_err(|_| EINVAL)?;
        if num_sge > self.max_sge {
            return Err(EINVAL);
        }
        let slot = self.ring.free_slot().ok_or(ENOMEM)?;
        let header = RecvSlot {
            wr_id: wr.wr_id,
            num_sge,
            reserved: 0,
        };
        self.ring.put(slot, 0, &header);
        // SAFETY: the list is valid for `num_sge` elements, which have the
        // layout of `Sge`; the slot has room for `max_sge` of them.
        unsafe {
            self.ring.put_bytes(
                slot,
                abi::RECV_SLOT_HDR,
                wr.sg_list.cast(),
                num_sge as usize * size_of::<Sge>(),
            )
        };
        self.ring.advance();
        Ok(())
    }

    /// Posts a list. True when the queue's owner must be told, because its QP
    /// is in the error state. On an error, `bad` names the request that failed
    /// and those before it are posted.
    ///
    /// # Safety
    ///
    /// The list must be valid, `bad` NULL or valid.
    pub unsafe fn post(
        &mut self,
        mut wr: *mut IbvRecvWr,
        bad: *mut *mut IbvRecvWr,
    ) -> (bool, Result) {
        let mut result = Ok(());
        if self.ring.ring().flags() & abi::RING_DEAD != 0 {
            result = Err(EIO);
        }
        while result.is_ok() && !wr.is_null() {
            // SAFETY: an element of the caller's list.
            result = unsafe { self.fill(&*wr) };
            if result.is_ok() {
                // SAFETY: as above.
                wr = unsafe { (*wr).next };
            }
        }
        if result.is_err() && !bad.is_null() {
            // SAFETY: the caller's place for it.
            unsafe { *bad = wr };
        }
        let tell = self
            .ring
            .publish()
            .is_some_and(|f| f & abi::RING_FLUSH != 0);
        (tell, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::Ring;
    use crate::verbs::IbvSge;

    fn wr(num_sge: i32, list: &mut [IbvSge], next: *mut IbvRecvWr) -> IbvRecvWr {
        IbvRecvWr {
            wr_id: 1,
            next,
            sg_list: list.as_mut_ptr(),
            num_sge,
        }
    }

    #[test]
    fn reports_the_bad_one() {
        let mut q = RecvQueue::new(Producer::new(Ring::anonymous(2, 64)), 2);
        let mut list = [IbvSge {
            addr: 1,
            length: 2,
            lkey: 3,
        }; 3];
        let mut third = wr(0, &mut list, core::ptr::null_mut());
        let mut second = wr(3, &mut list, &mut third);
        let mut first = wr(2, &mut list, &mut second);
        let mut bad = core::ptr::null_mut();
        // SAFETY: the list above.
        let (_, r) = unsafe { q.post(&mut first, &mut bad) };
        assert_eq!(r, Err(EINVAL));
        assert_eq!(bad, core::ptr::addr_of_mut!(second));
        second.num_sge = -1;
        // SAFETY: as above.
        assert_eq!(unsafe { q.post(&mut second, &mut bad) }.1, Err(EINVAL));
        second.num_sge = 1;
        // One was posted, one has room, the next has not.
        // SAFETY: as above.
        assert_eq!(unsafe { q.post(&mut second, &mut bad) }.1, Err(ENOMEM));
        assert_eq!(bad, core::ptr::addr_of_mut!(third));
    }
}
