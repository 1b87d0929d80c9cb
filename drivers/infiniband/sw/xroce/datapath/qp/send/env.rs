// SPDX-License-Identifier: GPL-2.0

//! What the requester asks of the kernel: the memory of responses, completions, and work requests
//! that are executed without a packet.

use super::io::{
    Failure,
    SendIo, //
};
use crate::prelude::*;
use crate::qp::request::{
    Origin,
    SendHead,
    SendOp, //
};
use crate::tm::rendezvous;
use crate::{
    access,
    mr,
    mw,
    wr, //
};
use roce::requester::{
    RequesterEnv,
    SendCompletion, //
};

/// The send direction of a QP, as its requester sees it.
pub(crate) struct SendEnv<'a> {
    pub(crate) qp: &'a WireQp,
    pub(crate) io: &'a mut SendIo,
}

impl RequesterEnv for SendEnv<'_> {
    fn scatter(&mut self, slot: u32, offset: u32, data: &[u8]) -> Result<(), roce::status::Fault> {
        let pd = self.io.list_pd(self.qp, slot);
        access::scatter(pd, self.io.list(slot), offset, data).map_err(|_| roce::status::Fault)
    }

    fn complete(&mut self, done: &SendCompletion) {
        let Some(wqe) = self.io.wqes.get(done.slot as usize) else {
            return;
        };
        let wqe = *wqe;
        let head = &wqe.head;
        if !matches!(done.status, WcStatus::Success | WcStatus::WrFlushErr) {
            self.qp.set_send_error();
            self.io.failure.get_or_insert(Failure::Request);
        }
        self.io.retire(&wqe);
        let is_told =
            done.signaled || done.status != WcStatus::Success || head.origin != Origin::User;
        self.io.is_untold = !is_told;
        if is_told {
            // Whoever sees the completion may use the slots again.
            self.io.publish();
            complete(self.qp, head, done.status, done.byte_len);
        }
        if done.status != WcStatus::Success {
            self.count_failure(done.status);
        }
    }

    fn local(&mut self, slot: u32) -> Result<(), WcStatus> {
        self.io.executed = self.io.executed.wrapping_add(1);
        let Some(wqe) = self.io.wqes.get(slot as usize) else {
            return Err(WcStatus::LocQpOpErr);
        };
        if let Some(status) = wqe.broken {
            return Err(status);
        }
        let head = &wqe.head;
        match head.op {
            SendOp::BindMw => mw::bind(self.qp, &head.rdma.bind()),
            SendOp::LocalInv => mr::local_invalidate(self.qp, Key::new(head.imm)),
            SendOp::RegMr => mr::fast_register(self.qp, &head.rdma.reg()),
            _ => Err(WcStatus::LocQpOpErr),
        }
    }

    fn fatal(&mut self) {
        // A ring that was found corrupt meanwhile is the worse.
        self.io.failure.get_or_insert(Failure::Request);
    }

    fn sq_drained(&mut self) {
        if self.io.notify_drained {
            self.qp.event(QpEvent::SendQueueDrained);
        }
    }

    fn may_ask(&mut self) -> bool {
        self.qp.device.asks.pass()
    }
}

impl SendEnv<'_> {
    fn count_failure(&self, status: WcStatus) {
        let counter = match status {
            WcStatus::RetryExcErr => Counter::RetryExceeded,
            WcStatus::RnrRetryExcErr => Counter::RnrRetryExceeded,
            _ => return,
        };
        self.qp.device.count(counter, 1);
    }
}

/// Makes the completion of a send work request; one that is lost ends the QP.
pub(crate) fn complete(qp: &WireQp, head: &SendHead, status: WcStatus, byte_len: u32) {
    // The QP is being reset, and memory is not waited for any more: what fails for that reason is
    // forgotten like everything else.
    if status != WcStatus::Success && qp.state() == QpState::Reset {
        return;
    }
    if head.origin != Origin::User {
        return rendezvous::complete(qp, head, status);
    }
    let Some(cq) = &qp.send_cq else {
        return;
    };
    let posted = cq.post_from(
        &Completion {
            wr_id: head.wr_id,
            status,
            opcode: wr::completion_opcode(head.op),
            byte_len,
            qp_num: qp.wire_qpn(),
            ..Completion::default()
        },
        qp.handle(),
    );
    if posted.is_err() {
        qp.fail();
    }
}
