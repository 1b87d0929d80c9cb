// SPDX-License-Identifier: GPL-2.0

//! States and types of queue pairs.

use rdma::qp as verbs;

/// State of a queue pair; the numbers are those of `enum ib_qp_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum QpState {
    /// New.
    #[default]
    Reset = 0,
    /// Receives may be posted.
    Init = 1,
    /// Ready to receive.
    Rtr = 2,
    /// Ready to send.
    Rts = 3,
    /// The send queue finishes what it began and stops.
    Sqd = 4,
    /// A send of an unreliable QP failed: the send queue is flushed, the receive queue goes on.
    Sqe = 5,
    /// Everything is flushed.
    Err = 6,
}

impl QpState {
    /// The state with number `raw`; one that does not exist reads as an error.
    pub fn from_raw(raw: u32) -> Self {
        match raw {
            0 => QpState::Reset,
            1 => QpState::Init,
            2 => QpState::Rtr,
            3 => QpState::Rts,
            4 => QpState::Sqd,
            5 => QpState::Sqe,
            _ => QpState::Err,
        }
    }

    /// The queue pair has a peer, with whom it may be busy.
    pub fn is_connected(self) -> bool {
        !matches!(self, QpState::Reset | QpState::Init | QpState::Err)
    }

    /// The queue pair is in the error state.
    pub fn is_error(self) -> bool {
        matches!(self, QpState::Err)
    }
}

impl From<verbs::QpState> for QpState {
    fn from(state: verbs::QpState) -> Self {
        QpState::from_raw(state as u32)
    }
}

impl From<QpState> for verbs::QpState {
    fn from(state: QpState) -> Self {
        match state {
            QpState::Reset => verbs::QpState::Reset,
            QpState::Init => verbs::QpState::Init,
            QpState::Rtr => verbs::QpState::Rtr,
            QpState::Rts => verbs::QpState::Rts,
            QpState::Sqd => verbs::QpState::Sqd,
            QpState::Sqe => verbs::QpState::Sqe,
            QpState::Err => verbs::QpState::Error,
        }
    }
}

/// Type of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpKind {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Sending end of an extended reliable connection.
    XrcIni,
    /// Receiving end of an extended reliable connection.
    XrcTgt,
    /// Unreliable datagrams.
    Ud,
    /// QP 1: management datagrams.
    Gsi,
}

impl QpKind {
    /// UD or GSI.
    pub fn is_datagram(self) -> bool {
        matches!(self, QpKind::Ud | QpKind::Gsi)
    }

    /// Has a send queue.
    pub fn sends(self) -> bool {
        self != QpKind::XrcTgt
    }

    /// Receives requests.
    pub fn receives(self) -> bool {
        self != QpKind::XrcIni
    }

    /// RC or either end of XRC.
    pub fn is_reliable(self) -> bool {
        matches!(self, QpKind::Rc | QpKind::XrcIni | QpKind::XrcTgt)
    }
}

impl From<verbs::QpType> for QpKind {
    fn from(kind: verbs::QpType) -> Self {
        match kind {
            verbs::QpType::Gsi => QpKind::Gsi,
            verbs::QpType::Rc => QpKind::Rc,
            verbs::QpType::Uc => QpKind::Uc,
            verbs::QpType::Ud => QpKind::Ud,
            verbs::QpType::XrcIni => QpKind::XrcIni,
            verbs::QpType::XrcTgt => QpKind::XrcTgt,
        }
    }
}
