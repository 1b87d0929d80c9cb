// SPDX-License-Identifier: GPL-2.0

//! One packet is missing at a responder that keeps those behind it.

use super::*;

/// The round trip of [`sent`].
const ROUND_TRIP: u64 = 100 * US;

/// A connection that has measured a round trip and has sent so many packets, 1 and so on.
fn sent(count: u32) -> Host {
    let mut h = Host::with(&RequesterConfig {
        timeout: 14,
        ..config()
    });
    h.post(SendOp::Send, 8);
    h.numbers();
    h.now += ROUND_TRIP;
    h.ack(0);
    h.post(SendOp::Write, 256 * count);
    assert_eq!(h.numbers().len() as u32, count);
    h
}

/// The same, and it is known that the responder keeps what comes early. The next number is 5.
fn keeper() -> Host {
    let mut h = sent(4);
    h.nak(2, 0x60);
    assert_eq!(h.numbers(), [2]);
    h.now += ROUND_TRIP;
    h.ack(4);
    assert_eq!(h.statuses(), [Success; 2]);
    assert_eq!(h.numbers(), []);
    h
}

#[test]
fn the_missing_packet_is_sent_alone_and_asks() {
    let mut h = sent(6);
    h.nak(2, 0x60);
    let again = h.sent();
    assert_eq!(
        again.iter().map(|s| (s.1, s.2)).collect::<Vec<_>>(),
        [(2, true)]
    );
    // Nothing new goes to a responder of which nothing is known.
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), []);
    h.now += ROUND_TRIP;
    h.ack(6);
    assert_eq!(h.numbers(), [7]);
    assert_eq!(h.requester.stats().retransmitted, 1);
}

#[test]
fn new_data_go_on_and_an_ack_names_the_next_hole() {
    let mut h = keeper();
    h.post(SendOp::Write, 256 * 8);
    assert_eq!(h.numbers().len(), 8);
    h.nak(6, 0x60);
    h.post(SendOp::Write, 256 * 2);
    assert_eq!(h.numbers(), [6, 13, 14]);
    // A NAK that crossed it is none for the copy.
    h.now += ROUND_TRIP - 1;
    h.nak(6, 0x60);
    assert_eq!(h.numbers(), []);
    h.ack(8);
    assert_eq!(h.numbers(), [9]);
    h.nak(9, 0x60);
    assert_eq!(h.numbers(), []);
    h.now += ROUND_TRIP;
    h.ack(14);
    assert_eq!(h.statuses(), [Success; 4]);
    let stats = h.requester.stats();
    assert_eq!(
        (stats.retransmitted, stats.timeouts, stats.probes),
        (3, 0, 0)
    );
}

#[test]
fn a_copy_that_is_lost_is_sent_again_after_a_round_trip() {
    let mut h = keeper();
    h.post(SendOp::Write, 256 * 8);
    h.numbers();
    h.nak(6, 0x60);
    assert_eq!(h.numbers(), [6]);
    h.now += ROUND_TRIP;
    h.nak(6, 0x60);
    assert_eq!(h.numbers(), [6]);
    // Or when nothing is heard.
    h.time(h.requester.next_deadline().unwrap());
    assert_eq!(h.numbers(), [6, 12]);
    assert_eq!(h.requester.stats().timeouts, 0);
    h.ack(12);
    assert_eq!(h.statuses(), [Success; 3]);
}

/// 16 packets, 5 to 20, of which 6 is found to be missing.
fn with_hole() -> Host {
    let mut h = keeper();
    h.post(SendOp::Write, 256 * 16);
    assert_eq!(h.numbers().len(), 16);
    h.nak(6, 0x60);
    assert_eq!(h.numbers(), [6]);
    h
}

#[test]
fn what_came_before_its_copy_was_not_lost() {
    let half = ROUND_TRIP / 2;
    for (wait, resent) in [(half, vec![]), (ROUND_TRIP, vec![10])] {
        let mut h = with_hole();
        h.now += wait;
        // 6 to 9 were late. Or 10 is lost as well.
        h.ack(9);
        assert_eq!(h.numbers(), resent, "{wait}");
    }
    // That is asked about the first copy only.
    let mut h = with_hole();
    h.now += ROUND_TRIP;
    h.ack(9);
    assert_eq!(h.numbers(), [10]);
    h.now += half;
    h.ack(12);
    assert_eq!(h.numbers(), [13]);
    h.ack(20);
    assert_eq!(h.statuses(), [Success; 3]);
    let mut h = with_hole();
    h.now += ROUND_TRIP;
    h.nak(6, 0x60);
    assert_eq!(h.numbers(), [6]);
    h.now += half;
    h.ack(9);
    assert_eq!(h.numbers(), [10]);
    // Nor about one that a probe has sent.
    let mut h = keeper();
    h.post(SendOp::Write, 256 * 16);
    h.numbers();
    h.time(h.requester.next_deadline().unwrap());
    assert_eq!(h.numbers(), [5, 20]);
    h.now += half;
    h.nak(5, 0x60);
    assert_eq!(h.numbers(), []);
    h.now += half / 2;
    h.ack(9);
    assert_eq!(h.numbers(), [10]);
}

