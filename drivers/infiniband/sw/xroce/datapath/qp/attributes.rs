// SPDX-License-Identifier: GPL-2.0

//! Attributes of a queue pair, as `ibv_query_qp` shows them and `ibv_modify_qp` changes them.

use crate::prelude::*;
use crate::tx::Av;
use rdma::qp::QpAttr;
use roce::requester::RequesterConfig;
use roce::responder::Access;

impl WireQp {
    /// The attributes as they were set, and the state as it is. Process context.
    pub fn attributes(&self) -> QpAttr {
        let mut attr = *self.attr.lock();
        let state = self.state();
        attr.state = state.into();
        attr.cur_state = state.into();
        attr.cap = self.cap;
        attr.sq_draining = state == QpState::Sqd && !self.is_drained();
        attr.qkey = self.qkey();
        attr
    }

    /// In SQD: nothing of the send queue is under way any more; a datagram never is. Process
    /// context.
    fn is_drained(&self) -> bool {
        if self.kind.is_datagram() {
            return true;
        }
        // Whoever lists the objects of the host asks this of all of them.
        let is_drained = self.send.lock_bh().requester.is_drained();
        // What came while it was locked, an ACK perhaps, was left for this.
        self.kick_send();
        is_drained
    }

    /// What the responder lets the peer do has changed. Process context.
    pub fn update_responder(&self, access: Access, min_rnr_timer: u8, max_dest_rd_atomic: u8) {
        self.recv
            .lock()
            .responder
            .update(access, min_rnr_timer, max_dest_rd_atomic);
        self.kick_receive();
    }

    /// The address has changed, while nothing is under way (SQD). Process context.
    pub fn update_address(&self, av: Av) {
        {
            let mut send = self.send.lock();
            send.path.set(av);
            self.send_connection.set_addresses(&av);
        }
        self.kick_send();
        {
            let mut recv = self.recv.lock_bh();
            recv.path.set(av);
            self.recv_connection.set_addresses(&av);
        }
        self.kick_receive();
    }

    /// Limits of the requester have changed. Process context.
    pub fn update_requester(&self, config: &RequesterConfig) {
        self.send.lock().requester.update(config);
        self.kick_send();
    }
}
