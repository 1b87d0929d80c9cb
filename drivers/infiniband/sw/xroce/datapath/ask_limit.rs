// SPDX-License-Identifier: GPL-2.0

//! How many packets a device sends that only ask silent peers for an answer, see `echo.rs` of crate
//! `roce`. One connection asks every 3 ms for two seconds; thousands of them, to a host that has
//! died, must not take a CPU.

use crate::prelude::*;

/// A period, as a power of two of nanoseconds: 1 ms.
const PERIOD_SHIFT: u32 = 20;

/// Packets in a period.
const MOST: u32 = 64;

/// Counts those of the present period. The two numbers are not changed together: a few more packets
/// may be let through at the beginning of a period.
pub(crate) struct AskLimit {
    period: Atomic<u32>,
    asked: Atomic<u32>,
}

impl AskLimit {
    /// None was sent.
    pub(crate) fn new() -> Self {
        AskLimit {
            period: Atomic::new(0),
            asked: Atomic::new(0),
        }
    }

    /// True if one more may be sent, which is counted. Any context.
    pub(crate) fn pass(&self) -> bool {
        let period = (now_ns() >> PERIOD_SHIFT) as u32;
        if self.period.load(Relaxed) != period {
            self.period.store(period, Relaxed);
            self.asked.store(0, Relaxed);
        }
        self.asked.load(Relaxed) < MOST && self.asked.fetch_add(1, Relaxed) < MOST
    }
}
