// SPDX-License-Identifier: GPL-2.0

//! Queue pairs on the wire.
//!
//! `struct ib_qp` of ib_core holds a reference to a [`WireQp`] and is freed when the destroy
//! operation returns. The [`WireQp`] lives until the last packet, timer or run that found it in the
//! table has finished with it, and for one more RCU grace period.

mod attributes;
mod build;
mod connection;
pub mod drain;
pub mod engine;
mod hot;
pub mod receive;
pub mod request;
pub mod ring;
pub mod send;
pub mod state;
mod steer;

use self::connection::Connection;
use self::hot::Hot;
use crate::limits::Charge;
use crate::pd::WirePd;
use crate::prelude::*;
use crate::rx::Backlog;
use crate::tm::{
    rendezvous,
    Tm, //
};
pub use build::{
    Identity,
    Queues,
    Relations,
    SharedRing, //
};
use kernel::sync::Mutex;
use rdma::qp::{
    QpAttr,
    QpCap, //
};
use receive::RecvSide;
use send::SendSide;
pub use state::{
    QpKind,
    QpState, //
};

/// Packets that may wait for the owner of one direction. More are dropped, which the sender takes
/// for loss: its window is smaller than this unless it does not follow it.
pub(crate) const BACKLOG: u32 = 1024;

/// The memory that they may take: that of the largest window in packets of the largest MTU, for
/// each of which some drivers have a buffer of 16 KiB and what belongs to it.
pub(crate) const BACKLOG_BYTES: u32 = 8 << 20;

/// The memory of requests that wait for an earlier one; at most
/// [`KEPT`](roce::responder::KEPT) of them do.
pub(crate) const EARLY_BYTES: u32 = 8 << 20;

