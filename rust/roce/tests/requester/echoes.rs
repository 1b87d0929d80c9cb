// SPDX-License-Identifier: GPL-2.0

//! A silent responder is asked for an answer without a READ sent twice.

use roce::rtt::MIN_PROBE_NS;

use super::*;

/// The round trip that the connection of [`measured`] has seen, nanoseconds.
/// An echo, by its number.
const fn echo(number: u32) -> Sent {
    (0x0a, number, true, None)
}

/// A [`measured`] connection, with a timeout of 1.07 s and requests on their way that are not
/// answered, and so many times have passed for which an answer was awaited. The last echo was sent
/// just now.
fn silent(ops: &[SendOp], times: u32) -> Host {
    let mut h = measured(18);
    for op in ops {
        h.post(*op, 8);
    }
    h.sent();
    for _ in 0..times {
        h.time(h.requester.next_deadline().unwrap());
        let sent = h.sent();
        assert!(sent.iter().all(|s| *s == echo(0)), "{sent:?}");
    }
    h
}

/// A READ response of one packet.
fn data(at: u32) -> Raw {
    Raw::new(0x10, at).aeth(0x1f).data(8)
}

/// The response of an atomic.
fn original(at: u32) -> Raw {
    let mut raw = Raw::new(0x12, at).aeth(0x1f);
    raw.original = 1;
    raw
}

/// Timeouts, and packets sent again that are no probes.
fn again(h: &Host) -> (u32, u32) {
    let stats = h.requester.stats();
    (stats.timeouts, stats.retransmitted)
}

#[test]
fn an_echo_is_an_empty_write_with_the_number_before() {
    let mut h = measured(18);
    h.post_wr(SendWr {
        op: SendOp::Read,
        length: 8,
        remote_addr: 0x1234,
        rkey: Key::new(7),
        ..SendWr::default()
    });
    assert_eq!(h.numbers(), [1]);
    h.time(h.now + MIN_PROBE_NS - 1);
    assert!(h.poll().is_none());
    h.time(h.now + 1);
    let t = h.poll().unwrap();
    assert_eq!((t.payload, t.pad, t.followers, t.again), (None, 0, 0, true));
    let header = t.header.as_slice();
    assert_eq!(header.len(), 12 + 16);
    assert_eq!((header[0], header[8]), (0x0a, 0x80));
    assert_eq!(header[9..12], [0xff, 0xff, 0xfe]);
    assert_eq!(header[12..], [0; 16]);
    assert!(h.poll().is_none());
}

#[test]
fn a_response_that_an_answer_overtook_for_long_is_asked_for_again() {
    for (op, response) in [(SendOp::Read, data(1)), (SendOp::FetchAdd, original(1))] {
        // The ACK is for what is before the number, or for the last that was no READ.
        for number in [0, 0xff_fff0] {
            let mut h = silent(&[op], 1);
            h.now += ROUND_TRIP;
            h.ack(number);
            // The network may have disordered the two.
            h.time(h.now + ROUND_TRIP - 1);
            assert_eq!(h.numbers(), []);
            h.time(h.now + 1);
            assert_eq!(h.numbers(), [1]);
            assert_eq!(again(&h), (0, 1));
            h.answer(response.clone());
            assert_eq!(h.statuses(), [Success; 2]);
            assert_eq!(h.requester.next_deadline(), None);
        }
    }
}

#[test]
fn a_response_behind_the_answer_is_in_time() {
    let mut h = silent(&[SendOp::Read, SendOp::Read], 1);
    h.now += ROUND_TRIP;
    h.ack(0);
    h.now += ROUND_TRIP - 1;
    h.answer(data(1));
    // The other one has as much time as the first.
    let at = h.requester.next_deadline().unwrap();
    assert!(at >= h.now + MIN_PROBE_NS);
    h.time(at - 1);
    assert_eq!(h.sent(), []);
    h.time(at);
    assert_eq!(h.sent(), [echo(1)]);
    h.answer(data(2));
    assert_eq!(h.statuses(), [Success; 3]);
    assert_eq!(again(&h), (0, 0));
}

