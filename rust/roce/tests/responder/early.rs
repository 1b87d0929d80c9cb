// SPDX-License-Identifier: GPL-2.0

//! Requests that come before an earlier one.

use std::collections::HashMap;

use roce::responder::{
    KEPT,
    MAX_KEPT_NS,
    MAX_WAIT_NS,
    SURE_NS, //
};

use super::*;

const US: u64 = 1000;

const NAK: Syndrome = Syndrome::Nak(NakCode::PsnSequence);

/// A peer whose caller keeps what it should.
struct Keeper {
    p: Peer,
    kept: HashMap<Psn, Vec<u8>>,
}

impl Keeper {
    fn new() -> Self {
        let mut p = Peer::rc();
        p.env.posted[0].extend(0..2000);
        Self {
            p,
            kept: HashMap::new(),
        }
    }

    fn send(&mut self, raw: &Raw) {
        let mut next = Some(raw.bytes());
        while let Some(bytes) = next.take() {
            let packet = Packet::parse(&bytes).unwrap();
            let psn = packet.bth.psn;
            let (r, env, now) = (&mut self.p.responder, &mut self.p.env, self.p.now);
            if r.take_request(&packet, now, env) {
                let kept = r.should_keep(psn);
                r.on_early(psn, kept, now, env);
                if kept {
                    assert!(self.kept.insert(psn, bytes).is_none());
                }
            }
            next = r.take_kept().map(|psn| self.kept.remove(&psn).unwrap());
        }
    }

    /// A SEND that holds its number.
    fn data(&mut self, at: u32) {
        let mut raw = Raw::new(0x04, PSN + at).ask();
        raw.payload = vec![at as u8];
        self.send(&raw);
    }

    /// A SEND with its number comes, and nothing that is kept is looked at. Whether it is early.
    fn take(&mut self, at: u32) -> bool {
        let bytes = Raw::new(0x04, PSN + at).data(1).bytes();
        let packet = Packet::parse(&bytes).unwrap();
        let p = &mut self.p;
        p.responder.take_request(&packet, p.now, &mut p.env)
    }

    /// What was said since the last call: ACK or NAK, and of which packet.
    fn said(&mut self) -> Vec<(Syndrome, u32)> {
        let answers = self.p.answers();
        answers
            .iter()
            .map(|a| (a.syndrome.unwrap(), a.psn.wrapping_sub(PSN) & 0xff_ffff))
            .collect()
    }

    fn wait(&mut self, ns: u64) {
        self.p.now += ns;
        self.p.responder.handle_timeout(self.p.now, &mut self.p.env);
    }

    fn received(&self) -> Vec<u8> {
        self.p.env.received.iter().map(|r| r.data[0]).collect()
    }

    /// A packet comes 100 us late, and then its copy: from now on there is a wait.
    fn learn(&mut self) {
        self.data(1);
        assert_eq!(self.said(), [(NAK, 0)]);
        self.p.now += 100 * US;
        self.data(0);
        assert_eq!(self.said(), [(ACK, 1)]);
        self.data(0);
        assert_eq!(self.p.responder.stats().wrong_naks, 1);
        self.said();
    }
}

#[test]
fn a_question_is_no_copy_of_a_packet_that_was_late() {
    let mut k = Keeper::new();
    k.data(1);
    assert_eq!(k.said(), [(NAK, 0)]);
    k.p.now += 100 * US;
    k.data(0);
    k.said();
    // An empty WRITE with a number that was executed asks whether anybody is there.
    for number in [1, 0, 0xff_ffff] {
        let at = (PSN + number) & 0xff_ffff;
        k.send(&Raw::new(0x0a, at).ask());
        assert_eq!(k.said(), [(ACK, 1)]);
    }
    assert_eq!(k.p.responder.stats().wrong_naks, 0);
    assert_eq!(k.received(), [0, 1]);
    k.data(0);
    assert_eq!(k.p.responder.stats().wrong_naks, 1);
}

