// SPDX-License-Identifier: GPL-2.0

//! Tables from numbers to objects.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::Range,
    ptr::NonNull, //
};
use kernel::{
    alloc::Flags,
    error::to_result,
    prelude::*,
    sync::rcu,
    types::Opaque, //
};
use pin_init::{
    pin_data,
    pinned_drop,
    PinInit, //
};

use super::{
    reference::{
        data,
        Inner,
        Ref, //
    },
    GFP_ACCOUNT, //
};
use crate::bindings;

/// A map from numbers in a range to [`Ref<T>`], read under RCU.
///
/// Look-ups are possible in any context, interrupts included, and take no lock. Changes take a
/// spinlock with interrupts off.
///
/// # Examples
///
/// ```ignore
/// use core::sync::atomic::{AtomicU64, Ordering};
/// use kernel::prelude::*;
/// use rdma::rcu::{Ref, Table, GFP_ACCOUNT};
///
/// struct Session {
///     bytes: AtomicU64,
/// }
///
/// /// Process context. The number is taken first; look-ups find it when the session is complete.
/// fn open(sessions: &Table<Session>) -> Result<u32> {
///     let number = sessions.reserve()?;
///     let id = number.id();
///     let bytes = AtomicU64::new(0);
///     number.publish(Ref::new(Session { bytes }, GFP_ACCOUNT)?);
///     Ok(id)
/// }
///
/// /// Any context. Whether there is such a session.
/// fn count(sessions: &Table<Session>, id: u32, bytes: u64) -> bool {
///     let found = sessions.with(id, |session| session.bytes.fetch_add(bytes, Ordering::Relaxed));
///     found.is_some()
/// }
///
/// /// Any context. The session is dropped a grace period after its last reference.
/// fn close(sessions: &Table<Session>, id: u32) {
///     drop(sessions.remove(id));
/// }
/// ```
#[pin_data(PinnedDrop)]
pub struct Table<T: Send + Sync + 'static> {
    #[pin]
    xa: Opaque<kernel::bindings::xarray>,
    /// Where the search for a free number goes on. Only C touches it, under the lock of `xa`.
    next: UnsafeCell<u32>,
    min: u32,
    max: u32,
    _owns: PhantomData<Ref<T>>,
}

// SAFETY: The table owns `Ref<T>`s, which are `Send`.
unsafe impl<T: Send + Sync> Send for Table<T> {}

// SAFETY: The xarray has a lock for writers, under which `next` is as well; readers use RCU and get
// `&T` or `Ref<T>`, which may be shared.
unsafe impl<T: Send + Sync> Sync for Table<T> {}

