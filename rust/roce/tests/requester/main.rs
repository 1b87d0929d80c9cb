// SPDX-License-Identifier: GPL-2.0

//! Tests of the requester, response by response: retries, waits, refusals, order.

#[path = "../../sim/mod.rs"]
mod sim;

mod acks;
mod early;
mod echoes;
mod local;
mod middles;
mod pacing;
mod probes;
mod queue;
mod reads;
mod recovery;
mod responses;
mod retries;
mod slow_peer;
mod tails;

use roce::key::Key;
use roce::mtu::Mtu;
use roce::number::Qpn;
use roce::psn::Psn;
use roce::requester::{
    Drain,
    LocalError,
    LocalOk,
    Payload,
    Requester,
    RequesterConfig,
    SendOp,
    SendWr,
    Service,
    Transmit,
    Wqe, //
};
use roce::rnr;
use roce::status::WcStatus;
use roce::wire::{
    NakCode,
    Packet, //
};

use sim::build::{
    middles as middles_of,
    Raw, //
};
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
        dest_qpn: Qpn::new(0x99),
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

const ROUND_TRIP: u64 = 1000 * US;

/// A connection that has measured a round trip, with a `timeout` as in the attribute. The next
/// number is 1.
fn measured(timeout: u8) -> Host {
    let mut h = Host::with(&RequesterConfig {
        timeout,
        ..config()
    });
    h.post(SendOp::Send, 8);
    assert_eq!(h.numbers(), [0]);
    h.now += ROUND_TRIP;
    h.ack(0);
    h
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
            signaled: true,
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
            let mut header = t.header.as_slice().to_vec();
            let mut payload = t.payload;
            let mut middles = Vec::new();
            if !t.again && t.followers > 0 {
                // Of those that may follow in a train, some are polled at once.
                let most = (all.len() as u32 * 7 + 3) % (t.followers + 1);
                let polled = self.requester.poll_middles(most, self.now);
                assert!(polled.count <= most);
                middles = middles_of(&t.header, polled.count, polled.ack_req);
            }
            let mut rest = middles.into_iter();
            loop {
                let len = payload.map_or(0, |p| p.len) as usize + usize::from(t.pad);
                header.resize(header.len() + len, 0);
                let p = Packet::parse(&header).unwrap();
                assert_eq!(p.bth.dest_qpn, Qpn::new(0x99));
                assert!(p.bth.mig_req);
                all.push((
                    p.bth.opcode,
                    p.bth.psn.since(Psn::new(PSN)),
                    p.bth.ack_req,
                    payload.map(|p| (p.offset, p.len)),
                ));
                let Some(next) = rest.next() else {
                    break;
                };
                header = next;
                payload = payload.map(|p| Payload {
                    offset: p.offset + p.len,
                    ..p
                });
            }
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
