// SPDX-License-Identifier: GPL-2.0

//! Spinlocks for data that softirq or interrupt handlers share, and a guard that keeps softirqs off
//! the CPU without a lock.
//!
//! C header: `include/linux/spinlock.h`.

use core::sync::atomic::{
    fence,
    Ordering, //
};
use kernel::{
    bindings::{
        lock_class_key,
        spinlock_t, //
    },
    ffi::c_char,
    sync::lock::{
        Backend,
        Lock, //
    },
    types::NotThreadSafe, //
};

use crate::bindings;

/// Keeps softirq off this CPU as long as it lives, and so the task on it: nothing but a hard
/// interrupt gets in between. For what others would have to wait for if a task of low priority lost
/// its CPU in the midst of it. Nothing in between may sleep, and RCU takes all of it for a read
/// section. May be nested. On a real-time kernel, other tasks and their softirqs may run on the CPU
/// meanwhile, so nothing may rely on it to keep them out.
pub struct NoSoftirq {
    _not_send: NotThreadSafe,
}

impl NoSoftirq {
    /// From now on. Process context or softirq, with interrupts on.
    #[inline]
    #[expect(clippy::new_without_default, reason = "it has an effect")]
    pub fn new() -> Self {
        // SAFETY: Undone by the drop, on the same CPU: the value cannot go to another thread, and
        // this one stays where it is.
        unsafe { bindings::xrdma_bh_disable() };
        Self {
            _not_send: NotThreadSafe,
        }
    }
}

impl Drop for NoSoftirq {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: Disabled by `new`.
        unsafe { bindings::xrdma_bh_enable() };
    }
}

/// Keeps the task on its CPU as long as it lives; interrupts and softirq still come. For what
/// others would have to wait for, in any context, if a task of low priority lost its CPU in the
/// midst of it. Nothing in between may sleep. May be nested. On a real-time kernel, other tasks may
/// run on the CPU meanwhile.
pub struct NoPreempt {
    _not_send: NotThreadSafe,
}

impl NoPreempt {
    /// From now on. Any context.
    #[inline]
    #[expect(clippy::new_without_default, reason = "it has an effect")]
    pub fn new() -> Self {
        // SAFETY: Undone by the drop, on the same CPU: the value cannot go to another thread, and
        // this one stays where it is.
        unsafe { bindings::xrdma_preempt_disable() };
        Self {
            _not_send: NotThreadSafe,
        }
    }
}

impl Drop for NoPreempt {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: Disabled by `new`.
        unsafe { bindings::xrdma_preempt_enable() };
    }
}

/// A spinlock that keeps softirq off this CPU while it is held: for data shared between process
/// context and softirq. Made by [`new_spinlock_bh!`](crate::new_spinlock_bh).
pub type SpinLockBh<T> = Lock<T, BhBackend>;

/// A spinlock that keeps interrupts off while it is held: for data that is reached from any
/// context. Made by [`new_spinlock_irq!`](crate::new_spinlock_irq).
pub type SpinLockIrq<T> = Lock<T, IrqBackend>;

/// The backend of [`SpinLockBh`].
pub struct BhBackend;

/// The backend of [`SpinLockIrq`].
pub struct IrqBackend;

// SAFETY: `spinlock_t` excludes others from `lock` to `unlock`; `relock` is the default one.
unsafe impl Backend for BhBackend {
    type State = spinlock_t;
    type GuardState = ();

    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut lock_class_key) {
        // SAFETY: By the trait's requirements the pointers are good, `name` and `key` for ever.
        unsafe { kernel::bindings::__spin_lock_init(ptr, name, key) };
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: By the trait's requirements it is an initialised lock.
        unsafe { bindings::xrdma_spin_lock_bh(ptr.cast()) };
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        // SAFETY: By the trait's requirements it is an initialised lock.
        unsafe { bindings::xrdma_spin_trylock_bh(ptr.cast()) }.then_some(())
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, _guard_state: &Self::GuardState) {
        // SAFETY: By the trait's requirements the caller holds the lock.
        unsafe { bindings::xrdma_spin_unlock_bh(ptr.cast()) };
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // SAFETY: By the trait's requirements it is an initialised lock.
        unsafe { kernel::bindings::spin_assert_is_held(ptr) };
    }
}

// SAFETY: `spinlock_t` excludes others from `lock` to `unlock`; `relock` is the default one.
unsafe impl Backend for IrqBackend {
    type State = spinlock_t;
    /// The interrupt flags from before.
    type GuardState = usize;

    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut lock_class_key) {
        // SAFETY: By the trait's requirements the pointers are good, `name` and `key` for ever.
        unsafe { kernel::bindings::__spin_lock_init(ptr, name, key) };
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: By the trait's requirements it is an initialised lock.
        unsafe { bindings::xrdma_spin_lock_irqsave(ptr.cast()) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        let mut flags = 0;
        // SAFETY: By the trait's requirements it is an initialised lock; `flags` is ours.
        unsafe { bindings::xrdma_spin_trylock_irqsave(ptr.cast(), &mut flags) }.then_some(flags)
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, guard_state: &Self::GuardState) {
        // SAFETY: By the trait's requirements the caller holds the lock and the flags are those of
        // its `lock`.
        unsafe { bindings::xrdma_spin_unlock_irqrestore(ptr.cast(), *guard_state) };
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // SAFETY: By the trait's requirements it is an initialised lock.
        unsafe { kernel::bindings::spin_assert_is_held(ptr) };
    }
}

/// A pin-initialiser of a [`SpinLockBh`], with a lock class of its own for
/// each place where it is written. `new_spinlock_bh!(value, "name")`.
#[macro_export]
macro_rules! new_spinlock_bh {
    ($inner:expr $(, $name:literal)? $(,)?) => {
        $crate::sync::SpinLockBh::new(
            $inner, ::kernel::optional_name!($($name)?), ::kernel::static_lock_class!())
    };
}

/// A pin-initialiser of a [`SpinLockIrq`], with a lock class of its own for
/// each place where it is written. `new_spinlock_irq!(value, "name")`.
#[macro_export]
macro_rules! new_spinlock_irq {
    ($inner:expr $(, $name:literal)? $(,)?) => {
        $crate::sync::SpinLockIrq::new(
            $inner, ::kernel::optional_name!($($name)?), ::kernel::static_lock_class!())
    };
}

pub use crate::{
    new_spinlock_bh,
    new_spinlock_irq, //
};

/// A full memory barrier: no load or store of this CPU passes it in either direction. What
/// separates "I have announced that I stop" from "I look once more" in protocols with user space.
#[inline]
pub fn full_fence() {
    fence(Ordering::SeqCst);
}
