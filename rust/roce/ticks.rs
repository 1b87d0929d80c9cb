// SPDX-License-Identifier: GPL-2.0

//! When a send ring is looked at that nobody rings for and nobody polls.
//!
//! Several processes that post small messages one by one, on CPUs that are all busy, are limited by
//! the system call that each message takes, and by its way as a packet of its own. A ring of which
//! that is true can be *timed* for a while, which is called a turn. A run that empties it tells the
//! process not to ring, and a timer makes the next run at the end of a *tick*. What was posted in a
//! tick is sent together.
//!
//! * A tick is as long as eight doorbells took before the turn, pauses included, and 250 µs at
//!   most. So a message waits no longer than doorbells take.
//! * A tick in which something was posted, but less than doorbells would have told of, is in vain.
//!   It ends the turn, unless there was one that was worth it, and the one before it was not in
//!   vain. Whoever waits for an answer to each message thus pays for one tick in many doorbells, or
//!   for two after a time in which it did not wait.
//! * After a tick in which nothing was posted, or one in vain that does not end the turn, the ring
//!   is rung for once more: the process may have lost its CPU. From that doorbell on there are
//!   ticks again.
//! * Every 20 ms, at a look or a doorbell, a CPU may be free that polls the ring instead, so that
//!   one is looked for. At the sixteenth time the turn ends, so that it is measured anew how long
//!   doorbells take; or if the last time is 80 ms ago, since little was posted meanwhile.
//! * A turn of which no tick was worth it ends after 20 ms.
//!
//! # Examples
//!
//! ```
//! use roce::ticks::{Look, Ticks};
//!
//! let mut ticks = Ticks::new();
//! // Eight doorbells took 50 units, and so a tick does.
//! assert_eq!(ticks.look(1000, 7, 50, 1), Look::Tick(50));
//! // A response has the ring looked at in the midst of it.
//! assert_eq!(ticks.look(1020, 12, 50, 1), Look::Wait(30));
//! // Twenty requests were posted in the tick: another one.
//! assert_eq!(ticks.look(1050, 27, 50, 1), Look::Tick(50));
//! // None: the next one rings.
//! assert_eq!(ticks.look(1100, 27, 50, 1), Look::Rung);
//! ```

/// A tick lasts at least so long, in units of 1024 ns: 20 µs.
const SHORTEST: u32 = 20_000 >> 10;
/// And at most so long: 250 µs. On a slow machine it is longer.
const LONGEST: u32 = 250_000 >> 10;

/// So many requests at least in a tick are worth the wait; more if more doorbells would have come
/// in that time.
const WORTH: u16 = 3;

/// After so long a free CPU is looked for again, in these units: 20 ms.
const SEARCH: u32 = 20_000_000 >> 10;

/// A turn is over when it is time for so many of these searches.
const SEARCHES: u8 = 16;

/// A turn is over if the last search was so many times [`SEARCH`] ago.
const MISSED: u32 = 4;

/// When a ring that a run has emptied is looked at again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    /// After so many units of 1024 ns, without a doorbell: a tick begins.
    Tick(u32),
    /// The same, and the ring has been timed for so long that a CPU may be free to poll it.
    Search(u32),
    /// The same: the present tick goes on.
    Wait(u32),
    /// When it is rung for. The turn goes on.
    Rung,
    /// When it is rung for. The turn is over, because too little was posted.
    Vain,
    /// The same, because it has taken long enough. It was worth it.
    Over,
}

/// The ticks of a ring that is timed.
///
/// Times are in units of 1024 ns of any monotonic clock; its lower 32 bits, which come round after
/// an hour.
#[derive(Debug)]
pub struct Ticks {
    /// When the present tick ends.
    next: u32,
    /// When the turn began, or a free CPU was looked for last.
    begin: u32,
    /// Length of a tick.
    length: u16,
    /// The producer index when the present tick began, or the last one ended; its lower half.
    seen: u16,
    /// So many requests in a tick are worth the wait.
    worth: u16,
    /// How often a free CPU has been looked for in this turn.
    searches: u8,
    /// There is a turn.
    begun: bool,
    /// There is a present tick.
    ticks: bool,
    /// A tick of this turn was worth the wait.
    paid: bool,
    /// The last tick in which something was posted was in vain.
    in_vain: bool,
}

impl Default for Ticks {
    fn default() -> Self {
        Self::new()
    }
}

impl Ticks {
    /// No turn has begun.
    pub const fn new() -> Self {
        Ticks {
            next: 0,
            begin: 0,
            length: 0,
            seen: 0,
            worth: WORTH,
            searches: 0,
            begun: false,
            ticks: false,
            paid: false,
            in_vain: false,
        }
    }

    /// The ring is not timed, or not any more: the next [`look`](Self::look) begins a turn.
    pub fn stop(&mut self) {
        self.begun = false;
        self.ticks = false;
    }

