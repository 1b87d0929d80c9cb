// SPDX-License-Identifier: GPL-2.0
//! Tests of completion queues. The tests themselves act as the kernel's side of the ring.

use core::cell::Cell;
use core::ffi::c_char;

use super::*;
use crate::sys::{
    errno,
    EIO,
    ENOENT,
    EOVERFLOW, //
};

/// A CQ that no kernel knows.
fn cq() -> Box<Cq> {
    let ring = Consumer::new(Ring::anonymous(8, 64));
    // SAFETY: integers, raw pointers and optional functions: all zero is valid.
    let mut base: IbvCqEx = unsafe { core::mem::zeroed() };
    extended::fill(&mut base);
    let arm = Some(Locked::new(ring.ring().clone()));
    let state = State {
        ring,
        current: Cqe::default(),
    };
    Box::new(Cq {
        base: UnsafeCell::new(base),
        state: Locked::new(state),
        arm,
    })
}

/// The iterator over completions, as a program calls it.
struct Polling(*mut IbvCqEx);

impl Polling {
    fn start(&self) -> c_int {
        let mut attr = IbvPollCqAttr { comp_mask: 0 };
        // SAFETY: a live CQ of ours.
        unsafe { ((*self.0).start_poll.expect("filled"))(self.0, &mut attr) }
    }

    fn next(&self) -> c_int {
        // SAFETY: as above; started.
        unsafe { ((*self.0).next_poll.expect("filled"))(self.0) }
    }

    fn end(&self) {
        // SAFETY: as above; started.
        unsafe { ((*self.0).end_poll.expect("filled"))(self.0) }
    }
}

#[test]
fn an_iterator_tells_what_is_broken() {
    let cq = cq();
    let it = Polling(cq.base.get());
    assert_eq!(it.start(), ENOENT.0);
    for (flags, e) in [(abi::RING_OVERRUN, EOVERFLOW), (abi::RING_DEAD, EIO)] {
        {
            let state = cq.state.lock();
            assert!(state.ring.ring().kernel_put(7));
            state.ring.ring().set_flags(flags);
        }
        assert_eq!(it.start(), 0, "what came before is delivered");
        assert_eq!(it.next(), e.0);
        it.end();
        assert_eq!((it.start(), errno()), (e.0, e));
    }
}

/// Other devices' libraries take no lock to arm, so programs may do it then.
#[test]
fn arms_during_an_iteration() {
    let cq = cq();
    let it = Polling(cq.base.get());
    assert!(cq.state.lock().ring.ring().kernel_put(7));
    assert_eq!(it.start(), 0);
    // SAFETY: a live CQ of ours.
    assert_eq!(unsafe { req_notify_cq(it.0.cast(), 1) }, 0);
    it.end();
    assert_eq!(cq.state.lock().ring.ring().armed(), abi::ARM_SOLICITED);
}

std::thread_local! {
    /// How often the thread has yielded.
    static YIELDS: Cell<u32> = const { Cell::new(0) };
    /// The queue whose lock it must not hold then, or NULL.
    static POLLED: Cell<*const Cq> = const { Cell::new(core::ptr::null()) };
    /// How often it did.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Replaces `sched_yield()` of the C library for all tests of this crate, and calls it.
#[no_mangle]
extern "C" fn sched_yield() -> c_int {
    const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;
    YIELDS.set(YIELDS.get() + 1);
    // SAFETY: NULL, or the queue that `Polled::plainly` or `by_iterator` borrows meanwhile.
    if unsafe { POLLED.get().as_ref() }.is_some_and(|cq| cq.state.is_taken()) {
        HELD.set(HELD.get() + 1);
    }
    // SAFETY: the next object that has a function of this name is the C library.
    unsafe {
        let next = dlsym(RTLD_NEXT, c"sched_yield".as_ptr());
        core::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(next)()
    }
}

/// A CQ without a kernel, and both ways to poll it. Each says how many completions it found, or -1
/// for an error.
struct Polled(Box<Cq>);

// SAFETY: its functions are those of the verbs, which any thread may call.
unsafe impl Sync for Polled {}

impl Polled {
    /// `poll` must not hold the lock when the thread yields.
    fn unlocked(&self, poll: impl FnOnce() -> c_int) -> c_int {
        POLLED.set(&*self.0);
        let found = poll();
        POLLED.set(core::ptr::null());
        assert_eq!(HELD.get(), 0, "yields while it holds the lock");
        found
    }

    fn plainly(&self) -> c_int {
        let mut wc = core::mem::MaybeUninit::<IbvWc>::uninit();
        // SAFETY: a live CQ of ours, and room for one completion.
        self.unlocked(|| unsafe { poll_cq(self.0.base.get().cast(), 1, wc.as_mut_ptr()) })
    }

    fn by_iterator(&self) -> c_int {
        let it = Polling(self.0.base.get());
        match self.unlocked(|| it.start()) {
            0 => {
                it.end();
                1
            }
            e if e == ENOENT.0 => 0,
            _ => -1,
        }
    }

    /// The kernel's side adds a completion.
    fn add(&self) {
        assert!(self.0.state.lock().ring.ring().kernel_put(7));
    }
}

/// How many times the thread yields meanwhile.
fn yields(mut polls: impl FnMut()) -> u32 {
    let before = YIELDS.get();
    polls();
    YIELDS.get() - before
}

#[test]
fn yields_after_sixteen_polls_that_found_nothing() {
    let (one, other) = (Polled(cq()), Polled(cq()));
    for poll in [Polled::plainly, Polled::by_iterator] {
        let empty = |n| (0..n).for_each(|_| assert_eq!(poll(&one), 0));
        assert_eq!(yields(|| empty(15)), 0);
        assert_eq!(yields(|| empty(1)), 1);
        assert_eq!(yields(|| empty(48)), 3, "and again");
        // All queues that a thread polls count together, and so do both ways to poll them.
        empty(15);
        assert_eq!(yields(|| assert_eq!(other.plainly(), 0)), 1);
        empty(15);
        assert_eq!(yields(|| assert_eq!(other.by_iterator(), 0)), 1);
        // What is found in one of them begins a new count.
        empty(15);
        other.add();
        assert_eq!(yields(|| assert_eq!(poll(&other), 1)), 0);
        assert_eq!(yields(|| empty(15)), 0);
        assert_eq!(yields(|| empty(1)), 1);
    }
}

#[test]
fn each_thread_counts_its_own_polls() {
    let cq = Polled(cq());
    let empty = |n| (0..n).for_each(|_| assert_eq!(cq.plainly(), 0));
    empty(15);
    std::thread::scope(|s| {
        s.spawn(|| assert_eq!(yields(|| empty(15)), 0));
    });
    assert_eq!(yields(|| empty(1)), 1);
}

#[test]
fn does_not_yield_where_nothing_can_come() {
    let cq = Polled(cq());
    let none = || {
        // SAFETY: a live CQ of ours; nothing is written.
        let n = unsafe { poll_cq(cq.0.base.get().cast(), 0, core::ptr::null_mut()) };
        assert_eq!(n, 0);
    };
    assert_eq!(yields(|| (0..32).for_each(|_| none())), 0, "asked for");
    cq.0.state.lock().ring.ring().set_flags(abi::RING_OVERRUN);
    for poll in [Polled::plainly, Polled::by_iterator] {
        let broken = || (0..32).for_each(|_| assert_eq!(poll(&cq), -1));
        assert_eq!(yields(broken), 0);
    }
}
