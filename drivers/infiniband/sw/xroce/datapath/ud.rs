// SPDX-License-Identifier: GPL-2.0

//! Datagram queue pairs: UD and GSI.
//!
//! A datagram is one packet and has no state. It is complete when it has been handed to the
//! network.

use crate::prelude::*;
use crate::qp::engine::{
    take_packets,
    Budget, //
};
use crate::qp::receive::{
    Current,
    RecvIo, //
};
use crate::qp::request::{
    filled,
    SendOp, //
};
use crate::qp::send::{
    complete,
    Failure,
    Fetched,
    SendIo,
    SendWqe, //
};
use crate::rx::{
    self,
    Verified, //
};
use crate::{
    access,
    ah,
    tx,
    wr, //
};
use rdma::work;
use roce::psn::Psn;
use roce::responder::ReceiveError;
use roce::ud::{
    effective_qkey,
    Datagram,
    UdError,
    UdMessage, //
};
use roce::wire::{
    Content,
    Packet, //
};

/// Bytes in front of each received datagram: a global routing header, or an IPv4 header in the last
/// 20 of them.
const GRH_LEN: usize = 40;

/// One run of the send side: sends what was posted, within a budget.
pub(crate) fn run_send(qp: &WireQp, io: &mut SendIo) -> Run {
    qp.responses.purge();
    let mut budget = Budget::new();
    let mut batch = TxBatch::new();
    let mut packets = 0u64;
    let again = loop {
        // Whoever resets or destroys the queue pair waits for this run; and in the error state
        // nothing is sent any more.
        if budget.is_empty() || matches!(qp.state(), QpState::Reset | QpState::Err) {
            io.blocked();
            break Run::Again;
        }
        let mut wqe = SendWqe::default();
        match io.fetch(qp, &mut wqe) {
            Ok(Fetched::One) => {}
            Ok(Fetched::Nothing) => {
                if io.asleep() {
                    break Run::Idle;
                }
                continue;
            }
            Err(_) => {
                qp.event(QpEvent::Fatal);
                io.fail(Failure::Ring);
                break Run::Idle;
            }
        }
        // It may have been posted in the error state.
        let built = match qp.state().is_error() {
            true => Err(WcStatus::WrFlushErr),
            false => work::step(|| send_one(qp, io, &wqe)),
        };
        let status = match built {
            Ok(skb) => {
                if let Some(skb) = skb {
                    qp.device
                        .count(Counter::SentBytes, skb.payload().len() as u64);
                    batch.push(skb, Joining::Alone);
                    packets = packets.wrapping_add(1);
                } else {
                    qp.device.count(Counter::SendError, 1);
                }
                WcStatus::Success
            }
            Err(status) => status,
        };
        if status != WcStatus::Success {
            qp.set_send_error();
        }
        io.retire(&wqe);
        if wqe.head.signaled || status != WcStatus::Success {
            io.publish();
            complete(qp, &wqe.head, status, 0);
        }
        budget.spend(wqe.head.length);
        if status != WcStatus::Success {
            io.fail(Failure::Request);
            break Run::Idle;
        }
        if work::has_waited() {
            io.blocked();
            break Run::Again;
        }
    };
    if packets > 0 {
        qp.device.count(Counter::SentPackets, packets);
        tx::count_flushed(&qp.device, batch.flush());
    }
    again
}

/// Builds the packet of one work request; `None` when it is lost for want of memory or a route.
fn send_one(qp: &WireQp, io: &mut SendIo, wqe: &SendWqe) -> Result<Option<TxSkb>, WcStatus> {
    if let Some(status) = wqe.broken {
        return Err(status);
    }
    let head = &wqe.head;
    let imm = match head.op {
        SendOp::Send => None,
        SendOp::SendImm => Some(head.imm),
        _ => return Err(WcStatus::LocQpOpErr),
    };
    if head.length > qp.device.mtu().bytes() {
        return Err(WcStatus::LocLenErr);
    }
    let datagram = Datagram {
        src_qpn: qp.wire_qpn(),
        dest_qpn: head.ud.remote_qpn,
        qkey: effective_qkey(head.ud.remote_qkey, qp.qkey()),
        pkey: rx::PKEY,
        psn: Psn::new(io.next_datagram_psn()),
        solicited: head.solicited,
        imm,
        len: head.length,
    };
    let (header, pad) = datagram.headers();
    let (header, pad) = (header.as_slice(), usize::from(pad));
    let len = head.length as usize;
    // What may sleep is not done under the handle's lock.
    let early = if qp.sleeps() {
        let Ok(mut early) = filled::<u8>(len) else {
            return Ok(None);
        };
        io.gather_fetched(qp.pd, wqe, &mut early)
            .map_err(|_| WcStatus::LocProtErr)?;
        early
    } else {
        KVVec::new()
    };
    let built = ah::with(head.ud.ah, qp.pd, |ah| {
        let flow = (datagram.src_qpn, datagram.dest_qpn);
        ah.with_route(qp.device.tunnel(), flow, |route| {
            tx::build(route, &qp.sender, header, len, pad, Joining::Alone, |out| {
                if !early.is_empty() {
                    out.copy_from_slice(early.get(..out.len()).ok_or(Fault)?);
                    return Ok(());
                }
                io.gather_fetched(qp.pd, wqe, out)
            })
        })
    });
    match built {
        None => Err(WcStatus::LocQpOpErr),
        Some(Ok(Ok(skb))) => Ok(Some(skb)),
        Some(Ok(Err(tx::BuildError::Fault))) => Err(WcStatus::LocProtErr),
        Some(Ok(Err(tx::BuildError::NoMemory))) | Some(Err(_)) => Ok(None),
    }
}