impl<T: Send + Sync> Table<T> {
    /// A table of the numbers in `range`; there is none to be had if that is empty.
    pub fn new(range: Range<u32>) -> impl PinInit<Self> {
        // For an empty table `min` is above `max`, also for `0..0`.
        let range = if range.is_empty() { 1..1 } else { range };
        pin_init!(Self {
            xa <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is memory for an xarray that does not move.
                unsafe { bindings::xrdma_xa_init(slot) }
            }),
            next: UnsafeCell::new(range.start),
            min: range.start,
            max: range.end.wrapping_sub(1),
            _owns: PhantomData,
        })
    }

    /// Takes a free number, the one after the last that was taken if possible, so that a number is
    /// not soon used again. Process context, may sleep.
    ///
    /// # Errors
    ///
    /// `ENOSPC` when all are taken; `ENOMEM`.
    pub fn reserve(&self) -> Result<Reservation<'_, T>> {
        self.reserve_with(GFP_ACCOUNT)
    }

    /// As [`reserve`](Self::reserve), in any context if `flags` do not let it sleep. (They say no
    /// more than that: the table is charged to its user in any case.)
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve).
    pub fn reserve_with(&self, flags: Flags) -> Result<Reservation<'_, T>> {
        if self.max < self.min {
            return Err(ENOSPC);
        }
        let mut id = 0;
        // SAFETY: The xarray is valid as long as `self`; the call writes `id`, and `next` under the
        // lock of the xarray.
        let ret = unsafe {
            bindings::xrdma_xa_reserve(
                self.xa.get(),
                &mut id,
                self.min,
                self.max,
                self.next.get(),
                flags.contains(GFP_KERNEL),
            )
        };
        // The xarray says EBUSY when it finds no free number.
        if ret == EBUSY.to_errno() {
            return Err(ENOSPC);
        }
        to_result(ret)?;
        // INVARIANT: Just reserved.
        Ok(Reservation { table: self, id })
    }

    /// Takes the given number. Process context, may sleep.
    ///
    /// # Errors
    ///
    /// `EBUSY` when it is taken; `EINVAL` when it is not in the table's range; `ENOMEM`.
    pub fn reserve_at(&self, id: u32) -> Result<Reservation<'_, T>> {
        if id < self.min || id > self.max {
            return Err(EINVAL);
        }
        // SAFETY: The xarray is valid as long as `self`.
        to_result(unsafe { bindings::xrdma_xa_reserve_at(self.xa.get(), id) })?;
        // INVARIANT: Just reserved.
        Ok(Reservation { table: self, id })
    }

    /// The numbers and pointers to their objects.
    pub(super) fn raw(&self) -> *mut kernel::bindings::xarray {
        self.xa.get()
    }

    /// The entry with number `id`; the pointee is there until the end of the RCU read section.
    #[inline]
    fn load(&self, id: u32, _rcu: &rcu::Guard) -> Option<NonNull<Inner<T>>> {
        // SAFETY: The xarray is valid as long as `self`. Its entries are what `publish` stored.
        NonNull::new(unsafe { kernel::bindings::xa_load(self.xa.get(), id as usize) }.cast())
    }

    /// A reference to the object with number `id`. Any context.
    pub fn get(&self, id: u32) -> Option<Ref<T>> {
        let guard = rcu::read_lock();
        let ptr = self.load(id, &guard)?;
        // SAFETY: Found in this RCU read section, and an object waits for a grace period after its
        // last reference is gone.
        unsafe { Ref::try_from_shared(ptr) }
    }

    /// As [`get`](Self::get), of an object that `fits`. Others get no reference, not even for a
    /// moment: their owner may count on readers being done after a grace period. `fits` must not
    /// sleep.
    pub fn get_if(&self, id: u32, fits: impl FnOnce(&T) -> bool) -> Option<Ref<T>> {
        let guard = rcu::read_lock();
        let ptr = self.load(id, &guard)?;
        // SAFETY: Found in this RCU read section, which lasts until `fits` has returned; the
        // table's reference or the grace period after it keep the object.
        if !fits(unsafe { data(ptr) }) {
            return None;
        }
        // SAFETY: Found in this RCU read section, and an object waits for a grace period after its
        // last reference is gone.
        unsafe { Ref::try_from_shared(ptr) }
    }

    /// Calls `f` with the object that has number `id`. Any context.
    ///
    /// No count is touched; `f` runs in an RCU read section and must not sleep. The object may be
    /// removed from the table meanwhile, but not dropped.
    #[inline]
    pub fn with<R>(&self, id: u32, f: impl FnOnce(&T) -> R) -> Option<R> {
        let guard = rcu::read_lock();
        let ptr = self.load(id, &guard)?;
        // SAFETY: Found in this RCU read section, which lasts until `f` has returned; the table's
        // reference or the grace period after it keep the object.
        let result = f(unsafe { data(ptr) });
        drop(guard);
        Some(result)
    }

    /// Calls `f` with one object after the other, in the order of the numbers, until it returns
    /// something. Any context.
    ///
    /// As with [`with`](Self::with), no count is touched, and `f` must not sleep. It takes time for
    /// every object: meant for small tables.
    pub fn find<R>(&self, mut f: impl FnMut(u32, &T) -> Option<R>) -> Option<R> {
        let _guard = rcu::read_lock();
        let mut id = self.min as usize;
        loop {
            // SAFETY: The xarray is valid as long as `self`; `id` is written.
            let entry = unsafe { bindings::xrdma_xa_next(self.xa.get(), &mut id) };
            let ptr = NonNull::new(entry.cast())?;
            // SAFETY: Found in this RCU read section, which lasts until `f` has returned; the
            // table's reference or the grace period after it keep the object.
            let object = unsafe { data(ptr) };
            if let Some(result) = f(u32::try_from(id).ok()?, object) {
                return Some(result);
            }
            id = id.checked_add(1)?;
        }
    }

    /// Puts another object in the place of the one with number `id`, which is returned; look-ups
    /// find one or the other. `None` when there is none, and then `object` is dropped. Any context.
    pub fn replace(&self, id: u32, object: Ref<T>) -> Option<Ref<T>> {
        let ptr = Ref::into_raw(object);
        // SAFETY: The xarray is valid as long as `self`. The table takes over the count if it has
        // an object with this number, as the call finds under the lock of the xarray.
        let old = unsafe { bindings::xrdma_xa_replace(self.xa.get(), id, ptr.as_ptr().cast()) };
        let Some(old) = NonNull::new(old.cast()) else {
            // SAFETY: The table did not take the count over: it is ours as before.
            drop(unsafe { Ref::from_raw(ptr) });
            return None;
        };
        // SAFETY: As in `remove`.
        Some(unsafe { Ref::from_raw(old) })
    }

    /// Takes the object out and frees its number; does nothing to a number without object. Any
    /// context.
    pub fn remove(&self, id: u32) -> Option<Ref<T>> {
        // SAFETY: The xarray is valid as long as `self`.
        let entry = unsafe { bindings::xrdma_xa_remove(self.xa.get(), id) };
        NonNull::new(entry.cast()).map(|ptr| {
            // SAFETY: `publish` put the pointer in with a count, which left the table with it.
            unsafe { Ref::from_raw(ptr) }
        })
    }

    /// Calls `f` for every object, in the order of the numbers. Process context; `f` may sleep, and
    /// may change the table.
    pub fn for_each(&self, mut f: impl FnMut(u32, &Ref<T>)) {
        let mut id = self.min as usize;
        while let Some((found, object)) = self.next(id) {
            f(found, &object);
            let Some(after) = found.checked_add(1) else {
                return;
            };
            id = after as usize;
        }
    }

    /// The first object whose number is at least `id` and that has references.
    fn next(&self, mut id: usize) -> Option<(u32, Ref<T>)> {
        loop {
            let guard = rcu::read_lock();
            // SAFETY: The xarray is valid as long as `self`; `id` is written.
            let entry = unsafe { bindings::xrdma_xa_next(self.xa.get(), &mut id) };
            let ptr = NonNull::new(entry.cast())?;
            // SAFETY: Found in this RCU read section.
            let object = unsafe { Ref::try_from_shared(ptr) };
            drop(guard);
            let found = u32::try_from(id).ok()?;
            if let Some(object) = object {
                return Some((found, object));
            }
            id = id.checked_add(1)?;
        }
    }

    /// Whether no object is in the table. Process context.
    pub fn is_empty(&self) -> bool {
        self.next(self.min as usize).is_none()
    }
}

