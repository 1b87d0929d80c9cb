// SPDX-License-Identifier: GPL-2.0

//! Address handles: the destinations of datagrams.

use crate::prelude::*;
use crate::tables;
use crate::tx::{
    Av,
    Path, //
};
use kernel::alloc::Flags;
use rdma::ah::AhAttr;
use rdma::gid::GidKind;
use roce::congestion;

/// An address handle, as work requests see it.
#[pin_data]
pub struct WireAh {
    pd: PdId,
    #[pin]
    address: SpinLockBh<Address>,
}

/// Where it leads.
struct Address {
    path: Path,
    /// As it was asked for, for queries.
    attr: AhAttr,
}

impl Address {
    /// EINVAL without a RoCEv2 source.
    fn new(attr: &AhAttr) -> Result<Self> {
        let mut path = Path::default();
        path.set(address(attr, Qpn::default(), Qpn::default())?);
        Ok(Address { path, attr: *attr })
    }
}

impl WireAh {
    /// Makes an address handle of protection domain `pd`. EINVAL without a RoCEv2 source. Any
    /// context that `flags` allow.
    ///
    /// # Errors
    ///
    /// EINVAL if the address is not a valid RoCEv2 one with a source; ENOMEM.
    pub fn new(pd: PdId, attr: &AhAttr, flags: Flags) -> Result<Ref<Self>> {
        let address = Address::new(attr)?;
        Ref::pin_init(
            try_pin_init!(WireAh {
                pd,
                address <- new_spinlock_bh!(address, "xroce ah"),
            }? Error),
            flags,
        )
    }

    /// Gives it another address; errors as for [`WireAh::new`]. Softirq or process context.
    ///
    /// # Errors
    ///
    /// EINVAL as for [`WireAh::new`].
    pub fn set(&self, attr: &AhAttr) -> Result {
        let address = Address::new(attr)?;
        let old = core::mem::replace(&mut *self.address.lock(), address);
        // With its route, outside the lock.
        drop(old);
        Ok(())
    }

    /// The address, as it was asked for. Context as for [`WireAh::set`].
    pub fn attr(&self) -> AhAttr {
        self.address.lock().attr
    }

    /// Runs `f` with the route to the address, for a datagram from the first QP number of `flow` to
    /// the second. Softirq or process context; `f` must not sleep.
    pub(crate) fn with_route<R>(
        &self,
        tunnel: &Tunnel,
        flow: (Qpn, Qpn),
        f: impl FnOnce(&mut Route) -> R,
    ) -> Result<R> {
        let mut address = self.address.lock();
        let sport = address.attr.udp_source_port(flow.0.get(), flow.1.get());
        let route = address.path.route(tunnel)?;
        route.set_source_port(sport);
        Ok(f(route))
    }
}

/// Runs `f` on address handle `number`, if it is one of protection domain `pd`. Any context.
pub(crate) fn with<R>(number: u32, pd: PdId, f: impl FnOnce(&WireAh) -> R) -> Option<R> {
    tables::get()?
        .ahs
        .with(number, |ah| (ah.pd == pd).then(|| f(ah)))
        .flatten()
}

/// The address vector of an attribute, for a flow from `local_qpn` to `remote_qpn`. EINVAL without
/// a RoCEv2 source. The two bits of the traffic class that belong to ECN are not the user's: the
/// packets say that they are not ECN capable, unless the caller knows better.
///
/// # Errors
///
/// EINVAL without a RoCEv2 source, for a source and a destination of different families, and for
/// the zero destination.
pub fn address(attr: &AhAttr, local_qpn: Qpn, remote_qpn: Qpn) -> Result<Av> {
    let src = attr.src.ok_or(EINVAL)?;
    if src.kind != GidKind::Roce2 {
        return Err(EINVAL);
    }
    let src_v4 = src.is_ipv4();
    let dst = GidAddr(attr.dest);
    if src_v4 != dst.is_v4() || attr.dest == [0; 16] {
        return Err(EINVAL);
    }
    Ok(Av {
        src: GidAddr(src.raw),
        dst,
        sport: attr.udp_source_port(local_qpn.get(), remote_qpn.get()),
        tos: congestion::with_ecn(attr.traffic_class, congestion::NOT_ECT),
        sl: attr.sl,
        hop_limit: if attr.hop_limit == 0 {
            64
        } else {
            attr.hop_limit
        },
        flow_label: attr.flow_label & 0x000f_ffff,
        oif: u32::try_from(src.ifindex).unwrap_or(0),
    })
}
