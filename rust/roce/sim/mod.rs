// SPDX-License-Identifier: GPL-2.0

//! Two nodes and a bad network, in virtual time.
//!
//! Everything follows from a seed: the path MTU, the window, the queue sizes,
//! the work requests, what the network loses, repeats, swaps and spoils, when
//! receives are posted. A model that knows no packets says what must come out:
//! each message once, whole, in order; the memory as if the requests had been
//! executed one after the other; each completion once, in order; and silence
//! afterwards.
//!
//! Sequence numbers begin near the end of their space, or of its first half.
//! Several times a run both sides come to rest and then skip so many numbers
//! that the space comes round, as after a long time without trouble.

#![allow(dead_code)]

pub mod build;
pub mod crc;
pub mod fuzz;
pub mod network;
pub mod node;
pub mod rng;
pub mod run;
pub mod workload;