    /// At time `now`, a run has fetched all that was posted up to the index `producer` of a ring
    /// that is timed. The index is only a hint, whatever user space has written there. The first
    /// call begins a turn; `eight` is how long eight doorbells took before that. The longest tick
    /// and the longest turn are multiplied by `slowness`, which is 1 but for tests on slow
    /// machines. [`Look::Vain`] and [`Look::Over`] end the turn.
    pub fn look(&mut self, now: u32, producer: u32, eight: u32, slowness: u32) -> Look {
        let producer = producer as u16;
        if !self.begun {
            let length = eight.clamp(SHORTEST, LONGEST.saturating_mul(slowness).max(SHORTEST));
            let doorbells = length.saturating_mul(8).div_ceil(eight.max(SHORTEST));
            self.length = u16::try_from(length).unwrap_or(u16::MAX);
            self.worth = u16::try_from(doorbells).unwrap_or(u16::MAX).max(WORTH);
            self.begin = now;
            self.begun = true;
            self.searches = 0;
            self.paid = false;
            self.in_vain = false;
            return Look::Tick(self.tick(now, producer));
        }
        // Not more than a tick, however long ago the last look was: the time comes round.
        let left = self.next.wrapping_sub(now);
        if self.ticks && (1..=u32::from(self.length)).contains(&left) {
            return Look::Wait(left);
        }
        let posted = producer.wrapping_sub(self.seen);
        let is_worth_it = self.ticks && posted >= self.worth;
        if is_worth_it {
            self.paid = true;
            self.in_vain = false;
        }
        let search = SEARCH.saturating_mul(slowness);
        let since = now.wrapping_sub(self.begin);
        let is_late = since >= search;
        let is_over = self.searches.saturating_add(1) >= SEARCHES || since / MISSED >= search;
        let look = match posted {
            _ if is_late && !self.paid => Look::Vain,
            _ if is_late && is_over => Look::Over,
            0 => Look::Rung,
            // The process may have lost its CPU in the midst of it.
            _ if self.ticks && !is_worth_it && self.paid && !self.in_vain => {
                self.in_vain = true;
                Look::Rung
            }
            _ if self.ticks && !is_worth_it => Look::Vain,
            _ if is_late => {
                self.begin = now;
                self.searches = self.searches.saturating_add(1);
                return Look::Search(self.tick(now, producer));
            }
            _ => return Look::Tick(self.tick(now, producer)),
        };
        self.ticks = false;
        self.seen = producer;
        if look != Look::Rung {
            self.stop();
        }
        look
    }

