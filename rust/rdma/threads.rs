// SPDX-License-Identifier: GPL-2.0

//! Types that may be shared between threads or sent to another thread, as far as this does not
//! depend on the type of the data inside. The compiler checks this whenever the crate is built.
//!
//! Types that must not be shared or sent are in `tests/refused.rs`.

use crate::{
    ah::Ah,
    cq::Cq,
    device::{
        Device,
        DeviceRef,
        IbDevice, //
    },
    dim::Adaptive,
    dm::Dm,
    events::{
        CqHandle,
        QpHandle,
        SrqHandle, //
    },
    gated::Gated,
    link::{
        LinkOps,
        Registration, //
    },
    mem::{
        KernelAddr,
        Memory,
        OnDemand,
        PageList,
        RingSlice,
        Umem, //
    },
    mr::Mr,
    mw::Mw,
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
    pd::Pd,
    percpu::PerCpu,
    provider::Provider,
    qp::Qp,
    rcu::{
        Global,
        Ref,
        Reservation,
        Table, //
    },
    restrack::TrackedQp,
    ring::RingMem,
    srq::Srq,
    stats::CounterDesc,
    timer::Timer,
    ucontext::UContext,
    uverbs::{
        file::FileEvents,
        mmap::RingMapping, //
    },
    vector::Vectors,
    work::{
        Services,
        Work, //
    },
    xrcd::Xrcd, //
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
    both::<CounterDesc>();
    both::<CqHandle>();
    both::<FileEvents>();
    both::<IbDevice>();
    both::<KernelAddr>();
    both::<Memory>();
    both::<Namespace>();
    both::<NetDev>();
    both::<NetdevNotifier>();
    both::<OnDemand>();
    both::<PageList>();
    both::<PerCpu<1>>();
    both::<QpHandle>();
    both::<RingMapping>();
    both::<RingMem>();
    both::<RingSlice>();
    both::<Route>();
    both::<RxSkb>();
    both::<Services>();
    both::<SrqHandle>();
    both::<Timer>();
    both::<Tunnel>();
    both::<TxSkb>();
    both::<Umem>();
    both::<Vectors>();
    both::<Work>();
    send::<TxBatch>();
};

/// As their data may be.
const _: () = {
    both::<Gated<u32>>();
    both::<Global<u32>>();
    both::<Owner<Unshared>>();
    both::<OwnerGuard<'static, u32>>();
    both::<Ref<u32>>();
    both::<Reservation<'static, u32>>();
    both::<Table<u32>>();
    send::<Gated<Unshared>>();
    send::<OwnerGuard<'static, Unshared>>();
};

/// The objects of a provider, whose data are `Send + Sync`.
#[expect(dead_code, reason = "compiling it is the test")]
const fn objects<P: Provider, L: LinkOps<P>>() {
    both::<Ah<P>>();
    both::<Cq<P>>();
    both::<Device<P>>();
    both::<DeviceRef<P>>();
    both::<Dm<P>>();
    both::<Mr<P>>();
    both::<Mw<P>>();
    both::<Pd<P>>();
    both::<Qp<P>>();
    both::<Registration<P, L>>();
    both::<Srq<P>>();
    both::<TrackedQp<P>>();
    both::<UContext<P>>();
    both::<Xrcd<P>>();
}
