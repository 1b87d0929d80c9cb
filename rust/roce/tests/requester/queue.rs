// SPDX-License-Identifier: GPL-2.0

//! Order, local work, errors of this host, draining, flushing.

use super::*;

#[test]
fn local_work_takes_its_turn_and_is_done_once() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 0);
    h.post(SendOp::Local, 0);
    h.post(SendOp::Send, 0);
    assert_eq!(h.numbers(), [0, 1]);
    assert_eq!(h.env.locals, [1]);
    assert_eq!(h.statuses(), []);
    h.nak(0, 0x60);
    assert_eq!(h.numbers(), [0]);
    assert_eq!(h.env.locals, [1]);
    h.ack(0);
    assert_eq!(h.statuses(), [Success, Success]);
    assert_eq!(h.numbers(), [1]);
    assert_eq!(h.env.locals, [1]);
    h.ack(1);
    assert_eq!(h.statuses(), [Success; 3]);
}

#[test]
fn local_fault_waits_for_its_turn() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    let slot = h.post(SendOp::Send, 300);
    h.post(SendOp::Send, 8);
    h.poll().unwrap();
    h.poll().unwrap();
    h.requester.local_fault(slot, LocProtErr, &mut h.env);
    assert_eq!(h.statuses(), []);
    // Nobody was asked for an ACK so far: the first goes again, and asks.
    let sent = h.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].1, sent[0].2), (0, true));
    h.ack(0);
    assert_eq!(h.statuses(), [Success, LocProtErr, WrFlushErr]);
    assert_eq!(h.env.fatal, 1);
}

#[test]
fn local_fault_of_the_oldest_is_immediate() {
    for service in [Service::Rc, Service::Uc] {
        let mut c = config();
        c.service = service;
        let mut h = Host::with(&c);
        let slot = h.post(SendOp::Send, 300);
        h.post(SendOp::Send, 8);
        h.poll().unwrap();
        h.requester.local_fault(slot, LocProtErr, &mut h.env);
        assert_eq!(h.statuses(), [LocProtErr, WrFlushErr]);
        assert_eq!(h.env.fatal, 1);
    }
}

#[test]
fn bad_requests_complete_in_order() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    h.post(SendOp::Write, 0x8000_0001);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [0]);
    h.ack(0);
    assert_eq!(h.statuses(), [Success, LocLenErr, WrFlushErr]);
}

#[test]
fn uc_completes_what_it_has_sent() {
    let mut c = config();
    c.service = Service::Uc;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 600);
    h.post(SendOp::WriteImm, 8);
    h.post(SendOp::Read, 8);
    let ops: Vec<_> = h.sent().iter().map(|s| (s.0, s.2)).collect();
    assert_eq!(
        ops,
        [(0x20, false), (0x21, false), (0x22, false), (0x2b, false)]
    );
    assert_eq!(h.statuses(), [Success, Success, LocQpOpErr]);
}

/// The packets that go out now, as opcode and number.
fn packets(h: &mut Host) -> Vec<(u8, u32)> {
    h.sent().iter().map(|s| (s.0, s.1)).collect()
}

#[test]
fn uc_goes_on_after_a_failed_request() {
    let mut c = config();
    c.service = Service::Uc;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 8);
    h.post(SendOp::Read, 8);
    h.post(SendOp::Send, 8);
    assert_eq!(packets(&mut h), [(0x24, 0)]);
    assert_eq!(h.statuses(), [Success, LocQpOpErr, WrFlushErr]);
    assert_eq!(h.env.fatal, 1);
    // Nothing is sent until it may, and then not what was posted before.
    h.post(SendOp::Send, 8);
    assert_eq!(packets(&mut h), []);
    h.requester.resume(&mut h.env);
    assert_eq!(h.statuses().last(), Some(&WrFlushErr));
    assert_eq!(h.statuses().len(), 4);
    h.post(SendOp::Send, 300);
    assert_eq!(packets(&mut h), [(0x20, 1), (0x22, 2)]);
    assert_eq!(h.statuses().last(), Some(&Success));
    assert_eq!(h.env.fatal, 1);
    // Again, and from a queue that was draining.
    h.post(SendOp::Write, 0x8000_0001);
    h.requester.drain(Drain::Begin);
    h.requester.drain(Drain::End);
    assert_eq!(packets(&mut h), []);
    assert_eq!(h.env.fatal, 2);
    h.requester.drain(Drain::Begin);
    h.requester.resume(&mut h.env);
    h.post(SendOp::Send, 8);
    assert_eq!(packets(&mut h), [(0x24, 3)]);
    assert_eq!(h.statuses().last(), Some(&Success));
}

