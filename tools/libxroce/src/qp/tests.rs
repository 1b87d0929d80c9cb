// SPDX-License-Identifier: GPL-2.0
//! Tests of posting, without a kernel behind the queue pair.

use super::*;
use crate::abi;
use crate::ring::Ring;
use crate::sys::Errno;
use crate::verbs::{
    IbvRecvWr,
    IbvSendWr, //
};

const EBADF: Errno = Errno(9);

/// A QP whose doorbell nobody hears.
fn qp(flags: u32) -> Qp {
    let limits = Limits {
        kind: Kind::Rc,
        max_sge: 1,
        max_inline: 16,
        signal_all: false,
    };
    let ring = || {
        let ring = Ring::anonymous(4, 64);
        ring.set_flags(flags);
        Producer::new(ring)
    };
    // SAFETY: integers, raw pointers and optional functions: all zero is valid.
    let mut base: VerbsQp = unsafe { core::mem::zeroed() };
    // RTS
    base.qp.qp_base.state = 3;
    Qp {
        base: UnsafeCell::new(base),
        kind: Kind::Rc,
        fd: -1,
        send: Some(Locked::new(SendQueue::new(ring(), limits))),
        recv: Some(Locked::new(RecvQueue::new(ring(), 1))),
    }
}

fn send_wr() -> IbvSendWr {
    // SAFETY: integers and raw pointers.
    let mut wr: IbvSendWr = unsafe { core::mem::zeroed() };
    wr.opcode = abi::WR_SEND.into();
    wr
}

/// Whoever is told of an error looks at the request that is named.
#[test]
fn a_doorbell_that_fails_names_a_request() {
    let qp = qp(abi::RING_FLUSH);
    let mut second = send_wr();
    let mut first = send_wr();
    first.next = &mut second;
    let mut bad = core::ptr::null_mut();
    // SAFETY: a QP and a list of ours.
    let ret = unsafe { post_send(qp.base.get().cast(), &mut first, &mut bad) };
    assert_eq!((ret, bad), (EBADF.0, core::ptr::addr_of_mut!(first)));

    let mut wr = IbvRecvWr {
        wr_id: 1,
        next: core::ptr::null_mut(),
        sg_list: core::ptr::null_mut(),
        num_sge: 0,
    };
    let mut bad = core::ptr::null_mut();
    // SAFETY: as above.
    let ret = unsafe { post_recv(qp.base.get().cast(), &mut wr, &mut bad) };
    assert_eq!((ret, bad), (EBADF.0, core::ptr::addr_of_mut!(wr)));
}

/// What failed before the doorbell is what is named.
#[test]
fn a_request_that_fails_is_named() {
    let qp = qp(0);
    let mut second = send_wr();
    second.num_sge = 2;
    let mut first = send_wr();
    first.next = &mut second;
    let mut bad = core::ptr::null_mut();
    // SAFETY: a QP and a list of ours.
    let ret = unsafe { post_send(qp.base.get().cast(), &mut first, &mut bad) };
    assert_eq!((ret, bad), (22, core::ptr::addr_of_mut!(second)));
}
