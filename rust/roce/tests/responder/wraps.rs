// SPDX-License-Identifier: GPL-2.0

//! Sequence numbers that wrap around.

use super::*;

use proptest::prelude::*;
use roce::requester::{
    LocalMessage,
    SendOp,
    SendWr, //
};
use roce::responder::LocalOutcome;

const SPACE: u64 = 1 << 24;
const HALF: u64 = 1 << 23;

fn add(psn: u32, n: u64) -> Raw {
    let mut r = Raw::new(0x14, psn).remote(RKEY_ATOMIC, VA_ATOMIC, 0);
    r.swap_add = n;
    r
}

fn read(psn: u32, len: u32) -> Raw {
    Raw::new(0x0c, psn).remote(RKEY_READ, VA_READ, len)
}

impl Peer {
    /// `count` WRITEs of one packet, executed one by one.
    fn write_many(&mut self, count: u32) {
        let bytes = Raw::new(0x0a, 0).remote(1, 2, 0).bytes();
        let mut packet = Packet::parse(&bytes).unwrap();
        packet.bth.psn = self.responder.rq_psn();
        for _ in 0..count {
            self.responder
                .handle_request(&packet, self.now, &mut self.env);
            packet.bth.psn = packet.bth.psn.next();
        }
        assert_eq!(self.responder.rq_psn(), packet.bth.psn);
    }

    /// A message of `packets` packets the same-host way.
    fn write_local(&mut self, packets: u32) {
        let message = LocalMessage {
            slot: 0,
            wr: SendWr {
                op: SendOp::Write,
                ..SendWr::default()
            },
            psn: self.responder.rq_psn(),
            packets,
        };
        self.responder
            .local_request(&message, self.now, &mut self.env)
            .unwrap();
        self.responder
            .local_finish(&message, LocalOutcome::Done, self.now, &mut self.env)
            .unwrap();
    }

    /// The answer to an atomic at `psn`: what the memory held.
    fn original(&mut self, psn: u32, n: u64) -> Option<u64> {
        let bytes = add(psn, n).bytes();
        let packet = Packet::parse(&bytes).unwrap();
        self.responder
            .handle_request(&packet, self.now, &mut self.env);
        self.responder.end_of_run(&mut self.env);
        let replies = std::mem::take(&mut self.env.replies);
        assert!(replies.len() <= 1);
        let reply = replies.first()?;
        let p = Packet::parse(reply).unwrap();
        assert_eq!(p.bth.psn.get(), psn & 0xff_ffff);
        Some(p.atomic_ack.unwrap().original)
    }

    /// A WRITE at the expected number whose ACK is lost is acknowledged again with its own number.
    fn expect_repeated_ack(&mut self) {
        let psn = self.responder.rq_psn().get();
        let write = Raw::new(0x0a, psn).remote(1, 2, 0).ask();
        self.expect(&write, psn, ACK);
        self.now += 1_000_000;
        self.expect(&write, psn, ACK);
    }
}

#[test]
fn an_early_read_does_not_answer_for_a_late_write() {
    let mut p = Peer::rc();
    assert_eq!(p.original(PSN, 5), Some(0));
    p.send(&read(PSN + 1, 300));
    assert_eq!(p.answers().len(), 2);
    // All these packets are really executed. Half the space on, and one whole space.
    p.write_many((HALF + 1000) as u32);
    p.expect_repeated_ack();
    p.write_many((HALF - 1000 - 4) as u32);
    assert_eq!(p.responder.rq_psn().get(), PSN);
    // The numbers of the first two again.
    assert_eq!(p.original(PSN, 7), Some(5));
    assert_eq!(p.original(PSN, 7), Some(5), "an old answer");
    p.send(&read(PSN + 1, 20));
    assert_eq!(p.answers().len(), 1);
    p.expect_repeated_ack();
    assert_eq!(p.env.memory.atomic[0], 12);
}

