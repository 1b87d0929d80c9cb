// SPDX-License-Identifier: GPL-2.0

//! Small messages that tell no completion: their answer is asked for later.

use roce::rtt::MIN_PROBE_NS;

use super::*;

const ROUND_TRIP: u64 = 100 * US;

/// A connection that has measured a round trip, with a timeout of 67 ms.
fn measured() -> Host {
    let mut c = config();
    c.timeout = 14;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 8);
    assert_eq!(asked(&mut h), [(0, true)]);
    h.now += ROUND_TRIP;
    h.ack(0);
    h
}

fn quiet(op: SendOp, length: u32) -> SendWr {
    SendWr {
        op,
        length,
        ..SendWr::default()
    }
}

/// The same, with so many small SENDs behind, none of which has asked.
fn with_tail(count: u32) -> Host {
    let mut h = measured();
    for number in 1..=count {
        h.post_wr(quiet(SendOp::Send, 8));
        assert_eq!(asked(&mut h), [(number, false)]);
    }
    h
}

/// Numbers sent, and whether each asks for an answer.
fn asked(h: &mut Host) -> Vec<(u32, bool)> {
    h.sent().iter().map(|s| (s.1, s.2)).collect()
}

/// Packets that were sent again to ask, for other reasons, and timeouts.
fn counts(h: &Host) -> (u32, u32, u32) {
    let stats = h.requester.stats();
    (
        stats.tails,
        stats.retransmitted + stats.probes,
        stats.timeouts,
    )
}

#[test]
fn one_of_sixteen_asks() {
    let mut h = measured();
    let mut all = Vec::new();
    for number in 1..=160 {
        h.post_wr(quiet(SendOp::Write, 8));
        let sent = asked(&mut h);
        assert_eq!(sent.len(), 1);
        if sent[0].1 {
            all.push(number);
            h.now += ROUND_TRIP;
            h.ack(number);
            assert_eq!(h.requester.outstanding(), 0);
        }
    }
    assert_eq!(all, (1..=10).map(|i| 16 * i).collect::<Vec<_>>());
    assert_eq!(counts(&h), (0, 0, 0));
}

#[test]
fn what_somebody_waits_for_asks() {
    let mut h = with_tail(1);
    h.post(SendOp::Send, 8);
    assert_eq!(asked(&mut h), [(2, true)]);
    h.ack(2);
    assert_eq!(h.statuses(), [Success; 3]);
    // What would be sent again is not small.
    h.post_wr(quiet(SendOp::Send, 257));
    assert_eq!(asked(&mut h), [(3, false), (4, true)]);
}

#[test]
fn nothing_is_put_off_that_the_timeout_would_count() {
    for timeout in [0, 10, 11] {
        let mut c = config();
        c.timeout = timeout;
        let mut h = Host::with(&c);
        // No round trip was measured; then, one was.
        for number in 0..2 {
            h.post_wr(quiet(SendOp::Send, 8));
            assert_eq!(asked(&mut h), [(number, true)]);
            h.now += ROUND_TRIP;
            h.ack(number);
        }
    }
}

#[test]
fn a_queue_that_is_half_full_asks() {
    let mut h = measured();
    // A READ that takes long, and no ACK: the requests stay.
    h.post(SendOp::Read, 8);
    h.numbers();
    let mut first = None;
    for number in 2..30 {
        h.post_wr(quiet(SendOp::Write, 8));
        let sent = asked(&mut h);
        first = first.or(sent[0].1.then_some(number));
        if number > 17 {
            assert!(sent[0].1, "{number}");
        }
    }
    assert_eq!(first, Some(17));
}

#[test]
fn a_tail_is_asked_for_and_that_is_no_loss() {
    let mut h = with_tail(3);
    let at = h.now + MIN_PROBE_NS;
    assert_eq!(h.requester.next_deadline(), Some(at));
    h.time(at - 1);
    assert_eq!(asked(&mut h), []);
    h.time(at);
    // The newest alone, which tells of all.
    assert_eq!(asked(&mut h), [(3, true)]);
    assert_eq!(counts(&h), (1, 0, 0));
    assert_eq!(h.requester.next_deadline(), Some(at + MIN_PROBE_NS));
    h.now += ROUND_TRIP;
    h.ack(3);
    assert_eq!(h.statuses(), [Success; 4]);
    assert_eq!(h.requester.next_deadline(), None);
    // Nor is it measured.
    h.post_wr(quiet(SendOp::Send, 8));
    assert_eq!(asked(&mut h), [(4, false)]);
    h.time(h.now + MIN_PROBE_NS);
    assert_eq!(asked(&mut h), [(4, true)]);
}

#[test]
fn a_timer_that_is_late_counts_no_timeout() {
    let mut h = with_tail(1);
    h.time(h.now + 100 * TIMEOUT);
    assert_eq!(asked(&mut h), [(1, true)]);
    assert_eq!(counts(&h), (1, 0, 0));
    // Now one was asked for.
    h.time(h.now + 100 * TIMEOUT);
    assert_eq!(asked(&mut h), [(1, true)]);
    assert_eq!(counts(&h), (1, 1, 1));
}

#[test]
fn a_tail_that_was_lost_is_sent_again() {
    let mut h = with_tail(3);
    // 1 to 3 are lost, then the packet that asks.
    h.time(h.now + MIN_PROBE_NS);
    assert_eq!(asked(&mut h), [(3, true)]);
    h.time(h.requester.next_deadline().unwrap());
    assert_eq!(asked(&mut h), [(1, true), (3, true)]);
    // 1 came, 2 is missing.
    h.ack(1);
    h.nak(2, 0x60);
    assert_eq!(asked(&mut h), [(2, true)]);
    h.ack(3);
    assert_eq!(h.statuses(), [Success; 4]);
    assert_eq!(counts(&h), (1, 3, 0));
}

