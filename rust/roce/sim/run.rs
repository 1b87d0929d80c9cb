// SPDX-License-Identifier: GPL-2.0

//! One simulation run: a seed in, a verdict out.

mod verdict;

use roce::mtu::Mtu;
use roce::number::{
    Qpn,
    Srqn, //
};
use roce::psn::Psn;
use roce::requester::{
    self,
    LocalError,
    LocalMessage,
    LocalOk,
    RequesterConfig,
    SendOp,
    SendWr, //
};
use roce::responder::{
    self,
    Access,
    LocalOutcome,
    LocalPlan,
    ResponderConfig,
    ResponderEnv, //
};

use super::build::middles;
use super::crc;
use super::network::{
    Faults,
    Network, //
};
use super::node::Node;
use super::rng::Rng;
use super::workload::{
    Mix,
    Workload, //
};

/// What kind of run.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub mix: Mix,
    /// The same places are written and read back again and again.
    pub is_rewriting: bool,
    pub faults: Faults,
    /// Receives come late now and then.
    pub is_slow_receiver: bool,
    /// Messages take the same-host way now and then.
    pub is_local: bool,
    /// Work requests a side.
    pub count: usize,
    /// Packets of the longest messages.
    pub big: u32,
    /// One side goes to the error state in the middle of it all.
    pub is_disaster: bool,
}

/// What a run tells besides "passed".
#[derive(Default, Debug)]
pub struct Report {
    pub packets: u64,
    pub lost: u64,
    pub retransmitted: u64,
    pub rnr_naks: u64,
    pub local_messages: u64,
    pub virtual_ns: u64,
    pub failures: u64,
    /// How often the sequence numbers went half way round or more at once.
    pub jumps: u64,
}

/// Longer runs have gone wrong.
const MAX_VIRTUAL_NS: u64 = 4_000_000_000_000;
const MAX_STEPS: u64 = 20_000_000;

const SPACE: u64 = 1 << 24;
const HALF: u64 = 1 << 23;

struct Sim {
    scenario: Scenario,
    rng: Rng,
    now: u64,
    nodes: [Node; 2],
    network: Network,
    report: Report,
    rnr_code: u8,
    /// Nothing is posted until all is done, and then the sequence numbers jump.
    is_pausing: bool,
    /// The next such pause comes after so many work requests, of both sides.
    next_pause: usize,
}

/// Runs `scenario` with `seed`; panics with a description when an invariant
/// does not hold.
pub fn run(scenario: &Scenario, seed: u64) -> Report {
    let mut rng = Rng::new(seed);
    let mtu = rng.pick(&[Mtu::M256, Mtu::M512, Mtu::M1024, Mtu::M2048, Mtu::M4096]);
    let srqs = if scenario.mix == Mix::Xrc {
        rng.range(1, 5) as u32
    } else {
        0
    };
    let is_two_way = scenario.mix != Mix::Xrc;
    let mut loads = Vec::new();
    for side in 0..2 {
        let count = if side == 0 || is_two_way {
            scenario.count
        } else {
            0
        };
        loads.push(Workload::new(
            &mut rng,
            scenario.mix,
            scenario.is_rewriting,
            count,
            mtu,
            scenario.big,
            srqs,
        ));
    }
    let rd = [rng.range(1, 20) as u8, rng.range(1, 20) as u8];
    let psn = [first_psn(&mut rng), first_psn(&mut rng)];
    let mut nodes = Vec::new();
    for side in 0..2 {
        let depth = rng.range(1, 64) as usize;
        nodes.push(Node::new(
            depth,
            usize::from(rd[side]),
            if side == 1 { srqs } else { 0 },
            loads[side].work.clone(),
        ));
    }
    let nodes: [Node; 2] = nodes.try_into().ok().unwrap();
    let network = Network::new(scenario.faults, rng.range(1_000, 50_000), Rng::new(!seed));
    let rnr_code = rng.range(1, 14) as u8;
    let next_pause = rng.range(1, 60) as usize;
    let mut sim = Sim {
        scenario: *scenario,
        rng,
        now: 1_000_000,
        nodes,
        network,
        report: Report::default(),
        rnr_code,
        is_pausing: false,
        next_pause,
    };
    for side in 0..2 {
        sim.configure(side, mtu, rd, psn);
        sim.nodes[side].to_post = loads[1 - side].received.len() as u64;
    }
    sim.drive();
    sim.check(&loads);
    let report = &mut sim.report;
    report.packets = sim.network.sent;
    report.lost = sim.network.lost;
    report.virtual_ns = sim.now;
    for node in &sim.nodes {
        report.retransmitted += u64::from(node.requester.stats().retransmitted);
        report.rnr_naks += u64::from(node.responder.stats().rnr_naks);
    }
    sim.report
}

