// SPDX-License-Identifier: GPL-2.0

//! Queue pairs that `rdma res` shows although ib_core does not know them.
//!
//! C header: `include/rdma/restrack.h`.
//!
//! An XRC target may have no queue pair of ib_core, or it may have several views. The administrator
//! should see the target itself: one entry, for as long as the target lives.

use crate::{
    bindings,
    device::Device,
    errno::emsgsize,
    events::{
        Listener,
        QpHandle, //
    },
    provider::Provider,
    qp::{
        Qp,
        QpAttrMask,
        QpState,
        QpType, //
    },
    uverbs::rcv_qp::RcvQpAttr, //
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
    error::to_result,
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        Arc,
        Mutex, //
    },
    types::ScopeGuard, //
};

/// An entry: a queue pair that was placed and is tracked, and that only the table owns.
struct Entry<P: Provider>(NonNull<bindings::ib_qp>, PhantomData<fn() -> P>);

// SAFETY: Owns a `Qp<P>`, which is `Send`; the marker only names the type.
unsafe impl<P: Provider> Send for Entry<P> {}

impl<P: Provider> Drop for Entry<P> {
    fn drop(&mut self) {
        let qp = self.0.as_ptr();
        // SAFETY: Tracked since `track_qp`, or hidden since, which the tracker knows; the device
        // still exists, since its own drop empties the table. Waits for those that are looking at
        // the entry. Afterwards nobody knows it, so that it can be taken apart and its memory
        // freed. The reference on a GID comes from ib_core's modify operation, whose callers give
        // it back, or from `modify_through`.
        unsafe {
            bindings::xrdma_ib_untrack_qp(qp);
            if !(*qp).av_sgid_attr.is_null() {
                bindings::rdma_put_gid_attr((*qp).av_sgid_attr);
            }
            Qp::<P>::from_raw(qp).handle.revoke();
            Qp::<P>::unplace(qp);
            drop(KBox::from_raw(qp.cast::<MaybeUninit<Qp<P>>>()));
        }
    }
}

/// Where a queue pair is found among the entries.
fn key(qp: NonNull<bindings::ib_qp>) -> usize {
    qp.as_ptr() as usize
}

/// The entries of a device.
#[pin_data]
pub(crate) struct Tracked<P: Provider> {
    /// By address, which no two of them share: a domain that ends takes out thousands, one by one.
    /// `None` once the device goes.
    #[pin]
    entries: Mutex<Option<RBTree<usize, Entry<P>>>>,
}

impl<P: Provider> Tracked<P> {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                entries <- new_mutex!(Some(RBTree::new())),
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
            entries.remove(&key(qp))
        };
        // Waits, so not under the lock.
        drop(entry);
    }
}

/// An entry of `rdma res`; dropping it takes the entry away. Process context.
///
/// # Invariants
///
/// `qp` is the pointer of an entry of `tracked`, until that is closed.
#[pin_data(PinnedDrop)]
pub struct TrackedQp<P: Provider> {
    tracked: Arc<Tracked<P>>,
    qp: NonNull<bindings::ib_qp>,
    /// One modify operation at a time: there is no uobject whose lock would see to it.
    #[pin]
    modify: Mutex<()>,
}

// SAFETY: The pointer is compared, and used for what any thread may do.
unsafe impl<P: Provider> Send for TrackedQp<P> {}

// SAFETY: As above; `modify` serialises where that is needed.
unsafe impl<P: Provider> Sync for TrackedQp<P> {}

#[pinned_drop]
impl<P: Provider> PinnedDrop for TrackedQp<P> {
    fn drop(self: Pin<&mut Self>) {
        self.tracked.remove(self.qp);
    }
}

impl<P: Provider> TrackedQp<P> {
    /// Takes the line out of `rdma res`, while the entry stays for those that are in a call on it:
    /// what it shows ends. Waits for those that are looking at it. Process context; no lock that
    /// [`Provider::query_qp`] and [`Provider::show_qp`] take may be held.
    pub fn hide(&self) {
        let entries = self.tracked.entries.lock();
        let Some(entries) = (*entries).as_ref() else {
            return;
        };
        if entries.get(&key(self.qp)).is_some() {
            // SAFETY: In the table, so tracked, or hidden already, which the tracker knows; nobody
            // takes it out of the table under the lock. Those that look at it do not take that.
            unsafe { bindings::xrdma_ib_untrack_qp(self.qp.as_ptr()) };
        }
    }

    /// Goes to `state` with those attributes of `attr` that `mask` names, by ib_core's modify
    /// operation: it finds the source GID, keeps a reference on it, resolves the next hop, and
    /// calls [`Provider::modify_qp`]. `device` is the one that the entry was made for and that the
    /// command with `attr` runs on, hence registered. Process context; may take as long as the
    /// resolution of an address, and that for each call that came before.
    ///
    /// # Errors
    ///
    /// `ENODEV` when `device` is another one; `EIO` when it is about to go; those of ib_core and of
    /// the provider.
    pub fn modify(
        &self,
        device: &Device<P>,
        attr: &mut RcvQpAttr<'_>,
        mask: QpAttrMask,
        state: Option<QpState>,
    ) -> Result {
        if !core::ptr::eq(&raw const **device.tracked(), &raw const *self.tracked)
            || !core::ptr::eq(device.as_raw(), attr.device)
        {
            return Err(ENODEV);
        }
        let mask = match state {
            Some(_) => mask | QpAttrMask::STATE,
            None => mask,
        };
        let _one = self.modify.lock();
        if P::is_going(device) {
            return Err(EIO);
        }
        // SAFETY: The device exists, so its table is not closed, and the entry is there as long as
        // `self` is: a queue pair that was placed. `attr` and `udata` are valid (invariant); nobody
        // else is in here.
        to_result(unsafe {
            if let Some(state) = state {
                (*attr.attr).qp_state = state as u32;
            }
            bindings::ib_modify_qp_with_udata(
                self.qp.as_ptr(),
                attr.attr,
                mask.bits() as i32,
                attr.udata,
            )
        })
    }
}

