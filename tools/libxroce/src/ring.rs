// SPDX-License-Identifier: GPL-2.0
//! Rings shared with the kernel.
//!
//! Every ring has one producer and one consumer, on different sides of the system call boundary.
//! Indices run freely over 32 bits. A side first fills or empties slots and then stores its index
//! with release order. The other side loads that index with acquire order before it accesses the
//! slots. Therefore a slot belongs to one side at any time, and plain copies are enough for its
//! content.

use core::mem::size_of;
use core::ptr::NonNull;
use core::sync::atomic::{
    fence,
    AtomicU32,
    Ordering, //
};
use std::sync::Arc;

use crate::abi::{
    self,
    Plain,
    RingInfo, //
};
use crate::sys::{
    Mapping,
    Result,
    EPROTO, //
};

/// A mapped ring, without a side.
pub struct Ring {
    /// Its first byte, in `_map`.
    base: NonNull<u8>,
    _map: Arc<Mapping>,
    entries: u32,
    stride: usize,
}

// SAFETY: `base` points into the mapping, which may be used by any thread.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// Maps the ring that the kernel described in a response.
    ///
    /// `slot` is the number of bytes of a slot that this side will touch.
    /// `None` when the object has no such ring. Fails with EPROTO when the
    /// description makes no sense, or with mmap's error.
    ///
    /// # Errors
    ///
    /// EPROTO when the description makes no sense; the error of `mmap()`.
    pub fn map(fd: i32, info: &RingInfo, slot: usize) -> Result<Option<Self>> {
        if info.size == 0 {
            return Ok(None);
        }
        let map = Mapping::device(fd, info.offset, info.size as usize)?;
        Self::over(&Arc::new(map), 0, info, slot).map(Some)
    }

    /// As [`Self::map`], for two rings, each with its bytes of a slot, of which the second may lie
    /// in the mapping of the first.
    ///
    /// # Errors
    ///
    /// As for [`Self::map`].
    pub fn map_pair(
        fd: i32,
        first: (&RingInfo, usize),
        second: (&RingInfo, usize),
    ) -> Result<(Option<Self>, Option<Self>)> {
        let inside = (second.0.offset)
            .checked_sub(first.0.offset)
            .filter(|&at| at != 0 && at < u64::from(first.0.size) && second.0.size != 0);
        let Some(at) = inside else {
            return Ok((
                Self::map(fd, first.0, first.1)?,
                Self::map(fd, second.0, second.1)?,
            ));
        };
        let map = Arc::new(Mapping::device(fd, first.0.offset, first.0.size as usize)?);
        let one = Self::over(&map, 0, first.0, first.1)?;
        let other = Self::over(&map, at as usize, second.0, second.1)?;
        Ok((Some(one), Some(other)))
    }

    /// Checks a description of the ring at byte `at` against the memory and what will be written
    /// there.
    fn over(map: &Arc<Mapping>, at: usize, info: &RingInfo, slot: usize) -> Result<Self> {
        let stride = info.stride as usize;
        let fits = (info.entries as usize)
            .checked_mul(stride)
            .and_then(|n| n.checked_add(abi::RING_HDR_SIZE))
            .and_then(|n| n.checked_add(at))
            .is_some_and(|n| n <= map.len());
        let is_aligned = at % 8 == 0 && stride % 8 == 0;
        if !fits || !is_aligned || !info.entries.is_power_of_two() || stride < slot {
            return Err(EPROTO);
        }
        Ok(Self {
            // SAFETY: `at` lies in the mapping (just checked).
            base: unsafe { map.base().add(at) },
            _map: map.clone(),
            entries: info.entries,
            stride,
        })
    }

    /// A ring without a kernel behind it.
    #[cfg(test)]
    pub fn anonymous(entries: u32, stride: u32) -> Self {
        let size = abi::RING_HDR_SIZE + entries as usize * stride as usize;
        let info = RingInfo {
            size: size as u32,
            entries,
            stride,
            ..RingInfo::default()
        };
        let map = Mapping::anonymous(size).expect("memory");
        Self::over(&Arc::new(map), 0, &info, stride as usize).expect("consistent")
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset % 4 == 0 && offset < abi::RING_HDR_SIZE);
        // SAFETY: the mapping holds at least the header (checked in `over`,
        // as is that it is aligned), lives as long as `self`, and both sides
        // only ever access these words atomically.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast().as_ptr()) }
    }

    /// The kernel's index; what it covers may be looked at.
    fn kernel_index(&self) -> u32 {
        self.word(abi::RING_KERNEL_INDEX).load(Ordering::Acquire)
    }

    /// Publishes this side's index and all that was done to slots before.
    fn set_user_index(&self, index: u32) {
        self.word(abi::RING_USER_INDEX)
            .store(index, Ordering::Release);
    }

    /// As [`Self::set_user_index`]; gives the kernel's flags as they are after
    /// that: either they show what the kernel decided without the index, or
    /// the kernel will see it. The load stays behind the exchange because both
    /// are sequentially consistent, which on x86-64 is cheaper than a store and
    /// a fence.
    fn set_user_index_and_look(&self, index: u32) -> u32 {
        self.word(abi::RING_USER_INDEX)
            .swap(index, Ordering::SeqCst);
        self.word(abi::RING_KERNEL_FLAGS).load(Ordering::SeqCst)
    }

    fn user_index(&self) -> u32 {
        self.word(abi::RING_USER_INDEX).load(Ordering::Relaxed)
    }

    /// Bits of `enum xroce_ring_flags`.
    pub fn flags(&self) -> u32 {
        self.word(abi::RING_KERNEL_FLAGS).load(Ordering::Relaxed)
    }

    /// Arms a completion ring's event unless a stronger arm stands.
    pub fn arm(&self, arm: u32) {
        let word = self.word(abi::RING_ARM);
        let mut now = word.load(Ordering::Relaxed);
        while now < arm {
            match word.compare_exchange_weak(now, arm, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(seen) => now = seen,
            }
        }
        // The poll that follows must not look at the ring before it is armed:
        // a completion that it misses has to find the arm.
        fence(Ordering::SeqCst);
    }

    fn slot(&self, index: u32) -> NonNull<u8> {
        let at = (index & (self.entries - 1)) as usize * self.stride;
        // SAFETY: `at + stride` lies in the mapping (checked in `over`).
        unsafe { self.base.add(abi::RING_HDR_SIZE + at) }
    }

    /// Copies a value to `offset` in a slot. Does nothing if it does not fit,
    /// which callers rule out.
    fn put<T: Plain>(&self, index: u32, offset: usize, value: &T) {
        if offset + size_of::<T>() > self.stride {
            debug_assert!(false, "outside of the slot");
            return;
        }
        // SAFETY: inside the slot (checked above), which belongs to this side
        // until its index is published; no alignment is assumed.
        unsafe {
            self.slot(index)
                .add(offset)
                .cast::<T>()
                .as_ptr()
                .write_unaligned(*value)
        };
    }

    fn get<T: Plain>(&self, index: u32) -> T {
        const { assert!(size_of::<T>() <= 64) };
        debug_assert!(size_of::<T>() <= self.stride);
        // SAFETY: `stride` is at least the size that `map` was given, which is
        // the size of what is read; the slot belongs to this side until its
        // index is published; `Plain` is valid with any bits.
        unsafe { self.slot(index).cast::<T>().as_ptr().read_unaligned() }
    }
}

