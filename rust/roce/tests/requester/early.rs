// SPDX-License-Identifier: GPL-2.0

//! Responses that come before an earlier one.

use super::*;

/// The round trip that the connection of [`measured`] has seen, nanoseconds.
const ROUND_TRIP: u64 = 100 * US;

/// A connection that has measured a round trip. The next number is 1.
fn measured() -> Host {
    measured_with(4)
}

/// The same, with so many READs outstanding at most.
fn measured_with(max_rd_atomic: u8) -> Host {
    let mut c = config();
    c.timeout = 14;
    c.max_rd_atomic = max_rd_atomic;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [0]);
    h.now += ROUND_TRIP;
    h.ack(0);
    h
}

/// A packet of a READ response whose bytes tell its number.
fn data(at: u32, len: usize) -> Raw {
    let mut raw = Raw::new(0x0e, at).data(len);
    raw.payload = vec![at as u8; len];
    raw
}

fn counts(h: &Host) -> (u32, u32, u32) {
    let stats = h.requester.stats();
    (stats.retransmitted, stats.early_kept, stats.implied_naks)
}

#[test]
fn every_order_of_responses_gives_the_same_bytes() {
    let orders: [[u32; 5]; 5] = [
        [1, 2, 3, 4, 5],
        [5, 4, 3, 2, 1],
        [2, 1, 4, 3, 5],
        [3, 4, 5, 1, 2],
        [5, 1, 2, 3, 4],
    ];
    for order in orders {
        let mut h = measured();
        h.post(SendOp::Read, 256 * 2 + 100);
        h.post(SendOp::Read, 256 + 4);
        assert_eq!(h.numbers(), [1, 4]);
        for at in order {
            let len = [256, 256, 100, 256, 4][at as usize - 1];
            h.answer(data(at, len));
            // A copy changes nothing.
            h.answer(data(at, len));
        }
        assert_eq!(h.statuses(), [Success; 3], "{order:?}");
        let first: Vec<u8> = [[1; 256], [2; 256], [3; 256]].concat();
        assert_eq!(h.env.buffers[1], first[..612], "{order:?}");
        assert_eq!(
            h.env.buffers[2],
            [&[4; 256][..], &[5; 4][..]].concat(),
            "{order:?}"
        );
        assert_eq!(h.numbers(), []);
        let (retransmitted, _, naks) = counts(&h);
        assert_eq!((retransmitted, naks), (0, 0));
        assert_eq!(h.requester.next_deadline(), None);
    }
}

#[test]
fn what_does_not_come_within_half_a_round_trip_is_asked_for_alone() {
    let mut h = measured();
    h.post(SendOp::Read, 256 * 4);
    h.post(SendOp::Read, 256 * 2);
    h.numbers();
    for at in [1, 3, 4, 5, 6] {
        h.answer(data(at, 256));
    }
    let at = h.now + ROUND_TRIP / 2;
    assert_eq!(h.requester.next_deadline(), Some(at));
    h.time(at - 1);
    assert_eq!(h.numbers(), []);
    h.time(at);
    assert_eq!(h.numbers(), [2]);
    assert_eq!(counts(&h), (1, 4, 1));
    // It is asked for once; then it is the timeouts' turn.
    h.answer(data(5, 256));
    h.time(at + ROUND_TRIP);
    assert_eq!(h.numbers(), []);
    h.answer(data(2, 256));
    assert_eq!(h.statuses(), [Success; 3]);
    assert_eq!(h.requester.next_deadline(), None);
}