#[test]
fn what_was_only_late_does_not_tell_what_is_kept() {
    let mut h = sent(6);
    h.nak(2, 0x60);
    assert_eq!(h.numbers(), [2]);
    h.now += ROUND_TRIP / 2;
    h.ack(4);
    assert_eq!(h.numbers(), []);
    // The responder may have dropped the rest: a trial, as if it were the first.
    h.nak(5, 0x60);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [5]);
    h.now += ROUND_TRIP;
    h.ack(5);
    assert_eq!(h.numbers(), [6, 7]);
}

#[test]
fn what_was_only_late_does_not_shrink_the_window() {
    let in_flight = |wait| {
        let (mut h, first) = with_large_window();
        h.post(SendOp::Write, 256 * 100);
        h.numbers();
        h.nak(first, 0x60);
        h.numbers();
        h.now += wait;
        h.ack(first + 99);
        h.post(SendOp::Write, 256 * 8000);
        let sent = h.numbers().len();
        assert!(sent < 8000);
        sent
    };
    assert!(in_flight(ROUND_TRIP) < in_flight(ROUND_TRIP / 2));
}

/// A connection with a large window to a responder that keeps what comes early, and its next
/// number.
fn with_large_window() -> (Host, u32) {
    let mut h = Host::with(&RequesterConfig {
        max_window: 256 * 4096,
        ..config()
    });
    let mut last = 0;
    for _ in 0..20 {
        h.post(SendOp::Write, 256 * 3000);
        while let Some(at) = h.numbers().last() {
            last = *at;
            h.now += ROUND_TRIP;
            h.ack(last);
        }
    }
    let first = last + 1;
    h.post(SendOp::Write, 256 * 100);
    h.numbers();
    h.nak(first, 0x60);
    assert_eq!(h.numbers(), [first]);
    h.now += ROUND_TRIP;
    h.ack(first + 99);
    (h, first + 100)
}

/// How many packets go ahead of the packet with the number `next`, which is sent with 99 others
/// and lost.
fn ahead_of(h: &mut Host, next: u32) -> u32 {
    h.post(SendOp::Write, 256 * 100);
    h.numbers();
    h.nak(next, 0x60);
    h.post(SendOp::Write, 256 * 1000);
    let ahead = h.numbers();
    assert_eq!(ahead[..2], [next, next + 100]);
    ahead.last().unwrap() - next
}

#[test]
fn no_more_goes_ahead_than_a_responder_keeps() {
    let (mut h, next) = with_large_window();
    assert_eq!(ahead_of(&mut h, next), 767);
}

#[test]
fn less_goes_ahead_to_a_responder_that_has_dropped_some_of_it() {
    let (mut h, next) = with_large_window();
    h.post(SendOp::Write, 256 * 8);
    h.numbers();
    h.nak(next, 0x60);
    h.numbers();
    for at in 0..3 {
        h.now += ROUND_TRIP;
        h.ack(next + at);
        h.numbers();
    }
    h.ack(next + 7);
    assert_eq!(ahead_of(&mut h, next + 8), 383);
}

#[test]
fn many_holes_in_a_row_go_back() {
    let mut h = keeper();
    h.post(SendOp::Write, 256 * 8);
    h.numbers();
    h.nak(5, 0x60);
    assert_eq!(h.numbers(), [5]);
    for at in [5, 6] {
        h.now += ROUND_TRIP;
        h.ack(at);
        assert_eq!(h.numbers(), [at + 1]);
    }
    h.now += ROUND_TRIP;
    h.ack(7);
    assert_eq!(h.numbers(), [8, 9, 10, 11, 12]);
    h.ack(12);
    assert_eq!(h.statuses(), [Success; 3]);
}

/// A keeper to which a message of 16 packets went in two trains, 5 to 12 and 13 to 20.
fn sent_in_trains() -> Host {
    let mut h = keeper();
    h.requester.set_trains(16);
    h.post(SendOp::Write, 256 * 16);
    for most in [7, 6] {
        assert!(h.poll().is_some_and(|t| t.followers >= most));
        assert_eq!(h.requester.poll_middles(most, h.now).count, most);
    }
    assert!(h.poll().is_some());
    h.requester.joins_train();
    assert_eq!(h.numbers(), []);
    h
}

