// SPDX-License-Identifier: GPL-2.0

//! The interface to ib_core and uverbs.

pub mod ah;
pub mod cq;
pub mod device;
pub mod dm;
pub mod events;
pub mod gid;
pub mod link;
pub mod mr;
pub mod mw;
pub(crate) mod object;
pub(crate) mod ops;
pub mod pd;
pub mod pma;
pub mod port;
pub mod provider;
pub mod qp;
pub mod restrack;
pub mod srq;
pub mod stats;
mod threads;
pub mod ucontext;
mod umem;
pub mod uverbs;
pub mod vector;
pub mod wr;
pub mod xrcd;
