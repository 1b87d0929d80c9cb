// SPDX-License-Identifier: GPL-2.0

//! Answers that are asked for again before the timeout.

use roce::rtt::MIN_PROBE_NS;

use super::*;

/// The round trip that the connection of [`measured`] has seen, nanoseconds.
const ROUND_TRIP: u64 = 100 * US;

/// A connection that has measured a round trip.
fn measured() -> Host {
    measured_with(&config())
}

fn measured_with(config: &RequesterConfig) -> Host {
    let mut h = Host::with(config);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [0]);
    h.now += ROUND_TRIP;
    h.ack(0);
    assert_eq!(h.statuses(), [Success]);
    h
}

/// Whether a timeout was counted, or a number of probes.
fn probes(h: &Host) -> (u32, u32) {
    let stats = h.requester.stats();
    (stats.timeouts, stats.probes)
}

#[test]
fn nothing_is_asked_for_before_a_round_trip_was_measured() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    h.numbers();
    assert_eq!(h.requester.next_deadline(), Some(1000 + TIMEOUT));
}

#[test]
fn the_oldest_packet_asks_again_and_the_rest_was_there() {
    let mut h = measured();
    h.post(SendOp::Send, 256 * 4);
    assert_eq!(h.numbers(), [1, 2, 3, 4]);
    let at = h.now + MIN_PROBE_NS;
    assert_eq!(h.requester.next_deadline(), Some(at));
    h.time(at - 1);
    assert_eq!(h.numbers(), []);
    h.time(at);
    let sent = h.sent();
    let asked: Vec<_> = sent.iter().map(|s| (s.1, s.2, s.3)).collect();
    let payload = |at: u32| Some((256 * at, 256));
    // Both ask for an answer.
    assert_eq!(asked, [(1, true, payload(0)), (4, true, payload(3))]);
    assert_eq!(probes(&h), (0, 2));
    // Only the ACK was lost.
    h.now += ROUND_TRIP;
    h.ack(4);
    assert_eq!(h.statuses(), [Success; 2]);
    assert_eq!(h.numbers(), []);
    assert_eq!(h.requester.next_deadline(), None);
    assert_eq!(h.requester.stats().early_probes, 0);
}

#[test]
fn what_is_missing_is_sent_again_when_the_responder_says_so() {
    let mut h = measured();
    h.post(SendOp::Send, 256 * 4);
    h.numbers();
    h.time(h.requester.next_deadline().unwrap());
    assert_eq!(h.numbers(), [1, 4]);
    h.now += ROUND_TRIP;
    // To the first, and to the last behind a gap.
    h.ack(1);
    assert_eq!(h.numbers(), []);
    h.nak(2, 0x60);
    assert_eq!(h.numbers(), [2]);
    assert_eq!(h.requester.stats().retransmitted, 1);
    h.ack(4);
    assert_eq!(h.statuses(), [Success; 2]);
}

#[test]
fn answers_that_took_long_have_nothing_sent_again() {
    // Whenever they come, and however few packets each answers.
    for late in [
        0,
        ROUND_TRIP / 4,
        ROUND_TRIP,
        3 * ROUND_TRIP,
        100 * ROUND_TRIP,
    ] {
        let mut c = config();
        c.timeout = 18;
        let mut h = measured_with(&c);
        h.post(SendOp::Send, 256 * 4);
        h.numbers();
        h.time(h.requester.next_deadline().unwrap());
        assert_eq!(h.numbers(), [1, 4]);
        h.now += late;
        for number in 1..=4 {
            h.ack(number);
            assert_eq!(h.numbers(), []);
        }
        // Those to the probe.
        h.ack(4);
        h.ack(4);
        assert_eq!(h.statuses(), [Success; 2]);
        let stats = h.requester.stats();
        assert_eq!((stats.retransmitted, stats.sequence_naks), (0, 0));
        assert_eq!(
            stats.early_probes,
            u32::from(late < ROUND_TRIP / 2),
            "{late}"
        );
    }
}

