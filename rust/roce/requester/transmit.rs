// SPDX-License-Identifier: GPL-2.0

//! The next packet to send.

use core::ops::DerefMut;

use super::{
    early,
    Requester,
    RequesterEnv,
    SendOp,
    State,
    Wqe, //
};
use crate::mtu::Mtu;
use crate::opcode::{
    Opcode,
    Operation,
    Position, //
};
use crate::psn::Psn;
use crate::status::WcStatus;
use crate::wire::{
    pad,
    AtomicEth,
    Bth,
    Feth,
    HeaderBuf,
    Ieth,
    ImmDt,
    Reth,
    XrcEth, //
};

/// The payload of a packet: bytes of the work request in `slot`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payload {
    /// Slot of the work request.
    pub slot: u32,
    /// Where in its message.
    pub offset: u32,
    /// How many bytes; not 0.
    pub len: u32,
}

/// A packet to send: headers, payload, pad bytes, and the invariant CRC that
/// the caller computes.
#[derive(Clone, Copy, Debug)]
pub struct Transmit {
    /// All transport headers.
    pub header: HeaderBuf,
    /// What to gather behind them.
    pub payload: Option<Payload>,
    /// Zero bytes behind the payload, 0 to 3.
    pub pad: u8,
    /// Packets of the same message that are polled next and can be in a train with this one
    /// ([`TrainHeader`](crate::wire::TrainHeader)), as far as the window admits them, up to one
    /// that asks for an acknowledgement; 0 if this one asks. They may be fewer, since not all may
    /// be polled now.
    pub followers: u32,
    /// Packets of the next message that can be in the train behind these, by the same rules.
    pub others: u32,
    /// It was sent before. It is to be sent by itself, not in a buffer with others: what is sent
    /// again must get through whatever became of such a buffer.
    pub again: bool,
}

