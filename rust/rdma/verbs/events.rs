// SPDX-License-Identifier: GPL-2.0

//! Raising events of verbs objects, from any context, until the object is destroyed.
//!
//! ib_core frees a verbs object when its destroy operation returns. The object on the wire lives
//! longer, and packets use it in softirq. Therefore events go through a handle: a reference-counted
//! cell with a gate. The destroy operation closes the gate and waits for handlers that are running,
//! but never for an RCU grace period. From then on the handle does nothing.
//!
//! The handle also does nothing before the user of the object can be expected to know the object,
//! because users prepare the data of their handlers after the create call has returned.
//!
//! No lock of this layer is held while a handler runs. A handler may post to or poll any queue, and
//! events that result from this may nest. A completion handler may run wherever an interrupt may,
//! for example in code that holds a lock and has interrupts on.

pub(crate) mod waiting;

use self::waiting::WaitingEvents;
use crate::{
    bindings,
    vector::{
        pending::Pending,
        Vector, //
    },
};
use kernel::{
    impl_has_work,
    list::{
        impl_list_arc_safe,
        impl_list_item,
        AtomicTracker,
        ListLinks,
        TryNewListArc, //
    },
    new_work,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        Completion, //
    },
    workqueue::{
        Work,
        WorkItem, //
    },
};

/// Set in [`Gate::users`] once the gate is closed; makes the number negative.
const CLOSED: i32 = i32::MIN;

/// Lets users through from when it is opened until it is closed, and lets the closer wait for those
/// inside.
#[pin_data]
pub(crate) struct Gate {
    /// 1 once the gate was opened.
    opened: Atomic<i32>,
    users: Atomic<i32>,
    #[pin]
    idle: Completion,
}

impl Gate {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            opened: Atomic::new(0),
            users: Atomic::new(0),
            idle <- Completion::new(),
        })
    }

    /// Opens the gate. Any context.
    pub(crate) fn open(&self) {
        self.opened.store(1, ordering::Release);
    }

    /// Goes in; `None` before the gate is opened and once it is closed. Any context.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        if self.opened.load(ordering::Acquire) == 0 {
            return None;
        }
        let mut users = self.users.load(ordering::Relaxed);
        loop {
            if users < 0 || users == i32::MAX {
                return None;
            }
            match self
                .users
                .cmpxchg(users, users.wrapping_add(1), ordering::Acquire)
            {
                Ok(_) => return Some(Inside(self)),
                Err(now) => users = now,
            }
        }
    }

    /// Closes the gate for good and waits until everybody has left. Process context, by one task at
    /// a time; a second time does nothing.
    pub(crate) fn close(&self) {
        if self.users.load(ordering::Relaxed) < 0 {
            return;
        }
        if self.users.fetch_add(CLOSED, ordering::Full) != 0 {
            self.idle.wait_for_completion();
        }
    }
}

/// Proof that the gate was open and has not finished closing.
pub(crate) struct Inside<'a>(&'a Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if self.0.users.fetch_sub(1, ordering::Release) == CLOSED.wrapping_add(1) {
            self.0.idle.complete_all();
        }
    }
}

/// A pointer to a C object, valid while the gate next to it lets one in.
#[pin_data]
struct Cell<T> {
    object: *mut T,
    #[pin]
    gate: Gate,
}

// SAFETY: The pointer is used for calls that ib_core allows from any thread, and only inside the
// gate.
unsafe impl<T> Send for Cell<T> {}

// SAFETY: As above.
unsafe impl<T> Sync for Cell<T> {}

impl<T> Cell<T> {
    fn new(object: *mut T) -> impl PinInit<Self> {
        pin_init!(Self {
            object,
            gate <- Gate::new(),
        })
    }
}

/// What a completion queue's handles share.
#[pin_data]
pub(crate) struct CqCell {
    #[pin]
    cell: Cell<bindings::ib_cq>,
    /// Delivers the completion events.
    vector: Arc<Vector>,
    /// A [`Pending`].
    pending: Atomic<i32>,
    /// Place in the queue of the vector.
    #[pin]
    links: ListLinks,
    /// Whether it is in that queue.
    #[pin]
    tracker: AtomicTracker,
}