/// As [`sent`], where trains are sent, but with no packets in any.
fn sent_one_by_one(count: u32) -> Host {
    let mut h = sent(1);
    h.requester.set_trains(16);
    h.post(SendOp::Write, 256 * (count - 1));
    (1..count).for_each(|_| assert!(h.poll().is_some()));
    h
}

/// Has all packets before `end` acknowledged, after a round trip, and returns what is sent then:
/// numbers, and whether each asks for an answer.
fn after(h: &mut Host, end: u32) -> Vec<(u32, bool)> {
    h.now += ROUND_TRIP;
    h.ack(end - 1);
    h.sent().iter().map(|s| (s.1, s.2)).collect()
}

/// Packets `from..to`, of which the last asks.
fn asking(from: u32, to: u32) -> Vec<(u32, bool)> {
    (from..to).map(|at| (at, at + 1 == to)).collect()
}

#[test]
fn the_rest_of_a_lost_train_is_sent_again_together() {
    let mut h = sent_in_trains();
    h.nak(5, 0x60);
    assert_eq!(h.numbers(), [5]);
    assert_eq!(after(&mut h, 6), asking(6, 13));
    // The next one is lost as well.
    assert_eq!(after(&mut h, 13), asking(13, 21));
    assert_eq!(after(&mut h, 21), []);
    assert_eq!(h.statuses(), [Success; 3]);
    let stats = h.requester.stats();
    assert_eq!((stats.retransmitted, stats.timeouts), (17, 0));
    // One packet of it was lost, or a capture had it cut.
    let mut h = sent_in_trains();
    h.nak(5, 0x60);
    assert_eq!(h.numbers(), [5]);
    assert_eq!(after(&mut h, 8), asking(8, 9));
    assert_eq!(after(&mut h, 21), []);
    // Not in trains any more.
    let mut h = sent_in_trains();
    h.requester.set_trains(0);
    h.nak(5, 0x60);
    assert_eq!(h.numbers(), [5]);
    assert_eq!(after(&mut h, 6), asking(6, 7));
}

#[test]
fn more_is_sent_again_of_trains_of_unknown_length() {
    let mut h = sent_one_by_one(40);
    h.nak(2, 0x60);
    assert_eq!(h.numbers(), [2]);
    for (from, to) in [(3, 5), (5, 9)] {
        assert_eq!(after(&mut h, from), asking(from, to));
    }
    // It has kept the rest.
    assert_eq!(after(&mut h, 41), []);
    h.post(SendOp::Write, 256 * 3);
    assert_eq!(h.numbers(), [41, 42, 43]);
    assert_eq!(h.requester.stats().retransmitted, 7);
}

#[test]
fn a_responder_that_drops_what_comes_behind_a_train_is_found_out() {
    let mut h = sent_one_by_one(40);
    for first in [2, 20] {
        h.nak(first, 0x60);
        assert_eq!(h.numbers(), [first]);
        let mut at = first + 1;
        for count in [2, 4] {
            assert_eq!(after(&mut h, at), asking(at, at + count), "{first}");
            at += count;
        }
        // All of it is missing, as it seems.
        let all: Vec<_> = after(&mut h, at).iter().map(|s| s.0).collect();
        assert_eq!(all, (at..41).collect::<Vec<_>>(), "{first}");
    }
    h.now += ROUND_TRIP;
    h.nak(36, 0x60);
    assert_eq!(h.numbers(), [36, 37, 38, 39, 40]);
}

#[test]
fn what_arrives_meanwhile_is_not_sent_again() {
    let mut h = sent_in_trains();
    h.nak(5, 0x60);
    assert_eq!(h.numbers(), [5]);
    h.now += ROUND_TRIP;
    h.ack(5);
    let copy = h.poll().unwrap();
    let psn = (PSN + 6) & 0xff_ffff;
    assert_eq!(copy.header.as_slice()[8..12], psn.to_be_bytes());
    assert!(copy.again && copy.followers == 0);
    // 6 is on its way. It was late, and so were the next three.
    h.ack(9);
    assert_eq!(h.numbers(), [10, 11, 12]);
    // A NAK that is older than these is none for them.
    h.nak(10, 0x60);
    assert_eq!(h.numbers(), []);
    assert_eq!(after(&mut h, 21), []);
    assert_eq!(h.statuses(), [Success; 3]);
}