/// Middle packets that were polled without being built ([`Requester::poll_middles`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Middles {
    /// How many. They have the path MTU of payload each.
    pub count: u32,
    /// The last of them asks for an acknowledgement.
    pub ack_req: bool,
}

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// The next packet to send, or `None` when there is none for now.
    ///
    /// Runs local work whose turn has come, and completes what UC has sent;
    /// so poll until `None`.
    #[inline]
    pub fn poll_transmit<E: RequesterEnv>(&mut self, now: u64, env: &mut E) -> Option<Transmit> {
        if self.state != State::Ready || self.local_slot.is_some() || !self.is_wait_over(now) {
            return None;
        }
        if let Some(transmit) = self.next_probe(now, env) {
            return Some(transmit);
        }
        if self.recovery.is_trial() {
            return None;
        }
        if let Some(transmit) = self.next_packet(now, env) {
            return Some(transmit);
        }
        // What is next may wait for an answer that nobody was asked for.
        self.next_probe(now, env)
    }

    /// The next packet of the request whose turn it is.
    #[inline]
    fn next_packet<E: RequesterEnv>(&mut self, now: u64, env: &mut E) -> Option<Transmit> {
        let Some(slot) = self.next_request(env) else {
            self.window.on_idle();
            return None;
        };
        let was_at_end = self.next == self.max;
        // READ requests are small; the responder paces the data.
        let is_data = !self.wqe(slot)?.wr.op.has_response();
        if is_data && self.is_paced(now) {
            return None;
        }
        let transmit = self.packet(slot)?;
        if is_data {
            self.on_paced(now);
        }
        self.on_transmit(was_at_end, now);
        Some(transmit)
    }

    /// A packet was polled; `was_at_end`: none behind it was sent before.
    #[inline]
    fn on_transmit(&mut self, was_at_end: bool, now: u64) {
        if self.ack_deadline.is_none() {
            self.start_ack_timer(now);
        }
        // Of what was sent since the last request for an answer, this packet asks for one.
        if self.timed.is_none()
            && was_at_end
            && self.recovery.is_over()
            && self.unasked_packets == 0
            && self.config.service.is_reliable()
        {
            self.timed = Some((self.next.prev(), now));
        }
    }

    /// How many packets a train has at most ([`TrainHeader`](crate::wire::TrainHeader)) if what is
    /// polled goes out in trains, which the wire may lose as a whole; else 0. To be called again
    /// when that changes, as when there is another route.
    #[inline]
    pub fn set_trains(&mut self, packets: u32) {
        // At most 255.
        let room = packets.min(u8::MAX.into()) as u8;
        if self.has_trains() != (room != 0) {
            self.recovery.forget_trains();
        }
        self.train_room = room;
    }

    /// The path MTU of the connection.
    #[inline]
    pub fn mtu(&self) -> Mtu {
        self.config.mtu
    }

    /// Whether what is polled goes out in trains.
    #[inline]
    pub(super) fn has_trains(&self) -> bool {
        self.train_room != 0
    }

    /// Polls packets that are not built, up to `most` of them: those behind a packet that was just
    /// polled, with no other call since, which can be in a train with it ([`Transmit::followers`]).
    /// Each is what [`Self::poll_transmit`] would have returned, at the same time `now`, but for
    /// its headers. There are fewer if the window, the pace or a request for an acknowledgement
    /// ends them.
    #[inline]
    pub fn poll_middles(&mut self, most: u32, now: u64) -> Middles {
        let mut middles = Middles::default();
        let most = most.min(self.middles_left());
        while middles.count < most && !middles.ack_req && !self.is_paced(now) {
            let room = self.window_room();
            if room == 0 {
                break;
            }
            middles.ack_req = self.must_ask(None, room.saturating_sub(1));
            middles.count = middles.count.wrapping_add(1);
            self.passed(1, false, false);
            self.on_paced(now);
            self.on_transmit(true, now);
        }
        middles
    }

    /// Middle packets between the cursor and the last packet of the message, if
    /// [`Self::poll_transmit`] would go on with them at once, and none of them was sent before.
    fn middles_left(&self) -> u32 {
        if self.state != State::Ready
            || !self.config.service.is_reliable()
            || self.local_slot.is_some()
            || self.recovery.is_trial()
            || self.next != self.max
            || self.sent_packets == 0
            || self.sent >= self.assigned
        {
            return 0;
        }
        match self.wqe(self.slot_at(self.sent)) {
            Some(wqe) if !wqe.wr.op.has_response() && wqe.fault.is_none() => wqe
                .packets
                .saturating_sub(self.sent_packets.saturating_add(1)),
            _ => 0,
        }
    }

    /// The next packet of the request in `slot`, the one at the transmit cursor.
    #[inline]
    fn packet(&mut self, slot: u32) -> Option<Transmit> {
        let op = self.wqe(slot)?.wr.op;
        match op {
            SendOp::Read => self.read_packet(slot),
            _ if op.has_response() => self.atomic_packet(slot),
            _ => self.data_packet(slot),
        }
    }

    /// The slot of the request at the transmit cursor, ready to send a packet.
    pub(super) fn next_request<E: RequesterEnv>(&mut self, env: &mut E) -> Option<u32> {
        if !self.config.service.is_reliable() {
            self.retire_sent(env);
        }
        // Every turn but the last passes one work request.
        for _ in 0..=self.count {
            if self.sent >= self.count {
                if self.draining {
                    self.ask();
                }
                break;
            }
            let slot = self.slot_at(self.sent);
            if self.sent >= self.assigned {
                if self.draining {
                    self.ask();
                    break;
                }
                self.assign(slot);
            }
            let wqe = self.queue.get(slot as usize)?;
            let (is_local, is_done) = (wqe.wr.op == SendOp::Local, wqe.done);
            if wqe.fault.is_some() {
                if self.sent == 0 {
                    self.settle(env);
                    return None;
                }
                self.ask();
                return None;
            }
            let is_fenced = self.sent_packets == 0 && self.is_fenced(wqe);
            if !is_local {
                // It waits for responses, which nobody has to ask for.
                return (!is_fenced).then_some(slot);
            }
            if !is_done {
                if is_fenced {
                    return None;
                }
                let result = env.local(slot);
                let stored = self.queue.get_mut(slot as usize)?;
                match result {
                    Ok(()) => stored.done = true,
                    Err(status) => {
                        stored.fault = Some(status);
                        continue;
                    }
                }
            }
            self.sent = self.sent.wrapping_add(1);
            self.sent_packets = 0;
            // It completes behind what is before it.
            self.ask();
            self.settle(env);
            if self.state != State::Ready {
                return None;
            }
        }
        self.report_drained(env);
        None
    }

    /// UC: completes what was transmitted.
    pub(super) fn retire_sent<E: RequesterEnv>(&mut self, env: &mut E) {
        while self.sent != 0 {
            self.pop(WcStatus::Success, env);
        }
        self.una = self.next;
        self.max = self.next;
        self.ack_deadline = None;
    }

    /// Packets that may be in flight at a time.
    #[inline]
    pub(super) fn window_packets(&self) -> u32 {
        if self.rnr_retry.is_refused() {
            // The responder drops what follows a packet that it is not ready for.
            1
        } else {
            self.window.packets()
        }
    }

    /// There is more to send than [`Self::window_packets`] lets pass, itself or by its pace.
    #[inline]
    pub(super) fn on_limited(&mut self) {
        if !self.rnr_retry.is_refused() {
            self.window.on_limited();
        }
    }

    /// Packets that may still be put in flight.
    #[inline]
    fn window_room(&self) -> u32 {
        if self.config.service.is_reliable() {
            self.window_packets()
                .saturating_sub(self.flight_packets())
                .min(self.ahead_room())
        } else {
            u32::MAX
        }
    }

    /// Moves the cursor over `count` packets of the present message. `begins`: the first of them is
    /// in no train with the one before it, as far as is known yet. Says whether that was sent
    /// before.
    #[inline]
    fn passed(&mut self, count: u32, is_last: bool, begins: bool) -> bool {
        let was_sent = self.max.since(self.una) > self.next.since(self.una);
        let (slot, index) = (self.slot_at(self.sent), self.sent_packets);
        if let Some(wqe) = self.queue.get_mut(slot as usize) {
            wqe.note_train(index, begins);
        }
        self.next = self.next.add(count);
        if self.next.since(self.una) > self.max.since(self.una) {
            self.max = self.next;
        }
        if was_sent {
            self.stats.retransmitted = self.stats.retransmitted.wrapping_add(1);
        }
        if is_last {
            self.sent = self.sent.wrapping_add(1);
            self.sent_packets = 0;
        } else {
            self.sent_packets = self.sent_packets.wrapping_add(count);
        }
        was_sent
    }

    /// Starts a packet: base transport header and, for XRC, the SRQ number.
    #[inline]
    pub(super) fn begin(&self, operation: Operation, wqe: &Wqe, bits: Bits, psn: Psn) -> HeaderBuf {
        let mut header = HeaderBuf::new();
        let transport = self.config.service.transport();
        Bth {
            opcode: Opcode::new(transport, operation).to_byte(),
            solicited: bits.solicited,
            mig_req: true,
            pad: bits.pad,
            pkey: self.config.pkey,
            dest_qpn: self.config.dest_qpn,
            ack_req: bits.ack_req,
            psn,
            ..Bth::default()
        }
        .emit(&mut header);
        if transport == crate::opcode::Transport::Xrc {
            XrcEth { srqn: wqe.wr.srqn }.emit(&mut header);
        }
        header
    }

    /// A packet of a SEND or a WRITE.
    #[inline]
    fn data_packet(&mut self, slot: u32) -> Option<Transmit> {
        let room = self.window_room();
        if room == 0 {
            self.on_limited();
            return None;
        }
        self.data_packet_with(slot, room.saturating_sub(1))
    }

    /// A packet of a SEND or a WRITE that leaves `room` in the window.
    #[inline]
    pub(super) fn data_packet_with(&mut self, slot: u32, room: u32) -> Option<Transmit> {
        let wqe = *self.queue.get(slot as usize)?;
        let (wr, mtu) = (&wqe.wr, self.config.mtu);
        let index = self.sent_packets;
        let position = Position::of(index, wqe.packets);
        let (is_first, is_last) = (position.begins(), position.ends());
        let len = mtu.payload(wr.length, index);
        let pad = pad(len);
        let is_imm = matches!(wr.op, SendOp::SendImm | SendOp::WriteImm);
        let raises_event = !matches!(wr.op, SendOp::Write);

        let ends = is_last.then_some(&wqe);
        let ack_req = self.config.service.is_reliable() && self.must_ask(ends, room);
        let bits = Bits {
            solicited: is_last && wr.solicited && raises_event,
            ack_req,
            pad,
        };
        let mut header = self.begin(wr.op.operation(position), &wqe, bits, self.next);
        if is_first && matches!(wr.op, SendOp::Write | SendOp::WriteImm) {
            Reth {
                va: wr.remote_addr,
                rkey: wr.rkey,
                len: wr.length,
            }
            .emit(&mut header);
        }
        if is_last && is_imm {
            ImmDt { raw: wr.imm }.emit(&mut header);
        }
        if is_last && wr.op == SendOp::SendInv {
            Ieth {
                rkey: wr.invalidate_rkey,
            }
            .emit(&mut header);
        }
        let again = self.passed(1, is_last, true);
        let most = match ack_req {
            true => 0,
            false => room.min(self.until_asked()),
        };
        let followers = most.min(wqe.behind(index));
        let rest = most.saturating_sub(followers);
        let others = match rest != 0 && followers == wqe.behind(index) {
            true => self.others_behind(&wqe).min(rest),
            false => 0,
        };
        Some(Transmit {
            header,
            payload: (len != 0).then_some(Payload {
                slot,
                offset: mtu.offset(index),
                len,
            }),
            pad,
            followers,
            others,
            again,
        })
    }

    /// Packets of the message behind that of `wqe`, to which the cursor has come, that can be in a
    /// train with its last ones.
    #[inline]
    fn others_behind(&self, wqe: &Wqe) -> u32 {
        let next = match self.sent_packets {
            // It has passed the last packet.
            0 => self.sent,
            _ => self.sent.wrapping_add(1),
        };
        if next >= self.count || (self.draining && next >= self.assigned) {
            return 0;
        }
        match self.wqe(self.slot_at(next)) {
            Some(other) if wqe.may_join(other, self.config.mtu) => {
                let packets = match next < self.assigned {
                    true => other.packets,
                    false => other.wr.packets(self.config.mtu),
                };
                let other = Wqe { packets, ..*other };
                other.behind(0).saturating_add(1)
            }
            _ => 0,
        }
    }

    /// A READ request for as much of the message as the window admits, or for
    /// what one was sent for before.
    fn read_packet(&mut self, slot: u32) -> Option<Transmit> {
        let window = self.window_packets();
        // Two at a time fill the window, and what is behind a missing one can be kept.
        let (share, most) = match self.config.max_rd_atomic {
            0 | 1 => (window, u32::MAX),
            _ => ((window >> 1).min(early::KEPT >> 1), early::KEPT >> 1),
        };
        if !self.rd_atomic.has_room(self.config.max_rd_atomic) {
            // Parts of a long READ would be longer if the window were larger.
            match self.sent_packets != 0 && share < most {
                true => self.on_limited(),
                false => self.window.on_idle(),
            }
            return None;
        }
        let wqe = *self.queue.get(slot as usize)?;
        let index = self.sent_packets;
        let rest = wqe.packets.saturating_sub(index);
        let count = match self.rd_atomic.next_end() {
            Some(end) => end.since(self.next),
            None => share.max(1),
        }
        .min(rest);
        let end = index.saturating_add(count);
        if !self.rd_atomic.reaches(self.next.add(count)) {
            return None;
        }
        let in_flight = self.flight_packets();
        if in_flight != 0 && in_flight.saturating_add(count) > window {
            self.on_limited();
            self.ask();
            return None;
        }
        if self.next != self.una && count > self.read_room() {
            self.ask();
            return None;
        }
        let mtu = self.config.mtu;
        let offset = mtu.offset(index);
        let header = self.rdma_request(Operation::ReadRequest, &wqe, |wr| Reth {
            va: wr.remote_addr.wrapping_add(u64::from(offset)),
            rkey: wr.rkey,
            len: wr.length.saturating_sub(offset).min(mtu.offset(count)),
        });
        self.rd_atomic.push(self.next.add(count));
        let again = self.passed(count, end >= wqe.packets, true);
        Some(Transmit {
            header,
            payload: None,
            pad: 0,
            followers: 0,
            others: 0,
            again,
        })
    }

    /// A request with a response of one packet.
    pub(super) fn atomic_packet(&mut self, slot: u32) -> Option<Transmit> {
        if !self.rd_atomic.has_room(self.config.max_rd_atomic)
            || !self.rd_atomic.reaches(self.next.next())
        {
            self.window.on_idle();
            return None;
        }
        if self.window_room() == 0 {
            self.on_limited();
            self.ask();
            return None;
        }
        let wqe = *self.queue.get(slot as usize)?;
        let op = wqe.wr.op;
        let operation = op.operation(Position::Only);
        let header = match op {
            SendOp::AtomicWrite => self.rdma_request(operation, &wqe, |wr| Reth {
                va: wr.remote_addr,
                rkey: wr.rkey,
                len: 8,
            }),
            SendOp::Flush => self.rdma_request(operation, &wqe, |wr| Reth {
                va: wr.remote_addr,
                rkey: wr.rkey,
                len: wr.length,
            }),
            _ => {
                let wr = &wqe.wr;
                let mut header = self.begin(operation, &wqe, Bits::ASK, self.next);
                let (swap_add, compare) = match op {
                    SendOp::CmpSwap => (wr.swap, wr.compare_add),
                    _ => (wr.compare_add, 0),
                };
                AtomicEth {
                    va: wr.remote_addr,
                    rkey: wr.rkey,
                    swap_add,
                    compare,
                }
                .emit(&mut header);
                header
            }
        };
        self.unasked_packets = 0;
        self.unasked_messages = 0;
        self.rd_atomic.push(self.next.next());
        let again = self.passed(1, true, true);
        Some(Transmit {
            header,
            payload: (op == SendOp::AtomicWrite).then_some(Payload {
                slot,
                offset: 0,
                len: 8,
            }),
            pad: 0,
            followers: 0,
            others: 0,
            again,
        })
    }

    /// The headers of a request with an RDMA header and a response.
    pub(super) fn rdma_request(
        &mut self,
        operation: Operation,
        wqe: &Wqe,
        reth: impl FnOnce(&super::SendWr) -> Reth,
    ) -> HeaderBuf {
        let mut header = self.begin(operation, wqe, Bits::ASK, self.next);
        if operation == Operation::Flush {
            Feth {
                placement: wqe.wr.flush_placement,
                level: wqe.wr.flush_level,
            }
            .emit(&mut header);
        }
        reth(&wqe.wr).emit(&mut header);
        self.unasked_packets = 0;
        self.unasked_messages = 0;
        header
    }
}

/// The variable bits of the base transport header.
#[derive(Clone, Copy)]
pub(super) struct Bits {
    solicited: bool,
    ack_req: bool,
    pad: u8,
}

impl Bits {
    /// A request that wants its answer.
    pub(super) const ASK: Self = Self {
        solicited: false,
        ack_req: true,
        pad: 0,
    };
}