impl_list_arc_safe! {
    impl ListArcSafe<0> for CqCell {
        tracked_by tracker: AtomicTracker;
    }
}

impl_list_item! {
    impl ListItem<0> for CqCell {
        using ListLinks { self.links };
    }
}

impl CqCell {
    /// Changes the count of events that wait; what `change` says besides.
    fn count(&self, change: fn(Pending) -> (Pending, bool)) -> bool {
        let mut pending = self.pending.load(ordering::Relaxed);
        loop {
            let (next, says) = change(Pending(pending));
            match self.pending.cmpxchg(pending, next.0, ordering::Full) {
                Ok(_) => return says,
                Err(now) => pending = now,
            }
        }
    }

    /// Tells the user of the queue of one event; true if there are more to be told. For the
    /// vector's handler only.
    pub(crate) fn deliver(&self) -> bool {
        self.call();
        self.count(Pending::deliver)
    }

    fn call(&self) {
        let Some(_inside) = self.cell.gate.enter() else {
            return;
        };
        let cq = self.cell.object;
        // SAFETY: Inside the gate the queue exists. ib_core sets the handler before it lets
        // anybody attach a queue pair, and never changes it to an invalid one; the read is
        // volatile since that happens after the create operation.
        unsafe {
            if let Some(handler) = (&raw const (*cq).comp_handler).read_volatile() {
                handler(cq, (*cq).cq_context);
            }
        }
    }
}

/// Raises the events of a completion queue.
///
/// # Invariants
///
/// While the gate is open, `object` is a completion queue that ib_core has not freed, and `vector`
/// is one of its device's.
#[derive(Clone)]
pub struct CqHandle(Arc<CqCell>);

impl CqHandle {
    /// Makes the handle of a queue.
    ///
    /// # Safety
    ///
    /// [`CqHandle::revoke`] must be called before ib_core frees `cq`. `vector` must be one of the
    /// vectors of `cq`'s device.
    pub(crate) unsafe fn new(cq: *mut bindings::ib_cq, vector: Arc<Vector>) -> Result<Self> {
        let init = pin_init!(CqCell {
            cell <- Cell::new(cq),
            vector,
            pending: Atomic::new(0),
            links <- ListLinks::new(),
            tracker <- AtomicTracker::new(),
        });
        // INVARIANT: By contract.
        Ok(Self(Arc::pin_init(init, GFP_KERNEL_ACCOUNT)?))
    }

    /// The queue was created: events may pass.
    pub(crate) fn enable(&self) {
        self.0.cell.gate.open();
    }

    /// Ends the handle: waits for running handlers. Process context.
    pub(crate) fn revoke(&self) {
        self.0.cell.gate.close();
    }

    /// Tells the user of the queue that completions wait: as often as this is called, soon, by the
    /// handler of the queue's vector. Any context, interrupts off and any locks held included.
    pub fn completion(&self) {
        let Some(_inside) = self.0.cell.gate.enter() else {
            return;
        };
        if self.0.count(Pending::raise) {
            // SAFETY: Inside the gate the queue exists, hence its device (invariant), which drops
            // its vectors after the last queue was destroyed.
            unsafe { self.0.vector.deliver(self.0.clone()) };
        }
    }

    /// The CPU on which bulk work belongs that comes to the present CPU and completes in the queue:
    /// that of the queue's vector, as with hardware, or if nobody has chosen the affinity of the
    /// vector, another one if packets come to that. `None`: the present one. Softirq.
    pub fn bulk_cpu(&self) -> Option<u32> {
        let _inside = self.0.cell.gate.enter()?;
        // SAFETY: As in `completion`.
        unsafe { self.0.vector.bulk_cpu() }
    }

