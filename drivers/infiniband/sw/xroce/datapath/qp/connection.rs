// SPDX-License-Identifier: GPL-2.0

//! The peer of a direction of a queue pair, readable without owning the direction.
//!
//! Packets, and other queue pairs of this host, name a queue pair only by its number, and anybody
//! can name any number. Therefore they are first compared with the copy of the connection here,
//! which takes no lock. Only the peer to which the queue pair's own user has connected it may use
//! its owner, its backlog and the number that a waiting sender leaves.

use crate::prelude::*;
use crate::tx::Av;
use core::sync::atomic::{
    AtomicU32,
    AtomicU64,
    Ordering, //
};

/// The number of no queue pair: those have 24 bits.
const NOBODY: u32 = u32::MAX;

/// Number of the peer and addresses of a connection.
///
/// Written in process context by the owner of the direction, whenever its peer or its address
/// vector changes. Read in any context, at any time.
///
/// A read that meets a write may see a mixture. So this is good for turning strangers away, which
/// for the peer means a lost packet at the worst; the owner of the direction compares again before
/// it does anything for those that were let in.
//
// Atomics of `core`: nothing in C looks at these words, and every packet does.
pub(crate) struct Connection {
    peer: AtomicU32,
    src: Address,
    dst: Address,
}

impl Connection {
    /// No connection.
    pub(crate) fn new() -> Self {
        Connection {
            peer: AtomicU32::new(NOBODY),
            src: Address::new(),
            dst: Address::new(),
        }
    }

    /// The direction is connected to queue pair `peer` from now on, along `av`.
    pub(crate) fn set(&self, peer: Qpn, av: &Av) {
        self.set_addresses(av);
        self.peer.store(peer.get(), Ordering::Relaxed);
    }

    /// The connection, if there is one, goes along `av` from now on.
    pub(crate) fn set_addresses(&self, av: &Av) {
        self.src.set(&av.src);
        self.dst.set(&av.dst);
    }

    /// There is no connection any more.
    pub(crate) fn clear(&self) {
        self.peer.store(NOBODY, Ordering::Relaxed);
    }

    /// Whether a packet from address `src` to address `dst` is one of this connection. (Packets do
    /// not say which queue pair sent them.)
    pub(crate) fn carries(&self, src: &GidAddr, dst: &GidAddr) -> bool {
        self.peer.load(Ordering::Relaxed) != NOBODY && self.dst.is(src) && self.src.is(dst)
    }

    /// Whether queue pair `qpn` of this host is the peer, wherever it is connected to itself.
    pub(crate) fn is_to(&self, qpn: Qpn) -> bool {
        self.peer.load(Ordering::Relaxed) == qpn.get()
    }

    /// Whether queue pair `qpn` of this host, which is connected along `av`, is the peer.
    pub(crate) fn joins(&self, qpn: Qpn, av: &Av) -> bool {
        self.is_to(qpn) && self.carries(&av.src, &av.dst)
    }
}

/// An address in words that are written and read at once each.
struct Address([AtomicU64; 2]);

impl Address {
    fn new() -> Self {
        Address([AtomicU64::new(0), AtomicU64::new(0)])
    }

    fn set(&self, address: &GidAddr) {
        for (word, new) in self.0.iter().zip(words(address)) {
            word.store(new, Ordering::Relaxed);
        }
    }

    fn is(&self, address: &GidAddr) -> bool {
        let mut pairs = self.0.iter().zip(words(address));
        pairs.all(|(word, other)| word.load(Ordering::Relaxed) == other)
    }
}

fn words(address: &GidAddr) -> [u64; 2] {
    let bits = u128::from_ne_bytes(address.0);
    [bits as u64, (bits >> 64) as u64]
}