/// The filling side: send, receive and SRQ rings.
pub struct Producer {
    ring: Ring,
    /// Slot that will be filled next.
    next: u32,
    /// What the kernel knows.
    published: u32,
    /// The kernel's index when we last looked.
    consumed: u32,
}

impl Producer {
    /// Starts where the ring stands.
    pub fn new(ring: Ring) -> Self {
        let next = ring.user_index();
        let consumed = ring.kernel_index();
        Self {
            ring,
            next,
            published: next,
            consumed,
        }
    }

    /// The ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The next free slot, which [`Self::advance`] then takes; `None` when the
    /// ring is full.
    pub fn free_slot(&mut self) -> Option<u32> {
        if self.next.wrapping_sub(self.consumed) >= self.ring.entries {
            self.consumed = self.ring.kernel_index();
            if self.next.wrapping_sub(self.consumed) >= self.ring.entries {
                return None;
            }
        }
        Some(self.next)
    }

    /// Number of slots.
    pub fn entries(&self) -> u32 {
        self.ring.entries
    }

    /// Slots that are filled, published or not, and that the kernel has not
    /// given back.
    pub fn unconsumed(&mut self) -> u32 {
        self.consumed = self.ring.kernel_index();
        self.next.wrapping_sub(self.consumed)
    }

