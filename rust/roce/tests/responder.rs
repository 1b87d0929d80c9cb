// SPDX-License-Identifier: GPL-2.0

//! The responder, packet by packet: every refusal, every repetition.

#[path = "../sim/mod.rs"]
mod sim;

use roce::mtu::Mtu;
use roce::psn::Psn;
use roce::responder::{Access, QpEvent, Resource, Responder, ResponderConfig, Service};
use roce::status::WcStatus;
use roce::wire::{NakCode, Packet, Syndrome};

use sim::build::Raw;
use sim::node::{RecvSide, Trouble};
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
            dest_qpn: 0x99,
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
        }
        all.iter()
            .map(|b| {
                let p = Packet::parse(b).unwrap();
                assert_eq!(p.bth.dest_qpn, 0x99);
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
    p.expect(&Raw::new(0x04, PSN - 1000), PSN + 1, ACK);
    assert_eq!(p.env.received.len(), 2);
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
fn wrong_lengths() {
    let cases: &[(&[u8], &[usize])] = &[
        (&[0x00], &[0]),              // SEND first, empty
        (&[0x00], &[255]),            // short
        (&[0x00], &[257]),            // long
        (&[0x00, 0x01], &[256, 255]), // middle short
        (&[0x00, 0x02], &[256, 0]),   // last empty
        (&[0x00, 0x02], &[256, 257]), // last long
        (&[0x04], &[257]),            // only long
    ];
    for (ops, lens) in cases {
        for xrc in [false, true] {
            let mut p = if xrc { Peer::xrc() } else { Peer::rc() };
            let base = if xrc { 0xa0 } else { 0 };
            let n = ops.len();
            for i in 0..n {
                let raw = Raw::new(ops[i] + base, PSN + i as u32)
                    .data(lens[i])
                    .srqn(SRQN);
                if i + 1 < n {
                    p.expect_silence(&raw);
                } else {
                    // A receive was taken by the first packet, if that was good.
                    let event = if n == 1 { Some(QpEvent::ReqErr) } else { None };
                    p.expect_end(&raw, INVALID, event);
                    let errors = if n == 1 { 0 } else { 1 };
                    assert_eq!(p.env.errors.len(), errors);
                    assert!(p
                        .env
                        .errors
                        .iter()
                        .all(|e| e.status == WcStatus::RemInvReqErr));
                }
            }
        }
    }
}

#[test]
fn write_lengths_against_the_announced_one() {
    let write = |op, psn, len| Raw::new(op, psn).remote(RKEY_WRITE, VA_WRITE, len);
    let end = |p: &mut Peer, raw: &Raw| p.expect_end(raw, INVALID, Some(QpEvent::ReqErr));
    end(&mut Peer::rc(), &write(0x0a, PSN, 9).data(8));
    end(&mut Peer::rc(), &write(0x0a, PSN, 8).data(9));
    end(&mut Peer::rc(), &write(0x06, PSN, 256).data(256));
    end(&mut Peer::rc(), &write(0x06, PSN, 0x8000_0001).data(256));
    let mut p = Peer::rc();
    p.expect_silence(&write(0x06, PSN, 600).data(256));
    end(&mut p, &Raw::new(0x08, PSN + 1).data(256)); // ends too early
    let mut p = Peer::rc();
    p.expect_silence(&write(0x06, PSN, 512).data(256));
    end(&mut p, &Raw::new(0x07, PSN + 1).data(256)); // does not end
    let mut p = Peer::rc();
    p.expect_silence(&write(0x06, PSN, 300).data(256));
    end(&mut p, &Raw::new(0x08, PSN + 1).data(45)); // ends too late
}

#[test]
fn wrong_order_of_operations() {
    let cases: &[&[u8]] = &[
        &[0x01],       // middle without first
        &[0x02],       // last without first
        &[0x07],       // WRITE middle without first
        &[0x00, 0x00], // first in a message
        &[0x00, 0x04], // only in a message
        &[0x00, 0x07], // WRITE middle in a SEND
        &[0x00, 0x0c], // READ in a message
        &[0x00, 0x13], // atomic in a message
        &[0x06, 0x01], // SEND middle in a WRITE
        &[0x06, 0x06],
    ];
    for ops in cases {
        let mut p = Peer::rc();
        for (i, op) in ops.iter().enumerate() {
            let raw = Raw::new(*op, PSN + i as u32)
                .remote(RKEY_WRITE, VA_WRITE, 1000)
                .data(256);
            if i + 1 < ops.len() {
                p.expect_silence(&raw);
            } else {
                let has_receive = ops[0] == 0x00 && ops.len() > 1;
                p.expect_end(&raw, INVALID, (!has_receive).then_some(QpEvent::ReqErr));
            }
        }
    }
}

#[test]
fn wrong_keys_and_ranges() {
    let end = |raw: &Raw| Peer::rc().expect_end(raw, ACCESS, Some(QpEvent::AccessErr));
    end(&Raw::new(0x0a, PSN).remote(1, VA_WRITE, 4).data(4));
    end(&Raw::new(0x0a, PSN)
        .remote(RKEY_WRITE, VA_WRITE - 1, 4)
        .data(4));
    end(&Raw::new(0x06, PSN)
        .remote(RKEY_WRITE, VA_WRITE + 1, WRITE_LEN as u32)
        .data(256));
    end(&Raw::new(0x0c, PSN).remote(1, VA_READ, 4));
    end(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, READ_LEN as u32 + 1));
    end(&Raw::new(0x0c, PSN).remote(RKEY_READ, u64::MAX - 1, 4));
    end(&Raw::new(0x13, PSN).remote(1, VA_ATOMIC, 0));
    end(&Raw::new(0x14, PSN).remote(RKEY_ATOMIC, VA_ATOMIC + 0x1000, 0));
    end(&Raw::new(0x1c, PSN).remote(1, VA_WRITE, 4));
    end(&Raw::new(0x1d, PSN).remote(1, VA_ATOMIC, 8).data(8));
}

#[test]
fn memory_that_goes_in_the_middle_of_a_write() {
    let mut p = Peer::rc();
    p.expect_silence(
        &Raw::new(0x06, PSN)
            .remote(RKEY_WRITE, VA_WRITE, 300)
            .data(256),
    );
    p.env.trouble.write = true;
    p.expect_end(
        &Raw::new(0x08, PSN + 1).data(44),
        ACCESS,
        Some(QpEvent::AccessErr),
    );
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
fn rights_of_the_qp() {
    let bare = |raw: &Raw| {
        Peer::with(Service::Rc, Access::default(), 4).expect_end(
            raw,
            INVALID,
            Some(QpEvent::ReqErr),
        )
    };
    bare(&Raw::new(0x0a, PSN).remote(RKEY_WRITE, VA_WRITE, 4).data(4));
    bare(
        &Raw::new(0x06, PSN)
            .remote(RKEY_WRITE, VA_WRITE, 300)
            .data(256),
    );
    bare(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 4));
    bare(&Raw::new(0x13, PSN).remote(RKEY_ATOMIC, VA_ATOMIC, 0));
    bare(&Raw::new(0x14, PSN).remote(RKEY_ATOMIC, VA_ATOMIC, 0));
    bare(&Raw::new(0x1c, PSN).remote(RKEY_WRITE, VA_WRITE, 4));
    bare(
        &Raw::new(0x1d, PSN)
            .remote(RKEY_ATOMIC, VA_ATOMIC, 8)
            .data(8),
    );
    // They can be given and taken while connected.
    let mut p = Peer::rc();
    p.responder.update(Access::default(), 2);
    p.expect_end(
        &Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 4),
        INVALID,
        Some(QpEvent::ReqErr),
    );
}

