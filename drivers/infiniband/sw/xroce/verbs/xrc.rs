// SPDX-License-Identifier: GPL-2.0

//! XRC: domains, and the targets in them as ib_core sees them.
//!
//! Crate `xrc` contains the rules for their lifetimes. This file creates, shows and destroys them
//! on this device. Targets that processes know only by number are in `rcv_qp.rs`.

use super::qp::QpData;
use crate::prelude::*;
use crate::verbs::provider::Xroce;
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
    QpCap,
    QpInitAttr,
    QpType, //
};
use rdma::rcu::Reservation;
use rdma::restrack::{
    ResEntry,
    TrackedQp, //
};

/// What ib_core's XRC domain holds.
pub(crate) struct XrcdData {
    domain: Arc<xrc::Domain<Tgt>>,
    _charge: Charge,
}

impl XrcdData {
    /// Makes a domain. ENOMEM when the device has as many as it can.
    pub(crate) fn new(device: &Arc<WireDevice>) -> Result<Self> {
        Ok(XrcdData {
            _charge: Charge::new(device, Kind::Xrcd)?,
            domain: xrc::Domain::new(limits::MAX_TGT_PER_DOMAIN)?,
        })
    }

    /// The domain.
    pub(crate) fn domain(&self) -> &Arc<xrc::Domain<Tgt>> {
        &self.domain
    }

    /// Its number.
    pub(crate) fn id(&self) -> u64 {
        self.domain.id()
    }
}

/// An XRC target, as its domain sees it.
#[derive(Clone)]
pub(crate) struct Tgt {
    pub(crate) wire: Ref<WireQp>,
    /// Its entry in `rdma res`, which is gone when the target has ended. Calls that hold a copy of
    /// this may go on with what is left of it.
    pub(crate) shown: Arc<TrackedQp<Xroce>>,
}

impl ::xrc::Target for Tgt {
    fn end(&self) {
        // First, since its number is free afterwards, and of two with one number only one is shown.
        self.shown.hide();
        self.wire.retire();
    }
}

/// An XRC target: a new one, or, when the capacities say so, a view of an existing one. All other
/// capacities mean nothing.
pub(crate) fn create_tgt(
    device: &Device<Xroce>,
    init: &mut QpInitAttr<'_, Xroce>,
    handle: QpHandle,
) -> Result<CreatedQp<QpData>> {
    let domain = init.xrcd.ok_or(EINVAL)?.data().domain();
    let asked = core::mem::take(&mut init.cap);
    if asked.max_send_wr == abi::XROCE_TGT_OPEN {
        let charge = Charge::new(&device.data().wire, Kind::Qp)?;
        let qpn = Qpn::checked(asked.max_recv_wr).ok_or(EINVAL)?;
        let (target, view) = domain.open(qpn, handle)?;
        let wire = target.wire;
        return Ok(CreatedQp {
            qp_num: wire.qpn.get(),
            tracked: false,
            data: QpData {
                wire,
                view: Some(view),
                _charge: Some(charge),
                _mappings: [None, None],
            },
        });
    }
    let NewTarget {
        reservation,
        target,
        views,
    } = NewTarget::new(device, domain)?;
    let wire = target.wire.clone();
    let qpn = wire.qpn;
    let view = domain.insert(qpn, target, views, handle)?;
    reservation.publish(wire.clone());
    Ok(CreatedQp {
        qp_num: qpn.get(),
        tracked: false,
        data: QpData {
            wire,
            view: Some(view),
            _charge: None,
            _mappings: [None, None],
        },
    })
}

/// An XRC target that belongs to no domain yet.
pub(crate) struct NewTarget {
    /// Its number, under which no packet finds it before this is published.
    pub(crate) reservation: Reservation<'static, WireQp>,
    /// The target, in the reset state.
    pub(crate) target: Tgt,
    /// Where its events go.
    pub(crate) views: Arc<xrc::Views>,
}

impl NewTarget {
    /// Makes a target for `domain`. ENOMEM when the device has as many queue pairs as it may.
    pub(crate) fn new(device: &Device<Xroce>, domain: &xrc::Domain<Tgt>) -> Result<Self> {
        let wire_device = &device.data().wire;
        let charge = Charge::new(wire_device, Kind::Qp)?;
        let reservation = tables::tables()?.qps.reserve()?;
        let qpn = Qpn::new(reservation.id());
        let views = domain.views(qpn)?;
        let wire = WireQp::new(
            Identity {
                qpn,
                kind: QpKind::XrcTgt,
                device: wire_device,
                pd: None,
                domain: Some(domain.id()),
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
        Ok(Self {
            reservation,
            target: Tgt { wire, shown },
            views,
        })
    }
}

/// What `rdma -dd resource show qp` says of a target besides what ib_core does: the number of its
/// domain, as in the kernel log, how many have it open or are registered for it, and how many
/// events of the domain's targets had no recipient.
pub(crate) fn show(qp: &Qp<Xroce>, entry: &mut ResEntry) -> Result {
    let wire = &qp.data().wire;
    let (Some(domain), Some(users)) = (wire.domain, wire.listeners()) else {
        return Ok(());
    };
    entry.driver_numbers(&[
        (c"xrcd", domain),
        (c"views", u64::from(users.views)),
        (c"registrations", u64::from(users.registrations)),
        (c"unheard", users.unheard),
    ])
}
