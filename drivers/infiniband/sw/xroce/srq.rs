// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues, basic and XRC.

use crate::limits::{
    self,
    Charge,
    Kind, //
};
use crate::pd::WirePd;
use crate::prelude::*;
use crate::provider::Xroce;
use crate::qp::request::{
    KernelQueue,
    RecvHead,
    Sge, //
};
use crate::qp::ring::RingReader;
use crate::tables;
use crate::tm::{
    self,
    Tm, //
};
use crate::wr;
use kernel::{
    new_mutex,
    sync::Mutex,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};
use rdma::srq::{
    CreatedSrq,
    Srq,
    SrqAttr,
    SrqAttrMask,
    SrqInitAttr,
    SrqType, //
};
use rdma::uverbs::{
    mmap::RingMapping,
    udata::Udata, //
};
use rdma::wr::RecvWr;
use zerocopy::IntoBytes;

/// Why no receive was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// None is posted.
    Empty,
    /// The ring or the slot makes no sense.
    Corrupt,
    /// The queue is broken or destroyed.
    Dead,
}

/// Of [`WireSrq::dead`]: the ring is corrupt.
const BROKEN: u32 = 1;
/// Of [`WireSrq::dead`]: the queue was destroyed.
const GONE: u32 = 2;

/// Where the receives are.
enum Queue {
    User(RingReader),
    Kernel(Arc<KernelQueue<RecvHead>>),
}

struct Inner {
    queue: Queue,
    /// Fewer receives than this raise the event; 0: none.
    limit: u32,
}

/// A shared receive queue, as packets see it.
#[pin_data]
pub(crate) struct WireSrq {
    /// SRQ number.
    pub(crate) srqn: u32,
    /// Protection domain of the receives, and of RDMA that names the queue.
    pub(crate) pd: u64,
    /// The same, as an object.
    pub(crate) wire_pd: Arc<WirePd>,
    /// Where receives complete (XRC, tag matching).
    pub(crate) cq: Option<Ref<WireCq>>,
    /// Number of the XRC domain.
    pub(crate) domain: Option<u64>,
    max_wr: Atomic<u32>,
    max_sge: u32,
    kernel: Option<Arc<KernelQueue<RecvHead>>>,
    /// 0, [`BROKEN`] or [`GONE`].
    dead: Atomic<u32>,
    handle: SrqHandle,
    /// Tag matching.
    pub(crate) tm: Option<Arc<Tm>>,
    device: Arc<WireDevice>,
    #[pin]
    inner: SpinLockIrq<Inner>,
    _charge: Charge,
}

impl WireSrq {
    /// Takes the oldest receive. `sges` has room for [`limits::MAX_SGE`] elements. Any context; raises
    /// the limit event when that is due.
    pub(crate) fn take(&self, head: &mut RecvHead, sges: &mut [Sge]) -> Result<(), Taken> {
        if self.is_dead() {
            return Err(Taken::Dead);
        }
        let (taken, limit) = {
            let mut inner = self.inner.lock();
            let taken = inner.take(self.max_sge, head, sges);
            // An empty queue counts too: a limit may be armed while nothing is posted.
            (taken, inner.limit_reached())
        };
        if limit {
            self.handle.event(SrqEvent::LimitReached);
        }
        if taken == Err(Taken::Corrupt) {
            self.fail();
        }
        taken
    }

    /// Broken or destroyed. Any context.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Relaxed) != 0
    }

    /// Destroyed. Any context.
    pub(crate) fn is_gone(&self) -> bool {
        self.dead.load(Relaxed) == GONE
    }

    /// The ring is corrupt: nothing is taken any more.
    pub(crate) fn fail(&self) {
        if self.dead.cmpxchg(0, BROKEN, Full).is_ok() {
            if self.device.log.pass() {
                pr_info!(
                    "{}: the ring of shared receive queue {} is corrupt\n",
                    self.device.name(),
                    self.srqn
                );
            }
            self.handle.event(SrqEvent::Error);
        }
    }
}

impl Inner {
    fn take(&mut self, max_sge: u32, head: &mut RecvHead, sges: &mut [Sge]) -> Result<(), Taken> {
        match &mut self.queue {
            Queue::User(ring) => {
                match ring.available() {
                    Ok(0) => return Err(Taken::Empty),
                    Ok(_) => {}
                    Err(_) => {
                        // The one before has completed; which one fails now nobody knows.
                        *head = RecvHead::default();
                        return Err(Taken::Corrupt);
                    }
                }
                let room = sges.len().min(max_sge as usize);
                let list = sges.get_mut(..room).ok_or(Taken::Corrupt)?;
                let decoded = wr::copy_recv(ring, head, list);
                ring.advance();
                ring.publish(ring.next());
                decoded.map_err(|_| Taken::Corrupt)
            }
            Queue::Kernel(queue) => {
                if !queue.take(head, sges) {
                    return Err(Taken::Empty);
                }
                queue.retire(1);
                Ok(())
            }
        }
    }

