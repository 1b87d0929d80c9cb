// SPDX-License-Identifier: GPL-2.0

//! The number spaces of the module.
//!
//! Packets and work requests name objects by number. Each kind of object has one table for all
//! devices. A number is therefore unique in the module, and the queue pair of a packet can be found
//! without knowing the device.

use crate::ah::WireAh;
use crate::cq::WireCq;
use crate::mcast;
use crate::mr::WireMr;
use crate::mw::WireMw;
use crate::prelude::*;
use rdma::rcu::{
    Global,
    KeyTable, //
};
use xrc::Srqs;

/// First QP number that is given out. 0 and 1 are the management QPs; 2..16 are kept free so that
/// a number that a person sees is never mistaken for one of them.
const FIRST_QPN: u32 = 16;
/// QP numbers have 24 bits; the last one means multicast.
const MAX_24BIT: u32 = 0x00ff_ffff;

/// First number of a memory window; those of regions are below.
pub(crate) const FIRST_MW: u32 = 1 << 23;

/// All tables.
#[pin_data]
pub struct Tables {
    /// Queue pairs by number. GSI QPs have a number here as well; a packet for QP 1 finds it
    /// through its device.
    #[pin]
    pub qps: Table<WireQp>,
    /// Shared receive queues, XRC and basic, by number.
    #[pin]
    pub srqs: Srqs<WireSrq>,
    /// Memory regions by the upper 24 bits of their keys.
    #[pin]
    pub mrs: KeyTable<WireMr>,
    /// Memory windows by the upper 24 bits of their keys, of which the highest tells them from
    /// regions.
    #[pin]
    pub mws: Table<WireMw>,
    /// Address handles of user space by number.
    #[pin]
    pub ahs: Table<WireAh>,
    /// Completion queues whose events were ever held back.
    #[pin]
    pub cqs: Table<WireCq>,
    /// Members of multicast groups.
    #[pin]
    pub groups: SpinLockIrq<mcast::Members>,
    /// The GSI QP of each device, by the number that it has in `qps`.
    #[pin]
    gsis: Table<WireQp>,
}

static TABLES: Global<Tables> = Global::new();

/// Makes the tables; once, when the module is loaded.
///
/// # Errors
///
/// ENOMEM.
pub fn init() -> Result {
    TABLES.init(try_pin_init!(Tables {
        qps <- Table::new(FIRST_QPN..MAX_24BIT),
        srqs <- Srqs::new(),
        mrs <- KeyTable::new(1..FIRST_MW),
        mws <- Table::new(FIRST_MW..MAX_24BIT),
        ahs <- Table::new(1..MAX_24BIT),
        cqs <- Table::new(1..MAX_24BIT),
        groups <- new_spinlock_irq!(KVec::new(), "xroce groups"),
        gsis <- Table::new(FIRST_QPN..MAX_24BIT),
    }? Error))?;
    Ok(())
}

/// The tables. `None` only before the module is loaded, so callers treat it like an unknown
/// number. Any context.
pub fn get() -> Option<&'static Tables> {
    TABLES.get()
}

/// The tables, for the control path.
///
/// # Errors
///
/// ENODEV before the module is loaded.
pub fn tables() -> Result<&'static Tables> {
    get().ok_or(ENODEV)
}

/// Runs `f` on QP 1 of the device that has address `dst` in namespace `ns`. Any context, under RCU:
/// `f` must not sleep. No lock: whoever sends packets to the host decides how often this is asked.
pub(crate) fn with_gsi<R>(
    ns: NamespaceId,
    dst: &GidAddr,
    f: impl FnOnce(&WireQp) -> R,
) -> Option<R> {
    let mut f = Some(f);
    get()?.gsis.find(|_, qp| {
        if qp.device.ns() != ns || !qp.device.owns(dst) {
            return None;
        }
        f.take().map(|f| f(qp))
    })
}

/// Counts for the device that has address `dst` in namespace `ns`, if there is one that serves the
/// connection manager. Any context.
pub(crate) fn count_at(ns: NamespaceId, dst: &GidAddr, counter: Counter) {
    with_gsi(ns, dst, |qp| qp.device.count(counter, 1));
}

/// Enters the GSI QP of a device. Process context.
///
/// # Errors
///
/// ENODEV before the module is loaded; EBUSY when the number is taken; ENOMEM.
pub fn add_gsi(qp: Ref<WireQp>) -> Result {
    tables()?.gsis.reserve_at(qp.qpn.get())?.publish(qp);
    Ok(())
}

/// Takes a GSI QP out again. Process context.
pub(crate) fn remove_gsi(qp: &WireQp) {
    if let Some(tables) = get() {
        drop(tables.gsis.remove(qp.qpn.get()));
    }
}
