// SPDX-License-Identifier: GPL-2.0

//! Completion queue moderation: fewer events than completions (`ibv_modify_cq`).

use super::{
    Inner,
    Raise,
    WireCq, //
};
use crate::prelude::*;
use crate::tables;
use rdma::timer::Timer;
use roce::event::{
    Act,
    Moderation, //
};

/// Ends the wait of an event that is held back.
pub(crate) struct Alarm {
    /// In the table of completion queues, by which the timer finds its queue.
    id: u32,
    timer: Timer,
}

impl Alarm {
    fn new(id: u32) -> Result<Self> {
        Ok(Self {
            id,
            timer: Timer::new(u64::from(id), ring)?,
        })
    }
}

/// The timer has fired. Softirq.
fn ring(id: u64) {
    let Ok(id) = u32::try_from(id) else {
        return;
    };
    if let Some(tables) = tables::get() {
        tables.cqs.with(id, WireCq::due);
    }
}

impl WireCq {
    /// Starts the timer if `raise` says that an event is held back. Any context, under the lock of
    /// the queue: only the first completion of a period starts the timer, so nobody would repair a
    /// start that came late or replaced a later one.
    pub(super) fn start_alarm(&self, raise: Raise) {
        if let (Raise::Later(ns), Some(alarm)) = (raise, self.alarm.as_ref()) {
            alarm.timer.start_at(ns);
        }
    }

    /// The time may have come. Softirq.
    fn due(&self) {
        let raise = {
            let mut inner = self.inner.lock();
            let waiting = inner.waiting() != 0;
            let act = inner.moderation.due(now_ns(), waiting);
            let raise = inner.raise(act);
            self.start_alarm(raise);
            raise
        };
        if raise == Raise::Completion {
            self.handle.completion();
        }
    }

    /// Changes the moderation; adaptive moderation has ended. Process context.
    pub fn set_moderation(&self, new: Moderation) {
        let raise = self.inner.lock().change_moderation(new);
        if raise == Raise::Completion {
            self.handle.completion();
        }
    }

    /// No event is held back any more. Process context.
    pub fn stop_alarm(&self) {
        if let (Some(alarm), Some(tables)) = (self.alarm.as_ref(), tables::get()) {
            drop(tables.cqs.remove(alarm.id));
            alarm.timer.cancel();
        }
    }
}

/// Gives a queue its alarm, and its number in the table of completion queues; it may have them. One
/// at a time for a queue. Process context.
///
/// # Errors
///
/// ENOMEM; ENOSPC when no number is free; ENODEV before the module is loaded.
pub fn ensure_alarm(wire: &Ref<WireCq>) -> Result<u32> {
    if let Some(alarm) = wire.alarm.as_ref() {
        return Ok(alarm.id);
    }
    let place = tables::tables()?.cqs.reserve()?;
    let id = place.id();
    wire.alarm.populate(Alarm::new(id)?);
    place.publish(wire.clone());
    Ok(id)
}

impl Inner {
    /// Another rule. What was held back under the old one comes now, unless it was polled
    /// meanwhile.
    pub(super) fn change_moderation(&mut self, new: Moderation) -> Raise {
        let held_back = self.moderation.is_waiting() && self.waiting() != 0;
        self.moderation = new;
        self.raise(match held_back {
            true => Act::Raise,
            false => Act::Nothing,
        })
    }
}
