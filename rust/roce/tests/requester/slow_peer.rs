// SPDX-License-Identifier: GPL-2.0

//! Echoes to a peer that is slow, or answers as rxe does: nothing is lost, and what has a response
//! is not repeated.

use super::*;
use std::collections::VecDeque;

const MS: u64 = 1000 * US;
const WRITE_ONLY: u8 = 0x0a;

/// A responder at the end of a wire that loses nothing and keeps the order.
struct Peer {
    /// Answers under way.
    answers: VecDeque<(u64, Raw)>,
    /// Number behind what was executed.
    next: u32,
    /// The last that was no READ.
    last: u32,
    /// READs: when, and their number.
    reads: Vec<(u64, u32)>,
}

impl Peer {
    fn new() -> Self {
        Peer {
            answers: VecDeque::new(),
            next: 1,
            last: 0,
            reads: Vec::new(),
        }
    }

    /// Executes and answers a packet; the answer arrives `at` that time.
    fn take(&mut self, now: u64, at: u64, (op, number, ask, _): Sent) {
        let answer = match op {
            0x0c => {
                self.reads.push((now, number));
                self.next = self.next.max(number + 1);
                Some(Raw::new(0x10, number).aeth(0x1f).data(8))
            }
            _ => {
                let is_copy = number < self.next;
                if !is_copy {
                    self.next = number + 1;
                    self.last = number;
                }
                // rxe acknowledges each copy.
                (ask || is_copy).then(|| Raw::new(0x11, self.last).aeth(0x1f))
            }
        };
        self.answers.extend(answer.map(|raw| (at, raw)));
    }
}

/// Runs until `end`. `posts`: when what is posted; `arrival`: when the answer comes to a packet
/// that is sent then. The order of the answers is kept. All times are from the beginning.
fn go(
    h: &mut Host,
    p: &mut Peer,
    posts: &[(u64, SendOp)],
    end: u64,
    mut arrival: impl FnMut(u64) -> u64,
) {
    let begin = h.now;
    let mut posts: VecDeque<_> = posts.iter().map(|(t, op)| (begin + t, *op)).collect();
    loop {
        let mut at = begin + end;
        if let Some(d) = h.requester.next_deadline() {
            at = at.min(d);
        }
        if let Some(x) = posts.front() {
            at = at.min(x.0);
        }
        if let Some(x) = p.answers.front() {
            at = at.min(x.0);
        }
        if at >= begin + end {
            return;
        }
        h.now = h.now.max(at);
        while posts.front().is_some_and(|x| x.0 <= at) {
            h.post(posts.pop_front().unwrap().1, 8);
        }
        if p.answers.front().is_some_and(|x| x.0 <= at) {
            let raw = p.answers.pop_front().unwrap().1;
            h.answer(raw);
        } else {
            h.time(h.now);
        }
        for sent in h.sent() {
            let last = p.answers.back().map_or(0, |x| x.0);
            let now = h.now - begin;
            p.take(now, last.max(begin + arrival(now)), sent);
        }
    }
}

/// Round trips become longer than they were measured.
#[test]
fn longer_round_trips() {
    for rtt in [40, 60, 100, 200, 300, 500, 800] {
        for first in [SendOp::Send, SendOp::Read] {
            let mut h = measured(18);
            let mut p = Peer::new();
            go(
                &mut h,
                &mut p,
                &[
                    (0, first),
                    (rtt / 2 * MS, SendOp::Read),
                    (rtt * MS * 3 / 4, SendOp::Read),
                ],
                900 * MS,
                |now| now + rtt * MS,
            );
            let reads = 2 + usize::from(first == SendOp::Read);
            assert_eq!(p.reads.len(), reads, "{rtt} ms, {first:?}: {:?}", p.reads);
        }
    }
}

/// A stop of the peer for `ms`; then it takes its requests one by one, so many us each.
#[test]
fn stop() {
    for ms in [500, 800, 1000, 1500, 2000, 3000] {
        for us in [5, 10, 20, 50, 100] {
            let mut h = measured(24);
            let mut p = Peer::new();
            // Posted during the stop, and behind it.
            let ops: Vec<_> = [
                (0, SendOp::Send),
                ((ms - 20) * MS, SendOp::Read),
                ((ms + 2) * MS, SendOp::Read),
                ((ms + 4) * MS, SendOp::Read),
                ((ms + 6) * MS, SendOp::Read),
            ]
            .into();
            let mut free = ms * MS;
            go(&mut h, &mut p, &ops, (ms + 1000) * MS, |now| {
                free = free.max(now + 500 * US) + us * US;
                free + 500 * US
            });
            assert_eq!(p.reads.len(), 4, "{ms} ms, {us} us each: {:?}", p.reads);
        }
    }
}

