// SPDX-License-Identifier: GPL-2.0

//! Two nodes and a bad network, in virtual time.
//!
//! A seed determines everything: the path MTU, the window, the queue sizes, the work requests,
//! which packets the network loses, duplicates, reorders and corrupts, and when receives are
//! posted. A model that does not know about packets says what the result must be: each message
//! arrives once, complete and in order; the memory is as if the requests had been executed one
//! after the other; each completion comes once and in order; and afterwards nothing more is sent.
//!
//! Sequence numbers begin near the end of their space, or near the end of its first half. Several
//! times per simulation, both sides come to rest and then skip so many numbers that the space wraps
//! around, as after a long time without errors.

#![allow(dead_code, reason = "each test uses another part")]

pub mod build;
pub mod crc;
pub mod flow;
pub mod fuzz;
pub mod network;
pub mod node;
pub mod rng;
pub mod run;
pub mod wire;
pub mod wires;
pub mod workload;