/// Mostly shortly before the end of the sequence space, or of its first half.
fn first_psn(rng: &mut Rng) -> Psn {
    let near = rng.below(300) as u32;
    Psn::new(match rng.below(8) {
        0 => near,
        1 => rng.next() as u32,
        2..=4 => (HALF as u32).wrapping_sub(near),
        _ => (SPACE as u32).wrapping_sub(near),
    })
}

impl Sim {
    fn configure(&mut self, side: usize, mtu: Mtu, rd: [u8; 2], psn: [Psn; 2]) {
        let max_window = mtu.bytes() * self.rng.pick(&[1, 8, 40, 200, 2000]);
        let node = &mut self.nodes[side];
        node.requester.configure(&RequesterConfig {
            service: match self.scenario.mix {
                Mix::Rc => requester::Service::Rc,
                Mix::Uc => requester::Service::Uc,
                Mix::Xrc => requester::Service::XrcIni,
            },
            dest_qpn: Qpn::new(0x10 + side as u32),
            mtu,
            sq_psn: psn[side],
            pkey: 0xffff,
            timeout: self.rng.range(8, 14) as u8,
            retry_cnt: 7,
            rnr_retry: 7,
            max_rd_atomic: rd[1 - side],
            max_window,
        });
        node.responder.configure(&ResponderConfig {
            service: match self.scenario.mix {
                Mix::Rc => responder::Service::Rc,
                Mix::Uc => responder::Service::Uc,
                Mix::Xrc => responder::Service::XrcTgt,
            },
            dest_qpn: Qpn::new(0x10 + side as u32),
            mtu,
            rq_psn: psn[1 - side],
            pkey: 0xffff,
            access: Access::ALL,
            min_rnr_timer: self.rnr_code,
            max_dest_rd_atomic: rd[side],
        });
    }

    fn drive(&mut self) {
        for _ in 0..MAX_STEPS {
            assert!(self.now < MAX_VIRTUAL_NS, "runs for ever");
            for side in 0..2 {
                self.post_receives(side);
                let max = self.rng.range(0, 20) as usize;
                if !self.is_pausing {
                    self.nodes[side].post_sends(max);
                }
                self.pump(side);
            }
            self.pause();
            if self.scenario.is_disaster {
                self.fail();
            }
            if self.is_over() {
                return;
            }
            let next = self.next_event();
            // Work may be left because of budgets: then time need not move.
            if self.rng.below(4) != 0 || !self.is_busy() {
                self.now = self.now.max(next);
            }
            self.deliver();
            for side in 0..2 {
                let node = &mut self.nodes[side];
                if node
                    .requester
                    .next_deadline()
                    .is_some_and(|t| t <= self.now)
                {
                    node.requester.handle_timeout(self.now, &mut node.send);
                }
                node.responder.handle_timeout(self.now, &mut node.recv);
                // Marks may come at any time, and only cost time.
                if self.rng.below(64) == 0 {
                    node.requester.on_congestion();
                }
            }
        }
        panic!("too many steps");
    }

