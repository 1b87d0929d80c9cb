// SPDX-License-Identifier: GPL-2.0

//! XRC SRQs: which domain they belong to, their numbers, and who may use them.
//!
//! An XRC SRQ belongs to the process that created it, and ends with this process. It is a member of
//! the domain that it was created in, and every target of the domain may use it. A packet names it
//! by a number, which the sender chooses.

use crate::domain::Shared;
use crate::provider::XrcProvider;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
use rdma::{
    cq::Cq,
    rcu::{
        Ref,
        Reservation,
        Table, //
    },
    srq::{
        SrqInitAttr,
        SrqType, //
    }, //
};
use roce::{
    number::Srqn,
    responder::ReceiveError,
    xrc::{
        check_domain,
        Found, //
    }, //
};

/// What makes an SRQ an XRC one: that it is a member of a domain. It counts there until it leaves.
pub struct Member {
    domain: Arc<Shared>,
    /// 0 when it has left.
    inside: Atomic<u32>,
}

impl Member {
    pub(crate) fn new(domain: Arc<Shared>) -> Self {
        domain.srqs.fetch_add(1, Relaxed);
        Self {
            domain,
            inside: Atomic::new(1),
        }
    }

    /// The number of its domain; `None` when it has left. Any context.
    #[inline]
    pub fn domain(&self) -> Option<u64> {
        (self.inside.load(Relaxed) != 0).then_some(self.domain.id)
    }

    /// The SRQ is destroyed: no packet may use it from now on. Those that found it before may still
    /// do so. Further calls do nothing. Any context.
    pub fn leave(&self) {
        if self.inside.xchg(0, Relaxed) != 0 {
            self.domain.srqs.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.leave();
    }
}

/// What an XRC SRQ is created with besides its size.
pub struct XrcSrq<'a, P: XrcProvider> {
    /// Where receives complete.
    pub cq: &'a Cq<P>,
    /// Its place in the domain; to be kept in the provider's SRQ.
    pub member: Member,
}

impl<'a, P: XrcProvider> XrcSrq<'a, P> {
    /// Looks at what a create call asks for; `None` for an SRQ of another type. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` without a CQ or a domain.
    pub fn new(init: &SrqInitAttr<'a, P>) -> Result<Option<Self>> {
        if init.srq_type != SrqType::Xrc {
            return Ok(None);
        }
        let domain = init.xrcd.ok_or(EINVAL)?.data().domain();
        Ok(Some(Self {
            cq: init.cq.ok_or(EINVAL)?,
            member: domain.join(),
        }))
    }
}

/// The provider's side of an SRQ: what packets find.
pub trait SharedQueue: Send + Sync + 'static {
    /// Its place in a domain; `None` when it is not an XRC SRQ. Any context.
    fn member(&self) -> Option<&Member>;
}

/// The SRQs of a provider by number, XRC ones and others.
///
/// A number is unique among all devices of the provider. Numbers have 24 bits and are not 0; one
/// that was freed is not soon used again.
#[pin_data]
pub struct Srqs<S: SharedQueue> {
    #[pin]
    table: Table<S>,
}

impl<S: SharedQueue> Srqs<S> {
    /// No SRQs.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- Table::new(1..Srqn::MASK),
        })
    }

    /// Takes a number for a new SRQ. Process context.
    ///
    /// # Errors
    ///
    /// `ENOSPC` when all are taken; `ENOMEM`.
    pub fn reserve(&self) -> Result<SrqReservation<'_, S>> {
        Ok(SrqReservation(self.table.reserve()?))
    }

    /// Ends an SRQ: its number means nothing and its domain does not have it any more. Process
    /// context.
    pub fn remove(&self, srqn: Srqn) {
        if let Some(srq) = self.table.remove(srqn.get()) {
            if let Some(member) = srq.member() {
                member.leave();
            }
        }
    }

    /// The SRQ that a packet names, if it is an XRC one of `domain`, which is that of the target.
    /// Any context.
    ///
    /// # Errors
    ///
    /// Those of [`check_domain`].
    pub fn get(&self, srqn: Srqn, domain: u64) -> Result<Ref<S>, ReceiveError> {
        let mut checked = Err(ReceiveError::InvalidSrq);
        // The sender of the packet chose the number: what is another domain's is not even held.
        let srq = self.table.get_if(srqn.get(), |srq| {
            checked = check(srq, domain);
            checked.is_ok()
        });
        checked?;
        srq.ok_or(ReceiveError::InvalidSrq)
    }

    /// Runs `f` on the SRQ that a packet names, if it is an XRC one of `domain`. Any context; `f`
    /// must not sleep.
    ///
    /// # Errors
    ///
    /// As [`Srqs::get`].
    #[inline]
    pub fn with<R>(
        &self,
        srqn: Srqn,
        domain: u64,
        f: impl FnOnce(&S) -> R,
    ) -> Result<R, ReceiveError> {
        self.table
            .with(srqn.get(), |srq| check(srq, domain).map(|()| f(srq)))
            .unwrap_or(Err(ReceiveError::InvalidSrq))
    }
}

/// Asks the rules of XRC. An SRQ that is broken is there, and still says whose memory it is.
#[inline]
fn check<S: SharedQueue>(srq: &S, domain: u64) -> Result<(), ReceiveError> {
    let found = srq
        .member()
        .and_then(Member::domain)
        .map_or(Found::Nothing, Found::Domain);
    check_domain(found, domain)
}

/// The number of an SRQ that is being made; packets do not find it. Dropping it frees the number.
#[must_use]
pub struct SrqReservation<'a, S: SharedQueue>(Reservation<'a, S>);

impl<S: SharedQueue> SrqReservation<'_, S> {
    /// The number.
    pub fn number(&self) -> Srqn {
        Srqn::new(self.0.id())
    }

    /// From now on packets find the SRQ. Any context.
    pub fn publish(self, srq: Ref<S>) {
        self.0.publish(srq);
    }
}
