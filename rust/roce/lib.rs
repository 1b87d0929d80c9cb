// SPDX-License-Identifier: GPL-2.0

//! The RoCEv2 transport as state machines without I/O.
//!
//! The inputs are work requests, packets and the time. The outputs are packets to send, bytes to
//! place, completions and the next deadline. Nothing here allocates, blocks, depends on a kernel or
//! a socket, or can panic. Every number that came from the wire or from a user is handled with
//! wrapping or checked arithmetic, every slice access can fail, and the storage that the caller
//! lends bounds every loop.
//!
//! - [`wire`]: one header per file; [`wire::Checked`], the one check of a received packet; and
//!   [`wire::Packet`], a packet that passed it;
//! - [`requester`] and [`responder`]: the two ends of a connection, for packets and for delivery
//!   within a host; [`ud`]: datagrams; [`xrc`]: the SRQ of a request;
//! - [`tm`]: tag matching, which receive takes a message;
//! - [`psn`], [`number`], [`key`], [`opcode`], [`mtu`], [`icrc`], [`status`]: definitions that both
//!   ends share;
//! - [`window`], [`congestion`], [`retry`], [`rnr`], [`rtt`]: the amount of data in flight,
//!   congestion control, retries, and waiting times; [`ask_limit`]: packets to silent peers;
//! - [`event`]: when a completion raises an event; [`ticks`]: when a send ring is looked at while
//!   no doorbell rings for it.
//!
//! The same files are built in two ways: under Kbuild (`--cfg kernel`), and as an ordinary cargo
//! crate, which contains the tests, the simulator and the fuzz targets.
//!
//! Times are `u64` nanoseconds of any monotonic clock. Functions may be called in any context. The
//! owner of an object must not call functions of this object from two places at the same time.
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

pub mod ask_limit;
pub mod bandwidth;
pub mod congestion;
pub mod event;
pub mod icrc;
pub mod key;
pub mod losses;
pub mod mtu;
pub mod number;
pub mod opcode;
pub mod psn;
pub mod requester;
pub mod responder;
pub mod retry;
pub mod rnr;
pub mod rtt;
pub mod status;
pub mod ticks;
pub mod tm;
pub mod ud;
pub mod window;
pub mod wire;
pub mod xrc;