#[test]
fn a_probe_needs_no_room_in_the_window_and_leaves_the_cursor() {
    let mut h = measured();
    // The window is 64 packets.
    h.post(SendOp::Send, 256 * 3);
    h.post(SendOp::Send, 256 * 80);
    assert_eq!(h.numbers(), (1..=64).collect::<Vec<_>>());
    h.time(h.requester.next_deadline().unwrap());
    let sent = h.sent();
    assert_eq!(sent.iter().map(|s| s.1).collect::<Vec<_>>(), [1, 64]);
    assert_eq!(sent[1].3, Some((256 * 60, 256)));
    h.ack(64);
    assert_eq!(h.numbers(), (65..=83).collect::<Vec<_>>());
    h.ack(83);
    assert_eq!(h.statuses(), [Success; 3]);
    assert_eq!(h.requester.stats().retransmitted, 0);
}

#[test]
fn nothing_that_has_a_response_is_repeated() {
    for response in [
        SendOp::Read,
        SendOp::FetchAdd,
        SendOp::CmpSwap,
        SendOp::AtomicWrite,
        SendOp::Flush,
    ] {
        for (ops, repeated) in [
            ([response, SendOp::Send, SendOp::Send], 0),
            ([SendOp::Send, SendOp::Send, response], 1),
        ] {
            let mut h = measured();
            for op in ops {
                h.post(op, 8);
            }
            assert_eq!(h.numbers(), [1, 2, 3]);
            let timeout = h.now + TIMEOUT;
            h.time(h.requester.next_deadline().unwrap());
            // Or else it is an echo.
            assert_eq!(h.numbers(), [repeated], "{ops:?}");
            assert_eq!(probes(&h), (0, 1));
            h.time(timeout);
            assert_eq!(h.numbers(), [1, 2, 3]);
        }
    }
}

#[test]
fn what_becomes_the_oldest_is_not_repeated_either() {
    let mut h = measured_with(&RequesterConfig {
        timeout: 14,
        ..config()
    });
    h.post(SendOp::Send, 8);
    h.post(SendOp::Read, 8);
    assert_eq!(h.numbers(), [1, 2]);
    h.now += ROUND_TRIP;
    h.ack(1);
    h.time(h.now + MIN_PROBE_NS);
    assert_eq!(h.sent(), [(0x0a, 1, true, None)]);
    h.answer(Raw::new(0x10, 2).aeth(0x1f).data(8));
    // The other way round the wait begins when the READ has ended.
    h.post(SendOp::Read, 8);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [3, 4]);
    h.now += ROUND_TRIP;
    h.answer(Raw::new(0x10, 3).aeth(0x1f).data(8));
    let wait = h.requester.next_deadline().unwrap() - h.now;
    assert_eq!(wait, MIN_PROBE_NS);
    h.time(h.now + wait);
    assert_eq!(h.numbers(), [4]);
}

#[test]
fn probes_stay_as_far_apart_until_a_round_trip_was_measured() {
    let mut c = config();
    c.timeout = 18;
    let mut h = measured_with(&c);
    // Round trips now take 20 ms.
    let long = 5 * MIN_PROBE_NS;
    let mut number = 0;
    for wait in [1, 4] {
        number += 1;
        h.post(SendOp::Send, 8);
        assert_eq!(h.numbers(), [number]);
        let sent = h.now;
        assert_eq!(
            h.requester.next_deadline(),
            Some(sent + wait * MIN_PROBE_NS)
        );
        while let Some(at) = h.requester.next_deadline().filter(|at| *at < sent + long) {
            h.time(at);
            assert_eq!(h.numbers(), [number]);
        }
        h.now = sent + long;
        h.ack(number);
    }
    // Probes at 4 and 12 ms, and at 16; then none, and what was answered is measured.
    number += 1;
    assert_eq!(probes(&h), (0, 3));
    h.post(SendOp::Send, 8);
    h.numbers();
    assert_eq!(h.requester.next_deadline(), Some(h.now + 8 * MIN_PROBE_NS));
    h.now += long;
    h.ack(number);
    h.post(SendOp::Send, 8);
    h.numbers();
    let wait = h.requester.next_deadline().unwrap() - h.now;
    assert!(wait > long && wait < 2 * long, "{wait}");
}

