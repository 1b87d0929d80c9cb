// SPDX-License-Identifier: GPL-2.0

//! Resizing a user's completion queue.

use super::store::{
    slot_at,
    Store, //
};
use super::{
    Inner,
    WireCq, //
};
use crate::prelude::*;

/// Completions that a resize moves under the lock of the queue at a time.
const MOVE_BURST: u32 = 256;

/// How far a resize has come.
struct Move {
    /// Next completion of the old ring.
    next: u32,
    /// Completions in the new ring.
    moved: u32,
}

impl WireCq {
    /// Moves the completions that wait to the start of `ring`, which is the queue's from then on;
    /// the old ring is freed when its mappings are gone. EINVAL when they do not fit. Process
    /// context; the caller sees to it that there is one move at a time.
    ///
    /// # Errors
    ///
    /// EINVAL when the completions do not fit, and after an overrun.
    pub fn move_to(&self, ring: &Arc<RingMem>, entries: u32) -> Result {
        let mut progress = self.inner.lock().begin_move(entries)?;
        let old = loop {
            let moved = self.inner.lock().move_some(ring, entries, &mut progress)?;
            if let Some(old) = moved {
                break old;
            }
        };
        // Freed without the lock.
        drop(old);
        Ok(())
    }
}

impl Inner {
    /// Where a move to a ring with `entries` slots begins.
    fn begin_move(&self, entries: u32) -> Result<Move> {
        let waiting = self.waiting();
        if waiting > self.entries || waiting > entries || self.overrun {
            return Err(EINVAL);
        }
        Ok(Move {
            next: self.producer.wrapping_sub(waiting),
            moved: 0,
        })
    }

    /// Moves some completions to `ring`, under the lock. When none is left the ring becomes the
    /// queue's: returns the old one. Completions may be added to the old ring between two calls.
    fn move_some(
        &mut self,
        ring: &Arc<RingMem>,
        entries: u32,
        progress: &mut Move,
    ) -> Result<Option<Arc<RingMem>>> {
        if self.overrun {
            return Err(EINVAL);
        }
        let Store::User(old) = &self.store else {
            return Err(EINVAL);
        };
        let mut bytes = [0u8; abi::CQE_SIZE];
        for _ in 0..MOVE_BURST {
            if progress.next == self.producer {
                break;
            }
            // What comes meanwhile must fit as well; this also bounds the loop.
            if progress.moved >= entries {
                return Err(EINVAL);
            }
            let from = progress.next & self.entries.wrapping_sub(1);
            old.copy_out(slot_at(from), &mut bytes)?;
            ring.copy_in(slot_at(progress.moved), &bytes)?;
            progress.next = progress.next.wrapping_add(1);
            progress.moved = progress.moved.wrapping_add(1);
        }
        if progress.next != self.producer {
            return Ok(None);
        }
        let arm = old.swap(abi::RING_ARM, abi::ARM_NONE)?;
        ring.store(abi::RING_ARM, arm)?;
        ring.store_release(abi::RING_KERNEL_INDEX, progress.moved)?;
        let old = old.clone();
        self.store = Store::User(ring.clone());
        self.entries = entries;
        self.producer = progress.moved;
        Ok(Some(old))
    }
}