#[test]
fn malformed_reads_and_atomics() {
    let end = |raw: &Raw| Peer::rc().expect_end(raw, INVALID, Some(QpEvent::ReqErr));
    for op in [0x13, 0x14] {
        for off in 1..8 {
            end(&Raw::new(op, PSN).remote(RKEY_ATOMIC, VA_ATOMIC + off, 0));
        }
        end(&Raw::new(op, PSN).remote(RKEY_ATOMIC, VA_ATOMIC, 0).data(4));
    }
    end(&Raw::new(0x1d, PSN)
        .remote(RKEY_ATOMIC, VA_ATOMIC + 4, 8)
        .data(8));
    end(&Raw::new(0x1d, PSN)
        .remote(RKEY_ATOMIC, VA_ATOMIC, 8)
        .data(4));
    end(&Raw::new(0x1d, PSN)
        .remote(RKEY_ATOMIC, VA_ATOMIC, 4)
        .data(8));
    end(&Raw::new(0x1c, PSN).remote(RKEY_WRITE, VA_WRITE, 8).data(4));
    end(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 8).data(4));
    end(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 0x8000_0001));
    let mut none = Peer::with(Service::Rc, Access::ALL, 0);
    none.expect_end(
        &Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 8),
        INVALID,
        Some(QpEvent::ReqErr),
    );
}