    /// Tells the user of the queue that it is broken (`IB_EVENT_CQ_ERR`). Any context.
    pub fn error(&self) {
        let Some(_inside) = self.0.cell.gate.enter() else {
            return;
        };
        let cq = self.0.cell.object;
        // SAFETY: Inside the gate the queue exists; `device` was set before it was created.
        unsafe {
            let Some(handler) = (*cq).event_handler else {
                return;
            };
            let mut event = bindings::ib_event {
                device: (*cq).device,
                event: bindings::ib_event_type_IB_EVENT_CQ_ERR,
                ..Default::default()
            };
            *event.element.cq.as_mut() = cq;
            handler(&mut event, (*cq).cq_context);
        }
    }
}

/// Asynchronous events of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum QpEvent {
    /// The queue pair cannot go on.
    Fatal = bindings::ib_event_type_IB_EVENT_QP_FATAL,
    /// The responder got an invalid request.
    RequestError = bindings::ib_event_type_IB_EVENT_QP_REQ_ERR,
    /// The responder got a request that access rights or keys forbid.
    AccessError = bindings::ib_event_type_IB_EVENT_QP_ACCESS_ERR,
    /// A packet came in while the queue pair was still ready to receive only.
    CommunicationEstablished = bindings::ib_event_type_IB_EVENT_COMM_EST,
    /// The send queue has drained (SQD).
    SendQueueDrained = bindings::ib_event_type_IB_EVENT_SQ_DRAINED,
    /// A queue pair on an SRQ has taken its last receive.
    LastWqeReached = bindings::ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED,
}

/// Every event, in the order in which a kernel user gets those that have waited together.
const QP_EVENTS: [QpEvent; 6] = [
    QpEvent::Fatal,
    QpEvent::RequestError,
    QpEvent::AccessError,
    QpEvent::CommunicationEstablished,
    QpEvent::SendQueueDrained,
    QpEvent::LastWqeReached,
];

#[pin_data]
struct QpCell {
    #[pin]
    cell: Cell<bindings::ib_qp>,
    listener: Listener,
    waiting: WaitingEvents,
    #[pin]
    work: Work<QpCell>,
}

impl_has_work! {
    impl HasWork<Self> for QpCell { self.work }
}

impl WorkItem for QpCell {
    type Pointer = Arc<QpCell>;

    fn run(this: Arc<QpCell>) {
        for event in this.waiting.take(QP_EVENTS) {
            let _ = this.deliver(event);
        }
    }
}

impl QpCell {
    /// False when there is nobody to be told.
    fn deliver(&self, kind: QpEvent) -> bool {
        let Some(_inside) = self.cell.gate.enter() else {
            return false;
        };
        let qp = self.cell.object;
        // SAFETY: Inside the gate the queue pair exists.
        if self.listener == Listener::Target && !unsafe { bindings::xrdma_ib_target_opened(qp) } {
            return false;
        }
        // SAFETY: Inside the gate the queue pair exists; `device` was set before it was created,
        // and so were the handler and its context, of a target before it was opened. The read is
        // volatile since ib_core exchanges a target's handler once.
        unsafe {
            let Some(handler) = (&raw const (*qp).event_handler).read_volatile() else {
                return false;
            };
            let mut event = bindings::ib_event {
                device: (*qp).device,
                event: kind as u32,
                ..Default::default()
            };
            *event.element.qp.as_mut() = qp;
            handler(&mut event, (*qp).qp_context);
        }
        true
    }
}

/// Whose the handler of a queue pair's events is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    /// A kernel user's, which may sleep: it is called from a work item.
    Kernel,
    /// That of uverbs, which does not sleep.
    Uverbs,
    /// That of uverbs for an XRC target, which ib_core goes on setting up when the create operation
    /// has returned.
    Target,
}

/// Raises the events of a queue pair.
///
/// # Invariants
///
/// While the gate is open, `object` is a queue pair that ib_core has not freed.
#[derive(Clone)]
pub struct QpHandle(Arc<QpCell>);

