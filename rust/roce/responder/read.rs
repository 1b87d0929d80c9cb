// SPDX-License-Identifier: GPL-2.0

//! RDMA READ: the request, and its response packet by packet.

use core::ops::DerefMut;

use super::nak::Refused;
use super::{
    AccessKind,
    QpEvent,
    Resource,
    Responder,
    ResponderEnv,
    State, //
};
use crate::key::Key;
use crate::mtu::MAX_MESSAGE;
use crate::number::Srqn;
use crate::opcode::{
    Operation,
    Position, //
};
use crate::psn::Psn;
use crate::wire::{
    pad,
    HeaderBuf,
    NakCode,
    Packet,
    Syndrome, //
};
use crate::xrc::srqn_of;

/// Bytes of the responder's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteSlice {
    /// The key that the requester named.
    pub rkey: Key,
    /// Virtual address.
    pub va: u64,
    /// Bytes; not 0.
    pub len: u32,
    /// XRC: the shared receive queue whose protection domain counts.
    pub srqn: Option<Srqn>,
}

/// A packet for the requester: headers, payload, pad bytes, and the invariant
/// CRC that the caller computes.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// All transport headers.
    pub header: HeaderBuf,
    /// What to copy behind them; to be checked again.
    pub payload: Option<RemoteSlice>,
    /// Zero bytes behind the payload, 0 to 3.
    pub pad: u8,
    /// Packets of the same response that are polled next and can be in a train with this one
    /// ([`TrainHeader`](crate::wire::TrainHeader)).
    pub followers: u32,
    /// Packets of the next response that can be in the train behind these.
    pub others: u32,
    /// It answers a repeated request, or is no READ response. It is to be sent by itself, not in a
    /// buffer with others: what is sent again must get through whatever became of such a buffer.
    pub again: bool,
}

impl<R: DerefMut<Target = [Resource]>> Responder<R> {
    pub(super) fn execute_read<E: ResponderEnv>(
        &mut self,
        packet: &Packet<'_>,
        env: &mut E,
    ) -> Result<(), Refused> {
        let reth = packet.reth.ok_or(Refused::INVALID)?;
        if !self.config.access.remote_read || reth.len > MAX_MESSAGE || packet.payload_len() != 0 {
            return Err(Refused::INVALID);
        }
        self.check_resource().map_err(|_| Refused::INVALID)?;
        let srqn = srqn_of(packet);
        self.check_srqn(srqn, env)?;
        self.check_range(AccessKind::Read, srqn, reth.rkey, reth.va, reth.len, env)?;
        self.count_message();
        let packets = self.config.mtu.packets(reth.len);
        let psn = self.epsn;
        self.advance(packets);
        let mut resource = Resource {
            operation: Operation::ReadRequest,
            psn,
            packets,
            va: reth.va,
            rkey: reth.rkey,
            len: reth.len,
            srqn,
            msn: self.msn,
            ..Resource::default()
        };
        resource.run_all();
        self.push_resource(resource);
        Ok(())
    }

    /// The next packet for the requester that had to wait: READ data, results
    /// of atomics behind READ data, then the ACK or NAK behind them.
    #[inline]
    pub fn poll_response(&mut self, _now: u64) -> Option<Response> {
        let Some(index) = self.oldest_pending() else {
            return self.poll_answer().map(|header| Response {
                header,
                payload: None,
                pad: 0,
                followers: 0,
                others: 0,
                again: true,
            });
        };
        let mtu = self.config.mtu;
        let resource = self.resources.get_mut(index as usize)?;
        let at = resource.next;
        resource.next = at.wrapping_add(1);
        let resource = *resource;
        let is_done = !resource.is_pending();
        if is_done {
            self.pending = self.pending.wrapping_sub(1);
            self.current_resource = None;
        }
        let psn = resource.psn.add(at);
        self.last_response = psn;
        self.is_repeat = resource.is_answered;
        if resource.next >= resource.packets {
            if let Some(r) = self.resources.get_mut(index as usize) {
                r.is_answered = true;
            }
        }
        if self.ack_owed.is_some_and(|end| !self.is_later(end, psn)) {
            // It acknowledges everything before.
            self.ack_owed = None;
        }
        if resource.operation != Operation::ReadRequest {
            return Some(Response {
                header: self.atomic_answer(&resource),
                payload: None,
                pad: 0,
                followers: 0,
                others: 0,
                again: true,
            });
        }
        let offset = mtu.offset(at);
        let len = resource.end_byte.saturating_sub(offset).min(mtu.bytes());
        let position = Position::of(
            at.wrapping_sub(resource.start),
            resource.end.wrapping_sub(resource.start),
        );
        let operation = match position {
            Position::First => Operation::ReadResponseFirst,
            Position::Middle => Operation::ReadResponseMiddle,
            Position::Last => Operation::ReadResponseLast,
            Position::Only => Operation::ReadResponseOnly,
        };
        let padding = pad(len);
        let mut header = self.begin(operation, psn, padding);
        if position != Position::Middle {
            Self::positive(resource.msn).emit(&mut header);
        }
        // The Last packet is in no train if it has pad bytes.
        let end = match pad(resource.end_byte) {
            0 => resource.end,
            _ => resource.end.saturating_sub(1),
        };
        let followers = end.saturating_sub(at.saturating_add(1));
        Some(Response {
            header,
            payload: (len != 0).then_some(RemoteSlice {
                rkey: resource.rkey,
                va: resource.va.wrapping_add(u64::from(offset)),
                len,
                srqn: resource.srqn,
            }),
            pad: padding,
            followers,
            others: self.others_behind(index, &resource),
            again: resource.is_repeated,
        })
    }