    /// A tick begins. Returns its length.
    fn tick(&mut self, now: u32, producer: u16) -> u32 {
        self.next = now.wrapping_add(self.length.into());
        self.seen = producer;
        self.ticks = true;
        self.length.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring whose process posts, and the clock.
    struct Ring {
        ticks: Ticks,
        now: u32,
        producer: u32,
        eight: u32,
        slowness: u32,
    }

    impl Ring {
        /// Both the time and the index come round soon.
        fn new(eight: u32) -> Self {
            Ring {
                ticks: Ticks::new(),
                now: u32::MAX - 100,
                producer: u32::from(u16::MAX) - 5,
                eight,
                slowness: 1,
            }
        }

        /// So much time goes by, in which so many requests are posted.
        fn after(&mut self, time: u32, posted: u32) -> Look {
            self.now = self.now.wrapping_add(time);
            self.producer = self.producer.wrapping_add(posted);
            self.ticks
                .look(self.now, self.producer, self.eight, self.slowness)
        }
    }

    /// Ticks follow one another as long as each brings enough. A free CPU is looked for each 20 ms,
    /// 15 times; then the turn is over. The next turn is as the first.
    #[test]
    fn a_turn_that_is_worth_it() {
        let mut ring = Ring::new(100);
        for _ in 0..2 {
            assert_eq!(ring.after(0, 0), Look::Tick(100));
            for turn in 1..=16 {
                for at in (100..SEARCH).step_by(100) {
                    assert_eq!(ring.after(100, 8), Look::Tick(100), "{turn}: at {at}");
                }
                let expected = match turn {
                    16 => Look::Over,
                    _ => Look::Search(100),
                };
                assert_eq!(ring.after(100, 8), expected, "{turn}");
            }
        }
    }

    /// A process without a CPU goes on where it was, unless that takes too long.
    #[test]
    fn a_search_is_missed() {
        for (pause, expected) in [(SEARCH, Look::Search(100)), (4 * SEARCH, Look::Over)] {
            let mut ring = Ring::new(100);
            ring.after(0, 0);
            assert_eq!(ring.after(100, 8), Look::Tick(100));
            assert_eq!(ring.after(100, 0), Look::Rung);
            assert_eq!(ring.after(pause, 1), expected);
        }
    }

    /// A process that has lost its CPU in the midst of a tick is not taken for one that waits for
    /// answers. Two such ticks in a row end the turn.
    #[test]
    fn one_tick_in_vain_is_forgiven() {
        let mut ring = Ring::new(100);
        ring.after(0, 0);
        for _ in 0..2 {
            assert_eq!(ring.after(100, 8), Look::Tick(100));
            assert_eq!(ring.after(100, 7), Look::Rung);
            assert_eq!(ring.after(0, 1), Look::Tick(100));
        }
        assert_eq!(ring.after(100, 7), Look::Vain);
    }

    /// Neither a forgiven tick nor a late look is the end of a turn that was worth it.
    #[test]
    fn what_is_late_counts() {
        // It loses its CPU in the midst of a tick, for longer than until the next search.
        let mut ring = Ring::new(100);
        ring.after(0, 0);
        ring.after(100, 8);
        assert_eq!(ring.after(100, 1), Look::Rung);
        assert_eq!(ring.after(SEARCH, 1), Look::Search(100));
        // The next tick is the second one in a row.
        assert_eq!(ring.after(100, 1), Look::Vain);
        // The first tick is looked at late.
        let mut ring = Ring::new(100);
        ring.after(0, 0);
        assert_eq!(ring.after(SEARCH, 8), Look::Search(100));
        // A good one after a forgiven one is looked at late.
        assert_eq!(ring.after(100, 1), Look::Rung);
        assert_eq!(ring.after(SEARCH - 200, 1), Look::Tick(100));
        assert_eq!(ring.after(100, 8), Look::Search(100));
        assert_eq!(ring.after(100, 1), Look::Rung);
    }

    /// A doorbell sees what was posted since the last one. A tick that brings less than the
    /// doorbells in its time would have is in vain, and so are fewer than three requests.
    #[test]
    fn fewer_than_doorbells_would_have_told_of() {
        for (eight, length, worth) in [(100, 100, 8), (1, 19, 8), (1000, 244, 3), (400, 244, 5)] {
            for posted in 1..12 {
                let mut ring = Ring::new(eight);
                assert_eq!(ring.after(0, 0), Look::Tick(length));
                let expected = match posted < worth {
                    true => Look::Vain,
                    false => Look::Tick(length),
                };
                assert_eq!(ring.after(length, posted), expected, "{eight} {posted}");
            }
        }
    }

    /// A process that posts nothing for a while rings; its first request is not compared with what
    /// a tick is worth.
    #[test]
    fn a_pause_is_not_the_end() {
        let mut ring = Ring::new(100);
        ring.after(0, 0);
        assert_eq!(ring.after(100, 20), Look::Tick(100));
        assert_eq!(ring.after(100, 0), Look::Rung);
        // An acknowledgement comes.
        assert_eq!(ring.after(1000, 0), Look::Rung);
        assert_eq!(ring.after(1000, 1), Look::Tick(100));
        assert_eq!(ring.after(100, 20), Look::Tick(100));
    }

    /// One request and its answer in turn: one tick.
    #[test]
    fn one_at_a_time_is_in_vain() {
        let mut ring = Ring::new(100);
        assert_eq!(ring.after(0, 1), Look::Tick(100));
        assert_eq!(ring.after(100, 1), Look::Vain);
        // A turn that brought pauses only.
        assert_eq!(ring.after(0, 0), Look::Tick(100));
        assert_eq!(ring.after(100, 0), Look::Rung);
        assert_eq!(ring.after(SEARCH, 1), Look::Vain);
    }

    /// Whatever happens in a tick, and however long nobody looks, no look is further away than one
    /// tick.
    #[test]
    fn nothing_waits_longer_than_a_tick() {
        for eight in [0, 1, 100, 5000, u32::MAX] {
            for gap in [0, 1, 30, 243, 244, 245, 1 << 16, 1 << 31, u32::MAX - 1] {
                let mut ring = Ring::new(eight);
                ring.after(0, 0);
                match ring.after(gap, 20) {
                    Look::Tick(wait) | Look::Search(wait) | Look::Wait(wait) => {
                        assert!((1..=LONGEST).contains(&wait), "{eight} {gap}: {wait}");
                    }
                    look => assert_ne!(look, Look::Rung, "{eight} {gap}"),
                }
            }
        }
    }

    /// Ticks and turns become longer, and no factor overflows.
    #[test]
    fn slow_machines() {
        let mut ring = Ring::new(2000);
        ring.slowness = 16;
        assert_eq!(ring.after(0, 0), Look::Tick(2000));
        assert_eq!(ring.after(2000, 8), Look::Tick(2000));
        assert_eq!(ring.after(SEARCH, 8), Look::Tick(2000));
        assert_eq!(ring.after(15 * SEARCH, 8), Look::Search(2000));
        for slowness in [0, u32::MAX] {
            let mut ring = Ring::new(u32::MAX);
            ring.slowness = slowness;
            let Look::Tick(length) = ring.after(0, 0) else {
                panic!("no tick");
            };
            assert!(length <= u32::from(u16::MAX));
        }
    }
}
