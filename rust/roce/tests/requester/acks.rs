// SPDX-License-Identifier: GPL-2.0

//! When the requester asks for ACKs, and what they complete.

use super::*;

#[test]
fn segmentation_and_acknowledgement() {
    let mut h = Host::rc();
    h.post(SendOp::SendImm, 600);
    assert_eq!(
        h.sent(),
        [
            (0x00, 0, false, Some((0, 256))),
            (0x01, 1, false, Some((256, 256))),
            (0x03, 2, true, Some((512, 88))),
        ]
    );
    h.ack(1);
    assert_eq!(h.statuses(), []);
    h.ack(2);
    assert_eq!(h.statuses(), [Success]);
    assert_eq!(h.env.completions[0].byte_len, 600);
    assert_eq!(h.requester.next_deadline(), None);
}

#[test]
fn one_ack_is_asked_for_a_batch_of_messages() {
    let mut h = Host::rc();
    for _ in 0..5 {
        h.post(SendOp::Send, 8);
    }
    let asked: Vec<_> = h.sent().iter().map(|s| s.2).collect();
    assert_eq!(asked, [false, false, false, false, true]);
    h.ack(4);
    assert_eq!(h.statuses(), [Success; 5]);
}

#[test]
fn acks_are_asked_for_often_enough() {
    let mut h = Host::rc();
    for _ in 0..30 {
        h.post(SendOp::Send, 8);
    }
    let asked: Vec<_> = h.sent().iter().filter(|s| s.2).map(|s| s.1).collect();
    assert_eq!(asked, [15, 29]);
}

#[test]
fn window_full_asks_for_an_ack() {
    let mut c = config();
    c.max_window = 256 * 8;
    let mut h = Host::with(&c);
    h.post(SendOp::Write, 256 * 20);
    let sent = h.sent();
    assert_eq!(sent.len(), 8);
    assert!(sent[7].2);
    h.ack(3);
    assert_eq!(h.numbers(), [8, 9, 10, 11]);
}

#[test]
fn packets_behind_this_one_can_be_in_a_train() {
    let followers = |h: &mut Host| -> Vec<_> {
        std::iter::from_fn(|| h.poll())
            .map(|t| t.followers)
            .collect()
    };
    let mut c = config();
    c.max_window = 256 * 8;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 256 * 4 + 1);
    h.post(SendOp::Send, 10);
    h.post(SendOp::Write, 256 * 8);
    // With such a window every second packet asks, and nothing follows it in a train. There is room
    // for two of the WRITE.
    assert_eq!(followers(&mut h), [1, 0, 1, 0, 0, 0, 1, 0]);

    // The last one is among them, unless it has pad bytes or headers of its own.
    for (op, length, expect) in [
        (SendOp::Write, 1000, [3, 2, 1, 0]),
        (SendOp::Send, 1024, [3, 2, 1, 0]),
        (SendOp::Write, 1001, [2, 1, 0, 0]),
        (SendOp::WriteImm, 1000, [2, 1, 0, 0]),
        (SendOp::SendImm, 1000, [2, 1, 0, 0]),
        (SendOp::SendInv, 1000, [2, 1, 0, 0]),
    ] {
        let mut h = Host::rc();
        h.post(op, length);
        assert_eq!(followers(&mut h), expect, "{op:?}, {length}");
    }
}

