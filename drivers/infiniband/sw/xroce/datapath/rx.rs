// SPDX-License-Identifier: GPL-2.0

//! Packets received on UDP port 4791: verifies them and hands them to their queue pair.

use crate::prelude::*;
use crate::qp::state::QpKind;
use crate::{
    mcast,
    tables,
    tx, //
};
use roce::opcode::Transport;
use roce::ud::pkey_matches;
use roce::wire::{
    split_icrc,
    Cnp,
    Packet, //
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
        let arrived = match Arrived::check(ns, skb) {
            Ok(arrived) => arrived,
            Err((skb, counter)) => {
                tables::count_at(ns, &skb.dst(), counter);
                return;
            }
        };
        let dst = arrived.skb.dst();
        let known = match (arrived.dest_qpn, tables::get()) {
            (Qpn::MULTICAST, _) => arrived.deliver_to_group(&dst),
            // Only whole groups have group addresses.
            _ if dst.is_multicast() => None,
            (Qpn::GSI, _) => tables::with_gsi(ns, &dst, |qp| arrived.deliver(qp)),
            (qpn, Some(tables)) => tables.qps.with(qpn.get(), |qp| arrived.deliver(qp)),
            (_, None) => None,
        };
        if known.is_none() {
            tables::count_at(ns, &dst, Counter::Unknown);
        }
    }

    fn refused(ns: NamespaceId, dst: &GidAddr) {
        tables::count_at(ns, dst, Counter::Malformed);
    }
}

/// A packet with a correct ICRC and sound headers.
struct Arrived {
    ns: NamespaceId,
    skb: RxSkb,
    dest_qpn: Qpn,
    class: Class,
}

/// What kind of packet it is.
#[derive(Clone, Copy)]
enum Class {
    /// Part of a message, or an answer.
    Message {
        transport: Transport,
        is_response: bool,
    },
    /// The peer's host tells that packets of ours met congestion.
    Cnp,
}

impl Arrived {
    fn check(ns: NamespaceId, skb: RxSkb) -> Result<Self, (RxSkb, Counter)> {
        let Some((covered, icrc)) = split_icrc(skb.payload()) else {
            return Err((skb, Counter::Malformed));
        };
        if tx::icrc(skb.headers(), covered) != Some(icrc) {
            report_icrc(ns, &skb);
            return Err((skb, Counter::BadIcrc));
        }
        let (dest_qpn, pkey, class) = if let Some(cnp) = Cnp::parse(covered) {
            (cnp.dest_qpn, cnp.pkey, Class::Cnp)
        } else if let Ok(packet) = Packet::parse(covered) {
            let class = Class::Message {
                transport: packet.opcode.transport,
                is_response: packet.opcode.is_response(),
            };
            (packet.bth.dest_qpn, packet.bth.pkey, class)
        } else {
            return Err((skb, Counter::Malformed));
        };
        if !pkey_matches(pkey, PKEY) {
            return Err((skb, Counter::BadPkey));
        }
        Ok(Arrived {
            ns,
            skb,
            dest_qpn,
            class,
        })
    }

    /// Hands a copy of the packet to every member of the group; `None` when there are none.
    fn deliver_to_group(mut self, group: &GidAddr) -> Option<()> {
        let mut qpns = [Qpn::default(); mcast::MAX_QPS];
        let count = mcast::members(self.ns, group, &mut qpns);
        let tables = tables::get()?;
        let qpns = qpns.get(..count).filter(|qpns| !qpns.is_empty())?;
        for &qpn in qpns {
            // A copy that there is no memory for is a lost datagram.
            if let Some(skb) = self.skb.share() {
                let copy = Arrived { skb, ..self };
                tables.qps.with(qpn.get(), |qp| copy.deliver(qp));
            }
        }
        Some(())
    }

    /// Hands the packet to `qp`, if it may have it. Whoever owns the side checks the addresses once more.
    fn deliver(self, qp: &WireQp) {
        let (fits, is_response) = match self.class {
            Class::Message {
                transport,
                is_response,
            } => {
                let fits = match transport {
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
            Class::Cnp => (qp.kind.is_reliable(), qp.kind != QpKind::XrcTgt),
        };
        let connection = match is_response {
            true => &qp.send_connection,
            false => &qp.recv_connection,
        };
        // What a stranger sends is not to wait in the queue pair's backlog.
        let is_known =
            || qp.kind.is_datagram() || connection.carries(&self.skb.src(), &self.skb.dst());
        if !fits || qp.ns() != self.ns || !is_known() {
            qp.device.count(Counter::Unknown, 1);
            return;
        }
        qp.device.count(Counter::ReceivedPackets, 1);
        qp.device
            .count(Counter::ReceivedBytes, self.skb.payload().len() as u64);
        if is_response {
            qp.response(self.skb);
        } else {
            qp.request(self.skb);
        }
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
