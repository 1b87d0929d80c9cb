// SPDX-License-Identifier: GPL-2.0

//! Creating queue pairs.

use super::QpData;
use crate::prelude::*;
use crate::verbs::provider::Xroce;
use crate::verbs::{
    ring_info,
    xrc, //
};
use datapath::limits::{
    self,
    Charge,
    Kind, //
};
use datapath::qp::{
    Events,
    Identity,
    QpKind,
    Queues,
    Relations,
    SharedRing, //
};
use datapath::{
    tables,
    wr, //
};
use rdma::device::Device;
use rdma::qp::{
    CreatedQp,
    QpCap,
    QpInitAttr, //
};
use rdma::uverbs::{
    mmap::RingMapping,
    udata::Udata, //
};

/// Everything that the parts of a create call need.
struct Plan {
    cap: QpCap,
    has_rq: bool,
    send_stride: u32,
    recv_stride: u32,
}

/// `ibv_create_qp`, `ibv_create_qp_ex`. EINVAL for capacities beyond the device's, EOPNOTSUPP for
/// creation flags.
pub(crate) fn create(
    device: &Device<Xroce>,
    init: &mut QpInitAttr<'_, Xroce>,
    handle: QpHandle,
    udata: Option<&mut Udata<'_, Xroce>>,
) -> Result<CreatedQp<QpData>> {
    if init.create_flags != 0 {
        return Err(eopnotsupp());
    }
    let kind = QpKind::from(init.qp_type);
    if kind == QpKind::XrcTgt {
        return xrc::create_tgt(device, init, handle);
    }
    let plan = plan(kind, init, udata.is_some())?;
    let wire_device = &device.data().wire;
    let charge = Charge::new(wire_device, Kind::Qp)?;
    let reservation = tables::tables()?.qps.reserve()?;
    let qpn = Qpn::new(reservation.id());
    let is_user = udata.is_some();
    let (queues, mappings) = match udata {
        Some(udata) => user_queues(&plan, udata)?,
        None => (Queues::kernel(&plan.cap, plan.has_rq)?, [None, None]),
    };
    let wire = WireQp::new(
        Identity {
            qpn,
            kind,
            device: wire_device,
            pd: Some(init.pd.ok_or(EINVAL)?.data().wire()),
            domain: None,
            sq_sig_all: init.signal_all,
            user: is_user,
            cap: plan.cap,
        },
        queues,
        Relations {
            send_cq: init.send_cq.map(|cq| cq.data().wire.clone()),
            recv_cq: init.recv_cq.map(|cq| cq.data().wire.clone()),
            srq: init.srq.map(|srq| srq.data().wire.clone()),
            events: Events::One(handle),
        },
        charge,
    )?;
    if kind == QpKind::Gsi {
        tables::add_gsi(wire.clone())?;
    }
    reservation.publish(wire.clone());
    init.cap = plan.cap;
    Ok(CreatedQp {
        qp_num: wire.wire_qpn().get(),
        tracked: true,
        data: QpData {
            wire,
            view: None,
            _charge: None,
            _mappings: mappings,
        },
    })
}

/// Checks the capacities and rounds them up to what the queues will have.
fn plan(kind: QpKind, init: &QpInitAttr<'_, Xroce>, user: bool) -> Result<Plan> {
    let asked = &init.cap;
    let has_rq = kind.receives() && init.srq.is_none();
    if asked.max_send_wr > limits::MAX_QP_WR
        || asked.max_send_sge > limits::MAX_SGE
        || asked.max_inline_data > limits::MAX_INLINE
    {
        return Err(EINVAL);
    }
    if has_rq && (asked.max_recv_wr > limits::MAX_QP_WR || asked.max_recv_sge > limits::MAX_SGE) {
        return Err(EINVAL);
    }
    // An unreliable peer cannot be asked for the data of a rendezvous.
    let tags = init.srq.is_some_and(|srq| srq.data().wire.tm.is_some());
    if tags && kind != QpKind::Rc {
        return Err(EINVAL);
    }
    if init.send_cq.is_none() || (kind.receives() && init.recv_cq.is_none()) {
        return Err(EINVAL);
    }
    let mut cap = QpCap {
        max_send_wr: slots(asked.max_send_wr)?,
        max_send_sge: asked.max_send_sge.max(1),
        ..QpCap::default()
    };
    let send_stride = wr::send_stride(cap.max_send_sge, asked.max_inline_data);
    if user {
        cap.max_inline_data = wr::inline_room(send_stride);
    }
    if has_rq {
        cap.max_recv_wr = slots(asked.max_recv_wr)?;
        cap.max_recv_sge = asked.max_recv_sge.max(1);
    }
    Ok(Plan {
        has_rq,
        send_stride,
        recv_stride: wr::recv_stride(cap.max_recv_sge),
        cap,
    })
}

