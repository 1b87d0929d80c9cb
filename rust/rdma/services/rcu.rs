// SPDX-License-Identifier: GPL-2.0

//! Objects that softirq looks up by number, and that are freed one grace period after their last
//! use.
//!
//! [`Table`] maps numbers to [`Ref`]s. A packet finds its object with [`Table::with`], under RCU
//! and without changing a reference count. Dropping the last [`Ref`], in whatever context, only
//! queues the object. The object is dropped after a grace period, in process context, where
//! destructors may sleep.
//!
//! C headers: `include/linux/rcupdate.h`, `include/linux/xarray.h`.

mod global;
mod keys;
mod reference;
mod table;

use kernel::alloc::{
    flags::GFP_KERNEL_ACCOUNT,
    Flags, //
};

pub(crate) use reference::deferred_drops;

pub use {
    global::Global,
    keys::{
        KeyRef,
        KeyReservation,
        KeyTable, //
    },
    reference::Ref,
    table::{
        Reservation,
        Table, //
    },
};

pub use kernel::sync::rcu::{
    read_lock,
    Guard, //
};

/// Waits until every RCU reader that reads now is done. Process context, sleeps.
pub fn synchronize() {
    // SAFETY: Process context, by contract.
    unsafe { crate::bindings::xrdma_wait_for_readers() };
}

/// The allocation flags of every object that a process can have made: may sleep, and is charged to
/// the memory cgroup of the caller.
pub const GFP_ACCOUNT: Flags = GFP_KERNEL_ACCOUNT;
