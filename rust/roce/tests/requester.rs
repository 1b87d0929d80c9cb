// SPDX-License-Identifier: GPL-2.0

//! The requester, answer by answer: retries, waits, refusals, order.

#[path = "../sim/mod.rs"]
mod sim;

use roce::mtu::Mtu;
use roce::psn::Psn;
use roce::requester::{
    LocalError, LocalOk, Requester, RequesterConfig, SendOp, SendWr, Service, Transmit, Wqe,
};
use roce::rnr;
use roce::status::WcStatus;
use roce::wire::{NakCode, Packet};

use sim::build::Raw;
use sim::node::SendSide;
use sim::workload::Work;

const PSN: u32 = 0xff_fffe;
const US: u64 = 1000;
/// 4.096 us times 2^10.
const TIMEOUT: u64 = 4_194_304;

struct Host {
    requester: Requester<Vec<Wqe>>,
    env: SendSide,
    now: u64,
}

/// A packet sent, decoded: operation, sequence number, AckReq, payload range.
type Sent = (u8, u32, bool, Option<(u32, u32)>);

fn config() -> RequesterConfig {
    RequesterConfig {
        service: Service::Rc,
        dest_qpn: 0x99,
        mtu: Mtu::M256,
        sq_psn: Psn::new(PSN),
        pkey: 0xffff,
        timeout: 10,
        retry_cnt: 3,
        rnr_retry: 2,
        max_rd_atomic: 4,
        max_window: 256 * 64,
    }
}

impl Host {
    fn with(config: &RequesterConfig) -> Self {
        let mut h = Self {
            requester: Requester::new(vec![Wqe::default(); 32]),
            env: SendSide {
                slots: vec![0; 32],
                ..SendSide::default()
            },
            now: 1000,
        };
        h.requester.configure(config);
        h
    }

    fn rc() -> Self {
        Self::with(&config())
    }

    fn post(&mut self, op: SendOp, length: u32) -> u32 {
        self.post_wr(SendWr {
            op,
            length,
            ..SendWr::default()
        })
    }

    fn post_wr(&mut self, mut wr: SendWr) -> u32 {
        let id = self.env.work.len();
        wr.wr_id = id as u64;
        let slot = self.requester.push(wr).unwrap();
        self.env.slots[slot as usize] = id;
        self.env.buffers.push(Vec::new());
        self.env.work.push(Work {
            wr,
            seed: 0,
            expect: Vec::new(),
        });
        slot
    }

    fn poll(&mut self) -> Option<Transmit> {
        self.requester.poll_transmit(self.now, &mut self.env)
    }

    fn sent(&mut self) -> Vec<Sent> {
        let mut all = Vec::new();
        while let Some(t) = self.poll() {
            let mut bytes = t.header.as_slice().to_vec();
            let len = t.payload.map_or(0, |p| p.len) as usize + usize::from(t.pad);
            bytes.resize(bytes.len() + len, 0);
            let p = Packet::parse(&bytes).unwrap();
            assert_eq!(p.bth.dest_qpn, 0x99);
            assert!(p.bth.mig_req);
            all.push((
                p.bth.opcode,
                p.bth.psn.since(Psn::new(PSN)),
                p.bth.ack_req,
                t.payload.map(|p| (p.offset, p.len)),
            ));
        }
        all
    }

    /// Sequence numbers sent, relative to the first.
    fn numbers(&mut self) -> Vec<u32> {
        self.sent().iter().map(|s| s.1).collect()
    }

    fn answer(&mut self, mut raw: Raw) {
        raw.psn = raw.psn.wrapping_add(PSN) & 0xff_ffff;
        let bytes = raw.bytes();
        let packet = Packet::parse(&bytes).unwrap();
        self.requester
            .handle_response(&packet, self.now, &mut self.env);
    }

    fn ack(&mut self, at: u32) {
        self.answer(Raw::new(0x11, at).aeth(0x1f));
    }

    fn nak(&mut self, at: u32, syndrome: u8) {
        self.answer(Raw::new(0x11, at).aeth(syndrome));
    }

    fn time(&mut self, now: u64) {
        self.now = now;
        self.requester.handle_timeout(now, &mut self.env);
    }

    fn statuses(&self) -> Vec<WcStatus> {
        self.env.completions.iter().map(|c| c.status).collect()
    }
}

use WcStatus::*;

