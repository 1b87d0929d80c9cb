// SPDX-License-Identifier: GPL-2.0

//! Requests that are refused for good.

use super::*;

#[test]
fn wrong_lengths() {
    let cases: &[(&[u8], &[usize])] = &[
        (&[0x00], &[0]),              // SEND first, empty
        (&[0x00], &[255]),            // short
        (&[0x00], &[257]),            // long
        (&[0x00, 0x01], &[256, 255]), // middle short
        (&[0x00, 0x02], &[256, 0]),   // last empty
        (&[0x00, 0x02], &[256, 257]), // last long
        (&[0x04], &[257]),            // only long
    ];
    for (ops, lens) in cases {
        for xrc in [false, true] {
            let mut p = if xrc { Peer::xrc() } else { Peer::rc() };
            let base = if xrc { 0xa0 } else { 0 };
            let n = ops.len();
            for i in 0..n {
                let raw = Raw::new(ops[i] + base, PSN + i as u32)
                    .data(lens[i])
                    .srqn(SRQN);
                if i + 1 < n {
                    p.expect_silence(&raw);
                } else {
                    // A receive was taken by the first packet, if that was good.
                    let event = if n == 1 { Some(QpEvent::ReqErr) } else { None };
                    p.expect_end(&raw, INVALID, event);
                    let errors = if n == 1 { 0 } else { 1 };
                    assert_eq!(p.env.errors.len(), errors);
                    assert!(p
                        .env
                        .errors
                        .iter()
                        .all(|e| e.status == WcStatus::RemInvReqErr));
                }
            }
        }
    }
}

#[test]
fn write_lengths_against_the_announced_one() {
    let write = |op, psn, len| Raw::new(op, psn).remote(RKEY_WRITE, VA_WRITE, len);
    let end = |p: &mut Peer, raw: &Raw| p.expect_end(raw, INVALID, Some(QpEvent::ReqErr));
    end(&mut Peer::rc(), &write(0x0a, PSN, 9).data(8));
    end(&mut Peer::rc(), &write(0x0a, PSN, 8).data(9));
    end(&mut Peer::rc(), &write(0x06, PSN, 256).data(256));
    end(&mut Peer::rc(), &write(0x06, PSN, 0x8000_0001).data(256));
    let mut p = Peer::rc();
    p.expect_silence(&write(0x06, PSN, 600).data(256));
    end(&mut p, &Raw::new(0x08, PSN + 1).data(256)); // ends too early
    let mut p = Peer::rc();
    p.expect_silence(&write(0x06, PSN, 512).data(256));
    end(&mut p, &Raw::new(0x07, PSN + 1).data(256)); // does not end
    let mut p = Peer::rc();
    p.expect_silence(&write(0x06, PSN, 300).data(256));
    end(&mut p, &Raw::new(0x08, PSN + 1).data(45)); // ends too late
}

#[test]
fn wrong_order_of_operations() {
    let cases: &[&[u8]] = &[
        &[0x01],       // middle without first
        &[0x02],       // last without first
        &[0x07],       // WRITE middle without first
        &[0x00, 0x00], // first in a message
        &[0x00, 0x04], // only in a message
        &[0x00, 0x07], // WRITE middle in a SEND
        &[0x00, 0x0c], // READ in a message
        &[0x00, 0x13], // atomic in a message
        &[0x06, 0x01], // SEND middle in a WRITE
        &[0x06, 0x06],
    ];
    for ops in cases {
        let mut p = Peer::rc();
        for (i, op) in ops.iter().enumerate() {
            let raw = Raw::new(*op, PSN + i as u32)
                .remote(RKEY_WRITE, VA_WRITE, 1000)
                .data(256);
            if i + 1 < ops.len() {
                p.expect_silence(&raw);
            } else {
                let has_receive = ops[0] == 0x00 && ops.len() > 1;
                p.expect_end(&raw, INVALID, (!has_receive).then_some(QpEvent::ReqErr));
            }
        }
    }
}

