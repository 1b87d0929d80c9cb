// SPDX-License-Identifier: GPL-2.0

//! Tests of the responder, packet by packet: every refusal, every repetition.

#[path = "../../sim/mod.rs"]
mod sim;

mod early;
mod middles;
mod reads;
mod refusals;
mod services;
mod wraps;

use roce::key::Key;
use roce::mtu::Mtu;
use roce::number::{
    Qpn,
    Srqn, //
};
use roce::psn::Psn;
use roce::responder::{
    Access,
    Flush,
    Placement,
    QpEvent,
    Resource,
    Responder,
    ResponderConfig,
    Service, //
};
use roce::status::WcStatus;
use roce::wire::{
    NakCode,
    Packet,
    Syndrome, //
};

use sim::build::{
    middles as middles_of,
    Raw, //
};
use sim::node::{
    RecvSide,
    Trouble, //
};
use sim::workload::*;

const PSN: u32 = 0xff_fffe;
const SRQN: u32 = 0x80_0000;

struct Peer {
    responder: Responder<Vec<Resource>>,
    env: RecvSide,
    now: u64,
}

/// An answer, decoded.
#[derive(PartialEq, Eq, Debug)]
struct Answer {
    opcode: u8,
    psn: u32,
    syndrome: Option<Syndrome>,
    msn: Option<u32>,
    payload: Vec<u8>,
}

impl Peer {
    fn with(service: Service, access: Access, resources: u8) -> Self {
        let srqs = if service == Service::XrcTgt { 2 } else { 0 };
        let mut p = Self {
            responder: Responder::new(vec![Resource::default(); usize::from(resources)]),
            env: RecvSide::new(srqs),
            now: 1000,
        };
        p.responder.configure(&ResponderConfig {
            service,
            dest_qpn: Qpn::new(0x99),
            mtu: Mtu::M256,
            rq_psn: Psn::new(PSN),
            pkey: 0xffff,
            access,
            min_rnr_timer: 2,
            max_dest_rd_atomic: resources,
        });
        for q in &mut p.env.posted {
            q.extend(0..4);
        }
        p
    }

    fn rc() -> Self {
        Self::with(Service::Rc, Access::ALL, 4)
    }

    fn xrc() -> Self {
        Self::with(Service::XrcTgt, Access::ALL, 4)
    }

    fn uc() -> Self {
        Self::with(Service::Uc, Access::ALL, 4)
    }

    fn send(&mut self, raw: &Raw) {
        let bytes = raw.bytes();
        let packet = Packet::parse(&bytes).unwrap();
        self.responder
            .handle_request(&packet, self.now, &mut self.env);
    }

    /// All answers that are due.
    fn answers(&mut self) -> Vec<Answer> {
        self.responder.end_of_run(&mut self.env);
        let mut all = std::mem::take(&mut self.env.replies);
        while let Some(r) = self.responder.poll_response(self.now) {
            let mut bytes = r.header.as_slice().to_vec();
            if let Some(p) = r.payload {
                bytes.extend(self.env.fetch(p.rkey, p.va, p.len).unwrap());
            }
            bytes.resize(bytes.len() + usize::from(r.pad), 0);
            all.push(bytes);
            if r.again || r.followers == 0 {
                continue;
            }
            // Of those that may follow in a train, some are polled at once.
            let count = self.responder.poll_middles(r.followers.div_ceil(2));
            let p = r.payload.expect("they have a payload");
            for (i, mut bytes) in (1..).zip(middles_of(&r.header, count, false)) {
                let va = p.va + u64::from(p.len) * i;
                bytes.extend(self.env.fetch(p.rkey, va, p.len).unwrap());
                all.push(bytes);
            }
        }
        all.iter()
            .map(|b| {
                let p = Packet::parse(b).unwrap();
                assert_eq!(p.bth.dest_qpn, Qpn::new(0x99));
                assert!(p.bth.mig_req);
                assert!(p.xrceth.is_none());
                Answer {
                    opcode: p.bth.opcode,
                    psn: p.bth.psn.get(),
                    syndrome: p.aeth.map(|a| a.syndrome),
                    msn: p.aeth.map(|a| a.msn),
                    payload: p.payload.to_vec(),
                }
            })
            .collect()
    }