    /// Now and then a QP goes to the error state, and what failed stays there.
    fn fail(&mut self) {
        for side in 0..2 {
            let is_hit = self.report.failures == 0 && self.rng.below(300) == 0;
            let node = &mut self.nodes[side];
            if !is_hit && node.send.fatal == 0 && node.recv.fatal == 0 {
                continue;
            }
            self.report.failures += 1;
            node.requester.flush(&mut node.send);
            node.responder.abort(&mut node.recv);
            node.send.work.truncate(node.send.posted);
            node.to_post = 0;
        }
    }

    /// Now and then lets both sides finish what they have, and the network deliver it. Then so many
    /// packets pass without trouble that the sequence numbers come round, once or several times.
    fn pause(&mut self) {
        let posted: usize = self.nodes.iter().map(|n| n.send.posted).sum();
        self.is_pausing |= posted >= self.next_pause;
        if !self.is_pausing || !self.is_quiet() {
            return;
        }
        self.is_pausing = false;
        self.next_pause = posted + self.rng.range(5, 60) as usize;
        self.report.jumps += 1;
        let near = self.rng.below(200);
        let count = match self.rng.below(4) {
            // Numbers come again that were just used.
            0 => SPACE - near,
            // What was before them is after them.
            1 => HALF - 100 + near,
            2 => HALF + self.rng.below(HALF),
            _ => self.rng.below(3 * SPACE),
        };
        for side in 0..2 {
            let mut left = count;
            while left != 0 {
                let most = left.min(HALF);
                let part = self.rng.range(1, most);
                let step = self.rng.pick(&[most, part]);
                self.pass(side, step as u32);
                left -= step;
            }
        }
    }

    /// `count` packets of `side` pass.
    fn pass(&mut self, side: usize, count: u32) {
        let [a, b] = &mut self.nodes;
        let (from, to) = if side == 0 { (a, b) } else { (b, a) };
        let message = LocalMessage {
            slot: 0,
            wr: SendWr {
                op: SendOp::Write,
                srqn: Srqn::new(0x80_0000),
                ..SendWr::default()
            },
            psn: from.requester.sq_psn(),
            packets: count,
        };
        from.requester.skip(count);
        if self.scenario.is_local && self.rng.below(2) == 0 {
            let plan = to.responder.local_request(&message, self.now, &mut to.recv);
            if plan.is_ok() {
                to.responder
                    .local_finish(&message, LocalOutcome::Done, self.now, &mut to.recv)
                    .expect("refused at its end");
            }
        } else {
            to.responder.skip(count);
        }
    }

    fn is_busy(&self) -> bool {
        self.nodes.iter().any(|n| {
            n.send.posted < n.send.work.len() && n.requester.room() != 0
                || n.responder.has_response()
        })
    }

    fn is_over(&self) -> bool {
        self.is_quiet()
            && self
                .nodes
                .iter()
                .all(|n| n.send.posted == n.send.work.len())
    }

    fn is_quiet(&self) -> bool {
        self.network.is_empty()
            && self.nodes.iter().all(|n| {
                n.requester.outstanding() == 0
                    && !n.responder.has_response()
                    && n.recv.replies.is_empty()
            })
    }

    fn next_event(&self) -> u64 {
        let mut next = self.network.next_arrival().unwrap_or(u64::MAX);
        for n in &self.nodes {
            if let Some(t) = n.requester.next_deadline() {
                next = next.min(t);
            }
            if let Some(t) = n.responder.next_deadline() {
                next = next.min(t);
            }
            if n.to_post != 0 {
                next = next.min(n.next_post);
            }
        }
        if next == u64::MAX {
            self.now + 1
        } else {
            next
        }
    }

