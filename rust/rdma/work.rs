// SPDX-License-Identifier: GPL-2.0

//! Deferred work, and the life of the services as a whole.
//!
//! C header: `include/linux/workqueue.h`.

use core::{
    ffi::c_void,
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    },
};
use kernel::{
    bindings::workqueue_struct,
    error::to_result,
    prelude::*, //
};

use crate::{
    bindings,
    rcu, //
};

/// The module's queue for what may sleep. Null when there are no [`Services`].
static PROCESS: AtomicPtr<workqueue_struct> = AtomicPtr::new(ptr::null_mut());

/// The module's queue for what runs in softirq. Null when there are no [`Services`].
static BH: AtomicPtr<workqueue_struct> = AtomicPtr::new(ptr::null_mut());

/// The process queue.
pub(crate) fn queue() -> Option<NonNull<workqueue_struct>> {
    NonNull::new(PROCESS.load(Ordering::Acquire))
}

/// What the other services stand on: the work queues, the hook into network namespaces and that into
/// CPU hotplug.
///
/// One per module; it is meant to be the *last* field of the module's structure, so that it is dropped
/// after everything that uses it. Dropping it waits until all objects whose last [`Ref`](rcu::Ref) is
/// gone are dropped.
///
/// After that the kernel calls nothing of the module's text any more. What would have it do so and is
/// still there, because it was leaked or comes later in the order of drops, ends with the services: the
/// [link type](crate::link::Registration) with its devices, [notifiers](crate::net::NetdevNotifier),
/// [vectors](crate::vector::Vectors), [timers](crate::timer::Timer), [work items](Work) and
/// [`Adaptive`](crate::dim::Adaptive). They do nothing from then on. A module whose services are leaked
/// themselves stays in memory: its removal does not end.
pub struct Services {
    _not_constructible: PhantomData<()>,
}

impl Services {
    /// Starts the services. Process context, at module load.
    ///
    /// # Errors
    ///
    /// `EBUSY` when they run already; `ENOMEM`.
    pub fn start() -> Result<Self> {
        // SAFETY: Process context; the calls have no other requirements.
        let (process, bh) = unsafe {
            (
                bindings::xrdma_workqueue_create(false),
                bindings::xrdma_workqueue_create(true),
            )
        };
        let stop = |e| {
            for wq in [process, bh] {
                if !wq.is_null() {
                    // SAFETY: Made above, and nothing is queued.
                    unsafe { bindings::xrdma_workqueue_destroy(wq) };
                }
            }
            Err(e)
        };
        if process.is_null() || bh.is_null() {
            return stop(ENOMEM);
        }
        let claimed = PROCESS.compare_exchange(
            ptr::null_mut(),
            process,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if claimed.is_err() {
            return stop(EBUSY);
        }
        BH.store(bh, Ordering::Release);
        // SAFETY: Process context, and done once: PROCESS was claimed above.
        let hooked = to_result(unsafe { bindings::xrdma_udp_init() }).and_then(|()| {
            // SAFETY: As above.
            to_result(unsafe { bindings::xrdma_vectors_init() })
                .and_then(|()| {
                    // SAFETY: As above. Last: everything that ends with the services needs it.
                    to_result(unsafe { bindings::xrdma_ends_begin() }).inspect_err(|_| {
                        // SAFETY: Just started, and no vectors are made before the above.
                        unsafe { bindings::xrdma_vectors_exit() }
                    })
                })
                .inspect_err(|_| {
                    // SAFETY: Just started.
                    unsafe { bindings::xrdma_udp_exit() }
                })
        });
        if let Err(e) = hooked {
            BH.store(ptr::null_mut(), Ordering::Release);
            PROCESS.store(ptr::null_mut(), Ordering::Release);
            return stop(e);
        }
        Ok(Self {
            _not_constructible: PhantomData,
        })
    }

    /// Waits until no object is between its last reference and the end of its drop. Process context.
    ///
    /// A drop may drop the last references of other objects, which then wait for a grace period of
    /// their own; so this goes round until there are none.
    pub fn drain(&self) {
        if let Some(wq) = queue() {
            drain(wq);
        }
    }
}

/// See [`Services::drain`]; `wq` is the process queue and exists during the call.
fn drain(wq: NonNull<workqueue_struct>) {
    loop {
        // SAFETY: Process context. The first waits until every grace period that an object waits
        // for has put its work on the queue, the second until that work is done.
        unsafe {
            kernel::bindings::rcu_barrier();
            bindings::xrdma_workqueue_flush(wq.as_ptr());
        }
        if rcu::deferred_drops() == 0 {
            return;
        }
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        // SAFETY: Process context.
        unsafe {
            bindings::xrdma_ends_all(bindings::xrdma_ends_XRDMA_END_LINKS);
            bindings::xrdma_ends_all(bindings::xrdma_ends_XRDMA_END_NOTIFIERS);
        }
        self.drain();
        // SAFETY: Process context; started by `start`, stopped once, here. Tunnels that are open are
        // closed; there are no devices any more that could raise the events of vectors.
        unsafe {
            bindings::xrdma_udp_exit();
            bindings::xrdma_ends_all(bindings::xrdma_ends_XRDMA_END_VECTORS);
            bindings::xrdma_vectors_exit();
            bindings::xrdma_ends_all(bindings::xrdma_ends_XRDMA_END_CALLS);
        }
        let bh = BH.swap(ptr::null_mut(), Ordering::AcqRel);
        let process = PROCESS.swap(ptr::null_mut(), Ordering::AcqRel);
        // Whoever has found the queue to defer a drop did so in an RCU read section.
        rcu::synchronize();
        if let Some(wq) = NonNull::new(process) {
            drain(wq);
        }
        for wq in [bh, process] {
            if !wq.is_null() {
                // SAFETY: Ours since `start`. Every `Work` is disabled, every deferred drop has been
                // waited for, and no new one can come: the queue is no more to be had.
                unsafe { bindings::xrdma_workqueue_destroy(wq) };
            }
        }
        // SAFETY: Everything has ended.
        unsafe { bindings::xrdma_ends_finish() };
    }
}

/// Where a [`Work`] runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// In softirq on the CPU that scheduled it; must not sleep.
    Bh,
    /// In a kernel thread; may sleep.
    Process,
}

