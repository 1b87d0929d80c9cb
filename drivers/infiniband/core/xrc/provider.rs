// SPDX-License-Identifier: GPL-2.0

//! What a provider of XRC plugs in, and what its operations call.
//!
//! A provider implements `rdma::provider::Provider`, the operations table, and [`XrcProvider`]. Its
//! operations on XRC objects consist of calls of this crate, which calls the provider back for its
//! part: to count an object against the limits of the device, and to make a queue pair on the wire.

use crate::domain::{
    Domain,
    Target,
    View, //
};
use crate::rcv_qp::Registered;
use crate::views::Views;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rdma::{
    device::Device,
    events::QpHandle,
    provider::Provider,
    qp::{
        QpAttr,
        QpInitAttr, //
    },
    restrack::TrackedQp, //
};
use roce::number::Qpn;

/// What counts against the limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// A domain.
    Domain,
    /// A view of, or a registration for, a target that exists already.
    User,
}

/// A provider that has XRC. Its `Provider::Xrcd` is [`OpenDomain`].
///
/// # Examples
///
/// `selftests/kmod/loopback.rs` is a small provider. Of its `Provider`:
///
/// ```text
/// fn alloc_xrcd(device: &Device<Self>, _: Option<&mut Udata<'_, Self>>) -> Result<Self::Xrcd> {
///     OpenDomain::new(device)
/// }
///
/// fn dealloc_xrcd(xrcd: &Xrcd<Self>) {
///     xrcd.data().close();
/// }
/// ```
pub trait XrcProvider: Provider<Xrcd = OpenDomain<Self>> {
    /// Its side of a target.
    type Target: Target;
    /// A number that is taken, and under which no packet finds a target yet. Its drop frees the
    /// number.
    type Number;
    /// One object counts against the limits of the device as long as this exists.
    type Charge: Send + Sync;

    /// Targets that a domain may have.
    const MAX_TARGETS: usize;
    /// What `cap.max_send_wr` of a create call is when the call is to open the existing target
    /// whose number is in `cap.max_recv_wr`: a value of the provider's ABI, that no size can have.
    const OPEN_TARGET: u32;

    /// Counts one more object. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when the device has as many as it can.
    fn charge(device: &Device<Self>, what: Counted) -> Result<Self::Charge>;

    /// Takes a number for a target. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `ENOSPC`.
    fn reserve_target(device: &Device<Self>) -> Result<(Qpn, Self::Number)>;

    /// Makes a target in the reset state, which counts against the limits of the device. `domain`
    /// is the number of its domain, `views` are the recipients of its events. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also when the device has as many as it can.
    fn new_target(
        device: &Device<Self>,
        qpn: Qpn,
        domain: u64,
        views: &Arc<Views>,
    ) -> Result<Self::Target>;

    /// From now on packets find the target under its number. Process context.
    fn publish_target(number: Self::Number, target: &Self::Target);
}

/// A provider whose targets processes may know by number alone ([`crate::rcv_qp`]). Its
/// `Provider::RcvQp` is [`Registered`].
pub trait RcvQpProvider: XrcProvider + Provider<RcvQp = Registered<Self>> {
    /// The entry of a target in `rdma res`.
    fn shown(target: &Self::Target) -> &TrackedQp<Self>;

    /// The attributes of a target.
    fn attributes(target: &Self::Target) -> QpAttr;

    /// A create call failed after it changed the state of the target: brings that to RESET. No
    /// packet has found the target. Process context.
    fn discard(target: &Self::Target);
}

/// What ib_core's XRC domain holds.
pub struct OpenDomain<P: XrcProvider> {
    domain: Arc<Domain<P::Target>>,
    _charge: P::Charge,
}

impl<P: XrcProvider> OpenDomain<P> {
    /// `Provider::alloc_xrcd`. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also when the device has as many as it can.
    pub fn new(device: &Device<P>) -> Result<Self> {
        Ok(Self {
            _charge: P::charge(device, Counted::Domain)?,
            domain: Domain::new(P::MAX_TARGETS)?,
        })
    }

    /// `Provider::dealloc_xrcd`: the domain and its targets end. Process context.
    pub fn close(&self) {
        self.domain.close();
    }

    /// The domain.
    pub fn domain(&self) -> &Arc<Domain<P::Target>> {
        &self.domain
    }
}

/// A target, and the view of it that a create call asked for.
pub struct OpenTarget<P: XrcProvider> {
    /// The provider's side.
    pub target: P::Target,
    /// Its number.
    pub qpn: Qpn,
    /// To be kept in the `ib_qp`, and closed when that is destroyed.
    pub view: View<P::Target>,
    /// What a view of a target that existed counts as; to be kept with it.
    pub charge: Option<P::Charge>,
}

/// `Provider::create_qp` for `XRC_TGT`: makes a target, or opens one when the capacities say so
/// ([`XrcProvider::OPEN_TARGET`]). All other capacities mean nothing and are cleared. Process
/// context.
///
/// # Errors
///
/// `EINVAL` without a domain, or when that has no target with the number; `ENOMEM`; those of the
/// provider.
pub fn open_target<P: XrcProvider>(
    device: &Device<P>,
    init: &mut QpInitAttr<'_, P>,
    handle: QpHandle,
) -> Result<OpenTarget<P>> {
    let domain = init.xrcd.ok_or(EINVAL)?.data().domain();
    let asked = core::mem::take(&mut init.cap);
    if asked.max_send_wr == P::OPEN_TARGET {
        let charge = P::charge(device, Counted::User)?;
        let qpn = Qpn::checked(asked.max_recv_wr).ok_or(EINVAL)?;
        let (target, view) = domain.open(qpn, handle)?;
        return Ok(OpenTarget {
            target,
            qpn,
            view,
            charge: Some(charge),
        });
    }
    let new = NewTarget::new(device, domain)?;
    let view = domain.insert(new.qpn, new.target.clone(), new.views, handle)?;
    P::publish_target(new.number, &new.target);
    Ok(OpenTarget {
        target: new.target,
        qpn: new.qpn,
        view,
        charge: None,
    })
}

/// A target that belongs to no domain yet, and that no packet finds.
pub(crate) struct NewTarget<P: XrcProvider> {
    pub(crate) qpn: Qpn,
    pub(crate) number: P::Number,
    pub(crate) target: P::Target,
    pub(crate) views: Arc<Views>,
}

impl<P: XrcProvider> NewTarget<P> {
    /// Makes a target for `domain`. Process context.
    pub(crate) fn new(device: &Device<P>, domain: &Domain<P::Target>) -> Result<Self> {
        let (qpn, number) = P::reserve_target(device)?;
        let views = domain.views(qpn)?;
        let target = P::new_target(device, qpn, domain.id(), &views)?;
        Ok(Self {
            qpn,
            number,
            target,
            views,
        })
    }
}
