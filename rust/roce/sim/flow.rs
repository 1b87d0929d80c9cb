// SPDX-License-Identifier: GPL-2.0

//! What flows over a wire: a connection that always has messages to send, or a reference that
//! stands for TCP.

use std::collections::{
    BTreeMap,
    BTreeSet,
    HashMap, //
};

use roce::key::Key;
use roce::mtu::Mtu;
use roce::number::{
    Qpn,
    Srqn, //
};
use roce::opcode::Family;
use roce::psn::Psn;
use roce::requester::{
    Requester,
    RequesterConfig,
    RequesterEnv,
    SendCompletion,
    SendOp,
    SendWr,
    Transmit,
    Wqe, //
};
use roce::responder::{
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
    Packet,
    TrainHeader, //
};

use super::build::middles;

/// Headers, payload (whose content does not matter) and pad bytes.
pub fn packet(header: &[u8], payload: u32, pad: u8) -> Vec<u8> {
    let mut bytes = header.to_vec();
    bytes.resize(bytes.len() + payload as usize + usize::from(pad), 0);
    bytes
}

/// What is sent, and how.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub op: SendOp,
    /// Of every other message.
    pub other: SendOp,
    /// Bytes of a message.
    pub length: u32,
    /// Messages under way at a time.
    pub depth: usize,
    /// Messages in all.
    pub count: usize,
    /// So many of them are posted for each one that tells its completion, the last; 0: none does.
    pub group: usize,
    /// QP attributes.
    pub timeout: u8,
    pub retry_cnt: u8,
    /// Bytes; as the device of the module sets it.
    pub max_window: u32,
    /// The peer keeps so many requests that come early; 0: it is one that goes back.
    pub kept: usize,
    /// Packets of a train at most; 0: there are none.
    pub train: u32,
    /// Trains are cut in front of the wire.
    pub cut: bool,
}

impl Load {
    /// 64 KiB, 64 of them at a time, with a window of 384 packets of 4096 bytes.
    pub const fn bulk(op: SendOp, count: usize) -> Self {
        Self {
            op,
            other: op,
            length: 65536,
            depth: 64,
            count,
            group: 1,
            timeout: 14,
            retry_cnt: 7,
            max_window: 384 * 4096,
            kept: 1024,
            train: 0,
            cut: false,
        }
    }

    /// The same in trains as the device has them, which are shorter than a message.
    pub const fn in_trains(op: SendOp, count: usize) -> Self {
        Self {
            train: 15,
            ..Self::bulk(op, count)
        }
    }
}

/// The sending end's buffers and completions.
#[derive(Default)]
pub struct SendEnd {
    /// When each message ended.
    pub ends: Vec<u64>,
    pub now: u64,
    pub failed: Option<WcStatus>,
}

impl RequesterEnv for SendEnd {
    fn scatter(&mut self, _slot: u32, _offset: u32, _data: &[u8]) -> Result<(), Fault> {
        Ok(())
    }

    fn complete(&mut self, completion: &SendCompletion) {
        match completion.status {
            WcStatus::Success => self.ends.push(self.now),
            status => {
                self.failed.get_or_insert(status);
            }
        }
    }

    fn local(&mut self, _slot: u32) -> Result<(), WcStatus> {
        Ok(())
    }

    fn fatal(&mut self) {}

    fn sq_drained(&mut self) {}
}

/// The receiving end: memory and receives without end.
#[derive(Default)]
pub struct RecvEnd {
    pub replies: Vec<Vec<u8>>,
    /// Bytes that arrived, each counted once.
    pub bytes: u64,
}

impl ResponderEnv for RecvEnd {
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

    fn complete_receive(&mut self, _c: &RecvCompletion) -> Result<(), CompletionLost> {
        Ok(())
    }