#[test]
fn probes_back_off_and_count_no_retry() {
    let mut c = config();
    c.timeout = 14;
    let timeout = 16 * TIMEOUT;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 8);
    h.numbers();
    h.now += ROUND_TRIP;
    h.ack(0);
    h.post(SendOp::Send, 8);
    h.numbers();
    let begin = h.now;
    let mut waits = Vec::new();
    while h.statuses().len() == 1 {
        let t = h.requester.next_deadline().unwrap();
        waits.push((t - h.now) / 1_000_000);
        h.time(t);
        let sent = h.numbers();
        // After the third time there are echoes, which are small.
        let expect = u32::from(waits.len() < 4);
        let is_again = probes(&h).0 != 0 && sent == [1];
        assert!(sent == [expect] || is_again || h.statuses().len() == 2);
    }
    // The attribute says when the connection has failed, as without probes.
    assert_eq!(h.now - begin, 4 * timeout);
    assert_eq!(h.statuses(), [Success, RetryExcErr]);
    assert_eq!(waits[..5], [4, 8, 16, 3, 3]);
    assert_eq!(probes(&h).0, 4);
    let sent = u64::from(probes(&h).1);
    assert!(sent < 4 * timeout / 3_000_000, "{sent}");
}

#[test]
fn probes_go_on_where_the_timeout_went_back() {
    let mut h = measured();
    h.post(SendOp::Send, 8);
    h.numbers();
    h.time(h.now + MIN_PROBE_NS);
    assert_eq!(h.numbers(), [1]);
    h.time(h.now + TIMEOUT);
    assert_eq!(h.numbers(), [1]);
    assert_eq!(probes(&h), (1, 1));
    h.ack(1);
    assert_eq!(h.statuses(), [Success; 2]);
    assert_eq!(h.requester.next_deadline(), None);
}

#[test]
fn answers_of_a_hostile_peer_change_nothing() {
    let mut h = measured();
    h.post(SendOp::Send, 256 * 4);
    h.numbers();
    let at = h.requester.next_deadline();
    // ACKs of what was not sent, and of the past; NAKs of both.
    for number in [5, 6, 1000, 0x7f_ffff, 0x80_0001, 0xff_ffff] {
        h.now += 1;
        h.ack(number);
        h.nak(number, 0x60);
        assert_eq!(h.numbers(), []);
    }
    assert_eq!(h.requester.next_deadline(), at);
    h.time(at.unwrap());
    assert_eq!(h.numbers(), [1, 4]);
    // A probe does not turn them into answers.
    for number in [5, 6, 1000, 0x7f_ffff, 0x80_0001, 0xff_ffff] {
        h.ack(number);
        h.nak(number, 0x60);
        assert_eq!(h.numbers(), []);
    }
    assert_eq!(probes(&h), (0, 2));
    h.ack(4);
    assert_eq!(h.statuses(), [Success; 2]);
}

#[test]
fn a_packet_sent_twice_is_not_measured() {
    let mut c = config();
    c.timeout = 14;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 256 * 2);
    h.numbers();
    h.nak(0, 0x60);
    assert_eq!(h.numbers(), [0]);
    // This would be a round trip of nearly a timeout.
    h.now += 15 * TIMEOUT;
    h.ack(1);
    h.post(SendOp::Send, 8);
    h.numbers();
    assert_eq!(h.requester.next_deadline(), Some(h.now + 16 * TIMEOUT));
}

#[test]
fn a_responder_that_is_not_ready_is_not_probed() {
    let mut h = measured();
    h.post(SendOp::Send, 8);
    h.numbers();
    h.nak(1, 0x20 | 14);
    h.time(h.requester.next_deadline().unwrap());
    assert_eq!(h.numbers(), [1]);
    let now = h.now;
    h.time(now + MIN_PROBE_NS);
    assert_eq!(h.numbers(), []);
    assert_eq!(probes(&h), (0, 0));
    h.time(now + TIMEOUT);
    assert_eq!(h.numbers(), [1]);
}