#[test]
fn an_atomic_behind_a_read_that_is_late_has_a_whole_round_trip() {
    for is_lost in [false, true] {
        let mut h = measured();
        h.post(SendOp::Read, 256);
        h.post(SendOp::FetchAdd, 8);
        h.post(SendOp::Send, 8);
        assert_eq!(h.numbers(), [1, 2, 3]);
        h.ack(3);
        h.time(h.now + ROUND_TRIP / 2);
        assert_eq!(h.numbers(), [1]);
        h.now += ROUND_TRIP / 10;
        h.answer(data(1, 256));
        assert_eq!(h.numbers(), []);
        if is_lost {
            let at = h.requester.next_deadline().unwrap();
            assert!(at >= h.now + ROUND_TRIP * 4 / 10);
            h.time(at);
            assert_eq!(h.numbers(), [2]);
        }
        h.answer(Raw::new(0x12, 2).aeth(0x1f));
        assert_eq!(h.statuses(), [Success; 4]);
    }
}

#[test]
fn what_may_not_be_retried_has_a_whole_round_trip() {
    let mut h = Host::with(&RequesterConfig {
        timeout: 14,
        retry_cnt: 0,
        ..config()
    });
    h.post(SendOp::Send, 8);
    h.numbers();
    h.now += ROUND_TRIP;
    h.ack(0);
    h.post(SendOp::Read, 256 * 2);
    h.numbers();
    h.answer(data(2, 256));
    assert_eq!(h.requester.next_deadline(), Some(h.now + ROUND_TRIP));
}

#[test]
fn an_answer_that_overtook_a_response_counts_when_that_has_come() {
    let mut h = measured();
    h.post(SendOp::Read, 256 * 2);
    h.post(SendOp::Send, 8);
    h.post(SendOp::FetchAdd, 8);
    assert_eq!(h.numbers(), [1, 3, 4]);
    h.ack(3);
    h.answer(data(2, 256));
    assert_eq!(h.statuses(), [Success]);
    h.answer(data(1, 256));
    assert_eq!(h.statuses(), [Success; 3]);
    // The atomic is still waited for, and nothing says that its response is lost.
    assert!(h.requester.next_deadline().unwrap() > h.now + ROUND_TRIP);
    assert_eq!(h.numbers(), []);
    let mut raw = Raw::new(0x12, 4).aeth(0x1f);
    raw.original = 1;
    h.answer(raw);
    assert_eq!(h.statuses(), [Success; 4]);
}

#[test]
fn a_gap_behind_a_missing_response_goes_back() {
    let mut h = measured();
    h.post(SendOp::Read, 256 * 2);
    h.post(SendOp::Send, 8);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [1, 3, 4]);
    // The responder says this once.
    h.nak(3, 0x60);
    assert_eq!(h.numbers(), [1, 3, 4]);
    h.nak(3, 0x60);
    assert_eq!(h.numbers(), []);
    for at in 1..=2 {
        h.answer(data(at, 256));
    }
    h.ack(4);
    assert_eq!(h.statuses(), [Success; 4]);
}

#[test]
fn the_response_of_an_atomic_that_came_early_is_asked_for_after_a_round_trip() {
    let mut h = measured();
    h.post(SendOp::Read, 256);
    h.post(SendOp::FetchAdd, 8);
    assert_eq!(h.numbers(), [1, 2]);
    h.now += ROUND_TRIP;
    let answer = |h: &mut Host| h.answer(Raw::new(0x12, 2).aeth(0x1f));
    answer(&mut h);
    h.answer(data(1, 256));
    assert_eq!(h.statuses(), [Success; 2]);
    // Nothing would be learnt of one that comes twice.
    assert_eq!(h.requester.next_deadline(), Some(h.now + ROUND_TRIP));
    h.time(h.now + ROUND_TRIP);
    assert_eq!(h.numbers(), [2]);
    answer(&mut h);
    assert_eq!(h.statuses(), [Success; 3]);
}

#[test]
fn local_work_between_reads_ends_in_order() {
    let mut h = measured();
    h.post(SendOp::Read, 256);
    h.post(SendOp::Local, 0);
    h.post(SendOp::Read, 256);
    assert_eq!(h.numbers(), [1, 2]);
    h.answer(data(2, 256));
    assert_eq!(h.statuses(), [Success]);
    h.answer(data(1, 256));
    assert_eq!(h.statuses(), [Success; 4]);
    assert_eq!(h.env.buffers[3], [2; 256]);
}