    /// The application on `side` posts receives, sometimes too late.
    fn post_receives(&mut self, side: usize) {
        let node = &mut self.nodes[side];
        if node.to_post == 0 || node.next_post > self.now {
            return;
        }
        let queues = node.recv.posted.len() as u64;
        if !self.scenario.is_slow_receiver {
            // Enough for all, at once, in every queue.
            for q in &mut node.recv.posted {
                q.extend((0..node.to_post).map(|i| i as u32));
            }
            node.to_post = 0;
            return;
        }
        // The queue that a message names must get one in the end: so post to
        // whichever is empty until all has come.
        let batch = self.rng.range(1, 6);
        for _ in 0..batch {
            let q = self.rng.below(queues) as usize;
            if node.recv.posted[q].len() < 4 {
                node.recv.posted[q].push_back(0);
            }
        }
        if node.recv.received.len() as u64 >= node.to_post {
            node.to_post = 0;
        }
        node.next_post = self.now + self.rng.below(400_000) + 1;
    }

    /// Lets `side` send for as long as a random budget lasts.
    fn pump(&mut self, side: usize) {
        let peer = 1 - side;
        let budget = self.rng.range(1, 40);
        if self.scenario.is_local && self.rng.below(2) == 0 {
            for _ in 0..budget {
                if !self.local_message(side) {
                    break;
                }
            }
        }
        for _ in 0..budget {
            let node = &mut self.nodes[side];
            let Some(t) = node.requester.poll_transmit(self.now, &mut node.send) else {
                break;
            };
            let mut bytes = t.header.as_slice().to_vec();
            if let Some(p) = t.payload {
                let work = &node.send.work[node.send.slots[p.slot as usize]];
                bytes.extend(work.payload(p.offset, p.len));
            }
            bytes.resize(bytes.len() + usize::from(t.pad), 0);
            self.network.send(self.now, peer, crc::seal(bytes));
            if self.rng.below(3) == 0 {
                node.requester.joins_train();
            }
            // Those that may follow in a train are polled at once now and then.
            if t.again || t.followers == 0 || self.rng.below(2) == 0 {
                continue;
            }
            let most = self.rng.range(1, u64::from(t.followers) + 1) as u32;
            node.requester.set_trains(self.rng.below(8) as u32 * 5);
            let polled = node.requester.poll_middles(most, self.now);
            let p = t.payload.expect("they have a payload");
            let work = &node.send.work[node.send.slots[p.slot as usize]];
            for (i, mut bytes) in (1..).zip(middles(&t.header, polled.count, polled.ack_req)) {
                bytes.extend(work.payload(p.offset + p.len * i, p.len));
                self.network.send(self.now, peer, crc::seal(bytes));
            }
        }
        for _ in 0..budget {
            let node = &mut self.nodes[side];
            let Some(r) = node.responder.poll_response(self.now) else {
                break;
            };
            let mut bytes = r.header.as_slice().to_vec();
            if let Some(p) = r.payload {
                bytes.extend(
                    node.recv
                        .fetch(p.rkey, p.va, p.len)
                        .expect("READ of nothing"),
                );
            }
            bytes.resize(bytes.len() + usize::from(r.pad), 0);
            self.network.send(self.now, peer, crc::seal(bytes));
            if r.again || r.followers == 0 || self.rng.below(2) == 0 {
                continue;
            }
            let most = self.rng.range(1, u64::from(r.followers) + 1) as u32;
            let count = node.responder.poll_middles(most);
            let p = r.payload.expect("they have a payload");
            for (i, mut bytes) in (1..).zip(middles(&r.header, count, false)) {
                let va = p.va + u64::from(p.len * i);
                bytes.extend(node.recv.fetch(p.rkey, va, p.len).expect("as above"));
                self.network.send(self.now, peer, crc::seal(bytes));
            }
        }
        self.flush_replies(side);
    }

    fn flush_replies(&mut self, side: usize) {
        for reply in std::mem::take(&mut self.nodes[side].recv.replies) {
            self.network.send(self.now, 1 - side, crc::seal(reply));
        }
    }