fn slots(asked: u32) -> Result<u32> {
    asked.max(1).checked_next_power_of_two().ok_or(EINVAL)
}

/// The mappings of a process's rings.
type Mappings = [Option<RingMapping>; 2];

/// Makes the shared rings of a process and tells it where they are.
fn user_queues(plan: &Plan, udata: &mut Udata<'_, Xroce>) -> Result<(Queues, Mappings)> {
    let request: abi::xroce_create_qp_req = udata.read()?;
    if request.flags & !abi::XROCE_QP_ONE_MAPPING != 0 || request.reserved != 0 {
        return Err(EINVAL);
    }
    let send = (plan.cap.max_send_wr, plan.send_stride);
    let recv = plan
        .has_rq
        .then_some((plan.cap.max_recv_wr, plan.recv_stride));
    let no_ring = abi::xroce_ring_info {
        offset: 0,
        size: 0,
        entries: 0,
        stride: 0,
        reserved: 0,
    };
    let is_one = request.flags & abi::XROCE_QP_ONE_MAPPING != 0;
    let (sq, rq, mappings) = match recv {
        Some(recv) if is_one => {
            let (sq, rq, map) = shared_pair(udata, send, recv)?;
            (sq, Some(rq), [Some(map), None])
        }
        Some(recv) => {
            let (sq, sq_map) = shared_ring(udata, send)?;
            let (rq, rq_map) = shared_ring(udata, recv)?;
            (sq, Some(rq), [Some(sq_map), Some(rq_map)])
        }
        None => {
            let (sq, map) = shared_ring(udata, send)?;
            (sq, None, [Some(map), None])
        }
    };
    let (rq, rq_info) = match rq {
        Some((ring, info)) => (Some(ring), info),
        None => (None, no_ring),
    };
    udata.write(&abi::xroce_create_qp_resp {
        sq: sq.1,
        rq: rq_info,
        max_inline: plan.cap.max_inline_data,
        reserved: 0,
    })?;
    Ok((Queues::user(sq.0, rq), mappings))
}

/// A ring, and what the process is told of it.
type Described = (SharedRing, abi::xroce_ring_info);

/// Makes one ring, given as its slots and their stride.
fn shared_ring(
    udata: &mut Udata<'_, Xroce>,
    (entries, stride): (u32, u32),
) -> Result<(Described, RingMapping)> {
    let mem = wr::new_ring(entries, stride)?;
    let map = udata.ucontext()?.map_ring(mem.clone())?;
    Ok((described(mem, &map, 0, entries, stride), map))
}

/// Makes both rings in one mapping.
fn shared_pair(
    udata: &mut Udata<'_, Xroce>,
    send: (u32, u32),
    recv: (u32, u32),
) -> Result<(Described, Described, RingMapping)> {
    let (mem, base) = wr::new_ring_pair(send, recv)?;
    let map = udata.ucontext()?.map_ring(mem.clone())?;
    let sq = described(mem.clone(), &map, 0, send.0, send.1);
    let rq = described(mem, &map, base, recv.0, recv.1);
    Ok((sq, rq, map))
}

/// The ring at byte `base` of `mem`.
fn described(
    mem: Arc<RingMem>,
    map: &RingMapping,
    base: usize,
    entries: u32,
    stride: u32,
) -> Described {
    let mut info = ring_info(&mem, map, entries, stride);
    info.offset = info.offset.wrapping_add(base as u64);
    info.size = info.size.saturating_sub(base as u32);
    let ring = SharedRing {
        mem,
        base,
        entries,
        stride,
    };
    (ring, info)
}