#[test]
fn a_responder_that_takes_long_is_not_sent_a_read_again() {
    for ms in [5, 50, 500] {
        let mut h = measured(18);
        h.post(SendOp::Read, 8);
        h.post(SendOp::FetchAdd, 8);
        assert_eq!(h.numbers(), [1, 2]);
        let end = h.now + ms * 1000 * US;
        let mut echoes = 0;
        while let Some(at) = h.requester.next_deadline().filter(|at| *at < end) {
            h.time(at);
            assert_eq!(h.sent(), [echo(0)]);
            echoes += 1;
        }
        // It takes its requests in order.
        h.now = end;
        h.answer(data(1));
        h.answer(original(2));
        h.post(SendOp::Read, 8);
        h.sent();
        for _ in 0..echoes {
            h.ack(0);
            assert_eq!(h.sent(), []);
        }
        h.time(h.now + ROUND_TRIP);
        assert_eq!(h.sent(), []);
        h.answer(data(3));
        assert_eq!(h.statuses(), [Success; 4]);
        assert_eq!(again(&h), (0, 0));
    }
}

#[test]
fn an_answer_to_an_earlier_echo_tells_nothing() {
    let mut h = silent(&[SendOp::Read], 2);
    h.answer(data(1));
    h.post(SendOp::Read, 8);
    assert_eq!(h.numbers(), [2]);
    h.time(h.requester.next_deadline().unwrap());
    assert_eq!(h.sent(), [echo(1)]);
    // Two are to echoes before the second READ, as far as is known.
    let at = h.requester.next_deadline();
    for _ in 0..2 {
        h.now += ROUND_TRIP / 2;
        h.ack(0);
        assert_eq!(h.requester.next_deadline(), at);
    }
    h.ack(1);
    assert!(h.requester.next_deadline() < at);
    h.time(h.requester.next_deadline().unwrap());
    assert_eq!(h.numbers(), [2]);
    // Nor does one to an echo before the READ was repeated.
    for _ in 0..3 {
        h.ack(1);
        h.time(h.now + ROUND_TRIP);
        assert_eq!(h.numbers(), []);
    }
    h.answer(data(2));
    assert_eq!(h.statuses(), [Success; 3]);
    assert_eq!(again(&h), (0, 1));
}

#[test]
fn answers_that_come_one_by_one_say_that_the_others_are_lost() {
    // The wire was interrupted, and one answer comes through: of all that was asked, to the first.
    let interrupted = || {
        let mut h = measured(18);
        h.post(SendOp::Send, 8);
        h.post(SendOp::Read, 8);
        h.sent();
        for _ in 0..10 {
            h.time(h.requester.next_deadline().unwrap());
            assert_eq!(h.sent().len(), 1);
        }
        h.ack(1);
        assert_eq!(h.sent(), [echo(1)]);
        h
    };
    let mut h = interrupted();
    for _ in 0..3 {
        h.now += ROUND_TRIP;
        h.ack(1);
        h.time(h.requester.next_deadline().unwrap());
        assert_eq!(h.sent(), [echo(1)]);
    }
    h.now += ROUND_TRIP;
    h.ack(1);
    h.time(h.now + ROUND_TRIP);
    assert_eq!(h.numbers(), [2]);
    assert_eq!(again(&h), (0, 1));
    // If two had come together, there might be more of them on their way.
    let mut h = interrupted();
    for answers in [1, 1, 2, 1, 1, 1] {
        h.now += ROUND_TRIP;
        for _ in 0..answers {
            h.ack(1);
        }
        h.time(h.requester.next_deadline().unwrap());
        assert_eq!(h.sent(), [echo(1)]);
    }
}

#[test]
fn answers_without_a_question_tell_nothing() {
    let mut h = silent(&[SendOp::Read, SendOp::Send], 0);
    let at = h.requester.next_deadline();
    for number in [0, 3, 1000, 0x7f_ffff, 0x80_0001, 0xff_ffff] {
        h.ack(number);
        h.nak(number, 0x60);
        h.nak(number, 0x20);
        assert_eq!(h.sent(), []);
    }
    assert_eq!(h.requester.next_deadline(), at);
    // With one, a NAK or a response is none.
    h.time(at.unwrap());
    assert_eq!(h.sent(), [echo(0)]);
    let at = h.requester.next_deadline();
    for number in [0, 3, 1000] {
        h.nak(number, 0x60);
        h.nak(number, 0x20);
        h.answer(data(number));
    }
    assert_eq!(h.requester.next_deadline(), at);
    assert_eq!(again(&h), (0, 0));
}