    /// Sends and expects exactly one answer with that syndrome at `psn`.
    fn expect(&mut self, raw: &Raw, psn: u32, syndrome: Syndrome) {
        self.send(raw);
        let answers = self.answers();
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(answers[0].syndrome, Some(syndrome));
        assert_eq!(answers[0].psn, psn & 0xff_ffff);
    }

    fn expect_silence(&mut self, raw: &Raw) {
        self.send(raw);
        assert_eq!(self.answers(), []);
    }

    /// Expects a refusal that ends the connection.
    fn expect_end(&mut self, raw: &Raw, code: NakCode, event: Option<QpEvent>) {
        let psn = self.responder.rq_psn().get();
        self.expect(raw, psn, Syndrome::Nak(code));
        assert_eq!(self.env.fatal, 1);
        assert!(!self.responder.is_ready());
        assert!(self.env.current.is_none());
        let events: Vec<_> = self.env.events.iter().copied().skip(1).collect();
        assert_eq!(events, event.into_iter().collect::<Vec<_>>());
        // Nothing is executed or answered any more.
        let taken = self.env.taken;
        let next = Raw::new(raw.opcode & 0xe0 | 0x04, psn).ask().srqn(SRQN);
        self.expect_silence(&next);
        assert_eq!(self.env.taken, taken);
        assert_eq!(self.env.fatal, 1);
    }
}

const ACK: Syndrome = Syndrome::Ack(0x1f);
const INVALID: NakCode = NakCode::InvalidRequest;
const ACCESS: NakCode = NakCode::RemoteAccess;
const OPERATIONAL: NakCode = NakCode::RemoteOperational;

#[test]
fn send_only_is_received_and_acknowledged_on_request() {
    let mut p = Peer::rc();
    p.expect_silence(&Raw::new(0x04, PSN).data(3));
    p.expect(&Raw::new(0x04, PSN + 1).data(5).ask(), PSN + 1, ACK);
    assert_eq!(p.env.received.len(), 2);
    assert_eq!(p.env.received[1].data, [0, 1, 2, 3, 4]);
    assert_eq!(p.env.events, [QpEvent::CommEst]);
    assert!(p.responder.is_idle());
}

#[test]
fn one_ack_for_a_run() {
    let mut p = Peer::rc();
    for i in 0..4 {
        p.send(&Raw::new(0x04, PSN + i).ask());
    }
    let a = p.answers();
    assert_eq!(a.len(), 1);
    assert_eq!(a[0].psn, (PSN + 3) & 0xff_ffff);
    assert_eq!(a[0].msn, Some(4));
    assert_eq!(p.answers(), []);
}

#[test]
fn gap_is_reported_once() {
    let mut p = Peer::rc();
    p.expect(
        &Raw::new(0x04, PSN + 1).ask(),
        PSN,
        Syndrome::Nak(NakCode::PsnSequence),
    );
    p.expect_silence(&Raw::new(0x04, PSN + 2).ask());
    p.expect(&Raw::new(0x04, PSN).ask(), PSN, ACK);
    p.expect(
        &Raw::new(0x04, PSN + 2).ask(),
        PSN + 1,
        Syndrome::Nak(NakCode::PsnSequence),
    );
    assert_eq!(p.env.received.len(), 1);
    assert_eq!(p.env.fatal, 0);
}

#[test]
fn duplicates_are_acknowledged_and_not_executed() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x04, PSN));
    p.send(&Raw::new(0x04, PSN + 1).ask());
    p.answers();
    // Also without AckReq: the ACK was lost, or the sender would not ask.
    p.expect(&Raw::new(0x04, PSN), PSN + 1, ACK);
    p.now += 100_000;
    p.expect(&Raw::new(0x04, PSN - 1000), PSN + 1, ACK);
    assert_eq!(p.env.received.len(), 2);
}