#[test]
fn what_does_not_fit_is_not_kept() {
    let mut h = measured();
    h.post(SendOp::Read, 256 * 2);
    h.post(SendOp::CmpSwap, 8);
    h.numbers();
    // Another length, another kind, and a number that is not in flight.
    h.answer(data(2, 255));
    h.answer(data(3, 8));
    h.answer(data(9, 256));
    assert_eq!(counts(&h).1, 0);
    h.answer(data(1, 256));
    assert_eq!(h.statuses(), [Success]);
    h.time(h.now + ROUND_TRIP);
    assert_eq!(h.numbers(), [2]);
    h.answer(data(2, 256));
    assert_eq!(h.statuses(), [Success; 2]);
}

/// Timeouts long enough for a probe.
const PROBE: u64 = roce::rtt::MIN_PROBE_NS;

#[test]
fn only_holes_are_asked_for_and_the_next_one_at_once() {
    let mut h = measured();
    h.post(SendOp::Read, 256 * 6);
    h.post(SendOp::Read, 256 * 3);
    assert_eq!(h.numbers(), [1, 7]);
    for at in [3, 5, 6, 8, 9] {
        h.answer(data(at, 256));
    }
    h.time(h.now + ROUND_TRIP);
    // Two packets from the first on: a READ of 512 bytes.
    let packet = h.poll().unwrap();
    assert_eq!(packet.header.as_slice()[9..12], [0xff; 3]);
    assert_eq!(packet.header.as_slice()[24..28], 512u32.to_be_bytes());
    assert!(packet.again);
    assert_eq!(h.numbers(), []);
    // The other one is on its way.
    h.now += ROUND_TRIP;
    h.answer(data(1, 256));
    assert_eq!(h.numbers(), []);
    h.answer(data(2, 256));
    assert_eq!(h.numbers(), [4]);
    h.answer(data(4, 256));
    assert_eq!(h.numbers(), [7]);
    assert_eq!(counts(&h), (3, 5, 3));
    h.answer(data(7, 256));
    assert_eq!(h.statuses(), [Success; 3]);
    assert_eq!(h.requester.next_deadline(), None);
}

/// The first packet of a READ comes late: it is asked for again, and its copy comes as well, if
/// `is_late`. Returns how long it was waited for.
fn read_late(h: &mut Host, at: u32, is_late: bool) -> u64 {
    h.post(SendOp::Read, 256 * 2);
    assert_eq!(h.numbers(), [at]);
    h.answer(data(at + 1, 256));
    let wait = h.requester.next_deadline().unwrap() - h.now;
    h.time(h.now + wait);
    assert_eq!(h.numbers(), [at]);
    h.answer(data(at, 256));
    if is_late {
        h.answer(data(at, 256));
    }
    wait
}

#[test]
fn who_was_asked_too_early_gets_more_time() {
    let mut h = measured();
    let waits: Vec<u64> = (0..6).map(|i| read_late(&mut h, 1 + 2 * i, true)).collect();
    assert_eq!(waits[0], ROUND_TRIP / 2);
    assert_eq!(waits[1..], [1, 2, 3, 4, 4].map(|i| i * ROUND_TRIP));
    // Of those that were lost, each that is forgotten counts.
    let waits: Vec<u64> = (6..15)
        .map(|i| read_late(&mut h, 1 + 2 * i, false))
        .collect();
    // No less is waited than a round trip, because some were late.
    let expect = [4, 4, 4, 4, 4, 3, 2, 1, 1];
    assert_eq!(waits, expect.map(|i| i * ROUND_TRIP));
}

