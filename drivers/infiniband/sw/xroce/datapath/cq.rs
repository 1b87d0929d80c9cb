// SPDX-License-Identifier: GPL-2.0

//! Completion queues: adding completions, polling and arming.
//!
//! `cq/completion.rs` is a completion, `cq/store.rs` the memory of a queue. `cq/resize.rs` changes
//! the size of a queue, `cq/moderation.rs` holds events back, and `cq/adaptive.rs` adapts the
//! moderation to the load.
//! `Documentation/infiniband/xroce-completion-vectors.rst` follows a completion to the file
//! descriptor of a completion channel.

mod adaptive;
mod completion;
mod moderation;
mod resize;
mod store;

use crate::limits::Charge;
use crate::prelude::*;
use kernel::sync::SetOnce;
use rdma::cq::Notify;
use rdma::wr::WcBuf;
use roce::event::{
    Act,
    Arm,
    Moderation, //
};

pub use adaptive::start as start_adapting;
pub use completion::{
    Completion,
    KernelCompletion, //
};
pub use moderation::ensure_alarm;
pub use store::new_ring;

use store::Store;

/// What the lock of a completion queue protects.
struct Inner {
    store: Store,
    /// Slots, a power of two.
    entries: u32,
    /// Next slot to fill; runs freely over 32 bits.
    producer: u32,
    /// A completion was lost.
    overrun: bool,
    /// Holds events back.
    moderation: Moderation,
    /// Changes `moderation`.
    adapting: Option<adaptive::Adapting>,
}

/// A completion was lost: the queue has overflowed, now or earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overrun;

/// What to do when the lock is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Raise {
    Nothing,
    /// The queue overflowed earlier.
    Lost,
    Completion,
    /// The event is held back until this time at most, `now_ns`. To be passed to
    /// [`WireCq::start_alarm`] under the lock.
    Later(u64),
    /// The queue overflowed; it was armed or not.
    Error {
        armed: bool,
    },
}

/// A completion queue, as queue pairs see it.
#[pin_data]
pub struct WireCq {
    #[pin]
    inner: SpinLockIrq<Inner>,
    handle: CqHandle,
    dead: Atomic<u32>,
    device: Arc<WireDevice>,
    /// What ends the wait of an event that is held back; there is none before events ever were.
    alarm: SetOnce<moderation::Alarm>,
    /// A process polls it.
    pub user: bool,
    _charge: Charge,
}

impl WireCq {
    /// Makes a queue for `entries` completions, a power of two: in the ring of a process, or of the
    /// kernel's own. Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM.
    pub fn new(
        device: &Arc<WireDevice>,
        ring: Option<Arc<RingMem>>,
        entries: u32,
        handle: CqHandle,
        charge: Charge,
    ) -> Result<Ref<Self>> {
        let user = ring.is_some();
        let inner = Inner {
            store: Store::new(ring, entries)?,
            entries,
            producer: 0,
            overrun: false,
            moderation: Moderation::default(),
            adapting: None,
        };
        Ref::pin_init(
            try_pin_init!(WireCq {
                inner <- new_spinlock_irq!(inner, "xroce cq"),
                handle,
                dead: Atomic::new(0),
                device: device.clone(),
                alarm: SetOnce::new(),
                user,
                _charge: charge,
            }? Error),
            GFP_ACCOUNT,
        )
    }

    /// Queue pairs are gone; what is in flight finds a dead queue from now on. Process context,
    /// sleeps.
    pub fn end(&self) {
        self.kill();
        self.stop_alarm();
        self.stop_adapting();
    }

