// SPDX-License-Identifier: GPL-2.0

//! The matching list: tags in the order in which they were posted, found by a hash.
//!
//! Tags with the same value and mask form a queue. The first tag of each queue is chained in a
//! bucket of one hash table, whose key includes the number of the mask. Therefore a search looks at
//! one bucket for each mask in use, [`MAX_MASKS`] at most. Of the queues that it finds, it takes
//! the one whose first tag was posted first. The time of a search does not depend on how many tags
//! share a value or wait in the list.

use core::ops::DerefMut;

use super::hash::HashKey;

/// Distinct masks in a list at a time: a message costs a look-up for each, in softirq and under the
/// lock of the list.
pub const MAX_MASKS: usize = 64;

/// Entries that a handle can name.
pub const MAX_TAGS: u32 = 1 << INDEX_BITS;

const INDEX_BITS: u32 = 20;
const NIL: u32 = u32::MAX;

/// The entry that a handle names. The other bits of a handle tell the tags apart
/// that lie there one after the other.
pub const fn index_of(handle: u32) -> u32 {
    handle & (MAX_TAGS - 1)
}

/// Why a tag cannot be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddError {
    /// The handle names an entry that is not there.
    BadHandle,
    /// The handle names an entry that holds a tag.
    InUse,
    /// [`MAX_MASKS`] others are in use.
    TooManyMasks,
}

/// Room for a tag; the caller lends a slice of them.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    tag: u64,
    /// How many were posted before it.
    posted: u64,
    handle: u32,
    /// The tags with the same value and mask that were posted next and before.
    next: u32,
    prev: u32,
    /// Of the first of a queue: its neighbours in the bucket, and the last of the
    /// queue.
    chain_next: u32,
    chain_prev: u32,
    last: u32,
    mask: u8,
    is_used: bool,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            tag: 0,
            posted: 0,
            handle: 0,
            next: NIL,
            prev: NIL,
            chain_next: NIL,
            chain_prev: NIL,
            last: NIL,
            mask: 0,
            is_used: false,
        }
    }
}

/// A mask in use.
#[derive(Clone, Copy, Default, Debug)]
struct Mask {
    bits: u64,
    /// Tags with it; 0: the place is free.
    tags: u32,
}

/// The places of masks, as bits: which ones are in use.
#[derive(Clone, Copy, Default, Debug)]
struct Places(u64);

impl Places {
    fn set(&mut self, slot: u8) {
        self.0 |= Self::bit(slot);
    }

    fn clear(&mut self, slot: u8) {
        self.0 &= !Self::bit(slot);
    }

    fn bit(slot: u8) -> u64 {
        1u64.checked_shl(u32::from(slot)).unwrap_or(0)
    }

    /// Those in use, from the lowest on.
    fn used(self) -> impl Iterator<Item = u8> {
        let mut left = self;
        core::iter::from_fn(move || {
            let slot = left.0.trailing_zeros() as u8;
            left.clear(slot);
            (usize::from(slot) < MAX_MASKS).then_some(slot)
        })
    }

    /// One that is not in use.
    fn free(self) -> Option<u8> {
        let slot = self.0.trailing_ones() as u8;
        (usize::from(slot) < MAX_MASKS).then_some(slot)
    }
}

/// The matching list.
pub struct List<E, B> {
    entries: E,
    buckets: B,
    key: HashKey,
    masks: [Mask; MAX_MASKS],
    /// Places in `masks` that are not free, so that a search looks at no others.
    places: Places,
    posted: u64,
    len: u32,
}

