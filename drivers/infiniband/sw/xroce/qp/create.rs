// SPDX-License-Identifier: GPL-2.0

//! Making queue pairs.

use super::destroy::Tgt;
use super::receive::{
    RecvQueue,
    RecvSide, //
};
use super::request::{
    KernelQueue,
    RecvHead,
    SendHead, //
};
use super::ring::RingReader;
use super::send::{
    SendQueue,
    SendSide, //
};
use super::{
    Events,
    QpData,
    Rings,
    BACKLOG,
    BACKLOG_BYTES, //
};
use crate::limits::{
    self,
    Charge,
    Kind, //
};
use crate::pd::PdData;
use crate::prelude::*;
use crate::provider::Xroce;
use crate::qp::QpKind;
use crate::tm::rendezvous;
use crate::{
    tables,
    wr, //
};
use kernel::new_mutex;
use rdma::device::Device;
use rdma::qp::{
    CreatedQp,
    QpAttr,
    QpCap,
    QpInitAttr, //
};
use rdma::rcu::Reservation;
use rdma::uverbs::{
    mmap::RingMapping,
    udata::Udata, //
};
use rdma::work;

/// What differs between the users of QPs: where requests come from.
struct Queues {
    send: SendQueue,
    recv: RecvQueue,
    kernel_sends: Option<Arc<KernelQueue<SendHead>>>,
    kernel_recvs: Option<Arc<KernelQueue<RecvHead>>>,
    rings: Rings,
    mappings: [Option<RingMapping>; 2],
}

impl Queues {
    /// No requests come from anywhere.
    fn none() -> Self {
        Queues {
            send: SendQueue::None,
            recv: RecvQueue::None,
            kernel_sends: None,
            kernel_recvs: None,
            rings: Rings::default(),
            mappings: [None, None],
        }
    }
}

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
        return create_tgt(device, init, handle);
    }
    let plan = plan(kind, init, udata.is_some())?;
    let wire_device = &device.data().wire;
    let charge = Charge::new(wire_device, Kind::Qp)?;
    let reservation = tables::tables()?.qps.reserve()?;
    let qpn = reservation.id();
    let is_user = udata.is_some();
    let mut queues = match udata {
        Some(udata) => user_queues(&plan, udata)?,
        None => kernel_queues(&plan)?,
    };
    let mappings = core::mem::take(&mut queues.mappings);
    let wire = build(
        Identity {
            qpn,
            kind,
            device: wire_device,
            pd: Some(init.pd.ok_or(EINVAL)?.data()),
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
        qp_num: wire.wire_qpn(),
        tracked: true,
        data: QpData {
            wire,
            view: None,
            _charge: None,
            _mappings: mappings,
        },
    })
}

/// An XRC target: a new one, or, when the capacities say so, a view of an existing one. All other
/// capacities mean nothing.
fn create_tgt(
    device: &Device<Xroce>,
    init: &mut QpInitAttr<'_, Xroce>,
    handle: QpHandle,
) -> Result<CreatedQp<QpData>> {
    let domain = init.xrcd.ok_or(EINVAL)?.data().domain();
    let asked = core::mem::take(&mut init.cap);
    if asked.max_send_wr == abi::XROCE_TGT_OPEN {
        let charge = Charge::new(&device.data().wire, Kind::Qp)?;
        let (target, view) = domain.open(asked.max_recv_wr, handle)?;
        let wire = target.wire;
        return Ok(CreatedQp {
            qp_num: wire.qpn,
            tracked: false,
            data: QpData {
                wire,
                view: Some(view),
                _charge: Some(charge),
                _mappings: [None, None],
            },
        });
    }
    let NewTarget {
        reservation,
        target,
        views,
    } = NewTarget::new(device, domain.id())?;
    let qpn = reservation.id();
    let wire = target.wire.clone();
    let view = domain.insert(qpn, target, views, handle)?;
    reservation.publish(wire.clone());
    Ok(CreatedQp {
        qp_num: qpn,
        tracked: false,
        data: QpData {
            wire,
            view: Some(view),
            _charge: None,
            _mappings: [None, None],
        },
    })
}

/// An XRC target that belongs to no domain yet.
pub(super) struct NewTarget {
    /// Its number, under which no packet finds it before this is published.
    pub(super) reservation: Reservation<'static, WireQp>,
    /// The target, in the reset state.
    pub(super) target: Tgt,
    /// Where its events go.
    pub(super) views: Arc<xrc::Views>,
}