    fn check_remote(&mut self, _a: &RemoteAccess) -> Result<(), Fault> {
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

    fn atomic(&mut self, _: Option<Srqn>, _: Key, _: u64, _: AtomicOp) -> Result<u64, Fault> {
        Ok(0)
    }

    fn flush(&mut self, _srqn: Option<Srqn>, _flush: &Flush) -> Result<(), Fault> {
        Ok(())
    }

    fn invalidate(&mut self, _rkey: Key) -> Result<(), Fault> {
        Ok(())
    }

    fn reply(&mut self, header: &HeaderBuf) {
        self.replies.push(header.as_slice().to_vec());
    }

    fn event(&mut self, _event: QpEvent) {}

    fn fatal(&mut self) {}
}

/// A connection: the requester at end 0, the responder at end 1.
pub struct Connection {
    pub load: Load,
    pub requester: Requester<Vec<Wqe>>,
    pub responder: Responder<Vec<Resource>>,
    pub send: SendEnd,
    pub recv: RecvEnd,
    /// Requests that came early.
    kept: HashMap<Psn, Vec<u8>>,
    /// READs and atomics that were sent again.
    pub repeated: u64,
    posted: usize,
    /// What was polled, and is in another train than what was polled before.
    polled: Option<Transmit>,
}

/// READs that may be outstanding: as many as the device admits.
const READS: u8 = 64;

impl Connection {
    pub fn new(load: Load, first_psn: u32) -> Self {
        let mut requester = Requester::new(vec![Wqe::default(); load.depth]);
        requester.configure(&RequesterConfig {
            dest_qpn: Qpn::new(1),
            mtu: Mtu::M4096,
            sq_psn: Psn::new(first_psn),
            pkey: 0xffff,
            timeout: load.timeout,
            retry_cnt: load.retry_cnt,
            rnr_retry: 7,
            max_rd_atomic: READS,
            max_window: load.max_window,
            ..RequesterConfig::default()
        });
        requester.set_trains(load.train);
        let mut responder = Responder::new(vec![Resource::default(); READS.into()]);
        responder.configure(&ResponderConfig {
            dest_qpn: Qpn::new(1),
            mtu: Mtu::M4096,
            rq_psn: Psn::new(first_psn),
            pkey: 0xffff,
            access: Access::ALL,
            max_dest_rd_atomic: READS,
            ..ResponderConfig::default()
        });
        Self {
            load,
            requester,
            responder,
            send: SendEnd::default(),
            recv: RecvEnd::default(),
            kept: HashMap::new(),
            repeated: 0,
            posted: 0,
            polled: None,
        }
    }

    /// Posts as much as there is room for.
    pub fn post(&mut self) {
        while self.posted < self.load.count && self.requester.room() != 0 {
            let op = match self.posted % 2 {
                0 => self.load.op,
                _ => self.load.other,
            };
            let length = match op {
                SendOp::CmpSwap | SendOp::FetchAdd | SendOp::AtomicWrite => 8,
                _ => self.load.length,
            };
            let wr = SendWr {
                op,
                length,
                rkey: Key::new(1),
                signaled: self.load.group != 0 && (self.posted + 1) % self.load.group == 0,
                ..SendWr::default()
            };
            self.requester.push(wr).expect("there is room");
            self.posted += 1;
        }
    }

    /// A request arrives, or a train of them.
    pub fn request(&mut self, packets: Vec<Vec<u8>>, now: u64) {
        for bytes in packets {
            self.request_packet(bytes, now);
        }
        if !self.responder.has_kept() {
            self.kept.clear();
        }
        self.responder.end_of_run(&mut self.recv);
    }

    fn request_packet(&mut self, bytes: Vec<u8>, now: u64) {
        let mut next = Some(bytes);
        while let Some(bytes) = next.take() {
            let packet = Packet::parse(&bytes).expect("not damaged");
            let psn = packet.bth.psn;
            if self.responder.take_request(&packet, now, &mut self.recv) {
                let is_kept = self.responder.should_keep(psn) && self.kept.len() < self.load.kept;
                self.responder.on_early(psn, is_kept, now, &mut self.recv);
                if is_kept {
                    self.kept.insert(psn, bytes);
                }
            }
            next = self
                .responder
                .take_kept()
                .map(|psn| self.kept.remove(&psn).expect("it is kept"));
        }
    }

    /// The packets of the next train of requests, or the next one, if one is to be sent now.
    pub fn next_requests(&mut self, now: u64) -> Option<Vec<Vec<u8>>> {
        let mut train = Vec::new();
        let mut header: Option<TrainHeader> = None;
        loop {
            let waits = self.polled.take();
            let is_new = waits.is_none();
            let t = waits.or_else(|| self.requester.poll_transmit(now, &mut self.send));
            let Some(t) = t else {
                break;
            };
            if let Some(header) = &mut header {
                if t.again || !header.push(&t.header) {
                    self.polled = Some(t);
                    break;
                }
                self.requester.joins_train();
            } else if !t.again && t.followers + t.others != 0 {
                header = TrainHeader::begin(&t.header);
            }
            let payload = t.payload.map_or(0, |p| p.len);
            let first = packet(t.header.as_slice(), payload, t.pad);
            let family = Packet::parse(&first).expect("well formed").opcode.family();
            let is_data = matches!(family, Family::Send | Family::Write);
            self.repeated += u64::from(t.again && !is_data);
            train.push(first);
            let room = self.load.train.saturating_sub(train.len() as u32);
            let most = t.followers.min(room);
            if most != 0 && is_new {
                let polled = self.requester.poll_middles(most, now);
                let headers = middles(&t.header, polled.count, polled.ack_req);
                train.extend(headers.iter().map(|header| packet(header, payload, 0)));
                if let Some(header) = &mut header {
                    header.extend(polled.count, polled.ack_req);
                }
            }
            if train.len() as u32 >= self.load.train || header.is_none_or(|h| !h.is_open()) {
                break;
            }
        }
        (!train.is_empty()).then_some(train)
    }

