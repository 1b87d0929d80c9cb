// SPDX-License-Identifier: GPL-2.0

//! The parameters of a connection that a responder needs.

use crate::mtu::Mtu;
use crate::number::Qpn;
use crate::opcode::Transport;
use crate::psn::Psn;

/// The connected services with a responder.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Service {
    /// Reliable connection.
    #[default]
    Rc,
    /// Unreliable connection.
    Uc,
    /// Target of an extended reliable connection.
    XrcTgt,
}

impl Service {
    /// Whether requests are answered.
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
            Self::XrcTgt => Transport::Xrc,
        }
    }
}

/// What the remote side may do with the QP (`qp_access_flags`); keys are
/// checked beyond that.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Access {
    /// WRITE and ATOMIC WRITE.
    pub remote_write: bool,
    /// READ.
    pub remote_read: bool,
    /// Compare-and-swap, fetch-and-add.
    pub remote_atomic: bool,
    /// FLUSH to global visibility.
    pub flush_global: bool,
    /// FLUSH to persistence.
    pub flush_persistent: bool,
}

impl Access {
    /// Everything.
    pub const ALL: Self = Self {
        remote_write: true,
        remote_read: true,
        remote_atomic: true,
        flush_global: true,
        flush_persistent: true,
    };
}

/// QP attributes that concern the responder.
#[derive(Clone, Copy, Default, Debug)]
pub struct ResponderConfig {
    /// Transport service.
    pub service: Service,
    /// QP number of the requester, 24 bits.
    pub dest_qpn: Qpn,
    /// Path MTU.
    pub mtu: Mtu,
    /// First sequence number expected.
    pub rq_psn: Psn,
    /// Partition key.
    pub pkey: u16,
    /// Rights of the remote side.
    pub access: Access,
    /// QP attribute `min_rnr_timer`: code of the delay asked for when no
    /// receive is posted.
    pub min_rnr_timer: u8,
    /// READs and atomics of the remote side that may be outstanding; no more
    /// than the resources lent to [`super::Responder::new`] or [`super::Responder::grow`].
    pub max_dest_rd_atomic: u8,
}
