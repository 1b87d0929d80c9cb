// SPDX-License-Identifier: GPL-2.0

//! The fuzz target. The input bytes steer a requester and a responder that face a hostile peer, a
//! hostile local user, a hostile clock, and an environment that refuses at random. In no case may
//! the state machines panic, run for ever, write outside the requested memory, or lose or repeat a
//! completion.

mod env;

use std::collections::HashSet;

use roce::key::Key;
use roce::mtu::Mtu;
use roce::number::{
    Qpn,
    Srqn, //
};
use roce::psn::Psn;
use roce::requester::{
    self,
    Drain,
    LocalError,
    LocalMessage,
    LocalOk,
    Requester,
    RequesterConfig,
    SendOp,
    SendWr,
    Wqe, //
};
use roce::responder::{
    self,
    Access,
    AccessKind,
    LocalOutcome,
    Resource,
    Responder,
    ResponderConfig, //
};
use roce::status::WcStatus;
use roce::wire::{
    split_icrc,
    NakCode,
    Packet, //
};

use self::env::{
    Env,
    Trace, //
};
use super::crc::{
    put_through,
    Crc, //
};

/// More packets without an answer than any window admits.
const MANY: usize = 1 << 13;

/// Takes decisions off the input; zeros when it has ended.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn is_over(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn u8(&mut self) -> u8 {
        let b = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        b
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    fn u32(&mut self) -> u32 {
        u32::from(self.u16()) << 16 | u32::from(self.u16())
    }

    /// Numbers of all sizes, the awkward ones more often.
    fn number(&mut self) -> u32 {
        match self.u8() % 8 {
            0 => 0,
            1 => u32::from(self.u8()),
            2 => u32::from(self.u16()),
            3 => 256u32.wrapping_mul(u32::from(self.u8() % 16)),
            4 => 0x8000_0000u32
                .wrapping_add(u32::from(self.u8()))
                .wrapping_sub(128),
            5 => u32::MAX,
            _ => self.u32(),
        }
    }
}

struct Target<'a> {
    requester: Requester<Vec<Wqe>>,
    responder: Responder<Vec<Resource>>,
    /// Requests that came early.
    kept: HashSet<Psn>,
    env: Env<'a>,
    now: u64,
    next_id: u64,
    open: Option<LocalMessage>,
    in_plan: Option<LocalMessage>,
    reset_receive: bool,
}

/// Feeds `bytes` to everything; panics when an invariant does not hold.
pub fn fuzz(bytes: &[u8]) -> u128 {
    // As raw as it comes.
    if let Some((covered, _)) = split_icrc(bytes) {
        let _ = Packet::parse(covered);
    }
    let _ = Packet::parse(bytes);
    put_through(bytes);
    let _ = roce::icrc::compute::<Crc>(
        bytes.get(..28).unwrap_or(bytes),
        bytes.get(28..).unwrap_or(&[]),
    );

    let (head, rest) = bytes.split_at(bytes.len().min(24));
    let mut input = Input { bytes: head, at: 0 };
    let depth = usize::from(input.u8() % 17);
    let resources = usize::from(input.u8() % 5);
    let mtu = Mtu::from_ib(1 + u32::from(input.u8()) % 5).unwrap();
    let kind = input.u8() % 3;
    // Shortly before the end of the sequence space, or of its first half.
    let near = u32::from(input.u8());
    let first_psn = Psn::new(match input.u8() % 4 {
        0 => near,
        1 => Psn::HALF.wrapping_sub(near),
        2 => 0u32.wrapping_sub(near),
        _ => near << 16,
    });
    let send_config = RequesterConfig {
        service: [
            requester::Service::Rc,
            requester::Service::Uc,
            requester::Service::XrcIni,
        ][usize::from(kind)],
        dest_qpn: Qpn::new(input.u32()),
        mtu,
        sq_psn: first_psn,
        pkey: 0xffff,
        timeout: input.u8(),
        retry_cnt: input.u8(),
        rnr_retry: input.u8(),
        max_rd_atomic: input.u8() % 80,
        max_window: u32::from(input.u16()),
    };
    let recv_config = ResponderConfig {
        service: [
            responder::Service::Rc,
            responder::Service::Uc,
            responder::Service::XrcTgt,
        ][usize::from(kind)],
        dest_qpn: Qpn::GSI,
        mtu,
        rq_psn: send_config.sq_psn,
        pkey: 0xffff,
        access: Access::ALL,
        min_rnr_timer: input.u8(),
        max_dest_rd_atomic: input.u8() % 6,
    };
    let mut target = Target {
        requester: Requester::new(vec![Wqe::default(); depth]),
        responder: Responder::new(vec![Resource::default(); resources]),
        kept: HashSet::new(),
        env: Env {
            refusals: if input.u8() & 1 == 0 { &[] } else { rest },
            next_refusal: 0,
            trace: Trace::default(),
            lengths: vec![0; depth],
            queue: Default::default(),
            send_fatal: 0,
            current: None,
            checked: Vec::new(),
            recv_fatal: 0,
            acks: Vec::new(),
            calls: 0,
        },
        now: 0,
        next_id: 0,
        open: None,
        in_plan: None,
        reset_receive: false,
    };
    target.requester.configure(&send_config);
    target.responder.configure(&recv_config);
    let mut input = Input { bytes: rest, at: 0 };
    while !input.is_over() {
        target.step(&mut input, &send_config, &recv_config);
    }
    target.finish();
    target.env.trace.0
}