    /// Takes the slot that [`Self::free_slot`] gave.
    pub fn advance(&mut self) {
        self.next = self.next.wrapping_add(1);
    }

    /// Copies a value into a slot that is not yet published.
    pub fn put<T: Plain>(&mut self, slot: u32, offset: usize, value: &T) {
        self.ring.put(slot, offset, value);
    }

    /// Copies bytes of this process into a slot that is not yet published.
    ///
    /// # Safety
    ///
    /// `from` must be valid for reads of `len` bytes, and `offset + len` must
    /// not exceed the `slot` that the ring was mapped for.
    pub unsafe fn put_bytes(&mut self, slot: u32, offset: usize, from: *const u8, len: usize) {
        debug_assert!(offset + len <= self.ring.stride);
        // Most lists have one element; a copy of known size needs no call.
        if len == size_of::<abi::Sge>() {
            // SAFETY: as below.
            let one = unsafe { from.cast::<abi::Sge>().read_unaligned() };
            self.ring.put(slot, offset, &one);
            return;
        }
        // SAFETY: the caller vouches for both ranges; they cannot overlap
        // unless a program names the ring itself as its data, which `copy`
        // permits.
        unsafe { core::ptr::copy(from, self.ring.slot(slot).add(offset).as_ptr(), len) };
    }

    /// Shows the kernel what was filled. If that was anything, gives the
    /// ring's flags as they are afterwards.
    pub fn publish(&mut self) -> Option<u32> {
        if self.published == self.next {
            return None;
        }
        self.published = self.next;
        Some(self.ring.set_user_index_and_look(self.next))
    }

    /// Forgets what was filled and not published.
    pub fn rollback(&mut self) {
        self.next = self.published;
    }
}

/// The emptying side: completion rings.
pub struct Consumer {
    ring: Arc<Ring>,
    next: u32,
    published: u32,
    produced: u32,
}

impl Consumer {
    /// Starts where the ring stands.
    pub fn new(ring: Ring) -> Self {
        let next = ring.user_index();
        Self {
            next,
            published: next,
            produced: next,
            ring: Arc::new(ring),
        }
    }

    /// The ring.
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Takes the oldest entry.
    pub fn take<T: Plain>(&mut self) -> Option<T> {
        if self.next == self.produced {
            self.produced = self.ring.kernel_index();
            if self.next == self.produced {
                return None;
            }
        }
        let value = self.ring.get(self.next);
        self.next = self.next.wrapping_add(1);
        Some(value)
    }

    /// Number of entries taken and not given back.
    pub fn unpublished(&self) -> u32 {
        self.next.wrapping_sub(self.published)
    }

    /// Gives what was taken back to the kernel.
    pub fn publish(&mut self) {
        if self.published != self.next {
            self.published = self.next;
            self.ring.set_user_index(self.next);
        }
    }

    /// Takes the entries out that `is_gone` names; the others keep their order.
    /// The kernel adds behind those that are looked at. A ring whose indices
    /// make no sense is left alone: it would have no end.
    pub fn remove<T: Plain>(&mut self, is_gone: impl Fn(&T) -> bool) {
        let end = self.ring.kernel_index();
        if end.wrapping_sub(self.next) > self.ring.entries {
            return;
        }
        let (mut at, mut to) = (end, end);
        while at != self.next {
            at = at.wrapping_sub(1);
            let value = self.ring.get::<T>(at);
            if is_gone(&value) {
                continue;
            }
            to = to.wrapping_sub(1);
            if to != at {
                self.ring.put(to, 0, &value);
            }
        }
        self.next = to;
        self.produced = end;
        self.publish();
    }
}

#[cfg(test)]
mod tests;
