// SPDX-License-Identifier: GPL-2.0

//! Rate limits for log messages that peers and users can cause as often as they like.

use crate::prelude::*;

/// Nanoseconds between two lines.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Lets one line per interval through.
pub(crate) struct LogLimit {
    next: Atomic<u64>,
}

impl LogLimit {
    /// The first line may come at once.
    pub(crate) fn new() -> Self {
        LogLimit {
            next: Atomic::new(0),
        }
    }

    /// True for the caller that may write the line of this interval. Any context.
    pub(crate) fn pass(&self) -> bool {
        let now = now_ns();
        let next = self.next.load(Relaxed);
        now >= next
            && self
                .next
                .cmpxchg(next, now.wrapping_add(INTERVAL_NS), Relaxed)
                .is_ok()
    }
}