#[test]
fn two_answers_to_two_questions_tell_nothing() {
    let mut h = measured();
    h.post(SendOp::Read, 256 * 2);
    assert_eq!(h.numbers(), [1]);
    h.answer(data(2, 256));
    for _ in 0..2 {
        h.time(h.requester.next_deadline().unwrap());
        assert_eq!(h.numbers(), [1]);
    }
    h.answer(data(1, 256));
    h.answer(data(1, 256));
    assert_eq!(read_late(&mut h, 3, false), ROUND_TRIP / 2);
}

#[test]
fn what_is_asked_for_again_may_be_lost_again() {
    let mut h = measured();
    h.post(SendOp::Read, 256 * 3);
    h.numbers();
    h.answer(data(1, 256));
    h.answer(data(3, 256));
    h.time(h.now + ROUND_TRIP);
    assert_eq!(h.numbers(), [2]);
    for wait in [1, 2, 4] {
        let at = h.now + wait * PROBE;
        assert_eq!(h.requester.next_deadline(), Some(at));
        h.time(at);
        assert_eq!(h.numbers(), [2]);
    }
    // One loss, and one retry.
    assert_eq!(counts(&h).2, 1);
    h.answer(data(2, 256));
    assert_eq!(h.statuses(), [Success; 2]);
    assert_eq!(h.requester.next_deadline(), None);
}

#[test]
fn what_is_lost_is_not_asked_for_beside_the_timeout() {
    let mut h = measured();
    h.post(SendOp::Read, 256 * 3);
    h.post(SendOp::Send, 8);
    h.numbers();
    h.answer(data(2, 256));
    let timeout = h.now + ROUND_TRIP / 2 + 16 * TIMEOUT;
    let mut asked = 0;
    while let Some(at) = h.requester.next_deadline().filter(|at| *at < timeout) {
        h.time(at);
        // At some times only the timer of the probe has expired; later there are echoes.
        match h.numbers()[..] {
            [1] => asked += 1,
            [] | [0] => {}
            ref sent => panic!("{sent:?}"),
        }
    }
    assert_eq!(asked, 5);
    h.time(timeout);
    assert_eq!(h.requester.stats().timeouts, 1);
    assert_eq!(h.numbers(), [1, 4]);
    // All of it was sent again: what is missing gets its time.
    h.answer(data(1, 256));
    assert_eq!(h.numbers(), []);
    assert_eq!(h.requester.next_deadline(), Some(h.now + PROBE));
    h.answer(data(3, 256));
    h.ack(4);
    assert_eq!(h.statuses(), [Success; 3]);
}

#[test]
fn reads_go_on_while_a_response_is_missing() {
    let mut h = measured_with(64);
    for _ in 0..20 {
        h.post(SendOp::Read, 256 * 32);
    }
    // A window of 64 packets.
    assert_eq!(h.numbers(), [1, 33]);
    // As much is asked for as has come, as long as there is room for what comes early.
    let mut next = 65;
    for came in 1..512 {
        h.answer(data(1 + came, 256));
        for number in h.numbers() {
            assert_eq!(number, next);
            next += 32;
        }
        assert_eq!(next, 1 + (came / 32 * 32 + 64).min(512), "{came}");
    }
    assert_eq!(counts(&h), (0, 511, 0));
    h.answer(data(1, 256));
    assert_eq!(h.statuses(), [Success; 17]);
    assert_eq!(h.numbers(), [513, 545]);
}

#[test]
fn what_is_asked_for_again_with_everything_is_in_flight_again() {
    let mut h = measured_with(64);
    for _ in 0..4 {
        h.post(SendOp::Read, 256 * 32);
    }
    assert_eq!(h.numbers(), [1, 33]);
    for at in 2..=33 {
        h.answer(data(at, 256));
    }
    assert_eq!(h.numbers(), [65]);
    // A timeout leaves a window of four packets.
    for _ in 0..100 {
        h.time(h.requester.next_deadline().unwrap());
        let sent = h.numbers();
        if h.requester.stats().timeouts != 0 {
            assert_eq!(sent, [1]);
            return;
        }
    }
    panic!("no timeout");
}