#[test]
fn a_request_with_a_response_is_not_sent_again_with_a_train() {
    for (op, length) in [(SendOp::Read, 256), (SendOp::FetchAdd, 8)] {
        let mut h = keeper();
        h.requester.set_trains(16);
        for op in [
            SendOp::Write,
            SendOp::Write,
            op,
            SendOp::Write,
            SendOp::Write,
        ] {
            h.post(op, if op == SendOp::Write { 8 } else { length });
        }
        assert_eq!(h.numbers(), [5, 6, 7, 8, 9]);
        h.nak(5, 0x60);
        assert_eq!(h.numbers(), [5]);
        // Two are due.
        assert_eq!(after(&mut h, 6), asking(6, 7), "{op:?}");
        assert_eq!(after(&mut h, 7), asking(7, 8), "{op:?}");
    }
    // It says nothing of a responder of which nothing is known, which may have sent the response.
    let mut h = sent(2);
    h.requester.set_trains(16);
    h.post(SendOp::Read, 256);
    h.post(SendOp::Send, 256 * 2);
    assert_eq!(h.numbers(), [3, 4, 5]);
    h.nak(2, 0x60);
    assert_eq!(h.numbers(), [2]);
    assert_eq!(after(&mut h, 3), [(3, true), (4, false), (5, true)]);
}

#[test]
fn what_was_not_sent_is_not_sent_again() {
    let mut h = keeper();
    h.requester.set_trains(16);
    h.post(SendOp::Write, 256 * 16);
    (5..11).for_each(|_| assert!(h.poll().is_some()));
    h.nak(9, 0x60);
    assert!(h.poll().is_some_and(|t| t.again));
    h.now += ROUND_TRIP;
    h.ack(9);
    assert_eq!(h.numbers(), (10..21).collect::<Vec<_>>());
    assert_eq!(h.requester.stats().retransmitted, 3);
}

/// Each of them is as long as it was when it was sent.
#[test]
fn trains_of_any_length() {
    let (mut h, first) = with_large_window();
    h.requester.set_trains(16);
    for packets in [32, 8, 8] {
        h.post(SendOp::Write, 256 * packets);
    }
    // Of 15, 4, 16 and 6 packets. The last two go on with the next message.
    let joins = [
        (false, 14),
        (false, 3),
        (false, 10),
        (true, 0),
        (true, 0),
        (true, 2),
        (false, 3),
        (true, 0),
        (true, 0),
    ];
    for (joins, middles) in joins {
        assert!(h.poll().is_some());
        if joins {
            h.requester.joins_train();
        }
        assert_eq!(h.requester.poll_middles(middles, h.now).count, middles);
    }
    while h.poll().is_some() {}
    h.nak(first, 0x60);
    assert_eq!(h.numbers(), [first]);
    assert_eq!(after(&mut h, first + 1), asking(first + 1, first + 15));
    assert_eq!(after(&mut h, first + 19), asking(first + 19, first + 35));
    // The Last packet of a message is in the middle of a train, and one goes by itself.
    assert_eq!(after(&mut h, first + 39), asking(first + 39, first + 40));
    assert_eq!(after(&mut h, first + 41), asking(first + 41, first + 42));
    assert_eq!(after(&mut h, first + 48), []);
}

/// Of a long message, it is known of the packets that were sent last.
#[test]
fn trains_of_a_long_message() {
    let (mut h, first) = with_large_window();
    h.requester.set_trains(16);
    h.post(SendOp::Write, 256 * 126);
    // Trains of 13, but that packet 63 asks, and ends one.
    while h.poll().is_some() {
        h.requester.poll_middles(12, h.now);
    }
    h.nak(first, 0x60);
    assert_eq!(h.numbers(), [first]);
    // As many as can be in one.
    assert_eq!(after(&mut h, first + 1), asking(first + 1, first + 17));
    assert_eq!(after(&mut h, first + 65), asking(first + 65, first + 66));
    assert_eq!(after(&mut h, first + 66), asking(first + 66, first + 77));
    assert_eq!(after(&mut h, first + 126), []);
}

#[test]
fn a_copy_that_is_lost_with_others_behind_it() {
    let mut h = sent_in_trains();
    h.nak(5, 0x60);
    assert_eq!(h.numbers(), [5]);
    assert_eq!(after(&mut h, 6), asking(6, 13));
    // A NAK that has crossed them is none for them.
    h.nak(6, 0x60);
    assert_eq!(h.numbers(), []);
    // This one answers those before it and behind it.
    h.now += ROUND_TRIP;
    h.nak(8, 0x60);
    assert_eq!(h.numbers(), [8]);
    // The one before it was a train, so this may be one as well.
    assert_eq!(after(&mut h, 13), asking(13, 21));
    assert_eq!(after(&mut h, 21), []);
    assert_eq!(h.statuses(), [Success; 3]);
}

/// Posts a WRITE of 8 packets, which goes out as a train.
fn send_train(h: &mut Host) {
    h.post(SendOp::Write, 256 * 8);
    assert!(h.poll().is_some());
    assert_eq!(h.requester.poll_middles(6, h.now).count, 6);
    assert!(h.poll().is_some());
    h.requester.joins_train();
}

