// SPDX-License-Identifier: GPL-2.0

//! Rendezvous: the device READs the data of a matched message from its sender, then tells the
//! sender that it may use its buffer again.
//!
//! Both steps are work requests of the device itself, in the send direction of the QP on which the
//! message came. This QP need not have a send queue of its own. The requests wait in a queue of
//! fixed size. When the queue is full, the sender gets an RNR NAK and repeats the message.
//!
//! The context that delivered the message starts the requests after it has released the direction
//! that it ran. For a packet, this is the softirq that ran the receive direction. For a sender on
//! this host, it is the context that ran the sender's send direction. The requests are not started
//! earlier: within the host, the sender must see the completion of its own request before it sees
//! the notice. (There is no such order for packets: the FIN may be processed before the ACK that
//! the sender waits for.) No thread has to be woken for this. A thread would need a CPU, and
//! processes that poll might not leave one.

use crate::limits;
use crate::prelude::*;
use crate::qp::request::{
    KernelQueue,
    Origin,
    RdmaPart,
    SendHead,
    SendOp,
    Sge, //
};
use crate::wr;
use roce::tm::{
    fin,
    Rvh,
    Tmh,
    RNDV_LEN, //
};

/// Work requests of the device that may wait in one QP: two for each message.
const DEPTH: u32 = 64;

/// Work requests under way of a QP whose user has fewer.
pub(crate) const UNDER_WAY: u32 = 16;

/// The work requests of the device in one QP.
pub(crate) type Queue = KernelQueue<SendHead>;

/// Makes an empty queue. Process context.
pub(crate) fn new_queue() -> Result<Arc<Queue>> {
    Arc::pin_init(KernelQueue::new(DEPTH, limits::MAX_TM_SGE), GFP_ACCOUNT)
}

/// Whether another message can be fetched.
pub(super) fn has_room(queue: &Queue) -> bool {
    queue.room() >= 2
}

/// Queues the READ and the notice behind it. There was room, and only the owner of the receive
/// direction takes it.
pub(super) fn start(queue: &Queue, wr_id: u64, list: &[Sge], tmh: &Tmh, rvh: &Rvh) -> Result {
    let rdma = RdmaPart {
        remote_addr: rvh.va,
        rkey: rvh.rkey,
        ..RdmaPart::default()
    };
    queue.post(
        &SendHead {
            wr_id,
            op: SendOp::Read,
            origin: Origin::Fetch,
            rdma,
            length: rvh.len,
            num_sge: list.len() as u32,
            ..SendHead::default()
        },
        list,
    )?;
    queue.post(
        &SendHead {
            op: SendOp::Send,
            origin: Origin::Fin,
            // Not before the data are here.
            fence: true,
            // The headers, for `notice`.
            imm: tmh.app_ctx,
            rdma: RdmaPart {
                compare_add: tmh.tag,
                swap: u64::from(rvh.len),
                ..rdma
            },
            length: RNDV_LEN as u32,
            ..SendHead::default()
        },
        &[],
    )
}

/// The notice that a work request of origin [`Origin::Fin`] sends.
pub(crate) fn notice(head: &SendHead) -> [u8; RNDV_LEN] {
    fin(
        &Tmh {
            app_ctx: head.imm,
            tag: head.rdma.compare_add,
        },
        &Rvh {
            va: head.rdma.remote_addr,
            rkey: head.rdma.rkey,
            len: head.rdma.swap as u32,
        },
    )
}

/// A work request of the device has ended. The notice is nobody's; the READ completes the tag.
pub(crate) fn complete(qp: &WireQp, head: &SendHead, status: WcStatus) {
    if head.origin != Origin::Fetch {
        return;
    }
    let Some(cq) = qp.srq.as_ref().and_then(|srq| srq.cq.as_ref()) else {
        return;
    };
    let mut completion = Completion {
        wr_id: head.wr_id,
        status,
        opcode: wr::WC_TM_RECV,
        byte_len: head.length,
        qp_num: qp.wire_qpn(),
        ..Completion::default()
    };
    if status == WcStatus::Success {
        completion.wc_flags = wr::WC_TM_DATA_VALID;
    }
    if cq.post_from(&completion, None).is_err() {
        qp.fail();
    }
}
