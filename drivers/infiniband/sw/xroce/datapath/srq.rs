// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues, basic and XRC.

use crate::limits::Charge;
use crate::pd::WirePd;
use crate::prelude::*;
use crate::qp::request::{
    KernelQueue,
    RecvHead,
    Sge, //
};
use crate::qp::ring::RingReader;
use crate::tables;
use crate::tm::Tm;
use crate::wr;
use rdma::gated::{
    Gate,
    Inside, //
};
use xrc::{
    Member,
    SharedQueue, //
};

/// Why no receive was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// None is posted.
    Empty,
    /// The ring or the slot makes no sense; the queue is broken from now on.
    Corrupt,
    /// The queue is broken.
    Broken,
    /// The queue was destroyed.
    Gone,
}

/// Of [`WireSrq::dead`]: the ring is corrupt.
const BROKEN: u32 = 1;
/// Of [`WireSrq::dead`]: the queue was destroyed.
const GONE: u32 = 2;

/// Where the receives are.
pub enum Queue {
    /// In the ring of a process.
    User(RingReader),
    /// In the kernel.
    Kernel(Arc<KernelQueue<RecvHead>>),
}

struct Inner {
    queue: Queue,
    /// Fewer receives than this raise the event; 0: none.
    limit: u32,
}

/// A shared receive queue, as packets see it.
#[pin_data]
pub struct WireSrq {
    /// SRQ number.
    pub srqn: Srqn,
    /// Protection domain of the receives, and of RDMA that names the queue.
    pub pd: PdId,
    /// The same, as an object.
    pub wire_pd: Arc<WirePd>,
    /// Where receives complete (XRC, tag matching).
    pub cq: Option<Ref<WireCq>>,
    member: Option<Member>,
    max_wr: Atomic<u32>,
    max_sge: u32,
    kernel: Option<Arc<KernelQueue<RecvHead>>>,
    /// 0, [`BROKEN`] or [`GONE`].
    dead: Atomic<u32>,
    /// Whoever uses the receives of an XRC SRQ is inside.
    users: Gate,
    handle: SrqHandle,
    /// Tag matching.
    pub tm: Option<Arc<Tm>>,
    device: Arc<WireDevice>,
    #[pin]
    inner: SpinLockIrq<Inner>,
    _charge: Charge,
}

/// What a shared receive queue is made of.
pub struct NewSrq<'a> {
    /// SRQ number.
    pub srqn: Srqn,
    /// Its device.
    pub device: &'a Arc<WireDevice>,
    /// Protection domain of the receives.
    pub pd: &'a Arc<WirePd>,
    /// Where receives complete (XRC, tag matching).
    pub cq: Option<Ref<WireCq>>,
    /// The place in the XRC domain.
    pub member: Option<Member>,
    /// Receives, at most.
    pub max_wr: u32,
    /// Elements of a receive, at most.
    pub max_sge: u32,
    /// Where the receives are.
    pub queue: Queue,
    /// Tag matching.
    pub tm: Option<Arc<Tm>>,
    /// Whom its events go to.
    pub handle: SrqHandle,
    /// What it counts as.
    pub charge: Charge,
}

impl SharedQueue for WireSrq {
    #[inline]
    fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }
}

impl WireSrq {
    /// Makes a queue without a limit. Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM.
    pub fn new(new: NewSrq<'_>) -> Result<Ref<Self>> {
        let kernel = match &new.queue {
            Queue::User(_) => None,
            Queue::Kernel(queue) => Some(queue.clone()),
        };
        let inner = Inner {
            queue: new.queue,
            limit: 0,
        };
        Ref::pin_init(
            try_pin_init!(WireSrq {
                srqn: new.srqn,
                pd: new.pd.id(),
                wire_pd: new.pd.clone(),
                cq: new.cq,
                member: new.member,
                max_wr: Atomic::new(new.max_wr),
                max_sge: new.max_sge,
                kernel,
                dead: Atomic::new(0),
                users: Gate::new(),
                handle: new.handle,
                tm: new.tm,
                device: new.device.clone(),
                inner <- new_spinlock_irq!(inner, "xroce srq"),
                _charge: new.charge,
            }? Error),
            GFP_ACCOUNT,
        )
    }

    /// The queue of a kernel user's receives.
    pub fn kernel(&self) -> Option<&KernelQueue<RecvHead>> {
        self.kernel.as_deref()
    }

    /// Receives, at most.
    pub fn max_wr(&self) -> u32 {
        self.max_wr.load(Relaxed)
    }

    /// Elements of a receive, at most.
    pub fn max_sge(&self) -> u32 {
        self.max_sge
    }

    /// The limit that is armed, or 0. Any context.
    pub fn limit(&self) -> u32 {
        self.inner.lock().limit
    }

    /// Arms the limit, and raises its event if it is reached already. EINVAL beyond the size. Any
    /// context.
    ///
    /// # Errors
    ///
    /// EINVAL for a limit beyond the size of the queue.
    pub fn set_limit(&self, limit: u32) -> Result {
        let reached = {
            let mut inner = self.inner.lock();
            if limit > self.max_wr() {
                return Err(EINVAL);
            }
            inner.set_limit(limit)
        };
        if reached {
            self.handle.event(SrqEvent::LimitReached);
        }
        Ok(())
    }