#[test]
fn a_gap_before_the_packet_that_asks_is_filled() {
    let mut h = with_tail(3);
    h.time(h.now + MIN_PROBE_NS);
    assert_eq!(asked(&mut h), [(3, true)]);
    // That of the first copy of 3, which crosses the second: 1 was not sent again.
    h.nak(1, 0x60);
    assert_eq!(asked(&mut h), [(1, true)]);
}

#[test]
fn what_goes_back_asks_at_its_end() {
    let mut h = with_tail(3);
    h.nak(1, 0x60);
    assert_eq!(asked(&mut h), [(1, true)]);
    h.post_wr(quiet(SendOp::Send, 8));
    // The others were not kept.
    h.now += ROUND_TRIP;
    h.ack(1);
    assert_eq!(asked(&mut h), [(2, false), (3, true), (4, false)]);
}

#[test]
fn who_waits_for_a_tail_has_it_asked_for() {
    // A queue that drains, before it does or while it does.
    for is_begun in [false, true] {
        let mut h = with_tail(1);
        if is_begun {
            h.post_wr(quiet(SendOp::Send, 8));
        }
        h.requester.drain(Drain::Begin);
        assert_eq!(asked(&mut h), [(1, true)]);
        assert_eq!(asked(&mut h), []);
        h.ack(1);
        h.numbers();
        assert_eq!(h.env.drained, 1);
    }
    // Local work, whose completion comes behind, of one or more SENDs.
    for count in [1, 2, 5] {
        for local in [1, 3] {
            let mut h = with_tail(count);
            for _ in 0..local {
                h.post(SendOp::Local, 0);
            }
            assert_eq!(asked(&mut h), [(count, true)]);
            h.ack(count);
            assert_eq!(h.statuses().len() as u32, 1 + count + local);
            assert_eq!(counts(&h), (1, 0, 0));
        }
    }
    // A request that fails.
    let mut h = with_tail(1);
    h.post(SendOp::Send, 0x8000_0001);
    assert_eq!(asked(&mut h), [(1, true)]);
    assert_eq!(asked(&mut h), []);
    h.ack(1);
    assert_eq!(h.statuses(), [Success, Success, LocLenErr]);
    assert_eq!(counts(&h), (1, 0, 0));
}

#[test]
fn a_read_behind_a_tail_asks_for_it() {
    let mut h = with_tail(1);
    h.post(SendOp::Read, 8);
    assert_eq!(asked(&mut h), [(2, true)]);
    h.answer(Raw::new(0x10, 2).aeth(0x1f).data(8));
    assert_eq!(h.statuses(), [Success; 3]);
    assert_eq!(counts(&h), (0, 0, 0));
}

#[test]
fn a_tail_behind_a_read_is_left_to_its_answer() {
    let mut h = measured();
    h.post(SendOp::Read, 8);
    h.post_wr(quiet(SendOp::Send, 8));
    assert_eq!(asked(&mut h), [(1, true), (2, false)]);
    h.requester.drain(Drain::Begin);
    assert_eq!(asked(&mut h), []);
    h.answer(Raw::new(0x10, 1).aeth(0x1f).data(8));
    assert_eq!(asked(&mut h), [(2, true)]);
    h.ack(2);
    h.numbers();
    assert_eq!(h.env.drained, 1);
    assert_eq!(counts(&h), (1, 0, 0));
}

#[test]
fn a_tail_hides_no_lost_read() {
    let mut h = measured();
    h.post(SendOp::Read, 8);
    h.post_wr(quiet(SendOp::Send, 8));
    assert_eq!(asked(&mut h), [(1, true), (2, false)]);
    h.time(h.now + 100 * TIMEOUT);
    assert_eq!(asked(&mut h)[0], (1, true));
    assert_eq!(counts(&h).2, 1);
}

#[test]
fn nothing_is_put_off_while_an_answer_is_late() {
    let mut h = with_tail(1);
    h.time(h.now + MIN_PROBE_NS);
    assert_eq!(asked(&mut h), [(1, true)]);
    h.time(h.requester.next_deadline().unwrap());
    assert_eq!(asked(&mut h), [(1, true)]);
    h.post_wr(quiet(SendOp::Send, 8));
    assert_eq!(asked(&mut h), [(2, true)]);
}

#[test]
fn nothing_is_put_off_while_a_loss_is_mended() {
    let mut h = with_tail(3);
    h.nak(1, 0x60);
    assert_eq!(asked(&mut h), [(1, true)]);
    // So this peer keeps what comes early.
    h.now += ROUND_TRIP;
    h.ack(3);
    // Nothing is left that was not asked for: the window is small by now, and a quarter of it asks.
    h.post(SendOp::Send, 8);
    assert_eq!(asked(&mut h), [(4, true)]);
    h.ack(4);
    h.post_wr(quiet(SendOp::Send, 8));
    assert_eq!(asked(&mut h), [(5, false)]);
    h.nak(5, 0x60);
    assert_eq!(asked(&mut h), [(5, true)]);
    h.post_wr(quiet(SendOp::Send, 8));
    assert_eq!(asked(&mut h), [(6, true)]);
    h.ack(6);
    // It is mended.
    h.post_wr(quiet(SendOp::Send, 8));
    assert_eq!(asked(&mut h), [(7, false)]);
}
