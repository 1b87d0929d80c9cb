// SPDX-License-Identifier: GPL-2.0

//! Lost packets, waits, refusals.

use super::*;

#[test]
fn gap_goes_back() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 256 * 6);
    assert_eq!(h.numbers().len(), 6);
    // Twice it is seen that the responder dropped what is behind it.
    for (gap, rest) in [(1, vec![2, 3, 4, 5]), (2, vec![3, 4, 5])] {
        h.nak(gap, 0x60);
        assert_eq!(h.numbers(), [gap]);
        h.ack(gap);
        assert_eq!(h.numbers(), rest);
    }
    // A copy of the NAK before anything was sent again is not another loss.
    h.nak(3, 0x60);
    h.nak(3, 0x60);
    assert_eq!(h.numbers(), [3, 4, 5]);
    assert_eq!(h.requester.stats().sequence_naks, 4);
    h.ack(5);
    assert_eq!(h.statuses(), [Success]);
}

#[test]
fn what_is_sent_again_is_marked() {
    let mut h = Host::rc();
    let again =
        |h: &mut Host| -> Vec<_> { std::iter::from_fn(|| h.poll()).map(|t| t.again).collect() };
    h.post(SendOp::Send, 256 * 4);
    assert_eq!(again(&mut h), [false; 4]);
    h.post(SendOp::Read, 256 * 2);
    h.post(SendOp::FetchAdd, 8);
    assert_eq!(again(&mut h), [false; 2]);
    // What follows was not sent before.
    h.nak(2, 0x60);
    h.post(SendOp::Send, 256 * 2);
    assert_eq!(again(&mut h), [true]);
    h.ack(2);
    assert_eq!(again(&mut h), [true, true, true, false, false]);
}

#[test]
fn gaps_without_progress_end() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 256 * 5);
    h.post(SendOp::Send, 0);
    h.numbers();
    for gap in [1, 2] {
        h.nak(gap, 0x60);
        h.numbers();
        h.ack(gap);
        h.numbers();
    }
    for _ in 0..3 {
        h.nak(3, 0x60);
        assert_eq!(h.numbers(), [3, 4, 5]);
    }
    h.nak(3, 0x60);
    assert_eq!(h.statuses(), [RetryExcErr, WrFlushErr]);
    assert_eq!(h.env.fatal, 1);
    assert_eq!(h.numbers(), []);
}

#[test]
fn silence_ends_after_the_retries() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    h.numbers();
    for i in 0..3u64 {
        let t = 1000 + (i + 1) * TIMEOUT;
        assert_eq!(h.requester.next_deadline(), Some(t));
        h.time(t - 1);
        assert_eq!(h.numbers(), []);
        h.time(t);
        assert_eq!(h.numbers(), [0]);
    }
    h.time(1000 + 4 * TIMEOUT);
    assert_eq!(h.statuses(), [RetryExcErr]);
    assert_eq!(h.env.fatal, 1);
    assert_eq!(h.requester.next_deadline(), None);
}

#[test]
fn progress_gives_the_retries_back() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 256 * 4);
    h.numbers();
    for i in 0..4 {
        for _ in 0..3 {
            let t = h.requester.next_deadline().unwrap();
            h.time(t);
            h.numbers();
        }
        h.ack(i);
    }
    assert_eq!(h.statuses(), [Success]);
}

#[test]
fn timeout_zero_waits_for_ever() {
    let mut c = config();
    c.timeout = 0;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 8);
    h.numbers();
    assert_eq!(h.requester.next_deadline(), None);
    h.time(u64::MAX);
    assert_eq!(h.statuses(), []);
}

#[test]
fn not_ready_waits_to_the_microsecond() {
    for code in 0..32u8 {
        let mut h = Host::rc();
        h.post(SendOp::Send, 8);
        h.numbers();
        h.nak(0, 0x20 | code);
        let until = h.now + rnr::delay_ns(code);
        assert_eq!(h.requester.next_deadline(), Some(until));
        h.time(until - 1);
        assert_eq!(h.numbers(), []);
        h.time(until);
        assert_eq!(h.numbers(), [0]);
    }
    assert_eq!(rnr::delay_ns(1), 10 * US);
    assert_eq!(rnr::delay_ns(14), 1280 * US);
}

