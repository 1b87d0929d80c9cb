// SPDX-License-Identifier: GPL-2.0

//! The state machines with concrete storage and an environment that is opaque to the compiler.
//! `check-no-panic` compiles this file and examines the result. Each function represents one entry
//! point of the crate.

#![no_std]

use roce::congestion::{
    Brake,
    Notifier, //
};
use roce::icrc::{
    self,
    Crc32, //
};
use roce::key::Key;
use roce::number::Srqn;
use roce::requester::{
    Drain,
    LocalError,
    LocalMessage,
    LocalOk,
    Middles,
    QueueFull,
    Requester,
    RequesterConfig,
    RequesterEnv,
    SendCompletion,
    SendWr,
    Transmit,
    Wqe, //
};
use roce::responder::{
    AtomicOp,
    CompletionLost,
    Flush,
    LocalOutcome,
    LocalPlan,
    QpEvent,
    ReceiveError,
    RecvCompletion,
    RemoteAccess,
    Resource,
    Responder,
    ResponderConfig,
    ResponderEnv,
    Response,
    ScatterError, //
};
use roce::status::{
    Fault,
    WcStatus, //
};
use roce::ticks::{
    Look,
    Ticks, //
};
use roce::tm::{
    AddError,
    Entry,
    HashKey,
    Matcher,
    Message,
    Rvh,
    Tmh,
    WrongCount, //
};
use roce::ud::{
    Datagram,
    UdError,
    UdMessage, //
};
use roce::wire::{
    Checked,
    Cnp,
    Content,
    HeaderBuf,
    Packet,
    ParseError,
    Refused,
    TrainHeader, //
};

type Sender = Requester<&'static mut [Wqe]>;
type Tags = Matcher<&'static mut [Entry], &'static mut [u32]>;
type Receiver = Responder<&'static mut [Resource]>;

pub struct Opaque {
    pub scatter: fn(u32, u32, &[u8]) -> Result<(), Fault>,
    pub complete: fn(&SendCompletion),
    pub local: fn(u32) -> Result<(), WcStatus>,
    pub notify: fn(),
    pub take: fn(Option<Srqn>) -> Result<(), ReceiveError>,
    pub can_complete: fn() -> bool,
    pub check_xrc: fn(Srqn) -> Result<(), ReceiveError>,
    pub place: fn(u32, &[u8]) -> Result<(), ScatterError>,
    pub received: fn(&RecvCompletion) -> Result<(), CompletionLost>,
    pub check: fn(&RemoteAccess) -> Result<(), Fault>,
    pub write: fn(Option<Srqn>, Key, u64, &[u8]) -> Result<(), Fault>,
    pub atomic: fn(Option<Srqn>, Key, u64, AtomicOp) -> Result<u64, Fault>,
    pub flush: fn(Option<Srqn>, &Flush) -> Result<(), Fault>,
    pub invalidate: fn(Key) -> Result<(), Fault>,
    pub reply: fn(&HeaderBuf),
    pub event: fn(QpEvent),
    pub crc: fn(u32, &[u8]) -> u32,
}

impl RequesterEnv for Opaque {
    fn scatter(&mut self, slot: u32, offset: u32, data: &[u8]) -> Result<(), Fault> {
        (self.scatter)(slot, offset, data)
    }
    fn complete(&mut self, completion: &SendCompletion) {
        (self.complete)(completion)
    }
    fn local(&mut self, slot: u32) -> Result<(), WcStatus> {
        (self.local)(slot)
    }
    fn fatal(&mut self) {
        (self.notify)()
    }
    fn sq_drained(&mut self) {
        (self.notify)()
    }
}