    /// A request arrives. One that is early is kept, if there is room: there may be none.
    fn request(&mut self, to: usize, bytes: Vec<u8>) {
        let room = self.rng.pick(&[0, 5, 1000, 1000]);
        let Node {
            responder,
            recv,
            kept,
            ..
        } = &mut self.nodes[to];
        let mut next = Some(bytes);
        while let Some(bytes) = next.take() {
            let packet = crc::open(&bytes).expect("it was whole");
            let psn = packet.bth.psn;
            if responder.take_request(&packet, self.now, recv) {
                let is_kept = responder.should_keep(psn) && kept.len() < room;
                responder.on_early(psn, is_kept, self.now, recv);
                if is_kept {
                    kept.insert(psn, bytes);
                }
            }
            next = responder
                .take_kept()
                .map(|psn| kept.remove(&psn).expect("it is kept"));
        }
        if !responder.has_kept() {
            kept.clear();
        }
    }

    /// Everything that arrives now, in runs.
    fn deliver(&mut self) {
        let mut touched = [false; 2];
        while let Some((to, bytes)) = self.network.arrive(self.now) {
            let Some(packet) = crc::open(&bytes) else {
                continue;
            };
            let node = &mut self.nodes[to];
            if packet.opcode.is_response() {
                node.requester
                    .handle_response(&packet, self.now, &mut node.send);
            } else {
                self.request(to, bytes);
                touched[to] = true;
            }
            if self.rng.below(8) == 0 {
                break;
            }
        }
        for (side, touched) in touched.into_iter().enumerate() {
            if touched {
                let node = &mut self.nodes[side];
                node.responder.end_of_run(&mut node.recv);
            }
            self.flush_replies(side);
        }
    }

    /// One message of `side` the same-host way; whether there was one.
    fn local_message(&mut self, side: usize) -> bool {
        let now = self.now;
        let [a, b] = &mut self.nodes;
        let (from, to) = if side == 0 { (a, b) } else { (b, a) };
        let Some(message) = from.requester.local_next(now, &mut from.send) else {
            return false;
        };
        self.report.local_messages += 1;
        let id = from.send.slots[message.slot as usize];
        let mut atomic = None;
        let plan = to.responder.local_request(&message, now, &mut to.recv);
        let result = plan.and_then(|plan| {
            let work = &from.send.work[id];
            let outcome = match plan {
                LocalPlan::Receive => {
                    let data = work.payload(0, work.wr.length);
                    to.recv.scatter(0, &data).map_err(|_| LocalOutcome::TooLong)
                }
                LocalPlan::Write(s) => {
                    let data = work.payload(0, s.len);
                    to.recv
                        .remote_write(s.srqn, s.rkey, s.va, &data)
                        .map_err(|_| LocalOutcome::RemoteFault)
                }
                LocalPlan::Read(s) => to
                    .recv
                    .fetch(s.rkey, s.va, s.len)
                    .map(|data| from.send.buffers[id] = data)
                    .map_err(|_| LocalOutcome::RemoteFault),
                LocalPlan::AtomicWrite(s) => {
                    let value = u64::from_ne_bytes(work.payload(0, 8).try_into().unwrap());
                    let op = responder::AtomicOp::Write { value };
                    to.recv
                        .atomic(s.srqn, s.rkey, s.va, op)
                        .map(|_| ())
                        .map_err(|_| LocalOutcome::RemoteFault)
                }
                LocalPlan::Atomic { original } => {
                    atomic = Some(original);
                    Ok(())
                }
                LocalPlan::Nothing => Ok(()),
            }
            .map_or_else(|e| e, |()| LocalOutcome::Done);
            to.responder
                .local_finish(&message, outcome, now, &mut to.recv)
        });
        let is_ok = result.is_ok();
        if let Err(e) = result {
            assert!(
                matches!(e, LocalError::Rnr { .. } | LocalError::Silent),
                "{e:?}"
            );
        }
        let result = result.map(|()| atomic.map_or(LocalOk::Done, LocalOk::Atomic));
        from.requester.local_done(result, now, &mut from.send);
        is_ok
    }
}
