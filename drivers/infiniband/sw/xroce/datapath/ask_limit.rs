// SPDX-License-Identifier: GPL-2.0

//! The limit of packets that only ask silent peers for an answer, see [`roce::ask_limit`], for all
//! connections of a device.

use crate::prelude::*;
use roce::ask_limit::one_more;

/// So often a packet is counted anew, because another CPU has counted one meanwhile. Who has lost
/// so often does without: the others have asked.
const TRIES: u32 = 8;

/// Counts them.
pub(crate) struct AskLimit {
    word: Atomic<u64>,
}

impl AskLimit {
    /// None was sent.
    pub(crate) fn new() -> Self {
        AskLimit {
            word: Atomic::new(0),
        }
    }

    /// True if one more may be sent, which is counted. Any context.
    pub(crate) fn pass(&self) -> bool {
        let now = now_ns();
        let mut word = self.word.load(Relaxed);
        for _ in 0..TRIES {
            let Some(next) = one_more(word, now) else {
                return false;
            };
            match self.word.cmpxchg(word, next, Relaxed) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
        false
    }
}
