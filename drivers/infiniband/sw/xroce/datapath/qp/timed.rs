// SPDX-License-Identifier: GPL-2.0

//! Hot rings that a timer looks at, while no CPU is free to poll them.
//!
//! Several processes that post small messages one by one, on CPUs that are all busy, are limited by
//! the system call that each message takes, and by its way as a packet of its own. A hot ring
//! ([`super::hot`]) for which there is no CPU is *timed* for a while. A run that empties it leaves
//! the flag "awake" set, so that its process rings no more, and the timer of the queue pair makes
//! the next run at the end of a *tick*. What was posted in a tick is sent together.
//!
//! * A tick is as long as eight doorbells took in the [streak](super::hot) that made the ring hot,
//!   pauses included, and [`LONGEST`] at most. So a message waits no longer than doorbells take.
//! * A tick in which something was posted, but less than doorbells would have told of, ends it.
//!   Whoever waits for an answer to each message thus pays for one tick in many doorbells.
//! * After a tick in which nothing was posted, the ring is rung for once more: the process may have
//!   lost its CPU. From that doorbell on there are ticks again.
//! * It ends after [`TURN`] in any case. A CPU may be free to poll the ring by then.

use crate::params;

/// A tick lasts at least and at most so long, in units of 1024 ns: 20 and 250 µs.
const SHORTEST: u32 = 20_000 >> 10;
/// See [`SHORTEST`]; on a slow kernel ([`params::poll_times`]) it is longer.
const LONGEST: u32 = 250_000 >> 10;

/// So many requests at least in a tick are worth the wait; more if more doorbells would have come
/// in that time.
const WORTH: u16 = 3;

/// As long as a turn of a poller, in these units: 20 ms.
const TURN: u32 = 20_000_000 >> 10;

/// When a ring that a run has emptied is looked at again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    /// After so many units of 1024 ns, without a doorbell: a tick begins.
    Tick(u32),
    /// The same: the present tick goes on.
    Wait(u32),
    /// When it is rung for. The ring remains timed.
    Rung,
    /// When it is rung for; it is timed no longer, because too little was posted in a tick, or in
    /// all ticks of the turn.
    Vain,
    /// The same, because the turn is over, which was worth it.
    Over,
}

/// The ticks of a ring that is timed. Times are in units of 1024 ns and come round after an hour.
///
/// The owner of the send direction has it.
pub(crate) struct Ticks {
    /// When the present tick ends.
    next: u32,
    /// When the turn began.
    begin: u32,
    /// Length of a tick.
    length: u16,
    /// The producer index when the present tick began, or the last one ended; its lower half.
    seen: u16,
    /// So many requests in a tick are worth the wait.
    worth: u16,
    /// The turn has begun.
    begun: bool,
    /// There is a present tick.
    ticks: bool,
    /// A tick of this turn was worth the wait.
    paid: bool,
}

impl Ticks {
    /// None.
    pub(super) fn new() -> Self {
        Ticks {
            next: 0,
            begin: 0,
            length: 0,
            seen: 0,
            worth: WORTH,
            begun: false,
            ticks: false,
            paid: false,
        }
    }

    /// The ring is not timed, or not any more.
    pub(super) fn stop(&mut self) {
        self.begun = false;
        self.ticks = false;
    }

    /// A run has fetched all that was posted up to the index `producer` of a ring that is timed.
    /// Eight doorbells of the streak took `length` units.
    pub(super) fn look(&mut self, now: u32, producer: u32, length: u32) -> Look {
        // Whatever was posted since the last look, this is only a hint.
        let producer = producer as u16;
        let times = u32::try_from(params::poll_times()).unwrap_or(1);
        if !self.begun {
            let tick = length.clamp(SHORTEST, LONGEST.saturating_mul(times));
            let doorbells = tick.saturating_mul(8).div_ceil(length.max(SHORTEST));
            self.length = u16::try_from(tick).unwrap_or(u16::MAX);
            self.worth = u16::try_from(doorbells).unwrap_or(u16::MAX).max(WORTH);
            self.begin = now;
            self.begun = true;
            self.paid = false;
            return self.tick(now, producer);
        }
        // Not more than a tick, however long ago the last look was: the time comes round.
        let left = self.next.wrapping_sub(now);
        if self.ticks && (1..=u32::from(self.length)).contains(&left) {
            return Look::Wait(left);
        }
        let posted = producer.wrapping_sub(self.seen);
        let is_over = now.wrapping_sub(self.begin) >= TURN.saturating_mul(times);
        let look = match posted {
            _ if is_over && self.paid => Look::Over,
            _ if is_over => Look::Vain,
            0 => Look::Rung,
            _ if self.ticks && posted < self.worth => Look::Vain,
            _ => {
                self.paid |= self.ticks;
                return self.tick(now, producer);
            }
        };
        self.ticks = false;
        self.seen = producer;
        if look != Look::Rung {
            self.stop();
        }
        look
    }

    /// A tick begins.
    fn tick(&mut self, now: u32, producer: u16) -> Look {
        self.next = now.wrapping_add(self.length.into());
        self.seen = producer;
        self.ticks = true;
        Look::Tick(self.length.into())
    }
}
