// SPDX-License-Identifier: GPL-2.0

//! Adaptive moderation of a process's completion queue: the kernel's library chooses a level that
//! fits the load.
//!
//! The queue tells the library, under its lock, when it raises an event. The library evaluates
//! every 64 events and may request another level through a work item. The work item finds the queue
//! by its number and changes its moderation under the same lock.

use super::{
    moderation::ensure_alarm,
    Raise,
    WireCq, //
};
use crate::prelude::*;
use crate::tables;
use rdma::dim::Adaptive;
use roce::event::Moderation;

/// What a queue knows for its adaptive moderation.
pub(super) struct Adapting {
    adaptive: Adaptive,
    /// Completions since the last event.
    unheard: u32,
    /// The present level.
    level: u8,
}

impl Adapting {
    /// A completion has come.
    pub(super) fn completed(&mut self) {
        self.unheard = self.unheard.saturating_add(1);
    }

    /// An event is raised.
    pub(super) fn raised(&mut self) {
        self.adaptive.event(core::mem::take(&mut self.unheard));
    }
}

/// Another level is due. Kernel thread.
fn adapt(id: u64) {
    let Ok(id) = u32::try_from(id) else {
        return;
    };
    if let Some(tables) = tables::get() {
        tables.cqs.with(id, WireCq::adapt);
    }
}

impl WireCq {
    /// Any context.
    fn adapt(&self) {
        let raise = {
            let mut inner = self.inner.lock();
            let Some(adapting) = &mut inner.adapting else {
                return;
            };
            let (number, level) = adapting.adaptive.level();
            adapting.level = number;
            inner.change_moderation(Moderation::new(
                u32::from(level.count),
                u32::from(level.period),
            ))
        };
        if raise == Raise::Completion {
            self.handle.completion();
        }
    }

    /// The moderation, and its level if it is adaptive. Any context.
    pub fn moderation(&self) -> (Moderation, Option<u8>) {
        let inner = self.inner.lock();
        let level = inner.adapting.as_ref().map(|adapting| adapting.level);
        (inner.moderation, level)
    }

    /// Leaves moderation as it is from now on. Process context, sleeps.
    pub fn stop_adapting(&self) {
        let adapting = self.inner.lock().adapting.take();
        // Without the lock: waits for `adapt`, which takes it.
        drop(adapting);
    }
}

/// Begins with a queue that nobody uses yet. On failure it may have an alarm. Process context.
///
/// # Errors
///
/// ENOMEM; ENOSPC when no number is free; ENODEV before the module is loaded.
pub fn start(wire: &Ref<WireCq>) -> Result {
    let id = ensure_alarm(wire)?;
    let adaptive = Adaptive::new(u64::from(id), adapt)?;
    wire.inner.lock().adapting = Some(Adapting {
        adaptive,
        unheard: 0,
        level: 0,
    });
    Ok(())
}
