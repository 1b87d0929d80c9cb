// SPDX-License-Identifier: GPL-2.0

//! Tag matching on shared receive queues.
//!
//! Crate `roce` contains the rules (`roce::tm`). The files here contain the matching list of a
//! queue and the ring of operations on it (`ops.rs`), messages that are matched against the list
//! (`receive.rs`), and data that the device fetches itself (`rendezvous.rs`).
//!
//! One lock orders everything that happens to a list: operations, matches, and the completions that
//! report them. Software relies on that order: it must learn that a tag is taken before it learns
//! of a message that came later. Therefore a message of one packet is placed and completed under
//! the lock. A longer message that matches is announced under the lock and completed when all of it
//! has arrived. Messages from or to on-demand memory are handled like longer ones, because such
//! memory cannot be accessed under a lock.
//!
//! Order of locks: receive direction of a QP, list, SRQ, CQ.

mod ops;
pub(crate) mod receive;
pub(crate) mod rendezvous;

use crate::limits;
use crate::prelude::*;
use crate::qp::request::{
    filled,
    Sge, //
};
use crate::qp::ring::{
    CorruptRing,
    RingReader, //
};
use kernel::sync::lock::Guard;
use rdma::sync::BhBackend;
use roce::tm::{
    Credit,
    Entry,
    HashKey,
    Matcher, //
};

/// Operations that one run of a receive direction executes at its end.
const REST_BURST: u32 = 512;

/// An element of a tag's scatter list, as a user names it.
#[derive(Clone, Copy, Default)]
struct TagSge {
    addr: u64,
    len: u32,
    lkey: Key,
}

/// What a tag is for; the list has the tag itself.
#[derive(Clone, Copy, Default)]
struct Body {
    recv_wr_id: u64,
    num_sge: u32,
    sges: [TagSge; limits::MAX_TM_SGE as usize],
}

impl Body {
    fn list(&self) -> &[TagSge] {
        self.sges.get(..self.num_sge as usize).unwrap_or(&[])
    }
}

/// The ring of handles that are free again.
struct Freed {
    mem: Arc<RingMem>,
    /// A power of two.
    entries: u32,
    producer: u32,
}

impl Freed {
    /// Gives a handle back. The ring holds as many as there are, so that only a user who does not
    /// look at it loses some.
    fn push(&mut self, handle: u32) {
        let slot = self.producer & self.entries.wrapping_sub(1);
        let at = (slot as usize)
            .wrapping_mul(abi::TM_FREED_SIZE)
            .wrapping_add(abi::RING_HDR_SIZE);
        self.producer = self.producer.wrapping_add(1);
        // The offsets are inside the ring, so neither can fail.
        let _ = self.mem.copy_in(at, &handle.to_ne_bytes());
        let _ = self
            .mem
            .store_release(abi::RING_KERNEL_INDEX, self.producer);
    }
}

/// What the lock of a list protects.
struct Inner {
    matcher: Matcher<KVVec<Entry>, KVVec<u32>>,
    bodies: KVVec<Body>,
    ring: RingReader,
    /// Operations that messages may have executed before they are matched.
    credit: Credit,
    freed: Freed,
    /// Receive directions that are running, and will look at the ring before they rest.
    runners: u32,
    /// The last of them is about to rest, and has said so: doorbells are rung again. So many
    /// operations that came without one are left.
    owed: Option<u32>,
    /// The ring said something impossible; it is not looked at any more.
    corrupt: bool,
}

/// The tag-matching part of a shared receive queue.
#[pin_data]
pub struct Tm {
    /// Where everything completes.
    pub(crate) cq: Ref<WireCq>,
    /// Rings to mark dead when the queue goes.
    rings: [Arc<RingMem>; 2],
    #[pin]
    inner: SpinLockBh<Inner>,
}

/// The lock of a list, taken.
type TmGuard<'a> = Guard<'a, Inner, BhBackend>;

