// SPDX-License-Identifier: GPL-2.0

//! Protection domains: numbers that decide whether a key may be used with a queue.

use crate::prelude::*;

/// The next number. 64 bits never come round, so a number means one protection domain for ever.
static NEXT: Atomic<u64> = Atomic::new(1);

/// The number of a protection domain. Only [`WirePd::new`] makes one that belongs to a domain.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct PdId(u64);

impl PdId {
    /// No protection domain: nothing that a key or an address handle names belongs to it.
    pub(crate) const NONE: Self = PdId(0);
}

/// Says that on-demand memory has been registered somewhere, so a context that may access it must
/// be able to sleep. It is never reset.
pub struct Sleeps(Atomic<u32>);

impl Sleeps {
    /// Nothing was said.
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
pub struct WirePd {
    id: PdId,
    sleeps: Sleeps,
    /// Nobody runs any more who began before `sleeps` was said.
    settled: Atomic<u32>,
}

impl WirePd {
    /// Makes a protection domain. Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM.
    pub fn new() -> Result<Arc<Self>> {
        let wire = WirePd {
            id: PdId(NEXT.fetch_add(1, Relaxed)),
            sleeps: Sleeps::new(),
            settled: Atomic::new(0),
        };
        Ok(Arc::new(wire, GFP_ACCOUNT)?)
    }

    /// Its number; never [`PdId::NONE`].
    pub fn id(&self) -> PdId {
        self.id
    }

    /// An on-demand region is about to be created: when this returns, every run of a queue pair
    /// that could meet it may sleep. Process context, sleeps.
    pub fn prepare_to_sleep(&self, device: &WireDevice) {
        device.sleeps().set();
        self.sleeps.set();
        // Another caller may have said it a moment ago and still be waiting: so does this one.
        if self.settled.load(Acquire) == 0 {
            // Runs that must not sleep are RCU readers, and those that begin now see what was said.
            rdma::rcu::synchronize();
            self.settled.store(1, Release);
        }
    }

    /// Some of its regions are on-demand memory.
    pub(crate) fn sleeps(&self) -> bool {
        self.sleeps.get()
    }
}