impl ResponderEnv for Opaque {
    fn take_receive(&mut self, srqn: Option<Srqn>) -> Result<(), ReceiveError> {
        (self.take)(srqn)
    }
    fn can_complete(&mut self) -> bool {
        (self.can_complete)()
    }
    fn check_xrc(&mut self, srqn: Srqn) -> Result<(), ReceiveError> {
        (self.check_xrc)(srqn)
    }
    fn scatter(&mut self, offset: u32, data: &[u8]) -> Result<(), ScatterError> {
        (self.place)(offset, data)
    }
    fn complete_receive(&mut self, completion: &RecvCompletion) -> Result<(), CompletionLost> {
        (self.received)(completion)
    }
    fn check_remote(&mut self, access: &RemoteAccess) -> Result<(), Fault> {
        (self.check)(access)
    }
    fn remote_write(
        &mut self,
        srqn: Option<Srqn>,
        rkey: Key,
        va: u64,
        data: &[u8],
    ) -> Result<(), Fault> {
        (self.write)(srqn, rkey, va, data)
    }
    fn atomic(
        &mut self,
        srqn: Option<Srqn>,
        rkey: Key,
        va: u64,
        op: AtomicOp,
    ) -> Result<u64, Fault> {
        (self.atomic)(srqn, rkey, va, op)
    }
    fn flush(&mut self, srqn: Option<Srqn>, flush: &Flush) -> Result<(), Fault> {
        (self.flush)(srqn, flush)
    }
    fn invalidate(&mut self, rkey: Key) -> Result<(), Fault> {
        (self.invalidate)(rkey)
    }
    fn reply(&mut self, header: &HeaderBuf) {
        (self.reply)(header)
    }
    fn event(&mut self, event: QpEvent) {
        (self.event)(event)
    }
    fn fatal(&mut self) {
        (self.notify)()
    }
}

#[inline(never)]
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    Packet::parse(bytes)
}

pub struct Zero;

impl Crc32 for Zero {
    fn update(crc: u32, data: &[u8]) -> u32 {
        core::hint::black_box(crc ^ data.len() as u32)
    }
}

#[inline(never)]
pub fn icrc_of(headers: &[u8], covered: &[u8]) -> Option<u32> {
    icrc::compute::<Zero>(headers, covered)
}

#[inline(never)]
pub fn check(headers: &[u8], payload: &[u8]) -> Result<Checked, Refused> {
    Checked::check::<Zero>(headers, payload, 0xffff)
}

#[inline(never)]
pub fn check_unmoved(payload: &[u8]) -> Result<Checked, Refused> {
    Checked::check_unmoved(payload, 0xffff)
}

#[inline(never)]
pub fn content<'a>(checked: &Checked, payload: &'a [u8]) -> Content<'a> {
    checked.content(payload)
}

#[inline(never)]
pub fn datagram(d: &Datagram) -> (HeaderBuf, u8) {
    d.headers()
}

#[inline(never)]
pub fn datagram_check<'a>(p: &Packet<'a>, qkey: u32, pkey: u16) -> Result<UdMessage<'a>, UdError> {
    roce::ud::receive(p, qkey, pkey)
}

#[inline(never)]
pub fn send_new(queue: &'static mut [Wqe]) -> Sender {
    Requester::new(queue)
}

#[inline(never)]
pub fn send_grow(
    r: &mut Sender,
    queue: &'static mut [Wqe],
) -> Result<&'static mut [Wqe], &'static mut [Wqe]> {
    r.grow(queue)
}

#[inline(never)]
pub fn send_setup(r: &mut Sender, c: &RequesterConfig) {
    r.reset();
    r.configure(c);
    r.update(c);
}

#[inline(never)]
pub fn send_push(r: &mut Sender, wr: &SendWr) -> Result<u32, QueueFull> {
    r.push(*wr)
}

#[inline(never)]
pub fn send_poll(r: &mut Sender, now: u64, env: &mut Opaque) -> Option<Transmit> {
    r.poll_transmit(now, env)
}

#[inline(never)]
pub fn send_middles(r: &mut Sender, most: u32, now: u64) -> Middles {
    r.poll_middles(most, now)
}

