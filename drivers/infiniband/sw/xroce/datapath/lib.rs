// SPDX-License-Identifier: GPL-2.0

//! The lower layer of the device: the objects that packets and rings refer to, and how they work.
//!
//! The objects of ib_core, which the crate above contains, refer to objects here. Packets find
//! these objects by number. The objects drive the state machines of crate `roce` with work requests
//! from the rings and with packets from the UDP sockets. Nothing here refers to an object of
//! ib_core.
//!
//! - Shared by all objects: `device.rs`, `tables.rs` (numbers), `limits.rs`, `counters.rs`,
//!   `params.rs`.
//! - Queue pairs: `qp/engine.rs` decides which context runs which direction, `qp/send.rs` and
//!   `qp/receive.rs` are the two directions, `qp/drain.rs` handles errors and teardown, `ud.rs`
//!   handles datagrams, and `local.rs` delivers messages within the host.
//! - Formats and memory: `abi.rs` (layouts), `wr/` (slots and completions), `qp/request.rs`
//!   (decoded work requests), `qp/ring.rs` (reading rings), `access.rs` (gather and scatter),
//!   `mr.rs`, `mw.rs` (keys).
//! - Tag matching: `tm/`.
//! - Packets: `rx.rs` receives, `tx.rs` sends.
//!
//! Completion events leave through the completion vectors of crate `rdma`.

const __LOG_PREFIX: &[u8] = b"xroce\0";

pub mod abi;
mod access;
pub mod ah;
mod ask_limit;
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
