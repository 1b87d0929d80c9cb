// SPDX-License-Identifier: GPL-2.0

//! The matching list compared with the naive one, step by step.

use std::cell::Cell;
use std::ops::{
    Deref,
    DerefMut, //
};
use std::rc::Rc;

use proptest::prelude::*;

use crate::naive::Naive;
use roce::tm::{
    AddError,
    Entry,
    HashKey,
    Matcher,
    MAX_MASKS,
    MAX_TAGS, //
};

pub type Tags = Matcher<Vec<Entry>, Vec<u32>>;

pub fn matcher(entries: u32, buckets: usize) -> Tags {
    Matcher::new(
        vec![Entry::default(); entries as usize],
        vec![0; buckets],
        HashKey(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210),
    )
}

#[derive(Clone, Debug)]
enum Step {
    Add { handle: u32, tag: u64, mask: u64 },
    Delete(u32),
    DeleteOne(usize),
    Sync { behind: u32 },
    SyncAll,
    Message(u64),
    Uncount,
}

/// Few values, so that tags meet; some masks share a tag's bits.
fn step(entries: u32) -> impl Strategy<Value = Step> {
    let handle = (0..entries + 2, 0u32..3).prop_map(|(index, age)| (age * MAX_TAGS) | index);
    let mask = prop_oneof![
        6 => Just(u64::MAX),
        2 => Just(0xff00),
        1 => Just(0u64),
        2 => (0u32..20).prop_map(|bit| !(1 << bit)),
    ];
    let tag = 0u64..24;
    prop_oneof![
        8 => (handle.clone(), tag.clone(), mask)
            .prop_map(|(handle, tag, mask)| Step::Add { handle, tag: tag & mask, mask }),
        1 => (handle.clone(), tag.clone())
            .prop_map(|(handle, tag)| Step::Add { handle, tag, mask: 0xff00 }),
        2 => handle.prop_map(Step::Delete),
        2 => any::<usize>().prop_map(Step::DeleteOne),
        1 => (0u32..4).prop_map(|behind| Step::Sync { behind: behind.wrapping_sub(1) }),
        3 => Just(Step::SyncAll),
        6 => tag.prop_map(Step::Message),
        1 => Just(Step::Uncount),
    ]
}

fn check(entries: u32, buckets: usize, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut tags = matcher(entries, buckets);
    let mut naive = Naive::new(entries, true);
    for step in steps {
        match step {
            Step::Add { handle, tag, mask } => {
                prop_assert_eq!(tags.add(handle, tag, mask), naive.add(handle, tag, mask));
            }
            Step::Delete(handle) => prop_assert_eq!(tags.delete(handle), naive.delete(handle)),
            Step::DeleteOne(n) => {
                if let Some(t) = naive.tags.get(n % (naive.tags.len() + 1)).copied() {
                    prop_assert_eq!(tags.delete(t.handle), naive.delete(t.handle));
                }
            }
            Step::Sync { behind } => {
                let count = naive.unexpected.wrapping_sub(behind);
                prop_assert_eq!(tags.sync(count).is_ok(), naive.sync(count));
            }
            Step::SyncAll => {
                prop_assert_eq!(tags.sync(naive.unexpected), Ok(()));
                prop_assert!(naive.sync(naive.unexpected));
            }
            Step::Message(tag) => {
                let taken = tags.find(tag).and_then(|index| tags.take(index));
                prop_assert_eq!(taken, naive.take(tag));
                if taken.is_none() {
                    tags.count_unexpected();
                    naive.count();
                }
            }
            Step::Uncount => {
                tags.uncount_unexpected();
                naive.uncount();
            }
        }
        prop_assert_eq!(tags.len() as usize, naive.tags.len());
        prop_assert_eq!(tags.unexpected(), naive.unexpected);
        prop_assert_eq!(tags.is_in_step(), naive.is_in_step());
        prop_assert_eq!(tags.has_waiting(), naive.has_waiting());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(1000)
    })]

    #[test]
    fn equals_the_naive_list(steps in prop::collection::vec(step(12), 1..200)) {
        check(12, 16, steps)?;
    }

    #[test]
    fn equals_the_naive_list_when_all_collide(steps in prop::collection::vec(step(40), 1..300)) {
        check(40, 1, steps)?;
    }
}