#[test]
fn more_reads_than_agreed() {
    let mut p = Peer::with(Service::Rc, Access::ALL, 2);
    let read = |psn| Raw::new(0x0c, psn).remote(RKEY_READ, VA_READ, 8);
    p.send(&read(PSN));
    p.send(&read(PSN + 1));
    p.send(&read(PSN + 2));
    let a = p.answers();
    assert_eq!(a.len(), 3);
    assert_eq!(a[2].syndrome, Some(Syndrome::Nak(INVALID)));
    assert_eq!(p.env.fatal, 1);
    // One after the other they are welcome.
    let mut p = Peer::with(Service::Rc, Access::ALL, 2);
    for i in 0..10 {
        p.send(&read(PSN + i));
        assert_eq!(p.answers().len(), 1);
    }
    assert_eq!(p.env.fatal, 0);
}

#[test]
fn faults_of_the_receive() {
    let cases = [
        (
            Trouble {
                receive: true,
                ..Trouble::default()
            },
            OPERATIONAL,
            WcStatus::LocQpOpErr,
        ),
        (
            Trouble {
                protection: true,
                ..Trouble::default()
            },
            OPERATIONAL,
            WcStatus::LocProtErr,
        ),
        (
            Trouble {
                capacity: Some(7),
                ..Trouble::default()
            },
            INVALID,
            WcStatus::LocLenErr,
        ),
    ];
    for (trouble, code, status) in cases {
        for xrc in [false, true] {
            let mut p = if xrc { Peer::xrc() } else { Peer::rc() };
            p.env.trouble = trouble;
            let op = if xrc { 0xa4 } else { 0x04 };
            p.expect_end(&Raw::new(op, PSN).srqn(SRQN).data(8), code, None);
            assert_eq!(p.env.errors.len(), 1);
            assert_eq!(p.env.errors[0].status, status);
        }
        // In the middle of a message; and on UC, without a word.
        let mut p = Peer::rc();
        p.expect_silence(&Raw::new(0x00, PSN).data(256));
        p.env.trouble = trouble;
        if status != WcStatus::LocQpOpErr {
            p.expect_end(&Raw::new(0x02, PSN + 1).data(8), code, None);
            assert_eq!(p.env.errors[0].status, status);
        }
        let mut p = Peer::uc();
        p.env.trouble = trouble;
        p.expect_silence(&Raw::new(0x24, PSN).data(8));
        assert_eq!(p.env.errors[0].status, status);
        assert_eq!(p.env.fatal, 1);
    }
}

