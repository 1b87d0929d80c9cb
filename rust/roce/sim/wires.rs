// SPDX-License-Identifier: GPL-2.0

//! Flows that share a wire: how much each of them gets through, in virtual time.

use std::collections::BTreeMap;

use roce::wire::Packet;

use super::flow::{
    Connection,
    Load,
    Reference,
    SEGMENT, //
};
use super::rng::Rng;
use super::wire::{
    Wire,
    WireConfig, //
};

/// A run is over after this much virtual time, nanoseconds, whatever was reached.
const LONGEST: u64 = 600_000_000_000;

/// READ data wait while so many packets are in front of the link: what the module does.
const READ_QUEUE: usize = 250;

/// What one flow did.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Bytes of payload per second, from the beginning to the end of the flow.
    pub goodput: f64,
    /// When each message ended, nanoseconds; empty for the reference.
    pub ends: Vec<u64>,
    /// Packets sent again.
    pub retransmitted: u64,
    /// READs and atomics among them, and in probes.
    pub repeated: u64,
    pub timeouts: u64,
    /// Probes, and of those, too early ones.
    pub probes: u64,
    pub early_probes: u64,
    /// Gaps that the responder reported wrongly.
    pub wrong_naks: u64,
    /// It failed.
    pub failed: Option<roce::status::WcStatus>,
}

impl Outcome {
    /// MB/s.
    pub fn megabytes(&self) -> f64 {
        self.goodput / 1e6
    }
}

/// What one run came to.
pub struct Run {
    pub flows: Vec<Outcome>,
    /// Of both directions: packets that were sent, that the wire lost and that a queue dropped.
    pub sent: u64,
    pub lost: u64,
    pub dropped: u64,
    /// Packets that did not arrive, each of a train by itself.
    pub missing: u64,
}

enum Cargo {
    /// A packet, or those of a train, which the wire takes for one.
    Roce(Vec<Vec<u8>>),
    /// A packet of the reference, or (at end 0) its acknowledgement.
    Reference(u64),
}

enum Flow {
    Roce(Box<Connection>),
    Reference(Reference),
}

struct Sim {
    now: u64,
    wires: [Wire; 2],
    flows: Vec<Flow>,
    /// By time and serial number: flow, end, packet.
    arrivals: BTreeMap<(u64, u64), (usize, usize, Cargo)>,
    serial: u64,
    missing: u64,
}

/// What is put on a wire.
#[derive(Clone, Copy, Debug)]
pub enum Traffic {
    Roce(Load),
    /// So many packets of the reference.
    Reference(u64),
}

/// Runs `traffic` over wires that are like `there` from end 0 to end 1 and like `back` from end 1
/// to end 0.
pub fn run(there: WireConfig, back: WireConfig, traffic: &[Traffic], seed: u64) -> Run {
    let mut rng = Rng::new(seed);
    let flows = traffic
        .iter()
        .map(|t| match t {
            Traffic::Roce(load) => Flow::Roce(Box::new(Connection::new(*load, rng.next() as u32))),
            Traffic::Reference(packets) => Flow::Reference(Reference::new(*packets)),
        })
        .collect();
    let mut sim = Sim {
        now: 0,
        wires: [
            Wire::new(there, Rng::new(seed ^ 0x5555)),
            Wire::new(back, Rng::new(seed ^ 0xaaaa)),
        ],
        flows,
        arrivals: BTreeMap::new(),
        serial: 0,
        missing: 0,
    };
    sim.drive();
    Run {
        flows: sim.flows.iter().map(outcome).collect(),
        sent: sim.wires.iter().map(|w| w.sent).sum(),
        lost: sim.wires.iter().map(|w| w.lost).sum(),
        dropped: sim.wires.iter().map(|w| w.dropped).sum(),
        missing: sim.missing,
    }
}

fn outcome(flow: &Flow) -> Outcome {
    let rate = |bytes: u64, end: u64| bytes as f64 * 1e9 / end.max(1) as f64;
    match flow {
        Flow::Roce(c) => {
            let ends = c.send.ends.clone();
            let bytes = ends.len() as u64 * u64::from(c.load.length);
            Outcome {
                goodput: rate(bytes, ends.last().copied().unwrap_or(0)),
                ends,
                retransmitted: c.requester.stats().retransmitted.into(),
                repeated: c.repeated,
                timeouts: c.requester.stats().timeouts.into(),
                probes: c.requester.stats().probes.into(),
                early_probes: c.requester.stats().early_probes.into(),
                wrong_naks: c.responder.stats().wrong_naks.into(),
                failed: c.send.failed,
            }
        }
        Flow::Reference(r) => Outcome {
            goodput: rate(r.delivered * SEGMENT, r.end),
            retransmitted: r.retransmitted,
            ..Outcome::default()
        },
    }
}

