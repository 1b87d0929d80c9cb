// SPDX-License-Identifier: GPL-2.0

//! Creating queue pairs.

use super::connection::Connection;
use super::engine;
use super::hot::Hot;
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
    Room,
    SendQueue,
    SendSide, //
};
use super::{
    steer,
    Events,
    QpKind,
    Rings,
    BACKLOG,
    BACKLOG_BYTES,
    EARLY_BYTES, //
};
use crate::limits::Charge;
use crate::pd::WirePd;
use crate::prelude::*;
use crate::rx::Backlog;
use crate::tm::rendezvous;
use core::ptr;
use kernel::new_mutex;
use rdma::process::Process;
use rdma::qp::{
    QpAttr,
    QpCap, //
};
use roce::responder::KEPT;

/// What differs between the users of QPs: where requests come from.
pub struct Queues {
    send: SendQueue,
    recv: RecvQueue,
    kernel_sends: Option<Arc<KernelQueue<SendHead>>>,
    kernel_recvs: Option<Arc<KernelQueue<RecvHead>>>,
    rings: Rings,
}

/// A ring of a process.
pub struct SharedRing {
    /// Its memory.
    pub mem: Arc<RingMem>,
    /// Where it begins there, bytes.
    pub base: usize,
    /// Slots, a power of two.
    pub entries: u32,
    /// Bytes from one slot to the next.
    pub stride: u32,
}

impl SharedRing {
    fn reader(self) -> RingReader {
        RingReader::new(self.mem, self.base, self.entries, self.stride)
    }
}

impl Queues {
    /// No requests come from anywhere.
    pub fn none() -> Self {
        Queues {
            send: SendQueue::None,
            recv: RecvQueue::None,
            kernel_sends: None,
            kernel_recvs: None,
            rings: Rings::default(),
        }
    }

    /// The rings of a process.
    pub fn user(sq: SharedRing, rq: Option<SharedRing>) -> Self {
        let mut queues = Queues::none();
        queues.rings.sq = Some((sq.mem.clone(), sq.base));
        queues.send = SendQueue::User(sq.reader());
        if let Some(rq) = rq {
            queues.rings.rq = Some((rq.mem.clone(), rq.base));
            queues.recv = RecvQueue::User(rq.reader());
        }
        queues
    }

    /// The queues of a kernel user. Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM.
    pub fn kernel(cap: &QpCap, has_rq: bool) -> Result<Self> {
        let sends = Arc::pin_init(
            KernelQueue::new(cap.max_send_wr, cap.max_send_sge),
            GFP_KERNEL,
        )?;
        let mut queues = Queues {
            send: SendQueue::Kernel(sends.clone()),
            kernel_sends: Some(sends),
            ..Queues::none()
        };
        if has_rq {
            let recvs = Arc::pin_init(
                KernelQueue::new(cap.max_recv_wr, cap.max_recv_sge),
                GFP_KERNEL,
            )?;
            queues.recv = RecvQueue::Kernel(recvs.clone());
            queues.kernel_recvs = Some(recvs);
        }
        Ok(queues)
    }
}

/// What never changes about a QP.
pub struct Identity<'a> {
    /// Its number.
    pub qpn: Qpn,
    /// Its type.
    pub kind: QpKind,
    /// Its device.
    pub device: &'a Arc<WireDevice>,
    /// Its protection domain; an XRC_TGT has none.
    pub pd: Option<&'a Arc<WirePd>>,
    /// Number of its XRC domain (XRC_TGT).
    pub domain: Option<u64>,
    /// Every send work request completes with a completion.
    pub sq_sig_all: bool,
    /// A process posts to it.
    pub user: bool,
    /// Its capacities.
    pub cap: QpCap,
}

/// What a QP refers to.
pub struct Relations {
    /// Where sends complete.
    pub send_cq: Option<Ref<WireCq>>,
    /// Where receives complete.
    pub recv_cq: Option<Ref<WireCq>>,
    /// Where receives come from, instead of the own queue.
    pub srq: Option<Ref<WireSrq>>,
    /// Whom its asynchronous events go to.
    pub events: Events,
}

/// The two directions of a queue pair.
struct Sides {
    send: SendSide,
    recv: RecvSide,
    /// Requests of the device itself, which a QP with a tag-matching SRQ has.
    device_sends: Option<Arc<rendezvous::Queue>>,
    /// Requests for which the send direction has room.
    room: Room,
}

