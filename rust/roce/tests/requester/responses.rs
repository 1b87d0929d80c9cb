// SPDX-License-Identifier: GPL-2.0

//! READs and atomics.

use super::*;

#[test]
fn read_is_placed_packet_by_packet() {
    let mut h = Host::rc();
    h.post(SendOp::Read, 600);
    h.post(SendOp::Send, 8);
    assert_eq!(h.sent().len(), 2);
    h.answer(Raw::new(0x0d, 0).data(256).aeth(0x1f));
    h.answer(Raw::new(0x0e, 1).data(256));
    assert_eq!(h.statuses(), []);
    h.answer(Raw::new(0x0f, 2).data(88).aeth(0x1f));
    assert_eq!(h.statuses(), [Success]);
    assert_eq!(h.env.buffers[0].len(), 600);
    h.ack(3);
    assert_eq!(h.statuses(), [Success, Success]);
}

#[test]
fn ack_behind_a_read_asks_for_the_missing_part_once() {
    let mut h = Host::rc();
    h.post(SendOp::Read, 256 * 4);
    h.post(SendOp::Send, 8);
    h.numbers();
    h.answer(Raw::new(0x0d, 0).data(256).aeth(0x1f));
    h.ack(4);
    // What is behind it was executed.
    let sent: Vec<_> = h.sent().iter().map(|s| (s.0, s.1)).collect();
    assert_eq!(sent, [(0x0c, 1)]);
    h.ack(4);
    h.answer(Raw::new(0x0e, 2).data(256));
    assert_eq!(h.numbers(), []);
    for (op, at) in [(0x0d, 1), (0x0e, 2), (0x0f, 3)] {
        h.answer(Raw::new(op, at).data(256).aeth(0x1f));
    }
    assert_eq!(h.statuses(), [Success, Success]);
    h.ack(4);
    assert_eq!(h.requester.stats().implied_naks, 1);
}

#[test]
fn repeated_read_names_the_rest() {
    let mut h = Host::rc();
    h.post_wr(SendWr {
        op: SendOp::Read,
        length: 1000,
        remote_addr: 0x1000,
        rkey: Key::new(7),
        ..SendWr::default()
    });
    h.post(SendOp::Send, 0);
    h.numbers();
    h.answer(Raw::new(0x0d, 0).data(256).aeth(0x1f));
    h.ack(4);
    let t = h.poll().unwrap();
    let p = Packet::parse(t.header.as_slice()).unwrap();
    let reth = p.reth.unwrap();
    assert_eq!((reth.va, reth.len, reth.rkey), (0x1100, 744, Key::new(7)));
    assert_eq!(p.bth.psn, Psn::new(PSN + 1));
}

#[test]
fn long_reads_are_cut_to_the_window() {
    let mut c = config();
    c.max_window = 256 * 16;
    let mut h = Host::with(&c);
    h.post(SendOp::Read, 256 * 100);
    let sent = h.numbers();
    assert_eq!(sent, [0, 8]);
    for at in 0..8 {
        h.answer(Raw::new(0x0e, at).data(256).aeth(0x1f));
    }
    assert_eq!(h.numbers(), [16]);
}

#[test]
fn wrong_responses_end() {
    let cases: &[(SendOp, u32, Raw, WcStatus)] = &[
        (SendOp::Read, 600, Raw::new(0x0d, 0).data(255), LocLenErr),
        (SendOp::Read, 600, Raw::new(0x10, 0).data(88), LocLenErr),
        (SendOp::Read, 100, Raw::new(0x10, 0).data(101), LocLenErr),
        (SendOp::Read, 100, Raw::new(0x12, 0), BadRespErr),
        (SendOp::CmpSwap, 8, Raw::new(0x10, 0).data(8), BadRespErr),
        (SendOp::Flush, 8, Raw::new(0x10, 0).data(8), BadRespErr),
        (SendOp::AtomicWrite, 8, Raw::new(0x12, 0), BadRespErr),
    ];
    for (op, len, raw, status) in cases {
        let mut h = Host::rc();
        h.post(*op, *len);
        h.numbers();
        h.answer(raw.clone());
        assert_eq!(h.statuses(), [*status]);
        assert_eq!(h.env.fatal, 1);
    }
    // A response to a SEND is a stray.
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    h.numbers();
    h.answer(Raw::new(0x10, 0).data(8));
    h.answer(Raw::new(0x12, 0));
    assert_eq!(h.statuses(), []);
    // As are responses of another service.
    h.answer(Raw::new(0xb1, 0).aeth(0x1f));
    h.answer(Raw::new(0x04, 0));
    assert_eq!(h.statuses(), []);
}