#[test]
fn key_that_cannot_be_invalidated() {
    let mut p = Peer::rc();
    p.env.trouble.invalidate = true;
    p.expect_end(&Raw::new(0x17, PSN).data(8), ACCESS, None);
    assert_eq!(p.env.errors[0].status, WcStatus::LocAccessErr);
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
    assert_eq!((r[1].imm, r[1].invalidated), (None, Some(0xabcd)));
}

#[test]
fn read_response_is_cut_at_the_mtu() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ + 5, 700));
    let a = p.answers();
    let shape: Vec<_> = a
        .iter()
        .map(|a| (a.opcode, a.psn, a.payload.len()))
        .collect();
    assert_eq!(
        shape,
        [(0x0d, PSN, 256), (0x0e, PSN + 1, 256), (0x0f, 0, 188)]
    );
    let data: Vec<u8> = a.iter().flat_map(|a| a.payload.clone()).collect();
    assert_eq!(data, p.env.fetch(RKEY_READ, VA_READ + 5, 700).unwrap());
    assert_eq!(p.responder.rq_psn(), Psn::new(1));
}

#[test]
fn acks_wait_behind_read_data() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 300));
    p.send(&Raw::new(0x04, PSN + 2).ask());
    p.send(&Raw::new(0x14, PSN + 3).remote(RKEY_ATOMIC, VA_ATOMIC, 0));
    p.send(&Raw::new(0x04, PSN + 4).ask());
    assert!(p.env.replies.is_empty());
    let ops: Vec<_> = p.answers().iter().map(|a| (a.opcode, a.psn)).collect();
    let at = |i| (PSN + i) & 0xff_ffff;
    assert_eq!(
        ops,
        [(0x0d, at(0)), (0x0f, at(1)), (0x12, at(3)), (0x11, at(4))]
    );
}

#[test]
fn refusals_wait_behind_read_data() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 300));
    p.send(&Raw::new(0x0a, PSN + 2).remote(1, 0, 4).data(4));
    assert!(p.env.replies.is_empty());
    let a = p.answers();
    assert_eq!(a.len(), 3);
    assert_eq!(a[2].syndrome, Some(Syndrome::Nak(ACCESS)));
    assert_eq!(a[2].psn, 0);
}

#[test]
fn gap_behind_read_data_that_closes_is_not_reported() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 300));
    p.send(&Raw::new(0x04, PSN + 3).ask());
    p.send(&Raw::new(0x04, PSN + 2).ask());
    let a = p.answers();
    assert_eq!(a.len(), 3);
    assert_eq!((a[2].psn, a[2].syndrome), (0, Some(ACK)));
}

#[test]
fn repeated_reads() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1000));
    assert_eq!(p.answers().len(), 4);
    // The rest from the second packet on.
    let rest = Raw::new(0x0c, PSN + 1).remote(RKEY_READ, VA_READ + 256, 744);
    p.send(&rest);
    let a = p.answers();
    let shape: Vec<_> = a.iter().map(|a| (a.opcode, a.payload.len())).collect();
    assert_eq!(shape, [(0x0d, 256), (0x0e, 256), (0x0f, 232)]);
    assert_eq!(a[0].psn, PSN + 1);
    // Two parts at once: both are answered.
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 512));
    p.send(&Raw::new(0x0c, PSN + 2).remote(RKEY_READ, VA_READ + 512, 488));
    assert_eq!(p.answers().len(), 4);
    // What is no part of it is not answered.
    for raw in [
        Raw::new(0x0c, PSN + 1).remote(RKEY_READ, VA_READ + 255, 100),
        Raw::new(0x0c, PSN + 1).remote(RKEY_READ + 1, VA_READ + 256, 100),
        Raw::new(0x0c, PSN + 1).remote(RKEY_READ, VA_READ + 256, 745),
        Raw::new(0x0c, PSN - 1).remote(RKEY_READ, VA_READ, 1000),
    ] {
        p.expect_silence(&raw);
    }
    assert_eq!(p.env.fatal, 0);
}