impl<P: Provider> TrackedQp<P> {
    /// Runs `modify`, which gives the source GID `source` to what this shows, through another queue
    /// pair: ib_core keeps a reference on the GID for that one, which may be the first to go. So
    /// the entry takes one of its own, and the GID's place in the table is kept as long as anybody
    /// sends from it. `device` is the one that the entry was made for, or this fails with `ENODEV`;
    /// with `EIO` when that is about to go. Process context; not from within [`TrackedQp::modify`].
    ///
    /// # Safety
    ///
    /// `source` must be null, or a GID of the device that the caller has a reference on.
    pub(crate) unsafe fn modify_through(
        &self,
        device: &Device<P>,
        source: *const bindings::ib_gid_attr,
        modify: impl FnOnce() -> Result,
    ) -> Result {
        if !core::ptr::eq(&raw const **device.tracked(), &raw const *self.tracked) {
            return Err(ENODEV);
        }
        // Of two that change it at a time, the entry's GID is that of the later one.
        let _one = self.modify.lock();
        if P::is_going(device) {
            return Err(EIO);
        }
        modify()?;
        if source.is_null() {
            return Ok(());
        }
        // SAFETY: The device exists, so its table is not closed, and the entry is there as long as
        // `self` is; this field of it is used under the lock, and by its drop. `source` is
        // referenced (contract), the old one by this or by ib_core's modify operation.
        unsafe {
            bindings::rdma_hold_gid_attr(source);
            let old = (&raw mut (*self.qp.as_ptr()).av_sgid_attr).replace(source);
            if !old.is_null() {
                bindings::rdma_put_gid_attr(old);
            }
        }
        Ok(())
    }
}

/// One object's line of `rdma resource show`, being written.
///
/// # Invariants
///
/// `msg` is a netlink message that is being written.
pub struct ResEntry {
    msg: *mut kernel::bindings::sk_buff,
}

impl ResEntry {
    /// Wraps the message.
    ///
    /// # Safety
    ///
    /// `msg` must be a netlink message that nobody else writes during the life of the value.
    pub(crate) unsafe fn new(msg: *mut kernel::bindings::sk_buff) -> Self {
        // INVARIANT: By contract.
        Self { msg }
    }

    /// Adds numbers with their names, which `rdma -dd` prints with `drv_` in front.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` when the message is full; ib_core then writes the line anew in the next one.
    pub fn driver_numbers(&mut self, numbers: &[(&CStr, u64)]) -> Result {
        // SAFETY: By the invariant.
        let table = unsafe { bindings::xrdma_ib_res_begin(self.msg) };
        if table.is_null() {
            return Err(emsgsize());
        }
        for (name, number) in numbers {
            // SAFETY: By the invariant; the name is copied.
            to_result(unsafe {
                bindings::rdma_nl_put_driver_u64(self.msg, name.as_char_ptr(), *number)
            })?;
        }
        // SAFETY: Begun above in the same message.
        unsafe { bindings::xrdma_ib_res_end(self.msg, table) };
        Ok(())
    }
}

impl<P: Provider> Device<P> {
    /// Lets `rdma res` show a queue pair with number `qp_num`, which no other shown one may have.
    ///
    /// [`Provider::query_qp`] and, by [`TrackedQp::modify`], [`Provider::modify_qp`] are called
    /// with a queue pair that has `data`; `data` is dropped with the entry. It is shown at port 1
    /// from the start: ib_core notes the port of those queue pairs only that it modifies itself.
    /// Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM; ENODEV when the device is going.
    pub fn track_qp(&self, qp_type: QpType, qp_num: u32, data: P::Qp) -> Result<Arc<TrackedQp<P>>> {
        let _size = Qp::<P>::SIZE;
        let memory = KBox::<MaybeUninit<Qp<P>>>::new_uninit(GFP_KERNEL_ACCOUNT | __GFP_ZERO)?;
        let memory = KBox::into_raw(memory);
        let qp = memory.cast::<bindings::ib_qp>();
        // SAFETY: Revoked by the drop of the entry, or below.
        let handle = match unsafe { QpHandle::new(qp, Listener::Uverbs) } {
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
        let node = RBTreeNode::new(key(qp), entry, GFP_KERNEL_ACCOUNT)?;
        // There is no other with that address.
        let _ = (*tracked.entries.lock())
            .as_mut()
            .ok_or(ENODEV)?
            .insert(node);
        let remove = ScopeGuard::new(|| tracked.remove(qp));
        // INVARIANT: Just entered.
        let this = Arc::pin_init(
            pin_init!(TrackedQp {
                tracked: tracked.clone(),
                qp,
                modify <- new_mutex!(()),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        remove.dismiss();
        Ok(this)
    }
}