/// As the properties above, with many tags.
#[test]
fn equals_the_naive_list_when_long() {
    let mut random = 1u64;
    let mut next = |n: u64| {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (random >> 33) % n
    };
    const N: u32 = 4096;
    let mut tags = matcher(N, N as usize);
    let mut naive = Naive::new(N, true);
    let masks = [u64::MAX, !0xf, 0xf, 0];
    for i in 0..30_000u32 {
        match next(8) {
            0..=4 => {
                let handle = i << 20 | next(u64::from(N)) as u32;
                let choice = if next(50) == 0 { 4 } else { 2 };
                let mask = masks[next(choice) as usize];
                let tag = next(2000) & mask;
                assert_eq!(tags.add(handle, tag, mask), naive.add(handle, tag, mask));
            }
            5 => {
                if let Some(t) = naive.tags.get(next(5000) as usize).copied() {
                    assert_eq!(tags.delete(t.handle), naive.delete(t.handle));
                }
            }
            6 => {
                let tag = next(2000);
                let taken = tags.find(tag).and_then(|index| tags.take(index));
                assert_eq!(taken, naive.take(tag));
                if taken.is_none() {
                    tags.count_unexpected();
                    naive.count();
                }
            }
            _ => {
                let count = naive.unexpected.wrapping_sub(next(3) as u32);
                assert_eq!(tags.sync(count).is_ok(), naive.sync(count));
            }
        }
    }
    assert!(naive.tags.len() > 1000);
}

#[test]
fn oldest_wins() {
    let mut tags = matcher(8, 8);
    tags.add(3, 7, u64::MAX).unwrap();
    tags.add(1, 0, 0).unwrap();
    tags.add(2, 7, u64::MAX).unwrap();
    tags.add(0, 7, 0xf).unwrap();
    let mut order = Vec::new();
    while let Some(index) = tags.find(7) {
        order.push(tags.take(index).unwrap());
    }
    assert_eq!(order, [3, 1, 2, 0]);
    assert!(tags.is_empty());
}

#[test]
fn a_tag_outside_its_mask_never_matches() {
    let mut tags = matcher(2, 2);
    tags.add(0, 0x1f, 0x0f).unwrap();
    for tag in 0..0x40 {
        assert_eq!(tags.find(tag), None);
    }
    assert_eq!(tags.delete(0), Some(0));
}

#[test]
fn as_many_masks_as_there_may_be() {
    const MASKS: u32 = MAX_MASKS as u32;
    let mut tags = matcher(2 * MASKS + 1, 8);
    for i in 0..MASKS {
        tags.add(i, 0, u64::from(i)).unwrap();
        tags.add(i + MASKS, 0, u64::from(i)).unwrap();
    }
    let other = 2 * MASKS;
    assert_eq!(tags.add(other, 0, 99), Err(AddError::TooManyMasks));
    // The mask of a tag that is used twice stays until both are gone.
    assert_eq!(tags.delete(5), Some(5));
    assert_eq!(tags.add(other, 0, 99), Err(AddError::TooManyMasks));
    assert_eq!(tags.delete(5 + MASKS), Some(5 + MASKS));
    assert_eq!(tags.add(other, 0, 99), Ok(()));
    assert_eq!(tags.add(5, 0, 5), Err(AddError::TooManyMasks));
    assert_eq!(tags.len(), 2 * MASKS - 1);
}

