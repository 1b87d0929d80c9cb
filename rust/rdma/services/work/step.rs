// SPDX-License-Identifier: GPL-2.0

//! How long a run waits for on-demand memory, and what ends the wait earlier.
//!
//! The function that waits ([`OnDemand`](crate::mem::OnDemand)) is many calls away from the
//! functions that know when a wait has to end. Therefore each task has a stack of the steps that it
//! performs. [`unless`], [`step`] and [`part`] put entries on this stack.

use core::{
    cell::Cell,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::types::Opaque;

use super::may_sleep;
use crate::bindings;

/// How often memory is looked for that does not come, in one step, or in all parts of one: four or
/// five seconds in all, without the time between the parts.
const MAX_TRIES: u32 = 500;

/// After so many tries, some milliseconds, a run has waited enough.
const ENOUGH_TRIES: u32 = 16;

/// What the present task does.
///
/// C has a pointer to `raw`, which is the first field, from the begin to the end of
/// [`run`](Self::run).
#[repr(C)]
struct Entry<'a> {
    raw: Opaque<bindings::xrdma_step>,
    is_over: Option<&'a dyn Fn() -> bool>,
    /// Tries so far, if it is a step; those of its earlier parts included.
    tries: Option<Cell<u32>>,
    /// When it pauses, if it is a part of a step.
    is_due: Option<&'a dyn Fn() -> bool>,
    /// It has paused.
    is_paused: Cell<bool>,
    /// Tries so far in all that it consists of.
    all: Cell<u32>,
}

impl<'a> Entry<'a> {
    fn new(is_over: Option<&'a dyn Fn() -> bool>, tries: Option<Cell<u32>>) -> Self {
        Entry {
            raw: Opaque::uninit(),
            is_over,
            tries,
            is_due: None,
            is_paused: Cell::new(false),
            all: Cell::new(0),
        }
    }

    /// Calls `f` with this on top of the stack. Process context.
    fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        // A pointer to all of it, as `walk` needs, of which C uses the first field.
        let raw: *mut bindings::xrdma_step = ptr::from_ref(self).cast_mut().cast();
        // SAFETY: Process context. It is borrowed, so it stays where it is, until the end below;
        // the call fills the first field, which may change behind references.
        unsafe { bindings::xrdma_step_begin(raw) };
        let result = f();
        // SAFETY: Begun above, and all that `f` began has ended: a panic does not unwind.
        unsafe { bindings::xrdma_step_end(raw) };
        result
    }

    /// The number of the next try, for a step. It counts, unless the part pauses: not before its
    /// first try, so that the tries come to an end.
    fn next_try(&self) -> Option<u32> {
        let count = self.tries.as_ref()?;
        let next = count.get().saturating_add(1);
        let has_tried = self.all.get() > 0;
        if has_tried && next <= MAX_TRIES && self.is_due.is_some_and(|is_due| is_due()) {
            self.is_paused.set(true);
        } else {
            count.set(next);
        }
        Some(next)
    }

    /// Calls `f` with the entries of the present task, innermost first, as long as it returns true.
    /// Process context.
    fn walk(mut f: impl FnMut(&Entry<'_>) -> bool) {
        // SAFETY: Process context, by contract.
        let mut next = NonNull::new(unsafe { bindings::xrdma_step_current() });
        while let Some(raw) = next {
            // SAFETY: It points to an entry, which is on the stack of this task, further down: it
            // stays until this returns.
            let entry: &Entry<'_> = unsafe { raw.cast().as_ref() };
            if !f(entry) {
                return;
            }
            // SAFETY: The field was filled when the entry was begun.
            next = NonNull::new(unsafe { (*raw.as_ptr()).outer });
        }
    }
}

/// Calls `f`, which waits for memory no longer than until `is_over` is true: what needs it fails
/// then. Any context; where nothing may sleep nothing waits either.
#[inline]
pub fn unless<R>(is_over: &dyn Fn() -> bool, f: impl FnOnce() -> R) -> R {
    if !may_sleep() {
        return f();
    }
    Entry::new(Some(is_over), None).run(f)
}

/// Calls `f`, all of which together waits for memory for some seconds. Any context.
#[inline]
pub fn step<R>(f: impl FnOnce() -> R) -> R {
    if !may_sleep() {
        return f();
    }
    Entry::new(None, Some(Cell::new(0))).run(f)
}

/// As [`step`], for a part of one, which pauses: it waits for memory until `is_due` is true, and
/// makes one try at least. What needs the memory fails then, and [`is_paused`] is true. `tries` are
/// those of the earlier parts, 0 for the first; this adds its own. Any context.
#[inline]
pub fn part<R>(tries: &mut u32, is_due: &dyn Fn() -> bool, f: impl FnOnce() -> R) -> R {
    if !may_sleep() {
        return f();
    }
    let mut entry = Entry::new(None, Some(Cell::new(*tries)));
    entry.is_due = Some(is_due);
    let result = entry.run(f);
    *tries = entry.tries.map_or(0, Cell::into_inner);
    result
}

/// Whether the [`part`] that is under way has paused: what has failed since is to be done in the
/// next part. Any context.
pub fn is_paused() -> bool {
    let mut is_paused = false;
    if may_sleep() {
        Entry::walk(|entry| {
            is_paused = entry.is_paused.get();
            !is_paused
        });
    }
    is_paused
}

/// Whether the outermost [`unless`] or [`step`] that is under way has waited for memory so long
/// that others should have their turn. Any context.
pub fn has_waited() -> bool {
    let mut all = 0;
    if may_sleep() {
        Entry::walk(|entry| {
            all = entry.all.get();
            true
        });
    }
    all >= ENOUGH_TRIES
}

/// Tries of one access. They count for the step that it is part of.
#[derive(Default)]
pub(crate) struct Tries(u32);

impl Tries {
    /// The number of the next try of the step, if there is to be one. Process context.
    pub(crate) fn again(&mut self) -> Option<u32> {
        let mut is_over = false;
        let mut tries = None;
        Entry::walk(|entry| {
            is_over = entry.is_over.is_some_and(|is_over| is_over());
            if tries.is_none() {
                tries = entry.next_try();
                is_over |= entry.is_paused.get();
            }
            entry.all.set(entry.all.get().saturating_add(1));
            !is_over
        });
        self.0 = self.0.saturating_add(1);
        let tries = tries.unwrap_or(self.0);
        (!is_over && tries <= MAX_TRIES).then_some(tries)
    }
}
