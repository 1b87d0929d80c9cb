// SPDX-License-Identifier: GPL-2.0

//! Interrupts that are raised by software.
//!
//! C header: `include/linux/interrupt.h`; the C half is `irq.c`.

use core::{
    ffi::c_void,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use crate::bindings;

/// What an interrupt does.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Runs on the CPU that the affinity of the interrupt names, with interrupts off: in hard
    /// interrupt context, or inside [`Line::raise`]; in a thread when the kernel forces that
    /// (`threadirqs`). Never twice at a time for one interrupt. Must not sleep and must not drop
    /// the last reference to its [`Interrupts`].
    fn handle(&self);

    /// The interrupt has ended: `handle` is not called any more. Process context.
    fn end(&self);
}

/// The means to raise one interrupt.
///
/// It may outlive the interrupt, so using it has a condition.
#[derive(Clone, Copy)]
pub(crate) struct Line(NonNull<bindings::xrdma_vector>);

// SAFETY: Raising is allowed on any CPU.
unsafe impl Send for Line {}

// SAFETY: As above; C serialises it.
unsafe impl Sync for Line {}

impl Line {
    /// Has the handler run at least once from now on. Any context but NMI. The handler may run
    /// inside the call if interrupts are on, as it may in any interrupt; if they are off, as they
    /// are wherever a lock of the handler is held, it never does.
    ///
    /// # Safety
    ///
    /// The [`Interrupts`] exist during the call; their drop may have begun only if the handler is
    /// the caller.
    #[inline]
    pub(crate) unsafe fn raise(self) {
        // SAFETY: By contract the set, of which this is an element, has not been freed.
        unsafe { bindings::xrdma_vector_raise(self.0.as_ptr()) };
    }

    /// The CPU on which bulk work belongs that comes to the present CPU and ends in this interrupt;
    /// `None`: the present one. Softirq.
    ///
    /// # Safety
    ///
    /// As for [`raise`](Self::raise).
    pub(crate) unsafe fn bulk_cpu(self) -> Option<u32> {
        // SAFETY: By contract the set, of which this is an element, has not been freed.
        let cpu = unsafe { bindings::xrdma_vector_bulk_cpu(self.0.as_ptr()) };
        u32::try_from(cpu).ok()
    }

    /// As [`raise`](Self::raise), but from softirq: when other softirqs, and if they take long
    /// tasks, have had their turn on this CPU.
    ///
    /// # Safety
    ///
    /// The caller is the handler.
    pub(crate) unsafe fn raise_later(self) {
        // SAFETY: The set, of which this is an element, is not freed before its handlers have
        // ended.
        unsafe { bindings::xrdma_vector_raise_later(self.0.as_ptr()) };
    }
}

/// A set of interrupts, with one handler for each. Dropping it ends them.
///
/// # Invariants
///
/// `raw` is a set made by `xrdma_vectors_alloc`, owned by this value. Element `i` has the pointer
/// to the value behind `handlers[i]` for its data once it is started.
pub(crate) struct Interrupts<T: Handler> {
    raw: NonNull<bindings::xrdma_vectors>,
    handlers: KVec<Arc<T>>,
}

// SAFETY: The set is not tied to a thread; handlers are `Send + Sync`.
unsafe impl<T: Handler> Send for Interrupts<T> {}

// SAFETY: Shared references only give references to handlers.
unsafe impl<T: Handler> Sync for Interrupts<T> {}

/// Called by C for an interrupt.
///
/// # Safety
///
/// `data` points to a `T` that stays until the interrupt is ended.
unsafe extern "C" fn handle<T: Handler>(data: *mut c_void) {
    // SAFETY: By contract.
    unsafe { &*data.cast::<T>() }.handle();
}

impl<T: Handler> Interrupts<T> {
    /// Makes `count` interrupts that are called `PREFIX-comp0`... in `/proc/interrupts`; `make`
    /// gives the handler of each. Process context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for none; `ENOMEM`; what the interrupt core says.
    pub(crate) fn new(
        prefix: &CStr,
        count: u32,
        mut make: impl FnMut(Line) -> Result<Arc<T>>,
    ) -> Result<Self> {
        if count == 0 {
            return Err(EINVAL);
        }
        let handlers = KVec::with_capacity(count as usize, GFP_KERNEL)?;
        // SAFETY: Process context. `handle::<T>` gets what `start` below says, see there.
        let raw = unsafe { bindings::xrdma_vectors_alloc(count, Some(handle::<T>)) };
        // INVARIANT: Just made, and nothing is started.
        let mut this = Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            handlers,
        };
        let mut data = KVec::with_capacity(count as usize, GFP_KERNEL)?;
        for index in 0..count {
            // SAFETY: By the type invariant.
            let line = unsafe { bindings::xrdma_vectors_at(this.raw.as_ptr(), index) };
            let handler = make(Line(NonNull::new(line).ok_or(EINVAL)?))?;
            data.push_within_capacity((&raw const *handler).cast_mut().cast::<c_void>())?;
            this.handlers.push_within_capacity(handler)?;
        }
        // SAFETY: By the type invariant, and not started yet. `data` has `count` elements; each
        // points into an `Arc` that `this` keeps until its drop has ended the interrupts.
        to_result(unsafe {
            bindings::xrdma_vectors_start(
                this.raw.as_ptr(),
                prefix.as_char_ptr(),
                data.as_ptr().cast(),
            )
        })?;
        // INVARIANT: Started with that data.
        Ok(this)
    }

    /// How many there are; at least one.
    pub(crate) fn len(&self) -> usize {
        self.handlers.len()
    }

    /// The handler of an interrupt.
    pub(crate) fn get(&self, index: usize) -> Option<&Arc<T>> {
        self.handlers.get(index)
    }
}

impl<T: Handler> Drop for Interrupts<T> {
    /// Waits for handlers that run. Process context.
    fn drop(&mut self) {
        // SAFETY: By the type invariant; handlers, which may run until the call returns, are still
        // there: fields are dropped afterwards. Nobody else raises any more, which is a condition
        // of `Line::raise`.
        unsafe { bindings::xrdma_vectors_free(self.raw.as_ptr()) };
        for handler in &self.handlers {
            handler.end();
        }
    }
}
