// SPDX-License-Identifier: GPL-2.0

//! One direction of a wire in virtual time: a queue in front of a link of a limited rate, behind
//! which packets take time, and are lost, held up, doubled or damaged.

use super::rng::Rng;

/// How packets are lost. Probabilities are per 100,000 packets.
#[derive(Clone, Copy, Default, Debug)]
pub enum Loss {
    /// None is.
    #[default]
    None,
    /// Each by itself.
    Random(u64),
    /// In bursts, as by Gilbert and Elliott: a good state without loss is left with probability
    /// `enter`, a bad one, in which packets are lost with probability `loss`, with `leave`.
    Bursts { enter: u64, leave: u64, loss: u64 },
    /// So many in a row, as netem loses what passes the stack as one.
    Runs { per_100_000: u64, packets: u64 },
}

/// How packets change places.
#[derive(Clone, Copy, Default, Debug)]
pub enum Disorder {
    /// They do not.
    #[default]
    None,
    /// So many per 100,000 take no time behind the link and overtake all others there: what netem
    /// does.
    Ahead(u64),
    /// So many per 100,000 are held up until about so many full packets have passed them.
    Behind { per_100_000: u64, packets: u64 },
}

/// What a direction of a wire is like. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct WireConfig {
    /// Bytes per second.
    pub rate: u64,
    /// From the end of the link to the other host.
    pub delay: u64,
    /// Up to so much more; order is kept.
    pub jitter: u64,
    /// Packets in front of the link; more are dropped.
    pub queue: usize,
    pub loss: Loss,
    pub disorder: Disorder,
    /// Per 100,000 packets: arrive twice.
    pub duplicate: u64,
    /// Per 100,000 packets: arrive damaged, so that the CRC has them dropped.
    pub corrupt: u64,
    /// Nothing that is sent from the first time to the second arrives.
    pub pause: Option<(u64, u64)>,
    /// The host behind it does nothing for the second time, whenever the first has passed.
    pub stall: Option<(u64, u64)>,
}

/// Bytes of a full packet: 4096 and its headers.
const FULL: u64 = 4200;

/// Headers of Ethernet, IP and UDP, and the ICRC.
const OVERHEAD: u64 = 14 + 20 + 8 + 4;

impl WireConfig {
    /// A link of 1 Gbit/s that nothing else is wrong with.
    pub const fn new(delay: u64) -> Self {
        Self {
            rate: 125_000_000,
            delay,
            jitter: 0,
            queue: 1000,
            loss: Loss::None,
            disorder: Disorder::None,
            duplicate: 0,
            corrupt: 0,
            pause: None,
            stall: None,
        }
    }

    /// Time that so many bytes take on the link.
    pub fn time_of(&self, bytes: u64) -> u64 {
        bytes * 1_000_000_000 / self.rate
    }
}

/// A direction of a wire.
pub struct Wire {
    pub config: WireConfig,
    rng: Rng,
    /// When the packets that wait have left the link.
    leaves: std::collections::VecDeque<u64>,
    last_arrival: u64,
    is_bad: bool,
    /// So many more of a run are lost.
    run: u64,
    pub sent: u64,
    /// By the queue.
    pub dropped: u64,
    /// Otherwise.
    pub lost: u64,
}

impl Wire {
    pub fn new(config: WireConfig, rng: Rng) -> Self {
        Self {
            config,
            rng,
            leaves: std::collections::VecDeque::new(),
            last_arrival: 0,
            is_bad: false,
            run: 0,
            sent: 0,
            dropped: 0,
            lost: 0,
        }
    }

    fn chance(&mut self, per_100_000: u64) -> bool {
        per_100_000 != 0 && self.rng.below(100_000) < per_100_000
    }

    /// Packets that have not left the link yet.
    pub fn queued(&mut self, now: u64) -> usize {
        while self.leaves.front().is_some_and(|t| *t <= now) {
            self.leaves.pop_front();
        }
        self.leaves.len()
    }

    /// When the next of them leaves.
    pub fn next_leave(&self) -> Option<u64> {
        self.leaves.front().copied()
    }

    fn is_lost(&mut self) -> bool {
        match self.config.loss {
            Loss::None => false,
            Loss::Random(p) => self.chance(p),
            Loss::Bursts { enter, leave, loss } => {
                let flip = if self.is_bad { leave } else { enter };
                self.is_bad ^= self.chance(flip);
                self.is_bad && self.chance(loss)
            }
            Loss::Runs {
                per_100_000,
                packets,
            } => {
                if self.run == 0 && self.chance(per_100_000) {
                    self.run = packets;
                }
                let is_lost = self.run != 0;
                self.run = self.run.saturating_sub(1);
                is_lost
            }
        }
    }

    /// When a packet with so many bytes of transport headers and payload arrives that is sent now:
    /// at none, one or two times.
    pub fn send(&mut self, now: u64, bytes: usize) -> Vec<u64> {
        self.sent += 1;
        if self.queued(now) >= self.config.queue {
            self.dropped += 1;
            return Vec::new();
        }
        let begins = self.leaves.back().map_or(now, |t| *t.max(&now));
        let leaves = begins + self.config.time_of(bytes as u64 + OVERHEAD);
        self.leaves.push_back(leaves);
        let is_paused = self
            .config
            .pause
            .is_some_and(|(from, until)| leaves >= from && leaves < until);
        let corrupt = self.config.corrupt;
        if is_paused || self.is_lost() || self.chance(corrupt) {
            self.lost += 1;
            return Vec::new();
        }
        let in_order = (leaves + self.config.delay + self.rng.below(self.config.jitter + 1))
            .max(self.last_arrival);
        let disorder = self.config.disorder;
        let arrives = match disorder {
            Disorder::Ahead(p) if self.chance(p) => leaves,
            Disorder::Behind {
                per_100_000,
                packets,
            } if self.chance(per_100_000) => in_order + self.config.time_of(packets * FULL),
            _ => {
                self.last_arrival = in_order;
                in_order
            }
        };
        let arrives = match self.config.stall {
            Some((every, length)) if arrives % every < length => arrives - arrives % every + length,
            _ => arrives,
        };
        let duplicate = self.config.duplicate;
        match self.chance(duplicate) {
            true => vec![arrives, arrives],
            false => vec![arrives],
        }
    }
}