#[test]
fn every_order_is_executed_in_order_and_acknowledged_once() {
    let orders: [&[u32]; 5] = [
        &[0, 1, 2, 3],
        &[3, 2, 1, 0],
        &[1, 0, 3, 2],
        &[2, 3, 0, 1],
        &[3, 0, 1, 2],
    ];
    for order in orders {
        let mut k = Keeper::new();
        for at in order {
            k.data(*at);
            // A copy changes nothing.
            k.data(*at);
        }
        assert_eq!(k.received(), [0, 1, 2, 3], "{order:?}");
        let said = k.said();
        assert_eq!(said.last(), Some(&(ACK, 3)), "{order:?}");
        let naks = usize::from(order != [0, 1, 2, 3]);
        assert!(said.iter().filter(|s| s.0 == NAK).count() <= naks + 1);
        assert!(!k.p.responder.has_kept() && k.kept.is_empty());
        assert_eq!(k.p.responder.next_deadline(), None);
    }
}

#[test]
fn requests_of_all_kinds_are_kept() {
    let mut k = Keeper::new();
    k.send(&Raw::new(0x0c, PSN + 1).remote(RKEY_READ, VA_READ, 600));
    k.send(&Raw::new(0x14, PSN + 4).remote(RKEY_ATOMIC, VA_ATOMIC, 0));
    k.send(&Raw::new(0x04, PSN + 5).data(3).ask());
    assert_eq!(k.said(), [(NAK, 0)]);
    k.data(0);
    let answers = k.p.answers();
    let opcodes: Vec<_> = answers.iter().map(|a| a.opcode).collect();
    assert!(
        opcodes.starts_with(&[0x0d, 0x0e, 0x0f, 0x12]),
        "{opcodes:x?}"
    );
    assert_eq!(answers.last().map(|a| a.psn), Some((PSN + 5) & 0xff_ffff));
    assert_eq!(k.p.env.received.len(), 2);
}

#[test]
fn the_first_gap_is_reported_at_once_and_the_next_when_it_is_too_late() {
    let mut k = Keeper::new();
    k.learn();
    k.data(3);
    assert_eq!(k.said(), []);
    // By a quarter longer than the one was late.
    let until = k.p.now + 125 * US;
    assert_eq!(k.p.responder.next_deadline(), Some(until));
    k.wait(125 * US - 1);
    assert_eq!(k.said(), []);
    k.wait(1);
    assert_eq!(k.said(), [(NAK, 2)]);
    k.wait(1000 * US);
    assert_eq!(k.said(), []);
    k.data(2);
    assert_eq!(k.said(), [(ACK, 3)]);
    assert_eq!(k.received(), [0, 1, 2, 3]);
}

#[test]
fn what_closes_a_gap_in_time_is_not_reported() {
    let mut k = Keeper::new();
    k.learn();
    for i in 1..20 {
        k.data(2 * i + 1);
        assert_eq!(k.said(), []);
        k.wait(110 * US);
        assert_eq!(k.said(), []);
        k.data(2 * i);
        assert_eq!(k.said(), [(ACK, 2 * i + 1)]);
    }
    assert_eq!(k.p.responder.stats().early_kept, 20);
}

/// The packet behind `at` comes early. How long the gap may last.
fn gap_at(k: &mut Keeper, at: u32) -> u64 {
    k.data(at + 1);
    k.p.responder.next_deadline().unwrap() - k.p.now
}

/// The packet `at` comes so late that it is reported as missing, and so its copy comes as well.
/// Returns how long the gap lasted before the report.
fn late(k: &mut Keeper, at: u32, late: u64) -> u64 {
    let wait = gap_at(k, at);
    k.wait(wait - 1);
    assert_eq!(k.said(), []);
    k.wait(1);
    assert_eq!(k.said(), [(NAK, at)]);
    k.p.now += late - wait;
    k.data(at);
    k.data(at);
    k.said();
    wait
}

#[test]
fn the_wait_is_bounded_and_forgotten() {
    let mut k = Keeper::new();
    k.learn();
    let waits: Vec<u64> = (1..12)
        .map(|i| late(&mut k, 2 * i, 2 * MAX_WAIT_NS))
        .collect();
    assert_eq!(waits[..2], [125 * US, SURE_NS]);
    // One packet may have had two copies; several tell that it takes long.
    for pair in waits[1..].windows(2) {
        assert!(pair[1] <= 2 * pair[0], "{waits:?}");
    }
    assert_eq!(waits.last(), Some(&MAX_WAIT_NS));
    // Packets are lost, and their copies are what comes.
    let mut at = 24;
    k.data(at + 1);
    for _ in 0..400 {
        k.wait(MAX_WAIT_NS);
        k.data(at);
        at += 2;
        k.data(at + 1);
    }
    k.said();
    k.data(at);
    k.data(at + 3);
    assert_eq!(k.said(), [(NAK, at + 2)]);
}

