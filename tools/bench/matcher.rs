// SPDX-License-Identifier: GPL-2.0

//! Measures the device's matcher alone, without a message around it.
//!
//! ```text
//! bench-matcher LENGTH MASKS MS
//! ```
//!
//! The list contains LENGTH tags under MASKS different masks (0: no bit is masked). For MS
//! milliseconds, tags of the list are found and taken out, several at a time. They are added again
//! at the end of the list while the clock is stopped. Prints the nanoseconds of one match (the
//! median).

use roce::tm::{
    Entry,
    HashKey,
    Matcher, //
};
use std::time::{
    Duration,
    Instant, //
};

const BATCH: usize = 64;

/// The bits that the mask of tag `i` leaves out; messages have them, no tag does.
fn masked_bits(i: u32, masks: u32) -> u64 {
    i.checked_rem(masks).map_or(0, |m| u64::from(m + 1) << 40)
}

fn main() {
    let args: Vec<u32> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let &[length, masks, ms] = &args[..] else {
        eprintln!("usage: bench-matcher LENGTH MASKS MS");
        std::process::exit(2);
    };
    let room = length.max(1) as usize;
    let key = HashKey(0x0123_4567_89ab_cdef, 0x1357_9bdf_0246_8ace);
    let mut matcher = Matcher::new(vec![Entry::default(); room], vec![0u32; room], key);
    for i in 0..length {
        matcher.add(i, i.into(), !masked_bits(i, masks)).unwrap();
    }
    let mut tags: Vec<u32> = (0..length).collect();
    let batch = BATCH.min(tags.len());
    let mut state = 88_172_645_463_325_252u64;
    let mut took = Vec::new();
    let end = Instant::now() + Duration::from_millis(ms.into());
    while batch > 0 && Instant::now() < end {
        for i in 0..batch {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let left = tags.len() - i;
            tags.swap(i, i + (state >> 32) as usize % left);
        }
        let start = Instant::now();
        for &tag in &tags[..batch] {
            let found = matcher.find(u64::from(tag) | masked_bits(tag, masks));
            let handle = found.and_then(|index| matcher.take(index));
            assert_eq!(handle, Some(tag));
        }
        took.push(start.elapsed().as_nanos() as f64 / batch as f64);
        for &tag in &tags[..batch] {
            matcher
                .add(tag, tag.into(), !masked_bits(tag, masks))
                .unwrap();
        }
    }
    took.sort_by(f64::total_cmp);
    println!("{:.1}", took.get(took.len() / 2).unwrap_or(&0.0));
}
