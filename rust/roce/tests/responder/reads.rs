// SPDX-License-Identifier: GPL-2.0

//! READs and atomics, their order and their repetition.

use super::*;

#[test]
fn read_response_is_cut_at_the_mtu() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ + 5, 700));
    let a = p.answers();
    let shape: Vec<_> = a
        .iter()
        .map(|a| (a.opcode, a.psn, a.payload.len()))
        .collect();
    assert_eq!(
        shape,
        [(0x0d, PSN, 256), (0x0e, PSN + 1, 256), (0x0f, 0, 188)]
    );
    let data: Vec<u8> = a.iter().flat_map(|a| a.payload.clone()).collect();
    assert_eq!(
        data,
        p.env.fetch(Key::new(RKEY_READ), VA_READ + 5, 700).unwrap()
    );
    assert_eq!(p.responder.rq_psn(), Psn::new(1));
}

/// What is said of each packet of the response about those behind it.
fn followers(p: &mut Peer) -> Vec<u32> {
    std::iter::from_fn(|| p.responder.poll_response(0))
        .map(|r| r.followers)
        .collect()
}

#[test]
fn packets_behind_this_one_can_be_in_a_train() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1000));
    assert_eq!(followers(&mut p), [3, 2, 1, 0]);
    // A part of it is asked for again.
    p.send(&Raw::new(0x0c, PSN + 1).remote(RKEY_READ, VA_READ + 256, 744));
    assert_eq!(followers(&mut p), [2, 1, 0]);
    // The last one, if it has pad bytes, is not.
    p.send(&Raw::new(0x0c, PSN + 4).remote(RKEY_READ, VA_READ, 1001));
    assert_eq!(followers(&mut p), [2, 1, 0, 0]);
}

/// What is said of each packet of the first response about those of the next one.
#[test]
fn packets_of_the_next_response_can_be_in_the_train() {
    let others = |p: &mut Peer| -> Vec<u32> {
        std::iter::from_fn(|| p.responder.poll_response(0))
            .map(|r| r.others)
            .collect()
    };
    let read = |psn, len| Raw::new(0x0c, psn).remote(RKEY_READ, VA_READ, len);
    for (first, next, expect) in [
        (512, 512, [2, 2, 0, 0]),
        (512, 300, [2, 2, 0, 0]),
        // The last one has pad bytes, and is in no train; or the last one before is shorter.
        (512, 299, [1, 1, 0, 0]),
        (500, 512, [0; 4]),
    ] {
        let mut p = Peer::rc();
        p.send(&read(PSN, first));
        p.send(&read(PSN + 2, next));
        assert_eq!(others(&mut p), expect, "{first}, {next}");
        // They are asked for again.
        p.send(&read(PSN, first));
        p.send(&read(PSN + 2, next));
        assert_eq!(others(&mut p), [0; 4], "{first}, {next}");
    }
    // Only the first one is asked for again.
    let mut p = Peer::rc();
    p.send(&read(PSN, 512));
    assert_eq!(others(&mut p), [0; 2]);
    p.send(&read(PSN, 512));
    p.send(&read(PSN + 2, 512));
    assert_eq!(others(&mut p), [0; 4]);
    // A request without such a response is between them.
    let mut p = Peer::rc();
    p.send(&read(PSN, 512));
    p.send(&Raw::new(0x0a, PSN + 2).remote(RKEY_WRITE, VA_WRITE, 0));
    p.send(&read(PSN + 3, 512));
    assert_eq!(others(&mut p), [0; 4]);
    // One of one packet, and an atomic.
    for (first, next) in [(512, 256), (256, 512), (0, 512)] {
        let mut p = Peer::rc();
        p.send(&read(PSN, first));
        p.send(&read(PSN + first.div_ceil(256).max(1), next));
        assert!(others(&mut p).iter().all(|n| *n == 0), "{first}, {next}");
    }
    let mut p = Peer::rc();
    p.send(&read(PSN, 512));
    p.send(&Raw::new(0x14, PSN + 2).remote(RKEY_ATOMIC, VA_ATOMIC, 0));
    p.send(&read(PSN + 3, 512));
    assert_eq!(others(&mut p), [0; 5]);
    // Places are used again: the next one may be in front of it.
    let mut p = Peer::rc();
    let mut psn = PSN;
    for _ in 0..20 {
        p.send(&read(psn, 512));
        p.send(&read(psn + 2, 512));
        assert_eq!(others(&mut p), [2, 2, 0, 0]);
        psn += 4;
    }
}