/// The same as [`with_large_window`], and messages went in trains of 8 packets.
fn with_trains() -> (Host, u32) {
    let (mut h, mut next) = with_large_window();
    h.requester.set_trains(16);
    for _ in 0..32 {
        send_train(&mut h);
        assert_eq!(after(&mut h, next + 8), []);
        next += 8;
    }
    (h, next)
}

#[test]
fn after_a_lost_train_others_are_sent_again_at_once() {
    let (mut h, first) = with_trains();
    (0..24).for_each(|_| send_train(&mut h));
    // The first packet of the nth of those of which each is lost, between others that arrive.
    let lost = |n: u32| first + 16 * n;
    h.now += ROUND_TRIP;
    h.nak(lost(0), 0x60);
    let mut sent: Vec<_> = h.sent().iter().map(|s| (s.1, s.2)).collect();
    for n in 0..5 {
        let at = lost(n);
        // The first time it is found out what is lost.
        let alone = if n == 0 { 1 } else { 8 };
        assert_eq!(sent, asking(at, at + alone), "{n}");
        if n == 0 {
            assert_eq!(after(&mut h, at + 1), asking(at + 1, at + 8));
        }
        sent = after(&mut h, lost(n + 1));
    }
    // After four others it is found out again. These are single packets.
    for n in 5..11 {
        assert_eq!(sent, asking(lost(n), lost(n) + 1), "{n}");
        sent = after(&mut h, lost(n + 1));
    }
    assert_eq!(sent, asking(lost(11), lost(11) + 1));
    assert_eq!(after(&mut h, lost(12)), []);
}

/// The same as [`with_trains`]; then eight trains were sent, and the first one was lost.
fn with_lost_train() -> (Host, u32) {
    let (mut h, first) = with_trains();
    (0..8).for_each(|_| send_train(&mut h));
    h.nak(first, 0x60);
    assert_eq!(h.numbers(), [first]);
    assert_eq!(after(&mut h, first + 1), asking(first + 1, first + 8));
    (h, first)
}

#[test]
fn what_does_not_begin_as_trains_do_is_no_train() {
    let (mut h, first) = with_lost_train();
    for at in [first + 17, first + 29] {
        assert_eq!(after(&mut h, at), asking(at, at + 1));
    }
    assert_eq!(after(&mut h, first + 32), asking(first + 32, first + 40));
    assert_eq!(after(&mut h, first + 64), []);
    // Two packets in the middle of a train are none.
    let (mut h, first) = with_trains();
    (0..8).for_each(|_| send_train(&mut h));
    h.nak(first + 3, 0x60);
    assert_eq!(h.numbers(), [first + 3]);
    assert_eq!(after(&mut h, first + 4), asking(first + 4, first + 8));
    assert_eq!(after(&mut h, first + 16), asking(first + 16, first + 17));
    // Nor is a message of one packet with a response right behind it.
    let (mut h, first) = with_trains();
    h.post(SendOp::Write, 256);
    h.post(SendOp::FetchAdd, 8);
    assert_eq!(h.numbers(), [first, first + 1]);
    (0..2).for_each(|_| send_train(&mut h));
    h.nak(first, 0x60);
    assert_eq!(h.numbers(), [first]);
    h.now += ROUND_TRIP;
    h.ack(first);
    h.answer(Raw::new(0x12, first + 1).aeth(0x1f));
    assert_eq!(h.numbers(), []);
    assert_eq!(after(&mut h, first + 10), asking(first + 10, first + 11));
}

#[test]
fn what_has_a_response_does_not_use_up_what_is_known_of_trains() {
    let (mut h, mut first) = with_lost_train();
    assert_eq!(after(&mut h, first + 64), []);
    first += 64;
    for _ in 0..4 {
        h.post(SendOp::FetchAdd, 8);
        assert_eq!(h.numbers(), [first]);
        h.nak(first, 0x60);
        assert_eq!(h.numbers(), [first]);
        h.now += ROUND_TRIP;
        h.answer(Raw::new(0x12, first).aeth(0x1f));
        first += 1;
    }
    (0..2).for_each(|_| send_train(&mut h));
    h.nak(first, 0x60);
    assert_eq!(h.numbers().len(), 8);
}

#[test]
fn a_copy_of_a_train_that_is_lost_is_noticed_soon() {
    let (mut h, first) = with_lost_train();
    let at = first + 16;
    assert_eq!(after(&mut h, at), asking(at, at + 8));
    // Too soon for an answer to them.
    h.now += ROUND_TRIP / 2;
    h.nak(at, 0x60);
    assert_eq!(h.numbers(), []);
    h.now += ROUND_TRIP / 4;
    h.nak(at, 0x60);
    assert_eq!(h.numbers(), [at]);
}