#[test]
fn messages_of_the_same_host_pass_through_the_space_in_no_time() {
    for packets in [1, 1 << 21, (1 << 23) - 1, 1 << 23] {
        let mut p = Peer::rc();
        assert_eq!(p.original(PSN, 5), Some(0));
        p.send(&read(PSN + 1, 300));
        assert_eq!(p.answers().len(), 2);
        for _ in 0..10 {
            p.write_local(packets);
            p.expect_repeated_ack();
            let psn = p.responder.rq_psn().get();
            let before = p.env.memory.atomic[0];
            assert_eq!(p.original(psn, 1), Some(before));
            assert_eq!(p.original(psn, 1), Some(before));
        }
    }
}

#[test]
fn what_is_owed_does_not_come_round() {
    let mut p = Peer::rc();
    p.send(&read(PSN, 300));
    assert_eq!(p.answers().len(), 2);
    // Late copies of what was answered long ago.
    p.send(&Raw::new(0x04, PSN - 1).ask());
    p.send(&read(PSN, 300));
    p.responder.end_of_run(&mut p.env);
    assert!(p.responder.has_response());
    p.write_local(1 << 22);
    assert!(p.responder.has_response());
    p.write_local(1 << 23);
    p.write_local(1 << 23);
    assert!(!p.responder.has_response());
    assert_eq!(p.answers(), []);
    assert!(p.responder.is_idle());
}

#[test]
fn a_long_read_is_repeated_to_its_end() {
    // Its first number is nearly a whole space behind when its last one is half the space behind.
    let len = 1 << 22;
    let mut p = Peer::rc();
    p.send(&read(PSN, len));
    p.answers();
    let packets = len / 256;
    let last = read(PSN + packets - 1, 256).remote(RKEY_READ, VA_READ + u64::from(len) - 256, 256);
    p.responder.skip(Psn::HALF - 1);
    p.send(&last);
    assert_eq!(p.answers().len(), 1);
    // From there on that number is one that is still to come.
    p.responder.skip(1);
    p.expect(
        &last,
        p.responder.rq_psn().get(),
        Syndrome::Nak(NakCode::PsnSequence),
    );
}

/// What a requester does, or what the network does to it.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write,
    Add,
    Read {
        packets: u32,
    },
    /// So many packets of WRITEs.
    Pass {
        packets: u32,
        is_local: bool,
    },
    /// The packet comes again that lies so many requests, or so many numbers, back.
    RepeatRequest {
        back: usize,
    },
    RepeatNumber {
        back: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let near = |n: u32| (0u32..40).prop_map(move |d| (n + 20 - d).clamp(1, 1 << 23));
    let packets = prop_oneof![
        1u32..100,
        near((1 << 23) - 20),
        near(1 << 22),
        1u32..=1 << 23
    ];
    prop_oneof![
        3 => Just(Step::Write),
        2 => Just(Step::Add),
        2 => (1u32..20).prop_map(|packets| Step::Read { packets }),
        2 => (packets.clone(), proptest::bool::weighted(0.2))
            .prop_map(|(packets, is_local)| Step::Pass { packets, is_local }),
        6 => (0usize..12).prop_map(|back| Step::RepeatRequest { back }),
        2 => packets.prop_map(|back| Step::RepeatNumber { back }),
    ]
}

/// What a request was answered with, besides an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// A WRITE: nothing.
    Nothing,
    /// A READ: data.
    Data,
    /// An atomic: what the memory held.
    Original(u64),
}

/// A request that was executed.
#[derive(Clone, Copy, Debug)]
struct Done {
    /// Its number, counted without an end.
    at: u64,
    packets: u64,
    answer: Answer,
    /// The responder may know its answer.
    is_known: bool,
}

/// The responder, and what it must do told by numbers that never come round.
struct Model {
    peer: Peer,
    next: u64,
    places: usize,
    done: Vec<Done>,
}

