// SPDX-License-Identifier: GPL-2.0

//! XRC: what crate `xrc` wants of this device, and the targets as ib_core sees them.
//!
//! Crate `xrc` contains the rules, and what the operations on XRC objects do. This file makes the
//! queue pair of a target, counts objects, and ends targets.

use super::qp::QpData;
use crate::prelude::*;
use crate::verbs::provider::Xroce;
use ::xrc::{
    Counted,
    OpenTarget,
    RcvQpProvider,
    Views,
    XrcProvider, //
};
use datapath::limits::{
    self,
    Charge,
    Kind, //
};
use datapath::qp::{
    Events,
    Identity,
    QpKind,
    Queues,
    Relations, //
};
use datapath::tables;
use rdma::device::Device;
use rdma::qp::{
    CreatedQp,
    Qp,
    QpAttr,
    QpCap,
    QpInitAttr,
    QpType, //
};
use rdma::rcu::Reservation;
use rdma::restrack::{
    ResEntry,
    TrackedQp, //
};

/// An XRC target, as its domain sees it.
#[derive(Clone)]
pub(crate) struct Tgt {
    wire: Ref<WireQp>,
    /// Its entry in `rdma res`, which is gone when the target has ended. Calls that hold a copy of
    /// this may go on with what is left of it.
    shown: Arc<TrackedQp<Xroce>>,
}

impl Tgt {
    /// Its entry in `rdma res`.
    pub(crate) fn into_shown(self) -> Arc<TrackedQp<Xroce>> {
        self.shown
    }
}

impl ::xrc::Target for Tgt {
    fn end(&self) {
        // First, since its number is free afterwards, and of two with one number only one is shown.
        self.shown.hide();
        self.wire.retire();
    }
}

impl XrcProvider for Xroce {
    type Target = Tgt;
    type Number = Reservation<'static, WireQp>;
    type Charge = Charge;

    const MAX_TARGETS: usize = limits::MAX_TGT_PER_DOMAIN;
    const OPEN_TARGET: u32 = abi::XROCE_TGT_OPEN;

    fn charge(device: &Device<Self>, what: Counted) -> Result<Charge> {
        let kind = match what {
            Counted::Domain => Kind::Xrcd,
            Counted::User => Kind::Qp,
        };
        Charge::new(&device.data().wire, kind)
    }

    fn reserve_target(_device: &Device<Self>) -> Result<(Qpn, Self::Number)> {
        let reservation = tables::tables()?.qps.reserve()?;
        Ok((Qpn::new(reservation.id()), reservation))
    }

    fn new_target(device: &Device<Self>, qpn: Qpn, domain: u64, views: &Arc<Views>) -> Result<Tgt> {
        let wire_device = &device.data().wire;
        let charge = Charge::new(wire_device, Kind::Qp)?;
        let wire = WireQp::new(
            Identity {
                qpn,
                kind: QpKind::XrcTgt,
                device: wire_device,
                pd: None,
                domain: Some(domain),
                sq_sig_all: false,
                user: false,
                cap: QpCap::default(),
            },
            Queues::none(),
            Relations {
                send_cq: None,
                recv_cq: None,
                srq: None,
                events: Events::Tgt(views.clone()),
            },
            charge,
        )?;
        // `rdma res` shows the target, as long as it lives, and none of its views.
        let shown = device.track_qp(
            QpType::XrcTgt,
            qpn.get(),
            QpData {
                wire: wire.clone(),
                view: None,
                _charge: None,
                _mappings: [None, None],
            },
        )?;
        Ok(Tgt { wire, shown })
    }

    fn publish_target(number: Self::Number, target: &Tgt) {
        number.publish(target.wire.clone());
    }
}

impl RcvQpProvider for Xroce {
    fn shown(target: &Tgt) -> &TrackedQp<Self> {
        &target.shown
    }

    fn attributes(target: &Tgt) -> QpAttr {
        target.wire.attributes()
    }

    fn discard(target: &Tgt) {
        target.wire.stop();
    }
}

/// An XRC target: a new one, or a view of an existing one.
pub(crate) fn create_tgt(
    device: &Device<Xroce>,
    init: &mut QpInitAttr<'_, Xroce>,
    handle: QpHandle,
) -> Result<CreatedQp<QpData>> {
    let OpenTarget {
        target,
        qpn,
        view,
        charge,
    } = ::xrc::open_target(device, init, handle)?;
    Ok(CreatedQp {
        qp_num: qpn.get(),
        tracked: false,
        data: QpData {
            wire: target.wire,
            view: Some(view),
            _charge: charge,
            _mappings: [None, None],
        },
    })
}

/// What `rdma -dd resource show qp` says of a target besides what ib_core does.
pub(crate) fn show(qp: &Qp<Xroce>, entry: &mut ResEntry) -> Result {
    match qp.data().wire.views() {
        Some(views) => views.show(entry),
        None => Ok(()),
    }
}