/// One run of the receive side.
pub(crate) fn run_receive(qp: &WireQp, io: &mut RecvIo, packet: Option<Verified>) -> Run {
    match take_packets(qp, &qp.requests, packet, |packet| {
        receive_one(qp, io, &packet);
        false
    }) {
        true => Run::Again,
        false => Run::Idle,
    }
}

/// Takes a datagram: checks it, stores it in a receive and completes that.
fn receive_one(qp: &WireQp, io: &mut RecvIo, packet: &Verified) {
    // To a group only when it is a member, which was seen before.
    if !packet.dst().is_multicast() && !qp.device.owns(&packet.dst()) {
        qp.device.count(Counter::Unknown, 1);
        return;
    }
    // Connections alone get congestion notifications.
    let Content::Message(datagram) = packet.content(0) else {
        return;
    };
    let Some(message) = check(qp, &datagram) else {
        return;
    };
    if !has_receive(qp, io) {
        return;
    }
    let length = datagram.payload_len().wrapping_add(GRH_LEN as u32);
    if length > access::total(io.current.list()) {
        return drop_too_long(qp, io);
    }
    let status = match store(&io.current, packet, message.payload) {
        Ok(()) => WcStatus::Success,
        Err(access::ScatterError::TooLong) => WcStatus::LocLenErr,
        Err(access::ScatterError::Protection) => WcStatus::LocProtErr,
    };
    if status != WcStatus::Success {
        // A fault of its own ends a queue pair of any type (class A; 10.3.1). Whoever sees the
        // completion finds it in the error state.
        qp.enter_error();
    }
    let completion = completion(status, length, &message, packet);
    if io.finish(qp, completion).is_err() {
        qp.fail();
    }
}

/// The datagram in a packet, if it has the partition key and the Q_Key of the queue pair and is not
/// longer than the MTU.
fn check<'a>(qp: &WireQp, packet: &Packet<'a>) -> Option<UdMessage<'a>> {
    let counter = match roce::ud::receive(packet, qp.qkey(), rx::PKEY) {
        // None of ours is longer, and a receive is not to be spent on one that is.
        Ok(_) if packet.payload_len() > qp.device.mtu().bytes() => Counter::Malformed,
        Ok(message) => return Some(message),
        Err(UdError::NotUd) => Counter::Unknown,
        Err(UdError::Pkey) => Counter::BadPkey,
        Err(UdError::Qkey) => Counter::BadQkey,
    };
    qp.device.count(counter, 1);
    None
}

/// Whether there is a current receive: the one that the datagram before was too long for, or the
/// next, which is taken. Otherwise the datagram is lost, as datagrams may be.
fn has_receive(qp: &WireQp, io: &mut RecvIo) -> bool {
    if io.current.active {
        return true;
    }
    match io.take(qp, None) {
        Ok(()) => return true,
        Err(ReceiveError::Fault) => {
            qp.enter_error();
            // That nobody hears of it makes no difference any more.
            let _ = io.finish(qp, failed(WcStatus::LocQpOpErr));
        }
        Err(ReceiveError::Broken) => qp.fail(),
        // No receive is posted.
        Err(_) => qp.device.count(Counter::Dropped, 1),
    }
    false
}

/// A datagram that is too long is dropped silently (IBTA C9-92; rxe and hfi1 do the same).
/// Otherwise anybody who knows the Q_Key could end the queue pair, above all QP 1.
fn drop_too_long(qp: &WireQp, io: &mut RecvIo) {
    qp.device.count(Counter::Dropped, 1);
    // Other queue pairs need the receives of a shared queue, so the user gets this one back to post
    // it again (as with rxe). The queue pair goes on.
    if qp.srq.is_some() && io.finish(qp, failed(WcStatus::LocLenErr)).is_err() {
        qp.fail();
    }
}

/// Stores the header of the network and the payload in a receive.
fn store(current: &Current, packet: &Verified, payload: &[u8]) -> Result<(), access::ScatterError> {
    let mut grh = [0u8; GRH_LEN];
    let header = packet.ip_header();
    if let Some(place) = GRH_LEN
        .checked_sub(header.len())
        .and_then(|at| grh.get_mut(at..))
    {
        place.copy_from_slice(header);
    }
    let list = current.list();
    access::scatter(current.pd, list, 0, &grh)?;
    access::scatter(current.pd, list, GRH_LEN as u32, payload)
}

/// The completion of a receive that a datagram took; `length`: of the datagram, with the space for
/// the header of the network.
fn completion(
    status: WcStatus,
    length: u32,
    message: &UdMessage<'_>,
    packet: &Verified,
) -> Completion {
    let mut flags = wr::WC_GRH;
    if message.imm.is_some() {
        flags |= wr::WC_WITH_IMM;
    }
    Completion {
        status,
        opcode: wr::WC_RECV,
        byte_len: length,
        imm: message.imm.unwrap_or(0),
        src_qp: message.src_qpn.get(),
        wc_flags: flags,
        solicited: message.solicited,
        smac: Some(packet.smac()),
        vlan: packet.vlan(),
        is_v6: packet.is_v6(),
        ..Completion::default()
    }
}

/// The completion of a receive that makes no sense.
fn failed(status: WcStatus) -> Completion {
    Completion {
        status,
        opcode: wr::WC_RECV,
        ..Completion::default()
    }
}