    /// The packets of the next train of responses, or the next one; empty if there is none.
    pub fn next_responses(&mut self, now: u64) -> Vec<Vec<u8>> {
        let mut train = Vec::new();
        let mut most = 1;
        while train.len() < most {
            let Some(r) = self.responder.poll_response(now) else {
                break;
            };
            if train.is_empty() && !r.again {
                let behind = r.followers + r.others;
                most += behind.min(self.load.train.saturating_sub(1)) as usize;
            }
            let payload = r.payload.map_or(0, |p| p.len);
            train.push(packet(r.header.as_slice(), payload, r.pad));
        }
        train
    }

    pub fn is_done(&self) -> bool {
        self.send.failed.is_some() || self.send.ends.len() >= self.load.count
    }
}

/// A flow that stands for TCP with SACK: each packet is acknowledged by itself and sent again by
/// itself, when a packet was acknowledged that was sent some quarters of a round trip later (RACK,
/// RFC 8985: first one, and one more whenever that was too early), or nothing was for two round
/// trips (its tail loss probe). The window is that of Reno (RFC 5681), with the factor and the
/// growth of CUBIC where it is friendly to Reno (RFC 9438, 4.3). What was sent again too early does
/// not shrink it (RFC 4015).
pub struct Reference {
    /// Packets still to deliver, and delivered so far.
    pub left: u64,
    pub delivered: u64,
    /// When the last was delivered.
    pub end: u64,
    window: f64,
    threshold: f64,
    /// When each packet was sent.
    flight: BTreeMap<u64, u64>,
    /// Packets that were taken for lost.
    lost: BTreeSet<u64>,
    /// Quarters of a round trip after which they are.
    quarters: u64,
    /// The window before the last loss.
    undo: f64,
    next: u64,
    /// Losses of packets before this one are the same loss.
    recover: u64,
    srtt: u64,
    last_heard: u64,
    pub retransmitted: u64,
}

/// Payload of its packets, bytes.
pub const SEGMENT: u64 = 4096;

/// CUBIC's factor, and the growth that goes with it.
const BETA: f64 = 0.7;
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

impl Reference {
    pub fn new(packets: u64) -> Self {
        Self {
            left: packets,
            delivered: 0,
            end: 0,
            window: 10.0,
            threshold: f64::MAX,
            flight: BTreeMap::new(),
            lost: BTreeSet::new(),
            quarters: 1,
            undo: 0.0,
            next: 0,
            recover: 0,
            srtt: 0,
            last_heard: 0,
            retransmitted: 0,
        }
    }

    /// The next packet, if the window has room for one.
    pub fn poll(&mut self, now: u64) -> Option<u64> {
        if self.left == 0 || self.flight.len() as f64 >= self.window.max(2.0) {
            return None;
        }
        if self.flight.is_empty() {
            self.last_heard = now;
        }
        self.left -= 1;
        let id = self.next;
        self.next += 1;
        self.flight.insert(id, now);
        Some(id)
    }

    fn on_lost(&mut self, ids: &[u64]) {
        for id in ids {
            self.flight.remove(id);
            self.lost.insert(*id);
            self.left += 1;
            self.retransmitted += 1;
            if *id >= self.recover {
                self.undo = self.window;
                self.recover = self.next;
                self.threshold = (self.window * BETA).max(2.0);
                self.window = self.threshold;
            }
        }
    }

    /// `id` was acknowledged.
    pub fn acked(&mut self, id: u64, now: u64) {
        self.last_heard = now;
        if self.lost.remove(&id) {
            self.quarters = (self.quarters + 1).min(4);
            self.window = self.window.max(self.undo);
        }
        let Some(sent) = self.flight.remove(&id) else {
            return;
        };
        self.delivered += 1;
        self.end = now;
        let rtt = now - sent;
        self.srtt = match self.srtt {
            0 => rtt,
            srtt => srtt - srtt / 8 + rtt / 8,
        };
        if self.window < self.threshold {
            self.window += 1.0;
        } else {
            self.window += ALPHA / self.window;
        }
        let edge = sent.saturating_sub(self.srtt * self.quarters / 4);
        let lost: Vec<u64> = self
            .flight
            .range(..id)
            .filter(|(_, at)| **at < edge)
            .map(|(id, _)| *id)
            .collect();
        self.on_lost(&lost);
    }

    pub fn deadline(&self) -> Option<u64> {
        let wait = match self.srtt {
            0 => 1_000_000_000,
            srtt => 2 * srtt + 2_000_000,
        };
        (!self.flight.is_empty()).then(|| self.last_heard + wait)
    }

    /// The deadline has come: the newest packet is sent again, to learn of the others.
    pub fn on_deadline(&mut self, now: u64) {
        self.last_heard = now;
        if let Some((&id, _)) = self.flight.iter().next_back() {
            self.on_lost(&[id]);
        }
    }

    pub fn is_done(&self) -> bool {
        self.left == 0 && self.flight.is_empty()
    }
}