#[test]
fn uc_leaves_a_gap_behind_a_message_that_broke_off() {
    let mut c = config();
    c.service = Service::Uc;
    let mut h = Host::with(&c);
    let slot = h.post(SendOp::Send, 600);
    h.poll().unwrap();
    // The second packet is built and cannot be filled.
    h.poll().unwrap();
    h.requester.local_fault(slot, LocProtErr, &mut h.env);
    assert_eq!(h.statuses(), [LocProtErr]);
    h.requester.resume(&mut h.env);
    h.post(SendOp::Send, 8);
    assert_eq!(packets(&mut h), [(0x24, 2)]);
}

#[test]
fn a_reliable_connection_does_not_go_on() {
    let mut h = Host::rc();
    h.requester.fail(RetryExcErr, &mut h.env);
    h.requester.resume(&mut h.env);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), []);
    assert!(h.requester.is_error());
}

#[test]
fn draining_finishes_what_was_begun() {
    let mut c = config();
    c.max_window = 256 * 4;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 256 * 6);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [0, 1, 2, 3]);
    h.requester.drain(Drain::Begin);
    h.ack(3);
    assert_eq!(h.numbers(), [4, 5]);
    assert_eq!(h.env.drained, 0);
    h.ack(5);
    assert_eq!(h.numbers(), []);
    assert_eq!(h.env.drained, 1);
    assert!(h.requester.is_drained());
    h.requester.drain(Drain::End);
    assert_eq!(h.numbers(), [6]);
    assert_eq!(h.env.drained, 1);
    // An idle queue drains at the next poll.
    h.ack(6);
    h.requester.drain(Drain::Begin);
    h.numbers();
    assert_eq!(h.env.drained, 2);
}

#[test]
fn flush_and_reset() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 600);
    h.post(SendOp::Read, 8);
    h.numbers();
    h.requester.flush(&mut h.env);
    assert_eq!(h.statuses(), [WrFlushErr, WrFlushErr]);
    assert_eq!(h.env.fatal, 0);
    h.ack(2);
    h.post(SendOp::Send, 1);
    assert_eq!(h.numbers(), []);
    h.requester.flush(&mut h.env);
    assert_eq!(h.statuses(), [WrFlushErr; 3]);
    h.requester.reset();
    h.post(SendOp::Send, 1);
    assert_eq!(h.numbers(), []);
    h.requester.configure(&config());
    assert_eq!(h.numbers(), [0]);
}

#[test]
fn a_queue_of_one_slot_grows_with_a_request_under_way() {
    let mut h = Host::rc();
    h.requester = Requester::new(vec![Wqe::default(); 1]);
    h.requester.configure(&config());
    assert_eq!(h.post(SendOp::Send, 600), 0);
    assert_eq!(h.requester.room(), 0);
    h.poll().unwrap();
    let old = h.requester.grow(vec![Wqe::default(); 4]).unwrap();
    assert_eq!((old.len(), h.requester.room()), (1, 3));
    let slots: Vec<_> = (0..3).map(|_| h.post(SendOp::Send, 8)).collect();
    assert_eq!(slots, [1, 2, 3]);
    // It goes on where it was.
    assert_eq!(h.numbers(), [1, 2, 3, 4, 5]);
    h.ack(2);
    assert_eq!(h.statuses(), [Success]);
    assert_eq!(h.post(SendOp::Send, 8), 0);
    assert_eq!(h.numbers(), [6]);
    h.ack(6);
    assert_eq!(h.statuses(), [Success; 5]);
    let ids: Vec<_> = h.env.completions.iter().map(|c| c.wr_id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
}

#[test]
fn a_queue_does_not_grow_while_requests_go_round_its_end() {
    let mut h = Host::rc();
    h.requester = Requester::new(vec![Wqe::default(); 2]);
    h.requester.configure(&config());
    let larger = || vec![Wqe::default(); 4];
    h.post(SendOp::Send, 8);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [0, 1]);
    h.ack(0);
    assert_eq!(h.post(SendOp::Send, 8), 0);
    assert_eq!(h.requester.grow(larger()).unwrap_err().len(), 4);
    assert_eq!(h.numbers(), [2]);
    h.ack(1);
    // What is left is in slot 0; and a smaller queue is none.
    assert_eq!(h.requester.grow(larger()).unwrap().len(), 2);
    assert!(h.requester.grow(vec![Wqe::default(); 4]).is_err());
    assert_eq!(h.post(SendOp::Send, 8), 1);
    assert_eq!(h.numbers(), [3]);
    h.ack(3);
    assert_eq!(h.statuses(), [Success; 4]);
}