#[inline(never)]
pub fn send_answers(r: &mut Sender, p: &Packet<'_>, n: u32, now: u64, env: &mut Opaque) -> bool {
    r.handle_middles(p, n, now, env)
}

#[inline(never)]
pub fn send_response(r: &mut Sender, p: &Packet<'_>, now: u64, env: &mut Opaque) {
    r.handle_response(p, now, env)
}

#[inline(never)]
pub fn send_timeout(r: &mut Sender, now: u64, env: &mut Opaque) -> Option<u64> {
    r.handle_timeout(now, env);
    r.next_deadline()
}

#[inline(never)]
pub fn send_congestion(r: &mut Sender) {
    r.on_congestion()
}

#[inline(never)]
pub fn congestion(n: &mut Notifier, b: &mut Brake, now: u64) -> (bool, Option<u64>) {
    b.on_notified();
    b.on_burst(now);
    (n.on_congestion(now), b.wait(now))
}

#[inline(never)]
pub fn cnp(cnp: &Cnp) -> HeaderBuf {
    cnp.emit()
}

#[inline(never)]
pub fn send_fault(r: &mut Sender, slot: u32, status: WcStatus, env: &mut Opaque) {
    r.local_fault(slot, status, env)
}

#[inline(never)]
pub fn send_fail(r: &mut Sender, status: WcStatus, env: &mut Opaque) {
    r.fail(status, env)
}

#[inline(never)]
pub fn send_flush(r: &mut Sender, env: &mut Opaque) {
    r.flush(env)
}

#[inline(never)]
pub fn send_resume(r: &mut Sender, env: &mut Opaque) {
    r.resume(env)
}

#[inline(never)]
pub fn send_local(r: &mut Sender, now: u64, env: &mut Opaque) -> Option<LocalMessage> {
    r.local_next(now, env)
}

#[inline(never)]
pub fn send_local_done(
    r: &mut Sender,
    result: Result<LocalOk, LocalError>,
    now: u64,
    env: &mut Opaque,
) {
    r.local_done(result, now, env)
}

#[inline(never)]
pub fn send_state(r: &mut Sender, drain: Drain) -> (usize, bool) {
    r.drain(drain);
    (r.room(), r.has_unsent())
}

#[inline(never)]
pub fn recv_new(resources: &'static mut [Resource]) -> Receiver {
    Responder::new(resources)
}

#[inline(never)]
pub fn recv_grow(r: &mut Receiver, resources: &'static mut [Resource]) -> &'static mut [Resource] {
    r.grow(resources)
}

#[inline(never)]
pub fn recv_setup(r: &mut Receiver, c: &ResponderConfig) -> bool {
    r.configure(c);
    r.update(c.access, c.min_rnr_timer, c.max_dest_rd_atomic);
    r.is_idle()
}

#[inline(never)]
pub fn recv_request(r: &mut Receiver, p: &Packet<'_>, now: u64, env: &mut Opaque) {
    r.handle_request(p, now, env)
}

#[inline(never)]
pub fn recv_early(r: &mut Receiver, p: &Packet<'_>, now: u64, env: &mut Opaque) -> Option<u64> {
    let psn = p.bth.psn;
    if r.take_request(p, now, env) {
        let kept = r.should_keep(psn);
        r.on_early(psn, kept, now, env);
    }
    while r.is_next_kept() && r.has_kept() && r.take_kept().is_some() {}
    r.handle_timeout(now, env);
    r.next_deadline()
}

#[inline(never)]
pub fn recv_poll(r: &mut Receiver, now: u64) -> Option<Response> {
    r.poll_response(now)
}

#[inline(never)]
pub fn recv_middles(r: &mut Receiver, p: &Packet<'_>, n: u32, env: &mut Opaque) -> bool {
    r.take_middles(p, n, env)
}

#[inline(never)]
pub fn send_joins(r: &mut Sender) {
    r.joins_train();
}

#[inline(never)]
pub fn recv_several(r: &mut Receiver, most: u32, unsent: u32) -> u32 {
    let count = r.poll_middles(most);
    r.unpoll(unsent);
    count
}

#[inline(never)]
pub fn train(first: &HeaderBuf, next: &HeaderBuf, count: u32, ack_req: bool) -> Option<usize> {
    let mut train = TrainHeader::begin(first)?;
    train.extend(count, ack_req);
    let fits = train.is_open() && train.is_end(next) && train.push(next);
    fits.then_some(train.of_first().len())
}

#[inline(never)]
pub fn train_packet<'a>(
    header: &'a [u8],
    at: (u32, u32),
    payload: &'a [u8],
) -> Option<Content<'a>> {
    let checked = Checked::check_train(header, 0xffff).ok()?;
    let bytes = checked.train_bytes(header, at.1 as usize, payload.len(), payload.len());
    let middles = checked.train_middles(header, at.0, at.1);
    (bytes != 0 && middles != 0).then(|| checked.train_content(header, at, at.1, payload))
}