    /// Moves the receives of a process to the ring `mem` with `entries` slots, and sets the limit
    /// if there is a `new_limit`. EINVAL when more are posted, or when there is a limit above;
    /// nothing is changed then. Process context; the caller sees to it that there is one move at a
    /// time.
    ///
    /// # Errors
    ///
    /// EINVAL when more receives are posted than the new ring holds, when the limit is above its
    /// size, and for a kernel user's queue.
    pub fn move_to(&self, mem: &Arc<RingMem>, entries: u32, new_limit: Option<u32>) -> Result {
        // A look at the old ring from where it stands now; what is taken meanwhile is copied in
        // vain.
        let old = {
            let inner = self.inner.lock();
            match &inner.queue {
                Queue::User(ring) => ring.snapshot(),
                Queue::Kernel(_) => return Err(EINVAL),
            }
        };
        let end = old.copy_to(mem, entries)?;
        let mut inner = self.inner.lock();
        if new_limit.unwrap_or(inner.limit) > entries {
            return Err(EINVAL);
        }
        let Queue::User(ring) = &inner.queue else {
            return Err(EINVAL);
        };
        let ring = ring.moved(mem.clone(), entries, end)?;
        inner.queue = Queue::User(ring);
        self.max_wr.store(entries, Relaxed);
        let reached = match new_limit {
            Some(limit) => inner.set_limit(limit),
            None => false,
        };
        drop(inner);
        if reached {
            self.handle.event(SrqEvent::LimitReached);
        }
        Ok(())
    }

    /// No queue pair of ib_core's names the queue any more; packets may. When this returns, none
    /// writes to its buffers, and none completes there. Process context, sleeps.
    pub fn end(&self) {
        self.dead.store(GONE, Relaxed);
        if let Some(tables) = tables::get() {
            tables.srqs.remove(self.srqn);
        }
        // Runs that found it may still be writing to its buffers; they wait for no memory any more.
        self.users.close();
        if let Some(tm) = &self.tm {
            tm.kill();
        }
    }

    /// Takes the oldest receive. `sges` has room for [`MAX_SGE`](crate::limits::MAX_SGE) elements.
    /// Any context; raises the limit event when that is due.
    pub(crate) fn take(&self, head: &mut RecvHead, sges: &mut [Sge]) -> Result<(), Taken> {
        match self.dead.load(Relaxed) {
            0 => {}
            BROKEN => return Err(Taken::Broken),
            _ => return Err(Taken::Gone),
        }
        let (taken, limit) = {
            let mut inner = self.inner.lock();
            let taken = inner.take(self.max_sge, head, sges);
            // An empty queue counts too: a limit may be armed while nothing is posted.
            (taken, inner.limit_reached())
        };
        if limit {
            self.handle.event(SrqEvent::LimitReached);
        }
        if taken == Err(Taken::Corrupt) {
            self.fail();
        }
        taken
    }

    /// The buffers may be written, and completions made, as long as the value is there; `None` when
    /// the queue was destroyed. Any context.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        self.users.enter()
    }

    /// Broken or destroyed. Any context.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Relaxed) != 0
    }

    /// Destroyed. Any context.
    pub(crate) fn is_gone(&self) -> bool {
        self.dead.load(Relaxed) == GONE
    }

    /// The ring is corrupt: nothing is taken any more.
    pub fn fail(&self) {
        if self.dead.cmpxchg(0, BROKEN, Full).is_ok() {
            if self.device.log.pass() {
                pr_info!(
                    "{}: the ring of shared receive queue {} is corrupt\n",
                    self.device.name(),
                    self.srqn.get()
                );
            }
            self.handle.event(SrqEvent::Error);
        }
    }
}

impl Inner {
    fn take(&mut self, max_sge: u32, head: &mut RecvHead, sges: &mut [Sge]) -> Result<(), Taken> {
        match &mut self.queue {
            Queue::User(ring) => {
                match ring.available() {
                    Ok(0) => return Err(Taken::Empty),
                    Ok(_) => {}
                    Err(_) => {
                        // The one before has completed; which one fails now nobody knows.
                        *head = RecvHead::default();
                        return Err(Taken::Corrupt);
                    }
                }
                let room = sges.len().min(max_sge as usize);
                let list = sges.get_mut(..room).ok_or(Taken::Corrupt)?;
                let decoded = wr::copy_recv(ring, head, list);
                ring.advance();
                ring.publish(ring.next());
                decoded.map_err(|_| Taken::Corrupt)
            }
            Queue::Kernel(queue) => {
                if !queue.take(head, sges) {
                    return Err(Taken::Empty);
                }
                queue.retire(1);
                Ok(())
            }
        }
    }

    fn available(&self) -> u32 {
        match &self.queue {
            Queue::User(ring) => ring.available().unwrap_or(0),
            Queue::Kernel(queue) => queue.available(),
        }
    }

    /// Arms the limit; true when it is reached already.
    fn set_limit(&mut self, limit: u32) -> bool {
        self.limit = limit;
        self.limit_reached()
    }

    /// The limit was armed and is reached: disarms it.
    fn limit_reached(&mut self) -> bool {
        if self.limit != 0 && self.available() < self.limit {
            self.limit = 0;
            return true;
        }
        false
    }
}
