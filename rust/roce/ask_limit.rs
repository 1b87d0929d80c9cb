// SPDX-License-Identifier: GPL-2.0

//! How many packets a device sends that only ask silent peers for an answer.
//!
//! One connection asks every 3 ms for two seconds ([`requester`](crate::requester)); thousands of
//! them, to a host that has died, must not take a CPU. So all connections of a device share
//! [`MOST`] such packets in each period of about a millisecond.
//!
//! The state is one word, for the caller to exchange atomically.
//!
//! # Examples
//!
//! ```
//! use roce::ask_limit::{one_more, MOST};
//!
//! let mut word = 0;
//! for _ in 0..MOST {
//!     word = one_more(word, 5_000_000).expect("room in the period");
//! }
//! assert_eq!(one_more(word, 5_000_000), None);
//! assert!(one_more(word, 7_000_000).is_some());
//! ```

/// The most packets in a period.
pub const MOST: u32 = 64;

/// A period, as a power of two of nanoseconds: 1.05 ms.
const PERIOD_SHIFT: u32 = 20;

/// What becomes of `word` if one more packet is sent at `now`, nanoseconds; `None` if none may be.
///
/// The upper half of the word is the period, whose number comes round after 52 days; the lower one
/// counts its packets. It begins with 0. A CPU whose time is a little behind that of another may
/// begin a period once more.
#[inline]
pub const fn one_more(word: u64, now: u64) -> Option<u64> {
    let period = (now >> PERIOD_SHIFT) as u32;
    let count = match (word >> 32) as u32 == period {
        true => word as u32,
        false => 0,
    };
    if count >= MOST {
        return None;
    }
    Some((period as u64) << 32 | count.wrapping_add(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 1 << PERIOD_SHIFT;

    /// Asks `tries` times at `now`; how often that is allowed.
    fn ask(word: &mut u64, now: u64, tries: u32) -> u32 {
        let mut passed = 0;
        for _ in 0..tries {
            if let Some(next) = one_more(*word, now) {
                *word = next;
                passed += 1;
            }
        }
        passed
    }

    #[test]
    fn each_period_has_its_own() {
        let mut word = 0;
        for start in [0, 7 * PERIOD, 8 * PERIOD] {
            assert_eq!(ask(&mut word, start, 40), 40);
            assert_eq!(ask(&mut word, start + PERIOD - 1, 40), 24);
            assert_eq!(ask(&mut word, start + PERIOD - 1, 1), 0);
        }
    }

    /// A refusal leaves the word as it is, and the count does not overflow.
    #[test]
    fn thousands_get_no_more() {
        let mut word = 0;
        assert_eq!(ask(&mut word, 3 * PERIOD, 100_000), MOST);
        assert_eq!(word, 3 << 32 | u64::from(MOST));
    }

    /// The number of the period comes round, and a CPU may be a period behind another.
    #[test]
    fn time_comes_round() {
        let last = (u64::from(u32::MAX) << PERIOD_SHIFT) | 5;
        let mut word = 0;
        assert_eq!(ask(&mut word, last, 100), MOST);
        assert_eq!(ask(&mut word, last + PERIOD, 100), MOST);
        assert_eq!(ask(&mut word, last, 100), MOST);
    }
}