    fn available(&self) -> u32 {
        match &self.queue {
            Queue::User(ring) => ring.available().unwrap_or(0),
            Queue::Kernel(queue) => queue.available(),
        }
    }

    /// Arms the limit; true when it is reached already.
    fn set_limit(&mut self, limit: u32) -> bool {
        self.limit = limit;
        self.limit_reached()
    }

    /// The limit was armed and is reached: disarms it.
    fn limit_reached(&mut self) -> bool {
        if self.limit != 0 && self.available() < self.limit {
            self.limit = 0;
            return true;
        }
        false
    }
}

/// What ib_core's SRQ holds.
pub(crate) struct SrqData {
    pub(crate) wire: Ref<WireSrq>,
    /// The ring of a user, which a resize replaces.
    ring: Option<Pin<KBox<Mutex<UserRing>>>>,
    _tm_mappings: Option<[RingMapping; 2]>,
}

/// The ring of a user's SRQ.
struct UserRing {
    mem: Arc<RingMem>,
    _mapping: RingMapping,
}

/// `ibv_create_srq`, `ibv_create_srq_ex`. EINVAL for sizes beyond the device's.
pub(crate) fn create(
    init: &mut SrqInitAttr<'_, Xroce>,
    handle: SrqHandle,
    udata: Option<&mut Udata<'_, Xroce>>,
) -> Result<CreatedSrq<SrqData>> {
    let device = &init.pd.device().data().wire;
    let (cq, domain) = match init.srq_type {
        SrqType::Basic => (None, None),
        SrqType::Xrc => {
            let cq = init.cq.ok_or(EINVAL)?;
            let xrcd = init.xrcd.ok_or(EINVAL)?;
            (Some(cq.data().wire.clone()), Some(xrcd.data().id()))
        }
        SrqType::TagMatching => {
            let cq = init.cq.ok_or(EINVAL)?;
            (Some(cq.data().wire.clone()), None)
        }
    };
    let attr = &mut init.attr;
    if attr.max_wr == 0 || attr.max_wr > limits::MAX_SRQ_WR || attr.max_sge > limits::MAX_SGE {
        return Err(EINVAL);
    }
    attr.max_sge = attr.max_sge.max(1);
    attr.max_wr = attr.max_wr.checked_next_power_of_two().ok_or(EINVAL)?;
    attr.limit = 0;
    let charge = Charge::new(device, Kind::Srq)?;
    let reservation = tables::tables()?.srqs.reserve()?;
    let srqn = reservation.id();
    let mut ring = None;
    let mut kernel = None;
    let mut matching = None;
    let mut tm_mappings = None;
    let queue = match udata {
        Some(udata) => {
            let stride = wr::recv_stride(attr.max_sge);
            let mem = wr::new_ring(attr.max_wr, stride)?;
            let map = udata.ucontext()?.map_ring(mem.clone())?;
            let response = abi::xroce_create_srq_resp {
                ring: wr::ring_info(&mem, &map, attr.max_wr, stride),
                srqn,
                reserved: 0,
            };
            if init.srq_type == SrqType::TagMatching {
                let cq = cq.clone().ok_or(EINVAL)?;
                let made = tm::create(init.max_num_tags, cq, udata)?;
                matching = Some(made.tm);
                tm_mappings = Some(made.mappings);
                udata.write(&abi::xroce_create_tm_srq_resp {
                    srq: response,
                    ops: made.ops,
                    freed: made.freed,
                    max_sge: limits::MAX_TM_SGE,
                    reserved: 0,
                })?;
            } else {
                udata.write(&response)?;
            }
            ring = Some(KBox::pin_init(
                new_mutex!(UserRing {
                    mem: mem.clone(),
                    _mapping: map,
                }),
                GFP_ACCOUNT,
            )?);
            Queue::User(RingReader::new(mem, attr.max_wr, stride))
        }
        // Operations on a matching list have no verb in the kernel.
        None if init.srq_type == SrqType::TagMatching => return Err(eopnotsupp()),
        None => {
            let queue = Arc::pin_init(KernelQueue::new(attr.max_wr, attr.max_sge), GFP_KERNEL)?;
            kernel = Some(queue.clone());
            Queue::Kernel(queue)
        }
    };
    let inner = Inner { queue, limit: 0 };
    let wire = Ref::pin_init(
        try_pin_init!(WireSrq {
            srqn,
            pd: init.pd.data().id(),
            wire_pd: init.pd.data().wire().clone(),
            cq,
            domain,
            max_wr: Atomic::new(init.attr.max_wr),
            max_sge: init.attr.max_sge,
            kernel,
            dead: Atomic::new(0),
            handle,
            tm: matching,
            device: device.clone(),
            inner <- new_spinlock_irq!(inner, "xroce srq"),
            _charge: charge,
        }? Error),
        GFP_ACCOUNT,
    )?;
    reservation.publish(wire.clone());
    Ok(CreatedSrq {
        data: SrqData {
            wire,
            ring,
            _tm_mappings: tm_mappings,
        },
        srq_num: srqn,
    })
}