#[test]
fn a_train_that_was_only_late_is_no_loss() {
    let (mut h, first) = with_lost_train();
    assert_eq!(after(&mut h, first + 64), []);
    (0..2).for_each(|_| send_train(&mut h));
    h.nak(first + 64, 0x60);
    assert_eq!(h.numbers().len(), 8);
    // A part of it has come before any copy.
    h.now += ROUND_TRIP / 2;
    h.ack(first + 66);
    // So what is missing then is another loss.
    h.nak(first + 67, 0x60);
    assert_eq!(h.numbers(), [first + 67]);
}

#[test]
fn a_responder_of_which_nothing_is_known_gets_one_packet() {
    let mut h = sent(1);
    h.requester.set_trains(16);
    for _ in 0..4 {
        send_train(&mut h);
    }
    h.nak(2, 0x60);
    assert_eq!(h.numbers(), [2]);
    assert_eq!(after(&mut h, 3), asking(3, 10));
    // It drops what comes early, as it seems; and then again.
    assert_eq!(after(&mut h, 10), asking(10, 18));
    let all: Vec<_> = after(&mut h, 18).iter().map(|s| s.0).collect();
    assert_eq!(all, (18..34).collect::<Vec<_>>());
    assert_eq!(after(&mut h, 34), []);
    send_train(&mut h);
    h.nak(34, 0x60);
    assert_eq!(h.numbers(), [34]);
}

#[test]
fn right_behind_a_train_that_was_sent_again_at_once_is_another() {
    let (mut h, first) = with_lost_train();
    let mut at = first + 16;
    for end in [at + 8, at + 16, at + 24] {
        assert_eq!(after(&mut h, at), asking(at, end));
        at = end;
    }
    assert_eq!(after(&mut h, first + 64), []);
}

#[test]
fn without_trains_packets_are_sent_again_one_by_one() {
    let (mut h, first) = with_lost_train();
    // There is another route now, and yet another one.
    h.requester.set_trains(0);
    for at in [first + 16, first + 17] {
        assert_eq!(after(&mut h, at), asking(at, at + 1));
    }
    h.requester.set_trains(16);
    assert_eq!(after(&mut h, first + 32), asking(first + 32, first + 33));
}

#[test]
fn what_sends_everything_again_ends_what_is_sent_again_together() {
    let all: Vec<_> = (6..21).collect();
    // Of seven packets, two are sent again before that.
    let begun = || {
        let mut h = sent_in_trains();
        h.nak(5, 0x60);
        assert_eq!(h.numbers(), [5]);
        h.now += ROUND_TRIP;
        h.ack(5);
        (0..2).for_each(|_| assert!(h.poll().is_some_and(|t| t.again)));
        h
    };
    let mut h = begun();
    h.time(h.now + 16 * TIMEOUT);
    assert_eq!(h.numbers(), all[..4]);
    // The responder is not ready, and takes one packet then.
    let mut h = begun();
    h.nak(6, 0x20 | 1);
    assert_eq!(h.numbers(), []);
    h.time(h.requester.next_deadline().unwrap());
    assert_eq!(h.numbers(), [6]);
    h.ack(6);
    assert_eq!(h.numbers(), all[1..]);
    // The rest is sent again without trains as well.
    let mut h = begun();
    h.requester.set_trains(0);
    assert_eq!(h.numbers(), [8, 9, 10, 11, 12]);
}

#[test]
fn a_request_with_a_response_that_is_missing_is_sent_whole() {
    for op in [SendOp::Read, SendOp::FetchAdd] {
        let mut h = keeper();
        h.post(op, if op == SendOp::Read { 600 } else { 8 });
        h.post(SendOp::Send, 8);
        let all = h.numbers();
        h.nak(5, 0x60);
        let packet = h.poll().unwrap();
        assert!(packet.again);
        if op == SendOp::Read {
            assert_eq!(packet.header.as_slice()[24..28], 600u32.to_be_bytes());
            for (opcode, at, len) in [(0x0d, 5, 256), (0x0e, 6, 256), (0x0f, 7, 88)] {
                h.answer(Raw::new(opcode, at).aeth(0x1f).data(len));
            }
        } else {
            h.answer(Raw::new(0x12, 5).aeth(0x1f));
        }
        h.ack(all[1]);
        assert_eq!(h.statuses(), [Success; 4], "{op:?}");
        assert_eq!(h.numbers(), []);
    }
}