#[test]
fn segmentation_and_acknowledgement() {
    let mut h = Host::rc();
    h.post(SendOp::SendImm, 600);
    assert_eq!(
        h.sent(),
        [
            (0x00, 0, false, Some((0, 256))),
            (0x01, 1, false, Some((256, 256))),
            (0x03, 2, true, Some((512, 88))),
        ]
    );
    h.ack(1);
    assert_eq!(h.statuses(), []);
    h.ack(2);
    assert_eq!(h.statuses(), [Success]);
    assert_eq!(h.env.completions[0].byte_len, 600);
    assert_eq!(h.requester.next_deadline(), None);
}

#[test]
fn one_ack_is_asked_for_a_batch_of_messages() {
    let mut h = Host::rc();
    for _ in 0..5 {
        h.post(SendOp::Send, 8);
    }
    let asked: Vec<_> = h.sent().iter().map(|s| s.2).collect();
    assert_eq!(asked, [false, false, false, false, true]);
    h.ack(4);
    assert_eq!(h.statuses(), [Success; 5]);
}

#[test]
fn acks_are_asked_for_often_enough() {
    let mut h = Host::rc();
    for _ in 0..30 {
        h.post(SendOp::Send, 8);
    }
    let asked: Vec<_> = h.sent().iter().filter(|s| s.2).map(|s| s.1).collect();
    assert_eq!(asked, [15, 29]);
}

#[test]
fn window_full_asks_for_an_ack() {
    let mut c = config();
    c.max_window = 256 * 8;
    let mut h = Host::with(&c);
    h.post(SendOp::Write, 256 * 20);
    let sent = h.sent();
    assert_eq!(sent.len(), 8);
    assert!(sent[7].2);
    h.ack(3);
    assert_eq!(h.numbers(), [8, 9, 10, 11]);
}

#[test]
fn more_means_the_same_message_goes_on() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 700);
    h.post(SendOp::Send, 10);
    let more: Vec<_> = std::iter::from_fn(|| h.poll()).map(|t| t.more).collect();
    assert_eq!(more, [true, true, false, false]);
}

#[test]
fn gap_goes_back() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 256 * 6);
    assert_eq!(h.numbers().len(), 6);
    h.nak(2, 0x60);
    assert_eq!(h.numbers(), [2, 3, 4, 5]);
    // A copy of the NAK before anything was sent again is not another loss.
    h.nak(3, 0x60);
    h.nak(3, 0x60);
    assert_eq!(h.numbers(), [3, 4, 5]);
    assert_eq!(h.requester.stats().sequence_naks, 3);
    h.ack(5);
    assert_eq!(h.statuses(), [Success]);
}

#[test]
fn gaps_without_progress_end() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 256 * 3);
    h.post(SendOp::Send, 0);
    h.numbers();
    for _ in 0..3 {
        h.nak(1, 0x60);
        assert_eq!(h.numbers(), [1, 2, 3]);
    }
    h.nak(1, 0x60);
    assert_eq!(h.statuses(), [RetryExcErr, WrFlushErr]);
    assert_eq!(h.env.fatal, 1);
    assert_eq!(h.numbers(), []);
}

#[test]
fn silence_ends_after_the_retries() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    h.numbers();
    for i in 0..3u64 {
        let t = 1000 + (i + 1) * TIMEOUT;
        assert_eq!(h.requester.next_deadline(), Some(t));
        h.time(t - 1);
        assert_eq!(h.numbers(), []);
        h.time(t);
        assert_eq!(h.numbers(), [0]);
    }
    h.time(1000 + 4 * TIMEOUT);
    assert_eq!(h.statuses(), [RetryExcErr]);
    assert_eq!(h.env.fatal, 1);
    assert_eq!(h.requester.next_deadline(), None);
}

#[test]
fn progress_gives_the_retries_back() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 256 * 4);
    h.numbers();
    for i in 0..4 {
        for _ in 0..3 {
            let t = h.requester.next_deadline().unwrap();
            h.time(t);
            h.numbers();
        }
        h.ack(i);
    }
    assert_eq!(h.statuses(), [Success]);
}

#[test]
fn timeout_zero_waits_for_ever() {
    let mut c = config();
    c.timeout = 0;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 8);
    h.numbers();
    assert_eq!(h.requester.next_deadline(), None);
    h.time(u64::MAX);
    assert_eq!(h.statuses(), []);
}