/// Tags of each mask are found, the oldest first, whatever place their mask has.
#[test]
fn each_of_many_masks_is_found() {
    let mut tags = matcher(64, 16);
    let mut naive = Naive::new(64, true);
    for i in 0..64u32 {
        let mask = 1u64 << (i * 37 % 64);
        assert_eq!(tags.add(i, 0, mask), Ok(()));
        assert_eq!(naive.add(i, 0, mask), Ok(()));
    }
    for i in 0..64 {
        // All bits but one: only the tag whose mask looks at that bit takes it.
        let tag = !(1u64 << i);
        let taken = tags.find(tag).and_then(|index| tags.take(index));
        assert_eq!(taken, naive.take(tag));
        assert!(taken.is_some());
        assert_eq!(tags.find(tag), None);
    }
    assert!(tags.is_empty());
}

#[test]
fn handles() {
    let mut tags = matcher(4, 4);
    assert_eq!(tags.add(4, 0, 0), Err(AddError::BadHandle));
    assert_eq!(tags.add(MAX_TAGS - 1, 0, 0), Err(AddError::BadHandle));
    tags.add(MAX_TAGS | 2, 0, 0).unwrap();
    // The entry is taken, whatever the rest of the handle says.
    assert_eq!(tags.add(2, 0, 0), Err(AddError::InUse));
    // Its name is the whole handle.
    assert_eq!(tags.delete(2), None);
    assert_eq!(tags.delete((2 * MAX_TAGS) | 2), None);
    assert_eq!(tags.delete(MAX_TAGS | 2), Some(2));
    assert_eq!(tags.delete(MAX_TAGS | 2), None);
    assert_eq!(tags.take(2), None);
    assert_eq!(tags.take(77), None);
}

#[test]
fn no_memory_at_all() {
    let mut tags = matcher(0, 0);
    assert_eq!(tags.find(0), None);
    assert_eq!(tags.add(0, 0, 0), Err(AddError::BadHandle));
    // Entries without buckets: nothing is found, nothing breaks.
    let mut tags = matcher(2, 0);
    tags.add(0, 1, u64::MAX).unwrap();
    assert_eq!(tags.find(1), None);
    assert_eq!(tags.delete(0), Some(0));
    assert_eq!(tags.find(1), None);
}

/// What a search costs does not depend on how many tags have the value that it
/// looks for: 10^5 searches of 10^5 steps would not end in the time that one has
/// for a test.
#[test]
fn equal_tags_cost_nothing() {
    const N: u32 = 100_000;
    let mut tags = matcher(N, N as usize);
    for i in 0..N {
        tags.add(i, 5, u64::MAX).unwrap();
    }
    for i in 0..N {
        assert_eq!(tags.find(5), Some(i));
        assert_eq!(tags.find(6), None);
        tags.take(i).unwrap();
    }
}

/// Entries that count how often one is looked at.
struct Counted {
    entries: Vec<Entry>,
    looks: Rc<Cell<u64>>,
}

impl Deref for Counted {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        self.looks.set(self.looks.get() + 1);
        &self.entries
    }
}

impl DerefMut for Counted {
    fn deref_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }
}

/// A search looks at as many entries in a long list as in a short one: those of one
/// chain, two at most on average, and then once more, at what it found or for one
/// behind the end.
#[test]
fn distinct_tags_cost_nothing() {
    for n in [10u32, 1000, 100_000] {
        let looks = Rc::new(Cell::new(0));
        let mut tags = Matcher::new(
            Counted {
                entries: vec![Entry::default(); n as usize],
                looks: looks.clone(),
            },
            vec![0; n as usize],
            HashKey(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210),
        );
        for i in 0..n {
            tags.add(i, u64::from(i), u64::MAX).unwrap();
        }
        looks.set(0);
        for i in 0..n {
            assert_eq!(tags.find(u64::from(i)), Some(i));
        }
        let found = looks.get();
        for i in 0..n {
            assert_eq!(tags.find(u64::from(n + i)), None);
        }
        let missed = looks.get() - found;
        println!("{n} tags: {found} looks found all, {missed} found nothing");
        assert!(found <= 3 * u64::from(n));
        assert!(missed <= 3 * u64::from(n));
    }
}
