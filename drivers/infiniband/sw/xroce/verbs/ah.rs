// SPDX-License-Identifier: GPL-2.0

//! Address handles.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use datapath::ah::WireAh;
use datapath::limits::{
    Charge,
    Kind, //
};
use datapath::tables;
use rdma::ah::{
    Ah,
    AhAttr, //
};
use rdma::pd::Pd;
use rdma::uverbs::udata::Udata;

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

/// `ibv_create_ah`. May run in atomic context when `sleepable` is false.
pub(crate) fn create(
    pd: &Pd<Xroce>,
    attr: &AhAttr,
    sleepable: bool,
    udata: Option<&mut Udata<'_, Xroce>>,
) -> Result<AhData> {
    let gfp = if sleepable { GFP_ACCOUNT } else { GFP_ATOMIC };
    let charge = Charge::new(&pd.device().data().wire, Kind::Ah)?;
    let wire = WireAh::new(pd.data().id(), attr, gfp)?;
    let reservation = tables::tables()?.ahs.reserve_with(gfp)?;
    let number = reservation.id();
    if let Some(udata) = udata {
        udata.write(&abi::xroce_create_ah_resp {
            ah: number,
            reserved: 0,
        })?;
    }
    reservation.publish(wire.clone());
    Ok(AhData {
        number,
        wire,
        _charge: charge,
    })
}

/// `rdma_modify_ah`: another address.
pub(crate) fn modify(ah: &Ah<Xroce>, attr: &AhAttr) -> Result {
    ah.data().wire.set(attr)
}

/// `rdma_query_ah`: the address. Context as for [`modify`].
pub(crate) fn query(ah: &Ah<Xroce>) -> AhAttr {
    ah.data().wire.attr()
}

/// May run in atomic context.
pub(crate) fn destroy(ah: &Ah<Xroce>) {
    if let Some(tables) = tables::get() {
        drop(tables.ahs.remove(ah.data().number));
    }
}
