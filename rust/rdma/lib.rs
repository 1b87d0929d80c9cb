// SPDX-License-Identifier: GPL-2.0

//! Safe abstractions for RDMA drivers, and the kernel services that a software RDMA driver needs.
//!
//! The crate has two halves:
//!
//! - The interface to ib_core and uverbs. A driver implements [`provider::Provider`], allocates a
//!   [`device::UnregisteredDevice`], registers it, and lets users add devices by
//!   [`link::Registration`].
//! - Services that crate `kernel` lacks: locks for softirq and interrupt context, tables read under
//!   RCU, sk_buffs, UDP tunnel sockets, routes, timers, pinned user memory.
//!
//! The first half (`verbs/`) has one file for each verbs object, `ops/` with the functions that
//! ib_core calls, and `uverbs/` for features that only processes need. In the second half
//! (`services/`), these are the best files to begin with: `rcu/` (tables and references),
//! `owner.rs` (exclusive use without waiting), `ring.rs` (memory shared with a process), `mem/`
//! (registered memory) and `net/`. `irq.rs` contains the interrupts that `vector.rs` uses.
//! `work.rs` starts and stops all services.
//!
//! Where a step needs C, its file stands beside the Rust half. One-line functions are in
//! `rust/helpers`.
//!
//! All `unsafe` code of the module is in this crate. Everything that it exports is sound however
//! safe code uses it: the crates above are compiled with `-Funsafe_code`.

#![crate_name = "rdma"]

/// Prefix of this crate's log lines; `module!` defines it for the crate that is the module.
const __LOG_PREFIX: &[u8] = b"xroce\0";

mod bindings;

mod services;
mod verbs;

// Users of the crate name a module without its room.
pub use services::{
    crc,
    dim,
    errno,
    gated,
    growth,
    mem,
    net,
    owner,
    percpu,
    process,
    random,
    rcu,
    ring,
    sync,
    timer,
    work, //
};
pub use verbs::{
    ah,
    cq,
    device,
    dm,
    events,
    gid,
    link,
    mr,
    mw,
    pd,
    pma,
    port,
    provider,
    qp,
    restrack,
    srq,
    stats,
    ucontext,
    uverbs,
    vector,
    wr,
    xrcd, //
};

use services::irq;
use verbs::{
    object,
    ops, //
};