    /// Puts a completion into the queue and raises its event; `qp` is what a kernel user finds in
    /// it. Any context. The event is delivered by the interrupt of the queue's vector. The handler
    /// of this interrupt may run inside this call if interrupts are on.
    ///
    /// When the queue overflows or has overflowed, nobody can learn of the completion any more, and
    /// the caller sees to it that its queue pair ends ([`WireQp::fail`]). The queue keeps no list
    /// of its queue pairs: each finds out when it wants to complete something.
    pub(crate) fn post_from(
        &self,
        completion: &Completion,
        qp: Option<&QpHandle>,
    ) -> Result<(), Overrun> {
        let raise = {
            let mut inner = self.inner.lock();
            let raise = inner.push(completion, qp);
            self.start_alarm(raise);
            raise
        };
        match raise {
            Raise::Nothing | Raise::Later(_) => {}
            Raise::Lost => return Err(Overrun),
            Raise::Completion => self.handle.completion(),
            Raise::Error { armed } => {
                // The queue is marked first: whoever gets the event must find a dead queue.
                if self.dead.xchg(1, Full) == 0 {
                    self.report_overrun();
                    if armed {
                        self.handle.completion();
                    }
                    self.handle.error();
                }
                return Err(Overrun);
            }
        }
        Ok(())
    }

    /// Counts and logs that the queue overflowed.
    fn report_overrun(&self) {
        self.device.count(Counter::CqOverrun, 1);
        if self.device.log.pass() {
            pr_info!(
                "{}: a completion queue overflowed, the user polls too late\n",
                self.device.name()
            );
        }
    }

    /// The queue overflowed or was destroyed; completions go nowhere. Any context.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Relaxed) != 0
    }

    /// The CPU on which bulk work belongs that comes to the present CPU and completes here; `None`:
    /// the present one. Softirq.
    pub(crate) fn bulk_cpu(&self) -> Option<u32> {
        self.handle.bulk_cpu()
    }

    /// `ib_poll_cq`. Any context.
    ///
    /// # Errors
    ///
    /// EINVAL for a process's queue, which the process polls itself.
    pub fn poll(&self, wcs: &mut WcBuf<'_>) -> Result {
        let mut inner = self.inner.lock();
        let (entries, producer) = (inner.entries, inner.producer);
        inner.store.poll(entries, producer, wcs)
    }

    /// `ib_req_notify_cq`; true when completions wait already and the caller wants to know. Any
    /// context.
    ///
    /// # Errors
    ///
    /// None at present; the signature is that of the operation.
    pub fn req_notify(&self, notify: Notify) -> Result<bool> {
        let wanted = match notify.solicited_only {
            true => Arm::Solicited,
            false => Arm::Next,
        };
        let mut inner = self.inner.lock();
        // A stronger arm stays.
        if inner.store.arm() < wanted {
            inner.store.set_arm(wanted);
        }
        Ok(notify.report_missed && inner.waiting() != 0)
    }

    /// Marks the queue dead: nothing is posted any more.
    fn kill(&self) {
        self.dead.store(1, Relaxed);
        self.inner.lock().store.mark(abi::RING_DEAD);
    }
}

impl Inner {
    /// Puts a completion into the queue; what to do about it once the lock is dropped.
    fn push(&mut self, completion: &Completion, qp: Option<&QpHandle>) -> Raise {
        if self.overrun {
            return Raise::Lost;
        }
        let (entries, producer) = (self.entries, self.producer);
        if self.store.push(entries, producer, completion, qp).is_none() {
            self.overrun = true;
            self.store.mark(abi::RING_OVERRUN);
            return Raise::Error {
                armed: self.store.take_arm(),
            };
        }
        self.producer = self.producer.wrapping_add(1);
        if let Some(adapting) = &mut self.adapting {
            adapting.completed();
        }
        if !self.store.arm().takes(completion.is_solicited()) {
            return Raise::Nothing;
        }
        let act = if !self.moderation.is_on() {
            Act::Raise
        } else if self.waiting() >= self.entries / 2 {
            // The user has to hear of it before the queue is full.
            self.moderation.reset();
            Act::Raise
        } else {
            self.moderation.arrived(now_ns)
        };
        self.raise(act)
    }

    /// Takes the arm if an event is due.
    fn raise(&mut self, act: Act) -> Raise {
        match act {
            Act::Nothing => Raise::Nothing,
            Act::Wait(ns) => Raise::Later(ns),
            Act::Raise if self.store.take_arm() => {
                if let Some(adapting) = &mut self.adapting {
                    adapting.raised();
                }
                Raise::Completion
            }
            Act::Raise => Raise::Nothing,
        }
    }

    /// Completions that wait.
    fn waiting(&self) -> u32 {
        self.store.waiting(self.producer)
    }
}
