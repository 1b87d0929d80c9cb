// SPDX-License-Identifier: GPL-2.0

//! XRC between ib_core and a provider: domains, the SRQs that belong to them, target QPs that
//! outlive the process that created them, and the recipients of their events.
//!
//! ib_core destroys an XRC target QP together with its last open handle. This is not what XRC
//! specifies, because other processes of the domain receive through this QP. In this crate, the QP
//! on the wire is an object of the provider, the *target*, which belongs to its [`Domain`]. Every
//! `ib_qp` of type `XRC_TGT` is only a [`View`] of a target.
//! `Documentation/infiniband/xroce-xrc-lifetimes.rst` explains why this works.
//!
//! The crate depends on ib_core and XRC, but does not handle packets. A provider implements the
//! traits of `provider.rs`, [`Target`] for its queue pair, and [`SharedQueue`] for its SRQ.
//!
//! - `provider.rs`: what a provider plugs in, and what ib_core's operations call with it;
//! - `domain.rs`: domains, the targets in them, and how views are opened and closed;
//! - `srq.rs`: which domain an SRQ belongs to, its number, and who may use it;
//! - `life.rs`: the rules for the end of a target, as pure counting;
//! - `rcv_qp.rs`: targets that processes know only by their number;
//! - `views.rs`: the recipients of a target's events.

const __LOG_PREFIX: &[u8] = b"xroce\0";

mod domain;
mod life;
mod provider;
pub mod rcv_qp;
mod srq;
mod views;

pub use domain::{
    Domain,
    Target,
    View, //
};
pub use life::{
    Life,
    Outcome, //
};
pub use provider::{
    open_target,
    Counted,
    OpenDomain,
    OpenTarget,
    RcvQpProvider,
    XrcProvider, //
};
pub use rcv_qp::Registration;
pub use srq::{
    Member,
    SharedQueue,
    SrqReservation,
    Srqs,
    XrcSrq, //
};
pub use views::{
    Listeners,
    Views, //
};
