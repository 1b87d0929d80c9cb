// SPDX-License-Identifier: GPL-2.0

//! Memory windows.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    bindings,
    object::object,
    pd::Pd,
    provider::Provider, //
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

object! {
    /// A memory window: `struct ib_mw` and the provider's data.
    pub struct Mw<P: Provider>(ib_mw, P::Mw) {}
}

impl<P: Provider> Mw<P> {
    /// The protection domain.
    pub fn pd(&self) -> &Pd<P> {
        // SAFETY: ib_core sets `pd` before the create operation and keeps the PD until the window
        // is gone (`pd->usecnt`).
        unsafe { Pd::from_raw((*self.as_raw()).pd) }
    }
}

/// Type of a memory window (`enum ib_mw_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MwType {
    /// Belongs to a protection domain; bound again and again.
    One,
    /// Type 2B: belongs to a queue pair while it is bound; invalidated before it is bound again.
    Two,
}

impl MwType {
    pub(crate) fn from_raw(raw: bindings::ib_mw_type) -> Result<Self> {
        match raw {
            bindings::ib_mw_type_IB_MW_TYPE_1 => Ok(Self::One),
            bindings::ib_mw_type_IB_MW_TYPE_2 => Ok(Self::Two),
            _ => Err(EINVAL),
        }
    }
}

/// A window that was made.
pub struct CreatedMw<T> {
    /// The provider's data.
    pub data: T,
    /// Remote key; it opens nothing before the window is bound.
    pub rkey: u32,
}