#[test]
fn a_timeout_sends_everything_again() {
    let mut h = keeper();
    h.post(SendOp::Send, 256 * 3);
    h.numbers();
    h.nak(5, 0x60);
    h.numbers();
    let timeout = h.now + 16 * TIMEOUT;
    while let Some(at) = h.requester.next_deadline().filter(|at| *at < timeout) {
        h.time(at);
        h.numbers();
    }
    h.time(timeout);
    assert_eq!(h.numbers(), [5, 6, 7]);
    h.ack(7);
    assert_eq!(h.statuses(), [Success; 3]);
}

#[test]
fn responses_say_nothing_of_what_is_behind_them() {
    // A READ that is missing does not tell what is kept.
    let mut h = sent(1);
    h.ack(1);
    h.post(SendOp::Read, 256 * 3);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [2, 5]);
    h.nak(2, 0x60);
    assert_eq!(h.numbers(), [2, 5]);
    // Nor does an ACK before one.
    let mut h = sent(2);
    h.post(SendOp::Read, 256);
    h.post(SendOp::Send, 256 * 2);
    assert_eq!(h.numbers(), [3, 4, 5]);
    for _ in 0..4 {
        h.nak(1, 0x60);
        assert_eq!(h.numbers(), [1]);
        h.now += ROUND_TRIP;
    }
    h.ack(2);
    // Maybe its response comes, but a responder that dropped it has said so already.
    assert_eq!(h.numbers(), [3]);
    h.now += ROUND_TRIP;
    h.answer(Raw::new(0x10, 3).aeth(0x1f).data(256));
    h.ack(5);
    assert_eq!(h.statuses(), [Success; 4]);
    // A responder that is known to keep them is asked for the READ alone.
    let mut h = keeper();
    h.post(SendOp::Read, 256);
    h.post(SendOp::Read, 256);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [5, 6, 7]);
    h.nak(5, 0x60);
    assert_eq!(h.numbers(), [5]);
    for at in [5, 6] {
        h.answer(Raw::new(0x10, at).aeth(0x1f).data(256));
        assert_eq!(h.numbers(), []);
    }
    h.ack(7);
    assert_eq!(h.statuses(), [Success; 5]);
}

/// How many packets of a long message go out together after one of a hundred packets, of which
/// those with the numbers `holes` are lost.
fn window_after(holes: &[u32]) -> usize {
    let (mut h, next) = with_large_window();
    h.post(SendOp::Write, 256 * 100);
    h.numbers();
    h.nak(next + holes[0], 0x60);
    for hole in &holes[1..] {
        assert_eq!(h.numbers().len(), 1);
        h.now += ROUND_TRIP;
        h.ack(next + hole - 1);
    }
    h.numbers();
    h.now += ROUND_TRIP;
    h.ack(next + 99);
    h.post(SendOp::Write, 256 * 4000);
    h.numbers().len()
}

#[test]
fn many_losses_close_together_shrink_the_window_once_more() {
    let few = window_after(&[0, 4]);
    assert_eq!(window_after(&[0]), few);
    // What was lost together is one loss.
    assert_eq!(window_after(&[0, 1, 2]), few);
    // Three of thirty are not often.
    assert_eq!(window_after(&[0, 4, 30]), few);
    let many = window_after(&[0, 4, 8]);
    assert!((few / 2..few).contains(&many), "{many} {few}");
    assert_eq!(window_after(&[0, 4, 8, 12, 16]), many);
    let more = window_after(&[0, 4, 8, 12, 16, 20]);
    assert!(more < many, "{more} {many}");
}

/// A long message, of which all but the newest packet is acknowledged each round trip, so that the
/// bandwidth is measured.
struct Flow {
    h: Host,
    /// The newest packet.
    last: u32,
}

impl Flow {
    /// A message of so many packets, of which some are sent.
    fn new(packets: u32) -> Self {
        let (mut h, next) = with_large_window();
        h.post(SendOp::Write, 256 * packets);
        let last = next;
        let mut flow = Self { h, last };
        flow.rounds(40);
        flow
    }

    /// Sends what the window has room for. How many packets that is.
    fn send(&mut self) -> u32 {
        let before = self.last;
        self.last = self.h.numbers().into_iter().fold(before, u32::max);
        self.last - before
    }

    /// So many round trips go by. The window in the last one.
    fn rounds(&mut self, count: u32) -> u32 {
        let mut window = 0;
        for _ in 0..count {
            window = self.send();
            self.h.now += ROUND_TRIP;
            self.h.ack(self.last - 1);
        }
        window
    }

    /// The oldest packet is lost, and those with the numbers `holes` behind it.
    fn lose(&mut self, holes: &[u32]) {
        let oldest = self.last;
        self.send();
        self.h.nak(oldest, 0x60);
        for hole in holes {
            self.send();
            self.h.now += ROUND_TRIP;
            self.h.ack(oldest + hole - 1);
        }
        self.rounds(1);
    }
}

