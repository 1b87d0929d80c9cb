// SPDX-License-Identifier: GPL-2.0

//! The network: packets take time, and not all of them arrive as they were sent.

use std::collections::BTreeMap;

use super::rng::Rng;

/// What goes wrong, per mille of packets.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    pub loss: u64,
    pub duplicate: u64,
    pub reorder: u64,
    pub corrupt: u64,
}

/// Packets on their way, by time of arrival.
pub struct Network {
    faults: Faults,
    rng: Rng,
    delay: u64,
    queue: BTreeMap<(u64, u64), (usize, Vec<u8>)>,
    serial: u64,
    pub sent: u64,
    pub lost: u64,
}

impl Network {
    pub fn new(faults: Faults, delay: u64, rng: Rng) -> Self {
        Self {
            faults,
            rng,
            delay,
            queue: BTreeMap::new(),
            serial: 0,
            sent: 0,
            lost: 0,
        }
    }

    pub fn send(&mut self, now: u64, to: usize, packet: Vec<u8>) {
        self.sent += 1;
        if self.rng.per_mille(self.faults.loss) {
            self.lost += 1;
            return;
        }
        if self.rng.per_mille(self.faults.duplicate) {
            self.put(now, to, packet.clone());
        }
        self.put(now, to, packet);
    }

    fn put(&mut self, now: u64, to: usize, mut packet: Vec<u8>) {
        if self.rng.per_mille(self.faults.corrupt) {
            let bit = self.rng.below(packet.len() as u64 * 8);
            packet[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        let extra = if self.rng.per_mille(self.faults.reorder) {
            self.rng.below(self.delay * 10 + 1)
        } else {
            0
        };
        self.serial += 1;
        self.queue
            .insert((now + self.delay + extra, self.serial), (to, packet));
    }

    pub fn next_arrival(&self) -> Option<u64> {
        self.queue.keys().next().map(|k| k.0)
    }

    pub fn arrive(&mut self, now: u64) -> Option<(usize, Vec<u8>)> {
        let key = *self.queue.keys().next().filter(|k| k.0 <= now)?;
        self.queue.remove(&key)
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
