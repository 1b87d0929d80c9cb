// SPDX-License-Identifier: GPL-2.0

//! Packets received on UDP port 4791: each is checked and handed to its queue pair.

mod verified;

pub(crate) use self::verified::{
    Backlog,
    Verified, //
};
use crate::prelude::*;
use crate::qp::state::QpKind;
use crate::{
    mcast,
    tables, //
};
use rdma::net::{
    Arrival,
    Peek,
    RxSkb, //
};
use roce::opcode::Transport;
use roce::wire::{
    Kind,
    Refused, //
};

/// The only partition: the default one, with full membership.
pub const PKEY: u16 = 0xffff;

/// Time between two lines about wrong ICRCs, ns.
const ICRC_LINE_INTERVAL: u64 = 10_000_000_000;

/// The receiver of the module's tunnel sockets.
pub(crate) struct Rx;

impl rdma::net::Receiver for Rx {
    /// Softirq, in an RCU read section.
    fn receive(ns: NamespaceId, skb: RxSkb) {
        let packet = match Verified::check(skb) {
            Ok(packet) => packet,
            Err((skb, refused)) => return refuse(ns, &skb, refused),
        };
        let dst = packet.dst();
        let known = match (packet.dest_qpn(), tables::get()) {
            (Qpn::MULTICAST, _) => deliver_to_group(ns, packet, &dst),
            // Only whole groups have group addresses.
            _ if dst.is_multicast() => None,
            (Qpn::GSI, _) => tables::with_gsi(ns, &dst, |qp| deliver(ns, packet, qp)),
            (qpn, Some(tables)) => tables.qps.with(qpn.get(), |qp| deliver(ns, packet, qp)),
            (_, None) => None,
        };
        if known.is_none() {
            tables::count_at(ns, &dst, Counter::Unknown);
        }
    }

    /// Softirq, in an RCU read section. What the packet says of itself only decides where it is
    /// checked.
    fn steer(ns: NamespaceId, packet: Arrival, peek: &Peek<'_>) -> Result<(), Arrival> {
        let Some(tables) = tables::get() else {
            return Err(packet);
        };
        let mut packet = Some(packet);
        let _ = tables.qps.with(peek.qpn(), |qp| {
            if qp.ns() == ns {
                if let Some(arrival) = packet.take() {
                    packet = qp.steer(arrival, peek).err();
                }
            }
        });
        packet.map_or(Ok(()), Err)
    }

    fn refused(ns: NamespaceId, dst: &GidAddr) {
        tables::count_at(ns, dst, Counter::Malformed);
    }
}

/// Counts a packet that did not pass the check.
fn refuse(ns: NamespaceId, skb: &RxSkb, refused: Refused) {
    let counter = match refused {
        Refused::Malformed => Counter::Malformed,
        Refused::Icrc => {
            report_icrc(ns, skb);
            Counter::BadIcrc
        }
        Refused::Pkey => Counter::BadPkey,
    };
    tables::count_at(ns, &skb.dst(), counter);
}

/// Hands a copy of the packet to every member of the group; `None` when there are none.
fn deliver_to_group(ns: NamespaceId, mut packet: Verified, group: &GidAddr) -> Option<()> {
    let mut qpns = [Qpn::default(); mcast::MAX_QPS];
    let count = mcast::members(ns, group, &mut qpns);
    let tables = tables::get()?;
    let qpns = qpns.get(..count).filter(|qpns| !qpns.is_empty())?;
    for &qpn in qpns {
        // A copy that there is no memory for is a lost datagram.
        if let Some(copy) = packet.share() {
            tables.qps.with(qpn.get(), |qp| deliver(ns, copy, qp));
        }
    }
    Some(())
}

/// Hands the packet to `qp`, if it may have it. Whoever owns the side checks the addresses once
/// more, since the queue pair may have been connected anew.
fn deliver(ns: NamespaceId, packet: Verified, qp: &WireQp) {
    let (fits, is_response) = match packet.kind() {
        Kind::Message(opcode) => {
            let is_response = opcode.is_response();
            let fits = match opcode.transport {
                Transport::Rc => qp.kind == QpKind::Rc,
                Transport::Uc => qp.kind == QpKind::Uc,
                Transport::Ud => qp.kind.is_datagram(),
                Transport::Xrc if is_response => qp.kind == QpKind::XrcIni,
                Transport::Xrc => qp.kind == QpKind::XrcTgt,
            };
            (fits, is_response)
        }
        // Packets of others are not marked as ECN capable. An XRC target has only answers to
        // slow down.
        Kind::Cnp => (qp.kind.is_reliable(), qp.kind != QpKind::XrcTgt),
    };
    let connection = match is_response {
        true => &qp.send_connection,
        false => &qp.recv_connection,
    };
    // What a stranger sends is not to wait in the queue pair's backlog.
    let is_known = || qp.kind.is_datagram() || connection.carries(&packet.src(), &packet.dst());
    if !fits || qp.ns() != ns || !is_known() {
        qp.device.count(Counter::Unknown, 1);
        return;
    }
    qp.device
        .count(Counter::ReceivedPackets, packet.count().into());
    qp.device.count(Counter::ReceivedBytes, packet.len() as u64);
    if packet.is_super() {
        qp.device.count(Counter::ReceivedSupers, 1);
    } else if packet.is_merged() {
        qp.device.count(Counter::ReceivedMerged, 1);
    }
    let hand = |packet| match is_response {
        true => qp.response(packet),
        false => qp.request(packet),
    };
    // A run that may wait for memory takes packets one by one.
    match packet.count() {
        2.. if qp.sleeps() => {
            for index in 0..packet.count() {
                match packet.part(index) {
                    Some(part) => hand(part),
                    None => qp.device.count(Counter::Dropped, 1),
                }
            }
        }
        _ => hand(packet),
    }
}

/// Says, once in a while, that packets come in whose ICRC is wrong.
fn report_icrc(ns: NamespaceId, skb: &RxSkb) {
    static NEXT: Atomic<u64> = Atomic::new(0);
    let now = now_ns();
    let next = NEXT.load(Relaxed);
    if now < next
        || NEXT
            .cmpxchg(next, now.wrapping_add(ICRC_LINE_INTERVAL), Relaxed)
            .is_err()
    {
        return;
    }
    let what = "has a wrong ICRC: corrupted, or its addresses or ports were translated (NAT)";
    let line = |device: &str| match skb.src().v4() {
        Some([a, b, c, d]) => pr_warn!("{device}: packet from {a}.{b}.{c}.{d} {what}\n"),
        None => {
            let groups = u128::from_be_bytes(skb.src().0);
            pr_warn!("{device}: packet from IPv6 address {groups:032x} {what}\n");
        }
    };
    if tables::with_gsi(ns, &skb.dst(), |qp| line(qp.device.name())).is_none() {
        line("no device");
    }
}
