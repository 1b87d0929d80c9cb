// SPDX-License-Identifier: GPL-2.0

//! What the protocol itself takes of a packet: `cargo bench -p roce`.
//!
//! A requester and a responder exchange messages through vectors of bytes. Timed are their own
//! calls alone: no memory is copied, no CRC computed, and nothing is sent. Figures are nanoseconds
//! for each packet, the least of many rounds, since what else the machine does can only add to it.
//! Where a round has few packets of a kind, as ACKs of a WRITE, reading the clock is in the figure;
//! and an ACK completes all messages that it covers.

use std::hint::black_box;
use std::time::Instant;

use roce::key::Key;
use roce::mtu::Mtu;
use roce::number::{
    Qpn,
    Srqn, //
};
use roce::psn::Psn;
use roce::requester::{
    self,
    Requester,
    RequesterConfig,
    RequesterEnv,
    SendCompletion,
    SendOp,
    SendWr,
    Wqe, //
};
use roce::responder::{
    self,
    Access,
    AtomicOp,
    CompletionLost,
    Flush,
    QpEvent,
    ReceiveError,
    RecvCompletion,
    RemoteAccess,
    Resource,
    Responder,
    ResponderConfig,
    ResponderEnv,
    ScatterError, //
};
use roce::status::{
    Fault,
    WcStatus, //
};
use roce::wire::{
    HeaderBuf,
    Packet, //
};

const DEPTH: usize = 64;
const RESOURCES: u8 = 16;
const ROUNDS: usize = 2000;

/// A host that does nothing but count: every access is right, every receive is there.
#[derive(Default)]
struct Host {
    completions: u64,
    bytes: u64,
    replies: Vec<HeaderBuf>,
}

impl RequesterEnv for Host {
    fn scatter(&mut self, _slot: u32, _offset: u32, data: &[u8]) -> Result<(), Fault> {
        self.bytes += data.len() as u64;
        Ok(())
    }

    fn complete(&mut self, completion: &SendCompletion) {
        assert_eq!(completion.status, WcStatus::Success);
        self.completions += 1;
    }

    fn local(&mut self, _slot: u32) -> Result<(), WcStatus> {
        Ok(())
    }

    fn fatal(&mut self) {
        panic!("the requester gives up");
    }

    fn sq_drained(&mut self) {}
}

impl ResponderEnv for Host {
    fn take_receive(&mut self, _srqn: Option<Srqn>) -> Result<(), ReceiveError> {
        Ok(())
    }

    fn can_complete(&mut self) -> bool {
        true
    }

    fn check_xrc(&mut self, _srqn: Srqn) -> Result<(), ReceiveError> {
        Ok(())
    }

    fn scatter(&mut self, _offset: u32, data: &[u8]) -> Result<(), ScatterError> {
        self.bytes += data.len() as u64;
        Ok(())
    }

    fn complete_receive(&mut self, _completion: &RecvCompletion) -> Result<(), CompletionLost> {
        self.completions += 1;
        Ok(())
    }

    fn check_remote(&mut self, _access: &RemoteAccess) -> Result<(), Fault> {
        Ok(())
    }

    fn remote_write(
        &mut self,
        _srqn: Option<Srqn>,
        _rkey: Key,
        _va: u64,
        data: &[u8],
    ) -> Result<(), Fault> {
        self.bytes += data.len() as u64;
        Ok(())
    }

    fn atomic(
        &mut self,
        _srqn: Option<Srqn>,
        _rkey: Key,
        _va: u64,
        _op: AtomicOp,
    ) -> Result<u64, Fault> {
        Ok(0)
    }

    fn flush(&mut self, _srqn: Option<Srqn>, _flush: &Flush) -> Result<(), Fault> {
        Ok(())
    }

    fn invalidate(&mut self, _rkey: Key) -> Result<(), Fault> {
        Ok(())
    }

    fn reply(&mut self, header: &HeaderBuf) {
        self.replies.push(*header);
    }

    fn event(&mut self, _event: QpEvent) {}

    fn fatal(&mut self) {
        panic!("the responder refuses");
    }
}

/// The kinds of calls that are timed.
const SEND: usize = 0;
const PARSE: usize = 1;
const RECEIVE: usize = 2;
const ANSWER: usize = 3;
const END: usize = 4;
const CALLS: [&str; 5] = [
    "requester: a packet sent",
    "a packet parsed, either way",
    "responder: a request received",
    "responder: a packet sent, ACKs among them",
    "requester: a response received, ACKs among them",
];

/// A connection, and the least time of each kind of call.
struct Bench {
    requester: Requester<Vec<Wqe>>,
    responder: Responder<Vec<Resource>>,
    here: Host,
    there: Host,
    now: u64,
    least: [f64; CALLS.len()],
    packets: usize,
    answers: usize,
}

/// The bytes of a packet that the CRC covers.
fn bytes(header: &HeaderBuf, payload: u32, pad: u8) -> Vec<u8> {
    let mut bytes = header.as_slice().to_vec();
    bytes.resize(bytes.len() + payload as usize + usize::from(pad), 0);
    bytes
}

