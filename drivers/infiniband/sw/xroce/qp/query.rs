// SPDX-License-Identifier: GPL-2.0

//! `ibv_query_qp`.

use crate::prelude::*;
use crate::provider::Xroce;
use crate::qp::QpState;
use rdma::qp::{
    Qp,
    QpAttr,
    QpQuery, //
};

/// Reports the attributes as they were set, and the state as it is.
pub(crate) fn query(qp: &Qp<Xroce>) -> Result<QpQuery> {
    let wire = &qp.data().wire;
    Ok(QpQuery {
        attr: attributes(wire),
        signal_all: wire.sq_sig_all,
    })
}

/// The attributes of a queue pair.
pub(crate) fn attributes(wire: &WireQp) -> QpAttr {
    let mut attr = *wire.attr.lock();
    let state = wire.state();
    attr.state = state.into();
    attr.cur_state = state.into();
    attr.cap = wire.cap;
    attr.sq_draining = state == QpState::Sqd && !wire.is_drained();
    attr.qkey = wire.qkey();
    attr
}

impl WireQp {
    /// In SQD: nothing of the send queue is under way any more; a datagram never is. Process context.
    fn is_drained(&self) -> bool {
        if self.kind.is_datagram() {
            return true;
        }
        let is_drained = self.send.lock().requester.is_drained();
        // What came while it was locked, an ACK perhaps, was left for this.
        self.kick_send();
        is_drained
    }
}