impl Sim {
    fn drive(&mut self) {
        while self.now < LONGEST {
            // Each is first in its turn.
            for i in 0..self.flows.len() {
                self.pump((i + self.serial as usize) % self.flows.len());
            }
            if self.flows.iter().all(|f| match f {
                Flow::Roce(c) => c.is_done(),
                Flow::Reference(r) => r.is_done(),
            }) {
                return;
            }
            let Some(next) = self.next_event() else {
                return;
            };
            self.now = self.now.max(next);
            self.arrive();
            self.expire();
        }
    }

    fn next_event(&self) -> Option<u64> {
        let mut next = self.arrivals.keys().next().map(|k| k.0);
        let mut at_most = |t: Option<u64>| {
            next = match (next, t) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        };
        for flow in &self.flows {
            match flow {
                Flow::Roce(c) => {
                    at_most(c.requester.next_deadline());
                    at_most(c.responder.next_deadline());
                    if c.responder.has_response() {
                        at_most(self.wires[1].next_leave());
                    }
                }
                Flow::Reference(r) => at_most(r.deadline()),
            }
        }
        next
    }

    fn arrive(&mut self) {
        while let Some(entry) = self
            .arrivals
            .first_entry()
            .filter(|e| e.key().0 <= self.now)
        {
            let (flow, end, cargo) = entry.remove();
            match (&mut self.flows[flow], cargo) {
                (Flow::Roce(c), Cargo::Roce(packets)) => {
                    c.send.now = self.now;
                    if end == 1 {
                        c.request(packets, self.now);
                    } else {
                        for bytes in packets {
                            let packet = Packet::parse(&bytes).expect("not damaged");
                            c.requester.handle_response(&packet, self.now, &mut c.send);
                        }
                    }
                }
                (Flow::Reference(r), Cargo::Reference(id)) => {
                    if end == 0 {
                        r.acked(id, self.now);
                    } else {
                        self.send(flow, 0, 40, Cargo::Reference(id));
                    }
                }
                _ => unreachable!("a packet of another kind of flow"),
            }
            self.pump(flow);
        }
    }

    fn expire(&mut self) {
        let now = self.now;
        for flow in &mut self.flows {
            match flow {
                Flow::Roce(c) => {
                    c.send.now = now;
                    if c.requester.next_deadline().is_some_and(|t| t <= now) {
                        c.requester.handle_timeout(now, &mut c.send);
                    }
                    c.responder.handle_timeout(now, &mut c.recv);
                }
                Flow::Reference(r) => {
                    if r.deadline().is_some_and(|t| t <= now) {
                        r.on_deadline(now);
                    }
                }
            }
        }
    }

    /// A packet goes to `end`.
    fn send(&mut self, flow: usize, end: usize, bytes: usize, cargo: Cargo) {
        let times = self.wires[1 - end].send(self.now, bytes);
        if times.is_empty() {
            self.missing += match &cargo {
                Cargo::Roce(packets) => packets.len() as u64,
                Cargo::Reference(_) => 1,
            };
        }
        let mut cargo = Some(cargo);
        for (i, at) in times.iter().enumerate() {
            let is_last = i + 1 == times.len();
            let cargo = match cargo.take() {
                Some(c) if is_last => c,
                Some(c) => {
                    let copy = match &c {
                        Cargo::Roce(packets) => Cargo::Roce(packets.clone()),
                        Cargo::Reference(id) => Cargo::Reference(*id),
                    };
                    cargo = Some(c);
                    copy
                }
                None => return,
            };
            self.serial += 1;
            self.arrivals.insert((*at, self.serial), (flow, end, cargo));
        }
    }

    /// Sends what a flow can send now.
    fn pump(&mut self, flow: usize) {
        loop {
            let now = self.now;
            let is_read_free = self.wires[1].queued(now) < READ_QUEUE;
            let (end, cargo) = match &mut self.flows[flow] {
                Flow::Roce(c) => {
                    c.send.now = now;
                    c.post();
                    if !c.recv.replies.is_empty() {
                        (0, Cargo::Roce(vec![c.recv.replies.remove(0)]))
                    } else if let Some(train) = c.next_requests(now) {
                        (1, Cargo::Roce(train))
                    } else if !is_read_free {
                        return;
                    } else {
                        let train = c.next_responses(now);
                        if train.is_empty() {
                            return;
                        }
                        (0, Cargo::Roce(train))
                    }
                }
                Flow::Reference(r) => match r.poll(now) {
                    Some(id) => (1, Cargo::Reference(id)),
                    None => return,
                },
            };
            match (cargo, &self.flows[flow]) {
                (Cargo::Roce(packets), Flow::Roce(c)) if c.load.cut => {
                    for packet in packets {
                        self.send(flow, end, packet.len(), Cargo::Roce(vec![packet]));
                    }
                }
                (Cargo::Roce(packets), _) => {
                    let bytes = packets.iter().map(Vec::len).sum();
                    self.send(flow, end, bytes, Cargo::Roce(packets));
                }
                (cargo, _) => self.send(flow, end, SEGMENT as usize + 32, cargo),
            }
        }
    }
}
