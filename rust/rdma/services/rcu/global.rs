// SPDX-License-Identifier: GPL-2.0

//! State of the module that interrupt handlers and packets use without a pointer from their caller.

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    sync::atomic::{
        AtomicU8,
        Ordering, //
    },
};
use kernel::prelude::*;
use pin_init::PinInit;

const EMPTY: u8 = 0;
const BUSY: u8 = 1;
const READY: u8 = 2;

/// A `static` that is initialised once, in place, when the module loads.
///
/// It is never dropped: any callback may hold a `&'static T` until the module's text is gone. `T`
/// must therefore own no memory once its users are done; an empty [`Table`](super::Table) owns
/// none.
///
/// The flag is an atomic of `core` and not of `kernel`: every look at a table begins with a look at
/// it, and in a kernel built by GCC the latter's operations are calls out of line. It is private to
/// this file, so no C code with the kernel's memory model ever meets it.
pub struct Global<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: All threads get `&T` only, and the thread that unloads the module is not given `T` back;
// initialisation happens on one thread, whence `Send`.
unsafe impl<T: Send + Sync> Sync for Global<T> {}

impl<T> Global<T> {
    /// An empty one, for a `static`.
    #[expect(clippy::new_without_default, reason = "it is for statics only")]
    pub const fn new() -> Self {
        Self {
            state: AtomicU8::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Fills it. Process context.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it is or is being filled; otherwise what `init` fails with, and then it is empty
    /// as before.
    pub fn init<E>(&'static self, init: impl PinInit<T, E>) -> Result<&'static T>
    where
        Error: From<E>,
    {
        self.state
            .compare_exchange(EMPTY, BUSY, Ordering::Acquire, Ordering::Relaxed)
            .map_err(|_| EBUSY)?;
        // SAFETY: Nobody else touches the memory in state BUSY, which we alone have entered. It is
        // part of a static: it never moves and is never reused.
        let slot: &'static mut MaybeUninit<T> = unsafe { &mut *self.value.get() };
        match slot.write_pin_init(init) {
            Ok(value) => {
                self.state.store(READY, Ordering::Release);
                // Never dropped or handed out mutably.
                Ok(value.into_ref().get_ref())
            }
            Err(e) => {
                self.state.store(EMPTY, Ordering::Release);
                Err(e.into())
            }
        }
    }

    /// What [`init`](Self::init) put in. Any context.
    #[inline]
    pub fn get(&'static self) -> Option<&'static T> {
        if self.state.load(Ordering::Acquire) != READY {
            return None;
        }
        // SAFETY: In state READY the value is initialised; it stays so and is only shared.
        Some(unsafe { &*self.value.get().cast::<T>() })
    }
}
