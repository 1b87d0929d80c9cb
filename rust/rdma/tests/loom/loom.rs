// SPDX-License-Identifier: GPL-2.0

//! The orderings of the module and of the plug-in on a machine with weak memory, as loom has it: a
//! load may see any store that nothing has put behind it. `tools/vm/check-loom` runs this.
//!
//! Each test has the accesses of the code with their orderings; the transitions of the owner word
//! are the code of the module. Where two sides have a fence each, the test must fail if either of
//! them is left out: `lost` says so. loom takes sequentially consistent accesses for acquire and
//! release ones, so what depends on two of these (`set_user_index_and_look()` of the plug-in)
//! cannot be tested here. See Documentation/infiniband/xroce-ordering.rst.

#[path = "../../services/owner/word.rs"]
#[expect(dead_code, reason = "the models do not need all of it")]
mod word;

use loom::{
    cell::UnsafeCell,
    model::Builder,
    sync::{
        atomic::{
            fence,
            AtomicU32,
            Ordering::{
                AcqRel,
                Acquire,
                Relaxed,
                Release,
                SeqCst, //
            }, //
        },
        Arc, //
    },
    thread, //
};
use word::{
    Run,
    Word, //
};

/// Whether a fence is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fence {
    There,
    LeftOut,
}

impl Fence {
    fn run(self) {
        if self == Fence::There {
            fence(SeqCst);
        }
    }
}