#[test]
fn not_ready_ends_after_its_retries() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    h.post(SendOp::Local, 0);
    for _ in 0..2 {
        assert_eq!(h.numbers(), [0]);
        h.nak(0, 0x21);
        // Copies, and the gap that it left, do not count while waiting.
        h.nak(0, 0x21);
        h.nak(0, 0x60);
        let t = h.requester.next_deadline().unwrap();
        h.time(t);
    }
    assert_eq!(h.numbers(), [0]);
    h.nak(0, 0x21);
    assert_eq!(h.statuses(), [RnrRetryExcErr, WrFlushErr]);
    assert_eq!(h.env.fatal, 1);
}

#[test]
fn a_late_copy_of_not_ready_is_no_second_one() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [0]);
    h.nak(0, 0x21);
    let t = h.requester.next_deadline().unwrap();
    h.time(t);
    // The wait is over, and nothing was sent since.
    h.nak(0, 0x21);
    assert_eq!(h.requester.stats().rnr_naks, 1);
    assert_eq!(h.numbers(), [0]);
    h.nak(0, 0x21);
    assert_eq!(h.requester.stats().rnr_naks, 2);
    assert_eq!(h.statuses(), []);
}

#[test]
fn not_ready_seven_times_means_for_ever() {
    let mut c = config();
    c.rnr_retry = 7;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 8);
    for _ in 0..100 {
        assert_eq!(h.numbers(), [0]);
        h.nak(0, 0x21);
        let t = h.requester.next_deadline().unwrap();
        h.time(t);
    }
    assert_eq!(h.numbers(), [0]);
    h.ack(0);
    assert_eq!(h.statuses(), [Success]);
}

#[test]
fn one_packet_is_sent_until_the_responder_is_ready() {
    let mut c = config();
    c.rnr_retry = 7;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 600);
    h.post(SendOp::Send, 8);
    h.post(SendOp::Read, 8);
    assert_eq!(h.numbers(), [0, 1, 2, 3, 4]);
    for refusals in 0..20u32 {
        let wait = (10 * US) << refusals.min(7);
        h.nak(0, 0x21);
        assert_eq!(h.requester.next_deadline(), Some(h.now + wait));
        h.time(h.now + wait);
        // It asks for the answer that the others wait for.
        let asked = h.poll().map(|t| t.header.as_slice()[8] & 0x80);
        assert_eq!(asked, Some(0x80));
        assert_eq!(h.numbers(), []);
        // A report of the gap that the first refusal left is late.
        h.nak(0, 0x60);
        assert_eq!(h.numbers(), []);
    }
    assert_eq!(h.requester.stats().sequence_naks, 20);
    h.ack(0);
    assert_eq!(h.numbers(), [1, 2, 3, 4]);
    h.ack(3);
    assert_eq!(h.statuses(), [Success, Success]);
}

#[test]
fn refusals() {
    for (syndrome, status) in [(0x61, RemInvReqErr), (0x62, RemAccessErr), (0x63, RemOpErr)] {
        let mut h = Host::rc();
        for _ in 0..4 {
            h.post(SendOp::Send, 300);
        }
        h.numbers();
        h.nak(3, syndrome);
        assert_eq!(h.statuses(), [Success, status, WrFlushErr, WrFlushErr]);
        assert_eq!(h.env.fatal, 1);
    }
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    h.numbers();
    h.nak(0, 0x64);
    h.nak(0, 0x40);
    assert_eq!(h.statuses(), []);
}

#[test]
fn a_responder_that_is_not_ready_is_alive() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    for _ in 0..2 {
        for _ in 0..3 {
            h.numbers();
            let t = h.requester.next_deadline().unwrap();
            h.time(t);
        }
        h.numbers();
        h.nak(0, 0x21);
        let t = h.requester.next_deadline().unwrap();
        h.time(t);
    }
    assert_eq!(h.numbers(), [0]);
    assert_eq!(h.statuses(), []);
}