#[test]
fn not_ready_waits_to_the_microsecond() {
    for code in 0..32u8 {
        let mut h = Host::rc();
        h.post(SendOp::Send, 8);
        h.numbers();
        h.nak(0, 0x20 | code);
        let until = h.now + rnr::delay_ns(code);
        assert_eq!(h.requester.next_deadline(), Some(until));
        h.time(until - 1);
        assert_eq!(h.numbers(), []);
        h.time(until);
        assert_eq!(h.numbers(), [0]);
    }
    assert_eq!(rnr::delay_ns(1), 10 * US);
    assert_eq!(rnr::delay_ns(14), 1280 * US);
}

#[test]
fn not_ready_ends_after_its_retries() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    h.post(SendOp::Local, 0);
    for _ in 0..2 {
        assert_eq!(h.numbers(), [0]);
        h.nak(0, 0x21);
        // Copies, and the gap that it left, do not count while waiting.
        h.nak(0, 0x21);
        h.nak(0, 0x60);
        let t = h.requester.next_deadline().unwrap();
        h.time(t);
    }
    assert_eq!(h.numbers(), [0]);
    h.nak(0, 0x21);
    assert_eq!(h.statuses(), [RnrRetryExcErr, WrFlushErr]);
    assert_eq!(h.env.fatal, 1);
}

#[test]
fn not_ready_seven_times_means_for_ever() {
    let mut c = config();
    c.rnr_retry = 7;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 8);
    for _ in 0..100 {
        assert_eq!(h.numbers(), [0]);
        h.nak(0, 0x21);
        let t = h.requester.next_deadline().unwrap();
        h.time(t);
    }
    assert_eq!(h.numbers(), [0]);
    h.ack(0);
    assert_eq!(h.statuses(), [Success]);
}

#[test]
fn refusals() {
    for (syndrome, status) in [(0x61, RemInvReqErr), (0x62, RemAccessErr), (0x63, RemOpErr)] {
        let mut h = Host::rc();
        for _ in 0..4 {
            h.post(SendOp::Send, 300);
        }
        h.numbers();
        h.nak(3, syndrome);
        assert_eq!(h.statuses(), [Success, status, WrFlushErr, WrFlushErr]);
        assert_eq!(h.env.fatal, 1);
    }
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    h.numbers();
    h.nak(0, 0x64);
    h.nak(0, 0x40);
    assert_eq!(h.statuses(), []);
}

#[test]
fn what_is_not_in_flight_is_not_acknowledged() {
    let mut h = Host::rc();
    h.ack(0);
    h.post(SendOp::Send, 300);
    h.post(SendOp::Send, 300);
    h.poll().unwrap();
    h.poll().unwrap();
    h.poll().unwrap();
    for at in [3, 4, 0x80_0000, 0xff_ffff] {
        h.ack(at);
        h.nak(at, 0x61);
        h.nak(at, 0x21);
    }
    assert_eq!(h.statuses(), []);
    assert_eq!(h.numbers(), [3]);
    h.ack(3);
    assert_eq!(h.statuses(), [Success, Success]);
    assert_eq!(h.env.fatal, 0);
}

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
    let sent: Vec<_> = h.sent().iter().map(|s| (s.0, s.1)).collect();
    assert_eq!(sent, [(0x0c, 1), (0x04, 4)]);
    h.ack(4);
    h.answer(Raw::new(0x0e, 2).data(256));
    assert_eq!(h.numbers(), []);
    for (op, at) in [(0x0d, 1), (0x0e, 2), (0x0f, 3)] {
        h.answer(Raw::new(op, at).data(256).aeth(0x1f));
    }
    h.ack(4);
    assert_eq!(h.statuses(), [Success, Success]);
    assert_eq!(h.requester.stats().implied_naks, 1);
}

#[test]
fn repeated_read_names_the_rest() {
    let mut h = Host::rc();
    h.post_wr(SendWr {
        op: SendOp::Read,
        length: 1000,
        remote_addr: 0x1000,
        rkey: 7,
        ..SendWr::default()
    });
    h.post(SendOp::Send, 0);
    h.numbers();
    h.answer(Raw::new(0x0d, 0).data(256).aeth(0x1f));
    h.ack(4);
    let t = h.poll().unwrap();
    let p = Packet::parse(t.header.as_slice()).unwrap();
    let reth = p.reth.unwrap();
    assert_eq!((reth.va, reth.len, reth.rkey), (0x1100, 744, 7));
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
fn local_work_takes_its_turn_and_is_done_once() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 0);
    h.post(SendOp::Local, 0);
    h.post(SendOp::Send, 0);
    assert_eq!(h.numbers(), [0, 1]);
    assert_eq!(h.env.locals, [1]);
    assert_eq!(h.statuses(), []);
    h.nak(0, 0x60);
    assert_eq!(h.numbers(), [0, 1]);
    assert_eq!(h.env.locals, [1]);
    h.ack(0);
    assert_eq!(h.statuses(), [Success, Success]);
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

