// SPDX-License-Identifier: GPL-2.0

//! The network below RoCEv2: devices, namespaces, UDP sockets, routes and packets.
//!
//! Packets arrive through a [`Tunnel`], which hands them to its [`Receiver`] in softirq. They leave
//! along a [`Route`] in a [`TxBatch`]. This module does not look at the contents of the UDP
//! payload.
//!
//! C headers: `include/linux/skbuff.h`, `include/net/udp_tunnel.h`, `include/net/route.h`.

mod addr;
mod arrival;
mod backlog;
pub(crate) mod icrc;
mod namespace;
mod netdev;
mod queue;
mod route;
mod rx;
mod sender;
mod train;
mod tunnel;
mod tx;

pub use {
    addr::GidAddr,
    arrival::{
        other_cpu,
        Arrival,
        Arrivals,
        Due,
        Peek, //
    },
    backlog::Backlog,
    icrc::Icrc,
    namespace::{
        Namespace,
        NamespaceId, //
    },
    netdev::{
        NetDev,
        NetdevEvent,
        NetdevEvents,
        NetdevNotifier, //
    },
    route::{
        Flow,
        Route, //
    },
    rx::RxSkb,
    sender::Sender,
    train::TxTrain,
    tunnel::{
        Receiver,
        Tunnel, //
    },
    tx::{
        Flushed,
        Joining,
        TxBatch,
        TxSkb, //
    },
};
