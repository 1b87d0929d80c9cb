// SPDX-License-Identifier: GPL-2.0

//! Properties of XRC and UC that other services do not have.

use super::*;

#[test]
fn xrc_unknown_srq_ends_the_connection() {
    let event = Some(QpEvent::AccessErr);
    for raw in [
        Raw::new(0xa4, PSN).data(8),
        Raw::new(0xa0, PSN).data(256),
        Raw::new(0xaa, PSN).remote(RKEY_WRITE, VA_WRITE, 8).data(8),
        Raw::new(0xab, PSN).remote(RKEY_WRITE, VA_WRITE, 8).data(8),
        Raw::new(0xac, PSN).remote(RKEY_READ, VA_READ, 8),
        Raw::new(0xb3, PSN).remote(RKEY_ATOMIC, VA_ATOMIC, 0),
        Raw::new(0xb4, PSN).remote(RKEY_ATOMIC, VA_ATOMIC, 0),
    ] {
        Peer::xrc().expect_end(&raw.clone().srqn(0x12_3456), INVALID, event);
        let mut p = Peer::xrc();
        p.env.trouble.domain = true;
        p.expect_end(&raw.srqn(SRQN), INVALID, event);
    }
}

#[test]
fn xrc_srq_number_is_constant_in_a_message() {
    let mut p = Peer::xrc();
    p.expect_silence(&Raw::new(0xa0, PSN).srqn(SRQN).data(256));
    p.expect_end(
        &Raw::new(0xa2, PSN + 1).srqn(SRQN + 1).data(8),
        INVALID,
        Some(QpEvent::AccessErr),
    );
    assert_eq!(p.env.errors[0].status, WcStatus::RemInvReqErr);
    let mut p = Peer::xrc();
    p.expect_silence(
        &Raw::new(0xa6, PSN)
            .srqn(SRQN)
            .remote(RKEY_WRITE, VA_WRITE, 300)
            .data(256),
    );
    p.expect_end(
        &Raw::new(0xa8, PSN + 1).srqn(SRQN + 1).data(44),
        INVALID,
        Some(QpEvent::AccessErr),
    );
}

#[test]
fn xrc_empty_srq_is_not_ready_and_others_are_unaffected() {
    let mut p = Peer::xrc();
    p.env.posted[0].clear();
    p.expect(&Raw::new(0xa4, PSN).srqn(SRQN).ask(), PSN, Syndrome::Rnr(2));
    p.expect(&Raw::new(0xa4, PSN).srqn(SRQN + 1).ask(), PSN, ACK);
    assert_eq!(p.env.received[0].srqn, Some(Srqn::new(SRQN + 1)));
    p.send(
        &Raw::new(0xac, PSN + 1)
            .srqn(SRQN)
            .remote(RKEY_READ, VA_READ, 4),
    );
    let a = p.answers();
    assert_eq!(a[0].opcode, 0xb0);
}

#[test]
fn xrc_target_outlives_a_broken_queue() {
    let mut p = Peer::xrc();
    p.env.trouble.broken = true;
    p.expect(&Raw::new(0xa4, PSN).srqn(SRQN).ask(), PSN, Syndrome::Rnr(2));
    assert_eq!(p.env.taken, 0);
    // The number still stands for a protection domain.
    p.expect(
        &Raw::new(0xaa, PSN)
            .srqn(SRQN)
            .remote(RKEY_WRITE, VA_WRITE, 4)
            .data(4)
            .ask(),
        PSN,
        ACK,
    );
    p.env.trouble.broken = false;
    p.expect(&Raw::new(0xa4, PSN + 1).srqn(SRQN + 1).ask(), PSN + 1, ACK);
    assert_eq!(p.env.received[0].srqn, Some(Srqn::new(SRQN + 1)));
    assert_eq!((p.env.fatal, p.env.errors.len()), (0, 0));
}

