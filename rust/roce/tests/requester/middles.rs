// SPDX-License-Identifier: GPL-2.0

//! Middle packets of READ responses that are taken together, as those of a train are; and faults
//! behind packets that were polled together.

use super::sim::build::joined;
use super::*;

/// A host that READs so many packets, and the responses.
fn reading(packets: u32) -> (Host, Vec<Raw>) {
    let mut h = Host::rc();
    h.post(SendOp::Read, 256 * packets);
    h.post(SendOp::Send, 8);
    h.numbers();
    let responses = (0..packets)
        .map(|i| {
            let opcode = match i {
                0 => 0x0d,
                i if i + 1 == packets => 0x0f,
                _ => 0x0e,
            };
            let mut raw = Raw::new(opcode, i).aeth(0x1f);
            raw.payload = (0..256).map(|b| (b + i) as u8).collect();
            raw
        })
        .collect();
    (h, responses)
}

/// Takes responses `from..to` together.
fn take(h: &mut Host, all: &[Raw], from: usize, to: usize, change: impl FnOnce(&mut Raw)) -> bool {
    let mut raw = joined(&all[from..to]);
    raw.psn = raw.psn.wrapping_add(PSN) & 0xff_ffff;
    change(&mut raw);
    let bytes = raw.bytes();
    let packet = Packet::parse(&bytes).unwrap();
    h.requester
        .handle_middles(&packet, (to - from) as u32, h.now, &mut h.env)
}

#[test]
fn as_if_they_were_taken_one_by_one() {
    let ((mut one, all), (mut several, _)) = (reading(8), reading(8));
    all.iter().for_each(|raw| one.answer(raw.clone()));
    several.answer(all[0].clone());
    assert!(take(&mut several, &all, 1, 4, |_| ()));
    assert!(take(&mut several, &all, 4, 7, |_| ()));
    assert_eq!(several.statuses(), []);
    several.answer(all[7].clone());
    for h in [&mut one, &mut several] {
        assert_eq!(h.statuses(), [Success]);
        h.ack(8);
        assert_eq!(h.statuses(), [Success, Success]);
        assert_eq!(h.requester.next_deadline(), None);
    }
    assert_eq!(one.env.buffers[0], several.env.buffers[0]);
}

#[test]
fn what_is_not_taken_together() {
    type Change = fn(&mut Raw);
    let changes: [(&str, Change); 5] = [
        ("not the next one", |raw| raw.psn += 1),
        ("one that came before", |raw| raw.psn -= 1),
        ("not a Middle packet", |raw| raw.opcode = 0x0f),
        ("too short", |raw| raw.payload.truncate(508)),
        ("another P_Key", |raw| raw.pkey = 0x7ffe),
    ];
    for (what, change) in changes {
        let (mut h, all) = reading(8);
        h.answer(all[0].clone());
        assert!(!take(&mut h, &all, 1, 3, change), "{what}");
        assert_eq!(h.env.buffers[0].len(), 256, "{what}");
        assert!(take(&mut h, &all, 1, 3, |_| ()), "{what}");
        assert_eq!(h.env.buffers[0].len(), 256 * 3, "{what}");
    }
    // The last one ends the request.
    let (mut h, all) = reading(4);
    h.answer(all[0].clone());
    assert!(!take(&mut h, &all, 1, 4, |_| ()));
    assert!(take(&mut h, &all, 1, 3, |_| ()));
    // Another one is early: what is missing before it is looked at packet by packet.
    let (mut h, all) = reading(8);
    h.answer(all[0].clone());
    h.answer(all[5].clone());
    assert!(!take(&mut h, &all, 1, 3, |_| ()));
    all[1..].iter().for_each(|raw| h.answer(raw.clone()));
    assert_eq!(h.statuses(), [Success]);
    // Nothing was asked for.
    let mut h = Host::rc();
    assert!(!take(&mut h, &all, 1, 3, |_| ()));
    h.post(SendOp::Write, 256 * 8);
    h.numbers();
    h.ack(0);
    assert!(!take(&mut h, &all, 1, 3, |_| ()));
    assert_eq!(h.env.buffers[0], []);
}

#[test]
fn packets_that_are_polled_together_end_with_one_that_asks() {
    let mut c = config();
    c.max_window = 256 * 8;
    let mut h = Host::with(&c);
    h.post(SendOp::Write, 256 * 20);
    assert_eq!(h.poll().unwrap().followers, 1);
    let polled = h.requester.poll_middles(10, h.now);
    assert_eq!((polled.count, polled.ack_req), (1, true));
    // Nothing was polled that they could follow at once, but they go on.
    let polled = h.requester.poll_middles(10, h.now);
    assert_eq!((polled.count, polled.ack_req), (2, true));
}

/// The answer to one of them tells as much of the round trip.
#[test]
fn packets_that_are_polled_together_are_timed() {
    let deadline = |together: bool| {
        let mut h = measured(18);
        h.now += ROUND_TRIP;
        h.post(SendOp::Write, 256 * 200);
        let first = h.poll().unwrap();
        if together {
            let polled = h.requester.poll_middles(first.followers, h.now);
            assert_eq!((polled.count, polled.ack_req), (7, true));
        } else {
            (0..7).for_each(|_| assert!(h.poll().is_some()));
        }
        // Long after that, the last of them is answered.
        h.now += 40 * ROUND_TRIP;
        h.ack(8);
        h.numbers();
        h.requester.next_deadline()
    };
    assert_eq!(deadline(true), deadline(false));
}

/// The payload of packets that were polled together cannot be read.
#[test]
fn a_fault_behind_packets_that_were_polled_together() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    let slot = h.post(SendOp::Write, 256 * 8);
    h.post(SendOp::Send, 8);
    assert!(h.poll().is_some());
    let first = h.poll().unwrap();
    let polled = h.requester.poll_middles(first.followers, h.now);
    assert_eq!((polled.count, polled.ack_req), (6, false));
    h.requester.local_fault(slot, LocProtErr, &mut h.env);
    // What is before it is asked for, and nothing behind it is sent.
    let sent: Vec<_> = h.sent().iter().map(|s| (s.1, s.2)).collect();
    assert_eq!(sent, [(0, true)]);
    h.ack(0);
    assert_eq!(h.statuses()[..2], [Success, LocProtErr]);
    assert_eq!(h.numbers(), []);
}