#[inline(never)]
pub fn recv_fault(r: &mut Receiver, env: &mut Opaque) {
    r.response_fault(env)
}

#[inline(never)]
pub fn recv_end(r: &mut Receiver, env: &mut Opaque) {
    r.end_of_run(env)
}

#[inline(never)]
pub fn recv_abort(r: &mut Receiver, env: &mut Opaque) {
    r.abort(env)
}

#[inline(never)]
pub fn recv_local(
    r: &mut Receiver,
    m: &LocalMessage,
    now: u64,
    env: &mut Opaque,
) -> Result<LocalPlan, LocalError> {
    r.local_request(m, now, env)
}

#[inline(never)]
pub fn recv_local_finish(
    r: &mut Receiver,
    m: &LocalMessage,
    outcome: LocalOutcome,
    now: u64,
    env: &mut Opaque,
) -> Result<(), LocalError> {
    r.local_finish(m, outcome, now, env)
}

#[inline(never)]
pub fn tm_new(entries: &'static mut [Entry], buckets: &'static mut [u32], key: HashKey) -> Tags {
    Matcher::new(entries, buckets, key)
}

#[inline(never)]
pub fn tm_add(m: &mut Tags, handle: u32, tag: u64, mask: u64) -> Result<(), AddError> {
    m.add(handle, tag, mask)
}

#[inline(never)]
pub fn tm_delete(m: &mut Tags, handle: u32) -> Option<u32> {
    m.delete(handle)
}

#[inline(never)]
pub fn tm_sync(m: &mut Tags, count: u32) -> Result<(), WrongCount> {
    m.uncount_unexpected();
    m.sync(count)
}

#[inline(never)]
pub fn tm_match(m: &mut Tags, head: &[u8]) -> (Message, Option<u32>, bool) {
    let message = Message::parse(head);
    let taken = match message {
        Message::Eager(tmh) | Message::Rendezvous(tmh, _) => {
            m.find(tmh.tag).and_then(|index| m.take(index))
        }
        Message::Raw => None,
    };
    if taken.is_none() {
        m.count_unexpected();
    }
    (message, taken, m.is_in_step() || m.has_waiting())
}

#[inline(never)]
pub fn ask_limit(word: u64, now: u64) -> Option<u64> {
    roce::ask_limit::one_more(word, now)
}

#[inline(never)]
pub fn look(ticks: &mut Ticks, now: u32, producer: u32, eight: u32, slowness: u32) -> Look {
    ticks.look(now, producer, eight, slowness)
}

#[inline(never)]
pub fn tm_fin(tmh: &Tmh, rvh: &Rvh) -> [u8; 32] {
    roce::tm::fin(tmh, rvh)
}

/// What the gate must find, to show that it can.
#[cfg(can_panic)]
#[inline(never)]
pub fn planted(bytes: &[u8], at: usize) -> u8 {
    bytes[at]
}
