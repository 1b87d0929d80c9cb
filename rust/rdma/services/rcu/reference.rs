// SPDX-License-Identifier: GPL-2.0

//! Reference-counted objects whose drop waits for RCU readers.

use core::{
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Refcount, //
    },
    types::Opaque, //
};
use pin_init::PinInit;

use crate::{
    bindings,
    work, //
};

/// Objects whose last reference is gone and whose drop has not yet finished.
static DEFERRED: Atomic<u64> = Atomic::new(0);

/// How many objects are between their last reference and the end of their drop.
pub(crate) fn deferred_drops() -> u64 {
    DEFERRED.load(Relaxed)
}

#[pin_data]
#[repr(C)]
pub(super) struct Inner<T> {
    refcount: Refcount,
    #[pin]
    release: Opaque<kernel::bindings::rcu_work>,
    #[pin]
    data: T,
}

/// A counted reference to a pinned `T`.
///
/// Cloning and dropping are possible in any context but NMI. After the last reference is dropped,
/// an RCU grace period passes, and then `T` is dropped in process context on the module's work
/// queue for drops, where it may sleep. So a `&T` found under RCU stays good until the end of the
/// read section, with no reference taken.
///
/// # Invariants
///
/// `ptr` is an `Inner<T>` in a `KBox`, and this value owns one count of its `refcount`.
pub struct Ref<T: Send + Sync + 'static> {
    ptr: NonNull<Inner<T>>,
    _owns: PhantomData<Inner<T>>,
}

// SAFETY: It gives `&T` (whence `Sync`), and the thread that drops the last one passes `T` on to be
// dropped elsewhere (whence `Send`).
unsafe impl<T: Send + Sync> Send for Ref<T> {}

// SAFETY: As above; cloning through a shared reference is what counts are for.
unsafe impl<T: Send + Sync> Sync for Ref<T> {}

// What it points to does not move; it may.
impl<T: Send + Sync> Unpin for Ref<T> {}

impl<T: Send + Sync> Ref<T> {
    /// Allocates a `T`. Use [`GFP_ACCOUNT`](super::GFP_ACCOUNT) for what processes create.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `ENODEV` before [`work::Services`] are started.
    pub fn new(value: T, flags: Flags) -> Result<Self> {
        let place = move |slot: *mut T| -> Result {
            // SAFETY: The caller of a closure initialiser gives memory that is valid for writes.
            unsafe { slot.write(value) };
            Ok(())
        };
        // SAFETY: A value is moved into the slot, which cannot fail and pins nothing before.
        let init = unsafe { pin_init::pin_init_from_closure(place) };
        Self::pin_init(init, flags)
    }

    /// Allocates a `T` and initialises it in place.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and what `init` fails with.
    // Not inline: the copies of `init` take kilobytes of stack, which the caller is not to lack
    // while it makes what goes into `T`.
    #[inline(never)]
    pub fn pin_init<E>(init: impl PinInit<T, E>, flags: Flags) -> Result<Self>
    where
        Error: From<E>,
    {
        if work::free_queue().is_none() {
            return Err(ENODEV);
        }
        let inner = KBox::try_pin_init::<Error>(
            try_pin_init!(Inner {
                refcount: Refcount::new(1),
                release <- Opaque::ffi_init(|slot| {
                    // SAFETY: `slot` is memory for an rcu_work that does not move.
                    unsafe { bindings::xrdma_rcu_work_init(slot, Some(release::<T>)) }
                }),
                data <- init,
            }? Error),
            flags,
        )?;
        // SAFETY: The pointee stays where it is until `release` makes a box of it again.
        let inner = unsafe { Pin::into_inner_unchecked(inner) };
        // INVARIANT: The box is ours, with the count of one that it was made with.
        Ok(Self {
            ptr: NonNull::from(KBox::leak(inner)),
            _owns: PhantomData,
        })
    }

    /// Drops the reference and, if it was the last, `T` here. Process context, where `T` may be
    /// dropped.
    ///
    /// # Safety
    ///
    /// If it is the last, no RCU reader uses the object.
    pub(super) unsafe fn drop_at_once(this: Self) {
        let ptr = Self::into_raw(this);
        // SAFETY: We have a count, so the object is there; it is used afterwards only if this was
        // the last.
        if unsafe { (*ptr.as_ptr()).refcount.dec_and_test() } {
            // SAFETY: No reference is left, so no table has it, and by the safety requirement
            // nobody uses it. It came from a `KBox`, and dropping in place does not move it.
            drop(unsafe { KBox::from_raw(ptr.as_ptr()) });
        }
    }