impl Target<'_> {
    fn step(&mut self, input: &mut Input<'_>, sc: &RequesterConfig, rc: &ResponderConfig) {
        match input.u8() % 32 {
            0..=5 => self.push(input),
            6..=9 => match input.u8() {
                // Without answers a window must fill up at some time.
                255 if sc.service.is_reliable() => {
                    self.poll(MANY);
                    let more = self.requester.poll_transmit(self.now, &mut self.env);
                    assert!(more.is_none(), "sends for ever");
                }
                n => self.poll(usize::from(n)),
            },
            10..=15 => self.packet(input, true),
            16..=22 => self.packet(input, false),
            23 => {
                self.now = self
                    .now
                    .wrapping_add(u64::from(input.number()) << (input.u8() % 33));
                self.requester.handle_timeout(self.now, &mut self.env);
                self.responder.handle_timeout(self.now, &mut self.env);
            }
            24 => {
                let deadline = match input.u8() & 1 {
                    0 => self.requester.next_deadline(),
                    _ => self.responder.next_deadline(),
                };
                if let Some(t) = deadline {
                    self.now = self.now.max(t);
                }
                self.requester.handle_timeout(self.now, &mut self.env);
                self.responder.handle_timeout(self.now, &mut self.env);
            }
            25 => self.local(input),
            26 => {
                let slot = u32::from(input.u8());
                self.requester
                    .local_fault(slot, WcStatus::LocProtErr, &mut self.env);
            }
            27 => {
                self.requester.drain(match input.u8() & 1 {
                    0 => Drain::End,
                    _ => Drain::Begin,
                });
            }
            28 => self.drain_responses(input.u8()),
            29 => {
                self.responder.end_of_run(&mut self.env);
                if input.u8() & 1 != 0 {
                    self.requester.on_congestion();
                }
            }
            30 => match input.u8() % 12 {
                0 => self.requester.flush(&mut self.env),
                1 => self.requester.fail(WcStatus::GeneralErr, &mut self.env),
                2 => {
                    self.requester.reset();
                    self.env.queue.clear();
                    self.env.send_fatal = 0;
                    self.open = None;
                    self.requester.configure(sc);
                }
                3 => {
                    self.responder.reset();
                    self.env.current = None;
                    self.env.recv_fatal = 0;
                    self.responder.configure(rc);
                }
                4 => {
                    self.responder.abort(&mut self.env);
                    assert!(self.env.current.is_none());
                }
                5 => {
                    let (timer, reads) = (input.u8(), input.u8() % 6);
                    self.responder.update(Access::default(), timer, reads)
                }
                6 => self.responder.response_fault(&mut self.env),
                7 => self.requester.update(sc),
                // The sequence numbers go on, of both, or with a requester at work of one.
                _ => {
                    let count = (input.number() & Psn::MASK).min(Psn::HALF);
                    self.responder.skip(count);
                    self.requester.skip(count);
                }
            },
            _ => self.raw(input),
        }
        assert!(self.env.send_fatal <= 1 && self.env.recv_fatal <= 1);
        assert_eq!(self.requester.outstanding(), self.env.queue.len());
        assert_eq!(self.responder.has_receive(), self.env.current.is_some());
        self.drop_kept();
        self.env.checked.truncate(4096);
        for psn in self.env.acks.drain(..) {
            let behind = self.responder.rq_psn().since(psn);
            assert!(behind != 0 && behind <= Psn::HALF, "ACK of {psn:?}");
        }
    }

    fn push(&mut self, input: &mut Input<'_>) {
        use SendOp::*;
        let op = [
            Send,
            SendImm,
            SendInv,
            Write,
            WriteImm,
            Read,
            CmpSwap,
            FetchAdd,
            AtomicWrite,
            Flush,
            Local,
        ][usize::from(input.u8() % 11)];
        let flags = input.u8();
        let wr = SendWr {
            wr_id: self.next_id,
            op,
            signaled: flags & 1 != 0,
            solicited: flags & 2 != 0,
            fence: flags & 4 != 0,
            length: input.number(),
            remote_addr: u64::from(input.number()) << (flags >> 3),
            rkey: Key::new(u32::from(input.u8())),
            srqn: Srqn::new(input.number()),
            ..SendWr::default()
        };
        if let Ok(slot) = self.requester.push(wr) {
            self.next_id += 1;
            self.env.lengths[slot as usize] = wr.data_len();
            self.env.queue.push_back((slot, wr.wr_id));
        }
    }

    fn poll(&mut self, max: usize) {
        for _ in 0..max {
            let Some(t) = self.requester.poll_transmit(self.now, &mut self.env) else {
                return;
            };
            let mut bytes = t.header.as_slice().to_vec();
            if let Some(p) = t.payload {
                assert!(p.len != 0 && p.len <= 4096);
                let end = u64::from(p.offset) + u64::from(p.len);
                assert!(end <= u64::from(self.env.lengths[p.slot as usize]));
                bytes.resize(bytes.len() + p.len as usize, 0);
            }
            bytes.resize(bytes.len() + usize::from(t.pad), 0);
            let p = Packet::parse(&bytes).expect("malformed request");
            assert!(p.opcode.is_request());
            self.requester.set_trains(t.followers % 4 * 8);
            if t.followers % 5 == 2 || t.others % 2 == 1 {
                self.requester.joins_train();
            }
            if !t.again && t.followers % 3 == 1 {
                let middles = self.requester.poll_middles(t.followers, self.now);
                assert!(middles.count <= t.followers);
            }
        }
    }

    fn drain_responses(&mut self, max: u8) {
        for _ in 0..max {
            let Some(r) = self.responder.poll_response(self.now) else {
                return;
            };
            if let Some(s) = r.payload {
                assert!(
                    self.env
                        .is_checked(AccessKind::Read, s.rkey, s.va, u64::from(s.len)),
                    "READ of what was not checked"
                );
            }
            let mut bytes = r.header.as_slice().to_vec();
            let len = r.payload.map_or(0, |p| p.len) as usize + usize::from(r.pad);
            bytes.resize(bytes.len() + len, 0);
            let p = Packet::parse(&bytes).expect("malformed");
            assert!(p.opcode.is_response());
            self.env.note_ack(&p);
            if !r.again && r.followers % 3 == 1 {
                let count = self.responder.poll_middles(r.followers);
                assert!(count <= r.followers);
                self.responder.unpoll(count / 2);
            }
        }
    }

    /// A packet that is right in most respects.
    fn packet(&mut self, input: &mut Input<'_>, is_response: bool) {
        let opcode = input.u8();
        let flags = input.u8();
        let near = u32::from(flags >> 4);
        let base = if is_response {
            // Close to what is in flight.
            self.requester
                .sq_psn()
                .get()
                .wrapping_sub(u32::from(input.u8()))
        } else {
            self.responder.rq_psn().get()
        };
        let psn = if flags & 8 != 0 {
            input.u32()
        } else {
            base.wrapping_add(near)
                .wrapping_sub(if flags & 1 != 0 { 8 } else { near })
        };
        let opcode = if flags & 2 != 0 {
            opcode
        } else {
            // Of the right kind of service.
            let class = [0x00, 0x20, 0xa0][usize::from(opcode >> 6) % 3];
            let op = if is_response {
                0x0d + opcode % 6
            } else {
                opcode & 0x1f
            };
            class | op
        };
        let mut raw = super::build::Raw::new(0, psn);
        if roce::opcode::Opcode::from_byte(opcode).is_none() {
            return;
        }
        raw.opcode = opcode;
        raw.ack_req = flags & 4 != 0;
        raw.srqn = u32::from(input.u8());
        raw.va = u64::from(input.number()) & if flags & 1 != 0 { !0 } else { !7 };
        raw.rkey = u32::from(input.u8() % 4);
        raw.len = input.number();
        raw.syndrome = input.u8();
        let len = match input.u8() {
            n @ 0..=63 => usize::from(n),
            n => 256 << (n % 5),
        };
        raw.payload = vec![0; len];
        let bytes = raw.bytes();
        let p = Packet::parse(&bytes).expect("built wrong");
        self.deliver(&p);
    }

    /// Bytes as they come.
    fn raw(&mut self, input: &mut Input<'_>) {
        let len = usize::from(input.u8());
        let bytes: Vec<u8> = (0..len).map(|_| input.u8()).collect();
        if let Ok(p) = Packet::parse(&bytes) {
            self.env.trace.note(50);
            self.deliver(&p);
        }
    }

    fn deliver(&mut self, p: &Packet<'_>) {
        // As if it were two of a train.
        let both = self.requester.handle_middles(p, 2, self.now, &mut self.env)
            || self.responder.take_middles(p, 2, &mut self.env);
        if both {
            self.env.trace.note(52);
            return;
        }
        // Both, as a confused demultiplexer would.
        self.requester.handle_response(p, self.now, &mut self.env);
        let psn = p.bth.psn;
        if self.responder.take_request(p, self.now, &mut self.env) {
            // There is not always room. What is kept has only its number.
            let is_kept = self.responder.should_keep(psn) && self.now & 7 != 0;
            self.responder
                .on_early(psn, is_kept, self.now, &mut self.env);
            if is_kept {
                assert!(self.kept.insert(psn), "{psn:?} is kept twice");
            }
        }
        while let Some(psn) = self.responder.take_kept() {
            assert!(self.kept.remove(&psn), "{psn:?} is not kept");
        }
    }

    /// What the responder has forgotten, or left behind.
    fn drop_kept(&mut self) {
        let next = self.responder.rq_psn();
        self.kept
            .retain(|psn| psn.since(next) < roce::responder::KEPT);
        if !self.responder.has_kept() {
            self.kept.clear();
        }
    }

    fn local(&mut self, input: &mut Input<'_>) {
        let what = input.u8();
        if let Some(m) = self.in_plan.take() {
            let outcome = [
                LocalOutcome::Done,
                LocalOutcome::TooLong,
                LocalOutcome::ReceiveFault,
                LocalOutcome::RemoteFault,
                LocalOutcome::Abandoned,
            ][usize::from(what % 5)];
            let result = self
                .responder
                .local_finish(&m, outcome, self.now, &mut self.env);
            if self.open.take().is_some() {
                self.requester
                    .local_done(result.map(|()| LocalOk::Done), self.now, &mut self.env);
            }
            return;
        }
        if let Some(m) = self.open.take() {
            match what % 8 {
                0 => self.requester.local_done(
                    Err(LocalError::Rnr { timer_ns: 10 }),
                    self.now,
                    &mut self.env,
                ),
                1 => self.requester.local_done(
                    Err(LocalError::Nak(NakCode::RemoteAccess)),
                    self.now,
                    &mut self.env,
                ),
                2 => self
                    .requester
                    .local_done(Err(LocalError::Silent), self.now, &mut self.env),
                _ => match self.responder.local_request(&m, self.now, &mut self.env) {
                    Ok(_) => {
                        self.env.trace.note(51);
                        self.open = Some(m);
                        self.in_plan = Some(m);
                    }
                    Err(e) => self.requester.local_done(Err(e), self.now, &mut self.env),
                },
            }
            return;
        }
        self.open = self.requester.local_next(self.now, &mut self.env);
    }

    /// Everything must come to rest.
    fn finish(&mut self) {
        self.requester.flush(&mut self.env);
        assert_eq!(self.requester.outstanding(), 0);
        assert!(self.env.queue.is_empty());
        assert_eq!(self.requester.next_deadline(), None);
        self.poll(1);
        self.responder.abort(&mut self.env);
        assert!(self.env.current.is_none());
        assert!(self.responder.poll_response(self.now).is_none());
    }
}