/// A queue pair on the wire. With what [`Ref`] adds it takes less than 2 KiB, on a kernel without
/// debugging: the allocator would take 4 for more. So parts of it are in memory of their own.
#[pin_data]
pub struct WireQp {
    /// Number in [`crate::tables::Tables::qps`]; for all but the GSI QP also the number on the
    /// wire.
    pub qpn: Qpn,
    /// Type.
    pub kind: QpKind,
    /// The device it belongs to.
    pub device: Arc<WireDevice>,
    /// Number of its protection domain; [`PdId::NONE`] for XRC_TGT.
    pub(crate) pd: PdId,
    /// The same, as an object; an XRC_TGT has none.
    pub(crate) wire_pd: Option<Arc<WirePd>>,
    /// A peer on this host uses on-demand memory.
    pub(crate) peer_sleeps: Atomic<u32>,
    /// Not 0: messages are copied to a peer on this host, not sent in packets.
    pub(crate) copies: Atomic<u32>,
    /// Not 0: the send direction has all its slots.
    pub(crate) has_slots: Atomic<u32>,
    /// How the send direction ended its last run: [`engine::UNDER_WAY`], or else nothing was
    /// outstanding at the peer.
    pub(crate) last_run: Atomic<u32>,
    /// Not 0: the peer told of congestion, and the receive direction has not looked yet.
    pub(crate) congested: Atomic<u32>,
    /// Number of its XRC domain (XRC_TGT).
    pub domain: Option<u64>,
    /// Every send work request completes with a completion.
    pub sq_sig_all: bool,
    /// A process posts to it through rings.
    pub(crate) user: bool,
    state: Atomic<u32>,
    qkey: Atomic<u32>,
    /// Number of the QP of this host that waits for the receive direction, or 0.
    pub(crate) local_waiter: Atomic<u32>,
    /// Number of the QP of this host whose send direction runs when this one's rests, or 0.
    pub(crate) send_waiter: Atomic<u32>,
    /// Whom the send direction is connected to. Answers come from there.
    pub(crate) send_connection: Connection,
    /// Whom the receive direction is connected to. Requests come from there.
    pub(crate) recv_connection: Connection,
    /// The send direction.
    pub(crate) send: Owner<SendSide>,
    /// The receive direction.
    pub(crate) recv: Owner<RecvSide>,
    /// Request packets that wait for the owner of the receive direction.
    #[pin]
    pub(crate) requests: Backlog,
    /// Request packets that came before an earlier one, in their order.
    #[pin]
    pub(crate) early: Backlog,
    /// Response packets that wait for the owner of the send direction.
    #[pin]
    pub(crate) responses: Backlog,
    /// Packets that another CPU than theirs receives.
    #[pin]
    arrivals: steer::Queue,
    /// Whether the send ring is polled.
    pub(crate) hot: Hot,
    /// Where the send direction sends bulk data.
    send_home: steer::Home,
    /// Where the receive direction does: those of READs.
    recv_home: steer::Home,
    /// Deadline of the send direction.
    pub(crate) timer: Timer,
    /// When the receive direction goes on with READ data, see [`receive`], or reports a gap.
    pub(crate) pace: Timer,
    /// What its packets are charged to.
    pub(crate) sender: Sender,
    /// Runs the send direction.
    pub(crate) send_work: Work,
    /// Runs the receive direction.
    pub(crate) recv_work: Work,
    /// Where sends complete.
    pub(crate) send_cq: Option<Ref<WireCq>>,
    /// Where receives complete; an XRC_TGT's complete in the CQ of the SRQ.
    pub(crate) recv_cq: Option<Ref<WireCq>>,
    /// Where receives come from, instead of the own queue.
    pub(crate) srq: Option<Ref<WireSrq>>,
    /// What the device itself sends, on behalf of a tag-matching SRQ.
    pub device_sends: Option<Arc<rendezvous::Queue>>,
    /// Queue of a kernel user's sends, the same as the send side reads.
    pub kernel_sends: Option<Arc<request::KernelQueue<request::SendHead>>>,
    /// Queue of a kernel user's receives.
    pub kernel_recvs: Option<Arc<request::KernelQueue<request::RecvHead>>>,
    /// Rings to mark dead when the QP goes.
    pub(crate) rings: Rings,
    events: Events,
    /// Not 0 once the QP has been taken out of the table; set under `attr`, so that no modify that
    /// found it before brings it back to life.
    pub retired: Atomic<u32>,
    /// Attributes as the verbs set them.
    pub attr: Pin<KBox<Mutex<QpAttr>>>,
    /// Capacities.
    pub cap: QpCap,
    _charge: Charge,
}

/// The shared rings of a user's QP: the memory of each, and where it begins there.
#[derive(Default)]
pub(crate) struct Rings {
    /// Send ring.
    pub(crate) sq: Option<(Arc<RingMem>, usize)>,
    /// Receive ring.
    pub(crate) rq: Option<(Arc<RingMem>, usize)>,
}

/// What [`Ref`] adds is 64 bytes. Locks are larger in a debug kernel and in a real-time one.
#[cfg(not(any(CONFIG_DEBUG_SPINLOCK, CONFIG_PREEMPT_RT)))]
const _: () = assert!(size_of::<WireQp>() <= 2048 - 64);

/// Whom the asynchronous events of a QP go to.
pub enum Events {
    /// Its user.
    One(QpHandle),
    /// Everybody who has the XRC target open.
    Tgt(Arc<xrc::Views>),
}

impl WireQp {
    /// State. Any context.
    pub fn state(&self) -> QpState {
        QpState::from_raw(self.state.load(Relaxed))
    }

    /// Changes the state, whatever it was. Runs that began before may still act on the old one.
    pub fn set_state(&self, state: QpState) {
        self.state.store(state as u32, Relaxed);
    }

    /// Changes the state if it is `from`; true when it was. Any context.
    pub fn change_state(&self, from: QpState, to: QpState) -> bool {
        self.state.cmpxchg(from as u32, to as u32, Full).is_ok()
    }

