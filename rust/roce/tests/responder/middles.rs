// SPDX-License-Identifier: GPL-2.0

//! Middle packets that are taken together, as those of a train are.

use super::sim::build::joined;
use super::*;

/// A SEND or a WRITE of so many packets, the last of which has 100 bytes.
fn message(kind: &str, packets: u32) -> Vec<Raw> {
    let (first, len) = match kind {
        "send" => (0x00, 0),
        _ => (0x06, (packets - 1) * 256 + 100),
    };
    (0..packets)
        .map(|i| {
            let opcode = match i {
                0 => first,
                i if i + 1 == packets => first + 2,
                _ => first + 1,
            };
            let n = if i + 1 == packets { 100 } else { 256 };
            let mut raw = Raw::new(opcode, PSN + i).remote(RKEY_WRITE, VA_WRITE, len);
            raw.payload = (0..n).map(|b| (b as u32 + i) as u8).collect();
            raw
        })
        .collect()
}

/// Takes packets `from..to` of the message together.
fn take(p: &mut Peer, all: &[Raw], from: usize, to: usize, change: impl FnOnce(&mut Raw)) -> bool {
    let mut raw = joined(&all[from..to]);
    change(&mut raw);
    let bytes = raw.bytes();
    let packet = Packet::parse(&bytes).unwrap();
    p.responder
        .take_middles(&packet, (to - from) as u32, &mut p.env)
}

/// Everything that can be seen of it.
fn seen(p: &mut Peer) -> String {
    let answers = p.answers();
    let memory = p.env.fetch(Key::new(RKEY_BACK), VA_WRITE, 3000);
    let (received, errors) = (&p.env.received, &p.env.errors);
    let state = (p.responder.rq_psn(), p.responder.stats(), p.env.fatal);
    format!("{state:?} {answers:?} {memory:?} {received:?} {errors:?}")
}

#[test]
fn as_if_they_were_taken_one_by_one() {
    for kind in ["send", "write"] {
        for asks in [1, 3, 5] {
            let mut all = message(kind, 8);
            all[asks].ack_req = true;
            all[7].ack_req = true;
            let (mut one, mut several) = (Peer::rc(), Peer::rc());
            all.iter().for_each(|raw| one.send(raw));
            several.send(&all[0]);
            assert!(take(&mut several, &all, 1, asks + 1, |_| ()));
            for raw in &all[asks + 1..7] {
                several.send(raw);
            }
            several.send(&all[7]);
            assert_eq!(seen(&mut one), seen(&mut several), "{kind}, {asks}");
        }
    }
}

#[test]
fn the_last_of_them_is_acknowledged() {
    let mut all = message("write", 8);
    all[4].ack_req = true;
    let mut p = Peer::rc();
    p.send(&all[0]);
    assert!(take(&mut p, &all, 1, 3, |_| ()));
    assert_eq!(p.answers(), []);
    assert!(take(&mut p, &all, 3, 5, |_| ()));
    let answers = p.answers();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].psn, (PSN + 4) & 0xff_ffff);
}

#[test]
fn what_is_not_taken_together() {
    type Change = fn(&mut Raw);
    let changes: [(&str, Change); 5] = [
        ("not the next one", |raw| raw.psn += 1),
        ("one that came before", |raw| raw.psn -= 1),
        ("not a Middle packet", |raw| raw.opcode += 1),
        ("too short", |raw| raw.payload.truncate(508)),
        ("another P_Key", |raw| raw.pkey = 0x7ffe),
    ];
    for kind in ["send", "write"] {
        let all = message(kind, 8);
        for (what, change) in changes {
            let mut p = Peer::rc();
            p.send(&all[0]);
            assert!(!take(&mut p, &all, 1, 3, change), "{what}");
            assert_eq!(p.responder.rq_psn(), Psn::new(PSN + 1));
            assert!(take(&mut p, &all, 1, 3, |_| ()), "{what}");
            assert_eq!(p.responder.rq_psn(), Psn::new(PSN + 3));
        }
        // Nothing that they belong to.
        let mut p = Peer::rc();
        p.responder.skip(1);
        assert!(!take(&mut p, &all, 1, 3, |_| ()));
        // Another one is early: the gap is looked at packet by packet.
        let mut p = Peer::rc();
        p.send(&all[0]);
        p.send(&all[4]);
        assert!(!take(&mut p, &all, 1, 3, |_| ()));
        // A message of the other kind.
        let other = message(if kind == "send" { "write" } else { "send" }, 8);
        let mut p = Peer::rc();
        p.send(&other[0]);
        assert!(!take(&mut p, &all, 1, 3, |_| ()));
    }
    // More than was announced: the Last packet has at least a byte.
    let mut all = message("write", 4);
    all[0].len = 256 * 3;
    let mut p = Peer::rc();
    p.send(&all[0]);
    assert!(!take(&mut p, &all, 1, 3, |_| ()));
    assert!(take(&mut p, &all, 1, 2, |_| ()));
    // Nobody repeats what UC sends.
    let all: Vec<_> = message("send", 4)
        .into_iter()
        .map(|mut raw| {
            raw.opcode += 0x20;
            raw
        })
        .collect();
    let mut p = Peer::uc();
    p.send(&all[0]);
    assert!(!take(&mut p, &all, 1, 3, |_| ()));
}

#[test]
fn another_queue_is_refused_packet_by_packet() {
    let all: Vec<_> = message("send", 4)
        .into_iter()
        .map(|mut raw| {
            raw.opcode += 0xa0;
            raw.srqn(SRQN)
        })
        .collect();
    let mut p = Peer::xrc();
    p.send(&all[0]);
    assert!(!take(&mut p, &all, 1, 3, |raw| raw.srqn += 1));
    assert!(take(&mut p, &all, 1, 3, |_| ()));
}

/// What cannot be stored is found by the packet that it is in.
#[test]
fn what_cannot_be_stored() {
    let all = message("send", 8);
    let (mut one, mut several) = (Peer::rc(), Peer::rc());
    for p in [&mut one, &mut several] {
        p.env.trouble.capacity = Some(256 * 3 + 10);
        p.send(&all[0]);
    }
    assert!(!take(&mut several, &all, 1, 5, |_| ()));
    assert_eq!(several.responder.rq_psn(), Psn::new(PSN + 1));
    for raw in &all[1..] {
        one.send(raw);
        several.send(raw);
    }
    assert_eq!(seen(&mut one), seen(&mut several));
}