impl Sides {
    // Not inline: what is built here is large, and the caller is not to have it on its stack twice
    // while it allocates the rest.
    #[inline(never)]
    fn new(
        id: &Identity<'_>,
        send: SendQueue,
        recv: RecvQueue,
        srq: Option<&Ref<WireSrq>>,
    ) -> Result<Self> {
        let device_sends = match srq {
            Some(srq) if srq.tm.is_some() => Some(rendezvous::new_queue()?),
            _ => None,
        };
        let room = match device_sends {
            _ if id.kind.is_datagram() => Room::Datagrams,
            // The kernel's users post without a doorbell, and the device does itself.
            None if id.user => Room::One,
            _ => Room::All,
        };
        Ok(Sides {
            send: SendSide::new(
                send,
                room,
                id.cap.max_send_wr,
                id.cap.max_send_sge,
                id.cap.max_inline_data,
                device_sends.clone(),
            )?,
            recv: RecvSide::new(recv, id.cap.max_recv_sge)?,
            device_sends,
            room,
        })
    }
}

/// What runs the directions of a queue pair later, and the process that pays for it.
struct Later {
    process: Arc<Process>,
    sender: Sender,
    timer: Timer,
    pace: Timer,
    send_work: Work,
    recv_work: Work,
}

impl Later {
    // Not inline, as above.
    #[inline(never)]
    fn new(id: &Identity<'_>) -> Result<Self> {
        let cookie = u64::from(id.qpn.get());
        let timer = Timer::new(cookie, WireQp::on_send_work)?;
        let pace = Timer::new(cookie, WireQp::on_pace)?;
        let process = match id.user || id.kind == QpKind::XrcTgt {
            true => Process::current()?,
            false => Process::kernel()?,
        };
        Ok(Later {
            sender: sender(id, &process)?,
            timer,
            pace,
            send_work: Work::new(cookie, WireQp::on_send_work, process.clone())?,
            recv_work: Work::new(cookie, WireQp::on_recv_work, process.clone())?,
            process,
        })
    }
}

impl WireQp {
    /// Makes a queue pair in the reset state. Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM.
    pub fn new(
        id: Identity<'_>,
        queues: Queues,
        relations: Relations,
        charge: Charge,
    ) -> Result<Ref<Self>> {
        let sides = Sides::new(&id, queues.send, queues.recv, relations.srq.as_ref())?;
        let later = Later::new(&id)?;
        let attr = QpAttr {
            cap: id.cap,
            ..QpAttr::default()
        };
        let attr = KBox::pin_init(new_mutex!(attr, "xroce qp attributes"), GFP_ACCOUNT)?;
        Ref::pin_init(
            try_pin_init!(WireQp {
                qpn: id.qpn,
                kind: id.kind,
                device: id.device.clone(),
                pd: id.pd.map_or(PdId::NONE, |pd| pd.id()),
                wire_pd: id.pd.cloned(),
                peer_sleeps: Atomic::new(0),
                copies: Atomic::new(0),
                has_slots: Atomic::new(u32::from(sides.room != Room::One)),
                last_run: Atomic::new(engine::UNDER_WAY),
                congested: Atomic::new(0),
                domain: id.domain,
                sq_sig_all: id.sq_sig_all,
                user: id.user,
                state: Atomic::new(QpState::Reset as u32),
                qkey: Atomic::new(0),
                local_waiter: Atomic::new(0),
                send_waiter: Atomic::new(0),
                retired: Atomic::new(0),
                send_connection: Connection::new(),
                recv_connection: Connection::new(),
                send: Owner::new(sides.send),
                recv: Owner::new(sides.recv),
                requests <- Backlog::new(BACKLOG, BACKLOG_BYTES, later.process.clone()),
                early <- Backlog::new(KEPT, EARLY_BYTES, later.process.clone()),
                responses <- Backlog::new(BACKLOG, BACKLOG_BYTES, later.process.clone()),
                arrivals <- steer::Queue::new(BACKLOG, BACKLOG_BYTES, later.process),
                hot: Hot::new(),
                send_home: steer::Home::new(),
                recv_home: steer::Home::new(),
                timer: later.timer,
                pace: later.pace,
                sender: later.sender,
                send_work: later.send_work,
                recv_work: later.recv_work,
                send_cq: relations.send_cq,
                recv_cq: relations.recv_cq,
                srq: relations.srq,
                device_sends: sides.device_sends,
                kernel_sends: queues.kernel_sends,
                kernel_recvs: queues.kernel_recvs,
                rings: queues.rings,
                events: relations.events,
                attr,
                cap: id.cap,
                _charge: charge,
            }? Error),
            GFP_ACCOUNT,
        )
    }
}

/// What the packets of a queue pair are charged to: a process has a sender for each device. QP 1
/// has one of its own, since connections of all processes are set up through it.
fn sender(id: &Identity<'_>, process: &Arc<Process>) -> Result<Sender> {
    // Devices are aligned, so the number is nobody else's.
    let device = ptr::from_ref::<WireDevice>(id.device).addr();
    let group = device.wrapping_add(usize::from(id.kind == QpKind::Gsi));
    Sender::new(id.device.tunnel(), process.clone(), group as u64)
}
