// SPDX-License-Identifier: GPL-2.0

//! The kernel's side of the rings to which user space posts work requests.
//!
//! User space can write to the memory of a ring at any time. A reader keeps every index that the
//! kernel owns in fields of its own, copies a slot once and never reads the slot again. The only
//! value that it reads repeatedly is the producer index, which it checks each time.

use crate::prelude::*;
use crate::wr;

/// A ring that says something impossible: its queue pair goes to the error state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CorruptRing;

impl From<Error> for CorruptRing {
    fn from(_: Error) -> Self {
        CorruptRing
    }
}

/// Reader of a send, receive or shared receive ring.
///
/// Not locked: it belongs to the owner of its queue, or lies under the lock of its SRQ.
pub struct RingReader {
    mem: Arc<RingMem>,
    /// Where its header is in `mem`, bytes.
    base: usize,
    /// Number of slots, a power of two.
    entries: u32,
    /// Bytes from slot to slot.
    stride: u32,
    /// The next slot to copy; runs freely over 32 bits.
    next: u32,
    /// What user space was told last.
    published: u32,
}

impl RingReader {
    /// Makes a reader for the empty ring that begins at byte `base` of `mem`, a multiple of 8.
    /// `entries` must be a power of two, and `header + entries * stride` must fit behind `base`; a
    /// slot outside is an error when it is read.
    pub fn new(mem: Arc<RingMem>, base: usize, entries: u32, stride: u32) -> Self {
        RingReader {
            mem,
            base,
            entries,
            stride,
            next: 0,
            published: 0,
        }
    }

    /// The shared memory.
    pub(crate) fn mem(&self) -> &Arc<RingMem> {
        &self.mem
    }

    /// Index of the slot that [`RingReader::advance`] will pass.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Slots that user space has filled and the kernel has not copied.
    pub(crate) fn available(&self) -> Result<u32, CorruptRing> {
        let producer = self.mem.load_acquire(self.word(abi::RING_USER_INDEX))?;
        let ready = producer.wrapping_sub(self.next);
        // What is not yet consumed in the eyes of user space counts as well: a producer that runs
        // ahead of the published index by more than the ring overwrites slots in use. One that went
        // back behind what was copied is as wrong.
        if producer.wrapping_sub(self.published) > self.entries || ready > self.entries {
            return Err(CorruptRing);
        }
        Ok(ready)
    }

    /// Byte offset of slot `index` in the ring memory.
    pub(crate) fn slot_offset(&self, index: u32) -> usize {
        let slot = index & self.entries.wrapping_sub(1);
        (slot as usize)
            .wrapping_mul(self.stride as usize)
            .wrapping_add(self.word(abi::RING_HDR_SIZE))
    }

    /// Byte offset in the ring memory of what is `offset` bytes behind the begin of the ring.
    fn word(&self, offset: usize) -> usize {
        self.base.wrapping_add(offset)
    }

    /// Copies bytes `from..` of the next slot.
    pub(crate) fn copy(&self, from: usize, out: &mut [u8]) -> Result<(), CorruptRing> {
        let end = from.checked_add(out.len()).ok_or(CorruptRing)?;
        if end > self.stride as usize {
            return Err(CorruptRing);
        }
        let at = self.slot_offset(self.next).wrapping_add(from);
        Ok(self.mem.copy_out(at, out)?)
    }

    /// Passes over the slot that was copied.
    pub(crate) fn advance(&mut self) {
        self.next = self.next.wrapping_add(1);
    }

    /// Tells user space that every slot below `index` is free again.
    pub(crate) fn publish(&mut self, index: u32) {
        if index != self.published {
            self.published = index;
            // The offset is a constant inside every ring, so this cannot fail.
            let _ = self
                .mem
                .store_release(self.word(abi::RING_KERNEL_INDEX), index);
        }
    }

    /// Says that the kernel will look at the producer index again: no doorbell is needed.
    pub(crate) fn set_awake(&self) {
        let _ = self
            .mem
            .fetch_or(self.word(abi::RING_KERNEL_FLAGS), abi::RING_AWAKE);
    }

    /// Asks for doorbells from now on. The caller must look at the ring once more afterwards.
    pub(crate) fn clear_awake(&self) {
        let _ = self
            .mem
            .fetch_and(self.word(abi::RING_KERNEL_FLAGS), !abi::RING_AWAKE);
        full_fence();
    }

    /// Asks user space for a doorbell after each receive it posts from now on: the queue pair is in
    /// the error state. The caller must look at the ring once more afterwards.
    pub(crate) fn set_flush(&self) {
        let _ = self
            .mem
            .fetch_or(self.word(abi::RING_KERNEL_FLAGS), abi::RING_FLUSH);
        full_fence();
    }

    /// Ends what [`RingReader::set_flush`] began.
    pub(crate) fn clear_flush(&self) {
        let _ = self
            .mem
            .fetch_and(self.word(abi::RING_KERNEL_FLAGS), !abi::RING_FLUSH);
    }

    /// Copies what user space has filled and the kernel has not copied to the ring at the begin of
    /// `mem`, under the same indices; returns the index behind it. EINVAL when that ring is too
    /// small. The kernel may take slots meanwhile.
    pub(crate) fn copy_to(&self, mem: &RingMem, entries: u32) -> Result<u32> {
        let count = self.available().map_err(|_| EINVAL)?;
        if count > entries {
            return Err(EINVAL);
        }
        let end = self.next.wrapping_add(count);
        let mut bytes = [0u8; wr::MAX_RECV_SLOT];
        let slot = bytes.get_mut(..self.stride as usize).ok_or(EINVAL)?;
        let mut index = self.next;
        while index != end {
            self.mem.copy_out(self.slot_offset(index), slot)?;
            let to = index & entries.wrapping_sub(1);
            let at = (to as usize)
                .wrapping_mul(self.stride as usize)
                .wrapping_add(abi::RING_HDR_SIZE);
            mem.copy_in(at, slot)?;
            index = index.wrapping_add(1);
        }
        Ok(end)
    }

    /// A second reader of the ring as it stands now, to look at what is in it.
    pub(crate) fn snapshot(&self) -> Self {
        RingReader {
            mem: self.mem.clone(),
            ..*self
        }
    }

    /// A reader of another ring, at the begin of `mem`, that goes on where this one stands, up to
    /// index `end`.
    pub(crate) fn moved(&self, mem: Arc<RingMem>, entries: u32, end: u32) -> Result<Self> {
        mem.store_release(abi::RING_USER_INDEX, end)?;
        mem.store_release(abi::RING_KERNEL_INDEX, self.next)?;
        Ok(RingReader {
            mem,
            base: 0,
            entries,
            stride: self.stride,
            next: self.next,
            published: self.next,
        })
    }

    /// Starts from an empty ring, as after a move to the reset state: what user space has posted
    /// and the kernel has not looked at is forgotten.
    pub(crate) fn forget(&mut self) {
        if let Ok(producer) = self.mem.load_acquire(self.word(abi::RING_USER_INDEX)) {
            self.next = producer;
            self.published = producer.wrapping_add(1);
            self.publish(producer);
        }
    }
}
