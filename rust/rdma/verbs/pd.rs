// SPDX-License-Identifier: GPL-2.0

//! Protection domains.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    object::object,
    provider::Provider, //
};
use kernel::types::Opaque;

object! {
    /// A protection domain: `struct ib_pd` and the provider's data.
    pub struct Pd<P: Provider>(ib_pd, P::Pd) {}
}