#[test]
fn what_follows_in_a_train_is_polled_at_once() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1500));
    // Nothing was polled that they could follow.
    assert_eq!(p.responder.poll_middles(9), 0);
    assert_eq!(p.responder.poll_response(0).unwrap().followers, 5);
    assert_eq!(p.responder.poll_middles(2), 2);
    let next = |p: &mut Peer| {
        let response = p.responder.poll_response(0).unwrap();
        let slice = response.payload.unwrap();
        (slice.va - VA_READ, slice.len, response.followers)
    };
    assert_eq!(next(&mut p), (3 * 256, 256, 2));
    // Never the last one.
    assert_eq!(p.responder.poll_middles(9), 1);
    assert_eq!(p.responder.poll_middles(9), 0);
    assert_eq!(next(&mut p), (5 * 256, 220, 0));
    assert_eq!(p.responder.poll_middles(9), 0);
    assert!(p.responder.poll_response(0).is_none());
}

#[test]
fn what_is_not_sent_of_a_train_is_refused() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1500));
    p.responder.poll_response(0).unwrap();
    assert_eq!(p.responder.poll_middles(4), 4);
    // Of these, one was read, and the next one cannot be.
    p.responder.unpoll(2);
    p.responder.response_fault(&mut p.env);
    let answers = p.answers();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].psn, (PSN + 2) & 0xff_ffff);
    let refused = Syndrome::Nak(NakCode::RemoteAccess);
    assert_eq!(answers[0].syndrome, Some(refused));
}

#[test]
fn acks_wait_behind_read_data() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 300));
    p.send(&Raw::new(0x04, PSN + 2).ask());
    p.send(&Raw::new(0x14, PSN + 3).remote(RKEY_ATOMIC, VA_ATOMIC, 0));
    p.send(&Raw::new(0x04, PSN + 4).ask());
    assert!(p.env.replies.is_empty());
    let ops: Vec<_> = p.answers().iter().map(|a| (a.opcode, a.psn)).collect();
    let at = |i| (PSN + i) & 0xff_ffff;
    assert_eq!(
        ops,
        [(0x0d, at(0)), (0x0f, at(1)), (0x12, at(3)), (0x11, at(4))]
    );
}

#[test]
fn refusals_wait_behind_read_data() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 300));
    p.send(&Raw::new(0x0a, PSN + 2).remote(1, 0, 4).data(4));
    assert!(p.env.replies.is_empty());
    let a = p.answers();
    assert_eq!(a.len(), 3);
    assert_eq!(a[2].syndrome, Some(Syndrome::Nak(ACCESS)));
    assert_eq!(a[2].psn, 0);
}

#[test]
fn gap_behind_read_data_that_closes_is_not_reported() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 300));
    p.send(&Raw::new(0x04, PSN + 3).ask());
    p.send(&Raw::new(0x04, PSN + 2).ask());
    let a = p.answers();
    assert_eq!(a.len(), 3);
    assert_eq!((a[2].psn, a[2].syndrome), (0, Some(ACK)));
}