#[test]
fn the_tail_of_a_response_is_asked_for_from_where_it_broke_off() {
    // The responder acknowledges the READ, or what was before it.
    for number in [0, 4] {
        let mut h = measured(18);
        h.post(SendOp::Read, 256 * 4);
        assert_eq!(h.numbers(), [1]);
        for (opcode, at) in [(0x0d, 1), (0x0e, 2)] {
            let raw = Raw::new(opcode, at).data(256);
            h.answer(if at == 1 { raw.aeth(0x1f) } else { raw });
        }
        h.time(h.requester.next_deadline().unwrap());
        assert_eq!(h.sent(), [echo(2)]);
        h.now += ROUND_TRIP;
        h.ack(number);
        h.time(h.now + ROUND_TRIP);
        let t = h.poll().unwrap();
        assert_eq!(t.header.as_slice()[0], 0x0c);
        assert_eq!(t.header.as_slice()[9..12], [0, 0, 1]);
        assert_eq!(t.header.as_slice()[24..28], 512u32.to_be_bytes());
        assert!(h.poll().is_none());
        for (opcode, at) in [(0x0d, 3), (0x0f, 4)] {
            h.answer(Raw::new(opcode, at).aeth(0x1f).data(256));
        }
        assert_eq!(h.statuses(), [Success; 2], "{number}");
        assert_eq!(again(&h), (0, 1));
    }
}

#[test]
fn all_that_was_sent_before_the_echo_is_sent_again() {
    let mut h = silent(
        &[SendOp::Read, SendOp::Send, SendOp::FetchAdd, SendOp::Read],
        1,
    );
    h.now += ROUND_TRIP;
    h.ack(0);
    h.time(h.now + ROUND_TRIP);
    assert_eq!(h.numbers(), [1, 2, 3, 4]);
    h.answer(data(1));
    h.answer(original(3));
    h.answer(data(4));
    assert_eq!(h.statuses(), [Success; 5]);
    assert_eq!(again(&h), (0, 4));
}

#[test]
fn what_is_lost_again_is_sent_again_but_ever_less_often() {
    let mut h = silent(&[SendOp::Read], 1);
    let (begin, mut repeated) = (h.now, Vec::new());
    // A peer that answers echoes and nothing else.
    while h.statuses().len() == 1 {
        h.time(h.requester.next_deadline().unwrap());
        for sent in h.sent() {
            match sent {
                (0x0c, 1, ..) => repeated.push(h.now - begin),
                sent => {
                    assert_eq!(sent, echo(0));
                    h.ack(0);
                }
            }
        }
    }
    // It ends when it would end without any answer.
    let timeout = 256 * TIMEOUT;
    assert_eq!(h.now - begin, 4 * timeout - MIN_PROBE_NS);
    assert_eq!(h.statuses(), [Success, RetryExcErr]);
    assert_eq!(again(&h).0, 4);
    assert!(repeated.len() < 40, "{repeated:?}");
}

#[test]
fn a_dead_peer_is_given_up_as_without_echoes() {
    for op in [SendOp::Read, SendOp::FetchAdd, SendOp::Write] {
        let mut h = measured(18);
        h.post(op, 8);
        h.numbers();
        let (begin, mut packets) = (h.now, 0);
        while h.statuses().len() == 1 {
            h.time(h.requester.next_deadline().unwrap());
            packets += h.sent().len();
        }
        assert_eq!(h.now - begin, 4 * 256 * TIMEOUT);
        assert_eq!(h.statuses(), [Success, RetryExcErr]);
        assert_eq!(again(&h), (4, 3));
        // 2 s of echoes, and few after that.
        assert!((600..700).contains(&packets), "{op:?}: {packets}");
    }
}

