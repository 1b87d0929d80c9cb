// SPDX-License-Identifier: GPL-2.0

//! XRC between ib_core and a provider: domains, target QPs that outlive the process that made them,
//! and who hears of their events.
//!
//! ib_core destroys an XRC target QP with its last open handle. That is not what XRC promised: other
//! processes of the domain receive through it. Here the QP on the wire is an object of the
//! provider's, the *target*, that belongs to its [`Domain`]; every `ib_qp` of type `XRC_TGT` is only a
//! [`View`] of one. `Documentation/infiniband/xroce-xrc-lifetimes.rst` says why that works.
//!
//! The crate knows ib_core and XRC and no packet: the provider's part is the trait [`Target`].
//!
//! - `domain.rs`: domains, the targets in them, and how views are opened and closed;
//! - `life.rs`: when a target dies, as pure counting;
//! - `rcv_qp.rs`: targets that processes know by their number alone;
//! - `views.rs`: who hears of a target's events.

#![allow(unreachable_pub)]

const __LOG_PREFIX: &[u8] = b"xroce\0";

mod domain;
mod life;
pub mod rcv_qp;
mod views;

pub use domain::{
    Close,
    Domain,
    Target,
    View, //
};
pub use life::{
    Life,
    Outcome, //
};
pub use rcv_qp::Registration;
pub use views::{
    Listeners,
    Views, //
};
