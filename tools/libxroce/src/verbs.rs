// SPDX-License-Identifier: GPL-2.0
//! The parts of libibverbs that are used: its public structures and constants ([`types`], [`attr`],
//! [`qp_ex`], [`cq_ex`]) and the command functions that it shares only with its providers
//! ([`cmd`]).
//!
//! The definitions are this library's own. `<infiniband/verbs.h>` and the system's manual pages say
//! what the members mean. Sizes and offsets are asserted.

pub mod attr;
pub mod cmd;
pub mod cq_ex;
pub mod qp_ex;
pub mod types;
pub mod wr;

pub use attr::*;
pub use cq_ex::*;
pub use qp_ex::*;
pub use types::*;
pub use wr::*;
