// SPDX-License-Identifier: GPL-2.0

//! Address handles: where datagrams go.

use crate::limits::{
    Charge,
    Kind, //
};
use crate::prelude::*;
use crate::provider::Xroce;
use crate::tables;
use crate::tx::{
    Av,
    Path, //
};
use rdma::ah::{
    Ah,
    AhAttr, //
};
use rdma::gid::GidKind;
use rdma::pd::Pd;
use rdma::uverbs::udata::Udata;

/// An address handle, as work requests see it.
#[pin_data]
pub(crate) struct WireAh {
    pd: u64,
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
        path.set(address(attr, 0, 0)?);
        Ok(Address { path, attr: *attr })
    }
}

impl WireAh {
    /// Runs `f` with the route to the address. Softirq or process context; `f` must not sleep.
    pub(crate) fn with_route<R>(
        &self,
        tunnel: &Tunnel,
        f: impl FnOnce(&mut Route) -> R,
    ) -> Result<R> {
        let mut address = self.address.lock();
        Ok(f(address.path.route(tunnel)?))
    }
}

/// Runs `f` on address handle `number`, if it is one of protection domain `pd`. Any context.
pub(crate) fn with<R>(number: u32, pd: u64, f: impl FnOnce(&WireAh) -> R) -> Option<R> {
    tables::get()?
        .ahs
        .with(number, |ah| (ah.pd == pd).then(|| f(ah)))
        .flatten()
}

/// What ib_core's AH holds.
pub(crate) struct AhData {
    number: u32,
    wire: Ref<WireAh>,
    /// Here and not in `wire`, which goes a grace period later: another handle may take the place
    /// of this one at once.
    _charge: Charge,
}

impl AhData {
    /// Its number, for work requests.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

/// The address vector of an attribute, for a flow from `local_qpn` to `remote_qpn`. EINVAL without a
/// RoCEv2 source.
pub(crate) fn address(attr: &AhAttr, local_qpn: u32, remote_qpn: u32) -> Result<Av> {
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
        sport: attr.udp_source_port(local_qpn, remote_qpn),
        tos: attr.traffic_class,
        hop_limit: if attr.hop_limit == 0 {
            64
        } else {
            attr.hop_limit
        },
        flow_label: attr.flow_label & 0x000f_ffff,
        oif: u32::try_from(src.ifindex).unwrap_or(0),
    })
}

/// `ibv_create_ah`. May run in atomic context when `sleepable` is false.
pub(crate) fn create(
    pd: &Pd<Xroce>,
    attr: &AhAttr,
    sleepable: bool,
    udata: Option<&mut Udata<'_, Xroce>>,
) -> Result<AhData> {
    let gfp = if sleepable { GFP_ACCOUNT } else { GFP_ATOMIC };
    let address = Address::new(attr)?;
    let charge = Charge::new(&pd.device().data().wire, Kind::Ah)?;
    let reservation = tables::tables()?.ahs.reserve_with(gfp)?;
    let number = reservation.id();
    if let Some(udata) = udata {
        udata.write(&abi::xroce_create_ah_resp {
            ah: number,
            reserved: 0,
        })?;
    }
    let wire = Ref::pin_init(
        try_pin_init!(WireAh {
            pd: pd.data().id(),
            address <- new_spinlock_bh!(address, "xroce ah"),
        }? Error),
        gfp,
    )?;
    reservation.publish(wire.clone());
    Ok(AhData {
        number,
        wire,
        _charge: charge,
    })
}

/// `rdma_modify_ah`: another address.
pub(crate) fn modify(ah: &Ah<Xroce>, attr: &AhAttr) -> Result {
    let address = Address::new(attr)?;
    let old = core::mem::replace(&mut *ah.data().wire.address.lock(), address);
    // With its route, outside the lock.
    drop(old);
    Ok(())
}

/// `rdma_query_ah`: the address. Context as for [`modify`].
pub(crate) fn query(ah: &Ah<Xroce>) -> AhAttr {
    ah.data().wire.address.lock().attr
}

/// May run in atomic context.
pub(crate) fn destroy(ah: &Ah<Xroce>) {
    if let Some(tables) = tables::get() {
        drop(tables.ahs.remove(ah.data().number));
    }
}