#[test]
fn repeated_reads() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1000));
    assert_eq!(p.answers().len(), 4);
    // The rest from the second packet on.
    let rest = Raw::new(0x0c, PSN + 1).remote(RKEY_READ, VA_READ + 256, 744);
    p.send(&rest);
    let a = p.answers();
    let shape: Vec<_> = a.iter().map(|a| (a.opcode, a.payload.len())).collect();
    assert_eq!(shape, [(0x0d, 256), (0x0e, 256), (0x0f, 232)]);
    assert_eq!(a[0].psn, PSN + 1);
    // Two parts at once: both are answered.
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 512));
    p.send(&Raw::new(0x0c, PSN + 2).remote(RKEY_READ, VA_READ + 512, 488));
    assert_eq!(p.answers().len(), 4);
    // What is no part of it is not answered.
    for raw in [
        Raw::new(0x0c, PSN + 1).remote(RKEY_READ, VA_READ + 255, 100),
        Raw::new(0x0c, PSN + 1).remote(RKEY_READ + 1, VA_READ + 256, 100),
        Raw::new(0x0c, PSN + 1).remote(RKEY_READ, VA_READ + 256, 745),
        Raw::new(0x0c, PSN - 1).remote(RKEY_READ, VA_READ, 1000),
    ] {
        p.expect_silence(&raw);
    }
    assert_eq!(p.env.fatal, 0);
}

#[test]
fn what_is_read_again_is_marked() {
    let mut p = Peer::rc();
    let again = |p: &mut Peer| -> Vec<_> {
        std::iter::from_fn(|| p.responder.poll_response(0))
            .map(|r| r.again)
            .collect()
    };
    let read = Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1000);
    p.send(&read);
    assert_eq!(again(&mut p), [false; 4]);
    p.send(&Raw::new(0x0c, PSN + 1).remote(RKEY_READ, VA_READ + 256, 744));
    assert_eq!(again(&mut p), [true; 3]);
    // In the middle of the first answer, too.
    let next = Raw::new(0x0c, PSN + 4).remote(RKEY_READ, VA_READ, 1000);
    p.send(&next);
    assert!(!p.responder.poll_response(0).unwrap().again);
    p.send(&next);
    assert_eq!(again(&mut p), [true; 4]);
}

#[test]
fn repeated_atomics_are_executed_once() {
    let mut p = Peer::rc();
    let add = |psn, n| {
        let mut r = Raw::new(0x14, psn).remote(RKEY_ATOMIC, VA_ATOMIC, 0);
        r.swap_add = n;
        r
    };
    p.send(&add(PSN, 5));
    assert_eq!(p.answers().len(), 1);
    p.send(&add(PSN + 1, 7));
    assert_eq!(p.answers().len(), 1);
    p.send(&add(PSN, 5));
    let a = p.answers();
    assert_eq!((a.len(), a[0].opcode, a[0].psn), (1, 0x12, PSN));
    assert_eq!(p.env.memory.atomic[0], 12);
    // Forgotten after four more: no answer, no execution.
    for i in 2..6 {
        p.send(&add(PSN + i, 1));
        p.answers();
    }
    p.expect_silence(&add(PSN, 5));
    assert_eq!(p.env.memory.atomic[0], 16);
    // A repetition that is something else is not answered either.
    p.expect_silence(&Raw::new(0x13, PSN + 5).remote(RKEY_ATOMIC, VA_ATOMIC, 0));
}

#[test]
fn read_repeated_while_it_is_answered_starts_over() {
    let mut p = Peer::rc();
    let read = Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1000);
    p.send(&read);
    p.responder.poll_response(0).unwrap();
    p.responder.poll_response(0).unwrap();
    p.send(&read);
    let at: Vec<_> = p.answers().iter().map(|a| (a.opcode, a.psn)).collect();
    let psn = |i| (PSN + i) & 0xff_ffff;
    assert_eq!(
        at,
        [
            (0x0d, psn(0)),
            (0x0e, psn(1)),
            (0x0e, psn(2)),
            (0x0f, psn(3))
        ]
    );
    // What is still to come needs no second run.
    p.send(&Raw::new(0x0c, PSN + 4).remote(RKEY_READ, VA_READ, 1000));
    p.responder.poll_response(0).unwrap();
    p.send(&Raw::new(0x0c, PSN + 6).remote(RKEY_READ, VA_READ + 512, 488));
    assert_eq!(p.answers().len(), 3);
}