#[test]
fn atomic_result_is_in_host_order() {
    let mut h = Host::rc();
    h.post(SendOp::FetchAdd, 8);
    h.numbers();
    let mut raw = Raw::new(0x12, 0).aeth(0x1f);
    raw.original = 0x0102_0304_0506_0708;
    h.answer(raw);
    assert_eq!(h.env.buffers[0], 0x0102_0304_0506_0708u64.to_ne_bytes());
    assert_eq!(h.statuses(), [Success]);
    assert_eq!(h.env.completions[0].byte_len, 8);
}

#[test]
fn reads_and_atomics_are_limited() {
    let mut h = Host::rc();
    for _ in 0..6 {
        h.post(SendOp::CmpSwap, 8);
    }
    assert_eq!(h.numbers(), [0, 1, 2, 3]);
    h.answer(Raw::new(0x12, 0).aeth(0x1f));
    assert_eq!(h.numbers(), [4]);
    let mut c = config();
    c.max_rd_atomic = 0;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 0);
    h.post(SendOp::Read, 8);
    assert_eq!(h.numbers(), [0]);
    h.ack(0);
    assert_eq!(h.statuses(), [Success, LocQpOpErr]);
}

#[test]
fn fence_waits_for_reads_only() {
    let mut h = Host::rc();
    let fenced = SendWr {
        op: SendOp::Send,
        fence: true,
        ..SendWr::default()
    };
    h.post(SendOp::Send, 0);
    h.post_wr(fenced);
    h.post(SendOp::Read, 300);
    h.post_wr(fenced);
    h.post(SendOp::Send, 0);
    assert_eq!(h.numbers(), [0, 1, 2]);
    h.answer(Raw::new(0x0d, 2).data(256).aeth(0x1f));
    assert_eq!(h.numbers(), []);
    h.answer(Raw::new(0x0f, 3).data(44).aeth(0x1f));
    assert_eq!(h.numbers(), [4, 5]);
}

#[test]
fn repeated_reads_end_where_they_did() {
    let mut c = config();
    c.max_window = 256 * 16;
    let mut h = Host::with(&c);
    h.post_wr(SendWr {
        op: SendOp::Read,
        length: 256 * 20,
        ..SendWr::default()
    });
    assert_eq!(h.numbers(), [0, 8]);
    for at in 0..3 {
        h.answer(Raw::new(0x0e, at).data(256).aeth(0x1f));
    }
    let ranges = |h: &mut Host| {
        let mut all = Vec::new();
        while let Some(t) = h.poll() {
            let p = Packet::parse(t.header.as_slice()).unwrap();
            let reth = p.reth.unwrap();
            all.push((reth.va / 256, reth.len / 256));
        }
        all
    };
    // The window is down to 4 packets, but neither is cut again: a responder
    // may not go back within what it repeats.
    let t = h.requester.next_deadline().unwrap();
    h.time(t);
    assert_eq!(ranges(&mut h), [(3, 5)]);
    for at in 3..6 {
        h.answer(Raw::new(0x0e, at).data(256).aeth(0x1f));
    }
    let t = h.requester.next_deadline().unwrap();
    h.time(t);
    assert_eq!(ranges(&mut h), [(6, 2)]);
    for at in 6..8 {
        h.answer(Raw::new(0x0e, at).data(256).aeth(0x1f));
    }
    assert_eq!(ranges(&mut h), [(8, 8)]);
    // What was never asked for fits the window.
    for at in 8..16 {
        h.answer(Raw::new(0x0e, at).data(256).aeth(0x1f));
    }
    let rest = ranges(&mut h);
    assert_eq!(rest[0].0, 16);
    assert!(rest[0].1 <= 4);
}
