// SPDX-License-Identifier: GPL-2.0

//! Protection domains: numbers that keys and queues are compared by.

use crate::limits::{
    Charge,
    Kind, //
};
use crate::prelude::*;

/// The next number. 64 bits never come round, so a number means one protection domain for ever.
static NEXT: Atomic<u64> = Atomic::new(1);

/// Says that memory which is not pinned has been registered somewhere, so that who may use it must be
/// able to sleep. It is never taken back.
pub(crate) struct Sleeps(Atomic<u32>);

impl Sleeps {
    pub(crate) fn new() -> Self {
        Sleeps(Atomic::new(0))
    }

    /// Whether it was said. Any context.
    pub(crate) fn get(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// Says it.
    fn set(&self) {
        self.0.xchg(1, Full);
    }
}

/// A protection domain, as queues and regions see it.
pub(crate) struct WirePd {
    id: u64,
    sleeps: Sleeps,
    /// Nobody runs any more who began before `sleeps` was said.
    settled: Atomic<u32>,
}

impl WirePd {
    /// Some of its regions are not pinned.
    pub(crate) fn sleeps(&self) -> bool {
        self.sleeps.get()
    }
}

/// What ib_core's PD holds.
pub(crate) struct PdData {
    wire: Arc<WirePd>,
    _charge: Charge,
}

impl PdData {
    /// Makes a protection domain. ENOMEM when the device has as many as it can.
    pub(crate) fn new(device: &Arc<WireDevice>) -> Result<Self> {
        let charge = Charge::new(device, Kind::Pd)?;
        let wire = WirePd {
            id: NEXT.fetch_add(1, Relaxed),
            sleeps: Sleeps::new(),
            settled: Atomic::new(0),
        };
        Ok(PdData {
            wire: Arc::new(wire, GFP_ACCOUNT)?,
            _charge: charge,
        })
    }

    /// Its number; never 0.
    pub(crate) fn id(&self) -> u64 {
        self.wire.id
    }

    /// The part that queues keep.
    pub(crate) fn wire(&self) -> &Arc<WirePd> {
        &self.wire
    }

    /// A region that is not pinned is about to be made: when this returns, every run of a queue pair
    /// that could meet it may sleep. Process context, sleeps.
    pub(crate) fn prepare_to_sleep(&self, device: &WireDevice) {
        device.sleeps().set();
        self.wire.sleeps.set();
        // Another caller may have said it a moment ago and still be waiting: so does this one.
        if self.wire.settled.load(Acquire) == 0 {
            // Runs that must not sleep are RCU readers, and those that begin now see what was said.
            rdma::rcu::synchronize();
            self.wire.settled.store(1, Release);
        }
    }
}