#[test]
fn wrong_keys_and_ranges() {
    let end = |raw: &Raw| Peer::rc().expect_end(raw, ACCESS, Some(QpEvent::AccessErr));
    end(&Raw::new(0x0a, PSN).remote(1, VA_WRITE, 4).data(4));
    end(&Raw::new(0x0a, PSN)
        .remote(RKEY_WRITE, VA_WRITE - 1, 4)
        .data(4));
    end(&Raw::new(0x06, PSN)
        .remote(RKEY_WRITE, VA_WRITE + 1, WRITE_LEN as u32)
        .data(256));
    end(&Raw::new(0x0c, PSN).remote(1, VA_READ, 4));
    end(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, READ_LEN as u32 + 1));
    end(&Raw::new(0x0c, PSN).remote(RKEY_READ, u64::MAX - 1, 4));
    end(&Raw::new(0x13, PSN).remote(1, VA_ATOMIC, 0));
    end(&Raw::new(0x14, PSN).remote(RKEY_ATOMIC, VA_ATOMIC + 0x1000, 0));
    end(&Raw::new(0x1c, PSN).remote(1, VA_WRITE, 4));
    end(&Raw::new(0x1d, PSN).remote(1, VA_ATOMIC, 8).data(8));
}

#[test]
fn memory_that_goes_in_the_middle_of_a_write() {
    let mut p = Peer::rc();
    p.expect_silence(
        &Raw::new(0x06, PSN)
            .remote(RKEY_WRITE, VA_WRITE, 300)
            .data(256),
    );
    p.env.trouble.write = true;
    p.expect_end(
        &Raw::new(0x08, PSN + 1).data(44),
        ACCESS,
        Some(QpEvent::AccessErr),
    );
}

#[test]
fn rights_of_the_qp() {
    let bare = |raw: &Raw| {
        Peer::with(Service::Rc, Access::default(), 4).expect_end(
            raw,
            INVALID,
            Some(QpEvent::ReqErr),
        )
    };
    bare(&Raw::new(0x0a, PSN).remote(RKEY_WRITE, VA_WRITE, 4).data(4));
    bare(
        &Raw::new(0x06, PSN)
            .remote(RKEY_WRITE, VA_WRITE, 300)
            .data(256),
    );
    bare(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 4));
    bare(&Raw::new(0x13, PSN).remote(RKEY_ATOMIC, VA_ATOMIC, 0));
    bare(&Raw::new(0x14, PSN).remote(RKEY_ATOMIC, VA_ATOMIC, 0));
    bare(&Raw::new(0x1c, PSN).remote(RKEY_WRITE, VA_WRITE, 4));
    bare(
        &Raw::new(0x1d, PSN)
            .remote(RKEY_ATOMIC, VA_ATOMIC, 8)
            .data(8),
    );
    // Of FLUSH, each placement is a right of its own.
    let flush = |feth| {
        Raw::new(0x1c, PSN)
            .remote(RKEY_WRITE, VA_WRITE, 4)
            .feth(feth)
    };
    let global = Access {
        flush_persistent: false,
        ..Access::ALL
    };
    let persistent = Access {
        flush_global: false,
        ..Access::ALL
    };
    for (access, feth) in [(global, 2), (global, 3), (persistent, 1), (persistent, 3)] {
        let mut p = Peer::with(Service::Rc, access, 4);
        p.expect_end(&flush(feth), INVALID, Some(QpEvent::ReqErr));
        assert!(p.env.flushes.is_empty());
    }
    for (access, feth) in [(global, 1), (persistent, 2)] {
        let mut p = Peer::with(Service::Rc, access, 4);
        p.send(&flush(feth));
        assert_eq!(p.env.flushes.len(), 1);
        assert_eq!(p.env.fatal, 0);
    }
    // They can be given and taken while connected.
    let mut p = Peer::rc();
    p.responder.update(Access::default(), 2, 4);
    p.expect_end(
        &Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 4),
        INVALID,
        Some(QpEvent::ReqErr),
    );
}

#[test]
fn malformed_reads_and_atomics() {
    let end = |raw: &Raw| Peer::rc().expect_end(raw, INVALID, Some(QpEvent::ReqErr));
    for op in [0x13, 0x14] {
        for off in 1..8 {
            end(&Raw::new(op, PSN).remote(RKEY_ATOMIC, VA_ATOMIC + off, 0));
        }
        end(&Raw::new(op, PSN).remote(RKEY_ATOMIC, VA_ATOMIC, 0).data(4));
    }
    end(&Raw::new(0x1d, PSN)
        .remote(RKEY_ATOMIC, VA_ATOMIC + 4, 8)
        .data(8));
    end(&Raw::new(0x1d, PSN)
        .remote(RKEY_ATOMIC, VA_ATOMIC, 8)
        .data(4));
    end(&Raw::new(0x1d, PSN)
        .remote(RKEY_ATOMIC, VA_ATOMIC, 4)
        .data(8));
    end(&Raw::new(0x1c, PSN).remote(RKEY_WRITE, VA_WRITE, 8).data(4));
    end(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 8).data(4));
    end(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 0x8000_0001));
    let mut none = Peer::with(Service::Rc, Access::ALL, 0);
    none.expect_end(
        &Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 8),
        INVALID,
        Some(QpEvent::ReqErr),
    );
}

