// SPDX-License-Identifier: GPL-2.0

//! Posts of kernel users: `ib_post_send`, `ib_post_recv`.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use datapath::mr::LOCAL_DMA_LKEY;
use datapath::qp::request::{
    KernelQueue,
    RdmaPart,
    RecvHead,
    RegPart,
    SendHead,
    SendOp,
    Sge,
    UdPart,
    MAX_SGE, //
};
use datapath::wr::{
    check_length,
    is_allowed, //
};
use rdma::wr::{
    self as verbs,
    RecvWr,
    SendOpcode,
    SendWr, //
};
use roce::mtu::MAX_MESSAGE;

/// Takes the elements of a kernel user's list.
fn kernel_list(
    sges: impl ExactSizeIterator<Item = verbs::KernelSge>,
    list: &mut [Sge; MAX_SGE],
) -> Result<(u32, u32)> {
    let count = sges.len();
    let mut total = 0u64;
    for (from, to) in sges.zip(list.get_mut(..count).ok_or(EINVAL)?) {
        let lkey = Key::new(from.lkey);
        *to = Sge {
            addr: from.address(),
            len: from.length,
            lkey,
            // The one key that stands for all kernel memory needs no look-up.
            kernel: (lkey == LOCAL_DMA_LKEY).then(|| from.memory()),
        };
        total = total.wrapping_add(u64::from(from.length));
    }
    let total = u32::try_from(total).map_err(|_| EINVAL)?;
    if total > MAX_MESSAGE {
        return Err(EINVAL);
    }
    Ok((count as u32, total))
}

/// `ib_post_recv`. EINVAL for a queue pair in RESET or without a receive queue of a kernel user,
/// ENOMEM when that is full. Any context.
pub(crate) fn receive(qp: &WireQp, wr: &RecvWr<'_>) -> Result {
    let queue = qp.kernel_recvs.as_ref().ok_or(EINVAL)?;
    if qp.state() == QpState::Reset {
        return Err(EINVAL);
    }
    receive_into(queue, wr)?;
    if qp.state().is_error() {
        // Nothing else runs this side any more.
        qp.schedule_receive();
    }
    Ok(())
}

/// Puts a kernel user's receive into a queue. ENOMEM when that is full. Any context.
pub(crate) fn receive_into(queue: &KernelQueue<RecvHead>, wr: &RecvWr<'_>) -> Result {
    let mut list = [Sge::default(); MAX_SGE];
    let (num_sge, _) = kernel_list(wr.sges(), &mut list)?;
    queue.post(
        &RecvHead {
            wr_id: wr.wr_id(),
            num_sge,
        },
        list.get(..num_sge as usize).ok_or(EINVAL)?,
    )
}

/// `ib_post_send`. EINVAL for a queue pair that is not ready to send or has no send queue of a
/// kernel user, and for a request that makes no sense; ENOMEM when the queue is full. Any context.
pub(crate) fn send(qp: &WireQp, wr: &SendWr<'_, Xroce>) -> Result {
    let queue = qp.kernel_sends.as_ref().ok_or(EINVAL)?;
    let state = qp.state();
    if matches!(state, QpState::Reset | QpState::Init | QpState::Rtr) {
        return Err(EINVAL);
    }
    let op = operation(wr.opcode().ok_or(EINVAL)?);
    if !is_allowed(qp.kind, op) {
        return match state.is_error() {
            true => post_to_flush(queue, wr, op),
            false => Err(EINVAL),
        };
    }
    // Inline data of a kernel user would have to be copied now; the device says it has none.
    if wr.inline() {
        return Err(EINVAL);
    }
    let mut list = [Sge::default(); MAX_SGE];
    let (num_sge, length) = kernel_list(wr.sges(), &mut list)?;
    let mut head = SendHead {
        wr_id: wr.wr_id(),
        op,
        signaled: wr.signaled(),
        solicited: wr.solicited(),
        fence: wr.fence(),
        imm: wr.imm_or_key(),
        num_sge,
        length,
        ..SendHead::default()
    };
    fill_rdma(&mut head, wr)?;
    if qp.kind.is_datagram() {
        let ud = wr.ud().ok_or(EINVAL)?;
        head.ud = UdPart {
            ah: ud.ah.data().number(),
            remote_qpn: Qpn::new(ud.remote_qpn),
            remote_qkey: ud.remote_qkey,
        };
    }
    check_length(&head).map_err(|_| EINVAL)?;
    queue.post(&head, list.get(..num_sge as usize).ok_or(EINVAL)?)
}

fn operation(opcode: SendOpcode) -> SendOp {
    match opcode {
        SendOpcode::Send => SendOp::Send,
        SendOpcode::SendImm => SendOp::SendImm,
        SendOpcode::SendInv => SendOp::SendInv,
        SendOpcode::RdmaWrite => SendOp::Write,
        SendOpcode::RdmaWriteImm => SendOp::WriteImm,
        SendOpcode::RdmaRead => SendOp::Read,
        SendOpcode::AtomicCmpSwap => SendOp::CmpSwap,
        SendOpcode::AtomicFetchAdd => SendOp::FetchAdd,
        SendOpcode::LocalInv => SendOp::LocalInv,
        SendOpcode::RegMr => SendOp::RegMr,
    }
}

/// Posts a request that the queue pair cannot execute, in an error state: it will be flushed,
/// whatever it is. `ib_drain_sq()` posts an RDMA WRITE to any queue pair.
fn post_to_flush(queue: &KernelQueue<SendHead>, wr: &SendWr<'_, Xroce>, op: SendOp) -> Result {
    let head = SendHead {
        wr_id: wr.wr_id(),
        op,
        ..SendHead::default()
    };
    queue.post(&head, &[])
}

/// Puts in the memory that an RDMA operation or an atomic names, or the registration of a region.
/// EINVAL for the key of another region than the one to register.
fn fill_rdma(head: &mut SendHead, wr: &SendWr<'_, Xroce>) -> Result {
    if let Some(rdma) = wr.rdma() {
        head.rdma.remote_addr = rdma.remote_addr;
        head.rdma.rkey = Key::new(rdma.rkey);
    }
    if let Some(atomic) = wr.atomic() {
        head.rdma = RdmaPart {
            remote_addr: atomic.remote_addr,
            rkey: Key::new(atomic.rkey),
            srqn: 0,
            compare_add: atomic.compare_add,
            swap: atomic.swap,
        };
    }
    if head.op == SendOp::RegMr {
        let reg = wr.reg().ok_or(EINVAL)?;
        let key = Key::new(reg.key);
        if reg.mr.data().number() != key.index() {
            return Err(EINVAL);
        }
        head.rdma = RdmaPart::from_reg(&RegPart {
            iova: reg.iova,
            key,
            access: reg.access,
        });
    }
    Ok(())
}
