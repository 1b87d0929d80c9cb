// SPDX-License-Identifier: GPL-2.0

//! Rings that are polled for a while instead of rung for.
//!
//! A process that posts one request after the other, and waits for none of them, makes a system
//! call for each, and does all the work on its own CPU. Such a ring is *hot*. A kernel thread polls
//! it if a CPU has nothing else to do, and user space is told that no doorbell is needed. What was
//! posted meanwhile is sent together.
//!
//! * A doorbell counts that finds earlier requests under way, or the last one ended without a
//!   completion: a small READ is answered before its doorbell returns. [`STREAK`] of them, within
//!   [`SPAN`], ask for the thread, which is the one that runs the send direction where softirq must
//!   not.
//! * The thread polls only while it is the only task that wants its CPU. It looks before each run.
//!   It is not preempted meanwhile: a preempted poller would let the ring wait, since nobody rings
//!   for it.
//! * No more than half of the CPUs poll at a time, whosever the rings are.
//! * A turn ends when nothing was posted for [`PATIENCE`], when less is posted than one request in
//!   [`WORTH`], with bulk data, when the CPU or the thread is wanted, and after [`TURN`] in any
//!   case.
//! * A hot ring for which no CPU is free is looked at by a timer ([`roce::ticks`]). The thread is
//!   asked for again from time to time. A ring for which there was no free CPU is timed at once
//!   when it becomes hot again, since such a thread may have to wait for a CPU for long.
//! * Whoever runs the send direction while it is polled leaves the ring with the flag "awake" set.
//!   The poller takes itself out first, and then makes a run, or has the present owner make one,
//!   which clears the flag and looks at the ring once more.

use super::engine::{
    Runner,
    ALL_TOLD, //
};
use crate::params;
use crate::prelude::*;
use rdma::work;
use roce::ticks::{
    Look,
    Ticks, //
};

/// So many more doorbells that find requests under way than [`IDLE`] times those that do not make a
/// ring hot.
const STREAK: u32 = 16;

/// What a doorbell weighs that finds nothing under way: a request and its answer in turn make no
/// ring hot, but one answer in a while to all that was sent is none of that.
const IDLE: u32 = 4;

/// The longest that a streak may take, in units of 1024 ns: 5 ms.
const SPAN: u64 = 5_000_000 >> 10;

/// So many doorbells are needed after a turn in which nothing was posted.
const IN_VAIN: u32 = 64;

/// So many are needed after a turn that was not worth it.
const LATER: u32 = 256;

/// So many are needed after a run has sent large messages in bulk.
const BULK: u32 = 4096;

/// A message of which a packet has so many bytes is a large one.
pub(super) const LARGE: u32 = 1024;

/// What a poller waits for the next request, nanoseconds. In an emulated machine, it takes about as
/// long until both CPUs run after one was woken.
const PATIENCE: u64 = 1_000_000;

/// What a turn may take before that is looked at, nanoseconds.
const CREDIT: u64 = 4_000_000;

/// One request in so many nanoseconds is worth a CPU that polls.
const WORTH: u64 = 200_000;

/// The longest turn of a poller, nanoseconds. RCU grace periods wait for it, since preemption is
/// off; an expedited one wants the CPU and so ends it at once.
const TURN: u64 = 20_000_000;

/// The half of [`Hot::missing`] that says how many are missing.
const MISSING: u32 = 0xffff;

/// The ring is rung for.
const COLD: u32 = 0;
/// The same; a thread was asked for that is to poll.
const ASKED: u32 = 1;
/// A thread polls.
const POLLED: u32 = 2;
/// A timer looks at the ring. Only the owner of the send direction goes back to doorbells.
const TIMED: u32 = 3;
/// The same; a thread was asked for that is to poll.
const TIMED_ASKED: u32 = 4;

/// CPUs that poll.
static POLLERS: Atomic<u32> = Atomic::new(0);

/// A CPU that polls, counted as long as this lives.
struct Poller;

impl Poller {
    /// So many may be.
    fn most() -> u32 {
        (work::online_cpus() >> 1).max(1)
    }

    /// There may be one more. A hint. Any context.
    fn is_possible() -> bool {
        // A poller there would be preempted.
        cfg!(not(CONFIG_PREEMPT_RT)) && POLLERS.load(Relaxed) < Self::most()
    }

    /// One more, unless there are enough. Any context.
    fn new() -> Option<Self> {
        let most = Self::most();
        let mut now = POLLERS.load(Relaxed);
        while now < most {
            match POLLERS.cmpxchg(now, now.wrapping_add(1), Relaxed) {
                Ok(_) => return Some(Poller),
                Err(other) => now = other,
            }
        }
        None
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        POLLERS.fetch_sub(1, Relaxed);
    }
}

