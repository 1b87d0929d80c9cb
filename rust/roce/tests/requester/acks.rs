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
