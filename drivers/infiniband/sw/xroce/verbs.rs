// SPDX-License-Identifier: GPL-2.0

//! The functions that ib_core calls: the operations of the device and the objects that it holds.
//!
//! `provider.rs` is the operations table. `link.rs` implements `rdma link` and reacts to changes of
//! net devices. Each of the other files implements one kind of object. An object here refers to an
//! object of crate `datapath`, which packets and rings find and which outlives it.

pub(crate) mod advise;
pub(crate) mod ah;
pub(crate) mod context;
pub(crate) mod cq;
pub(crate) mod device;
pub(crate) mod dm;
pub(crate) mod link;
pub(crate) mod mcast;
pub(crate) mod mr;
pub(crate) mod mw;
pub(crate) mod pd;
pub(crate) mod port;
pub(crate) mod post;
pub(crate) mod provider;
pub(crate) mod qp;
pub(crate) mod srq;
pub(crate) mod tm;
pub(crate) mod xrc;

use crate::prelude::*;
use rdma::uverbs::mmap::RingMapping;

/// Describes a ring for user space.
pub(crate) fn ring_info(
    mem: &RingMem,
    mapping: &RingMapping,
    entries: u32,
    stride: u32,
) -> abi::xroce_ring_info {
    abi::xroce_ring_info {
        offset: mapping.offset(),
        size: u32::try_from(mem.len()).unwrap_or(0),
        entries,
        stride,
        reserved: 0,
    }
}