impl<E, B> List<E, B>
where
    E: DerefMut<Target = [Entry]>,
    B: DerefMut<Target = [u32]>,
{
    /// An empty list.
    pub fn new(mut entries: E, mut buckets: B, key: HashKey) -> Self {
        for entry in entries.iter_mut() {
            *entry = Entry::default();
        }
        for bucket in buckets.iter_mut() {
            *bucket = NIL;
        }
        Self {
            entries,
            buckets,
            key,
            masks: [Mask::default(); MAX_MASKS],
            places: Places::default(),
            posted: 0,
            len: 0,
        }
    }

    /// Tags in the list.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Tags that were ever posted.
    pub fn posted(&self) -> u64 {
        self.posted
    }

    /// Appends a tag.
    ///
    /// # Errors
    ///
    /// [`AddError`]; the list is as it was.
    pub fn add(&mut self, handle: u32, tag: u64, mask: u64) -> Result<(), AddError> {
        let index = index_of(handle);
        match self.entries.get(index as usize) {
            None => return Err(AddError::BadHandle),
            Some(entry) if entry.is_used => return Err(AddError::InUse),
            Some(_) => {}
        }
        let slot = self.mask_slot(mask).ok_or(AddError::TooManyMasks)?;
        let mut new = Entry {
            tag,
            posted: self.posted,
            handle,
            mask: slot,
            is_used: true,
            ..Entry::default()
        };
        match self.first(slot, tag) {
            Some(first) => {
                let last = self.entry(first).map_or(NIL, |e| e.last);
                new.prev = last;
                self.with(last, |e| e.next = index);
                self.with(first, |e| e.last = index);
            }
            None => {
                let at = self.bucket(slot, tag);
                let head = self.buckets.get(at).copied().unwrap_or(NIL);
                new.last = index;
                new.chain_next = head;
                self.with(head, |e| e.chain_prev = index);
                self.set_bucket(at, index);
            }
        }
        self.with(index, |e| *e = new);
        if let Some(m) = self.masks.get_mut(usize::from(slot)) {
            m.bits = mask;
            m.tags = m.tags.saturating_add(1);
            self.places.set(slot);
        }
        self.posted = self.posted.wrapping_add(1);
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    /// The oldest of the tags posted before `limit` that takes a message with
    /// `tag`.
    pub fn find(&self, tag: u64, limit: u64) -> Option<u32> {
        let mut found = None;
        let mut oldest = limit;
        for slot in self.places.used() {
            // The first of a queue is its oldest: if it is too young, all are.
            let Some(index) = self.first(slot, tag & self.mask(slot)) else {
                continue;
            };
            if let Some(entry) = self.entry(index).filter(|e| e.posted < oldest) {
                oldest = entry.posted;
                found = Some(index);
            }
        }
        found
    }

    /// The entry of the tag called `handle`, if it is in the list.
    pub fn find_handle(&self, handle: u32) -> Option<u32> {
        let index = index_of(handle);
        let entry = self.entry(index)?;
        (entry.is_used && entry.handle == handle).then_some(index)
    }

    /// Whether `handle` names an entry without a tag.
    pub fn is_free(&self, handle: u32) -> bool {
        self.entry(index_of(handle)).is_some_and(|e| !e.is_used)
    }

    /// The handle of the tag in entry `index`.
    pub fn handle(&self, index: u32) -> Option<u32> {
        let entry = self.entry(index)?;
        entry.is_used.then_some(entry.handle)
    }

    /// Takes a tag out; tells how many were posted before it. `None` when the
    /// entry holds none.
    pub fn remove(&mut self, index: u32) -> Option<u64> {
        let old = *self.entry(index)?;
        if !old.is_used {
            return None;
        }
        if old.prev != NIL {
            self.with(old.prev, |e| e.next = old.next);
            if old.next != NIL {
                self.with(old.next, |e| e.prev = old.prev);
            } else if let Some(first) = self.first(old.mask, old.tag) {
                self.with(first, |e| e.last = old.prev);
            }
        } else {
            let heir = if old.next == NIL {
                old.chain_next
            } else {
                self.with(old.next, |e| {
                    e.prev = NIL;
                    e.last = old.last;
                    e.chain_next = old.chain_next;
                });
                self.with(old.chain_next, |e| e.chain_prev = old.next);
                old.next
            };
            self.with(heir, |e| e.chain_prev = old.chain_prev);
            if old.chain_prev != NIL {
                self.with(old.chain_prev, |e| e.chain_next = heir);
            } else {
                let at = self.bucket(old.mask, old.tag);
                self.set_bucket(at, heir);
            }
        }
        self.with(index, |e| *e = Entry::default());
        if let Some(m) = self.masks.get_mut(usize::from(old.mask)) {
            m.tags = m.tags.saturating_sub(1);
            if m.tags == 0 {
                self.places.clear(old.mask);
            }
        }
        self.len = self.len.saturating_sub(1);
        Some(old.posted)
    }

    fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.get(index as usize)
    }

    fn with(&mut self, index: u32, f: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            f(entry);
        }
    }

    fn set_bucket(&mut self, at: usize, index: u32) {
        if let Some(bucket) = self.buckets.get_mut(at) {
            *bucket = index;
        }
    }

    /// The place of `mask`, or a free one.
    fn mask_slot(&self, mask: u64) -> Option<u8> {
        self.places
            .used()
            .find(|&slot| self.mask(slot) == mask)
            .or_else(|| self.places.free())
    }

    /// The mask at a place that is in use.
    fn mask(&self, slot: u8) -> u64 {
        self.masks.get(usize::from(slot)).map_or(0, |m| m.bits)
    }

    fn bucket(&self, slot: u8, tag: u64) -> usize {
        let hash = self.key.hash(u64::from(slot), tag) >> 32;
        // A fraction of the number of buckets, which need not be a power of two.
        (hash.wrapping_mul(self.buckets.len() as u64) >> 32) as usize
    }

    /// The oldest tag with that value and mask.
    fn first(&self, slot: u8, tag: u64) -> Option<u32> {
        let mut index = *self.buckets.get(self.bucket(slot, tag))?;
        // No chain is longer than the list.
        for _ in 0..self.len {
            let entry = self.entry(index)?;
            if entry.mask == slot && entry.tag == tag {
                return Some(index);
            }
            index = entry.chain_next;
        }
        None
    }
}
