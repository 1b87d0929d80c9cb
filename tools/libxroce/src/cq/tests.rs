// SPDX-License-Identifier: GPL-2.0
//! Tests of completion queues, with the kernel's side of the ring played here.

use super::*;
use crate::sys::{errno, EIO, ENOENT, EOVERFLOW};

/// A CQ that no kernel knows.
fn cq(shared: bool) -> Box<Cq> {
    let ring = Ring::anonymous(8, 64);
    // SAFETY: integers, raw pointers and optional functions: all zero is valid.
    let mut base: IbvCqEx = unsafe { core::mem::zeroed() };
    extended::fill(&mut base);
    let state = State {
        ring: Consumer::new(ring),
        current: Cqe::default(),
    };
    Box::new(Cq {
        base: UnsafeCell::new(base),
        state: Locked::with_sharing(state, shared),
        shared_arm: true,
    })
}

/// The iterator over completions, as a program calls it.
struct Iterator(*mut IbvCqEx);

impl Iterator {
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
    let cq = cq(true);
    let it = Iterator(cq.base.get());
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