#[test]
fn more_reads_than_agreed() {
    let mut p = Peer::with(Service::Rc, Access::ALL, 2);
    let read = |psn| Raw::new(0x0c, psn).remote(RKEY_READ, VA_READ, 8);
    p.send(&read(PSN));
    p.send(&read(PSN + 1));
    p.send(&read(PSN + 2));
    let a = p.answers();
    assert_eq!(a.len(), 3);
    assert_eq!(a[2].syndrome, Some(Syndrome::Nak(INVALID)));
    assert_eq!(p.env.fatal, 1);
    // One after the other they are welcome.
    let mut p = Peer::with(Service::Rc, Access::ALL, 2);
    for i in 0..10 {
        p.send(&read(PSN + i));
        assert_eq!(p.answers().len(), 1);
    }
    assert_eq!(p.env.fatal, 0);
}

#[test]
fn what_was_agreed_about_reads_changes() {
    let mut p = Peer::with(Service::Rc, Access::ALL, 4);
    let read = |psn| Raw::new(0x0c, psn).remote(RKEY_READ, VA_READ, 8);
    for i in 0..3 {
        p.send(&read(PSN + i));
        assert_eq!(p.answers().len(), 1);
    }
    // Only one is kept now; what was kept before can still be repeated until
    // another one comes.
    p.responder.update(Access::ALL, 2, 1);
    p.send(&read(PSN));
    assert_eq!(p.answers().len(), 1);
    p.send(&read(PSN + 3));
    assert_eq!(p.answers().len(), 1);
    p.expect_silence(&read(PSN + 2));
    p.send(&read(PSN + 3));
    assert_eq!(p.answers().len(), 1);
    // Again more, in places that wrap.
    p.responder.update(Access::ALL, 2, 3);
    for i in 4..9 {
        p.send(&read(PSN + i));
    }
    assert_eq!(p.answers().len(), 4);
    assert_eq!(p.env.fatal, 1);
    let mut p = Peer::with(Service::Rc, Access::ALL, 4);
    p.responder.update(Access::ALL, 2, 0);
    p.send(&read(PSN));
    assert_eq!(p.answers()[0].syndrome, Some(Syndrome::Nak(INVALID)));
}

#[test]
fn faults_of_the_receive() {
    let cases = [
        (
            Trouble {
                receive: true,
                ..Trouble::default()
            },
            OPERATIONAL,
            WcStatus::LocQpOpErr,
        ),
        (
            Trouble {
                protection: true,
                ..Trouble::default()
            },
            OPERATIONAL,
            WcStatus::LocProtErr,
        ),
        (
            Trouble {
                capacity: Some(7),
                ..Trouble::default()
            },
            INVALID,
            WcStatus::LocLenErr,
        ),
    ];
    for (trouble, code, status) in cases {
        for xrc in [false, true] {
            let mut p = if xrc { Peer::xrc() } else { Peer::rc() };
            p.env.trouble = trouble;
            let op = if xrc { 0xa4 } else { 0x04 };
            p.expect_end(&Raw::new(op, PSN).srqn(SRQN).data(8), code, None);
            assert_eq!(p.env.errors.len(), 1);
            assert_eq!(p.env.errors[0].status, status);
        }
        // In the middle of a message; and on UC, without a word.
        let mut p = Peer::rc();
        p.expect_silence(&Raw::new(0x00, PSN).data(256));
        p.env.trouble = trouble;
        if status != WcStatus::LocQpOpErr {
            p.expect_end(&Raw::new(0x02, PSN + 1).data(8), code, None);
            assert_eq!(p.env.errors[0].status, status);
        }
        let mut p = Peer::uc();
        p.env.trouble = trouble;
        p.expect_silence(&Raw::new(0x24, PSN).data(8));
        assert_eq!(p.env.errors[0].status, status);
        assert_eq!(p.env.fatal, 1);
    }
}

#[test]
fn queue_that_is_broken() {
    let broken = Trouble {
        broken: true,
        ..Trouble::default()
    };
    let mut p = Peer::rc();
    p.env.trouble = broken;
    p.expect_end(
        &Raw::new(0x04, PSN).data(8),
        OPERATIONAL,
        Some(QpEvent::Fatal),
    );
    assert_eq!((p.env.taken, p.env.errors.len()), (0, 0));
    let mut p = Peer::uc();
    p.env.trouble = broken;
    p.expect_silence(&Raw::new(0x24, PSN).data(8));
    assert_eq!(p.env.events[1..], [QpEvent::Fatal]);
    assert_eq!((p.env.fatal, p.env.taken), (1, 0));
}