#[test]
fn a_late_packet_is_known_from_a_probe() {
    for is_probe in [false, true] {
        let mut k = Keeper::new();
        k.learn();
        for at in [2, 4, 6] {
            late(&mut k, at, 10 * SURE_NS);
        }
        let wait = gap_at(&mut k, 8);
        assert!(wait > SURE_NS);
        k.wait(wait - 100 * US);
        k.data(8);
        if is_probe {
            // The newest packet comes right behind the oldest.
            k.data(9);
        }
        k.data(10);
        assert_eq!(k.said().iter().filter(|said| said.0 == NAK).count(), 0);
        let next = gap_at(&mut k, 11);
        assert_eq!(next < wait, is_probe, "{next} {wait}");
        // If the packet comes itself in the end, it was late.
        k.p.now += next;
        k.data(8);
        k.data(11);
        assert!(gap_at(&mut k, 13) > wait);
    }
}

#[test]
fn losses_that_probes_fill_make_the_wait_short() {
    let mut k = Keeper::new();
    k.learn();
    for i in 1..12 {
        late(&mut k, 2 * i, 2 * MAX_WAIT_NS);
    }
    for i in 12..22 {
        gap_at(&mut k, 2 * i);
        k.wait(SURE_NS + US);
        k.data(2 * i);
        k.data(2 * i + 1);
    }
    assert!(gap_at(&mut k, 44) < SURE_NS + SURE_NS / 3);
}

#[test]
fn a_request_that_was_not_ready_was_not_late() {
    let mut k = Keeper::new();
    k.learn();
    let wait = gap_at(&mut k, 2);
    k.p.env.posted[0].clear();
    // What comes behind it meanwhile tells nothing, either.
    k.data(2);
    k.data(4);
    k.p.env.posted[0].extend(0..2000);
    k.wait(1000 * US);
    k.data(2);
    k.data(4);
    assert_eq!(k.said().last(), Some(&(ACK, 4)));
    assert!(gap_at(&mut k, 5) <= wait);
}

#[test]
fn what_cannot_be_kept_is_not_waited_for() {
    let mut k = Keeper::new();
    k.learn();
    gap_at(&mut k, 2);
    k.data(2 + KEPT - 1);
    assert_eq!(k.said(), []);
    // It has the bit of 3, which is kept.
    k.data(3 + KEPT);
    assert_eq!(k.said(), [(NAK, 2)]);
    assert_eq!(k.p.responder.stats().early_dropped, 1);
}

#[test]
fn what_came_early_does_not_come_round() {
    let mut k = Keeper::new();
    k.learn();
    for _ in 0..3 {
        k.p.responder.skip(1 << 22);
    }
    let at = 2 + (3 << 22);
    for at in [at, at + 2] {
        gap_at(&mut k, at);
        assert_eq!(k.said(), []);
        k.p.now += 100 * US;
        k.data(at);
        k.said();
    }
}

#[test]
fn what_is_kept_is_not_missing() {
    let mut k = Keeper::new();
    k.data(1);
    k.said();
    // The caller has no time for what is kept.
    assert!(!k.take(0));
    assert!(k.take(3));
    let psn = Psn::new(PSN + 3);
    k.p.responder.on_early(psn, true, k.p.now, &mut k.p.env);
    assert_eq!(k.said(), []);
}

#[test]
fn a_second_gap_gets_the_time_of_a_round_trip() {
    let mut k = Keeper::new();
    for at in [1, 2, 4, 5] {
        k.data(at);
    }
    assert_eq!(k.said(), [(NAK, 0)]);
    k.p.now += 1000 * US;
    k.data(0);
    assert_eq!(k.said(), [(ACK, 2)]);
    assert_eq!(k.received(), [0, 1, 2]);
    k.wait(1500 * US - 1);
    assert_eq!(k.said(), []);
    k.wait(1);
    assert_eq!(k.said(), [(NAK, 3)]);
    k.data(3);
    assert_eq!(k.said(), [(ACK, 5)]);
}

