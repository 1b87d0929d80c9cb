// SPDX-License-Identifier: GPL-2.0

//! Messages for a responder on the same host.

use super::*;

#[test]
fn same_host_messages_advance_as_on_the_wire() {
    let mut h = Host::rc();
    h.post(SendOp::Write, 600);
    h.post(SendOp::FetchAdd, 8);
    h.post(SendOp::Send, 8);
    let m = h.requester.local_next(h.now, &mut h.env).unwrap();
    assert_eq!((m.psn, m.packets), (Psn::new(PSN), 3));
    // One at a time, and not on the wire meanwhile.
    assert!(h.requester.local_next(h.now, &mut h.env).is_none());
    assert_eq!(h.numbers(), []);
    h.requester.local_done(Ok(LocalOk::Done), h.now, &mut h.env);
    let m = h.requester.local_next(h.now, &mut h.env).unwrap();
    assert_eq!(m.psn, Psn::new(PSN + 3));
    h.requester
        .local_done(Ok(LocalOk::Atomic(9)), h.now, &mut h.env);
    assert_eq!(h.env.buffers[1], 9u64.to_ne_bytes());
    assert_eq!(h.numbers(), [4]);
    // In flight on the wire: not the same-host way.
    h.post(SendOp::Send, 8);
    assert!(h.requester.local_next(h.now, &mut h.env).is_none());
    h.ack(4);
    assert!(h.requester.local_next(h.now, &mut h.env).is_some());
    assert_eq!(h.statuses(), [Success; 3]);
}

#[test]
fn same_host_failures() {
    let run = |e, want: &[WcStatus]| {
        let mut h = Host::rc();
        h.post(SendOp::Send, 8);
        h.post(SendOp::Send, 8);
        h.requester.local_next(h.now, &mut h.env).unwrap();
        h.requester.local_done(Err(e), h.now, &mut h.env);
        assert_eq!(h.statuses(), want);
        h
    };
    run(
        LocalError::Nak(NakCode::RemoteAccess),
        &[RemAccessErr, WrFlushErr],
    );
    run(
        LocalError::Nak(NakCode::InvalidRequest),
        &[RemInvReqErr, WrFlushErr],
    );
    run(
        LocalError::Nak(NakCode::RemoteOperational),
        &[RemOpErr, WrFlushErr],
    );
    run(LocalError::Local(LocProtErr), &[LocProtErr, WrFlushErr]);

    let mut h = run(LocalError::Rnr { timer_ns: 20 * US }, &[]);
    for _ in 0..2 {
        let t = h.requester.next_deadline().unwrap();
        assert_eq!(t, h.now + 20 * US);
        assert!(h.requester.local_next(t - 1, &mut h.env).is_none());
        h.now = t;
        h.requester.local_next(t, &mut h.env).unwrap();
        let e = Err(LocalError::Rnr { timer_ns: 20 * US });
        h.requester.local_done(e, h.now, &mut h.env);
    }
    assert_eq!(h.statuses(), [RnrRetryExcErr, WrFlushErr]);

    let mut h = run(LocalError::Silent, &[]);
    for _ in 0..3 {
        assert!(h.requester.local_next(h.now, &mut h.env).is_none());
        let t = h.requester.next_deadline().unwrap();
        assert_eq!(t, h.now + TIMEOUT);
        h.time(t);
        h.requester.local_next(h.now, &mut h.env).unwrap();
        h.requester
            .local_done(Err(LocalError::Silent), h.now, &mut h.env);
    }
    let t = h.requester.next_deadline().unwrap();
    h.time(t);
    assert_eq!(h.statuses(), [RetryExcErr, WrFlushErr]);
}

#[test]
fn same_host_message_survives_a_flush() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    h.requester.local_next(h.now, &mut h.env).unwrap();
    h.requester.flush(&mut h.env);
    h.requester.local_done(Ok(LocalOk::Done), h.now, &mut h.env);
    assert_eq!(h.statuses(), [WrFlushErr]);
}
