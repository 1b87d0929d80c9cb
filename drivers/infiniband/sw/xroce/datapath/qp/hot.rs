// SPDX-License-Identifier: GPL-2.0

//! Rings that are polled for a while instead of rung for.
//!
//! A process that posts one request after the other, and waits for none of them, makes a system
//! call for each, and does all the work on its own CPU. Such a ring is *hot*. A kernel thread polls
//! it if a CPU has nothing else to do, and user space is told that no doorbell is needed. What was
//! posted meanwhile is sent together.
//!
//! * A doorbell that finds earlier requests under way counts. [`STREAK`] of them in a row ask for
//!   the thread, which is the one that runs the send direction where softirq must not.
//! * The thread polls only while it is the only task that wants its CPU, so it takes no time from
//!   anybody. It is not preempted meanwhile: a preempted poller would let the ring wait, since
//!   nobody rings for it. It looks at what else wants the CPU each time.
//! * It ends when nothing was posted for [`PATIENCE`] nanoseconds, and after [`TURN`] in any case:
//!   few threads run for one process at a time, and others may wait for theirs.
//! * Whoever runs the send direction while it is polled leaves the ring with the flag "awake" set.
//!   The poller takes itself out first, and then makes a run, or has the present owner make one,
//!   which clears the flag and looks at the ring once more.

use super::engine::Runner;
use crate::params;
use crate::prelude::*;
use rdma::work;

/// So many more doorbells that find requests under way than [`IDLE`] times those that do not make a
/// ring hot.
const STREAK: u32 = 16;

/// What a doorbell weighs that finds nothing under way: a request and its answer in turn make no
/// ring hot, but one answer in a while to all that was sent is none of that.
const IDLE: u32 = 4;

/// So many are needed after a thread found no idle CPU.
const REFUSED: u32 = 256;

/// So many are needed after a run has sent bulk data.
const BULK: u32 = 4096;

/// What a poller waits for the next request, nanoseconds. In an emulated machine, it takes about as
/// long until both CPUs run after one was woken.
const PATIENCE: u64 = 1_000_000;

/// The longest turn of a poller, nanoseconds. RCU grace periods wait for it, since preemption is
/// off; an expedited one wants the CPU and so ends it at once.
const TURN: u64 = 20_000_000;

/// Nobody polls.
const COLD: u32 = 0;
/// A thread was asked for.
const ASKED: u32 = 1;
/// A thread polls.
const POLLED: u32 = 2;

/// Whether a send ring is hot.
pub(crate) struct Hot {
    /// [`COLD`], [`ASKED`] or [`POLLED`].
    state: Atomic<u32>,
    /// Doorbells that are still to come before a thread is asked for. A hint: threads that ring
    /// at the same time may count one twice.
    missing: Atomic<u32>,
}

impl Hot {
    /// It is not.
    pub(super) fn new() -> Self {
        Hot {
            state: Atomic::new(COLD),
            missing: Atomic::new(STREAK),
        }
    }

    /// A poller will look at the ring after this call, or has a run made that finds it gone.
    #[inline]
    pub(crate) fn is_polled(&self) -> bool {
        self.state.load(Relaxed) == POLLED
    }

    /// Bulk data were sent, which the CPUs share in another way.
    #[inline]
    pub(super) fn note_bulk(&self) {
        if self.missing.load(Relaxed) != BULK {
            self.missing.store(BULK, Relaxed);
        }
    }

    /// A doorbell rang; `busy`: requests were under way. True when the caller is to have the thread
    /// run.
    fn rung(&self, busy: bool) -> bool {
        let missing = self.missing.load(Relaxed);
        if !busy {
            // Whoever was refused does not come back sooner by a pause.
            if missing < STREAK {
                let more = missing.wrapping_add(IDLE).min(STREAK);
                self.missing.store(more, Relaxed);
            }
            return false;
        }
        if missing > 1 {
            self.missing.store(missing.wrapping_sub(1), Relaxed);
            return false;
        }
        self.state.load(Relaxed) == COLD && self.state.cmpxchg(COLD, ASKED, Full).is_ok()
    }
}

impl WireQp {
    /// A process has rung the doorbell, and no run was made for that yet. Process context.
    pub(super) fn note_doorbell(&self) {
        // Bulk data are shared by the CPUs in another way.
        let busy = self.kind.is_reliable()
            && self.unpaced.load(Relaxed) == 0
            && !self.send_home.is_somewhere();
        if params::poll_rings() && self.hot.rung(busy) {
            self.send_work.schedule_process();
        }
    }

    /// Polls the ring if that was asked for and the CPU has nothing else to do. In the thread of
    /// the send work, after a run; it is one at a time.
    pub(super) fn poll_ring(&self) {
        if self.hot.state.load(Relaxed) != ASKED {
            return;
        }
        // Until nobody relies on this thread any more.
        let _not_preempted = NoPreempt::new();
        let missing = match self.may_poll() {
            true => {
                self.hot.state.store(POLLED, Relaxed);
                self.poll_until_cold();
                match self.send_home.is_somewhere() {
                    true => BULK,
                    false => STREAK,
                }
            }
            false => REFUSED,
        };
        self.hot.missing.store(missing, Relaxed);
        // Ordered before the kick.
        self.hot.state.xchg(COLD, Full);
        self.kick_send();
        // What is bulk goes on where the answers come, not where this thread was.
        if missing == BULK {
            self.send_home.leave();
        }
    }

    /// Nobody else wants this CPU, and there is something to poll for. Preemption is off.
    fn may_poll(&self) -> bool {
        work::is_cpu_free()
            && self.state() == QpState::Rts
            && !self.sleeps()
            && !self.send_home.is_somewhere()
    }

    /// Polls as long as it pays. Preemption is off.
    fn poll_until_cold(&self) {
        let begin = rdma::timer::now_ns();
        let mut last = begin;
        let mut seen = None;
        while self.may_poll() {
            let posted = self.producer();
            let now = rdma::timer::now_ns();
            if posted != seen {
                // The run fetches what was posted before. What it has no room for is fetched by
                // the run that makes room.
                self.device
                    .count(Counter::RingPolls, u64::from(seen.is_some()));
                seen = posted;
                last = now;
                if self.run_send(&mut None, Runner::Direct) {
                    seen = None;
                }
            } else {
                if now.wrapping_sub(last) > PATIENCE {
                    return;
                }
                core::hint::spin_loop();
            }
            if now.wrapping_sub(begin) > TURN || self.send_work.others_wait() {
                return;
            }
        }
    }

    /// The producer index of the send ring, whatever user space has written there.
    fn producer(&self) -> Option<u32> {
        let (mem, base) = self.rings.sq.as_ref()?;
        mem.load_acquire(base.checked_add(abi::RING_USER_INDEX)?)
            .ok()
    }
}