#[test]
fn repeated_atomics_are_executed_once() {
    let mut p = Peer::rc();
    let add = |psn, n| {
        let mut r = Raw::new(0x14, psn).remote(RKEY_ATOMIC, VA_ATOMIC, 0);
        r.swap_add = n;
        r
    };
    p.send(&add(PSN, 5));
    assert_eq!(p.answers().len(), 1);
    p.send(&add(PSN + 1, 7));
    assert_eq!(p.answers().len(), 1);
    p.send(&add(PSN, 5));
    let a = p.answers();
    assert_eq!((a.len(), a[0].opcode, a[0].psn), (1, 0x12, PSN));
    assert_eq!(p.env.memory.atomic[0], 12);
    // Forgotten after four more: no answer, no execution.
    for i in 2..6 {
        p.send(&add(PSN + i, 1));
        p.answers();
    }
    p.expect_silence(&add(PSN, 5));
    assert_eq!(p.env.memory.atomic[0], 16);
    // A repetition that is something else is not answered either.
    p.expect_silence(&Raw::new(0x13, PSN + 5).remote(RKEY_ATOMIC, VA_ATOMIC, 0));
}

#[test]
fn memory_of_a_read_that_goes() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1000));
    p.responder.poll_response(0).unwrap();
    p.responder.poll_response(0).unwrap();
    p.responder.response_fault(&mut p.env);
    let a = p.answers();
    assert_eq!(a.len(), 1);
    assert_eq!(a[0].syndrome, Some(Syndrome::Nak(ACCESS)));
    assert_eq!(a[0].psn, PSN + 1);
    assert_eq!(p.env.fatal, 1);
    assert_eq!(p.env.events[1..], [QpEvent::AccessErr]);
}

#[test]
fn foreign_packets_are_ignored() {
    let mut p = Peer::rc();
    let mut other = Raw::new(0x04, PSN).ask();
    other.pkey = 0x8001;
    p.expect_silence(&other);
    for op in [0x24, 0xa4, 0x64, 0x11, 0x0d, 0x12] {
        p.expect_silence(&Raw::new(op, PSN).ask());
    }
    assert_eq!(p.env.taken, 0);
    assert_eq!(p.responder.stats().ignored, 7);
    let mut reset = Peer::rc();
    reset.responder.reset();
    reset.expect_silence(&Raw::new(0x04, PSN).ask());
}

#[test]
fn xrc_unknown_srq_ends_the_connection() {
    let event = Some(QpEvent::AccessErr);
    for raw in [
        Raw::new(0xa4, PSN).data(8),
        Raw::new(0xa0, PSN).data(256),
        Raw::new(0xaa, PSN).remote(RKEY_WRITE, VA_WRITE, 8).data(8),
        Raw::new(0xab, PSN).remote(RKEY_WRITE, VA_WRITE, 8).data(8),
        Raw::new(0xac, PSN).remote(RKEY_READ, VA_READ, 8),
        Raw::new(0xb3, PSN).remote(RKEY_ATOMIC, VA_ATOMIC, 0),
        Raw::new(0xb4, PSN).remote(RKEY_ATOMIC, VA_ATOMIC, 0),
    ] {
        Peer::xrc().expect_end(&raw.clone().srqn(0x12_3456), INVALID, event);
        let mut p = Peer::xrc();
        p.env.trouble.domain = true;
        p.expect_end(&raw.srqn(SRQN), INVALID, event);
    }
}