impl Tm {
    /// Makes the list of a queue for as many tags as the ring `freed` has handles for, at most
    /// `max_num_tags`. The entries are powers of two. Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM.
    pub fn new(
        max_num_tags: u32,
        cq: Ref<WireCq>,
        (ops, entries): (Arc<RingMem>, u32),
        (freed, freed_entries): (Arc<RingMem>, u32),
    ) -> Result<Arc<Self>> {
        let tags = max_num_tags as usize;
        let key = HashKey(rdma::random::random_u64(), rdma::random::random_u64());
        let inner = Inner {
            matcher: Matcher::new(filled(tags)?, filled(tags)?, key),
            bodies: filled(tags)?,
            ring: RingReader::new(ops.clone(), 0, entries, abi::TM_OP_STRIDE),
            credit: Credit::new(limits::MAX_TM_OPS),
            freed: Freed {
                mem: freed.clone(),
                entries: freed_entries,
                producer: 0,
            },
            runners: 0,
            owed: None,
            corrupt: false,
        };
        Arc::pin_init(
            try_pin_init!(Tm {
                cq,
                rings: [ops, freed],
                inner <- new_spinlock_bh!(inner, "xroce tags"),
            }? Error),
            GFP_ACCOUNT,
        )
    }

    /// A user's doorbell: executes what stood in the ring of operations when it was rung. EIO when
    /// that is corrupt. Process context.
    ///
    /// # Errors
    ///
    /// EIO when the ring is corrupt.
    pub fn doorbell(&self) -> Result {
        let mut inner = self.inner.lock();
        let waiting = inner.waiting().map_err(|_| EIO)?;
        self.run(inner, waiting, rdma::work::cond_resched)
            .map(drop)
            .map_err(|_| EIO)
    }

    /// Executes `left` of the operations in the ring, and returns with the lock. Others get it in
    /// between: who fills the ring must not keep them waiting.
    fn run<'a>(
        &'a self,
        mut inner: TmGuard<'a>,
        mut left: u32,
        pause: impl Fn(),
    ) -> Result<TmGuard<'a>, CorruptRing> {
        loop {
            let part = left.min(ops::BURST);
            left = left.wrapping_sub(part);
            if !inner.run(part, &self.cq)? || left == 0 {
                return Ok(inner);
            }
            drop(inner);
            pause();
            inner = self.inner.lock();
        }
    }

    /// What software has posted when a message comes takes part: executes it and returns with the
    /// lock. `None` when that is more than the messages have credit for: this one has to come
    /// again. Any context but interrupts off.
    fn run_for_message(&self) -> Result<Option<TmGuard<'_>>, CorruptRing> {
        let mut inner = self.inner.lock();
        let waiting = inner.waiting()?;
        let granted = inner.credit.grant(waiting);
        let inner = self.run(inner, granted, || ())?;
        Ok((granted == waiting).then_some(inner))
    }

    /// A receive direction that was awake rests: doorbells are needed again, unless others run.
    /// What came without one is executed, a part of it at a time. True when some is left: the
    /// direction must do this again. Any context but interrupts off.
    pub(crate) fn rest(&self) -> bool {
        self.rest_after(REST_BURST)
    }

    /// As [`Tm::rest`], but all at once. Process context.
    pub(crate) fn leave(&self) {
        self.rest_after(u32::MAX);
    }

    fn rest_after(&self, most: u32) -> bool {
        let mut inner = self.inner.lock();
        if inner.runners > 1 {
            inner.runners = inner.runners.wrapping_sub(1);
            return false;
        }
        let owed = inner.owed.unwrap_or_else(|| {
            inner.ring.clear_awake();
            u32::MAX
        });
        // What comes from here on is rung for. A corrupt ring is told about when it is needed next.
        let owed = inner.waiting().map_or(0, |waiting| waiting.min(owed));
        let now = owed.min(most);
        let left = owed.wrapping_sub(now);
        if left == 0 {
            inner.runners = 0;
            inner.owed = None;
        } else {
            inner.owed = Some(left);
        }
        let _ = self.run(inner, now, || ());
        left != 0
    }

    /// The queue is destroyed.
    pub(crate) fn kill(&self) {
        for ring in &self.rings {
            let _ = ring.fetch_or(abi::RING_KERNEL_FLAGS, abi::RING_DEAD);
        }
    }
}

impl From<TagSge> for Sge {
    fn from(sge: TagSge) -> Self {
        Sge {
            addr: sge.addr,
            len: sge.len,
            lkey: sge.lkey,
            kernel: None,
        }
    }
}