#[test]
fn what_comes_before_another_gap_is_acknowledged_unasked() {
    let mut k = Keeper::new();
    let silent = |k: &mut Keeper, at: u32| {
        let mut raw = Raw::new(0x04, PSN + at);
        raw.payload = vec![at as u8];
        k.send(&raw);
    };
    for at in [1, 2, 4, 5] {
        silent(&mut k, at);
    }
    assert_eq!(k.said(), [(NAK, 0)]);
    // The requester shall not take another one for what is missing.
    silent(&mut k, 0);
    assert_eq!(k.said(), [(ACK, 2)]);
    // Nothing else is missing, and nobody has asked.
    silent(&mut k, 3);
    assert_eq!(k.said(), []);
    assert_eq!(k.received(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_copy_of_what_is_kept_does_not_report_again() {
    let mut k = Keeper::new();
    k.data(2);
    assert_eq!(k.said(), [(NAK, 0)]);
    for _ in 0..100 {
        k.data(2);
        k.data(1);
    }
    assert_eq!(k.said(), []);
    let stats = k.p.responder.stats();
    assert_eq!((stats.early_kept, stats.early_dropped), (2, 0));
}

#[test]
fn no_more_than_the_bound_is_kept() {
    let mut k = Keeper::new();
    for at in (1..2 * KEPT).rev() {
        k.data(at);
    }
    assert_eq!(k.kept.len() as u32, KEPT - 1);
    assert_eq!(k.p.responder.stats().early_dropped, KEPT);
    k.data(0);
    assert_eq!(k.p.env.received.len() as u32, KEPT);
    assert!(!k.p.responder.has_kept());
}

#[test]
fn nothing_is_kept_behind_a_request_that_is_not_ready() {
    let mut k = Keeper::new();
    k.p.env.posted[0].clear();
    k.data(0);
    k.said();
    k.data(1);
    assert_eq!(k.said(), []);
    assert!(!k.p.responder.has_kept());
}

#[test]
fn what_nobody_asks_for_is_forgotten() {
    let mut k = Keeper::new();
    k.data(1);
    k.said();
    k.wait(MAX_KEPT_NS - 1);
    assert!(k.p.responder.has_kept());
    k.wait(1);
    assert!(!k.p.responder.has_kept());
    assert_eq!(k.p.responder.next_deadline(), None);
    k.kept.clear();
    k.data(0);
    assert_eq!(k.said(), [(ACK, 0)]);
    k.data(1);
    assert_eq!(k.said(), [(ACK, 1)]);
}

#[test]
fn what_was_kept_before_a_request_was_not_ready_is_forgotten_as_well() {
    let mut k = Keeper::new();
    k.p.env.posted[0].clear();
    k.data(1);
    k.data(0);
    assert!(k.p.responder.has_kept());
    k.said();
    k.wait(MAX_KEPT_NS);
    assert!(!k.p.responder.has_kept());
    assert_eq!(k.p.responder.next_deadline(), None);
}

#[test]
fn a_copy_that_overtakes_what_is_kept_takes_its_place() {
    let mut k = Keeper::new();
    k.data(1);
    // The caller has no time for what is kept.
    assert!(!k.take(0) && k.p.responder.is_next_kept());
    assert!(!k.take(1));
    assert!(!k.p.responder.has_kept());
    assert_eq!(k.p.responder.take_kept(), None);
    assert_eq!(k.p.env.received.len(), 2);
}

#[test]
fn the_end_of_a_connection_forgets_all() {
    let mut k = Keeper::new();
    k.data(1);
    k.p.responder.abort(&mut k.p.env);
    assert!(!k.p.responder.has_kept());
    assert_eq!(k.p.responder.next_deadline(), None);
    let mut k = Keeper::new();
    k.data(1);
    // An operation that does not exist: refused for good.
    k.send(&Raw::new(0x02, PSN).data(3));
    assert!(!k.p.responder.has_kept());
    assert_eq!(k.p.responder.take_kept(), None);
}
