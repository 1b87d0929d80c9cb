// SPDX-License-Identifier: GPL-2.0
//! Tests of the `ibv_wr_*` interface, on a ring without a kernel.

use super::*;
use crate::lock::Locked;
use crate::qp::Limits;
use crate::ring::{
    Producer,
    Ring, //
};
use core::cell::UnsafeCell;

/// A QP on a ring of four slots whose kernel is always awake.
fn qp(kind: Kind) -> Box<Qp> {
    let ring = Ring::anonymous(4, 128);
    ring.set_flags(abi::RING_AWAKE);
    let limits = Limits {
        kind,
        max_sge: 2,
        max_inline: 64,
        signal_all: false,
    };
    // SAFETY: all zero is valid, see create.rs.
    let mut base: VerbsQp = unsafe { core::mem::zeroed() };
    fill(kind, &mut base, 0);
    base.qp.wr_id = 5;
    base.qp.qp_base.state = 3;
    base.qp.wr_flags = abi::SEND_SIGNALED.into();
    Box::new(Qp {
        base: UnsafeCell::new(base),
        kind,
        fd: -1,
        send: Some(Locked::new(SendQueue::new(Producer::new(ring), limits))),
        recv: None,
    })
}

fn ex(qp: &Qp) -> Ex {
    core::ptr::from_ref(qp).cast_mut().cast()
}

fn slot<T: crate::abi::Plain>(qp: &Qp, index: u32, offset: usize) -> T {
    let q = qp.send.as_ref().expect("queue").lock();
    q.ring.ring().peek(index, offset)
}

fn published(qp: &Qp) -> u32 {
    let q = qp.send.as_ref().expect("queue").lock();
    q.ring.ring().published()
}

#[test]
fn builds_an_xrc_send() {
    let qp = qp(Kind::XrcSend);
    let e = ex(&qp);
    let data = [1u8, 2, 3];
    // SAFETY: a live QP, and buffers that outlive the calls.
    unsafe {
        wr_start(e);
        wr_send_imm(e, 9);
        wr_set_xrc_srqn(e, 0x1234);
        wr_set_inline_data(e, data.as_ptr().cast_mut().cast(), 3);
        wr_rdma_write(e, 7, 0x8000);
        wr_set_xrc_srqn(e, 1);
        wr_set_sge(e, 3, 0x4000, 100);
        assert_eq!(wr_complete(e), 0);
    }
    assert_eq!(published(&qp), 2);
    let first: SendSlot = slot(&qp, 0, 0);
    assert_eq!(
        (first.wr_id, first.opcode, first.count, first.imm),
        (5, abi::WR_SEND_IMM, 3, 9)
    );
    assert_eq!(first.flags, abi::SEND_SIGNALED | abi::SEND_INLINE);
    // SAFETY: the member of this opcode.
    assert_eq!(unsafe { first.body.rdma.srqn }, 0x1234);
    assert_eq!(slot::<u8>(&qp, 0, SEND_SLOT_HDR + 2), 3);
    let second: SendSlot = slot(&qp, 1, 0);
    assert_eq!(
        (second.opcode, second.flags, second.count),
        (abi::WR_RDMA_WRITE, abi::SEND_SIGNALED, 1)
    );
    // SAFETY: the member of this opcode.
    let r = unsafe { second.body.rdma };
    assert_eq!((r.remote_addr, r.rkey, r.srqn), (0x8000, 7, 1));
    let sge: Sge = slot(&qp, 1, SEND_SLOT_HDR);
    assert_eq!((sge.addr, sge.length, sge.lkey), (0x4000, 100, 3));
}

#[test]
fn first_error_wins_and_posts_nothing() {
    let qp = qp(Kind::Rc);
    let e = ex(&qp);
    let big = [0u8; 65];
    // SAFETY: a live QP, and buffers that outlive the calls.
    unsafe {
        wr_start(e);
        wr_send(e);
        wr_send(e);
        wr_set_inline_data(e, big.as_ptr().cast_mut().cast(), 65);
        for _ in 0..8 {
            wr_send(e);
        }
        assert_eq!(wr_complete(e), EINVAL.0);
        wr_start(e);
        for _ in 0..5 {
            wr_send(e);
        }
        assert_eq!(wr_complete(e), ENOMEM.0);
        wr_start(e);
        wr_send(e);
        wr_abort(e);
        assert_eq!(published(&qp), 0);
        wr_start(e);
        for _ in 0..4 {
            wr_send(e);
        }
        assert_eq!(wr_complete(e), 0);
    }
    assert_eq!(published(&qp), 4);
}

#[test]
fn refused_before_rts() {
    for state in [IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR] {
        let mut qp = qp(Kind::Rc);
        qp.base.get_mut().qp.qp_base.state = state;
        let e = ex(&qp);
        // SAFETY: a live QP.
        unsafe {
            wr_start(e);
            wr_send(e);
            assert_eq!(wr_complete(e), EINVAL.0);
        }
        assert_eq!(published(&qp), 0);
    }
}

#[test]
fn foreign_opcodes_fail() {
    let qp = qp(Kind::Ud);
    let e = ex(&qp);
    // SAFETY: a live QP.
    unsafe {
        wr_start(e);
        wr_rdma_read(e, 1, 2);
        assert_eq!(wr_complete(e), EINVAL.0);
    }
    assert_eq!(supported(Kind::Ud, 0), 1 << 2 | 1 << 3);
}

/// In front of version 45 and 44 of rdma-core, `comp_mask` lies where the last functions are now.
#[test]
fn leaves_out_what_an_old_library_lacks() {
    let all = supported(Kind::Rc, 0);
    for (absent, flags) in [(0, 0), (1, 1 << 11), (2, 1 << 11 | 1 << 12)] {
        assert_eq!(all & !supported(Kind::Rc, absent), flags);
        // SAFETY: all zero is valid, see create.rs.
        let mut base: VerbsQp = unsafe { core::mem::zeroed() };
        fill(Kind::Rc, &mut base, absent);
        let words: *const usize = core::ptr::from_ref(&base).cast();
        let first = offset_of!(IbvQpEx, wr_atomic_write) / size_of::<usize>();
        // SAFETY: the last two functions, `comp_mask` and `xrcd`, initialised words all.
        let tail: [usize; 4] = core::array::from_fn(|i| unsafe { *words.add(first + i) });
        assert_eq!(tail[2 - absent], VERBS_QP_EX as usize);
        assert!(tail[..2 - absent].iter().all(|&f| f != 0));
        assert!(tail[3 - absent..].iter().all(|&f| f == 0));
    }
}