#[test]
fn an_ack_never_names_a_read_or_an_atomic() {
    let mut p = Peer::rc();
    let send = |psn| Raw::new(0x04, PSN + psn).ask();
    let add = |psn| Raw::new(0x14, PSN + psn).remote(RKEY_ATOMIC, VA_ATOMIC, 0);
    p.send(&send(0));
    p.send(&add(1));
    p.answers();
    // The result was lost, and the requester goes back. An ACK of number 1
    // would say to it that it was.
    p.expect(&send(0), PSN, ACK);
    let a = {
        p.send(&add(1));
        p.answers()
    };
    assert_eq!((a.len(), a[0].opcode, a[0].psn), (1, 0x12, PSN + 1));

    p.send(&send(2));
    p.send(
        &Raw::new(0x0c, PSN + 3)
            .remote(RKEY_READ, VA_READ, 300)
            .ask(),
    );
    p.send(&send(5));
    p.answers();
    // As far as the next one that has an answer of its own.
    p.expect(&send(0), PSN, ACK);
    p.expect(&send(2), PSN + 2, ACK);
    p.expect(&send(5), PSN + 5, ACK);
    // One for a run, the one that says most.
    p.send(&send(2));
    p.send(&send(0));
    let a = p.answers();
    assert_eq!((a.len(), a[0].psn), (1, (PSN + 2) & 0xff_ffff));
    // The READ's data acknowledge what came before.
    p.send(&send(2));
    p.send(&Raw::new(0x0c, PSN + 3).remote(RKEY_READ, VA_READ, 300));
    let ops: Vec<_> = p.answers().iter().map(|a| a.opcode).collect();
    assert_eq!(ops, [0x0d, 0x0f]);
    assert_eq!(p.env.received.len(), 3);
}

#[test]
fn more_reads_may_be_repeated_after_the_resources_have_grown() {
    let mut p = Peer::with(Service::Rc, Access::ALL, 2);
    let at = |i: u32| (PSN + i) & 0xff_ffff;
    let read = |i: u32| Raw::new(0x0c, at(i)).remote(RKEY_READ, VA_READ + u64::from(i), 8);
    // The oldest has gone, so the places go round.
    for i in 0..3 {
        p.send(&read(i));
        assert_eq!(p.answers().len(), 1);
    }
    assert!(p.responder.grow(vec![Resource::default(); 2]).len() == 2);
    assert_eq!(p.responder.grow(vec![Resource::default(); 8]).len(), 2);
    p.responder.update(Access::ALL, 2, 4);
    p.send(&read(3));
    p.send(&read(4));
    assert_eq!(p.answers().len(), 2);
    for i in [1, 2, 3, 4] {
        p.send(&read(i));
        let a = p.answers();
        assert_eq!((a.len(), a[0].psn), (1, at(i)));
        let va = VA_READ + u64::from(i);
        assert_eq!(
            a[0].payload,
            p.env.fetch(Key::new(RKEY_READ), va, 8).unwrap()
        );
    }
}

#[test]
fn a_read_goes_on_after_the_resources_have_grown() {
    let mut p = Peer::with(Service::Rc, Access::ALL, 1);
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 600));
    assert!(p.responder.poll_response(p.now).is_some());
    p.responder.grow(vec![Resource::default(); 4]);
    let psns: Vec<_> = p.answers().iter().map(|a| a.psn).collect();
    assert_eq!(psns, [(PSN + 1) & 0xff_ffff, (PSN + 2) & 0xff_ffff]);
}

#[test]
fn without_resources_a_read_is_refused() {
    let mut p = Peer::with(Service::Rc, Access::ALL, 0);
    let read = Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 8);
    p.expect(&read, PSN, Syndrome::Nak(NakCode::InvalidRequest));
}
