// SPDX-License-Identifier: GPL-2.0
//! The masks of a list's tags, of which the kernel takes so many at a time.
//!
//! A call that adds a tag with one mask too many is to fail itself, as with one tag too many, not
//! its completion.

/// What a kernel takes that does not say so.
const UNSAID: u32 = 16;

/// Counts the tags with each mask. A tag that a message has taken counts until its handle is read
/// from the ring of free handles.
pub struct Masks {
    /// A mask, and how many tags have it; 0: the place is free.
    places: Vec<(u64, u32)>,
    /// The place of the mask of the tag at each entry of the list.
    of: Vec<u16>,
    max: usize,
}

impl Masks {
    /// Of a list of `entries` whose tags may have `max` masks. 0: an earlier module, whose limit is
    /// [`UNSAID`], left the field empty.
    pub fn new(max: u32, entries: u32) -> Self {
        let max = if max == 0 { UNSAID } else { max };
        Self {
            places: Vec::new(),
            of: vec![0; entries as usize],
            max: usize::from(u16::try_from(max).unwrap_or(u16::MAX)),
        }
    }

    /// How many there may be.
    pub fn max(&self) -> u32 {
        self.max as u32
    }

    /// The place of `mask`, or a free one.
    pub fn place(&self, mask: u64) -> Option<usize> {
        let mut free = None;
        for (place, &(of_place, tags)) in self.places.iter().enumerate() {
            if tags == 0 {
                free = free.or(Some(place));
            } else if of_place == mask {
                return Some(place);
            }
        }
        let next = self.places.len();
        free.or_else(|| (next < self.max).then_some(next))
    }

    /// A tag with `mask`, whose `place` is that of [`Masks::place`], is at entry `index` now.
    pub fn add(&mut self, index: u32, place: usize, mask: u64) {
        if place == self.places.len() {
            self.places.push((mask, 0));
        }
        if let (Some(of), Some(at)) = (self.of.get_mut(index as usize), self.places.get_mut(place))
        {
            *of = place as u16;
            *at = (mask, at.1 + 1);
        }
    }

    /// The tag at entry `index` is not there any more.
    pub fn remove(&mut self, index: u32) {
        let place = self.of.get(index as usize).copied().unwrap_or(0);
        if let Some((_, tags)) = self.places.get_mut(usize::from(place)) {
            *tags = tags.saturating_sub(1);
        }
    }
}