/// Gives a user's queue a ring for `max_wr` receives and tells user space about it. EINVAL when more
/// are posted, or when there is a limit above; nothing is changed then. Sets the limit as well if
/// there is a `new_limit`; true when that is reached already.
fn resize(
    srq: &Srq<Xroce>,
    max_wr: u32,
    new_limit: Option<u32>,
    udata: &mut Udata<'_, Xroce>,
) -> Result<bool> {
    let data = srq.data();
    let wire = &data.wire;
    if max_wr == 0 || max_wr > limits::MAX_SRQ_WR {
        return Err(EINVAL);
    }
    let entries = max_wr.checked_next_power_of_two().ok_or(EINVAL)?;
    let request: abi::xroce_modify_srq_req = udata.read()?;
    let address = usize::try_from(request.ring_addr).map_err(|_| EINVAL)?;
    // One resize at a time; receives are taken meanwhile.
    let mut user = data.ring.as_ref().ok_or(EINVAL)?.lock();
    let stride = wr::recv_stride(wire.max_sge);
    let mem = wr::new_ring(entries, stride)?;
    let mapping = udata.ucontext()?.map_ring(mem.clone())?;
    let info = wr::ring_info(&mem, &mapping, entries, stride);
    UserSlice::new(
        UserPtr::from_addr(address),
        core::mem::size_of::<abi::xroce_ring_info>(),
    )
    .writer()
    .write_slice(info.as_bytes())?;
    // A look at the old ring from where it stands now; what is taken meanwhile is copied in vain.
    let old = {
        let inner = wire.inner.lock();
        match &inner.queue {
            Queue::User(ring) => ring.snapshot(),
            Queue::Kernel(_) => return Err(EINVAL),
        }
    };
    let end = old.copy_to(&mem, entries)?;
    let mut inner = wire.inner.lock();
    if new_limit.unwrap_or(inner.limit) > entries {
        return Err(EINVAL);
    }
    let Queue::User(ring) = &inner.queue else {
        return Err(EINVAL);
    };
    let ring = ring.moved(mem.clone(), entries, end)?;
    inner.queue = Queue::User(ring);
    wire.max_wr.store(entries, Relaxed);
    let reached = match new_limit {
        Some(limit) => inner.set_limit(limit),
        None => false,
    };
    drop(inner);
    *user = UserRing {
        mem,
        _mapping: mapping,
    };
    Ok(reached)
}

/// `ibv_modify_srq`: size of a user's queue, limit. EINVAL for what is out of range.
pub(crate) fn modify(
    srq: &Srq<Xroce>,
    attr: &SrqAttr,
    mask: SrqAttrMask,
    udata: Option<&mut Udata<'_, Xroce>>,
) -> Result {
    let wire = &srq.data().wire;
    let limit = mask.limit.then_some(attr.limit);
    let reached = if mask.max_wr {
        // Both or nothing: user space stays with its ring when it is told of an error.
        resize(srq, attr.max_wr, limit, udata.ok_or(EINVAL)?)?
    } else if let Some(limit) = limit {
        let mut inner = wire.inner.lock();
        if limit > wire.max_wr.load(Relaxed) {
            return Err(EINVAL);
        }
        inner.set_limit(limit)
    } else {
        false
    };
    if reached {
        wire.handle.event(SrqEvent::LimitReached);
    }
    Ok(())
}

/// `ibv_query_srq`.
pub(crate) fn query(srq: &Srq<Xroce>) -> Result<SrqAttr> {
    let wire = &srq.data().wire;
    if wire.is_dead() {
        return Err(EINVAL);
    }
    let limit = wire.inner.lock().limit;
    Ok(SrqAttr {
        max_wr: wire.max_wr.load(Relaxed),
        max_sge: wire.max_sge,
        limit,
    })
}

/// No queue pair of ib_core's names the queue any more; packets may.
pub(crate) fn destroy(srq: &Srq<Xroce>) {
    let data = srq.data();
    data.wire.dead.store(GONE, Relaxed);
    if let Some(tables) = tables::get() {
        if let Some(srq) = tables.srqs.remove(data.wire.srqn) {
            // A packet that found it just now may still be writing to its buffers.
            Ref::retire(srq);
        }
    }
    if let Some(tm) = &data.wire.tm {
        tm.kill();
    }
    if let Some(ring) = &data.ring {
        let _ = ring
            .lock()
            .mem
            .fetch_or(abi::RING_KERNEL_FLAGS, abi::RING_DEAD);
    }
}

/// A user's doorbell: operations wait in the ring of a tag-matching queue; EINVAL for another. Process
/// context.
pub(crate) fn doorbell(srq: &Srq<Xroce>) -> Result {
    let wire = &srq.data().wire;
    let tm = wire.tm.as_ref().ok_or(EINVAL)?;
    tm.doorbell().inspect_err(|_| wire.fail())
}

/// One receive of a kernel user. Any context.
pub(crate) fn post(srq: &Srq<Xroce>, wr: &RecvWr<'_>) -> Result {
    let queue = srq.data().wire.kernel.as_ref().ok_or(EINVAL)?;
    wr::post_recv(queue, wr)
}
