// SPDX-License-Identifier: GPL-2.0

//! Queue pairs that `rdma res` shows although ib_core does not know them.
//!
//! C header: `include/rdma/restrack.h`.
//!
//! An XRC target can live without a queue pair of ib_core's, or have several views. What the
//! administrator should see is the target: one entry, as long as it lives.

use crate::{
    bindings,
    device::Device,
    events::QpHandle,
    growth::make_room,
    provider::Provider,
    qp::{
        Qp,
        QpType, //
    },
};
use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::NonNull, //
};
use kernel::{
    alloc::flags::{
        __GFP_ZERO, //
        GFP_KERNEL_ACCOUNT,
    },
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// An entry: a queue pair that was placed and is tracked, and that only the table owns.
struct Entry<P: Provider>(NonNull<bindings::ib_qp>, PhantomData<fn() -> P>);

// SAFETY: Owns a `Qp<P>`, which is `Send`; the marker only names the type.
unsafe impl<P: Provider> Send for Entry<P> {}

impl<P: Provider> Drop for Entry<P> {
    fn drop(&mut self) {
        let qp = self.0.as_ptr();
        // SAFETY: Tracked since `track_qp`; the device still exists, since its own drop empties
        // the table. Waits for those that are looking at the entry. Afterwards nobody knows it,
        // so that it can be taken apart and its memory freed.
        unsafe {
            bindings::xrdma_ib_untrack_qp(qp);
            Qp::<P>::from_raw(qp).handle.revoke();
            Qp::<P>::unplace(qp);
            drop(KBox::from_raw(qp.cast::<MaybeUninit<Qp<P>>>()));
        }
    }
}

/// The entries of a device.
#[pin_data]
pub(crate) struct Tracked<P: Provider> {
    /// `None` once the device goes.
    #[pin]
    entries: Mutex<Option<KVec<Entry<P>>>>,
}

impl<P: Provider> Tracked<P> {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                entries <- new_mutex!(Some(KVec::new())),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes all entries back: the device goes. Process context.
    pub(crate) fn close(&self) {
        let entries = self.entries.lock().take();
        drop(entries);
    }

    fn remove(&self, qp: NonNull<bindings::ib_qp>) {
        let entry = {
            let mut entries = self.entries.lock();
            let Some(entries) = (*entries).as_mut() else {
                return;
            };
            let Some(at) = entries.iter().position(|e| e.0 == qp) else {
                return;
            };
            entries.remove(at)
        };
        // Waits, so not under the lock.
        drop(entry);
    }
}

/// An entry of `rdma res`; dropping it takes the entry away. Process context.
pub struct TrackedQp<P: Provider> {
    tracked: Arc<Tracked<P>>,
    qp: NonNull<bindings::ib_qp>,
}

// SAFETY: The pointer is only compared.
unsafe impl<P: Provider> Send for TrackedQp<P> {}

// SAFETY: As above.
unsafe impl<P: Provider> Sync for TrackedQp<P> {}

impl<P: Provider> Drop for TrackedQp<P> {
    fn drop(&mut self) {
        self.tracked.remove(self.qp);
    }
}

impl<P: Provider> Device<P> {
    /// Lets `rdma res` show a queue pair with number `qp_num`, which no other shown one may have.
    ///
    /// [`Provider::query_qp`] is called with a queue pair that has `data`, and nothing else is
    /// done with it; `data` is dropped with the entry. It is shown at port 1 from the start: ib_core
    /// notes the port of those queue pairs only that it modifies itself. Process context.
    pub fn track_qp(&self, qp_type: QpType, qp_num: u32, data: P::Qp) -> Result<TrackedQp<P>> {
        let _size = Qp::<P>::SIZE;
        let memory = KBox::<MaybeUninit<Qp<P>>>::new_uninit(GFP_KERNEL_ACCOUNT | __GFP_ZERO)?;
        let memory = KBox::into_raw(memory);
        let qp = memory.cast::<bindings::ib_qp>();
        // SAFETY: Revoked by the drop of the entry, or below.
        let handle = match unsafe { QpHandle::new(qp, false, false) } {
            Ok(handle) => handle,
            Err(e) => {
                // SAFETY: Ours alone, nothing in it.
                drop(unsafe { KBox::from_raw(memory) });
                return Err(e);
            }
        };
        // SAFETY: Zeroed memory of the size of `Qp<P>`, ours alone. Tracking makes it visible when
        // all that a look at it needs is there.
        unsafe {
            (*qp).device = self.as_raw();
            (*qp).real_qp = qp;
            (*qp).qp_type = qp_type as u32;
            (*qp).qp_num = qp_num;
            (*qp).port = 1;
            Qp::<P>::place(qp, handle, false, data);
            bindings::xrdma_ib_track_qp(qp);
        }
        let entry = Entry(
            // SAFETY: Not null: it came from a box.
            unsafe { NonNull::new_unchecked(qp) },
            PhantomData,
        );
        let qp = entry.0;
        let tracked = self.tracked();
        {
            let mut entries = tracked.entries.lock();
            let entries = (*entries).as_mut().ok_or(ENODEV)?;
            make_room(entries, GFP_KERNEL)?;
            entries.push_within_capacity(entry)?;
        }
        Ok(TrackedQp {
            tracked: tracked.clone(),
            qp,
        })
    }
}
