// SPDX-License-Identifier: GPL-2.0

//! The parameters of a connection that a requester needs.

use crate::mtu::Mtu;
use crate::number::Qpn;
use crate::opcode::Transport;
use crate::psn::Psn;

/// The connected services with a requester.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Service {
    /// Reliable connection.
    #[default]
    Rc,
    /// Unreliable connection.
    Uc,
    /// Initiator of an extended reliable connection.
    XrcIni,
}

impl Service {
    /// Whether requests are acknowledged.
    #[inline]
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Self::Uc)
    }

    /// The class of its operation codes.
    #[inline]
    pub const fn transport(self) -> Transport {
        match self {
            Self::Rc => Transport::Rc,
            Self::Uc => Transport::Uc,
            Self::XrcIni => Transport::Xrc,
        }
    }
}

/// QP attributes that concern the requester.
#[derive(Clone, Copy, Default, Debug)]
pub struct RequesterConfig {
    /// Transport service.
    pub service: Service,
    /// QP number of the responder, 24 bits.
    pub dest_qpn: Qpn,
    /// Path MTU.
    pub mtu: Mtu,
    /// First sequence number.
    pub sq_psn: Psn,
    /// Partition key.
    pub pkey: u16,
    /// QP attribute `timeout`: 4.096 us times 2^timeout, 0 for ever.
    pub timeout: u8,
    /// QP attribute `retry_cnt`, 0 to 7.
    pub retry_cnt: u8,
    /// QP attribute `rnr_retry`, 0 to 7; 7 is for ever.
    pub rnr_retry: u8,
    /// READs and atomics that may be outstanding (`max_rd_atomic`).
    pub max_rd_atomic: u8,
    /// Largest window, bytes; 0 for [`crate::window::DEFAULT_MAX_BYTES`].
    pub max_window: u32,
}