    /// Goes to the error state; true for the one caller that made it so. A QP that was reset or is
    /// being destroyed stays as it is: it has nothing to flush. Any context.
    pub(crate) fn set_error(&self) -> bool {
        let mut now = self.state.load(Relaxed);
        loop {
            match QpState::from_raw(now) {
                QpState::Reset | QpState::Err => return false,
                _ => {}
            }
            match self.state.cmpxchg(now, QpState::Err as u32, Full) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
    }

    /// A request of the send queue fails: a reliable QP goes to the error state, an unreliable one
    /// to SQE (IBTA 10.3.1). Called before the completion can be seen: whoever sees it finds the QP
    /// in that state, and may bring it back from SQE to RTS at once, as ib_mad does. Any context,
    /// by the owner of the send direction.
    pub(crate) fn set_send_error(&self) {
        if self.kind.is_reliable() {
            // The receives are flushed when the run ends: behind what failed.
            self.set_error();
            return;
        }
        let mut now = self.state.load(Relaxed);
        while matches!(QpState::from_raw(now), QpState::Rts | QpState::Sqd) {
            match self.state.cmpxchg(now, QpState::Sqe as u32, Full) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
    }

    /// Its runs may access on-demand memory, so they belong in process context. Any context.
    pub(crate) fn sleeps(&self) -> bool {
        match &self.wire_pd {
            Some(pd) => {
                pd.sleeps()
                    || self.srq.as_ref().is_some_and(|srq| srq.wire_pd.sleeps())
                    || self.peer_sleeps.load(Relaxed) != 0
            }
            // Which SRQ a packet names is not known before it comes.
            None => self.device.sleeps().get(),
        }
    }

    /// The number in packets: 1 for the GSI QP.
    pub fn wire_qpn(&self) -> Qpn {
        match self.kind {
            QpKind::Gsi => Qpn::GSI,
            _ => self.qpn,
        }
    }

    /// Queue key (UD, GSI).
    pub(crate) fn qkey(&self) -> u32 {
        self.qkey.load(Relaxed)
    }

    /// Sets the queue key.
    pub fn set_qkey(&self, qkey: u32) {
        self.qkey.store(qkey, Relaxed);
    }

    /// The SRQ, if it matches tags.
    pub(crate) fn tags(&self) -> Option<(&WireSrq, &Tm)> {
        let srq = self.srq.as_ref()?;
        Some((srq, srq.tm.as_deref()?))
    }

    /// The network namespace.
    pub fn ns(&self) -> NamespaceId {
        self.device.ns()
    }

    /// Raises an asynchronous event. Any context, without queue locks.
    pub(crate) fn event(&self, kind: QpEvent) {
        match &self.events {
            Events::One(handle) => {
                // Users that do not listen, or do not yet, miss it.
                let _ = handle.event(kind);
            }
            Events::Tgt(views) => {
                if !views.event(kind) {
                    self.device.count(Counter::XrcUnheard, 1);
                    self.log_unheard(kind);
                }
            }
        }
    }

    /// The handle for completions of a kernel user.
    pub(crate) fn handle(&self) -> Option<&QpHandle> {
        match &self.events {
            Events::One(handle) => Some(handle),
            Events::Tgt(_) => None,
        }
    }

    /// Who listens to the events of an XRC target.
    pub fn views(&self) -> Option<&xrc::Views> {
        match &self.events {
            Events::One(_) => None,
            Events::Tgt(views) => Some(views),
        }
    }

    /// Nobody that has the XRC target open could be told: its event goes to the log.
    fn log_unheard(&self, kind: QpEvent) {
        if self.device.unheard.pass() {
            pr_info!(
                "{}: XRC target {:#08x} of domain {} is open nowhere: event {:?}\n",
                self.device.name(),
                self.qpn.get(),
                self.domain.unwrap_or(0),
                kind
            );
        }
    }
}
