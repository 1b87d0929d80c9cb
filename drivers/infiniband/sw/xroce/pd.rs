// SPDX-License-Identifier: GPL-2.0

//! Protection domains: numbers that keys and queues are compared by.

use crate::limits::{
    Charge,
    Kind, //
};
use crate::prelude::*;

/// The next number. 64 bits never come round, so a number means one protection domain for ever.
static NEXT: Atomic<u64> = Atomic::new(1);

/// What ib_core's PD holds.
pub(crate) struct PdData {
    id: u64,
    _charge: Charge,
}

impl PdData {
    /// Makes a protection domain. ENOMEM when the device has as many as it can.
    pub(crate) fn new(device: &Arc<WireDevice>) -> Result<Self> {
        Ok(PdData {
            id: NEXT.fetch_add(1, Relaxed),
            _charge: Charge::new(device, Kind::Pd)?,
        })
    }

    /// Its number; never 0.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}
