// SPDX-License-Identifier: GPL-2.0

//! Tables of objects that can be taken away from all of their users within a short time.

use core::{
    mem::ManuallyDrop,
    ops::{
        Deref,
        Range, //
    },
    ptr::NonNull, //
};
use kernel::{
    alloc::Flags,
    prelude::*, //
};
use pin_init::{
    pin_data,
    PinInit, //
};

use super::{
    reference::{
        data,
        Inner,
        Ref, //
    },
    table::{
        Reservation,
        Table, //
    },
};
use crate::{
    bindings,
    work, //
};

/// Numbers have 24 bits, and 0 is none.
const NUMBERS: Range<u32> = 1..1 << 24;

/// A map from numbers to objects, from which an object can be taken at once: when
/// [`remove`](Self::remove) returns, nobody uses the object any more but who has a [`KeyRef`] of
/// it.
///
/// A [`Table`] needs a grace period for that, which takes as long as everything else that RCU
/// readers do on all CPUs, or interrupts them. Here users leave the number with their CPU while
/// they use the object, and whoever removes it waits for those who have. So a use keeps preemption
/// off. (Real-time kernels count the users instead.)
#[pin_data]
pub struct KeyTable<T: Send + Sync + 'static> {
    #[pin]
    table: Table<T>,
}

/// A counted reference to an object of a [`KeyTable`], which is in no other table: without its
/// counts only those have it who look it up there. Dropped in a context that may sleep, the last
/// one drops the object at once; elsewhere, as with [`Ref`], some time later.
pub struct KeyRef<T: Send + Sync + 'static>(ManuallyDrop<Ref<T>>);

impl<T: Send + Sync> KeyRef<T> {
    /// Allocates a `T`.
    ///
    /// # Errors
    ///
    /// As [`Ref::new`].
    pub fn new(value: T, flags: Flags) -> Result<Self> {
        Ref::new(value, flags).map(Self::of)
    }

    fn of(object: Ref<T>) -> Self {
        Self(ManuallyDrop::new(object))
    }

    fn into_ref(this: Self) -> Ref<T> {
        let mut this = ManuallyDrop::new(this);
        // SAFETY: `this` is not dropped, so nobody takes it a second time.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl<T: Send + Sync> Deref for KeyRef<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + Sync> Drop for KeyRef<T> {
    fn drop(&mut self) {
        // SAFETY: This is the drop, after which nobody takes it a second time.
        let object = unsafe { ManuallyDrop::take(&mut self.0) };
        if work::may_sleep() {
            // SAFETY: If this is the last count, the object is in no table any more: `KeyTable` has
            // one as long as it has the object, and gives it up only when nobody uses the object
            // without. No other table ever had it, since a `KeyRef` does not give its `Ref` away.
            unsafe { Ref::drop_at_once(object) };
        }
    }
}

/// The use of an object, on this CPU.
///
/// # Invariants
///
/// `object` is one of a table, entered and not left, and `token` came with that.
struct User<T> {
    object: NonNull<Inner<T>>,
    token: i32,
}

impl<T: Send + Sync> User<T> {
    /// Looks number `id` up. Any context; the value is dropped in the same one, before any that is
    /// older, and nobody sleeps in between.
    #[inline]
    fn enter(table: &Table<T>, id: u32) -> Option<Self> {
        if !NUMBERS.contains(&id) {
            return None;
        }
        let mut token = 0;
        // SAFETY: The xarray is valid as long as the table, the number is in range, and `token` is
        // ours.
        let entry = unsafe { bindings::xrdma_held_enter(table.raw(), id, &mut token) };
        // INVARIANT: Entered, and left by the drop.
        NonNull::new(entry.cast()).map(|object| Self { object, token })
    }
}

impl<T> Drop for User<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_held_leave(self.token) };
    }
}

impl<T: Send + Sync> KeyTable<T> {
    /// A table of the numbers in `range`, as far as they have 24 bits and are not 0.
    pub fn new(range: Range<u32>) -> impl PinInit<Self> {
        let range = range.start.max(NUMBERS.start)..range.end.min(NUMBERS.end);
        pin_init!(Self {
            table <- Table::new(range),
        })
    }

    /// As [`Table::reserve`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn reserve(&self) -> Result<KeyReservation<'_, T>> {
        Ok(KeyReservation(self.table.reserve()?))
    }

    /// Calls `f` with the object that has number `id`. Any context; `f` must not sleep, and nobody
    /// who removes the object has gone on before it returns.
    #[inline]
    pub fn with<R>(&self, id: u32, f: impl FnOnce(&T) -> R) -> Option<R> {
        let user = User::enter(&self.table, id)?;
        // SAFETY: Entered, until `f` has returned: who removes the object waits for that before the
        // table's count is given up.
        let result = f(unsafe { data(user.object) });
        drop(user);
        Some(result)
    }

    /// A reference to the object with number `id`, if it `fits`, which must not sleep. Any context.
    pub fn get_if(&self, id: u32, fits: impl FnOnce(&T) -> bool) -> Option<KeyRef<T>> {
        let user = User::enter(&self.table, id)?;
        // SAFETY: As in `with`.
        if !fits(unsafe { data(user.object) }) {
            return None;
        }
        // SAFETY: As in `with`: the object is there until `user` is dropped.
        let object = unsafe { Ref::try_from_shared(user.object) };
        drop(user);
        object.map(KeyRef::of)
    }

    /// Puts another object in the place of the one with number `id`, which nobody uses any more
    /// when this returns but who has a reference, such as the one it returns. `None`, and nothing
    /// done, when there is none. The caller sees to it that nobody else replaces or removes it
    /// meanwhile. Process context.
    pub fn replace(&self, id: u32, object: KeyRef<T>) -> Option<KeyRef<T>> {
        let old = self.table.replace(id, KeyRef::into_ref(object))?;
        Self::wait(id);
        Some(KeyRef::of(old))
    }

    /// Takes the object out and frees its number. When this returns nobody uses it any more but who
    /// has a reference, such as the one it returns. Process context.
    pub fn remove(&self, id: u32) -> Option<KeyRef<T>> {
        let old = self.table.remove(id)?;
        Self::wait(id);
        Some(KeyRef::of(old))
    }

    /// Waits for those who found an object under `id` that is not there any more.
    fn wait(id: u32) {
        // SAFETY: Process context, by contract of the callers.
        unsafe { bindings::xrdma_held_wait(id) };
    }
}

/// As [`Reservation`], in a [`KeyTable`].
#[must_use]
pub struct KeyReservation<'a, T: Send + Sync + 'static>(Reservation<'a, T>);

impl<T: Send + Sync> KeyReservation<'_, T> {
    /// The number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Puts the object in: from now on look-ups find it. Any context.
    pub fn publish(self, object: KeyRef<T>) {
        self.0.publish(KeyRef::into_ref(object));
    }
}