impl QpHandle {
    /// Makes the handle of a queue pair.
    ///
    /// # Safety
    ///
    /// [`QpHandle::revoke`] must be called before ib_core frees `qp`. `listener` must be
    /// [`Listener::Target`] for an XRC target whose events are enabled.
    pub(crate) unsafe fn new(qp: *mut bindings::ib_qp, listener: Listener) -> Result<Self> {
        let init = pin_init!(QpCell {
            cell <- Cell::new(qp),
            listener,
            waiting: WaitingEvents::new(),
            work <- new_work!("QpCell::work"),
        });
        // INVARIANT: By contract.
        Ok(Self(Arc::pin_init(init, GFP_KERNEL_ACCOUNT)?))
    }

    /// The user knows the queue pair: events may pass. In the reset state there are none, so the
    /// first modify operation tells.
    pub(crate) fn enable(&self) {
        self.0.cell.gate.open();
    }

    /// Ends the handle: waits for running handlers. Process context, once.
    pub(crate) fn revoke(&self) {
        self.0.cell.gate.close();
        if self.0.listener == Listener::Kernel {
            // SAFETY: The work item is initialised and lives as long as `self`. Events that come
            // from now on do not reach `enqueue`, so that none of our code is left on the system
            // work queue when the module goes.
            unsafe { bindings::xrdma_ib_flush_work(Work::raw_get(&raw const self.0.work)) };
        }
    }

    /// Tells the user of the queue pair; false when there is none that could be told: the queue
    /// pair is still being made, or goes. Any context; without locks that posting takes.
    ///
    /// Events of one kind that come before a kernel user was told once become one.
    pub fn event(&self, kind: QpEvent) -> bool {
        if self.0.listener != Listener::Kernel {
            return self.0.deliver(kind);
        }
        let Some(_inside) = self.0.cell.gate.enter() else {
            return false;
        };
        self.0.waiting.add(kind, self.0.clone());
        true
    }

    /// The pointer for `ib_wc.qp`; null after the queue pair was destroyed.
    ///
    /// ib_core's users must not use it after they have destroyed the queue pair, so that it may
    /// dangle by then is theirs.
    pub(crate) fn raw_for_wc(&self) -> *mut bindings::ib_qp {
        match self.0.cell.gate.enter() {
            Some(_inside) => self.0.cell.object,
            None => core::ptr::null_mut(),
        }
    }
}

/// Asynchronous events of a shared receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SrqEvent {
    /// The queue is broken.
    Error = bindings::ib_event_type_IB_EVENT_SRQ_ERR,
    /// Fewer receives than the limit are left; the limit is disarmed now.
    LimitReached = bindings::ib_event_type_IB_EVENT_SRQ_LIMIT_REACHED,
}

/// Raises the events of a shared receive queue.
///
/// # Invariants
///
/// While the gate is open, `object` is a queue that ib_core has not freed.
#[derive(Clone)]
pub struct SrqHandle(Arc<Cell<bindings::ib_srq>>);

impl SrqHandle {
    /// Makes the handle of a queue.
    ///
    /// # Safety
    ///
    /// [`SrqHandle::revoke`] must be called before ib_core frees `srq`.
    pub(crate) unsafe fn new(srq: *mut bindings::ib_srq) -> Result<Self> {
        // INVARIANT: By contract.
        Ok(Self(Arc::pin_init(Cell::new(srq), GFP_KERNEL_ACCOUNT)?))
    }

    /// The queue was created: events may pass.
    pub(crate) fn enable(&self) {
        self.0.gate.open();
    }

    /// Ends the handle: waits for running handlers. Process context, once.
    pub(crate) fn revoke(&self) {
        self.0.gate.close();
    }

    /// Tells the user of the queue. Any context; without locks that posting takes.
    pub fn event(&self, kind: SrqEvent) {
        let Some(_inside) = self.0.gate.enter() else {
            return;
        };
        let srq = self.0.object;
        // SAFETY: Inside the gate the queue exists; `device` and the handler were set before it
        // was created.
        unsafe {
            let Some(handler) = (*srq).event_handler else {
                return;
            };
            let mut event = bindings::ib_event {
                device: (*srq).device,
                event: kind as u32,
                ..Default::default()
            };
            *event.element.srq.as_mut() = srq;
            handler(&mut event, (*srq).srq_context);
        }
    }
}
