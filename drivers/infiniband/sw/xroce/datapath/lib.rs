// SPDX-License-Identifier: GPL-2.0

//! What packets and rings find: the objects on the wire and how they work.
//!
//! The lower storey of the device. ib_core's objects, which the crate above has, refer to objects here;
//! packets find them by number, and they drive the state machines of crate `roce` with work requests from
//! the rings and packets from the UDP sockets. Nothing here names ib_core's objects.
//!
//! - Shared by all objects: `device.rs`, `tables.rs` (numbers), `limits.rs`, `counters.rs`, `params.rs`.
//! - Queue pairs at work: `qp/engine.rs` says who runs what and where, `qp/send.rs` and
//!   `qp/receive.rs` are the two directions, `qp/drain.rs` their ends, `ud.rs` datagrams, `local.rs`
//!   delivery within the host.
//! - Formats and memory: `abi.rs` (layouts), `wr/` (slots and completions), `qp/request.rs` (what comes
//!   out), `qp/ring.rs` (reading rings), `access.rs` (gather and scatter), `mr.rs`, `mw.rs` (keys).
//! - Tag matching: `tm/`.
//! - Packets: `rx.rs` in, `tx.rs` out.
//!
//! Completion events leave through crate `rdma`'s vectors.

#![allow(unreachable_pub)]

const __LOG_PREFIX: &[u8] = b"xroce\0";

pub mod abi;
mod access;
pub mod ah;
pub mod counters;
pub mod cq;
pub mod device;
pub mod limits;
mod local;
mod log_limit;
pub mod mcast;
pub mod mr;
pub mod mtu;
pub mod mw;
pub mod params;
pub mod pd;
pub mod prelude;
pub mod qp;
pub mod rx;
pub mod srq;
pub mod tables;
pub mod tm;
pub mod tx;
mod ud;
pub mod wr;
