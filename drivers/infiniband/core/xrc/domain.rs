// SPDX-License-Identifier: GPL-2.0

//! XRC domains and the targets that belong to them.
//!
//! `ibv_open_xrcd` opens a domain. uverbs shares one domain among all processes that open the same
//! inode. A domain ends with its last open, and all its targets end with it.

use crate::life::{
    Life,
    Made,
    Outcome,
    ViewEnd, //
};
use crate::rcv_qp::Registration;
use crate::srq::Member;
use crate::views::{
    Handle,
    Views, //
};
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::RBTree,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    }, //
};
use rdma::{
    events::QpHandle,
    qp::DestroyCause,
    uverbs::{
        file::{
            FileEvents,
            FileId, //
        },
        rcv_qp::RcvQpEnd, //
    }, //
};
use roce::number::Qpn;

/// The provider's side of a target: its queue pair on the wire.
pub trait Target: Clone + Send + Sync + Unpin + 'static {
    /// Ends it: no packet reaches it any more when this returns. Process context; once.
    fn end(&self);
}

/// What the targets and SRQs of a domain share with it, and may use when it is gone.
pub(crate) struct Shared {
    /// The number of the domain.
    pub(crate) id: u64,
    /// Events of its targets that had no recipient.
    pub(crate) unheard: Atomic<u64>,
    /// SRQs that belong to it now.
    pub(crate) srqs: Atomic<u64>,
}

struct Entry<T> {
    target: T,
    views: Arc<Views>,
    life: Life,
}

struct Inner<T> {
    targets: RBTree<Qpn, Entry<T>>,
    count: usize,
    gone: bool,
}

/// Views and registrations that a target may have together: an event is raised in all of them in
/// one go, with interrupts off.
const MAX_USERS: u32 = 1024;

/// The next domain number; never used twice.
static NEXT: Atomic<u64> = Atomic::new(1);

/// An XRC domain.
#[pin_data]
pub struct Domain<T: Target> {
    max_targets: usize,
    shared: Arc<Shared>,
    #[pin]
    inner: Mutex<Inner<T>>,
}