#[test]
fn draining_finishes_what_was_begun() {
    let mut c = config();
    c.max_window = 256 * 4;
    let mut h = Host::with(&c);
    h.post(SendOp::Send, 256 * 6);
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [0, 1, 2, 3]);
    h.requester.set_draining(true);
    h.ack(3);
    assert_eq!(h.numbers(), [4, 5]);
    assert_eq!(h.env.drained, 0);
    h.ack(5);
    assert_eq!(h.numbers(), []);
    assert_eq!(h.env.drained, 1);
    assert!(h.requester.is_drained());
    h.requester.set_draining(false);
    assert_eq!(h.numbers(), [6]);
    assert_eq!(h.env.drained, 1);
    // An idle queue drains at the next poll.
    h.ack(6);
    h.requester.set_draining(true);
    h.numbers();
    assert_eq!(h.env.drained, 2);
}

#[test]
fn queue_is_full_at_its_depth() {
    let mut h = Host::rc();
    for _ in 0..32 {
        h.post(SendOp::Send, 0);
    }
    assert_eq!(h.requester.room(), 0);
    assert!(h.requester.push(SendWr::default()).is_err());
    h.numbers();
    h.ack(30);
    assert_eq!(h.requester.room(), 31);
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
fn same_host_messages_advance_as_on_the_wire() {
    let mut h = Host::rc();
    h.post(SendOp::Write, 600);
    h.post(SendOp::FetchAdd, 8);
    h.post(SendOp::Send, 8);
    let m = h.requester.local_next(h.now, &mut h.env).unwrap();
    assert_eq!((m.psn, m.packets), (Psn::new(PSN), 3));
    // One at a time, and not on the wire meanwhile.
    assert!(h.requester.local_next(h.now, &mut h.env).is_none());
    assert_eq!(h.numbers(), []);
    h.requester.local_done(Ok(LocalOk::Done), h.now, &mut h.env);
    let m = h.requester.local_next(h.now, &mut h.env).unwrap();
    assert_eq!(m.psn, Psn::new(PSN + 3));
    h.requester
        .local_done(Ok(LocalOk::Atomic(9)), h.now, &mut h.env);
    assert_eq!(h.env.buffers[1], 9u64.to_ne_bytes());
    assert_eq!(h.numbers(), [4]);
    // In flight on the wire: not the same-host way.
    h.post(SendOp::Send, 8);
    assert!(h.requester.local_next(h.now, &mut h.env).is_none());
    h.ack(4);
    assert!(h.requester.local_next(h.now, &mut h.env).is_some());
    assert_eq!(h.statuses(), [Success; 3]);
}

#[test]
fn same_host_failures() {
    let run = |e, want: &[WcStatus]| {
        let mut h = Host::rc();
        h.post(SendOp::Send, 8);
        h.post(SendOp::Send, 8);
        h.requester.local_next(h.now, &mut h.env).unwrap();
        h.requester.local_done(Err(e), h.now, &mut h.env);
        assert_eq!(h.statuses(), want);
        h
    };
    run(
        LocalError::Nak(NakCode::RemoteAccess),
        &[RemAccessErr, WrFlushErr],
    );
    run(
        LocalError::Nak(NakCode::InvalidRequest),
        &[RemInvReqErr, WrFlushErr],
    );
    run(
        LocalError::Nak(NakCode::RemoteOperational),
        &[RemOpErr, WrFlushErr],
    );
    run(LocalError::Local(LocProtErr), &[LocProtErr, WrFlushErr]);

    let mut h = run(LocalError::Rnr { timer_ns: 20 * US }, &[]);
    for _ in 0..2 {
        let t = h.requester.next_deadline().unwrap();
        assert_eq!(t, h.now + 20 * US);
        assert!(h.requester.local_next(t - 1, &mut h.env).is_none());
        h.now = t;
        h.requester.local_next(t, &mut h.env).unwrap();
        let e = Err(LocalError::Rnr { timer_ns: 20 * US });
        h.requester.local_done(e, h.now, &mut h.env);
    }
    assert_eq!(h.statuses(), [RnrRetryExcErr, WrFlushErr]);

    let mut h = run(LocalError::Silent, &[]);
    for _ in 0..3 {
        assert!(h.requester.local_next(h.now, &mut h.env).is_none());
        let t = h.requester.next_deadline().unwrap();
        assert_eq!(t, h.now + TIMEOUT);
        h.time(t);
        h.requester.local_next(h.now, &mut h.env).unwrap();
        h.requester
            .local_done(Err(LocalError::Silent), h.now, &mut h.env);
    }
    let t = h.requester.next_deadline().unwrap();
    h.time(t);
    assert_eq!(h.statuses(), [RetryExcErr, WrFlushErr]);
}

#[test]
fn same_host_message_survives_a_flush() {
    let mut h = Host::rc();
    h.post(SendOp::Send, 8);
    h.requester.local_next(h.now, &mut h.env).unwrap();
    h.requester.flush(&mut h.env);
    h.requester.local_done(Ok(LocalOk::Done), h.now, &mut h.env);
    assert_eq!(h.statuses(), [WrFlushErr]);
}

#[test]
fn two_gibibytes_at_the_smallest_mtu() {
    // 2^23 packets: half the sequence space in one message.
    let mut c = config();
    c.max_window = 0;
    let mut h = Host::with(&c);
    h.post(SendOp::Write, 0x8000_0000);
    h.post(SendOp::Send, 0);
    let mut count = 0u32;
    while h.env.completions.is_empty() {
        let mut last = None;
        while let Some(t) = h.poll() {
            let p = Packet::parse(&t.header.as_slice()[..12]).err();
            assert!(p.is_some() || t.payload.is_none() || t.header.len() == 12);
            let b = t.header.as_slice();
            let psn = u32::from_be_bytes([0, b[9], b[10], b[11]]);
            assert_eq!(psn, (PSN + count) & 0xff_ffff);
            if count < 1 << 23 {
                assert_eq!(t.payload.unwrap().offset, count << 8);
            }
            last = Some(count);
            count += 1;
        }
        h.ack(last.expect("stuck"));
    }
    assert_eq!(count, (1 << 23) + 1);
    assert_eq!(h.statuses(), [Success, Success]);
}

#[test]
fn two_gibibytes_read_at_the_smallest_mtu() {
    let mut c = config();
    c.max_window = 0;
    let mut h = Host::with(&c);
    h.post(SendOp::Read, 0x8000_0000);
    h.post_wr(SendWr {
        fence: true,
        ..SendWr::default()
    });
    h.requester.poll_transmit(h.now, &mut h.env).unwrap();
    let mut env = Discard::default();
    let mut at = 0u32;
    while env.done == 0 {
        while let Some(t) = h.requester.poll_transmit(h.now, &mut env) {
            assert_eq!(t.header.as_slice()[0], 0x0c);
        }
        let raw = Raw::new(0x0e, at.wrapping_add(PSN)).data(256);
        let bytes = raw.bytes();
        let p = Packet::parse(&bytes).unwrap();
        h.requester.handle_response(&p, h.now, &mut env);
        at += 1;
        assert_eq!(u64::from(at) << 8, env.bytes);
    }
    assert_eq!(at, 1 << 23);
    let t = h.requester.poll_transmit(h.now, &mut env).unwrap();
    assert_eq!(t.header.as_slice()[0], 0x04);
}

/// Counts bytes instead of keeping them.
#[derive(Default)]
struct Discard {
    bytes: u64,
    done: u32,
}

impl roce::requester::RequesterEnv for Discard {
    fn scatter(&mut self, _: u32, offset: u32, data: &[u8]) -> Result<(), roce::status::Fault> {
        assert_eq!(u64::from(offset), self.bytes);
        self.bytes += data.len() as u64;
        Ok(())
    }
    fn complete(&mut self, c: &roce::requester::SendCompletion) {
        assert_eq!(c.status, Success);
        self.done += 1;
    }
    fn local(&mut self, _: u32) -> Result<(), WcStatus> {
        Ok(())
    }
    fn fatal(&mut self) {
        panic!("failed");
    }
    fn sq_drained(&mut self) {}
}