/// rxe before it has executed anything but READs names the last number of all in its answer to an
/// echo. That is no completion of what was lost.
#[test]
fn rxe_names_what_it_has_not() {
    // The first number is 0xff_fffe, so number 1 is the last of all.
    let mut h = Host::with(&RequesterConfig {
        timeout: 18,
        sq_psn: roce::psn::Psn::new(PSN),
        ..config()
    });
    h.post(SendOp::Read, 8);
    assert_eq!(h.numbers(), [0]);
    h.now += MS;
    h.answer(Raw::new(0x10, 0).aeth(0x1f).data(8));
    // Both are lost.
    h.post(SendOp::Send, 8);
    h.post(SendOp::Send, 8);
    h.sent();
    for _ in 0..4 {
        h.time(h.requester.next_deadline().unwrap());
        if h.sent().iter().any(|s| s.0 == WRITE_ONLY) {
            h.now += MS;
            h.answer(Raw::new(0x11, 1).aeth(0x1f));
        }
    }
    assert_eq!(h.statuses().len(), 1, "a SEND that was lost has succeeded");
}

/// A NAK within a round trip of an echo: an echo carries no copy of the packet.
#[test]
fn nak_behind_an_echo() {
    for op in [SendOp::Write, SendOp::Send] {
        let mut h = measured(18);
        h.post(op, 256 * 4);
        assert_eq!(h.numbers(), [1, 2, 3, 4]);
        for _ in 0..4 {
            h.time(h.requester.next_deadline().unwrap());
            h.sent();
        }
        h.now += 500 * US;
        h.nak(1, 0x60);
        assert_eq!(h.numbers().first(), Some(&1));
    }
}

/// Where many connections ask, one that may not asks rarely, until there is progress.
#[test]
fn too_many_ask() {
    let mut h = measured(18);
    h.post(SendOp::Write, 8);
    h.sent();
    let silent = |h: &mut Host, ms: u64| {
        let (end, mut echoes) = (h.now + ms * MS, 0);
        while h.requester.next_deadline().unwrap() < end {
            h.time(h.requester.next_deadline().unwrap());
            echoes += h.sent().iter().filter(|s| s.0 == WRITE_ONLY).count();
        }
        echoes
    };
    assert!(silent(&mut h, 300) > 50);
    h.env.refuses_to_ask = true;
    assert_eq!(silent(&mut h, 200), 0);
    h.env.refuses_to_ask = false;
    // It was refused a few times.
    assert!(silent(&mut h, 300) < 3);
    h.ack(1);
    h.post(SendOp::Write, 8);
    h.sent();
    let echoes = silent(&mut h, 300);
    assert!(echoes > 20, "{echoes}");
}

/// Each refusal makes the time four times as long, on a long way as well.
#[test]
fn too_many_ask_on_a_long_way() {
    let mut h = Host::with(&RequesterConfig {
        timeout: 24,
        ..config()
    });
    h.post(SendOp::Send, 8);
    h.sent();
    h.now += 40 * MS;
    h.ack(0);
    h.post(SendOp::Write, 8);
    h.sent();
    h.env.refuses_to_ask = true;
    let mut waits = Vec::new();
    for _ in 0..8 {
        let at = h.requester.next_deadline().unwrap();
        waits.push((at - h.now) / MS);
        h.time(at);
        h.sent();
    }
    // The distance of echoes is half of the round trip.
    assert_eq!(waits[3..7], [20, 20, 80, 320], "{waits:?}");
}

/// Any wire that loses nothing and keeps the order, with a peer that answers as rxe does.
#[test]
fn any_delays() {
    for seed in 1..=300 {
        let mut rng = sim::rng::Rng::new(seed);
        let mut h = measured(24);
        let mut posts = Vec::new();
        let mut t = 0;
        for _ in 0..30 {
            t += rng.range(0, 200) * rng.range(0, 2) * MS / rng.range(1, 100);
            let op = match rng.range(0, 2) {
                0 => SendOp::Send,
                _ => SendOp::Read,
            };
            posts.push((t, op));
        }
        let reads = posts.iter().filter(|p| p.1 == SendOp::Read).count();
        // Delays, each for a while.
        let mut steps = Vec::new();
        let mut at = 0;
        while at < 20_000 * MS {
            let delay = match rng.range(0, 4) {
                0 => 200 * US,
                1 => rng.range(1, 10) * MS,
                2 => rng.range(1, 100) * MS,
                _ => rng.range(1, 900) * MS,
            };
            steps.push((at, delay));
            at += rng.range(1, 500) * MS;
        }
        let arrival = |now: u64| now + steps.iter().rev().find(|s| s.0 <= now).map_or(MS, |s| s.1);
        let mut p = Peer::new();
        go(&mut h, &mut p, &posts, 20_000 * MS, arrival);
        assert_eq!(h.statuses().len(), 31, "seed {seed}");
        assert_eq!(p.reads.len(), reads, "seed {seed}");
    }
}
