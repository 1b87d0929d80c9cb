// SPDX-License-Identifier: GPL-2.0

//! Which packets went out in one train, which a wire may lose as a whole.
//!
//! A work request has a bit for each of its packets that says whether that began a train. Of a
//! message of more than [`REMEMBERED`] packets, this is known of those that were sent last. Others
//! count as packets that began none, and behind which there are as many in theirs as can be.

use core::ops::DerefMut;

use super::{
    recovery::LONGEST_RUN,
    Requester,
    Wqe, //
};

/// Packets of a message of which it is known.
const REMEMBERED: u32 = u64::BITS;

impl Wqe {
    /// The packet with this index begins a train, or goes by itself; or else it is behind another
    /// one in its train.
    #[inline]
    pub(super) fn note_train(&mut self, index: u32, begins: bool) {
        let bit = 1u64.wrapping_shl(index % REMEMBERED);
        self.begins = match begins {
            true => self.begins | bit,
            false => self.begins & !bit,
        };
    }

    /// Whether the packet with this index began a train, or went by itself.
    fn begins_train(&self, index: u32) -> bool {
        self.begins & 1u64.wrapping_shl(index % REMEMBERED) != 0
    }
}

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// The packet that was just polled, with no other call since, goes in a train with the one that
    /// was polled before it. ([`Self::poll_middles`] needs not be told.)
    #[inline]
    pub fn joins_train(&mut self) {
        let (rel, index) = match self.sent_packets.checked_sub(1) {
            Some(index) => (self.sent, Some(index)),
            // It was the last one of its message.
            None => (self.sent.wrapping_sub(1), None),
        };
        if rel >= self.count {
            return;
        }
        let slot = self.slot_at(rel);
        if let Some(wqe) = self.queue.get_mut(slot as usize) {
            wqe.note_train(index.unwrap_or(wqe.packets.wrapping_sub(1)), false);
        }
    }

    /// Whether it is known how the packet with this index of `wqe` went. Its bit may be that of a
    /// later one.
    fn is_remembered(&self, wqe: &Wqe, index: u32) -> bool {
        let sent = self.max.since(wqe.psn).min(wqe.packets);
        index.saturating_add(REMEMBERED) >= sent
    }

    /// How many packets, from the oldest one in flight on, went in one train: 1 at least, and no
    /// more than are sent again together.
    pub(super) fn rest_of_train(&self) -> u8 {
        let most = self.max.since(self.una).min(LONGEST_RUN.into());
        let mut count = 0u32;
        // Each work request has a packet, but for local ones.
        'all: for rel in 0..self.assigned.min(u32::from(LONGEST_RUN) << 1) {
            let Some(wqe) = self.wqe(self.slot_at(rel)) else {
                break;
            };
            if wqe.wr.op.has_response() {
                break;
            }
            let first = match count {
                0 => self.una.since(wqe.psn),
                _ => 0,
            };
            if !self.is_remembered(wqe, first) {
                // Packets of a train are behind it.
                let room = u32::from(self.train_room).max(1);
                count = count.max(room).min(most);
                break;
            }
            for index in first..wqe.packets {
                if count >= most || (count != 0 && wqe.begins_train(index)) {
                    break 'all;
                }
                count = count.wrapping_add(1);
            }
        }
        // At most `LONGEST_RUN`.
        count.max(1) as u8
    }

    /// Whether the oldest packet in flight began a train of several.
    pub(super) fn is_train_missing(&self) -> bool {
        let begins = self.oldest_assigned().is_some_and(|wqe| {
            let index = self.una.since(wqe.psn);
            index < wqe.packets && self.is_remembered(wqe, index) && wqe.begins_train(index)
        });
        begins && self.rest_of_train() > 1
    }
}