#[test]
fn completion_that_is_lost() {
    let overrun = Trouble {
        overrun: true,
        ..Trouble::default()
    };
    let imm = Raw::new(0x0b, PSN + 1)
        .remote(RKEY_WRITE, VA_WRITE, 4)
        .data(4);
    for raw in [Raw::new(0x04, PSN + 1).data(8).ask(), imm] {
        let mut p = Peer::rc();
        p.send(&Raw::new(0x04, PSN).data(8));
        p.env.trouble = overrun;
        // What was received before is acknowledged with that, and this is not.
        p.expect_end(&raw, OPERATIONAL, Some(QpEvent::Fatal));
        assert_eq!(p.env.received.len(), 1);
        assert_eq!(p.env.errors[0].status, WcStatus::LocQpOpErr);
    }
    let mut p = Peer::uc();
    p.env.trouble = overrun;
    p.expect_silence(&Raw::new(0x24, PSN).data(8));
    assert_eq!(p.env.events[1..], [QpEvent::Fatal]);
    assert_eq!(p.env.fatal, 1);
    // An abort ends the receive all the same.
    let mut p = Peer::rc();
    p.expect_silence(&Raw::new(0x00, PSN).data(256));
    p.env.trouble = overrun;
    p.responder.abort(&mut p.env);
    assert_eq!(p.env.errors[0].status, WcStatus::WrFlushErr);
    assert!(p.env.current.is_none());
}

#[test]
fn key_that_cannot_be_invalidated() {
    let mut p = Peer::rc();
    p.env.trouble.invalidate = true;
    p.expect_end(&Raw::new(0x17, PSN).data(8), ACCESS, None);
    assert_eq!(p.env.errors[0].status, WcStatus::LocAccessErr);
}

#[test]
fn memory_of_a_read_that_goes() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1000));
    p.responder.poll_response(0).unwrap();
    p.responder.poll_response(0).unwrap();
    p.responder.response_fault(&mut p.env);
    let a = p.answers();
    assert_eq!(a.len(), 1);
    assert_eq!(a[0].syndrome, Some(Syndrome::Nak(ACCESS)));
    assert_eq!(a[0].psn, PSN + 1);
    assert_eq!(p.env.fatal, 1);
    assert_eq!(p.env.events[1..], [QpEvent::AccessErr]);
}

#[test]
fn memory_of_a_repeated_read_that_goes() {
    let mut p = Peer::rc();
    let read = Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1000);
    p.send(&read);
    while p.responder.poll_response(0).is_some() {}
    // The same once more, when the requester has long been served.
    p.send(&read);
    p.responder.poll_response(0).unwrap();
    p.responder.response_fault(&mut p.env);
    assert_eq!(p.answers(), []);
    assert_eq!(p.env.fatal, 0);
    assert!(p.responder.poll_response(0).is_none());
    // The connection goes on behind it.
    p.send(&Raw::new(0x0c, PSN + 4).remote(RKEY_READ, VA_READ, 100));
    assert!(p.responder.poll_response(0).is_some());
    assert_eq!(p.env.fatal, 0);
}

#[test]
fn foreign_packets_are_ignored() {
    let mut p = Peer::rc();
    let mut other = Raw::new(0x04, PSN).ask();
    other.pkey = 0x8001;
    p.expect_silence(&other);
    for op in [0x24, 0xa4, 0x64, 0x11, 0x0d, 0x12] {
        p.expect_silence(&Raw::new(op, PSN).ask());
    }
    assert_eq!(p.env.taken, 0);
    assert_eq!(p.responder.stats().ignored, 7);
    let mut reset = Peer::rc();
    reset.responder.reset();
    reset.expect_silence(&Raw::new(0x04, PSN).ask());
}

#[test]
fn abort_ends_the_current_receive() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1000));
    p.send(&Raw::new(0x00, PSN + 4).data(256).ask());
    p.responder.abort(&mut p.env);
    assert_eq!(p.env.errors[0].status, WcStatus::WrFlushErr);
    assert_eq!(p.answers(), []);
    assert!(p.responder.is_idle());
    p.expect_silence(&Raw::new(0x02, PSN + 5).data(4).ask());
}