/// A call to a function, to be made soon in another context.
///
/// The function gets a number and finds its object by it, in a [`Table`](rcu::Table): the work has no
/// pointer that could outlive the object.
///
/// # Invariants
///
/// `ptr` is a valid `xrdma_work`, owned by this value.
pub struct Work {
    ptr: NonNull<bindings::xrdma_work>,
}

// SAFETY: The work item is not tied to a thread.
unsafe impl Send for Work {}

// SAFETY: `schedule` and `cancel` are safe against each other in C.
unsafe impl Sync for Work {}

/// Calls a function that was passed through C as a pointer.
///
/// # Safety
///
/// `f` is a `fn(u64)`.
pub(crate) unsafe extern "C" fn call(f: *mut c_void, cookie: u64) {
    // SAFETY: By the safety requirement; function and data pointers have one size on all
    // architectures of Linux.
    let f = unsafe { core::mem::transmute::<*mut c_void, fn(u64)>(f) };
    f(cookie);
}

impl Work {
    /// A work item that calls `f(cookie)`. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `ENODEV` without [`Services`].
    pub fn new(cookie: u64, f: fn(u64), kind: Kind) -> Result<Self> {
        let wq = match kind {
            Kind::Bh => BH.load(Ordering::Acquire),
            Kind::Process => PROCESS.load(Ordering::Acquire),
        };
        if wq.is_null() {
            return Err(ENODEV);
        }
        // SAFETY: `call` takes its pointer argument for the `fn(u64)` that it is here. When `Services`
        // end, the item is disabled, or none is made any more, before the queue is destroyed.
        let ptr = unsafe {
            bindings::xrdma_work_alloc(wq, kind == Kind::Bh, Some(call), f as *mut c_void, cookie)
        };
        let ptr = NonNull::new(ptr).ok_or(ENOMEM)?;
        // INVARIANT: Just allocated.
        Ok(Self { ptr })
    }

    /// Makes sure that the function starts at least once from now on; false when it was to start
    /// already, and once the [`Services`] have ended. Any context but NMI.
    #[inline]
    pub fn schedule(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_work_schedule(self.ptr.as_ptr()) }
    }

    /// As [`schedule`](Self::schedule), but the function starts in a kernel thread, whatever its kind.
    /// With items that are scheduled in both ways it may run twice at a time. Any context but NMI.
    pub fn schedule_process(&self) -> bool {
        let Some(wq) = queue() else {
            return false;
        };
        // SAFETY: By the type invariant; the queue is destroyed when every `Work` is disabled, which then
        // does not look at it.
        unsafe { bindings::xrdma_work_schedule_on(self.ptr.as_ptr(), wq.as_ptr()) }
    }

    /// Takes starts that are still to come back, and waits for those that are running, in either
    /// context; one that the function itself asks for meanwhile may be left if it runs in both.
    /// Process context, sleeps; not from the function itself.
    pub fn cancel(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_work_cancel(self.ptr.as_ptr()) }
    }
}

impl Drop for Work {
    /// Cancels, see [`Work::cancel`].
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody can schedule it any more, having no reference.
        unsafe { bindings::xrdma_work_free(self.ptr.as_ptr()) };
    }
}

/// Whether this is softirq, where nothing may sleep.
pub fn in_softirq() -> bool {
    // SAFETY: Looks at the current context.
    unsafe { bindings::xrdma_in_softirq() }
}

/// Whether a sleep is possible: neither softirq nor under a spinlock nor in an RCU read section.
pub fn may_sleep() -> bool {
    // SAFETY: Looks at the current context.
    unsafe { bindings::xrdma_may_sleep() }
}

/// Whether the current task is to be interrupted. Process context.
pub fn signal_pending() -> bool {
    // SAFETY: Looks at the current task.
    unsafe { bindings::xrdma_signal_pending() }
}

/// Lets another task run if one is due. Process context, sleeps.
pub fn cond_resched() {
    // SAFETY: Process context, by contract; the kernel checks it.
    unsafe { bindings::xrdma_cond_resched() }
}