#[test]
fn after_a_long_silence_data_is_sent_again_at_the_first_answer() {
    let mut h = measured(18);
    h.post(SendOp::Write, 256 * 4);
    assert_eq!(h.numbers(), [1, 2, 3, 4]);
    for sent in [&[1, 4][..], &[1, 4], &[1, 4], &[0], &[0]] {
        h.time(h.requester.next_deadline().unwrap());
        assert_eq!(h.numbers(), sent);
    }
    h.now += ROUND_TRIP;
    h.ack(0);
    assert_eq!(h.numbers(), [1, 2, 3, 4]);
    // Once, as far as is known.
    h.ack(0);
    assert_eq!(h.numbers(), []);
    h.ack(4);
    assert_eq!(h.statuses(), [Success; 2]);
    assert_eq!(again(&h), (0, 4));
}

#[test]
fn data_before_a_read_is_sent_again_alone() {
    let mut h = measured(18);
    for op in [SendOp::Send, SendOp::Read] {
        h.post(op, 8);
    }
    h.sent();
    for sent in [1, 1, 1, 0] {
        h.time(h.requester.next_deadline().unwrap());
        assert_eq!(h.numbers(), [sent]);
    }
    h.now += ROUND_TRIP;
    h.ack(0);
    assert_eq!(h.numbers(), [1]);
    // There is no evidence of what became of the READ.
    h.ack(1);
    assert_eq!(h.sent(), [echo(1)]);
    h.answer(data(2));
    assert_eq!(h.statuses(), [Success; 3]);
    assert_eq!(again(&h), (0, 0));
}

#[test]
fn nobody_else_is_asked() {
    // Without a timeout, and without a measured round trip.
    for (timeout, is_measured) in [(0, true), (18, false)] {
        let mut h = Host::with(&RequesterConfig {
            timeout,
            ..config()
        });
        if is_measured {
            h.post(SendOp::Send, 8);
            h.numbers();
            h.now += ROUND_TRIP;
            h.ack(0);
        }
        h.post(SendOp::Read, 8);
        h.numbers();
        let expect = (timeout != 0).then_some(h.now + 256 * TIMEOUT);
        assert_eq!(h.requester.next_deadline(), expect);
    }
    // UC knows no answers.
    let mut h = Host::with(&RequesterConfig {
        service: Service::Uc,
        timeout: 18,
        ..config()
    });
    h.post(SendOp::Write, 8);
    assert_eq!(h.numbers(), [0]);
    assert_eq!(h.requester.next_deadline(), None);
}

#[test]
fn xrc_names_the_srq() {
    let mut h = Host::with(&RequesterConfig {
        service: Service::XrcIni,
        timeout: 18,
        ..config()
    });
    let mut first = Raw::new(0xb1, 0).aeth(0x1f);
    h.post(SendOp::Write, 8);
    h.numbers();
    h.now += ROUND_TRIP;
    first.psn = 0;
    h.answer(first);
    assert_eq!(h.statuses(), [Success]);
    h.post_wr(SendWr {
        op: SendOp::Read,
        length: 8,
        srqn: roce::number::Srqn::new(0x12_3456),
        ..SendWr::default()
    });
    assert_eq!(h.numbers(), [1]);
    h.time(h.now + MIN_PROBE_NS);
    let t = h.poll().unwrap();
    let header = t.header.as_slice();
    assert_eq!(header[0], 0xaa);
    assert_eq!(header[12..16], [0, 0x12, 0x34, 0x56]);
    assert_eq!(header[16..], [0; 16]);
    h.now += ROUND_TRIP;
    h.answer(Raw::new(0xb1, 0).aeth(0x1f));
    h.time(h.now + ROUND_TRIP);
    assert_eq!(h.numbers(), [1]);
}

#[test]
fn a_responder_that_is_not_ready_is_not_asked() {
    let mut h = measured(18);
    h.post(SendOp::Send, 8);
    h.post(SendOp::Read, 8);
    h.sent();
    for _ in 0..4 {
        h.time(h.requester.next_deadline().unwrap());
        h.sent();
    }
    h.nak(1, 0x20 | 14);
    let until = h.requester.next_deadline().unwrap();
    // What was asked before is answered now.
    for _ in 0..4 {
        h.ack(0);
        assert_eq!(h.sent(), []);
    }
    assert_eq!(h.requester.next_deadline(), Some(until));
    h.time(until);
    assert_eq!(h.numbers()[0], 1);
}