    /// Gives the count to whoever keeps the pointer.
    pub(super) fn into_raw(this: Self) -> NonNull<Inner<T>> {
        let ptr = this.ptr;
        core::mem::forget(this);
        ptr
    }

    /// Takes a count back.
    ///
    /// # Safety
    ///
    /// `ptr` comes from [`into_raw`](Self::into_raw), and this is the only use of that count.
    pub(super) unsafe fn from_raw(ptr: NonNull<Inner<T>>) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            ptr,
            _owns: PhantomData,
        }
    }

    /// A new reference, unless the last one is gone already.
    ///
    /// # Safety
    ///
    /// `ptr` points to an object that is not dropped before this returns: the caller found it in an
    /// RCU read section that it is still in.
    pub(super) unsafe fn try_from_shared(ptr: NonNull<Inner<T>>) -> Option<Self> {
        // SAFETY: By the safety requirement the object is there.
        let refcount = unsafe { &(*ptr.as_ptr()).refcount };
        let raw: *const Refcount = refcount;
        // SAFETY: `Refcount` is a transparent wrapper of a `refcount_t`, valid as said above.
        if !unsafe { bindings::xrdma_refcount_inc_not_zero(raw.cast_mut().cast()) } {
            return None;
        }
        // INVARIANT: The count was taken above.
        Some(Self {
            ptr,
            _owns: PhantomData,
        })
    }
}

/// The object behind an entry of a table.
///
/// # Safety
///
/// `ptr` points to an object that is not dropped during `'a`.
pub(super) unsafe fn data<'a, T>(ptr: NonNull<Inner<T>>) -> &'a T {
    // SAFETY: By the safety requirement.
    unsafe { &(*ptr.as_ptr()).data }
}

impl<T: Send + Sync> Clone for Ref<T> {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: We hold a count, so the object is there.
        unsafe { (*self.ptr.as_ptr()).refcount.inc() };
        // INVARIANT: The count was taken above.
        Self {
            ptr: self.ptr,
            _owns: PhantomData,
        }
    }
}

impl<T: Send + Sync> Deref for Ref<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: We hold a count for as long as the reference that we give lives.
        unsafe { data(self.ptr) }
    }
}

impl<T: Send + Sync> Drop for Ref<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: We hold a count, so the object is there; it is not used after this gives it up.
        if unsafe { (*self.ptr.as_ptr()).refcount.dec_and_test() } {
            defer(self.ptr);
        }
    }
}

/// Queues the drop of an object that has lost its last reference. Any context.
#[cold]
fn defer<T>(ptr: NonNull<Inner<T>>) {
    // The queue is there until the end of this section: it is given up before it is destroyed.
    let _guard = kernel::sync::rcu::read_lock();
    let Some(queue) = work::free_queue() else {
        // The module is past its end: to leak is the safe thing to do.
        pr_err!("an object outlived the module's work queues and is leaked\n");
        return;
    };
    DEFERRED.fetch_add(1, Relaxed);
    // SAFETY: `release` was initialised with the object, is queued only once, here, and lives in
    // the object, which only its function frees. The queue is not destroyed while DEFERRED is not
    // zero.
    unsafe {
        let rwork = Opaque::cast_into(&raw const (*ptr.as_ptr()).release);
        kernel::bindings::queue_rcu_work(queue.as_ptr(), rwork);
    }
}

/// Runs on the module's work queue for drops, a grace period after [`defer`].
///
/// # Safety
///
/// `work` is the one inside the `release` of an `Inner<T>` without references.
unsafe extern "C" fn release<T>(work: *mut kernel::bindings::work_struct) {
    // SAFETY: By the safety requirement it is part of an rcu_work.
    let rwork = unsafe { bindings::xrdma_to_rcu_work(work) };
    // SAFETY: By the safety requirement that is the field of an `Inner<T>`, from a `KBox`. No
    // reference is left, and RCU readers that saw the object are done.
    let inner = unsafe {
        let field: *mut Opaque<kernel::bindings::rcu_work> = rwork.cast();
        KBox::from_raw(kernel::container_of!(field, Inner<T>, release))
    };
    // It was pinned, and dropping in place does not move it.
    drop(inner);
    DEFERRED.fetch_sub(1, Relaxed);
}
