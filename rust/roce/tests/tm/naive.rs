// SPDX-License-Identifier: GPL-2.0

//! The rules of tag matching, written to be easy to read: a list that is searched from its start.

use roce::tm::{
    list::index_of,
    AddError,
    MAX_MASKS, //
};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag {
    pub handle: u32,
    pub tag: u64,
    pub mask: u64,
    pub waits: bool,
}

/// What [`roce::tm::Matcher`] must be equal to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Naive {
    pub tags: Vec<Tag>,
    pub unexpected: u32,
    pub reported: u32,
    entries: u32,
    /// Tags wait for their phase; without that, messages are overtaken.
    phases: bool,
}

impl Naive {
    pub fn new(entries: u32, phases: bool) -> Self {
        Self {
            tags: Vec::new(),
            unexpected: 0,
            reported: 0,
            entries,
            phases,
        }
    }

    pub fn add(&mut self, handle: u32, tag: u64, mask: u64) -> Result<(), AddError> {
        let index = index_of(handle);
        if index >= self.entries {
            return Err(AddError::BadHandle);
        }
        if self.tags.iter().any(|t| index_of(t.handle) == index) {
            return Err(AddError::InUse);
        }
        let mut masks: Vec<u64> = self.tags.iter().map(|t| t.mask).collect();
        masks.sort_unstable();
        masks.dedup();
        if masks.len() == MAX_MASKS && !masks.contains(&mask) {
            return Err(AddError::TooManyMasks);
        }
        self.tags.push(Tag {
            handle,
            tag,
            mask,
            waits: self.phases,
        });
        self.release();
        Ok(())
    }

    pub fn delete(&mut self, handle: u32) -> Option<u32> {
        let at = self.tags.iter().position(|t| t.handle == handle)?;
        self.tags.remove(at);
        Some(index_of(handle))
    }

    pub fn sync(&mut self, count: u32) -> bool {
        if self.unexpected.wrapping_sub(count) >= 1 << 31 {
            return false;
        }
        self.reported = count;
        self.release();
        true
    }

    /// The handle of the tag that takes the message; it leaves the list.
    pub fn take(&mut self, tag: u64) -> Option<u32> {
        let at = self
            .tags
            .iter()
            .position(|t| !t.waits && tag & t.mask == t.tag)?;
        Some(self.tags.remove(at).handle)
    }

    pub fn count(&mut self) {
        self.unexpected = self.unexpected.wrapping_add(1);
    }

    pub fn uncount(&mut self) {
        self.unexpected = self.unexpected.wrapping_sub(1);
        self.release();
    }

    pub fn is_in_step(&self) -> bool {
        self.unexpected == self.reported
    }

    pub fn has_waiting(&self) -> bool {
        self.tags.iter().any(|t| t.waits)
    }

    fn release(&mut self) {
        if self.is_in_step() {
            for t in &mut self.tags {
                t.waits = false;
            }
        }
    }
}