    /// Packets of the response behind that of `resource`, which is at `index`, that can be in a
    /// train with its last ones: both are of several packets and were not sent before, and the last
    /// one is as long as the others.
    #[inline]
    fn others_behind(&self, index: u32, resource: &Resource) -> u32 {
        let mtu = self.config.mtu;
        let packets = resource.end.saturating_sub(resource.start);
        if packets < 2
            || resource.is_repeated
            || resource.end_byte & mtu.bytes().wrapping_sub(1) != 0
        {
            return 0;
        }
        match self.resource_behind(index) {
            Some(next)
                if next.operation == Operation::ReadRequest
                    && !next.is_repeated
                    && next.next == next.start
                    && next.psn.add(next.start) == resource.psn.add(resource.end) =>
            {
                match (next.end.saturating_sub(next.start), pad(next.end_byte)) {
                    (0 | 1, _) => 0,
                    (packets, 0) => packets,
                    (packets, _) => packets.saturating_sub(1),
                }
            }
            _ => 0,
        }
    }

    /// Polls packets that are not built, up to `most` of them: those behind the READ response just
    /// polled that can be in a train with it ([`Response::followers`]). Returns how many.
    #[inline]
    pub fn poll_middles(&mut self, most: u32) -> u32 {
        let last = self.last_response;
        let passed = self.oldest_pending().and_then(|index| {
            let resource = self.resources.get_mut(index as usize)?;
            if resource.operation != Operation::ReadRequest
                || resource.next <= resource.start
                || resource.psn.add(resource.next) != last.next()
            {
                return None;
            }
            // The last one of the response is not like the others.
            let rest = resource.end.saturating_sub(resource.next.saturating_add(1));
            let count = rest.min(most);
            resource.next = resource.next.wrapping_add(count);
            Some(count)
        });
        let count = passed.unwrap_or(0);
        self.last_response = last.add(count);
        if self
            .ack_owed
            .is_some_and(|end| !self.is_later(end, self.last_response))
        {
            self.ack_owed = None;
        }
        count
    }

    /// The last `count` of the packets that [`Self::poll_middles`] just polled are not sent: the
    /// one before them is the one just polled.
    pub fn unpoll(&mut self, count: u32) {
        let last = self.last_response;
        self.with_resource(last, |r| {
            r.next = r.next.saturating_sub(count);
            Some(())
        });
        self.last_response = Psn::new(last.get().wrapping_sub(count));
    }

    /// The memory of the READ response just polled cannot be read any more:
    /// refuses the rest of it and ends the connection. A response that was sent
    /// whole before is only not repeated: the requester may have had it long
    /// ago and its owner may have deregistered the memory since, while a copy of
    /// the request was still on its way.
    pub fn response_fault<E: ResponderEnv>(&mut self, env: &mut E) {
        if self.state == State::Reset || !self.config.service.is_reliable() {
            return;
        }
        if self.is_repeat {
            self.with_resource(self.last_response, |r| {
                r.next = r.end;
                Some(())
            });
            return;
        }
        let header = self.answer(self.last_response, Syndrome::Nak(NakCode::RemoteAccess));
        let was_ready = self.state == State::Ready;
        self.clear_resources();
        self.ack_owed = None;
        self.nak_owed = None;
        env.reply(&header);
        if was_ready {
            self.drop_receive(crate::status::WcStatus::WrFlushErr, env);
            env.event(QpEvent::AccessErr);
            self.stats.refused = self.stats.refused.wrapping_add(1);
            self.state = State::Closing;
            self.message = super::Message::None;
            self.is_local_open = false;
            env.fatal();
        }
    }
}
