// SPDX-License-Identifier: GPL-2.0

//! Deferred work, and the life of the services as a whole.
//!
//! C header: `include/linux/workqueue.h`.

mod step;

use core::{
    ffi::c_void,
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
    sync::atomic::{
        AtomicBool,
        AtomicPtr,
        Ordering, //
    },
};
use kernel::{
    bindings::workqueue_struct,
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use crate::{
    bindings,
    net::{
        icrc,
        Icrc, //
    },
    process::Process,
    rcu, //
};

pub(crate) use self::step::Tries;
pub use self::step::{
    has_waited,
    is_paused,
    part,
    step,
    unless, //
};

/// There are [`Services`], or some are just beginning or ending.
static CLAIMED: AtomicBool = AtomicBool::new(false);

/// The module's queue for runs that may sleep. Null when there are no [`Services`].
static RUN: AtomicPtr<workqueue_struct> = AtomicPtr::new(ptr::null_mut());

/// The module's queue for drops of objects, which thus wait for no run. Null when there are no
/// [`Services`].
static FREE: AtomicPtr<workqueue_struct> = AtomicPtr::new(ptr::null_mut());

/// The module's queue for what runs in softirq. Null when there are no [`Services`].
static BH: AtomicPtr<workqueue_struct> = AtomicPtr::new(ptr::null_mut());

/// The queue for drops, as long as objects may be made.
pub(crate) fn free_queue() -> Option<NonNull<workqueue_struct>> {
    NonNull::new(FREE.load(Ordering::Acquire))
}

/// What the other services stand on: the work queues, the hook into network namespaces and that
/// into CPU hotplug.
///
/// One per module; it is meant to be the *last* field of the module's structure, so that it is
/// dropped after everything that uses it. Dropping it waits until all objects whose last
/// [`Ref`](rcu::Ref) is gone are dropped.
///
/// After that the kernel calls nothing of the module's text any more. What would have it do so and
/// is still there, because it was leaked or comes later in the order of drops, ends with the
/// services: the link type with its devices, [notifiers](crate::net::NetdevNotifier), interrupts,
/// [timers](crate::timer::Timer), [work items](Work) and [`Adaptive`](crate::dim::Adaptive). They
/// do nothing from then on. A module whose services are leaked themselves stays in memory: its
/// removal does not end.
pub struct Services {
    _not_constructible: PhantomData<()>,
}

impl Services {
    /// Starts the services, of which those that send packets leave the ICRC to `I`. Process
    /// context, at module load.
    ///
    /// # Errors
    ///
    /// `EBUSY` when they run already; `ENOMEM`.
    pub fn start<I: Icrc>() -> Result<Self> {
        if CLAIMED.swap(true, Ordering::AcqRel) {
            return Err(EBUSY);
        }
        let started = Self::start_claimed::<I>();
        if started.is_err() {
            CLAIMED.store(false, Ordering::Release);
        }
        started
    }

    fn start_claimed<I: Icrc>() -> Result<Self> {
        let make = |kind| {
            // SAFETY: Process context; the call has no other requirements.
            unsafe { bindings::xrdma_workqueue_create(kind) }
        };
        let run = make(bindings::xrdma_queue_XRDMA_QUEUE_RUN);
        let bh = make(bindings::xrdma_queue_XRDMA_QUEUE_BH);
        let free = make(bindings::xrdma_queue_XRDMA_QUEUE_FREE);
        let stop = |e| {
            for wq in [run, bh, free] {
                if !wq.is_null() {
                    // SAFETY: Made above, and nothing is queued.
                    unsafe { bindings::xrdma_workqueue_destroy(wq) };
                }
            }
            Err(e)
        };
        if run.is_null() || bh.is_null() || free.is_null() {
            return stop(ENOMEM);
        }
        RUN.store(run, Ordering::Release);
        BH.store(bh, Ordering::Release);
        // Before anything can be made that is dropped later.
        FREE.store(free, Ordering::Release);
        // SAFETY: Process context, and done once: the caller has claimed the services. C hands
        // packets to `compute` that it has built or is about to cut, and that are its own then.
        let hooked = to_result(unsafe {
            bindings::xrdma_udp_init(Some(icrc::compute::<I>)) //
        })
        .and_then(|()| {
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
            FREE.store(ptr::null_mut(), Ordering::Release);
            BH.store(ptr::null_mut(), Ordering::Release);
            RUN.store(ptr::null_mut(), Ordering::Release);
            return stop(e);
        }
        Ok(Self {
            _not_constructible: PhantomData,
        })
    }

    /// Waits until no object is between its last reference and the end of its drop. Process
    /// context.
    ///
    /// A drop may drop the last references of other objects, which then wait for a grace period of
    /// their own; so this goes round until there are none.
    pub fn drain(&self) {
        if let (Some(run), Some(free)) = (NonNull::new(RUN.load(Ordering::Acquire)), free_queue()) {
            drain(run, free);
        }
    }
}

/// See [`Services::drain`]; the queues for runs and for drops exist during the call.
fn drain(run: NonNull<workqueue_struct>, free: NonNull<workqueue_struct>) {
    loop {
        // SAFETY: Process context. The first waits for runs, which drop references; the second
        // until every grace period that an object waits for has put its work on the queue for
        // drops, the third until that work is done.
        unsafe {
            bindings::xrdma_workqueue_flush(run.as_ptr());
            kernel::bindings::rcu_barrier();
            bindings::xrdma_workqueue_flush(free.as_ptr());
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
        // SAFETY: Process context; started by `start`, stopped once, here. Tunnels that are open
        // are closed; there are no devices any more that could raise the events of vectors.
        unsafe {
            bindings::xrdma_udp_exit();
            bindings::xrdma_ends_all(bindings::xrdma_ends_XRDMA_END_VECTORS);
            bindings::xrdma_vectors_exit();
            bindings::xrdma_ends_all(bindings::xrdma_ends_XRDMA_END_CALLS);
        }
        // What the last calls have dropped, and what goes with that: once the queue is no more to
        // be had, a drop that makes others necessary leaks them.
        self.drain();
        let run = RUN.swap(ptr::null_mut(), Ordering::AcqRel);
        let bh = BH.swap(ptr::null_mut(), Ordering::AcqRel);
        let free = FREE.swap(ptr::null_mut(), Ordering::AcqRel);
        // Whoever has found the queue to defer a drop did so in an RCU read section.
        rcu::synchronize();
        if let (Some(run), Some(free)) = (NonNull::new(run), NonNull::new(free)) {
            drain(run, free);
        }
        // Drops last: the others may still have made some.
        for wq in [bh, run, free] {
            if !wq.is_null() {
                // SAFETY: Ours since `start`. Every `Work` is disabled, every deferred drop has
                // been waited for, and no new one can come: the queue is no more to be had.
                unsafe { bindings::xrdma_workqueue_destroy(wq) };
            }
        }
        // SAFETY: Everything has ended.
        unsafe { bindings::xrdma_ends_finish() };
        CLAIMED.store(false, Ordering::Release);
    }
}

/// A call to a function, to be made soon in another context.
///
/// The function gets a number and finds its object by it, in a [`Table`](rcu::Table): the work has
/// no pointer that could outlive the object.
///
/// # Invariants
///
/// `ptr` is a valid `xrdma_work` of `_process`, owned by this value.
pub struct Work {
    ptr: NonNull<bindings::xrdma_work>,
    _process: Arc<Process>,
}

// SAFETY: The work item is not tied to a thread.
unsafe impl Send for Work {}

// SAFETY: All that can be done with it by reference is safe against itself and the rest in C.
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
    /// A work item of a queue pair of `process` that calls `f(cookie)`. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `ENODEV` without [`Services`].
    pub fn new(cookie: u64, f: fn(u64), process: Arc<Process>) -> Result<Self> {
        let bh = BH.load(Ordering::Acquire);
        let run = RUN.load(Ordering::Acquire);
        if bh.is_null() || run.is_null() {
            return Err(ENODEV);
        }
        // SAFETY: `call` takes its pointer argument for the `fn(u64)` that it is here. When
        // `Services` end, the item is disabled, or none is made any more, before the queues are
        // destroyed. The process is kept with the item.
        let ptr = unsafe {
            bindings::xrdma_work_alloc(
                bh,
                run,
                process.as_raw(),
                Some(call),
                f as *mut c_void,
                cookie,
            )
        };
        // INVARIANT: Just allocated.
        Ok(Self {
            ptr: NonNull::new(ptr).ok_or(ENOMEM)?,
            _process: process,
        })
    }

    /// Makes sure that the function starts at least once from now on, in softirq on this CPU; false
    /// when it was to start already, and once it has been stopped. Any context but NMI.
    #[inline]
    pub fn schedule(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_work_schedule(self.ptr.as_ptr()) }
    }

    /// As [`schedule_on`](Self::schedule_on), but other softirqs of this CPU have their turn
    /// before: packets that were sent over a virtual link are received, for example. The function
    /// may call this to start on another CPU next time. Of several calls before it starts, the last
    /// one decides. Softirq.
    #[inline]
    pub fn give_way(&self, cpu: u32) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_work_yield(self.ptr.as_ptr(), cpu) };
    }

    /// As [`schedule`](Self::schedule), on CPU `cpu` if that is online. If the function was to
    /// start already, or runs, it starts where it was to start, or runs. Any context but NMI.
    #[inline]
    pub fn schedule_on(&self, cpu: u32) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_work_schedule_on(self.ptr.as_ptr(), cpu) }
    }

    /// As [`schedule`](Self::schedule), but the function starts in a kernel thread, where it may
    /// sleep: when its turn comes, since few items of one process have a thread at a time. With
    /// items that are scheduled in both ways it may run twice at a time. Any context but NMI.
    pub fn schedule_process(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_work_schedule_thread(self.ptr.as_ptr()) }
    }

    /// Whether items of the process wait for a thread now. The function should not go on for long
    /// in its own then. A hint. Any context.
    #[inline]
    pub fn is_awaited(&self) -> bool {
        // SAFETY: By the type invariant. The process is kept with the item.
        unsafe { bindings::xrdma_work_is_awaited(self.ptr.as_ptr()) }
    }

    /// Whether the function starts again in a thread after the present run in one, because that was
    /// asked for meanwhile. Only an item that is stopped does not. From such a run.
    #[inline]
    pub fn runs_again(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_work_runs_again(self.ptr.as_ptr()) }
    }

    /// Takes starts that are still to come back, waits for those that are running, in either
    /// context, and lets none come any more. Process context, sleeps; not from the function itself.
    pub fn stop(&self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_work_stop(self.ptr.as_ptr()) }
    }
}

impl Drop for Work {
    /// Stops it, see [`Work::stop`].
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

/// The number of the present CPU; where preemption is on, it may be another one already. Any
/// context.
#[inline]
pub fn this_cpu() -> u32 {
    // SAFETY: Looks at the current CPU.
    unsafe { bindings::xrdma_this_cpu() }
}

/// Whether nothing but the current task wants this CPU. Process context, with preemption off: the
/// answer is about this CPU.
#[inline]
pub fn is_cpu_free() -> bool {
    // SAFETY: Looks at the current CPU.
    unsafe { bindings::xrdma_cpu_is_free() }
}

/// CPUs that are online now. Any context.
#[inline]
pub fn online_cpus() -> u32 {
    // SAFETY: Reads a counter.
    unsafe { bindings::xrdma_online_cpus() }
}

/// Lets another task run if one is due. Process context, sleeps.
pub fn cond_resched() {
    // SAFETY: Process context, by contract; the kernel checks it.
    unsafe { bindings::xrdma_cond_resched() }
}
