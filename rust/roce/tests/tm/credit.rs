// SPDX-License-Identifier: GPL-2.0

//! The number of operations that are executed for a message, whatever is in the ring when it
//! arrives.

use proptest::prelude::*;

use roce::tm::Credit;

const MOST: u32 = 8192;
const EACH: u32 = 64;

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(500)
    })]

    #[test]
    fn is_bounded_and_nobody_waits_for_ever(
        waiting in prop::collection::vec(0..=MOST, 1..300),
        last in 0..=MOST,
    ) {
        let mut credit = Credit::new(MOST);
        let mut executed = 0;
        for (n, waiting) in (0u32..).zip(waiting) {
            let granted = credit.grant(waiting);
            prop_assert!(granted <= waiting);
            executed += granted;
            prop_assert!(executed <= MOST + n * EACH);
        }
        // A message that comes again and again is heard.
        let mut left = last;
        for _ in 0..=MOST / EACH {
            left -= credit.grant(left);
        }
        prop_assert_eq!(left, 0);
    }
}