impl NewTarget {
    /// Makes a target for the domain with number `domain`. ENOMEM when the device has as many queue
    /// pairs as it may.
    pub(super) fn new(device: &Device<Xroce>, domain: u64) -> Result<Self> {
        let wire_device = &device.data().wire;
        let charge = Charge::new(wire_device, Kind::Qp)?;
        let reservation = tables::tables()?.qps.reserve()?;
        let qpn = reservation.id();
        let views = xrc::Views::new(qpn)?;
        let wire = build(
            Identity {
                qpn,
                kind: QpKind::XrcTgt,
                device: wire_device,
                pd: None,
                domain: Some(domain),
                sq_sig_all: false,
                user: false,
                cap: QpCap::default(),
            },
            Queues::none(),
            Relations {
                send_cq: None,
                recv_cq: None,
                srq: None,
                events: Events::Tgt(views.clone()),
            },
            charge,
        )?;
        // `rdma res` shows the target, as long as it lives, and none of its views.
        let shown = device.track_qp(
            QpType::XrcTgt,
            qpn,
            QpData {
                wire: wire.clone(),
                view: None,
                _charge: None,
                _mappings: [None, None],
            },
        )?;
        Ok(Self {
            reservation,
            target: Tgt { wire, shown },
            views,
        })
    }
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

/// Makes the shared rings of a process and tells it where they are.
fn user_queues(plan: &Plan, udata: &mut Udata<'_, Xroce>) -> Result<Queues> {
    let request: abi::xroce_create_qp_req = udata.read()?;
    if request.flags != 0 || request.reserved != 0 {
        return Err(EINVAL);
    }
    let mut queues = Queues::none();
    let entries = plan.cap.max_send_wr;
    let sq = wr::new_ring(entries, plan.send_stride)?;
    let sq_map = udata.ucontext()?.map_ring(sq.clone())?;
    let mut response = abi::xroce_create_qp_resp {
        sq: wr::ring_info(&sq, &sq_map, entries, plan.send_stride),
        rq: abi::xroce_ring_info {
            offset: 0,
            size: 0,
            entries: 0,
            stride: 0,
            reserved: 0,
        },
        max_inline: plan.cap.max_inline_data,
        reserved: 0,
    };
    queues.send = SendQueue::User(RingReader::new(sq.clone(), entries, plan.send_stride));
    queues.rings.sq = Some(sq);
    let mut rq_map = None;
    if plan.has_rq {
        let entries = plan.cap.max_recv_wr;
        let rq = wr::new_ring(entries, plan.recv_stride)?;
        let map = udata.ucontext()?.map_ring(rq.clone())?;
        response.rq = wr::ring_info(&rq, &map, entries, plan.recv_stride);
        queues.recv = RecvQueue::User(RingReader::new(rq.clone(), entries, plan.recv_stride));
        queues.rings.rq = Some(rq);
        rq_map = Some(map);
    }
    queues.mappings = [Some(sq_map), rq_map];
    udata.write(&response)?;
    Ok(queues)
}

/// Makes the queues of a kernel user.
fn kernel_queues(plan: &Plan) -> Result<Queues> {
    let cap = &plan.cap;
    let sends = Arc::pin_init(
        KernelQueue::new(cap.max_send_wr, cap.max_send_sge),
        GFP_KERNEL,
    )?;
    let mut queues = Queues {
        send: SendQueue::Kernel(sends.clone()),
        kernel_sends: Some(sends),
        ..Queues::none()
    };
    if plan.has_rq {
        let recvs = Arc::pin_init(
            KernelQueue::new(cap.max_recv_wr, cap.max_recv_sge),
            GFP_KERNEL,
        )?;
        queues.recv = RecvQueue::Kernel(recvs.clone());
        queues.kernel_recvs = Some(recvs);
    }
    Ok(queues)
}

/// What never changes about a QP.
struct Identity<'a> {
    qpn: u32,
    kind: QpKind,
    device: &'a Arc<WireDevice>,
    pd: Option<&'a PdData>,
    domain: Option<u64>,
    sq_sig_all: bool,
    user: bool,
    cap: QpCap,
}

/// What a QP refers to.
struct Relations {
    send_cq: Option<Ref<WireCq>>,
    recv_cq: Option<Ref<WireCq>>,
    srq: Option<Ref<WireSrq>>,
    events: Events,
}

fn build(
    id: Identity<'_>,
    queues: Queues,
    relations: Relations,
    charge: Charge,
) -> Result<Ref<WireQp>> {
    let cookie = u64::from(id.qpn);
    let resources = match id.kind {
        QpKind::Rc | QpKind::XrcTgt => u32::from(limits::MAX_RD_ATOMIC),
        _ => 0,
    };
    let device_sends = match &relations.srq {
        Some(srq) if srq.tm.is_some() => Some(rendezvous::new_queue()?),
        _ => None,
    };
    let send = SendSide::new(
        queues.send,
        id.cap.max_send_wr,
        id.cap.max_send_sge,
        id.cap.max_inline_data,
        device_sends.clone(),
    )?;
    let recv = RecvSide::new(queues.recv, id.cap.max_recv_sge, resources)?;
    let timer = Timer::new(cookie, WireQp::on_send_work)?;
    let pace = Timer::new(cookie, WireQp::on_recv_work)?;
    let send_work = Work::new(cookie, WireQp::on_send_work, work::Kind::Bh)?;
    let recv_work = Work::new(cookie, WireQp::on_recv_work, work::Kind::Bh)?;
    let attr = QpAttr {
        cap: id.cap,
        ..QpAttr::default()
    };
    Ref::pin_init(
        try_pin_init!(WireQp {
            qpn: id.qpn,
            kind: id.kind,
            device: id.device.clone(),
            pd: id.pd.map_or(0, |pd| pd.id()),
            wire_pd: id.pd.map(|pd| pd.wire().clone()),
            peer_sleeps: Atomic::new(0),
            congested: Atomic::new(0),
            domain: id.domain,
            sq_sig_all: id.sq_sig_all,
            user: id.user,
            state: Atomic::new(QpState::Reset as u32),
            qkey: Atomic::new(0),
            local_waiter: Atomic::new(0),
            send_waiter: Atomic::new(0),
            retired: Atomic::new(0),
            send: Owner::new(send),
            recv: Owner::new(recv),
            requests <- Backlog::new(BACKLOG, BACKLOG_BYTES),
            responses <- Backlog::new(BACKLOG, BACKLOG_BYTES),
            timer,
            pace,
            send_work,
            recv_work,
            send_cq: relations.send_cq,
            recv_cq: relations.recv_cq,
            srq: relations.srq,
            device_sends,
            kernel_sends: queues.kernel_sends,
            kernel_recvs: queues.kernel_recvs,
            rings: queues.rings,
            events: relations.events,
            attr <- new_mutex!(attr, "xroce qp attributes"),
            cap: id.cap,
            _charge: charge,
        }? Error),
        GFP_ACCOUNT,
    )
}