/// Whether a send ring is hot.
pub(crate) struct Hot {
    /// [`COLD`], [`ASKED`], [`POLLED`], [`TIMED`] or [`TIMED_ASKED`].
    state: Atomic<u32>,
    /// Doorbells that are still to come before the ring is hot; in the upper half, all that
    /// came in the streak so far. A hint: threads that ring at the same time may count one twice.
    missing: Atomic<u32>,
    /// When the last [`STREAK`] of these began, in units of 1024 ns that come round after an hour;
    /// how long eight doorbells took, once the ring is hot.
    since: Atomic<u32>,
    /// 1: the last thread found no free CPU, or lost the one on which it polled. 0 again after a
    /// turn of the timer that ended in vain, and after a reset. A hint.
    crowded: Atomic<u32>,
}

/// The time, as [`Hot::since`].
fn stamp() -> u32 {
    (now_ns() >> 10) as u32
}

impl Hot {
    /// It is not.
    pub(super) fn new() -> Self {
        Hot {
            state: Atomic::new(COLD),
            missing: Atomic::new(STREAK),
            since: Atomic::new(0),
            crowded: Atomic::new(0),
        }
    }

    /// A poller will look at the ring after this call, or has a run made that finds it gone.
    #[inline]
    pub(crate) fn is_polled(&self) -> bool {
        self.state.load(Relaxed) == POLLED
    }

    /// Data were sent in bulk, in packets of up to `largest` bytes. Those of large messages are
    /// shared by the CPUs in another way.
    #[inline]
    pub(crate) fn note_bulk(&self, largest: u32) {
        if largest >= LARGE && self.missing.load(Relaxed) != BULK {
            self.missing.store(BULK, Relaxed);
        }
    }

    /// The queue pair is not connected, or not any more: the ring is not timed. The owner of the
    /// send direction.
    pub(super) fn stop_timed(&self) {
        if self.end_timed() {
            self.missing.store(STREAK, Relaxed);
        }
        self.crowded.store(0, Relaxed);
    }

    /// A timer looked at the ring; from now on it is rung for. False if none did. The owner of the
    /// send direction.
    fn end_timed(&self) -> bool {
        // The thread may turn the first into the second meanwhile.
        self.change(TIMED_ASKED, COLD) || self.change(TIMED, COLD)
    }

    /// From one state to another; false if it is in a third one.
    fn change(&self, from: u32, to: u32) -> bool {
        self.state.cmpxchg(from, to, Full).is_ok()
    }

    /// So many doorbells are needed after a turn that was worth it.
    fn next_streak(&self) -> u32 {
        match self.is_bulk() {
            true => BULK,
            false => STREAK,
        }
    }

    /// They were large messages lately.
    fn is_bulk(&self) -> bool {
        self.missing.load(Relaxed) & MISSING > LATER
    }

    /// A doorbell rang; `busy`: requests were under way, or the process was not told of the end of
    /// the last one. True when the caller is to have the thread run.
    fn rung(&self, busy: bool) -> bool {
        if self.state.load(Relaxed) != COLD {
            return false;
        }
        let word = self.missing.load(Relaxed);
        let missing = word & MISSING;
        let mut count = (word >> 16).wrapping_add(1).min(MISSING);
        if !busy {
            // Whoever has to wait longer does not come back sooner by a pause.
            if missing < STREAK {
                let more = missing.wrapping_add(IDLE).min(STREAK);
                self.missing.store(more | count << 16, Relaxed);
            }
            return false;
        }
        if missing == STREAK {
            self.since.store(stamp(), Relaxed);
            count = 1;
        }
        if missing > 1 {
            let fewer = missing.wrapping_sub(1);
            self.missing.store(fewer | count << 16, Relaxed);
            return false;
        }
        let span = stamp().wrapping_sub(self.since.load(Relaxed));
        if !params::poll_any_rate() && u64::from(span) > SPAN {
            self.missing.store(STREAK, Relaxed);
            return false;
        }
        // The new state is ordered behind this. Threads that ring at the same time may make it
        // wrong; any value will do.
        let eight = span.saturating_mul(8).checked_div(count).unwrap_or(span);
        self.since.store(eight, Relaxed);
        match self.crowded.load(Relaxed) {
            0 => self.change(COLD, ASKED),
            _ if Poller::is_possible() => self.change(COLD, TIMED_ASKED),
            _ => {
                // The next run that empties the ring begins with it.
                self.change(COLD, TIMED);
                false
            }
        }
    }
}

impl WireQp {
    /// A process has rung the doorbell, and no run was made for that yet. Process context.
    pub(super) fn note_doorbell(&self) {
        let busy = self.kind.is_reliable() && self.last_run.load(Relaxed) != ALL_TOLD;
        if params::poll_rings() && self.hot.rung(busy) {
            self.send_work.schedule_process();
        }
    }