/// What is said of each packet of the first message about those of the next one.
#[test]
fn packets_of_the_next_message_can_be_in_the_train() {
    let wr = |op, length| SendWr {
        op,
        length,
        ..SendWr::default()
    };
    let send = |length| wr(SendOp::Send, length);
    let write = |length| wr(SendOp::Write, length);
    let fence = SendWr {
        fence: true,
        ..write(512)
    };
    let srqn = SendWr {
        srqn: roce::number::Srqn::new(1),
        ..write(512)
    };
    for (first, next, expect) in [
        (write(1024), write(512), 2),
        (write(1024), write(513), 2),
        (write(1024), wr(SendOp::WriteImm, 600), 2),
        (send(1024), send(5 * 256), 5),
        (send(1024), wr(SendOp::SendImm, 512), 1),
        (send(1024), wr(SendOp::SendInv, 512), 1),
        // The Last packet is shorter than the others, or has headers of its own.
        (write(1023), write(512), 0),
        (write(1000), write(512), 0),
        (wr(SendOp::WriteImm, 1024), write(512), 0),
        (wr(SendOp::SendInv, 1024), send(512), 0),
        // The next one is of another kind, or of one packet.
        (write(1024), send(512), 0),
        (send(1024), write(512), 0),
        (write(1024), wr(SendOp::Read, 512), 0),
        (write(1024), write(256), 0),
        (write(1024), write(0), 0),
        (write(1024), fence, 0),
        (write(1024), srqn, 0),
        (write(1024), write(u32::MAX), 0),
    ] {
        let mut h = Host::rc();
        h.post_wr(first);
        h.post_wr(next);
        let others: Vec<_> = (0..4).map(|_| h.poll().unwrap().others).collect();
        assert_eq!(others, [expect; 4], "{first:?}, {next:?}");
    }
    // None is behind the last one, and the window is the limit.
    let mut h = Host::rc();
    (0..20).for_each(|_| {
        h.post(SendOp::Write, 1024);
    });
    let others: Vec<_> = std::iter::from_fn(|| h.poll()).map(|t| t.others).collect();
    assert_eq!(others.len(), 64);
    assert_eq!(others[56..], [4, 4, 4, 4, 0, 0, 0, 0]);
    let mut h = Host::rc();
    h.post(SendOp::Write, 512);
    assert_eq!(h.poll().unwrap().others, 0);
    // One of one packet is in no train.
    for length in [0, 256] {
        let mut h = Host::rc();
        h.post(SendOp::Write, length);
        h.post(SendOp::Write, 512);
        assert_eq!(h.poll().unwrap().others, 0);
    }
    // The one that asks ends a train.
    let mut h = Host::rc();
    h.post(SendOp::Write, 256 * 18);
    h.post(SendOp::Write, 256 * 18);
    let sent: Vec<_> = std::iter::from_fn(|| h.poll()).collect();
    assert_eq!((sent[14].followers, sent[14].others), (1, 0));
    assert_eq!((sent[15].followers, sent[15].others), (0, 0));
    assert_eq!((sent[16].followers, sent[16].others), (1, 14));
    assert_eq!((sent[17].followers, sent[17].others), (0, 14));
    let mut h = Host::rc();
    (0..2).for_each(|_| {
        h.post(SendOp::Write, 256 * 16);
    });
    let sent: Vec<_> = std::iter::from_fn(|| h.poll()).collect();
    assert_eq!((sent[0].followers, sent[0].others), (15, 0));
    assert_eq!((sent[15].followers, sent[15].others), (0, 0));
}

/// Trains are as long as they can be, since a packet that asks ends one.
#[test]
fn acks_are_asked_for_at_the_end_of_trains() {
    for (room, expect) in [(0, 16), (5, 15), (15, 15), (16, 16), (17, 16), (63, 16)] {
        let mut h = Host::rc();
        h.requester.set_trains(room);
        h.post(SendOp::Write, 256 * 60);
        let asks = h.sent().iter().position(|s| s.2);
        // A quarter of the window, at most.
        assert_eq!(asks, Some(expect - 1), "{room}");
    }
}

#[test]
fn what_is_not_in_flight_is_not_acknowledged() {
    let mut h = Host::rc();
    h.ack(0);
    h.post(SendOp::Send, 300);
    h.post(SendOp::Send, 300);
    h.poll().unwrap();
    h.poll().unwrap();
    h.poll().unwrap();
    for at in [3, 4, 0x80_0000, 0xff_ffff] {
        h.ack(at);
        h.nak(at, 0x61);
        h.nak(at, 0x21);
    }
    assert_eq!(h.statuses(), []);
    assert_eq!(h.numbers(), [3]);
    h.ack(3);
    assert_eq!(h.statuses(), [Success, Success]);
    assert_eq!(h.env.fatal, 0);
}

#[test]
fn queue_is_full_at_its_depth() {
    let mut h = Host::rc();
    for _ in 0..32 {
        h.post(SendOp::Send, 0);
    }
    assert_eq!(h.requester.room(), 0);
    assert!(h.requester.push(SendWr::default()).is_err());
    h.numbers();
    h.ack(30);
    assert_eq!(h.requester.room(), 31);
}

#[test]
fn congestion_halves_what_is_in_flight() {
    let mut h = Host::rc();
    h.requester.on_congestion();
    h.post(SendOp::Write, 256 * 200);
    assert_eq!(h.numbers().len(), 64, "nothing was in flight");
    h.requester.on_congestion();
    h.requester.on_congestion();
    h.ack(31);
    assert_eq!(h.numbers(), []);
    h.ack(63);
    // From there it grows as ever.
    assert_eq!(h.numbers().len(), 33);
    assert_eq!(h.requester.stats().retransmitted, 0);
}

#[test]
fn congestion_of_an_unreliable_connection_is_no_matter() {
    let mut c = config();
    c.service = Service::Uc;
    let mut h = Host::with(&c);
    h.requester.on_congestion();
    h.post(SendOp::Write, 256 * 200);
    assert_eq!(h.numbers().len(), 200);
}