impl Bench {
    fn new() -> Self {
        let mut requester = Requester::new(vec![Wqe::default(); DEPTH]);
        let mut responder = Responder::new(vec![Resource::default(); usize::from(RESOURCES)]);
        requester.configure(&RequesterConfig {
            service: requester::Service::Rc,
            dest_qpn: Qpn::new(0x11),
            mtu: Mtu::M1024,
            sq_psn: Psn::new(0),
            pkey: 0xffff,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            max_rd_atomic: RESOURCES,
            max_window: 0,
        });
        responder.configure(&ResponderConfig {
            service: responder::Service::Rc,
            dest_qpn: Qpn::new(0x11),
            mtu: Mtu::M1024,
            rq_psn: Psn::new(0),
            pkey: 0xffff,
            access: Access::ALL,
            min_rnr_timer: 12,
            max_dest_rd_atomic: RESOURCES,
        });
        Self {
            requester,
            responder,
            here: Host::default(),
            there: Host::default(),
            now: 1_000_000,
            least: [f64::MAX; CALLS.len()],
            packets: 0,
            answers: 0,
        }
    }

    fn note(&mut self, call: usize, start: Instant, count: usize) {
        if count != 0 {
            let each = start.elapsed().as_nanos() as f64 / count as f64;
            self.least[call] = self.least[call].min(each);
        }
    }

    /// Messages there and their answers back, all in one go, as far as the window admits.
    fn round(&mut self, wr: &SendWr, count: usize) {
        let before = self.here.completions;
        for _ in 0..count {
            self.requester.push(*wr).expect("room in the queue");
        }
        while self.requester.outstanding() != 0 {
            self.now += 10_000;
            if !self.step() {
                // A response can be late, but there is none that does not come.
                self.now = self.requester.next_deadline().expect("stuck");
                self.requester.handle_timeout(self.now, &mut self.here);
            }
        }
        assert_eq!(self.here.completions - before, count as u64);
    }

    /// Whether anything was sent or answered.
    fn step(&mut self) -> bool {
        let mut sent = Vec::with_capacity(4 * DEPTH * DEPTH);
        let start = Instant::now();
        while let Some(t) = self.requester.poll_transmit(self.now, &mut self.here) {
            sent.push(t);
        }
        self.note(SEND, start, sent.len());
        let requests: Vec<_> = sent
            .iter()
            .map(|t| bytes(&t.header, t.payload.map_or(0, |p| p.len), t.pad))
            .collect();
        let parsed = self.parse(&requests);
        let start = Instant::now();
        for packet in &parsed {
            self.responder
                .handle_request(packet, self.now, &mut self.there);
        }
        self.note(RECEIVE, start, parsed.len());
        let mut answers = Vec::with_capacity(4 * DEPTH * DEPTH);
        let start = Instant::now();
        self.responder.end_of_run(&mut self.there);
        while let Some(r) = self.responder.poll_response(self.now) {
            answers.push(r);
        }
        self.note(ANSWER, start, answers.len() + self.there.replies.len());
        let mut back: Vec<_> = answers
            .iter()
            .map(|r| bytes(&r.header, r.payload.map_or(0, |p| p.len), r.pad))
            .collect();
        let replies = self.there.replies.drain(..);
        back.extend(replies.map(|header| bytes(&header, 0, 0)));
        let parsed = self.parse(&back);
        let start = Instant::now();
        for packet in &parsed {
            self.requester
                .handle_response(packet, self.now, &mut self.here);
        }
        self.note(END, start, parsed.len());
        self.packets += requests.len();
        self.answers += back.len();
        !requests.is_empty() || !back.is_empty()
    }

    fn parse<'a>(&mut self, all: &'a [Vec<u8>]) -> Vec<Packet<'a>> {
        let mut parsed = Vec::with_capacity(all.len());
        let start = Instant::now();
        for bytes in all {
            parsed.push(Packet::parse(black_box(bytes)).expect("well-formed"));
        }
        self.note(PARSE, start, all.len());
        parsed
    }
}

fn main() {
    // `cargo test --benches` only asks whether it works.
    let is_bench = std::env::args().any(|a| a == "--bench");
    let rounds = if is_bench { ROUNDS } else { 2 };
    println!("ns for each packet, the least of {rounds} rounds, MTU 1024");
    for (name, op, length, count) in [
        ("WRITE of 64 KiB", SendOp::Write, 65536, 16),
        ("WRITE of 8 bytes", SendOp::Write, 8, DEPTH),
        ("SEND of 64 KiB", SendOp::Send, 65536, 16),
        ("SEND of 8 bytes", SendOp::Send, 8, DEPTH),
        ("READ of 64 KiB", SendOp::Read, 65536, 16),
        ("READ of 8 bytes", SendOp::Read, 8, DEPTH),
    ] {
        let mut bench = Bench::new();
        let wr = SendWr {
            op,
            length,
            signaled: true,
            remote_addr: 0x10000,
            rkey: Key::new(1),
            ..SendWr::default()
        };
        for _ in 0..rounds {
            bench.round(&wr, count);
        }
        let each = (rounds * count) as f64;
        println!(
            "\n{name}: for each message {:.2} packets there, {:.2} back",
            bench.packets as f64 / each,
            bench.answers as f64 / each
        );
        for (call, least) in CALLS.iter().zip(bench.least) {
            println!("  {call:<50}{least:>8.1}");
        }
    }
}
