// SPDX-License-Identifier: GPL-2.0

//! XRC domains.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::{
    object::object,
    provider::Provider, //
};
use kernel::types::Opaque;

object! {
    /// An XRC domain: `struct ib_xrcd` and the provider's data.
    ///
    /// uverbs shares one among all processes that open the same inode.
    pub struct Xrcd<P: Provider>(ib_xrcd, P::Xrcd) {}
}