impl Model {
    fn psn(at: u64) -> u32 {
        at as u32 & 0xff_ffff
    }

    fn did(&mut self, packets: u64, answer: Answer) {
        self.done.push(Done {
            at: self.next,
            packets,
            answer,
            is_known: answer != Answer::Nothing,
        });
        self.next += packets;
        // Only so many, and only what a requester may have outstanding.
        let mut places = self.places;
        for d in self.done.iter_mut().rev() {
            d.is_known &= places != 0 && self.next - (d.at + d.packets) < HALF;
            places -= usize::from(d.is_known);
        }
        assert_eq!(self.peer.responder.rq_psn().get(), Self::psn(self.next));
    }

    fn known(&self) -> impl Iterator<Item = &Done> {
        self.done.iter().filter(|d| d.is_known)
    }

    fn step(&mut self, step: Step) {
        let psn = Self::psn(self.next);
        self.peer.now += 1_000_000;
        match step {
            Step::Write => {
                let write = Raw::new(0x0a, psn).remote(1, 2, 0).ask();
                self.peer.expect(&write, psn, ACK);
                self.did(1, Answer::Nothing);
            }
            Step::Add => {
                let before = self.peer.env.memory.atomic[0];
                assert_eq!(self.peer.original(psn, 3), Some(before));
                self.did(1, Answer::Original(before));
            }
            Step::Read { packets } => {
                self.peer.send(&read(psn, 256 * packets));
                assert_eq!(self.peer.answers().len(), packets as usize);
                self.did(u64::from(packets), Answer::Data);
            }
            Step::Pass { packets, is_local } => {
                if is_local {
                    self.peer.write_local(packets);
                } else {
                    self.peer.responder.skip(packets);
                }
                self.did(u64::from(packets), Answer::Nothing);
            }
            Step::RepeatRequest { back } => {
                let Some(&d) = self.done.iter().rev().nth(back) else {
                    return;
                };
                if self.next - d.at > HALF {
                    return;
                }
                match d.answer {
                    Answer::Nothing => self.repeat_write(d.at),
                    Answer::Data => {
                        let n = d.packets as u32;
                        self.peer.send(&read(Self::psn(d.at), 256 * n));
                        let psns: Vec<_> = self.peer.answers().iter().map(|a| a.psn).collect();
                        let want: Vec<_> = (0..d.packets).map(|i| Self::psn(d.at + i)).collect();
                        assert_eq!(psns, if d.is_known { want } else { Vec::new() });
                    }
                    Answer::Original(original) => {
                        let cell = self.peer.env.memory.atomic[0];
                        let got = self.peer.original(Self::psn(d.at), 3);
                        assert_eq!(got, d.is_known.then_some(original));
                        assert_eq!(cell, self.peer.env.memory.atomic[0], "executed twice");
                    }
                }
            }
            Step::RepeatNumber { back } => {
                if let Some(at) = self.next.checked_sub(u64::from(back)) {
                    self.repeat_write(at);
                }
            }
        }
    }

    /// A WRITE comes again: all is acknowledged up to the next request with an
    /// answer of its own.
    fn repeat_write(&mut self, at: u64) {
        let end = self.known().map(|d| d.at).find(|first| *first > at);
        let last = end.unwrap_or(self.next) - 1;
        let write = Raw::new(0x0a, Self::psn(at)).remote(1, 2, 0).ask();
        self.peer.expect(&write, Self::psn(last), ACK);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(1000)
    })]

    #[test]
    fn numbers_that_come_round_change_nothing(
        places in 1u8..6,
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut model = Model {
            peer: Peer::with(Service::Rc, Access::ALL, places),
            next: SPACE + u64::from(PSN),
            places: usize::from(places),
            done: Vec::new(),
        };
        for s in steps {
            model.step(s);
        }
        prop_assert_eq!(model.peer.env.fatal, 0);
    }
}