/// More packets than a test sends.
const MANY: u32 = 200_000;

/// A window that many losses have made small, in a message of so many packets.
fn small_window(packets: u32) -> Flow {
    let mut flow = Flow::new(packets);
    flow.lose(&[4, 8]);
    flow.rounds(8);
    flow
}

/// The window some round trips after the loss of a packet, and in the same recovery of those with
/// the numbers `holes` behind it. Before that, many losses have made it small.
fn window_long_after(holes: &[u32]) -> u32 {
    let mut flow = small_window(MANY);
    flow.lose(holes);
    flow.rounds(8)
}

/// The same of responses of a READ.
fn window_long_after_read(holes: &[u32]) -> u32 {
    let (_, begin) = with_large_window();
    // The message ends with the packet that was sent last.
    let sent = small_window(MANY).last + 1 - begin;
    let Flow { mut h, last } = small_window(sent);
    h.ack(last);
    let first = last + 1;
    h.post(SendOp::Read, 256 * 200);
    h.numbers();
    h.now += ROUND_TRIP;
    let response = |at: u32| Raw::new(0x0e, at).data(256);
    let lost: Vec<u32> = [0].iter().chain(holes).map(|hole| first + hole).collect();
    for at in (first..first + 200).filter(|at| !lost.contains(at)) {
        h.answer(response(at));
    }
    h.time(h.requester.next_deadline().unwrap());
    for at in lost {
        assert_eq!(h.numbers(), [at]);
        h.now += ROUND_TRIP;
        h.answer(response(at));
    }
    h.post(SendOp::Write, 256 * MANY);
    let last = first + 200;
    Flow { h, last }.rounds(8)
}

#[test]
fn a_window_that_is_too_small_grows_after_a_response_that_is_lost_alone() {
    let (alone, others) = (
        window_long_after_read(&[]),
        window_long_after_read(&[40, 80]),
    );
    assert!(alone > others + others / 8, "{alone} {others}");
}

#[test]
fn a_window_that_is_too_small_grows_after_a_loss_that_is_alone() {
    let (alone, others) = (window_long_after(&[]), window_long_after(&[40, 80]));
    assert!(alone > others + others / 8, "{alone} {others}");
}

#[test]
fn a_lost_train_is_one_loss() {
    // As in `window_after`, with the rest of a train of eight packets lost together.
    let window_after = |trains: &[u32]| {
        let (mut h, next) = with_trains();
        for _ in 0..2 {
            h.post(SendOp::Write, 256 * 50);
        }
        while h.poll().is_some() {
            h.requester.poll_middles(7, h.now);
        }
        h.nak(next + trains[0], 0x60);
        for (i, train) in trains.iter().enumerate() {
            let first = next + train;
            let sent: Vec<_> = h.sent().iter().map(|s| (s.1, s.2)).collect();
            // After the first one, what begins a train is taken for one.
            let is_whole = i != 0 && train % 8 == 0;
            let count = if is_whole { 8 } else { 1 };
            assert_eq!(sent, asking(first, first + count));
            if !is_whole {
                let end = next + (train / 8 + 1) * 8;
                assert_eq!(after(&mut h, first + 1), asking(first + 1, end));
            }
            h.now += ROUND_TRIP;
            h.ack(next + trains.get(i + 1).unwrap_or(&100) - 1);
        }
        h.post(SendOp::Write, 256 * 4000);
        h.numbers().len()
    };
    let few = window_after(&[0]);
    assert_eq!(window_after(&[0, 16]), few);
    // Three of more than thirty packets are not often.
    assert_eq!(window_after(&[0, 17, 34]), few);
    let many = window_after(&[0, 9, 18]);
    assert!((few / 2..few).contains(&many), "{many} {few}");
}

#[test]
fn a_long_read_is_asked_for_in_pieces_that_can_be_kept() {
    let (mut h, next) = with_large_window();
    h.post(SendOp::Read, 256 * 1024);
    assert_eq!(h.numbers(), [next, next + 256, next + 512, next + 768]);
}

#[test]
fn an_early_response_does_not_make_a_large_window_smaller() {
    let (mut h, next) = with_large_window();
    for _ in 0..2 {
        h.post(SendOp::Read, 256 * 256);
    }
    assert_eq!(h.numbers(), [next, next + 256]);
    h.answer(Raw::new(0x0e, next + 1).data(256));
    assert_eq!(h.requester.stats().early_kept, 1);
    for _ in 0..2 {
        h.post(SendOp::Read, 256 * 256);
    }
    assert_eq!(h.numbers(), [next + 512, next + 768]);
}