#[test]
fn xrc_message_that_cannot_be_completed_comes_again() {
    let last = [
        Raw::new(0xa4, PSN).data(8),
        Raw::new(0xa2, PSN + 1).data(8),
        Raw::new(0xa9, PSN + 1).data(8),
    ];
    for last in last {
        let mut p = Peer::xrc();
        let psn = last.psn;
        match last.opcode {
            0xa2 => p.expect_silence(&Raw::new(0xa0, PSN).srqn(SRQN).data(256)),
            0xa9 => p.expect_silence(
                &Raw::new(0xa6, PSN)
                    .srqn(SRQN)
                    .remote(RKEY_WRITE, VA_WRITE, 264)
                    .data(256),
            ),
            _ => {}
        }
        let last = last.srqn(SRQN).ask();
        p.env.trouble.overrun = true;
        p.expect(&last, psn, Syndrome::Rnr(2));
        // A whole message is refused before it is placed again.
        if let (0xa4, Some((_, data))) = (last.opcode, &mut p.env.current) {
            data.clear();
        }
        p.expect(&last, psn, Syndrome::Rnr(2));
        if let (0xa4, Some((_, data))) = (last.opcode, &p.env.current) {
            assert!(data.is_empty());
        }
        p.env.trouble.overrun = false;
        p.expect(&last, psn, ACK);
        assert_eq!((p.env.received.len(), p.env.taken), (1, 1));
        assert_eq!((p.env.fatal, p.env.errors.len()), (0, 0));
    }
    // A sender that gave up, and begins with another message: that one's receive is the other
    // queue's, and the first ends.
    let mut p = Peer::xrc();
    p.env.trouble.overrun = true;
    p.expect(&Raw::new(0xa4, PSN).srqn(SRQN).ask(), PSN, Syndrome::Rnr(2));
    p.env.trouble.overrun = false;
    p.expect(&Raw::new(0xa4, PSN).srqn(SRQN + 1).ask(), PSN, ACK);
    assert_eq!(p.env.received[0].srqn, Some(Srqn::new(SRQN + 1)));
    assert_eq!(p.env.errors[0].status, WcStatus::WrFlushErr);
    assert_eq!(p.env.fatal, 0);
}

#[test]
fn flush_is_executed_as_asked() {
    // Placement and level, global, persistent, the whole region.
    for (feth, global, persistent, whole_region) in [
        (0x00, true, false, false),
        (0x01, true, false, false),
        (0x02, false, true, false),
        (0x03, true, true, false),
        (0x11, true, false, true),
        (0x12, false, true, true),
    ] {
        for (xrc, op) in [(false, 0x1c), (true, 0xbc)] {
            let mut p = if xrc { Peer::xrc() } else { Peer::rc() };
            let raw = Raw::new(op, PSN)
                .srqn(SRQN)
                .remote(RKEY_WRITE, VA_WRITE + 3, 7)
                .feth(feth);
            p.send(&raw);
            assert_eq!(p.answers().len(), 1);
            let flush = Flush {
                rkey: Key::new(RKEY_WRITE),
                va: VA_WRITE + 3,
                len: 7,
                placement: Placement { global, persistent },
                whole_region,
            };
            assert_eq!(p.env.flushes, [flush]);
            // Repeated, it is answered and not done again.
            p.send(&raw);
            assert_eq!(p.answers().len(), 1);
            assert_eq!(p.env.flushes.len(), 1);
        }
    }
}

#[test]
fn uc_drops_the_rest_of_a_broken_message() {
    let mut p = Peer::uc();
    p.expect_silence(&Raw::new(0x20, PSN).data(256).ask());
    // One is missing.
    p.expect_silence(&Raw::new(0x21, PSN + 2).data(256));
    p.expect_silence(&Raw::new(0x22, PSN + 3).data(8));
    assert!(p.env.received.is_empty());
    // Its receive serves the next message.
    p.expect_silence(&Raw::new(0x24, PSN + 4).data(8).ask());
    assert_eq!(p.env.taken, 1);
    assert_eq!(p.env.received.len(), 1);
    assert_eq!(p.env.received[0].data.len(), 8);
    // A message that breaks off, and a new one right behind.
    p.expect_silence(&Raw::new(0x20, PSN + 5).data(256));
    p.expect_silence(&Raw::new(0x24, PSN + 6).data(4));
    assert_eq!(p.env.received.len(), 2);
    // A copy of it is not a message.
    p.expect_silence(&Raw::new(0x24, PSN + 6).data(4));
    assert_eq!(p.env.received.len(), 2);
    assert_eq!(p.env.fatal, 0);
}

#[test]
fn uc_drops_what_is_not_permitted() {
    let mut p = Peer::uc();
    p.expect_silence(&Raw::new(0x2a, PSN).remote(1, 0, 4).data(4));
    p.expect_silence(&Raw::new(0x26, PSN + 1).remote(1, 0, 300).data(256));
    p.expect_silence(&Raw::new(0x28, PSN + 2).data(44));
    p.env.posted[0].clear();
    p.expect_silence(&Raw::new(0x24, PSN + 3).data(4));
    p.env.posted[0].push_back(0);
    p.expect_silence(&Raw::new(0x24, PSN + 4).data(4));
    assert_eq!(p.env.received.len(), 1);
    assert_eq!((p.env.fatal, p.env.errors.len()), (0, 0));
}
