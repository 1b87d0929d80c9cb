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
    dm::Dm,
    events::{
        CqHandle,
        QpHandle,
        SrqHandle, //
    },
    link::{
        LinkOps,
        Registration, //
    },
    mr::Mr,
    mw::Mw,
    pd::Pd,
    provider::Provider,
    qp::Qp,
    restrack::TrackedQp,
    srq::Srq,
    stats::CounterDesc,
    ucontext::UContext,
    uverbs::{
        file::FileEvents,
        mmap::RingMapping, //
    },
    vector::Vectors,
    xrcd::Xrcd, //
};

const fn both<T: Send + Sync>() {}

/// Held by users and wire objects in any thread.
const _: () = {
    both::<CounterDesc>();
    both::<CqHandle>();
    both::<FileEvents>();
    both::<IbDevice>();
    both::<QpHandle>();
    both::<RingMapping>();
    both::<SrqHandle>();
    both::<Vectors>();
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
