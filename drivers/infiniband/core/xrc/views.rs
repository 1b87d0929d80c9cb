// SPDX-License-Identifier: GPL-2.0

//! The recipients of the events of an XRC target.

use crate::domain::Shared;
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};
use rdma::{
    events::{
        QpEvent,
        QpHandle, //
    },
    new_spinlock_irq,
    restrack::ResEntry,
    sync::SpinLockIrq,
    uverbs::file::{
        FileEvents,
        FileId, //
    }, //
};
use roce::number::Qpn;

/// Views and registrations that are told of an event between two looks at the list.
const BATCH: usize = 16;

/// The event handles of all views of a target, and of all registrations for it.
#[pin_data]
pub struct Views {
    qpn: Qpn,
    /// The domain's, which the last packet of a target may outlive.
    domain: Arc<Shared>,
    #[pin]
    inner: SpinLockIrq<Inner>,
}

struct Inner {
    /// In ascending order of the ids, which begin with 1.
    handles: KVec<(u64, Handle)>,
    next: u64,
}

/// Where an event goes.
#[derive(Clone)]
pub(crate) enum Handle {
    /// To a view.
    View(QpHandle),
    /// To a file that is registered, with the number of the target.
    Registration(FileEvents),
}

/// How many listen, and what nobody heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    /// Views.
    pub views: u32,
    /// Registrations.
    pub registrations: u32,
    /// Events of all targets of the domain that had no recipient, since the domain was opened.
    pub unheard: u64,
    /// SRQs of the domain.
    pub srqs: u64,
}

impl Views {
    /// Makes the list of a new target with number `qpn`: nobody has it open. Process context.
    pub(crate) fn new(qpn: Qpn, domain: Arc<Shared>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Views {
                qpn,
                domain,
                inner <- new_spinlock_irq!(
                    Inner {
                        handles: KVec::new(),
                        next: 1,
                    },
                    "xrc views"
                ),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Raises an event in all views and registrations; false when it reached none, because there is
    /// none or those that are there are only being made, or are about to go. The domain counts it
    /// then. Any context.
    ///
    /// Handlers run without the lock, which is held for [`BATCH`] of them at a time: a target may
    /// be open often, and peers decide when there is an event. One that is added or removed
    /// meanwhile hears of it or not; the handle of one that was removed does nothing.
    pub fn event(&self, kind: QpEvent) -> bool {
        let heard = self.raise(kind);
        if !heard {
            self.domain.unheard.fetch_add(1, Relaxed);
        }
        heard
    }

    fn raise(&self, kind: QpEvent) -> bool {
        let mut behind = 0;
        let mut heard = false;
        loop {
            let mut batch: [Option<Handle>; BATCH] = [const { None }; BATCH];
            let mut count = 0usize;
            {
                let inner = self.inner.lock();
                // Ids ascend.
                let rest = inner.handles.iter().filter(|(id, _)| *id > behind);
                let mut last = behind;
                for (place, (id, handle)) in batch.iter_mut().zip(rest) {
                    *place = Some(handle.clone());
                    last = *id;
                    count = count.wrapping_add(1);
                }
                if count == 0 {
                    return heard;
                }
                behind = last;
            }
            for handle in batch.iter().flatten() {
                heard |= match handle {
                    Handle::View(handle) => handle.event(kind),
                    Handle::Registration(file) => file.event(kind, self.qpn.get()),
                };
            }
            if count < BATCH {
                return heard;
            }
        }
    }

    /// Counts them. Any context.
    pub fn count(&self) -> Listeners {
        let inner = self.inner.lock();
        let mut count = Listeners {
            unheard: self.domain.unheard.load(Relaxed),
            srqs: self.domain.srqs.load(Relaxed),
            ..Listeners::default()
        };
        for (_, handle) in inner.handles.iter() {
            let n = match handle {
                Handle::View(_) => &mut count.views,
                Handle::Registration(_) => &mut count.registrations,
            };
            *n = n.saturating_add(1);
        }
        count
    }

    /// Adds to the line of a target in `rdma -dd resource show qp` what ib_core does not know: the
    /// number of its domain, as in the kernel log, how many have it open or are registered for it,
    /// and of the domain how many events had no recipient and how many SRQs it has. Any context.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE`, as [`ResEntry::driver_numbers`].
    pub fn show(&self, entry: &mut ResEntry) -> Result {
        let users = self.count();
        entry.driver_numbers(&[
            (c"xrcd", self.domain.id),
            (c"views", u64::from(users.views)),
            (c"registrations", u64::from(users.registrations)),
            (c"unheard", users.unheard),
            (c"srqs", users.srqs),
        ])
    }

    /// The handle of a file's registration, if it has one. Any context.
    pub(crate) fn registration(&self, id: FileId) -> Option<u32> {
        let inner = self.inner.lock();
        let found = inner.handles.iter().find_map(|(_, handle)| match handle {
            Handle::Registration(file) if file.file() == id => Some(file.handle()),
            _ => None,
        });
        found
    }

    /// Adds a view or a registration; returns what [`Views::remove`] wants. Process context.
    pub(crate) fn add(&self, handle: Handle) -> Result<u64> {
        loop {
            let len = {
                let mut inner = self.inner.lock();
                let len = inner.handles.len();
                if len < inner.handles.capacity() {
                    let id = inner.next;
                    inner.next = id.wrapping_add(1);
                    // There is room.
                    let _ = inner.handles.push_within_capacity((id, handle));
                    return Ok(id);
                }
                len
            };
            // Memory is allocated and freed without the lock.
            let room = len.saturating_mul(2).max(2);
            let mut grown = KVec::with_capacity(room, GFP_KERNEL_ACCOUNT)?;
            let mut inner = self.inner.lock();
            if inner.handles.len() < grown.capacity() {
                for (id, handle) in inner.handles.iter() {
                    let _ = grown.push_within_capacity((*id, handle.clone()));
                }
                core::mem::swap(&mut inner.handles, &mut grown);
            }
            drop(inner);
        }
    }

    /// Takes one out. Process context.
    pub(crate) fn remove(&self, id: u64) {
        let mut inner = self.inner.lock();
        let found = inner.handles.iter().position(|(other, _)| *other == id);
        let removed = found.and_then(|at| inner.handles.remove(at).ok());
        drop(inner);
        // The handle may be the last of its kind and free memory.
        drop(removed);
    }
}