#[test]
fn xrc_srq_number_is_constant_in_a_message() {
    let mut p = Peer::xrc();
    p.expect_silence(&Raw::new(0xa0, PSN).srqn(SRQN).data(256));
    p.expect_end(
        &Raw::new(0xa2, PSN + 1).srqn(SRQN + 1).data(8),
        INVALID,
        Some(QpEvent::AccessErr),
    );
    assert_eq!(p.env.errors[0].status, WcStatus::RemInvReqErr);
    let mut p = Peer::xrc();
    p.expect_silence(
        &Raw::new(0xa6, PSN)
            .srqn(SRQN)
            .remote(RKEY_WRITE, VA_WRITE, 300)
            .data(256),
    );
    p.expect_end(
        &Raw::new(0xa8, PSN + 1).srqn(SRQN + 1).data(44),
        INVALID,
        Some(QpEvent::AccessErr),
    );
}

#[test]
fn xrc_empty_srq_is_not_ready_and_others_are_unaffected() {
    let mut p = Peer::xrc();
    p.env.posted[0].clear();
    p.expect(&Raw::new(0xa4, PSN).srqn(SRQN).ask(), PSN, Syndrome::Rnr(2));
    p.expect(&Raw::new(0xa4, PSN).srqn(SRQN + 1).ask(), PSN, ACK);
    assert_eq!(p.env.received[0].srqn, Some(SRQN + 1));
    p.send(
        &Raw::new(0xac, PSN + 1)
            .srqn(SRQN)
            .remote(RKEY_READ, VA_READ, 4),
    );
    let a = p.answers();
    assert_eq!(a[0].opcode, 0xb0);
}

#[test]
fn uc_drops_the_rest_of_a_broken_message() {
    let mut p = Peer::uc();
    p.expect_silence(&Raw::new(0x20, PSN).data(256).ask());
    // One is missing.
    p.expect_silence(&Raw::new(0x21, PSN + 2).data(256));
    p.expect_silence(&Raw::new(0x22, PSN + 3).data(8));
    assert!(p.env.received.is_empty());
    // Its receive serves the next message.
    p.expect_silence(&Raw::new(0x24, PSN + 4).data(8).ask());
    assert_eq!(p.env.taken, 1);
    assert_eq!(p.env.received.len(), 1);
    assert_eq!(p.env.received[0].data.len(), 8);
    // A message that breaks off, and a new one right behind.
    p.expect_silence(&Raw::new(0x20, PSN + 5).data(256));
    p.expect_silence(&Raw::new(0x24, PSN + 6).data(4));
    assert_eq!(p.env.received.len(), 2);
    // A copy of it is not a message.
    p.expect_silence(&Raw::new(0x24, PSN + 6).data(4));
    assert_eq!(p.env.received.len(), 2);
    assert_eq!(p.env.fatal, 0);
}

#[test]
fn uc_drops_what_is_not_permitted() {
    let mut p = Peer::uc();
    p.expect_silence(&Raw::new(0x2a, PSN).remote(1, 0, 4).data(4));
    p.expect_silence(&Raw::new(0x26, PSN + 1).remote(1, 0, 300).data(256));
    p.expect_silence(&Raw::new(0x28, PSN + 2).data(44));
    p.env.posted[0].clear();
    p.expect_silence(&Raw::new(0x24, PSN + 3).data(4));
    p.env.posted[0].push_back(0);
    p.expect_silence(&Raw::new(0x24, PSN + 4).data(4));
    assert_eq!(p.env.received.len(), 1);
    assert_eq!((p.env.fatal, p.env.errors.len()), (0, 0));
}

#[test]
fn abort_ends_the_current_receive() {
    let mut p = Peer::rc();
    p.send(&Raw::new(0x0c, PSN).remote(RKEY_READ, VA_READ, 1000));
    p.send(&Raw::new(0x00, PSN + 4).data(256).ask());
    p.responder.abort(&mut p.env);
    assert_eq!(p.env.errors[0].status, WcStatus::WrFlushErr);
    assert_eq!(p.answers(), []);
    assert!(p.responder.is_idle());
    p.expect_silence(&Raw::new(0x02, PSN + 5).data(4).ask());
}
