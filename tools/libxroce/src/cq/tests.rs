// SPDX-License-Identifier: GPL-2.0
//! Tests of completion queues. The tests themselves act as the kernel's side of the ring.

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