#[pinned_drop]
impl<T: Send + Sync> PinnedDrop for Table<T> {
    fn drop(self: Pin<&mut Self>) {
        let mut id = self.min as usize;
        while let Some((found, object)) = self.next(id) {
            drop(object);
            drop(self.remove(found));
            id = found as usize;
        }
    }
}

/// A number that is taken and has no object yet; look-ups do not find it. Dropping it frees the
/// number.
///
/// # Invariants
///
/// The slot of `id` in the table is reserved, and nobody else fills or frees it: [`Table::remove`]
/// and [`Table::replace`] pass by slots without an object.
#[must_use]
pub struct Reservation<'a, T: Send + Sync + 'static> {
    table: &'a Table<T>,
    id: u32,
}

impl<T: Send + Sync> Reservation<'_, T> {
    /// The number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Puts the object in: from now on look-ups find it. Any context.
    pub fn publish(self, object: Ref<T>) {
        let ptr = Ref::into_raw(object);
        // SAFETY: The xarray is valid as long as the table. The table takes over the count. By the
        // type invariant the slot is reserved, so nothing is allocated and nothing was there.
        unsafe {
            bindings::xrdma_xa_publish(self.table.xa.get(), self.id, ptr.as_ptr().cast());
        }
        core::mem::forget(self);
    }
}

impl<T: Send + Sync> Drop for Reservation<'_, T> {
    fn drop(&mut self) {
        // SAFETY: The xarray is valid as long as the table; by the type invariant the slot is
        // reserved, and it is ours.
        unsafe { bindings::xrdma_xa_release(self.table.xa.get(), self.id) };
    }
}