#[test]
fn a_window_that_comes_again_is_acknowledged_once() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x04, PSN));
    p.send(&Raw::new(0x04, PSN + 1));
    p.send(&Raw::new(0x04, PSN + 2).ask());
    p.answers();
    p.expect(&Raw::new(0x04, PSN), PSN + 2, ACK);
    p.expect_silence(&Raw::new(0x04, PSN + 1));
    // Who asks is answered, always.
    p.expect(&Raw::new(0x04, PSN + 2).ask(), PSN + 2, ACK);
    p.expect(&Raw::new(0x04, PSN + 2).ask(), PSN + 2, ACK);
    p.now += 99_999;
    p.expect_silence(&Raw::new(0x04, PSN));
    p.now += 1;
    p.expect(&Raw::new(0x04, PSN), PSN + 2, ACK);
    // More was done since: that is news.
    p.expect(&Raw::new(0x04, PSN + 3).ask(), PSN + 3, ACK);
    p.expect(&Raw::new(0x04, PSN), PSN + 3, ACK);
}

#[test]
fn rnr_and_silence_until_it_is_over() {
    let mut p = Peer::rc();
    p.env.posted[0].clear();
    p.expect(&Raw::new(0x04, PSN).ask(), PSN, Syndrome::Rnr(2));
    // Code 2 is 20 us. What follows on the heels is not a gap.
    p.now += 19_999;
    p.expect_silence(&Raw::new(0x04, PSN + 1).ask());
    p.now += 1;
    p.expect(
        &Raw::new(0x04, PSN + 1).ask(),
        PSN,
        Syndrome::Nak(NakCode::PsnSequence),
    );
    p.env.posted[0].push_back(0);
    p.expect(&Raw::new(0x04, PSN).ask(), PSN, ACK);
    assert_eq!(p.env.received.len(), 1);
}

#[test]
fn rnr_of_write_with_immediate_at_its_last_packet() {
    let mut p = Peer::rc();
    p.env.posted[0].clear();
    let first = Raw::new(0x06, PSN)
        .remote(RKEY_WRITE, VA_WRITE, 300)
        .data(256);
    p.expect_silence(&first);
    let last = Raw::new(0x09, PSN + 1).data(44).ask();
    p.expect(&last, PSN + 1, Syndrome::Rnr(2));
    p.env.posted[0].push_back(0);
    p.expect(&last, PSN + 1, ACK);
    assert_eq!(p.env.received.len(), 1);
    assert_eq!(p.env.received[0].len, 300);
    assert!(p.env.received[0].is_write);
    assert_eq!(p.env.memory.write[256..300], first.payload[..44]);
}

#[test]
fn empty_write_and_read_need_no_key() {
    let mut p = Peer::rc();
    p.expect(&Raw::new(0x0a, PSN).remote(1, 2, 0).ask(), PSN, ACK);
    p.send(&Raw::new(0x0c, PSN + 1).remote(1, 2, 0));
    let a = p.answers();
    assert_eq!(a.len(), 1);
    assert_eq!((a[0].opcode, a[0].payload.len()), (0x10, 0));
    assert_eq!(a[0].msn, Some(2));
}

#[test]
fn immediate_invalidate_solicited() {
    let mut p = Peer::rc();
    let mut raw = Raw::new(0x05, PSN).data(1);
    raw.imm = [1, 2, 3, 4];
    raw.solicited = true;
    p.send(&raw);
    let mut raw = Raw::new(0x17, PSN + 1);
    raw.inv = 0xabcd;
    p.send(&raw);
    let r = &p.env.received;
    assert_eq!(r[0].imm.map(u32::to_ne_bytes), Some([1, 2, 3, 4]));
    assert!(r[0].solicited && !r[1].solicited);
    assert_eq!((r[1].imm, r[1].invalidated), (None, Some(Key::new(0xabcd))));
}
