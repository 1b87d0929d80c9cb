// SPDX-License-Identifier: GPL-2.0

//! Protection domains.

use crate::prelude::*;
use datapath::limits::{
    Charge,
    Kind, //
};
use datapath::pd::WirePd;

/// What ib_core's PD holds.
pub(crate) struct PdData {
    wire: Arc<WirePd>,
    _charge: Charge,
}

impl PdData {
    /// Makes a protection domain. ENOMEM when the device has as many as it can.
    pub(crate) fn new(device: &Arc<WireDevice>) -> Result<Self> {
        let charge = Charge::new(device, Kind::Pd)?;
        Ok(PdData {
            wire: WirePd::new()?,
            _charge: charge,
        })
    }

    /// Its number; never that of no domain.
    pub(crate) fn id(&self) -> PdId {
        self.wire.id()
    }

    /// The part that queues keep.
    pub(crate) fn wire(&self) -> &Arc<WirePd> {
        &self.wire
    }
}