impl<T: Target> Domain<T> {
    /// Opens a domain that may have up to `max_targets` targets. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(max_targets: usize) -> Result<Arc<Self>> {
        let shared = Arc::new(
            Shared {
                id: NEXT.fetch_add(1, Relaxed),
                unheard: Atomic::new(0),
                srqs: Atomic::new(0),
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        Arc::pin_init(
            pin_init!(Domain {
                max_targets,
                shared,
                inner <- new_mutex!(
                    Inner {
                        targets: RBTree::new(),
                        count: 0,
                        gone: false,
                    },
                    "xrc domain"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Its number, which never means another domain.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// Makes a new SRQ a member of the domain, which lasts until [`Member::leave`] or the drop of
    /// what this returns. ib_core ends the SRQs of a domain before the domain.
    pub(crate) fn join(&self) -> Member {
        Member::new(self.shared.clone())
    }

    /// Makes the list of recipients for a new target with number `qpn`. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn views(&self, qpn: Qpn) -> Result<Arc<Views>> {
        Views::new(qpn, self.shared.clone())
    }

    /// Enters a new target, whose events go to `views`, with its first view. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also when the domain has as many targets as it may, or the number is taken;
    /// `EINVAL` when the domain is gone.
    pub fn insert(
        self: &Arc<Self>,
        qpn: Qpn,
        target: T,
        views: Arc<Views>,
        handle: QpHandle,
    ) -> Result<View<T>> {
        let mut life = Life::new(Made::WithView);
        if !life.open() {
            return Err(EINVAL);
        }
        let view = views.add(Handle::View(handle))?;
        self.enter(qpn, target, views, life)?;
        Ok(View {
            domain: self.clone(),
            qpn,
            view,
            is_first: true,
            open: Atomic::new(1),
        })
    }

    /// As [`Domain::insert`], for a target that is made by number, with its first registration.
    ///
    /// # Errors
    ///
    /// As [`Domain::insert`].
    pub fn insert_by_number(
        self: &Arc<Self>,
        qpn: Qpn,
        target: T,
        views: Arc<Views>,
        events: FileEvents,
        end: RcvQpEnd,
    ) -> Result<Registration<T>> {
        let mut life = Life::new(match end {
            RcvQpEnd::LastRegistration => Made::ByNumber,
            RcvQpEnd::Domain => Made::Persistent,
        });
        if !life.register() {
            return Err(EINVAL);
        }
        let id = views.add(Handle::Registration(events))?;
        self.enter(qpn, target, views, life)?;
        Ok(Registration::new(self.clone(), qpn, id))
    }

    fn enter(&self, qpn: Qpn, target: T, views: Arc<Views>, life: Life) -> Result {
        let mut inner = self.inner.lock();
        if inner.gone {
            return Err(EINVAL);
        }
        if inner.count >= self.max_targets || inner.targets.get(&qpn).is_some() {
            return Err(ENOMEM);
        }
        inner.targets.try_create_and_insert(
            qpn,
            Entry {
                target,
                views,
                life,
            },
            GFP_KERNEL_ACCOUNT,
        )?;
        inner.count = inner.count.saturating_add(1);
        Ok(())
    }

    /// Opens an existing target by its number. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the domain has none with this number, as `ibv_open_qp` has it; `ENOMEM`, also
    /// when too many have it open.
    pub fn open(self: &Arc<Self>, qpn: Qpn, handle: QpHandle) -> Result<(T, View<T>)> {
        let mut inner = self.inner.lock();
        let entry = inner.targets.get_mut(&qpn).ok_or(EINVAL)?;
        let view = entry.add(Handle::View(handle), Life::open)?;
        let target = entry.target.clone();
        drop(inner);
        Ok((
            target,
            View {
                domain: self.clone(),
                qpn,
                view,
                is_first: false,
                open: Atomic::new(1),
            },
        ))
    }

    /// Registers a file for an existing target. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the domain has none with this number; `EEXIST` when the file is registered for
    /// it; `ENOMEM`, also when too many are.
    pub fn register(self: &Arc<Self>, qpn: Qpn, events: FileEvents) -> Result<Registration<T>> {
        let mut inner = self.inner.lock();
        let entry = inner.targets.get_mut(&qpn).ok_or(EINVAL)?;
        if entry.views.registration(events.file()).is_some() {
            return Err(EEXIST);
        }
        let id = entry.add(Handle::Registration(events), Life::register)?;
        drop(inner);
        Ok(Registration::new(self.clone(), qpn, id))
    }

    /// The handle of a file's registration for a target. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` when there is none.
    pub fn registration(&self, qpn: Qpn, file: FileId) -> Result<u32> {
        let inner = self.inner.lock();
        let entry = inner.targets.get(&qpn).ok_or(EINVAL)?;
        entry.views.registration(file).ok_or(EINVAL)
    }

    /// A target of the domain. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` when it has none with this number.
    pub fn target(&self, qpn: Qpn) -> Result<T> {
        let inner = self.inner.lock();
        let entry = inner.targets.get(&qpn).ok_or(EINVAL)?;
        Ok(entry.target.clone())
    }

    /// The last open was closed: ends all targets. No view is left. Process context.
    pub fn close(&self) {
        let mut inner = self.inner.lock();
        inner.gone = true;
        let mut targets = core::mem::replace(&mut inner.targets, RBTree::new());
        inner.count = 0;
        drop(inner);
        for (_, entry) in targets.iter_mut() {
            if entry.life.domain_gone() == Outcome::Dies {
                entry.target.end();
            }
        }
    }

    /// Ends a view or registration; `close` does its part of the counting.
    pub(crate) fn close_user(&self, qpn: Qpn, id: u64, close: impl FnOnce(&mut Life) -> Outcome) {
        let mut inner = self.inner.lock();
        let Some(entry) = inner.targets.get_mut(&qpn) else {
            return;
        };
        entry.views.remove(id);
        if close(&mut entry.life) == Outcome::Lives {
            return;
        }
        let entry = inner.targets.remove(&qpn);
        inner.count = inner.count.saturating_sub(1);
        drop(inner);
        if let Some(entry) = entry {
            entry.target.end();
        }
    }
}

impl<T> Entry<T> {
    /// One more view or registration; `open` does its part of the counting.
    fn add(&mut self, handle: Handle, open: fn(&mut Life) -> bool) -> Result<u64> {
        let users = self.life.views().saturating_add(self.life.registrations());
        if users >= MAX_USERS {
            return Err(ENOMEM);
        }
        let id = self.views.add(handle)?;
        if !open(&mut self.life) {
            self.views.remove(id);
            return Err(EINVAL);
        }
        Ok(id)
    }
}

/// One open of a target: what an `ib_qp` of type `XRC_TGT` stands for.
pub struct View<T: Target> {
    domain: Arc<Domain<T>>,
    qpn: Qpn,
    view: u64,
    /// The target was made with it.
    is_first: bool,
    open: Atomic<u32>,
}

impl<T: Target> View<T> {
    /// Ends the view, and the target if that follows. Further calls do nothing. Process context.
    pub fn close(&self, cause: DestroyCause) {
        if self.open.xchg(0, Relaxed) != 0 {
            let end = match (cause, self.is_first) {
                (DestroyCause::Explicit, true) => ViewEnd::DestroyedFirst,
                (DestroyCause::Explicit, false) => ViewEnd::DestroyedOther,
                (DestroyCause::FileClosing, _) => ViewEnd::FileClosing,
            };
            self.domain
                .close_user(self.qpn, self.view, |life| life.close(end));
        }
    }

    /// The target, unless the view was closed. Process context.
    pub fn target(&self) -> Option<T> {
        if self.open.load(Relaxed) == 0 {
            return None;
        }
        // While this is open, no other can have the number.
        self.domain.target(self.qpn).ok()
    }
}

impl<T: Target> Drop for View<T> {
    /// A view that nobody closed belongs to a create call that failed: one that was to make the
    /// target takes it along, one that was to open it does it no harm.
    fn drop(&mut self) {
        self.close(if self.is_first {
            DestroyCause::Explicit
        } else {
            DestroyCause::FileClosing
        });
    }
}
