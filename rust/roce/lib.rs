// SPDX-License-Identifier: GPL-2.0

//! The RoCEv2 transport as state machines without I/O.
//!
//! Work requests, packets and the time go in; packets to send, bytes to place,
//! completions and the next deadline come out. Nothing here allocates, blocks,
//! knows a kernel or a socket, or can panic: every number that came from the
//! wire or from a user is handled with wrapping or checked arithmetic, every
//! slice access can fail, every loop is bounded by storage that the caller
//! lent.
//!
//! - [`wire`]: one header a file, and [`wire::Packet`], a packet with its
//!   headers checked against its opcode;
//! - [`requester`] and [`responder`]: the two ends of a connection, for packets
//!   and for delivery within a host; [`ud`]: datagrams; [`xrc`]: which SRQ;
//! - [`tm`]: which receive takes a message, by its tag;
//! - [`psn`], [`opcode`], [`mtu`], [`icrc`], [`status`]: what both share;
//! - [`window`], [`congestion`], [`retry`], [`rnr`]: how much, how often, how
//!   long;
//! - [`event`]: when a completion raises an event.
//!
//! The same files build in two worlds: under Kbuild (`--cfg kernel`), and as an
//! ordinary cargo crate in which the tests, the simulator and the fuzz targets
//! live.
//!
//! Times are `u64` nanoseconds of any monotonic clock. Functions may be called
//! in any context; whoever owns an object calls it from one place at a time.
//!
//! "IBTA" stands for the InfiniBand Architecture Specification, volume 1.

#![crate_name = "roce"]
#![cfg_attr(not(any(kernel, test)), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]
// Tests say what they mean; a panic in them is a failure.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::incompatible_msrv,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::todo,
        clippy::unimplemented,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

pub mod congestion;
pub mod event;
pub mod icrc;
pub mod mtu;
pub mod opcode;
pub mod psn;
pub mod requester;
pub mod responder;
pub mod retry;
pub mod rnr;
pub mod status;
pub mod tm;
pub mod ud;
pub mod window;
pub mod wire;
pub mod xrc;