/// Walks through all executions of `f`.
fn all(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

/// Some execution of `f` must panic.
fn lost(f: impl Fn() + Sync + Send + 'static) {
    let walk = std::panic::AssertUnwindSafe(|| all(f));
    assert!(
        std::panic::catch_unwind(walk).is_err(),
        "no fence is needed"
    );
}

/// `Owner` of services/owner.rs.
struct Owner<T> {
    state: AtomicU32,
    data: UnsafeCell<T>,
    fence: Fence,
}

// SAFETY: As the module's: it gives the data to one thread at a time.
unsafe impl<T: Send> Sync for Owner<T> {}
// SAFETY: As above.
unsafe impl<T: Send> Send for Owner<T> {}

impl<T> Owner<T> {
    fn new(data: T, fence: Fence) -> Self {
        Self {
            state: AtomicU32::new(0),
            data: UnsafeCell::new(data),
            fence,
        }
    }

    fn update(&self, f: impl Fn(Word) -> Option<Word>) -> Option<Word> {
        let old = self
            .state
            .fetch_update(SeqCst, SeqCst, |s| f(Word(s)).map(|w| w.0));
        self.fence.run();
        old.ok().map(Word)
    }

    fn kick(&self, f: impl Fn(&mut T)) {
        self.update(|w| Some(w.mark()));
        loop {
            if self.update(Word::take).is_none() {
                return;
            }
            // SAFETY: The owner, as loom checks.
            self.data.with_mut(|data| f(unsafe { &mut *data }));
            let old = self.update(|w| Some(w.release(Run::Idle)));
            if !old.is_some_and(|w| w.release(Run::Idle).is_marked()) {
                return;
            }
        }
    }

    fn is_owned(&self) -> bool {
        Word(self.state.load(SeqCst)).is_owned()
    }
}

/// What is left before a kick is seen by a run after it; nothing is used by two at a time.
#[test]
fn a_run_sees_what_was_left_before_the_kick() {
    all(|| {
        let owner = Arc::new(Owner::new([0; 2], Fence::There));
        let left = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let threads: Vec<_> = (0..2)
            .map(|i| {
                let (owner, left) = (owner.clone(), left.clone());
                thread::spawn(move || {
                    left[i].store(1, Relaxed);
                    owner.kick(|seen| {
                        for (seen, left) in seen.iter_mut().zip(left.iter()) {
                            *seen = left.load(Relaxed);
                        }
                    });
                })
            })
            .collect();
        for t in threads {
            t.join().unwrap();
        }
        // SAFETY: Nobody else is left.
        owner.data.with(|seen| assert_eq!(unsafe { *seen }, [1, 1]));
    });
}

/// `is_sending()` and `run_waiters()`: a note with an owner, who lets go.
fn note(owner: Fence, waiter: Fence) {
    let owner = Arc::new(Owner::new((), owner));
    let note = Arc::new(AtomicU32::new(0));
    assert!(owner.update(Word::try_take).is_some());
    let waiting = {
        let (owner, note) = (owner.clone(), note.clone());
        thread::spawn(move || {
            if !owner.is_owned() {
                return false;
            }
            let _ = note.compare_exchange(0, 7, SeqCst, SeqCst);
            waiter.run();
            owner.is_owned()
        })
    };
    owner.update(|w| Some(w.release(Run::Idle)));
    let woken = !owner.is_owned() && note.load(Relaxed) != 0;
    assert!(!waiting.join().unwrap() || woken, "the waiter is forgotten");
}

#[test]
fn a_waiter_is_not_forgotten() {
    all(|| note(Fence::There, Fence::There));
    lost(|| note(Fence::LeftOut, Fence::There));
    lost(|| note(Fence::There, Fence::LeftOut));
}

/// `push_user()` of cq/store.rs against `Ring::arm()` of the plug-in and the poll after it.
fn arm(kernel: Fence, user: Fence) {
    let index = Arc::new(AtomicU32::new(0));
    let armed = Arc::new(AtomicU32::new(0));
    let slot = Arc::new(UnsafeCell::new(0));
    let pushed = {
        let (index, armed, slot) = (index.clone(), armed.clone(), slot.clone());
        thread::spawn(move || {
            // SAFETY: The slot is the kernel's until the index says otherwise.
            slot.with_mut(|slot| unsafe { *slot = 5 });
            index.store(1, Release);
            kernel.run();
            armed.load(Relaxed) != 0 && armed.swap(0, SeqCst) != 0
        })
    };
    let _ = armed.compare_exchange(0, 1, SeqCst, Relaxed);
    user.run();
    let polled = index.load(Acquire) == 1;
    if polled {
        // SAFETY: Published.
        slot.with(|slot| assert_eq!(unsafe { *slot }, 5));
    }
    assert!(pushed.join().unwrap() || polled, "an event is lost");
}

#[test]
fn no_event_is_lost() {
    all(|| arm(Fence::There, Fence::There));
    lost(|| arm(Fence::LeftOut, Fence::There));
    lost(|| arm(Fence::There, Fence::LeftOut));
}

/// `clear_awake()` of qp/ring.rs against a post, with a fence where the plug-in has an exchange and
/// a load that are sequentially consistent.
fn doorbell(kernel: Fence, user: Fence) {
    const AWAKE: u32 = 1;
    let index = Arc::new(AtomicU32::new(0));
    let flags = Arc::new(AtomicU32::new(AWAKE));
    let looked = {
        let (index, flags) = (index.clone(), flags.clone());
        thread::spawn(move || {
            flags.fetch_and(!AWAKE, SeqCst);
            kernel.run();
            index.load(Acquire) == 1
        })
    };
    index.swap(1, SeqCst);
    user.run();
    let rings = flags.load(SeqCst) & AWAKE == 0;
    assert!(looked.join().unwrap() || rings, "a request is left behind");
}

#[test]
fn no_request_is_left_behind() {
    all(|| doorbell(Fence::There, Fence::There));
    lost(|| doorbell(Fence::LeftOut, Fence::There));
    lost(|| doorbell(Fence::There, Fence::LeftOut));
}

/// `Gated` of services/gated.rs: the writer has the data when no reader has it.
#[test]
fn a_gate_closes_behind_its_readers() {
    const OPEN: u32 = 1;
    const WRITING: u32 = 2;
    const READER: u32 = 4;
    all(|| {
        let state = Arc::new(AtomicU32::new(OPEN));
        let data = Arc::new(UnsafeCell::new(1));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (state, data) = (state.clone(), data.clone());
                thread::spawn(move || {
                    if state.fetch_add(READER, Acquire) & OPEN != 0 {
                        // SAFETY: Inside, as loom checks.
                        data.with(|data| assert_ne!(unsafe { *data }, 0));
                    }
                    state.fetch_sub(READER, Release);
                })
            })
            .collect();
        let mut before = state.load(Relaxed);
        while let Err(now) =
            state.compare_exchange(before, before & !OPEN | WRITING, Acquire, Relaxed)
        {
            before = now;
        }
        while state.load(Acquire) & !(OPEN | WRITING) != 0 {
            thread::yield_now();
        }
        // SAFETY: Nobody is inside, as loom checks.
        data.with_mut(|data| unsafe { *data = 2 });
        state.fetch_xor(OPEN | WRITING, Release);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

/// `xrdma_held_enter()` and `xrdma_held_wait()` of services/rcu/held.c, with a `Fence` for the
/// `smp_mb()` of each.
fn held(enter: Fence, wait: Fence) {
    let slot = Arc::new(AtomicU32::new(0));
    let entry = Arc::new(AtomicU32::new(1));
    let object = Arc::new(UnsafeCell::new(1));
    let user = {
        let (slot, entry, object) = (slot.clone(), entry.clone(), object.clone());
        thread::spawn(move || {
            slot.store(7, Release);
            enter.run();
            if entry.load(Acquire) != 0 {
                // SAFETY: Published, as loom checks.
                object.with(|object| assert_eq!(unsafe { *object }, 1));
            }
            slot.store(0, Release);
        })
    };
    entry.store(0, Release);
    wait.run();
    while slot.load(Acquire) == 7 {
        thread::yield_now();
    }
    // SAFETY: The caller frees it, and nobody uses it, as loom checks.
    object.with_mut(|object| unsafe { *object = 0 });
    user.join().unwrap();
}

#[test]
fn a_key_that_was_taken_away_is_not_in_use() {
    all(|| held(Fence::There, Fence::There));
    lost(|| held(Fence::LeftOut, Fence::There));
    lost(|| held(Fence::There, Fence::LeftOut));
}

/// `xrdma_held_enter()` and `xrdma_held_wait()` of services/rcu/held_rt.c, with a `Fence` for the
/// `smp_mb()` of each; `late` are those who were late, whom a wait looks for first.
fn counted(enter: Fence, wait: Fence, late: bool) {
    let users = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let now = Arc::new(AtomicU32::new(0));
    let entry = Arc::new(AtomicU32::new(1));
    let object = Arc::new(UnsafeCell::new(1));
    let user = {
        let (users, now) = (users.clone(), now.clone());
        let (entry, object) = (entry.clone(), object.clone());
        thread::spawn(move || {
            let of = &users[now.load(Relaxed) as usize];
            of.fetch_add(1, Relaxed);
            enter.run();
            if entry.load(Acquire) != 0 {
                // SAFETY: Counted, as loom checks.
                object.with(|object| assert_eq!(unsafe { *object }, 1));
            }
            of.fetch_sub(1, AcqRel);
        })
    };
    let drain = |users: &AtomicU32| {
        while users.load(Acquire) != 0 {
            thread::yield_now();
        }
    };
    let wait_for_users = |was: usize| {
        wait.run();
        if late {
            drain(&users[1 - was]);
        }
        now.store(1 - was as u32, Relaxed);
        drain(&users[was]);
    };
    // For another key.
    wait_for_users(0);
    entry.store(0, Release);
    wait_for_users(1);
    // SAFETY: The caller frees it, and nobody uses it, as loom checks.
    object.with_mut(|object| unsafe { *object = 0 });
    user.join().unwrap();
}

#[test]
fn a_key_that_was_taken_away_has_no_counted_users() {
    all(|| counted(Fence::There, Fence::There, true));
    lost(|| counted(Fence::LeftOut, Fence::There, true));
    lost(|| counted(Fence::There, Fence::LeftOut, true));
    lost(|| counted(Fence::There, Fence::There, false));
}
