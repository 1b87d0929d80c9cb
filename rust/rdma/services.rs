// SPDX-License-Identifier: GPL-2.0

//! Kernel services that crate `kernel` lacks and that a software RDMA device needs.
//!
//! Nothing in this room refers to `verbs`, nor to ib_core.

pub mod crc;
pub mod dim;
pub mod errno;
pub mod gated;
pub mod growth;
pub(crate) mod irq;
pub mod mem;
pub mod net;
pub mod owner;
pub mod percpu;
pub mod process;
pub mod random;
pub mod rcu;
pub mod ring;
pub mod sync;
mod threads;
pub mod timer;
pub mod work;
