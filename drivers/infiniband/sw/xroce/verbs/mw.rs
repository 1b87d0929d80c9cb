// SPDX-License-Identifier: GPL-2.0

//! Memory windows.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use datapath::limits::{
    Charge,
    Kind, //
};
use datapath::mr;
use datapath::mw::WireMw;
use datapath::tables;
use rdma::mw::{
    CreatedMw,
    Mw,
    MwType, //
};
use rdma::pd::Pd;

/// What ib_core's window holds.
pub(crate) struct MwData {
    number: u32,
    _charge: Charge,
}

/// `ibv_alloc_mw`. ENOMEM when the device has as many as it can.
pub(crate) fn alloc(pd: &Pd<Xroce>, mw_type: MwType) -> Result<CreatedMw<MwData>> {
    let charge = Charge::new(&pd.device().data().wire, Kind::Mw)?;
    let reservation = tables::tables()?.mws.reserve()?;
    let number = reservation.id();
    let rkey = mr::first_key(number);
    reservation.publish(WireMw::new(pd.data().id(), mw_type, rkey)?);
    Ok(CreatedMw {
        data: MwData {
            number,
            _charge: charge,
        },
        rkey: rkey.get(),
    })
}

/// `ibv_dealloc_mw`: when it returns, nobody uses the window any more.
pub(crate) fn dealloc(mw: &Mw<Xroce>) {
    let removed = tables::get().and_then(|tables| tables.mws.remove(mw.data().number));
    if let Some(mw) = removed {
        mw.close();
    }
}
