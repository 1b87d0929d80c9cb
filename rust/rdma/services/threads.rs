// SPDX-License-Identifier: GPL-2.0

//! Types that may be shared between threads or sent to another thread, as far as this does not
//! depend on the type of the data inside. The compiler checks this whenever the crate is built.
//!
//! Types that must not be shared or sent are in `tests/refused.rs`.

#![allow(
    dead_code,
    reason = "rustc 1.85 does not count uses in constants without a name"
)]

use crate::{
    dim::Adaptive,
    gated::Gated,
    mem::{
        KernelAddr,
        Memory,
        OnDemand,
        PageList,
        Pinned,
        RingSlice, //
    },
    net::{
        Backlog,
        Namespace,
        NetDev,
        NetdevNotifier,
        Route,
        RxSkb,
        Tunnel,
        TxBatch,
        TxSkb, //
    },
    owner::{
        Owner,
        OwnerGuard, //
    },
    percpu::PerCpu,
    rcu::{
        Global,
        Ref,
        Reservation,
        Table, //
    },
    ring::RingMem,
    timer::Timer,
    work::{
        Services,
        Work, //
    },
};
use core::cell::Cell;

const fn both<T: Send + Sync>() {}
const fn send<T: Send>() {}

/// May be sent, but not shared.
type Unshared = Cell<u32>;

/// Held by users and wire objects in any thread.
const _: () = {
    both::<Adaptive>();
    both::<Backlog>();
    both::<KernelAddr>();
    both::<Memory>();
    both::<Namespace>();
    both::<NetDev>();
    both::<NetdevNotifier>();
    both::<OnDemand>();
    both::<PageList>();
    both::<PerCpu<1>>();
    both::<Pinned>();
    both::<RingMem>();
    both::<RingSlice>();
    both::<Route>();
    both::<RxSkb>();
    both::<Services>();
    both::<Timer>();
    both::<Tunnel>();
    both::<TxSkb>();
    both::<Work>();
    send::<TxBatch>();
};

/// As their data may be.
const _: () = {
    both::<Backlog<Unshared>>();
    both::<Gated<u32>>();
    both::<Global<u32>>();
    both::<Owner<Unshared>>();
    both::<OwnerGuard<'static, u32>>();
    both::<Ref<u32>>();
    both::<Reservation<'static, u32>>();
    both::<RxSkb<u32>>();
    both::<Table<u32>>();
    send::<Gated<Unshared>>();
    send::<OwnerGuard<'static, Unshared>>();
};