    /// Polls the ring if that was asked for and the CPU has nothing else to do, or has a timer look
    /// at it; or goes back to doorbells, if there is nothing to look for. In the thread of the send
    /// work, after a run; it is one at a time.
    pub(super) fn poll_ring(&self) {
        let hot = &self.hot;
        if !matches!(hot.state.load(Relaxed), ASKED | TIMED_ASKED) {
            return;
        }
        if self.send_work.runs_again() {
            // That run answers.
            return;
        }
        // Until nobody relies on this thread any more.
        let _not_preempted = NoPreempt::new();
        let is_free = |_: &Poller| self.may_poll() && !self.send_work.is_awaited();
        let Some(_poller) = Poller::new().filter(is_free) else {
            if !self.may_look() {
                if !hot.is_bulk() {
                    hot.missing.store(LATER, Relaxed);
                }
                // If the ring is timed, the owner of the send direction finds that, too.
                let _ = hot.change(ASKED, COLD) || hot.change(TIMED_ASKED, TIMED);
                return;
            }
            hot.crowded.store(1, Relaxed);
            // The owner of the send direction may go back to doorbells meanwhile.
            if !hot.change(TIMED_ASKED, TIMED) && hot.change(ASKED, TIMED) {
                // The next run that empties the ring begins with it.
                self.kick_send();
            }
            return;
        };
        if !hot.change(TIMED_ASKED, POLLED) && !hot.change(ASKED, POLLED) {
            return;
        }
        hot.crowded.store(0, Relaxed);
        let next = self.poll_until_cold();
        // Ordered before the kick.
        match next {
            Some(missing) => {
                hot.missing.store(missing, Relaxed);
                hot.state.xchg(COLD, Full);
            }
            None => {
                hot.crowded.store(1, Relaxed);
                hot.state.xchg(TIMED, Full);
            }
        }
        self.kick_send();
    }

    /// Nobody else wants this CPU, and there is something to poll for. Preemption is off.
    fn may_poll(&self) -> bool {
        work::is_cpu_free() && self.may_look()
    }

    /// There is something to poll for, or to look at without a doorbell.
    fn may_look(&self) -> bool {
        self.state() == QpState::Rts && !self.sleeps() && !self.hot.is_bulk()
    }

    /// A run has fetched all that was posted. If the ring is timed: in how many nanoseconds the
    /// timer is to make the next run; no doorbell is needed until then. The owner of the send
    /// direction, whose `ticks` these are.
    pub(super) fn next_look(&self, ticks: &mut Ticks) -> Option<u64> {
        let hot = &self.hot;
        // Ordered before what was stored with it.
        if !matches!(hot.state.load(Acquire), TIMED | TIMED_ASKED) {
            ticks.stop();
            return None;
        }
        let eight = hot.since.load(Relaxed);
        let look = match self.producer().filter(|_| self.may_look()) {
            Some(producer) => ticks.look(stamp(), producer, eight, params::poll_times()),
            None => Look::Vain,
        };
        let missing = match look {
            Look::Tick(units) | Look::Search(units) => {
                self.device.count(Counter::RingTicks, 1);
                let is_search = matches!(look, Look::Search(_)) && Poller::is_possible();
                if is_search && hot.change(TIMED, TIMED_ASKED) {
                    self.send_work.schedule_process();
                }
                return Some(u64::from(units) << 10);
            }
            Look::Wait(units) => return Some(u64::from(units) << 10),
            Look::Rung => return None,
            Look::Vain => {
                // It may be worth polling for all that.
                hot.crowded.store(0, Relaxed);
                LATER
            }
            Look::Over => STREAK,
        };
        ticks.stop();
        if !hot.is_bulk() {
            hot.missing.store(missing, Relaxed);
        }
        // Not if the thread polls by now.
        hot.end_timed();
        None
    }

    /// Polls as long as it pays. Returns after how many doorbells it is tried again; none if the
    /// CPU is wanted for something else and a timer is to look at the ring. Preemption is off.
    fn poll_until_cold(&self) -> Option<u32> {
        let times = u64::from(params::poll_times().max(1));
        let begin = now_ns();
        let mut last = begin;
        // What the requests so far are worth.
        let mut worth = CREDIT;
        let mut seen = None;
        let mut is_left = false;
        while self.may_poll() {
            let posted = self.producer();
            let now = now_ns();
            if posted != seen || is_left {
                // The run fetches what was posted before. What it has no room for is fetched by
                // the run that makes room.
                if let (Some(posted), Some(seen)) = (posted, seen) {
                    self.device
                        .count(Counter::RingPolls, u64::from(posted != seen));
                    let requests = u64::from(posted.wrapping_sub(seen));
                    worth = worth.saturating_add(requests.saturating_mul(WORTH));
                }
                seen = posted;
                last = now;
                is_left = self.run_send(&mut None, Runner::Direct);
            } else {
                core::hint::spin_loop();
            }
            // In times of a kernel of normal speed.
            let spent = now.saturating_sub(begin) / times;
            if spent > worth {
                return Some(LATER);
            }
            if now.saturating_sub(last) / times > PATIENCE {
                return match worth > CREDIT {
                    true => Some(STREAK),
                    false => Some(IN_VAIN),
                };
            }
            if self.send_work.is_awaited() {
                break;
            }
            if spent > TURN || self.send_work.runs_again() {
                return Some(self.hot.next_streak());
            }
        }
        match self.may_look() {
            true => None,
            false => Some(self.hot.next_streak()),
        }
    }

    /// The producer index of the send ring, whatever user space has written there.
    fn producer(&self) -> Option<u32> {
        let (mem, base) = self.rings.sq.as_ref()?;
        mem.load_acquire(base.checked_add(abi::RING_USER_INDEX)?)
            .ok()
    }
}
