// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.

pub(crate) mod create;
pub(crate) mod destroy;
pub(crate) mod modify;
pub(crate) mod query;

use super::xrc::Tgt;
use crate::prelude::*;
use datapath::limits::Charge;

/// What ib_core's QP holds: the object on the wire.
pub(crate) struct QpData {
    /// The object on the wire. Several views of an XRC target hold the same one.
    pub(crate) wire: Ref<WireQp>,
    /// This QP is a view of an XRC target.
    pub(crate) view: Option<::xrc::View<Tgt>>,
    /// What a further view of an XRC target counts as.
    pub(crate) _charge: Option<Charge>,
    /// Mappings of the rings; dropped with the QP.
    pub(crate) _mappings: [Option<rdma::uverbs::mmap::RingMapping>; 2],
}
